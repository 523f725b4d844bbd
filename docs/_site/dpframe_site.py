"""What the site needs of Sphinx: parts made from the package, and links in docstrings."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from parts import filled, short_signature
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole
from sphinx.writers.html5 import HTML5Translator

import dpframe as dpf

_NAME = re.compile(r"(\.dp\.|dpf\.)?([A-Za-z_][\w.]*)")
_PANDERA = {  # where its own reference has them
    "DataFrameModel": "pandera.api.pandas.model.DataFrameModel",
    "DataFrameSchema": "pandera.api.pandas.container.DataFrameSchema",
}
_COLUMNS = ("denoised", "errors", "std_error", "units")  # in docstrings, what tables and plots have
_OUTSIDE = re.compile(r"\]\((?:\.\./)+(CHANGELOG|CONTRIBUTING)\.md")


def _fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put parts in their places, and lead links out of `docs` to the pages that include them."""
    linked = _OUTSIDE.sub(lambda found: f"](/{found[1].lower()}.md", source[0])
    source[0] = filled(linked)


def _shorten(
    _app: Sphinx,
    what: str,
    name: str,
    value: Any,
    _options: object,
    signature: str,
    answered: str | None,
) -> tuple[str, str | None]:
    """Put together the keywords that methods of the accessor share."""
    is_method = what == "method" and name.startswith("dpframe.DPAccessor.")
    return (short_signature(value) if is_method else signature), answered


def _leave_out_keywords(
    _app: Sphinx, _what: str, name: str, _value: Any, _options: object, lines: list[str]
) -> None:
    """Leave out of a method what the function that it refers to describes on this site."""
    start = "Parameters"
    if name.startswith("dpframe.DPAccessor.") and "`dpframe." in lines[0] and start in lines:
        del lines[lines.index(start) :]


class CodeOrLink(SphinxRole):
    """What stands in single backticks in a docstring: a link if it names something, else code."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Make a link that is code where there is nothing of the name."""
        code = nodes.literal(self.rawtext, self.text)
        target = _target(self.text, str(self.env.ref_context.get("py:class", "")))
        if target is None:
            return [code], []
        link = addnodes.pending_xref(
            self.rawtext,
            code,
            refdoc=self.env.docname,
            refdomain="py",
            reftype="obj",
            reftarget=target,
            refexplicit=False,
            refwarn=False,
        )
        link["py:module"] = self.env.ref_context.get("py:module")
        return [link], []


def _target(text: str, owner: str) -> str | None:
    """Say what a text in the docstring of a class, or of none, may be the name of."""
    named = _NAME.fullmatch(text)
    if named is None or text in _COLUMNS:
        return None
    start, name = named.groups()
    if start == ".dp.":
        return f"dpframe.DPAccessor.{name}"
    if start == "dpf.":
        return f"dpframe.{name}"
    if hasattr(getattr(dpf, owner, None), name):
        return f"dpframe.{owner}.{name}"
    return _PANDERA.get(name.removeprefix("pandera.pandas."), name)


def _inline_math(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula as MathML, which browsers show without any script."""
    writer.body.append(str(latex2mathml.tex2mathml(node.astext())))
    raise nodes.SkipNode


def _display_math(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula that stands on its own."""
    formula = latex2mathml.tex2mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="math">\n{formula}\n</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the parts with Sphinx."""
    app.add_role("code_or_link", CodeOrLink())
    app.add_html_math_renderer("mathml", (_inline_math, None), (_display_math, None))
    app.connect("source-read", _fill)
    app.connect("autodoc-process-signature", _shorten)
    app.connect("autodoc-process-docstring", _leave_out_keywords, priority=1)
    return {"version": dpf.__version__, "parallel_read_safe": True, "parallel_write_safe": True}

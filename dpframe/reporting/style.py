"""Released tables for pandas' Styler: numbers with intervals, and what was promised."""

import html
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import pandas as pd

from dpframe.arguments import visible
from dpframe.cells.verify import Shown, look
from dpframe.certificates import words
from dpframe.errors import DPFrameError, QueryError, pip_install
from dpframe.inference.intervals import intervals_of
from dpframe.privacy.half_widths import check_level
from dpframe.public import public_call
from dpframe.reporting.cells import cells_of

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
)
_ESCAPES: Mapping[str | None, Callable[[str], str]] = MappingProxyType(
    {"html": html.escape, "latex": lambda text: text.translate(_LATEX), None: str}
)


@public_call
def style(
    released: pd.DataFrame, level: float = 0.95, *, escape: Literal["html", "latex"] | None = "html"
) -> "Styler":
    """Return pandas' Styler of a table for readers: `496 [488, 504]`, and a caption.

    Numbers have the digits that the noise leaves, durations a unit. `style().to_html(path)` writes
    HTML, `style(escape="latex").to_latex(hrules=True)` LaTeX. The texts are a frame,
    `style(escape=None).data`, of which `to_markdown` of pandas makes Markdown. None of these
    carries the certificate.

    Parameters
    ----------
    released
        A released frame, in any layout.
    level
        Confidence level of intervals that are not in the table, in (0, 1).
    escape
        For which language labels and texts are escaped; `None`: for none.

    Returns
    -------
    pandas.io.formats.style.Styler
        Of a frame of texts. The caption says who is protected, and how.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    DPFrameError
        If Jinja2 is not installed.
    QueryError
        If the level is not in (0, 1), or there is no such language.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A"] * 496})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A"]), epsilon=1e6)
    >>> styler = released.dp.style()
    >>> styler.data.loc["A", "count"], styler.caption
    ('496 [496, 496]', '[95 % intervals] one row: (1e+06, 0)-differentially private')
    """
    level = check_level(level)
    if escape not in (*_ESCAPES,):
        raise QueryError.about("escape", 'must be "html", "latex" or None', escape)
    shown = look(released)
    bars = _bars(shown, level)
    columns = {at: _texts(shown, at, bars) for at, home in enumerate(shown.homes) if home == at}
    frame = pd.DataFrame(columns, index=shown.layout.frame.index, dtype=object)
    frame.columns = shown.layout.frame.columns.take([*columns])
    written = _ESCAPES[escape]
    frame = frame.map(lambda text: written(visible(text)))
    for axis in (0, 1):
        frame = frame.set_axis(_escaped(frame.axes[axis], written), axis=axis)
    try:
        return frame.style.set_caption(written(visible(_caption(shown, bars, level))))
    except (AttributeError, ImportError):
        rule = f"tables with a style need Jinja2: {pip_install('report')}"
        raise DPFrameError(f"{rule}.") from None


def _bars(shown: Shown, level: float) -> pd.DataFrame | None:
    """Return intervals of released columns, if the table has none of these and they are known."""
    if shown.layout.rows is None or shown.opened.promise.is_derived:
        return None
    try:
        return intervals_of(shown, level) if shown.labels else None
    except QueryError:
        return None


def _texts(shown: Shown, at: int, bars: pd.DataFrame | None) -> list[str]:
    """Return the cells of a column with their intervals; keys as they are."""
    frame, labels = shown.layout.frame, shown.labels_at
    if at not in labels:
        return [*map(str, frame.iloc[:, at])]
    values = frame.iloc[:, at].reset_index(drop=True)
    beside = [end for end, home in enumerate(shown.homes) if home == at != end]
    ends = frame.iloc[:, beside] if len(beside) == len(("low", "high")) else None
    if ends is None and bars is not None and labels[at] in shown.labels:
        place = 2 * shown.labels.index(labels[at])
        ends = bars.iloc[:, place : place + 2]
    origin = 0 if getattr(values.dtype, "kind", "O") in "mM" else None
    cells = cells_of(values, ends, origin, None, base=0.0, most=len(values))
    return [
        f"{cell.value} [{cell.interval.replace(' to ', ', ')}]" if cell.interval else cell.value
        for cell in cells
    ]


def _escaped(index: pd.Index, written: Callable[[str], str]) -> pd.Index:
    """Write keys or labels, and their names."""

    def text(value: object) -> str:
        return "" if value is None else written(visible(str(value)))

    names = [None if name is None else text(name) for name in index.names]
    levels = [index.get_level_values(at).map(text) for at in range(index.nlevels)]
    if len(levels) == 1:
        return levels[0].astype(object).rename(names[0])
    return pd.MultiIndex.from_arrays(levels, names=names)


def _caption(shown: Shown, bars: pd.DataFrame | None, level: float) -> str:
    """Say of which level intervals are, who is protected and how, and what is left out."""
    ends = (part for part in shown.computed.values() if getattr(part, "end", None) is not None)
    levels = {float(getattr(part, "level", level)) for part in ends}
    levels |= {level} if bars is not None else set()
    shares = ", ".join(f"{100 * share:g} %" for share in sorted(levels))
    parts = [f"[{shares} intervals]"] if levels else []
    losses = (
        f"{', '.join(words.unit_in_lines(release.privacy_unit))}: "
        f"{words.loss_lines(release.privacy_loss)[0]}"
        for release in shown.opened.releases
    )
    return " ".join([*parts, "; ".join([*dict.fromkeys(losses), *shown.lines()])])

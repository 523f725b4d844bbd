"""What `.dp` shows of itself and of its frame: public facts alone, and what can be done with it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from textwrap import fill
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import pandas as pd
from pandas.api.typing import DataFrameGroupBy, SeriesGroupBy

from dpframe.arguments import visible
from dpframe.cells.record import ATTRIBUTE, certificate_of, record_on
from dpframe.certificates.certificate import TEST
from dpframe.certificates.definitions import QuantileDefinition, SuggestDefinition
from dpframe.certificates.mechanism_parts import (
    LayersPart,
    NoisyMechanismPart,
    SignsPart,
    ThresholdPart,
    TreePart,
)
from dpframe.context import at_the_door
from dpframe.declaration.facts import declaration_text, is_of_another_test, kept_declaration
from dpframe.engines import Frame, engine_for
from dpframe.errors import CallError, CertificateError, DeclarationError, NoSuchNameError, quote
from dpframe.html import declaration_html, pairs, section, title_html
from dpframe.provenance import is_private
from dpframe.public import nearest

Standing: TypeAlias = Literal[
    "undeclared", "declared", "tested", "derived", "released", "diagnosis", "none"
]
"""What is known of a frame, and so what can be done with it."""

_HEADINGS: Mapping[Standing, str] = MappingProxyType(
    {
        "undeclared": "a private frame, of which nothing is declared",
        "declared": "a private frame, declared as public:",
        "tested": "a private frame, declared inside of a testing block: declare it here",
        "derived": "a frame derived from a declared one: declare it, with ledger= of the first",
        "released": "a released frame; dpf.verify checks it:",
        "diagnosis": "a diagnosis: exact numbers, not for publication",
        "none": "what is no frame that dpframe can read",
    }
)
_MOST_COLUMNS = 10  # of a declaration that are shown
_WIDTH = 80  # characters of a line
_POSSIBLE = "  possible: "
_INDENT = " " * len(_POSSIBLE)
Grouped: TypeAlias = "DataFrameGroupBy[Any, Any] | SeriesGroupBy[Any, Any]"
_OF_ROWS = {"count", "units"}
_OF_BUDGET = {"budget", "ledger"}
_BOTH = {"quantile"}
"""What private frames are asked, and what is read off released ones."""


_PANDAS = "pandas keeps the certificate: use {call}."


def _by_name(hints: Mapping[str, str]) -> dict[str, str]:
    """Give each of several names, written as one text, its hint."""
    return {name: hint for names, hint in hints.items() for name in names.split()}


_FOR_PRIVATE = _by_name(
    {
        "size value_counts len n rows": "Use .dp.count(by=..., epsilon=...).",
        "average avg": "Use .dp.mean(columns, by=..., epsilon=...).",
        "nunique distinct unique": "Use .dp.units(by=..., epsilon=...) to count privacy units, or "
        ".dp.discover(by, epsilon=...) to find groups.",
        "variance": "Use .dp.var(columns, by=..., epsilon=...).",
        "stdev stddev": "Use .dp.std(columns, by=..., epsilon=...).",
        "proportion share": 'Use .dp.rate("fare > 10", by=..., epsilon=...).',
        "hist": "Use .dp.histogram(column, bins=[...], epsilon=...).",
        "cut": "Use .dp.count(by=dpf.cut(column, edges), epsilon=...).",
        "resample": "Use .dp.count(by=dpf.period(column, freq, first, last), epsilon=...).",
        "rolling": "Use .dp.ranges(column, bins, window=..., epsilon=...).",
        "agg describe": "Use .dp.aggregate(by=..., n=dpf.count(), epsilon=...).",
        "groupby pivot_table crosstab": 'Use by=, as in .dp.count(by=["zone"], epsilon=...).',
        "query filter loc iloc where": "Use where=, a condition as text, as in "
        '.dp.count(where="fare > 0", epsilon=...).',
        "percentile quantiles qcut": "Use .dp.quantile(column, [0.5], by=..., epsilon=...).",
        "median": "Use .dp.quantile(column, 0.5, by=..., epsilon=...).",
        "min max": "The smallest and largest value are not released; use "
        ".dp.quantile(column, [0.05, 0.95], by=..., epsilon=...).",
        "mode": "Use .dp.histogram(column, bins=[...], epsilon=...).",
        "spent remaining left epsilon": "Use .dp.budget.",
        "dp": "It is .dp of the frame already: .dp.declare(...) declares the frame itself. Write "
        "df.dp.declare(...), and do not assign what it returns.",
    }
)
"""What to use in place of names that pandas and others have."""

_FOR_RELEASED = _by_name(
    {
        "query filter loc iloc where drop isin dropna xs head tail select": _PANDAS.format(
            call="released.head(10), released.query(\"zone != 'A'\") and released.loc[keys]"
        ),
        "percentile percentiles quantiles median": "Use .dp.quantile([0.25, 0.5, 0.75]) where "
        "ranges were released.",
        "pivot pivot_table crosstab unstack stack melt": _PANDAS.format(
            call="released.unstack(level)"
        ),
        "sort sort_index sort_values": _PANDAS.format(call="released.sort_values(by)"),
        "proportion share": "Use .dp.percent(column) or .dp.ratio(numerator, denominator).",
        "diff pct_change compare sub difference": "Use .dp.change(along) or .dp.change(before).",
        "hist": "Use .dp.plot().",
        "map replace rename_axis": "Use .dp.rename(columns, levels=..., keys=...).",
        "swaplevel reorder_levels": _PANDAS.format(call="released.swaplevel()"),
        "append merge join": "Use dpf.concat(releases, keys=..., name=...).",
        "ci conf_int confidence_interval": "Use .dp.interval(0.95) of what was released.",
        "cert verify": "Use .dp.certificate; dpf.verify(frame) checks it.",
        "to_csv": "Use .dp.write_csv(path).",
        "to_parquet": "Use .dp.write_parquet(path).",
        "to_excel": "Use .dp.write_excel(path).",
    }
)
"""The same, for released frames: nothing that would cost privacy."""


def public_names(cls: type) -> set[str]:
    """Return the names of a class and those that it inherits from, but for private ones."""
    return {name for base in cls.__mro__ for name in vars(base) if not name.startswith("_")}


def _standing(frame: Frame) -> Standing:
    """Tell what is known of a frame; no row of it is looked at."""
    try:
        engine = engine_for(frame)
    except DeclarationError:
        return "none"
    attrs = engine.attrs(frame)
    standings: tuple[tuple[Standing, Callable[[], object]], ...] = (
        ("diagnosis", lambda: is_private(attrs)),
        ("released", lambda: ATTRIBUTE in attrs),
        ("tested", lambda: is_of_another_test(frame, at_the_door(looking=True))),
        ("declared", lambda: kept_declaration(frame)),
        ("derived", lambda: engine.is_derived(frame)),
    )
    return next((standing for standing, holds in standings if holds()), "undeclared")


def names_on_offer(frame: Frame, private: Iterable[str], released: Iterable[str]) -> set[str]:
    """Return what applies to a frame, of what there is for private and for released ones.

    Parameters
    ----------
    frame
        The frame.
    private, released
        Names of methods and properties for private and for released frames.
    """
    standing, declaration = _standing(frame), kept_declaration(frame)
    if standing == "released":
        return {*released, *_BOTH} - _not_for(frame)
    if standing in ("derived", "tested"):
        return {"declare"}
    if standing in ("diagnosis", "none"):
        return set()
    charged = declaration is not None and declaration.ledger is not None
    return {*private} - (set() if charged else _OF_BUDGET)


def _not_for(frame: pd.DataFrame) -> set[str]:
    """Return what does not work on a released frame, as far as labels and certificate say so."""
    try:
        opened = record_on(frame)
    except CertificateError:
        return {*_BOTH, "best"}
    certificate = opened.promise
    release = certificate.releases[0]
    definitions = {*map(type, certificate.table.definitions)}
    mechanism = release.mechanism
    pairs = () if certificate.is_derived else release.columns
    parts = zip(certificate.table.released, pairs, strict=True)
    chosen = [part for cells, part in parts if opened.shown_label(cells.label) in frame.columns]
    columns = chosen or release.columns  # labels of cells side by side may be keys
    totals = sum(column.form.is_total for column in columns)
    numbers = any(column.times is None for column in columns)
    derived = certificate.is_derived
    noisy = not derived and isinstance(mechanism, NoisyMechanismPart)
    tree = isinstance(mechanism, TreePart)
    read_off = QuantileDefinition in definitions
    tree = tree and not read_off
    has_errors = noisy and not read_off and not isinstance(mechanism, ThresholdPart)
    apart = has_errors and not isinstance(mechanism, LayersPart | SignsPart)
    single = len(certificate.releases) == 1
    derives = derived or (has_errors and not tree)
    sums = derives and (totals > 0 or derived)
    keyed = bool(certificate.table.levels)
    timed = any(column.form.is_total and column.times is not None for column in columns)
    works = {"percent": sums, "per": sums and not timed, "relative": sums and keyed}
    rates = derives and not totals
    sums_alone = sums and not timed and (derived or totals == len(columns))
    works["standardize"] = keyed and (rates or sums_alone)
    added_up = all(column.form.interval != "test by row" for column in columns)
    works |= {"change": derives, "total": derives and (derived or added_up)}
    works |= {
        "best": SuggestDefinition in definitions,
        "between": tree and single,
        "quantile": tree and single,
        "combine": has_errors,
        "covariance": noisy and not read_off and single,
        "denoise": apart
        and single
        and any(column.form.is_total or column.form.is_mean for column in columns),
        "independence": len(certificate.table.levels) > 1
        and apart
        and single
        and any(column.counts_rows for column in columns),
        "interval": noisy,
        "nlargest": bool(columns) and not derived,
        "nsmallest": bool(columns) and not derived,
        "plot": noisy,
        "plot_map": noisy and single,
        "ratio": totals > 1 and derives,
        "round": numbers,
        "std_error": noisy and not read_off,
        "suppress": numbers and not derived,
    }
    return {name for name, fits in works.items() if not fits}


def accessor_text(frame: Frame, names: Iterable[str]) -> str:
    """Show what is known of a frame, what is left of its budget, and what can be done.

    Parameters
    ----------
    frame
        The frame.
    names
        What applies to it.
    """
    standing = _standing(frame)
    details = {"declared": _of_declared, "released": _of_released}.get(standing, lambda _: [])
    possible = "  ".join(f".{name}" for name in sorted(names))
    lines = [f".dp of {_HEADINGS[standing]}", *details(frame)]
    if possible:
        lines.append(fill(possible, _WIDTH, initial_indent=_POSSIBLE, subsequent_indent=_INDENT))
    return "\n".join(lines)


def accessor_html(frame: Frame, names: Iterable[str]) -> str:
    """Show the same as tables, for a notebook.

    Parameters
    ----------
    frame, names
        As in `accessor_text`.
    """
    standing, possible = _standing(frame), " ".join(f".{name}" for name in sorted(names))
    rows: list[tuple[str, object]] = [("possible", possible)] if possible else []
    if standing == "released":
        rows.insert(0, ("release", [line.strip() for line in _of_released(frame)]))
    left = _budget_lines(frame)
    rows = [*([("budget now", left)] if left else []), *rows]
    declaration = kept_declaration(frame) if standing == "declared" else None
    facts = "" if declaration is None else declaration_html(declaration)
    return section(title_html(f".dp of {_HEADINGS[standing].rstrip(':')}"), facts, pairs(rows))


def _of_declared(frame: Frame) -> list[str]:
    """Show a declaration and its budget."""
    text = declaration_text(kept_declaration(frame), _MOST_COLUMNS)
    return [text, *(f"  {line}" for line in _budget_lines(frame))]


def _budget_lines(frame: Frame) -> list[str]:
    """Show a budget as it was last seen: no file is read."""
    declaration = kept_declaration(frame)
    ledger = None if declaration is None else declaration.ledger
    return [] if ledger is None else ledger.last_status().words.splitlines()[1:]


def _of_released(frame: pd.DataFrame) -> list[str]:
    """Show what was asked; the certificate is not checked."""
    try:
        releases = certificate_of(frame).releases
    except CertificateError:
        return ["  its certificate cannot be read"]
    noises = (
        f"{release.mechanism.title} noise, released at {release.released_at}"
        for release in releases
    )
    queries = (release.query.words for release in releases)
    lines = chain(*zip(queries, noises, strict=True))
    tests = [TEST] * any(release.testing for release in releases)
    return [f"  {visible(line)}" for line in (*tests, *lines)]


def no_such_name(accessor: Any, name: str) -> NoSuchNameError:
    """Make the error about a name that an accessor does not have, with the right call."""
    if name.startswith("_"):  # asked for by programs, which need no advice
        return NoSuchNameError(f"{type(accessor).__name__!r} object has no attribute {name!r}")
    own_names = public_names(type(accessor))
    names = {label for label in dir(accessor) if label[0] != "_"} or own_names
    released = _standing(accessor._frame) == "released"
    elsewhere = _FOR_RELEASED if released else {**_FOR_RELEASED, **_FOR_PRIVATE}
    of_pandas = not released and hasattr(pd.DataFrame, name)
    close = nearest(name, names) or nearest(name, names if released else own_names)
    if name.lower() in elsewhere:
        hint = elsewhere[name.lower()]
    elif of_pandas:
        hint = "It is a method of pandas: use it before the frame is declared, or on a release."
    elif close is not None:
        hint = f"Did you mean .dp.{close}?"
    else:
        hint = f"It has {', '.join(sorted(names))}."
    return NoSuchNameError(f".dp has no {name!r}. {hint}", parameter=name)


def no_such_function(name: str, public: Iterable[str], methods: Collection[str]) -> NoSuchNameError:
    """Make the error about a name that the package does not have, with the one meant.

    Parameters
    ----------
    name
        The name.
    public, methods
        The public names of the package, and of its accessor.
    """
    if name.startswith("_"):
        return NoSuchNameError(f"module 'dpframe' has no attribute {name!r}")
    elsewhere = {**_FOR_RELEASED, **_FOR_PRIVATE}
    hint = elsewhere.get(name, "")
    if name in methods:
        hint = f"Use .dp.{name} of a frame."
    elif name not in elsewhere and (close := nearest(name, public)):
        hint = f"Did you mean dpf.{close}?"
    elif name not in elsewhere and (close := nearest(name, methods)):
        hint = f"Did you mean .dp.{close} of a frame?"
    if name.startswith("read_") and hasattr(pd, name):
        hint = f"Use pandas.{name}; dpf.read_csv reads what .dp.write_csv wrote."
    return NoSuchNameError(f"dpframe has no {name!r}. {hint}".rstrip(), parameter=name)


def no_such_item(key: object) -> CallError:
    """Make the error about `.dp[...]`, with the calls that name columns."""
    column = quote(key) if isinstance(key, str) else "column"
    return CallError(
        f".dp has no columns: name them in the call, as in .dp.count(by={column}, epsilon=...), "
        f".dp.mean({column}, ...), or released[[{column}]] of a release."
    )


def no_dp_of_groups(name: str, grouped: Grouped) -> NoSuchNameError:
    """Make the error about `.dp` of a grouped frame, with the call to use."""
    by = grouped.keys
    labels = by if isinstance(by, list) else [by]
    single = isinstance(grouped, SeriesGroupBy)
    # all else may be made of private cells
    named = all(
        isinstance(label, str) and (single or label in grouped.obj.columns) for label in labels
    )
    groups = quote(by) if named else "..."
    column = f"{quote(grouped.obj.name)}, " if single and name not in _OF_ROWS else ""
    call = f"df.dp.{name}({column}by={groups}, epsilon=...)"
    reason = f"a grouped {'column' if single else 'frame'} has no .dp.{name}:"
    remedy = f"name the groups in the call, as in {call}."
    return NoSuchNameError(f"{reason} {remedy}")


def no_dp_of_series(series: pd.Series) -> NoSuchNameError:
    """Make the error about `.dp` of a series, with what to use of its frame."""
    if ATTRIBUTE in series.attrs:
        reason = "a Series has no .dp: the certificate is about the whole released frame."
        remedy = (
            "Keep that, and use its .dp.interval(), .dp.plot(column=...) or .dp.combine(weights)."
        )
        return NoSuchNameError(f"{reason} {remedy}")
    return NoSuchNameError(
        "a Series has no .dp: query its frame, and name the column, as in "
        'df.dp.mean("fare", by="zone", epsilon=...). To use only some rows, say where="fare > 0".'
    )

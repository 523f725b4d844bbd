"""What a report shows of one released table: stamp, columns, rows, and what was left out."""

import json
import math
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

import pandas as pd

from dpframe.arguments import visible
from dpframe.cells.record import certificate_of
from dpframe.cells.reduce import apart
from dpframe.cells.texts import number_text
from dpframe.cells.verify import Shown, look
from dpframe.certificates import definitions, words
from dpframe.certificates.certificate import Certificate, Release
from dpframe.certificates.claims import check_recorded
from dpframe.certificates.mechanism_parts import SelectionPart, TreePart
from dpframe.certificates.parts import GroupingPart, TablePart, WitnessPart, recomputed_loss
from dpframe.derived.table import check_people, numbers_shown
from dpframe.errors import CertificateError, QueryError
from dpframe.frozen import frozen
from dpframe.html import bounds_text
from dpframe.inference.intervals import ENDS
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry
from dpframe.privacy.amounts import PrivacyLoss, float_above
from dpframe.privacy.interpretation import Guarantee
from dpframe.privacy.laws import GAUSSIAN, LAWS, STAIRCASE
from dpframe.privacy.together import gaussian_price
from dpframe.queries.binned import LEVEL
from dpframe.reporting.cells import (
    MOST_ROWS,
    CellView,
    cells_of,
    ends_of,
    names_of_levels,
    percent_texts,
)

_MOST_TERMS = 12  # of a release that are shown
_CURVE = "delta = \u03a6(mu/2 - epsilon/mu) - exp(epsilon) \u03a6(-mu/2 - epsilon/mu)"
_CURVE_OF_BOTH = (
    "delta = p G(epsilon - e) + (1 - p) G(epsilon + e), with e the pure epsilon, "
    f"p = 1 / (1 + exp(-e)), and G(epsilon) the {_CURVE}"
)


def cost_lines(release: Release) -> list[str]:
    """Say what the worst units move, over the scales of the noise, and what that adds up to."""
    terms = [term for part in release.witness for term in _terms(part)]
    lost = recomputed_loss(release.witness)
    mu_squared, epsilon = float(lost.mu_squared), float(lost.epsilon)
    lines = terms[:_MOST_TERMS]
    if len(terms) > _MOST_TERMS:
        lines.append(f"and {len(terms) - _MOST_TERMS:,} more, as in the certificate")
    if epsilon:
        lines.append(f"added up: epsilon = {epsilon:.6g}")
    loss = release.privacy_loss
    if mu_squared:
        mu = math.sqrt(mu_squared)
        lines.append(f"added up: mu squared = {mu_squared:.6g}, mu = {mu:.6g}")
        if loss.epsilon is not None and loss.delta:
            curve = _CURVE_OF_BOTH if epsilon else _CURVE
            solved = f"epsilon = {loss.epsilon:.6g}, which solves {curve}"
            lines.append(f"at delta = {loss.delta:g}: {solved}")
    return lines


def _terms(part: WitnessPart) -> Iterator[str]:
    """Write what a unit moves in cells, one line for each integer that is measured."""
    measured = f"{part.alike:,} measurements, each " if part.alike > 1 else ""
    for cells in part.cells:
        a, b = cells.rows
        many = "1 cell" if cells.times == 1 else f"{cells.times:,} cells"
        for block, (x, y) in cells.moves.items():
            for u, v, factor in cells.shared:
                moved = abs(u * a * x - v * b * y)
                if moved:
                    cost = _cost(part.law, moved, part.scales[block])
                    times = "" if factor == 1 else f", times {factor:.12g}"
                    yield f"{measured}{many}: {cost}{times}"


def _cost(law: str, moved: int, scale: float) -> str:
    """Write the cost of a move, as a formula."""
    kind = LAWS.get(law)
    if kind is GAUSSIAN:
        return f"({moved:,} / {scale:.12g})\N{SUPERSCRIPT TWO}"
    if kind is STAIRCASE:
        width = int(scale)  # a part of a step costs as much as the step
        return f"{-(-moved // width):,} log(1 / {scale - width:.12g})"
    return f"{moved:,} / {scale:.12g}"


def loss_of_parts(entries: Sequence[Entry], times: int) -> Guarantee | None:
    """Bound what somebody loses who is a unit in each of so many parts of the data.

    Of a release of one part, one unit moves: mu squared and epsilons add up. Of a release over all
    parts, all units of that person move: mu and epsilon are `times` as large (Dong, Roth and Su
    2022, on groups). Amounts must not depend on answers.

    Returns
    -------
    Guarantee or None
        `None` where labels were searched over all parts: the extra delta of several units at once
        is not known.

    References
    ----------
    J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B 84(1), 2022.
    """
    lost, mu_squared = PrivacyLoss(), Fraction(0)
    for entry in entries:
        moved = times if entry.part is None else 1
        if entry.loss.delta and moved > 1:
            return None
        epsilon, of_gaussian, delta = entry.loss.parts
        loss = PrivacyLoss(moved * epsilon, moved**2 * of_gaussian, delta)
        lost += loss
        mu_squared += gaussian_price(loss)
    extra = float_above(lost.delta)
    if not lost.mu_squared:
        return Guarantee(epsilon=float_above(lost.epsilon), delta=extra)
    return Guarantee(mu=PrivacyLoss(mu_squared=mu_squared).mu, extra_delta=extra)


def facts_of(release: Release, table: TablePart) -> list[tuple[str, list[str]]]:
    """Say what was declared, and what it leaves out of the numbers."""
    query, caps = release.query, release.privacy_unit.caps
    outer, inner = _split(release)
    groups = []
    for grouping in outer:
        source = words.SOURCES[grouping.source]
        others = ""
        if grouping.rest is not None:
            others = f"; {grouping.rest!r} also holds all that is none of them, or missing"
        groups.append(f"{grouping.column}: {grouping.groups:,} groups, {source}{others}")
    if inner is not None:
        note = "bins; what lies beyond is in the first and the last"
        if isinstance(release.mechanism, SelectionPart):
            note = "in each group, as asked for"
        groups.append(f"{inner.column}: {inner.groups:,} {note}")
    limits = [
        (caps.max_rows, "row", " in all"),
        (caps.max_groups, "group", ""),
        (caps.max_rows_per_group, "row", " in each group"),
    ]
    capped = [
        f"{limit:,} {subject}{'s' * (limit != 1)}{scope}"
        for limit, subject, scope in limits
        if limit is not None
    ]
    unit = release.privacy_unit.columns
    cut = f"at most {', '.join(capped)}; which rows stay is chosen at random"
    nearer = "counts as the nearer end"
    clipped = [
        f"{part.about}: what lies outside of {bounds_text(part.declared)} {nearer}"
        for part in release.columns
        if part.declared is not None
    ]
    clipped += [
        f"{part.weights.column}, what each row counts for: what lies outside of "
        f"{bounds_text(part.weights.bounds)} {nearer}, a missing one as 0"
        for part in release.columns
        if part.weights is not None
    ]
    facts = [
        ("question", [query.words]),
        ("groups", groups),
        ("rows looked at", [] if query.where is None else [f"those with {query.where}"]),
        ("rows of one unit", [cut] if unit else []),
        ("clipped values", list(dict.fromkeys(clipped))),
        ("who loses the most", words.witness_lines(release.witness)),
        ("found", words.mechanism_lines(release.mechanism)),
        ("rows left out where", list(query.left_out)),
        ("computed afterwards", words.lines_afterwards(table)),
    ]
    return [(name, lines) for name, lines in facts if lines]


def _split(release: Release) -> tuple[tuple[GroupingPart, ...], GroupingPart | None]:
    """Tell groups from what is inside of each: bins of ranges, or quantiles that were selected."""
    by = release.query.by
    selected = isinstance(release.mechanism, SelectionPart) and by[-1:] and by[-1].column == LEVEL
    if selected or isinstance(release.mechanism, TreePart):
        return by[:-1], by[-1]
    return by, None


@frozen
class Beside:
    """Where intervals and percentages of released columns are, by the place of the column.

    Parameters
    ----------
    ends
        Places of both ends of its intervals.
    level
        Of which level they are.
    percent
        Places of percentages and their ends, of what they are, and of which level the ends.
    sampled
        Of which level intervals are that hold the error of a sample; `None`: they do not, or are
        for all cells at once.
    """

    ends: Mapping[int, list[int]]
    level: str
    percent: Mapping[int, tuple[list[int], tuple[str, str]]]
    sampled: float | None = None

    @property
    def places(self) -> set[int]:
        """The places of all of these columns."""
        pairs = [*self.ends.values(), *(places for places, _ in self.percent.values())]
        return {place for places in pairs for place in places}


def published_beside(shown: Shown) -> Beside:
    """Find the intervals and percentages of a table that have both ends."""
    places = {label: at for at, label in enumerate((*shown.labels, *shown.computed))}
    ends: dict[int, dict[str, int]] = {}
    percent: dict[int, dict[str, int]] = {}
    said: dict[int, tuple[str, str]] = {}
    level, sampled = "", None
    columns = shown.certificate.releases[0].columns
    for place, column in enumerate(() if shown.opened.promise.is_derived else columns):
        for label, definition in shown.computed.items():
            if definition.column != column.name:
                continue
            match definition:
                case definitions.IntervalDefinition() | definitions.QuantileDefinition():
                    ends.setdefault(place, {})[str(definition.end)] = places[label]
                    at_once = ", all at once," if definition.simultaneous else ""
                    level = f"{100 * definition.level:g} %{at_once}{_sampled(definition)}"
                    alone = bool(_sampled(definition)) and not definition.simultaneous
                    sampled = definition.level if alone else None
                case definitions.DerivedDefinition(
                    chain=[definitions.PercentLink(of=None) as link]
                ):
                    percent.setdefault(place, {})[str(definition.end)] = places[label]
                    within = f" by {_shown_levels(shown, link.by)}" * bool(link.by)
                    of_level = f"{100 * definition.level:g} %{_sampled(definition)}"
                    said[place] = f"of the total{within}", of_level
                case definitions.DerivedDefinition():
                    continue
                case definitions.DenoiseDefinition() | definitions.SuggestDefinition():
                    continue
                case _:
                    assert_never(definition)
    pairs = {at: list(of.values()) for at, of in ends.items() if len(of) == len(ENDS)}
    triples = {
        at: ([of["None"], of["low"], of["high"]], said[at])
        for at, of in percent.items()
        if len(of) > len(ENDS)  # both ends, and the percentage
    }
    return Beside(pairs, level, triples, sampled)


def _shown_levels(shown: Shown, names: Sequence[str]) -> str:
    """List levels by the names that are shown."""
    levels = zip(shown.opened.levels, shown.opened.index.names, strict=True)
    return ", ".join(str(name) for level, name in levels if str(level.name) in names)


def _sampled(definition: definitions.Definition) -> str:
    """Say that intervals hold the error of a sample, if they do."""
    return ", sample included," if getattr(definition, "sampling", False) else ""


_MOST_NAMES = 5  # of columns, in a note


@frozen
class Stamp:
    """Whether a table is what was released, and in the ledger.

    Parameters
    ----------
    sound
        Whether it is.
    text
        What it is, or what is wrong.
    """

    sound: bool
    text: str


@frozen
class ColumnView:
    """A column of a table.

    Parameters
    ----------
    name
        Its label.
    meaning
        What it is.
    intervals
        Of which level its intervals are; empty: there are none, and no drawings.
    percent
        Of what its percentages are, and of which level their intervals; empty: there are none.
    is_total
        Whether it counts or adds up rows.
    """

    name: str
    meaning: str
    intervals: str = ""
    percent: Sequence[str] = ()
    is_total: bool = False


@frozen
class RowView:
    """A row of a table: its labels and its cells."""

    labels: Sequence[str]
    cells: Sequence[CellView]


@frozen
class TableView:
    """One released table.

    Parameters
    ----------
    name
        What it is called on the page.
    release
        What was promised about it.
    carried
        The certificate it carries: of several releases, if it is a part of such a table.
    stamp
        Whether the table is what it was given for. Of one that is not, nothing else is shown.
    keys
        Names of its labels.
    columns, rows
        What is shown of it.
    hidden
        How many rows are not shown.
    text
        All rows as text, with intervals, where some are not shown.
    facts
        What was declared about it: pairs of a name and lines.
    notes
        What was asked for and is not shown, and why.
    """

    name: str
    release: Release
    carried: Certificate
    stamp: Stamp
    keys: Sequence[str] = ()
    columns: Sequence[ColumnView] = ()
    rows: Sequence[RowView] = ()
    hidden: int = 0
    text: str = ""
    facts: Sequence[tuple[str, list[str]]] = ()
    notes: Sequence[str] = ()

    @property
    def record(self) -> str:
        """The certificate as JSON, in ASCII."""
        return json.dumps(self.carried.to_dict(), indent=1)

    @property
    def about_noise(self) -> str:
        """Which noise hides the numbers, if any does."""
        return words.about_noise(self.release)

    @property
    def has_intervals(self) -> bool:
        """Whether there are numbers with noise, which intervals are about."""
        return words.has_noise(self.release)

    @property
    def has_sampled(self) -> bool:
        """Whether intervals in the table hold the error of a sample."""
        return any(map(_sampled, self.carried.table.definitions))

    @property
    def has_percent(self) -> bool:
        """Whether percentages are shown beside the numbers."""
        return any(column.percent for column in self.columns)

    @property
    def has_drowned(self) -> bool:
        """Whether a number is marked."""
        return any(cell.drowned for row in self.rows for cell in row.cells)

    @property
    def noise_alone(self) -> tuple[int, int]:
        """How many counts and sums may be noise alone, and how many are shown."""
        totals = [place for place, column in enumerate(self.columns) if column.is_total]
        drowned = [row.cells[place].drowned for row in self.rows for place in totals]
        return sum(drowned), len(drowned)

    @property
    def costs(self) -> list[str]:
        """How to recompute what the release costs."""
        return cost_lines(self.release)


def tables_of(
    name: str | None,
    released: pd.DataFrame,
    ledger: Ledger | None,
    names_by_release: Mapping[Hashable, str],
    level: float,
    *,
    shares: bool,
) -> list[TableView]:
    """Gather what is shown of a table, apart for each of several releases in it.

    Parameters
    ----------
    name
        What it is called; `None`: what its certificate says.
    released
        A frame with a certificate.
    ledger
        What was charged, if that is to be checked.
    names_by_release
        Names of releases in the ledger, by `release_id`.
    level
        Confidence level of intervals.
    shares
        Whether percentages of totals are shown.

    Raises
    ------
    CertificateError
        If it carries no certificate that can be read.
    """
    carried = certificate_of(released)
    names = _names(name, carried, names_by_release)
    try:
        shown = look(released)
        if ledger is not None:
            for release in carried.releases:
                check_recorded(release, ledger)
    except CertificateError as error:
        return _views(names, carried, Stamp(False, str(error)))
    kept = "" if ledger is None else f", and ledger {ledger.ledger_id} was charged for it"
    stamp = Stamp(True, f"{shown.state}: the numbers are those of the certificate{kept}.")
    views = zip(_views(names, carried, stamp), apart(shown), strict=True)
    return [_fill_view(view, table, level, shares) for view, table in views]


def _names(
    name: str | None, carried: Certificate, names_by_release: Mapping[Hashable, str]
) -> list[str]:
    """Say what releases are called, with their keys where they were put into one table by key."""
    names = []
    for part in carried.releases:
        recorded = names_by_release.get(part.release_id)
        names.append(name or part.query.name or recorded or part.query.words)
    joined = carried.table.joined
    if joined is None or len(joined.keys) != len(names):
        return names
    return [f"{name}, {joined.name} {key}" for name, key in zip(names, joined.keys, strict=True)]


def _views(names: Sequence[str], carried: Certificate, stamp: Stamp) -> list[TableView]:
    """Return views without numbers of the releases of a table."""
    parts = zip(names, carried.releases, strict=True)
    return [TableView(name, part, carried, stamp) for name, part in parts]


def _fill_view(view: TableView, shown: Shown, level: float, shares: bool) -> TableView:
    """Put the numbers of a release on its view."""
    beside = published_beside(shown)
    asks = shares and not shown.opened.promise.is_derived
    of_total, notes = _percentages(shown, level, {*beside.percent}, asks)
    columns = _columns(shown, level, beside, of_total)
    table = shown.table
    index = table.index[:MOST_ROWS]
    labels = [map(str, index.get_level_values(at)) for at in range(index.nlevels)]
    by_row = zip(*(cells for _, cells in columns), strict=True) if columns else [()] * len(index)
    rows = [RowView(of_row, cells) for *of_row, cells in zip(*labels, by_row, strict=True)]
    hidden = len(table) - len(rows)
    return replace(
        view,
        keys=names_of_levels(table.index),
        columns=[column for column, _ in columns],
        rows=rows,
        hidden=hidden,
        text=_as_text(table, ends_of(shown, level)) if hidden else "",
        facts=[
            *facts_of(shown.certificate.release, view.carried.table),
            *([("cells shown", shown.lines())] if shown.lines() else []),
        ],
        notes=notes,
    )


def _columns(
    shown: Shown, level: float, beside: Beside, of_total: Mapping[int, pd.DataFrame]
) -> list[tuple[ColumnView, list[CellView]]]:
    """Return all columns with the cells that are shown; those computed afterwards have no bars.

    Intervals and percentages that are in the table are shown with the column that they are of.
    """
    parts = () if shown.opened.promise.is_derived else shown.certificate.columns
    bars = ends_of(shown, level)
    bars_of_noise = None
    if beside.sampled is not None:
        bars_of_noise = ends_of(shown, beside.sampled)
    percent_of_level = f"{100 * level:g} %"
    table = shown.table
    columns = []
    for place, label in enumerate(table.columns):
        values = table.iloc[:, place]
        if place in beside.places:
            continue
        if place >= len(parts):
            cells = [CellView(number_text(value, None)) for value in values.iloc[:MOST_ROWS]]
            columns.append((ColumnView(str(label), "computed from the release"), cells))
            continue
        both = slice(2 * place, 2 * place + 2)
        ends, inner, interval_level = None, None, ""
        if place in beside.ends:  # those of the table go before our own
            ends, interval_level = table.iloc[:, beside.ends[place]], beside.level
            inner = None if bars_of_noise is None else bars_of_noise.iloc[:, both]
        elif bars is not None:
            ends, interval_level = bars.iloc[:, both], percent_of_level
        share, said = of_total.get(place), ("of the total", percent_of_level)
        if place in beside.percent:
            places, said = beside.percent[place]
            share = table.iloc[:, places]
        percents = None if share is None else percent_texts(share)
        part = parts[place]
        cells = cells_of(values, ends, part.origin, percents, inner, base=part.base)
        view = ColumnView(
            str(label),
            words.about_kind(part),
            interval_level,
            said if percents else (),
            is_total=part.form.is_total,
        )
        columns.append((view, cells))
    return columns


def _as_text(table: pd.DataFrame, bars: pd.DataFrame | None) -> str:
    """Write all rows, with their intervals, separated by commas."""
    if bars is not None:
        table = pd.concat([table, bars], axis=1)
    return "\n".join(map(visible, table.to_csv().split("\n")))


def _percentages(
    shown: Shown, level: float, published: Collection[int], asks: bool
) -> tuple[dict[int, pd.DataFrame], list[str]]:
    """Return percentages of the totals of columns, and why there are none of others."""
    percentages: dict[int, pd.DataFrame] = {}
    without: dict[str, list[str]] = {}
    for place, part in enumerate(shown.certificate.columns):
        if not asks or not part.form.is_total or place in published:
            continue
        label = shown.frame.columns[place]
        try:
            check_people(shown, "percent")
            link = definitions.PercentLink("percent", (), None, None)
            shares = numbers_shown(shown, link, label, level)
            percentages[place] = shares.set_axis(shown.table.index, axis=0)
        except QueryError as error:
            without.setdefault(str(error), []).append(str(label))
    notes = [f"No percentages of {_few(names)}: {reason}" for reason, names in without.items()]
    return percentages, notes


def _few(labels: Sequence[str]) -> str:
    """Name some labels, and say how many more there are."""
    more = f" and {len(labels) - _MOST_NAMES} more" if len(labels) > _MOST_NAMES else ""
    return f"{', '.join(labels[:_MOST_NAMES])}{more}"

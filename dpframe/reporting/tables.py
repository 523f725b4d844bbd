"""What a report shows of one released table: stamp, numbers with bars, and what was left out."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from dpframe.accuracy.intervals import interval
from dpframe.accuracy.quotients import percent
from dpframe.certificates import words
from dpframe.certificates.certificate import Certificate, Certified, Concatenation, parts_of
from dpframe.certificates.unstacked import in_rows
from dpframe.certificates.verify import attach, certificate_of, verify
from dpframe.errors import CertificateError, QueryError
from dpframe.ledger.ledger import Ledger
from dpframe.reporting.cells import MOST_ROWS, CellView, cells_of, number_text, percent_texts
from dpframe.reporting.companions import Beside, published_beside
from dpframe.reporting.facts import facts_of

_MOST_NAMES = 5


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class ColumnView:
    """A column of a table.

    Parameters
    ----------
    name
        Its label.
    about
        What it is.
    intervals
        Of which level its intervals are; empty: there are none, and no drawings.
    percent
        Of what its percentages are, and of which level their intervals; empty: there are none.
    """

    name: str
    about: str
    intervals: str = ""
    percent: Sequence[str] = ()


@dataclass(frozen=True)
class RowView:
    """A row of a table: its labels and its cells."""

    labels: Sequence[str]
    cells: Sequence[CellView]


@dataclass(frozen=True)
class TableView:
    """One released table.

    Parameters
    ----------
    name
        What it is called on the page.
    certificate
        The certificate of its release.
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
    facts
        What was declared about it: pairs of a name and lines.
    notes
        What was asked for and is not shown, and why.
    """

    name: str
    certificate: Certificate
    carried: Certified
    stamp: Stamp
    keys: Sequence[str] = ()
    columns: Sequence[ColumnView] = ()
    rows: Sequence[RowView] = ()
    hidden: int = 0
    facts: Sequence[tuple[str, list[str]]] = ()
    notes: Sequence[str] = ()

    @property
    def record(self) -> str:
        """The certificate as JSON, in ASCII."""
        return json.dumps(self.carried.to_dict(), indent=1)

    @property
    def has_drowned(self) -> bool:
        """Whether a number is marked."""
        return any(cell.drowned for row in self.rows for cell in row.cells)


def tables_of(
    name: str | None, released: pd.DataFrame, ledger: Ledger | None, level: float, shares: bool
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
    names = [name or part.query.name or part.query.words for part in parts_of(carried)]
    try:
        verify(released, ledger=ledger)
    except CertificateError as error:
        return _views(names, carried, Stamp(False, str(error)))
    kept = "" if ledger is None else f", and ledger {ledger.ledger_id} was charged for it"
    stamp = Stamp(True, f"{carried.state}: the numbers are those of the certificate{kept}.")
    views = zip(_views(names, carried, stamp), _releases(in_rows(released)), strict=True)
    return [_filled(view, table, level, shares) for view, table in views]


def _views(names: Sequence[str], carried: Certified, stamp: Stamp) -> list[TableView]:
    """Return views without numbers of the releases of a table."""
    parts = zip(names, parts_of(carried), strict=True)
    return [TableView(name, part, carried, stamp) for name, part in parts]


def _releases(released: pd.DataFrame) -> list[pd.DataFrame]:
    """Take a table of several releases apart; what was done with all is said of each."""
    carried = certificate_of(released)
    if not isinstance(carried, Concatenation):
        return [released]
    tables = []
    for part in carried.parts:
        table = released.iloc[part.places]
        table.attrs = {}
        attach(table, replace(part.certificate, steps=part.certificate.steps + carried.steps))
        tables.append(table)
    return tables


def _filled(view: TableView, released: pd.DataFrame, level: float, shares: bool) -> TableView:
    """Put the numbers of a release on its view."""
    (certificate,) = parts_of(certificate_of(released))
    beside = published_beside(released, certificate)
    of_total, notes = _percentages(released, certificate, level, {*beside.percent}, shares)
    shown = _columns(released, certificate, level, beside, of_total)
    labels = [_texts(_level(released.index, i)) for i in range(released.index.nlevels)]
    rows = [RowView(of_row, cells) for *of_row, cells in zip(*labels, _by_row(shown), strict=True)]
    return replace(
        view,
        keys=["" if key is None else str(key) for key in released.index.names],
        columns=[column for column, _ in shown],
        rows=rows,
        hidden=len(released) - len(rows),
        facts=facts_of(certificate),
        notes=notes,
    )


def _level(index: pd.Index, place: int) -> pd.Index:
    return index[:MOST_ROWS].get_level_values(place)


def _texts(values: Iterable[object]) -> list[str]:
    return [str(value) for value in values]


def _by_row(columns: Sequence[tuple[ColumnView, list[CellView]]]) -> list[tuple[CellView, ...]]:
    return list(zip(*(cells for _, cells in columns), strict=True))


def _columns(
    released: pd.DataFrame,
    certificate: Certificate,
    level: float,
    beside: Beside,
    of_total: Mapping[int, pd.DataFrame],
) -> list[tuple[ColumnView, list[CellView]]]:
    """Return all columns with the cells that are shown; those computed afterwards have no bars.

    Intervals and percentages that are in the table are shown with the column that they are of.
    """
    parts = certificate.columns
    bars = _intervals(released, level)
    released = pd.DataFrame(released)  # pandas copies all attrs for each column
    shown = []
    for place, label in enumerate(released.columns):
        values = released.iloc[:, place]
        if place in beside.places:
            continue
        if place >= len(parts):
            cells = [CellView(number_text(value, None)) for value in values.iloc[:MOST_ROWS]]
            shown.append((ColumnView(str(label), "computed from the release"), cells))
            continue
        ends = None if bars is None else bars.iloc[:, 2 * place : 2 * place + 2]
        ends = released.iloc[:, beside.ends[place]] if place in beside.ends else ends
        about = "" if ends is None else f"{100 * level:g} %"
        about = beside.level if place in beside.ends else about
        table, said = of_total.get(place), ("of the total", f"{100 * level:g} %")
        if place in beside.percent:
            at, said = beside.percent[place]
            table = released.iloc[:, at]
        percents = None if table is None else percent_texts(table)
        cells = cells_of(values, ends, parts[place].origin, percents)
        what = words.about_kind(parts[place])
        shown.append((ColumnView(str(label), what, about, said if percents else ()), cells))
    return shown


def _intervals(released: pd.DataFrame, level: float) -> pd.DataFrame | None:
    """Return intervals, if these mean something for the frame."""
    try:
        return interval(released, level)
    except QueryError:
        return None


def _percentages(
    released: pd.DataFrame,
    certificate: Certificate,
    level: float,
    there: Collection[int],
    asked: bool,
) -> tuple[dict[int, pd.DataFrame], list[str]]:
    """Return percentages of the totals of columns, and why there are none of others."""
    found: dict[int, pd.DataFrame] = {}
    without: dict[str, list[str]] = {}
    for place, part in enumerate(certificate.columns):
        if not asked or not part.is_total or place in there:
            continue
        label = released.columns[place]
        try:
            found[place] = percent(released, label, level)[["estimate", "low", "high"]]
        except QueryError as error:
            without.setdefault(str(error), []).append(str(label))
    return found, [f"No percentages of {_few(names)}: {why}" for why, names in without.items()]


def _few(labels: Sequence[str]) -> str:
    """Name some labels, and say how many more there are."""
    more = f" and {len(labels) - _MOST_NAMES} more" if len(labels) > _MOST_NAMES else ""
    return f"{', '.join(labels[:_MOST_NAMES])}{more}"

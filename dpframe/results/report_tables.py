"""What a report shows of one released table: stamp, numbers with bars, and what was left out."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpframe.errors import CertificateError, QueryError
from dpframe.ledger.ledger import Ledger
from dpframe.queries.timescale import in_seconds
from dpframe.results import certificate_words as words
from dpframe.results.certificate import attach, certificate_of, verify
from dpframe.results.intervals import interval
from dpframe.results.promise import Certificate, Certified, Concatenation, parts_of
from dpframe.results.quotients import percent
from dpframe.results.report_facts import facts_of
from dpframe.results.wide import in_rows

__all__ = ["Bar", "CellView", "ColumnView", "RowView", "Stamp", "TableView", "tables_of"]

_MOST_ROWS = 200
_PLACES = 6  # digits after the point, at most
_HUGE = 1e15  # numbers from here on are shown with an exponent
_WIDTH = 100.0
_ALL = 100  # an interval of percentages that says nothing


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
class Bar:
    """A value and its interval as places on a line of width 100.

    Parameters
    ----------
    zero, value, low, high
        The places.
    """

    zero: float
    value: float
    low: float
    high: float

    @property
    def start(self) -> float:
        """Where the bar begins."""
        return min(self.zero, self.value)

    @property
    def width(self) -> float:
        """How wide the bar is."""
        return abs(self.value - self.zero)


@dataclass(frozen=True)
class CellView:
    """One released number.

    Parameters
    ----------
    value
        The number; empty where it is missing.
    interval
        Its interval; empty where there is none.
    bar
        Both as a drawing, if there is an interval.
    drowned
        Whether the noise may be as large as the number.
    percent
        Its percentage of the total, with an interval; empty where that was not asked for.
    """

    value: str
    interval: str = ""
    bar: Bar | None = None
    drowned: bool = False
    percent: str = ""


@dataclass(frozen=True)
class ColumnView:
    """A column of a table.

    Parameters
    ----------
    name
        Its label.
    about
        What it is.
    bars, percent
        Whether its cells have drawings, and percentages.
    """

    name: str
    about: str
    bars: bool
    percent: bool

    @property
    def parts(self) -> int:
        """How many columns of the page it takes."""
        return 1 + 2 * self.bars + self.percent


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
    of_total, notes = _percentages(released, certificate, level) if shares else ({}, [])
    shown = _columns(released, certificate, level, of_total)
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
    return index[:_MOST_ROWS].get_level_values(place)


def _texts(values: Iterable[object]) -> list[str]:
    return [str(value) for value in values]


def _by_row(columns: Sequence[tuple[ColumnView, list[CellView]]]) -> list[tuple[CellView, ...]]:
    return list(zip(*(cells for _, cells in columns), strict=True))


def _columns(
    released: pd.DataFrame,
    certificate: Certificate,
    level: float,
    of_total: Mapping[int, pd.DataFrame],
) -> list[tuple[ColumnView, list[CellView]]]:
    """Return all columns with the cells that are shown; those computed afterwards have no bars."""
    parts = certificate.columns
    bars = _intervals(released, level)
    shown = []
    for place, label in enumerate(released.columns):
        values = released.iloc[:, place]
        if place >= len(parts):
            cells = [CellView(_number(value, None)) for value in values.iloc[:_MOST_ROWS]]
            shown.append((ColumnView(str(label), "computed from the release", False, False), cells))
            continue
        ends = None if bars is None else bars.iloc[:, 2 * place : 2 * place + 2]
        part = parts[place]
        cells = _cells(values, ends, part.origin, of_total.get(place))
        about = words.about_kind(part)
        shown.append((ColumnView(str(label), about, ends is not None, place in of_total), cells))
    return shown


def _intervals(released: pd.DataFrame, level: float) -> pd.DataFrame | None:
    """Return intervals, if these mean something for the frame."""
    try:
        return interval(released, level)
    except QueryError:
        return None


def _percentages(
    released: pd.DataFrame, certificate: Certificate, level: float
) -> tuple[dict[int, pd.DataFrame], list[str]]:
    """Return percentages of the totals of columns, and why there are none of others."""
    found, notes = {}, []
    for place, part in enumerate(certificate.columns):
        if not part.is_total:
            continue
        label = released.columns[place]
        try:
            found[place] = percent(released, label, level)
        except QueryError as error:
            notes.append(f"No percentages of {label}: {error}")
    return found, notes


def _cells(
    values: pd.Series, ends: pd.DataFrame | None, origin: int | None, of_total: pd.DataFrame | None
) -> list[CellView]:
    """Return the cells of a released column."""
    shown = values.iloc[:_MOST_ROWS]
    percents = [""] * len(shown) if of_total is None else _percent_texts(of_total)
    if ends is None:
        return [
            CellView(_number(value, None), percent=share)
            for value, share in zip(shown, percents, strict=True)
        ]
    low, high = (ends.iloc[:_MOST_ROWS, side] for side in (0, 1))
    numbers = np.array([in_seconds(part, origin) for part in (shown, low, high)], np.float64)
    cells = []
    for texts, number, bar, share in zip(
        zip(shown, low, high, strict=True), numbers.T, _bars(numbers), percents, strict=True
    ):
        width = (number[2] - number[1]) / 2
        value, lowest, highest = (_number(text, width) for text in texts)
        cells.append(
            CellView(
                value,
                f"{lowest} to {highest}" if value and lowest else "",
                bar,
                drowned=origin is None and bool(width >= abs(number[0])),
                percent=share,
            )
        )
    return cells


def _percent_texts(of_total: pd.DataFrame) -> list[str]:
    return [
        f"{row.estimate:.1f} % ({row.low:.1f} to {row.high:.1f})"
        if row.high - row.low < _ALL
        else "unknown"
        for row in of_total.iloc[:_MOST_ROWS].itertuples()
    ]


def _bars(numbers: np.ndarray) -> list[Bar | None]:
    """Return drawings of values and intervals on one scale, which holds 0."""
    finite = numbers[np.isfinite(numbers)]
    least, most = min(finite.min(initial=0.0), 0.0), max(finite.max(initial=0.0), 0.0)
    if not 0 < most - least < math.inf:
        return [None] * numbers.shape[1]
    places = _WIDTH * (numbers - least) / (most - least)
    zero = _WIDTH * -least / (most - least)
    return [Bar(zero, *place.round(2)) if np.isfinite(place).all() else None for place in places.T]


def _number(value: object, half_width: float | None) -> str:
    """Show a number with as many digits as its error leaves, or whatever else it is."""
    if value is None or value is pd.NaT or value is pd.NA or value != value:  # noqa: PLR0124
        return ""
    if not isinstance(value, int | float | np.number):
        return str(value)
    number = float(value)
    if not math.isfinite(number) or abs(number) >= _HUGE:
        return f"{number:.6g}"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if half_width is None or not 0 < half_width < math.inf:
        return f"{number:,.6g}"
    places = min(max(1 - math.floor(math.log10(half_width)), 0), _PLACES)
    return f"{number:,.{places}f}"

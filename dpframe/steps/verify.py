"""Check a table, compare it with its release, certify it again, and publish it."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

import pandas as pd

from dpframe.arguments import check_text
from dpframe.cells.keys import label_of
from dpframe.cells.record import Opened, attach, carry, cells_part, record_on, salt_of
from dpframe.cells.reduce import reduced
from dpframe.cells.verify import Shown, look, look_with
from dpframe.certificates import definitions
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.claims import check_recorded
from dpframe.certificates.parts import NO_ALIAS
from dpframe.derived.table import attach_computed, computed_again
from dpframe.errors import CertificateError, QueryError, a_type
from dpframe.inference import intervals
from dpframe.inference.ranges import Read, quantiles_read
from dpframe.inference.selection import ChosenCells
from dpframe.ledger.ledger import Ledger
from dpframe.public import public_call
from dpframe.steps.rename import concat

_ANOTHER = "this table was not made from that release. Give the one that it was made from."


@public_call
def verify(
    frame: pd.DataFrame, *, ledger: Ledger | None = None, against: pd.DataFrame | None = None
) -> Certificate:
    """Check that a frame shows what was released; return its certificate.

    A table is sound if each cell is the released one with the same keys and label, a rounding of
    it, or missing. Order, layout and dtypes are free: pandas may sort, choose, reshape and round.
    What the worst unit costs is computed anew, and compared with the privacy loss. "What the
    certificate covers" in the reference says more. It finds mistakes. It is not a signature: it
    does not show that somebody rewrote the record as well.

    Parameters
    ----------
    frame
        A released frame, or one made from it; read back from a file or not.
    ledger
        Check also that this ledger was charged for the release: under the same id, at the same
        time, for the same query, mechanism and cost.
    against
        The release that a published table was made from: each cell is compared with it, and what
        was computed is computed again. Denoised columns are compared with those in it.

    Returns
    -------
    Certificate
        Its `state` is "released" or "post-processed". A table of several releases says of each
        what was promised.

    Raises
    ------
    CertificateError
        If the frame carries no certificate, holds what was not released, the release is not in the
        ledger, or is not the one to compare with.
    UnreadableCertificateError
        If it carries one that this version cannot read.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
    >>> verify(released.sort_values("count").head(1)).state
    'released'
    >>> verify(released + 1)
    Traceback (most recent call last):
    dpframe.errors.CertificateError: this frame is not what its certificate was given for: ...
    """
    shown = look(frame)
    if ledger is not None:
        for release in shown.opened.releases:
            check_recorded(release, ledger)
    if against is not None:
        _compare(frame, shown.opened, look(against).opened)
    return shown.opened.certificate


def _compare(frame: pd.DataFrame, opened: Opened, source: Opened) -> None:
    """Compare a table with the release it was made from, and compute again what was computed."""
    table, full = opened.certificate.table, source.certificate.table
    read = [
        definition
        for definition in table.definitions
        if isinstance(definition, definitions.QuantileDefinition)
    ]
    if read and read[0].of == full.origin:
        anew = _quantiles_again(source, read[0])
    elif full.published is None and full.origin == table.origin:
        again = _derived_again(opened, source)
        if again is not None and opened.promise.is_derived:
            anew = again
        else:
            anew = _computed_again(opened, source, again)
    else:
        raise CertificateError(_ANOTHER, parameter="against")
    look_with(frame, anew.changed(alias=table.alias, units=table.units))


def _derived_again(opened: Opened, source: Opened) -> Opened | None:
    """Return the record of all that was computed by chains, computed again, if anything was."""
    try:
        computed = computed_again(opened, source)
    except QueryError:
        raise CertificateError(_ANOTHER, parameter="against") from None
    columns = list(computed.values())
    if not columns:
        return None
    return attach_computed(
        columns[0][2],
        [cells for cells, *_ in columns],
        [label_of(label) for label in computed],
        [definition for _, definition, _ in columns],
        [source.source],
    )


def _quantiles_again(source: Opened, read: definitions.QuantileDefinition) -> Opened:
    """Read quantiles off the distribution again."""
    release = source.promise.release
    quantiles = Read(read.quantiles, read.level, read.simultaneous, read.scalar)
    table, described = quantiles_read(source.frame.iloc[:, :1], release, quantiles)
    ends = [replace(read, end=end) for end in ("low", "high")]
    attach(table, [described], [None, *ends], salt=salt_of([source]))
    return record_on(table)


def _computed_again(opened: Opened, full: Opened, derived: Opened | None) -> Opened:
    """Return the record of a release with all that a table says was computed from it."""
    source = full.source
    released = tuple(source.table.released)
    plain = source.changed(columns=released, alias=NO_ALIAS)
    view = look_with(plain.frame, plain)
    computed = []
    for part in opened.table.columns:
        if derived is not None and part.label in derived.columns:
            computed.append(derived.columns[part.label].part)
        elif part.definition is not None:
            cells = _again(view, source, part.label, part.definition)
            computed.append(replace(cells_part(None, cells, part.definition), label=part.label))
    return plain.changed(columns=(*released, *computed))


def _again(
    view: Shown, source: Opened, label: str, definition: definitions.Definition
) -> pd.Series:
    """Compute a column again."""
    names = [column.name for column in view.certificate.releases[0].columns]
    if definition.column not in names:
        raise CertificateError(_ANOTHER, parameter="against")
    place = names.index(definition.column)
    match definition:
        case definitions.IntervalDefinition():
            choices = dict.fromkeys(view.labels, ChosenCells())
            choices[view.labels[place]] = ChosenCells(definition.cells, definition.given)
            ends = intervals.all_intervals(
                view,
                definition.level,
                simultaneous=definition.simultaneous,
                sampling=definition.sampling,
                choices=choices,
            )
            return ends.iloc[:, 2 * place + (definition.end == "high")]
        case definitions.DenoiseDefinition() | definitions.SuggestDefinition():
            kept = source.columns.get(label)
            if kept is None or kept.part.definition != definition:
                rule = f"column {definition.into!r} is compared with that of the release"
                way_out = "give it with its denoised columns"
                raise CertificateError(f"{rule}: {way_out}.", parameter="against")
            return source.frame_of([label]).iloc[:, 0]
        case definitions.QuantileDefinition():
            kept = source.columns.get(label)
            if kept is None or kept.part.definition != definition:
                raise CertificateError(_ANOTHER, parameter="against")
            return source.frame_of([label]).iloc[:, 0]
        case definitions.DerivedDefinition():
            raise CertificateError(_ANOTHER, parameter="against")
        case _:
            assert_never(definition)


@public_call
def certify(
    table: pd.DataFrame | pd.Series,
    *,
    of: pd.DataFrame | Mapping[Hashable, pd.DataFrame] | Sequence[pd.DataFrame],
    name: str | None = None,
) -> pd.DataFrame:
    """Put the certificate of a release on a table made of it, where pandas lost it.

    pandas loses `attrs` in `Series.unstack`, `pivot`, `merge`, and where tables of several releases
    are joined.

    Parameters
    ----------
    table
        The table.
    of
        The release that it was made of, or a dict or list of several.
    name
        The level of the keys of a dict; by default the first level of the index of the table.

    Returns
    -------
    DataFrame
        The table with the certificate.

    Raises
    ------
    CertificateError
        If a cell is not that of the release, with the same keys and label.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"], "day": [0, 1, 1]})
    >>> query = dpf.count(by=["zone", "day"], keys={"zone": ["A", "B"], "day": [0, 1]})
    >>> released = dpf.release(trips, query, epsilon=1e6)
    >>> certify(released["count"].unstack("day"), of=released)
    day   0  1
    zone
    A     1  0
    B     0  2
    """
    if isinstance(table, pd.Series):
        table = table.to_frame()
    if not isinstance(table, pd.DataFrame):
        raise CertificateError(f"a certificate is for a DataFrame, got {a_type(table)}.")
    if isinstance(of, Mapping):
        of = concat(of, name=name or str(table.index.names[0]))
    elif not isinstance(of, pd.DataFrame):
        of = concat(of)
    opened = look(of).opened
    certified = pd.DataFrame(table).copy(deep=False)
    certified.attrs = {}
    carry(certified, opened)
    look(certified)
    return certified


@public_call
def publish(released: pd.DataFrame, *, note: str | None = None) -> pd.DataFrame:
    """Return a table whose certificate holds what it shows, and nothing else.

    `write_csv` and `write_parquet` do so. Cells and keys that are not shown, unrounded values and
    what means were read off stay in the released frame; the certificate says how many cells of each
    column are shown, and how they are rounded. A table that shows all cells as they were released
    keeps all of its certificate.

    Parameters
    ----------
    released
        A released frame, in any layout.
    note
        A sentence for the certificate, such as how rows were chosen.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If an interval is shown of a cell that is hidden, or rounded where the interval is not; or
        the note is no line of text.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> publish(released.head(1)).dp.certificate.table.published.cells
    {'"count"': (1, 2)}
    """
    return published(look(released), check_text("note", note))


def published(shown: Shown, note: str | None = None) -> pd.DataFrame:
    """Return a table with a record of what it shows."""
    return shown.sealed(shown.source, reduced(shown, note))

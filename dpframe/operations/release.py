"""The only way to a release: charge the ledger, total the integers, draw the noise, decode.

Everything that can be known beforehand is checked before the ledger is charged; the ledger is
charged before any private total is computed; noise is drawn last.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Unpack, overload

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.accuracy.distribution import least_squares
from dpframe.calls import with_keywords
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.noise_parts import moments_part, packed_loadings, ratio_part
from dpframe.certificates.parts import LedgerPart
from dpframe.certificates.verify import attach
from dpframe.declaration.facts import Declaration
from dpframe.denoise.methods import DenoiserName
from dpframe.engines import Engine, Frame
from dpframe.engines.declared import SINGLE, check_queries, check_readable, declaration_of
from dpframe.errors import QueryError, quote
from dpframe.operations.charging import RecordOptions, charge_and_make, check_recorded, entry_of
from dpframe.operations.select import check_denoising_of_quantiles, release_quantiles
from dpframe.plan.columns import OutputColumn
from dpframe.plan.measurement import Measurement, TablePlan
from dpframe.plan.plan import Plan, plan_release
from dpframe.plan.record import record_of
from dpframe.plan.tables import TableName
from dpframe.privacy.amounts import AmountOptions, Spend
from dpframe.privacy.law import Law
from dpframe.privacy.neighbors import EachRow
from dpframe.progress import show_progress
from dpframe.queries.binned import read_off
from dpframe.queries.quantiles import query_to_select
from dpframe.queries.query import Query
from dpframe.queries.timescale import durations, moments
from dpframe.steps.consistent import check_margins, made_consistent
from dpframe.steps.denoise import apply_denoising
from dpframe.steps.denoise_checks import Denoising, Described, check_denoising
from dpframe.steps.quantiles import quantiles_of
from dpframe.strategies import Estimate, MechanismName
from dpframe.strategies.noise import noise_of

_CONSISTENT = "consistent"


@dataclass(frozen=True, eq=False)
class Denoisings:
    """How the tables of a release are to be denoised.

    Parameters
    ----------
    tables
        How each is, by its name, where it is on its own.
    margins
        Queries whose tables are made whole numbers that add up.
    """

    tables: Mapping[Hashable, Denoising] = field(default_factory=dict)
    margins: frozenset[Hashable] = frozenset()


def denoisings_of(
    plan: Plan, indexes: Mapping[Hashable, pd.Index], method: str | None, graph: object
) -> Denoisings:
    """Check how the tables of a release are to be denoised.

    Parameters
    ----------
    plan
        The release.
    indexes
        The indexes of its tables.
    method, graph
        As for `release`.

    Raises
    ------
    QueryError
        If they cannot be denoised so.
    """
    if method is None:
        if graph is not None:
            raise QueryError('graph is for denoising: give denoise="auto" as well.')
        return Denoisings()
    together = {name: one for name, one in plan.tables.items() if one.measurement.design.layers}
    margins = _margins(together) if method == _CONSISTENT else frozenset()
    alone = {name: _describe(one) for name, one in plan.tables.items() if name not in together}
    if together and not alone and not margins:
        raise QueryError(
            f"denoise={quote(method)} takes the errors of cells for independent, and these are "
            'measured together. Margins of at most two columns take denoise="consistent"; leave it '
            "out elsewhere."
        )
    if margins:
        _check_margins_alone(list(margins), list(alone), graph)
        return Denoisings(margins=margins)
    tables = {
        name: check_denoising(method, indexes[name], columns, graph=graph)
        for name, columns in alone.items()
        # a table of means that the method is not for stays as it is beside others
        if len(alone) == 1 or method == "auto" or any(col.is_total for col in columns)
    }
    return Denoisings(tables)


def _check_margins_alone(
    margins: Sequence[Hashable], others: Sequence[Hashable], graph: object
) -> None:
    """Refuse what has no meaning where margins are made whole."""
    if others:
        raise QueryError(
            f'denoise="consistent" is for margins, and {others[0]!r} is released beside them. '
            "Release margins on their own, or leave denoise= out and call "
            f"dpf.consistent(tables[{margins[0]!r}]) afterwards."
        )
    if graph is not None:
        raise QueryError(
            'graph= has no meaning for denoise="consistent" of margins: no groups are neighbors '
            "there. Leave it out."
        )


def _margins(tables: Mapping[Hashable, TablePlan]) -> frozenset[Hashable]:
    """Check the tables of every query for margins, and name these queries."""
    sets: dict[Hashable, list[tuple[Hashable, ...]]] = {}
    columns: dict[Hashable, list[Described]] = {}
    for name, planned in tables.items():
        if isinstance(name, TableName):
            sets.setdefault(name.query, []).append(name.columns)
            columns[name.query] = _describe(planned)
    for query, own in sets.items():
        check_margins(own, columns[query])
    return frozenset(sets)


def _describe(planned: TablePlan) -> list[Described]:
    return [
        Described(column.name, column.kind, None if cell.per_row else cell.std_error * column.step)
        for column, cell in zip(planned.outputs, planned.predictions(), strict=True)
    ]


class SpendOptions(AmountOptions, total=False):
    """How much to spend, and on which mechanism; see `dpframe.release`."""

    mechanism: Annotated[MechanismName, "auto"]
    privacy_unit: EachRow | None


class ReleaseOptions(SpendOptions, RecordOptions, total=False):
    """How much to spend, what to record, and how to denoise; see `dpframe.release`."""

    denoise: DenoiserName | None
    graph: object


@overload
def release(frame: Frame, queries: Query, **options: Unpack[ReleaseOptions]) -> pd.DataFrame: ...


@overload
def release(
    frame: Frame, queries: Mapping[str, Query], **options: Unpack[ReleaseOptions]
) -> dict[str, pd.DataFrame]: ...


@with_keywords
def release(
    frame: Frame, queries: Query | Mapping[str, Query], **options: Unpack[ReleaseOptions]
) -> Any:
    """Release a query, or several planned and charged together.

    The amount is given in exactly one way. Gaussian noise is calibrated by the analytic Gaussian
    mechanism (Balle and Wang 2018, Theorem 8) and Laplace noise to the L1 sensitivity; both are
    integers, drawn exactly, and added to exact integers.

    Parameters
    ----------
    frame
        The private frame.
    queries
        A query such as `dpf.count(by="zone")`, or a dict of them by name.
    epsilon, delta
        The release is (epsilon, delta)-DP. `delta` defaults to that of the budget, and to 0 without
        one. Gaussian noise spends the delta, however small epsilon is.
    mu
        The release is mu-GDP.
    rho
        The release is rho-zCDP: Gaussian noise with `mu = sqrt(2 rho)`, or pure noise with
        `epsilon tanh(epsilon / 2) = rho`.
    share
        Part of the declared budget, in (0, 1]; shares of one kind of noise may add up to 1. It
        costs `s / (1 - shares so far)` of what is left: of mu^2 for Gaussian noise, of epsilon for
        Laplace noise.
    mechanism
        "auto" (least predicted error at that spend), or the name of a mechanism in
        `dpframe.strategies.MECHANISMS`; for quantiles also "select".
    denoise
        Add a denoised column beside each count and sum, and with "auto" beside each mean, at no
        privacy cost: "auto" or the name of a method, see `dpframe.denoised`.
    graph
        Which groups are neighbors, for `denoise`.
    name
        Name of this release in the ledger, "2024-03" for instance: a second one of that name is
        refused before anything is charged, so that a job that runs again spends nothing. It has at
        most 200 characters, no spaces at its ends and nothing that is not printed; case matters,
        the encoding of accents does not.
    note
        What else to keep with it in the ledger: one line of at most 2,000 printed characters.
    privacy_unit
        `dpf.EACH_ROW` says that every row is a person of its own, for a frame that is declared
        without a unit or not at all.

    Returns
    -------
    DataFrame or dict of DataFrame
        One row per declared group in declared order, whatever the data hold, with a certificate; a
        dict for a dict.

    Raises
    ------
    AlreadyReleasedError
        If the ledger has a release of this name.
    BudgetExceededError
        If the spend does not fit in what is left of the budget.
    CalibrationError
        If the spend is not usable, or no noise can honor it.
    DeclarationError, QueryError, UnknownColumnError
        If the queries do not fit what is declared, or the frame was released.
    ReleaseError
        If reading the frame fails after the amount was charged, for want of memory or because a
        file changed: the amount stays charged.

    Warns
    -----
    DPFrameWarning
        If no privacy unit was declared, epsilon is above 10, mu or rho above 2, or delta 1e-3 or
        more; once per frame, before anything is charged.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> query = dpf.count(by="zone", keys=["A", "B", "C"])
    >>> released = release(trips, query, epsilon=0.5, privacy_unit=dpf.EACH_ROW)
    >>> list(released.index), list(released.columns)
    (['A', 'B', 'C'], ['count'])
    """
    declaration = declaration_of(frame).with_unit(options["privacy_unit"])
    spend = Spend.among(options)
    mechanism, denoise, graph = options["mechanism"], options["denoise"], options["graph"]
    record: RecordOptions = {"name": options["name"], "note": options["note"]}
    check_recorded(declaration.ledger, **record)
    wanted = query_to_select(queries, mechanism)
    if wanted is not None:
        check_denoising_of_quantiles(denoise, graph)
        return release_quantiles(frame, declaration, wanted, spend, **record)
    engine, plan = checked_plan(frame, declaration, queries, spend, mechanism)
    indexes = {key: planned.table.cells.index for key, planned in plan.tables.items()}
    denoisings = denoisings_of(plan, indexes, denoise, graph)
    what = "; ".join(dict.fromkeys(planned.table.asked.words for planned in plan.tables.values()))
    entry = entry_of(what, plan, declaration, **record)
    records = {
        key: record_of(key, one, plan, declaration, entry) for key, one in plan.tables.items()
    }
    if any(read_off(planned.table.query) for planned in plan.tables.values()):
        least_squares()

    def measure(ledger: LedgerPart | None) -> dict[Hashable, Any]:
        exact = _exact(frame, engine, plan)
        estimates = {
            measurement: _estimates(one, measurement, plan.how.law)
            for measurement, one in zip(plan.measurements, exact, strict=True)
        }
        frames = {}
        for key, planned in show_progress(plan.tables.items(), "releasing", len(plan.tables)):
            own, how = estimates[planned.measurement][planned.own], denoisings.tables.get(key)
            about = planned, indexes[key], records[key]
            frames[key] = _certify_table(own, *about, ledger=ledger, how=how)
        return _by_query(frames, denoisings)

    frames = charge_and_make(frame, declaration, spend, entry, measure)
    return frames if isinstance(queries, Mapping) else frames[SINGLE]


def _by_query(frames: Mapping[Hashable, pd.DataFrame], how: Denoisings) -> dict[Hashable, Any]:
    """Gather the tables of a query that asks for several, by their columns; denoise margins."""
    found: dict[Hashable, Any] = {}
    for key, frame in frames.items():
        if isinstance(key, TableName):
            found.setdefault(key.query, {})[key.columns] = frame
        else:
            found[key] = frame
    return found | {name: made_consistent(found[name]) for name in how.margins}


def checked_plan(
    frame: Frame,
    declaration: Declaration,
    queries: Query | Mapping[str, Query],
    spend: Spend,
    mechanism: str,
) -> tuple[Engine, Plan]:
    """Check everything public about a release and plan it, without reading data or spending.

    Returns
    -------
    engine, plan
        The engine that can read the frame, and the plan.
    """
    engine, asked = check_queries(frame, queries)
    plan = plan_release(declaration, asked, spend, mechanism)
    check_readable(engine, frame, plan)
    return engine, plan


def _exact(frame: Frame, engine: Engine, plan: Plan) -> list[list[np.ndarray]]:
    """Measure the integers of all tables in one pass over the frame."""
    measured = plan.measurements
    needs = [sorted(one.design.needs) for one in measured]
    tasks = [one.table.task(wanted) for one, wanted in zip(measured, needs, strict=True)]
    return [
        one.design.encode(dict(zip(wanted, totals, strict=True)))
        for one, wanted, totals in zip(measured, needs, engine.totals(frame, tasks), strict=True)
    ]


def _estimates(exact: Sequence[np.ndarray], measured: Measurement, law: Law) -> list[Estimate]:
    """Draw noise, together for blocks of a group, add it and decode."""
    noise = noise_of(law, measured.design, measured.scales, [len(block) for block in exact])
    noisy = [np.add(block, drawn, out=drawn) for block, drawn in zip(exact, noise, strict=True)]
    return measured.design.decode(noisy, measured.deviations)


def _certify_table(
    estimates: Sequence[Estimate],
    planned: TablePlan,
    index: pd.Index,
    record: Certificate,
    *,
    ledger: LedgerPart | None,
    how: Denoising | None,
) -> pd.DataFrame:
    """Certify and denoise one table."""
    outputs = planned.outputs
    columns = dict(enumerate(map(_in_units, estimates, outputs)))
    described = tuple(
        replace(
            part,
            loadings=packed_loadings(estimate.loadings, column.unit),
            ratio=ratio_part(estimate.ratio, column.step),
            moments=moments_part(estimate.moments, column.step),
        )
        for part, estimate, column in zip(record.columns, estimates, outputs, strict=True)
    )
    released = pd.DataFrame(columns, index=index)
    released.columns = pd.Index([column.name for column in outputs], tupleize_cols=False)
    certificate = attach(released, replace(record, columns=described, ledger=ledger))
    read = read_off(planned.table.query)
    if read is not None:
        return quantiles_of(released, read.quantiles, read.level, simultaneous=read.simultaneous)
    return released if how is None else apply_denoising(released, certificate, how)


def _in_units(estimate: Estimate, column: OutputColumn) -> np.ndarray | ExtensionArray:
    """From grid units to those of the column; integers stay integers, and times times."""
    if column.grid is not None and column.ticks is not None:
        exponent = column.grid.exponent
        convert = moments if column.kind == "mean" else durations
        counted = np.ldexp(estimate.values, exponent) if exponent else estimate.values
        return convert(counted, column.ticks)
    if column.step == 1:
        return estimate.values
    values: np.ndarray = estimate.values * column.unit
    return values

"""The public call that releases: whatever is asked goes through one pipeline.

Quantiles that are selected have no noise. For caps and bounds, plans of the later query are made
first, without data; then the histogram is a release as any other, and errors are computed from what
came out.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self, Unpack, overload

import numpy as np
import pandas as pd

from dpframe.calls import with_keywords
from dpframe.cells.record import attach
from dpframe.certificates.certificate import Release
from dpframe.certificates.parts import LedgerPart
from dpframe.certificates.witness_parts import witness_parts
from dpframe.checker.rounds import Selected, worst_selection
from dpframe.checker.witness import Witness
from dpframe.declaration.facts import Declaration
from dpframe.denoising.methods import DenoiserName
from dpframe.engines import Frame, engine_for
from dpframe.engines.base import totals_by
from dpframe.engines.declared import SINGLE, check_matches, check_queries, declaration_of
from dpframe.errors import QueryError
from dpframe.ledger.log import Entry
from dpframe.operations.discover import plan_labels
from dpframe.operations.pipeline import (
    Operation,
    RecordOptions,
    check_recorded,
    entry_of,
    make_release,
)
from dpframe.operations.probing import check_rows
from dpframe.operations.tables import PlannedTables, plan_tables
from dpframe.plan.cells import cells_of
from dpframe.plan.record import Charged, left_after, outlook, record_of_selection
from dpframe.plan.selection import SelectionPlan, plan_selection
from dpframe.plan.suggestion import plan_search
from dpframe.privacy.amounts import AmountOptions, Spend
from dpframe.privacy.neighbors import EachRow
from dpframe.privacy.selection import GEOMETRIC, SELECT, bins_of, select_parts
from dpframe.queries.discovery import Discovery
from dpframe.queries.quantiles import LEVEL, Quantile
from dpframe.queries.query import Query, Request, Search
from dpframe.queries.suggestions import BoundSearch, CapSearch
from dpframe.queries.tasks import Axis
from dpframe.queries.where import Condition
from dpframe.steps.suggest_caps import BoundErrors, CapErrors
from dpframe.strategies import MechanismName


class SelectedQuantiles(Operation[SelectionPlan, np.ndarray, np.ndarray]):
    """Quantiles to be selected."""

    @property
    def axes(self) -> Mapping[Hashable, Sequence[Axis]]:
        """The groups, and the bins that are selected among."""
        return {SINGLE: (*self.plan.groups.axes, self.plan.bins.axis)}

    def preview(self) -> pd.DataFrame:
        """One row per quantile: how far off it may be."""
        plan, declaration = self.plan, self.declaration
        table = {
            "mechanism": plan.mechanism,
            "rank_error_95": plan.rank_errors(),
            **outlook(plan, declaration),
        }
        quantiles = pd.Index([float(one) for one in plan.query.quantiles], name=LEVEL)
        return pd.DataFrame(table, index=quantiles)

    def witness(self) -> Witness:
        """Find the worst unit of all selections."""
        check_rows(self.declaration, [self.plan.task])
        plan = self.plan
        alone = not plan.unit and not plan.groups.axes and plan.query.condition is None
        pairs = zip(plan.selection.steps, plan.selection.scales, strict=True)
        found = worst_selection(
            GEOMETRIC,
            [Selected(step.a, step.b, step.level, scale) for step, scale in pairs],
            plan.caps,
            plan.groups.size,
            self.declaration.neighboring,
            always=alone,
        )
        return Witness((found,))

    def measure(self, frame: Frame) -> np.ndarray:
        """Count the rows of all groups by bin."""
        (totals,) = totals_by(self.engine, frame, [self.plan.task])
        rows: np.ndarray = totals[0].reshape(self.plan.groups.size, len(self.plan.bins.axis))
        return rows

    def draw(self, exact: np.ndarray) -> np.ndarray:
        """Select parts of bins."""
        return select_parts(exact, self.plan.selection, self.plan.bins.parts)

    def certifier(
        self, entry: Entry, witness: Witness
    ) -> Callable[[np.ndarray, LedgerPart | None], pd.DataFrame]:
        """Write the certificate but for values and ledger."""
        charged = Charged(entry, witness_parts(witness))
        record = record_of_selection(self.plan, self.declaration, charged)
        index = self.plan.cells.index
        return lambda chosen, ledger: _certify_quantiles(
            self.plan, chosen, index, replace(record, ledger=ledger)
        )


def plan_quantiles(
    frame: Frame, declaration: Declaration, query: Quantile, spend: Spend
) -> SelectedQuantiles:
    """Check everything public about quantiles to be selected, and plan it."""
    engine, _ = check_queries(frame, query)
    plan = plan_selection(declaration, query, spend)
    engine.check(frame, plan.columns)
    return SelectedQuantiles(declaration, engine, plan)


def _certify_quantiles(
    plan: SelectionPlan, chosen: np.ndarray, index: pd.Index, record: Release
) -> pd.DataFrame:
    """Certify the values of the bins whose parts were selected."""
    values = plan.bins.values[bins_of(chosen, plan.bins.parts)].ravel()
    released = pd.DataFrame({0: values}, index=index)
    released.columns = pd.Index([plan.column.name], tupleize_cols=False)
    attach(released, [record])
    return released


@dataclass(frozen=True, eq=False)
class Suggestion(PlannedTables):
    """A histogram from which caps or bounds are suggested."""

    facts: CapErrors | BoundErrors = field(kw_only=True)
    groups: Sequence[Axis] = field(kw_only=True)

    @property
    def axes(self) -> Mapping[Hashable, Sequence[Axis]]:
        """The groups of the later query."""
        return {SINGLE: self.groups}

    def denoised(self, method: str | None, graph: object) -> Self:
        """Refuse to denoise what errors are predicted from."""
        return Operation.denoised(self, method, graph)

    def preview(self, rows: float | None = None) -> pd.DataFrame:
        """One row per bin: its error, and the noise of the later query."""
        planned = self.plan.tables[SINGLE]
        (prediction,) = planned.predictions()
        columns = {
            "std_error": prediction.std_error,
            **self.facts.columns_of_noise,
            **left_after(self.plan, self.declaration),
        }
        return pd.DataFrame(columns, planned.table.cells.index)

    def certifier(
        self, entry: Entry, witness: Witness
    ) -> Callable[[list[list[np.ndarray]], LedgerPart | None], pd.DataFrame]:
        """Write the certificate of the histogram, to which errors are added."""
        certify = super().certifier(entry, witness)
        return lambda noisy, ledger: self.facts.add_to(certify(noisy, ledger))


def plan_suggestion(
    frame: Frame,
    declaration: Declaration,
    search: CapSearch | BoundSearch,
    spend: Spend,
    mechanism: str,
) -> Suggestion:
    """Check everything public about a suggestion, and plan its histogram and the later query."""
    engine = engine_for(frame)
    engine.check(frame, search.labels)
    query, facts = plan_search(declaration, search, spend)
    groups = cells_of(search.query, declaration).axes
    tables = plan_tables(frame, declaration, query, spend, mechanism, look=True)
    return Suggestion(declaration, engine, tables.plan, several=False, facts=facts, groups=groups)


def has_noise(asked: Request, mechanism: str) -> bool:
    """Whether what is asked are outputs of queries, with noise of which errors are known."""
    match asked:
        case Search():
            return False
        case Quantile():
            return mechanism != SELECT
        case _:
            return True


def plan_operation(
    frame: Frame,
    declaration: Declaration,
    asked: Request,
    spend: Spend,
    mechanism: str,
    *,
    apart: bool = False,
) -> Operation[Any, Any, Any]:
    """Check everything public about a release and plan it, without reading data or spending.

    Errors of cells are independent where tables are to be measured apart, to be denoised.
    """
    if isinstance(mechanism, str) and mechanism != SELECT:
        _refuse_candidates(asked)
    operation = _plan_request(frame, declaration, asked, spend, mechanism, apart=apart)
    named = asked if isinstance(asked, Mapping) else {SINGLE: asked}
    manifest = operation.engine.manifest(frame)
    check_matches(manifest, declaration, named, operation.axes)
    return replace(operation, manifest=manifest)


def _plan_request(
    frame: Frame,
    declaration: Declaration,
    asked: Request,
    spend: Spend,
    mechanism: str,
    *,
    apart: bool,
) -> Operation[Any, Any, Any]:
    match asked:
        case Discovery():
            return plan_labels(frame, declaration, asked, spend, mechanism)
        case CapSearch() | BoundSearch():
            return plan_suggestion(frame, declaration, asked, spend, mechanism)
        case Quantile() if mechanism == SELECT:
            return plan_quantiles(frame, declaration, asked, spend)
        case Query(counts_units=True, by=()):
            return plan_tables(frame, declaration, asked, spend, mechanism, look=True)
        case _:
            return plan_tables(frame, declaration, asked, spend, mechanism, apart=apart)


def _refuse_candidates(asked: Request) -> None:
    """Refuse values to select among where nothing is selected."""
    queries: Iterable[object] = asked.values() if isinstance(asked, Mapping) else (asked,)
    if any(getattr(query, "candidates", None) is not None for query in queries):
        why = 'candidates= are selected among: add mechanism="select".'
        way = "Where quantiles are read off numbers of rows, give edges, bins=[...]."
        raise QueryError(f"{why} {way}", parameter="candidates")


def in_part(declaration: Declaration, asked: Request) -> Request:
    """Ask of the rows of one part alone, where the call says which."""
    condition = declaration.part_condition
    among: Request = asked if condition is None else _among(condition, asked)
    return among


def _among(condition: Condition, asked: Any) -> Any:
    match asked:
        case Mapping():
            return {name: _among(condition, query) for name, query in asked.items()}
        case Query() | Discovery():
            return replace(asked, where=Condition.all_of(condition, asked.where))
        case CapSearch() | BoundSearch():
            return replace(asked, query=_among(condition, asked.query))
        case _:  # which is refused
            return asked


class SpendOptions(AmountOptions, total=False):
    """How much to spend, and on which mechanism; see `dpframe.release`."""

    part: object

    mechanism: Annotated[MechanismName, "auto"]
    privacy_unit: EachRow | None


class ReleaseOptions(SpendOptions, RecordOptions, total=False):
    """How much to spend, what to record, and how to denoise; see `dpframe.release`."""

    denoise: DenoiserName | None
    graph: object


@overload
def release(
    frame: Frame, queries: Query | Search, **options: Unpack[ReleaseOptions]
) -> pd.DataFrame: ...


@overload
def release(
    frame: Frame, queries: Mapping[str, Query], **options: Unpack[ReleaseOptions]
) -> dict[str, pd.DataFrame]: ...


@with_keywords
def release(frame: Frame, queries: Request, **options: Unpack[ReleaseOptions]) -> Any:
    """Release a query, or several planned and charged together.

    Give the amount in exactly one way. Gaussian noise is calibrated by the analytic Gaussian
    mechanism (Balle and Wang 2018, Theorem 8), Laplace noise to the L1 sensitivity. Both are
    integers, drawn exactly, and added to exact integers.

    Parameters
    ----------
    frame
        The private frame.
    queries
        A query such as `dpf.count(by="zone")`, or a dict of them by name; or a search by
        `dpf.discover`, `dpf.suggest_caps` or `dpf.suggest_bounds`.
    epsilon, delta
        The release is (epsilon, delta)-DP. `delta` defaults to the budget's, and to 0 without a
        budget. Gaussian noise spends the delta, however small epsilon is.
    mu
        The release is mu-GDP.
    rho
        The release is rho-zCDP: Gaussian noise with `mu = sqrt(2 rho)`, or pure noise with
        `epsilon tanh(epsilon / 2) = rho`. Laplace noise costs less: its epsilon is up to 15 %
        larger at 0.5.
    share
        Part of the budget, in (0, 1]; shares of one kind of noise may add up to 1. It costs
        `s / (1 - shares so far)` of what is left: of mu^2 for Gaussian noise, of epsilon for
        Laplace noise. After a release with `epsilon=`, it is thus a part of what is left. With
        "auto", `units` without groups and searches may cost less, if the share is at most an eighth
        of what is left, so that later noise of the other kind fits.
    mechanism
        "auto" (least predicted error at that spend), or the name of a mechanism in
        `dpframe.strategies.MECHANISMS`; for quantiles also "select".
    denoise
        Add a denoised column beside each count and sum, and with "auto" beside each mean, at no
        privacy cost: "auto" or a method of `dpframe.denoise`.
    graph
        Which groups are neighbors, for `denoise`.
    part
        The part of the data to read and spend from, such as 47 or "2024-03", if the ledger has a
        budget for every part; `None`: all parts, each of which spends.
    name
        Name of this release in the ledger, such as "2024-03". A second release of that name is
        refused before anything is charged, so a job that runs again spends nothing. At most 200
        printed characters, no spaces at the ends; case matters, the encoding of accents does not.
    note
        Kept with it in the ledger: one line of at most 2,000 printed characters.
    privacy_unit
        `dpf.EACH_ROW`: every row is a person of its own, for a frame without a declared unit.

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
        If the amount does not fit in what is left of the budget.
    CalibrationError
        If the amount is not usable, or no noise can honor it.
    DeclarationError, QueryError, UnknownColumnError
        If the queries do not fit what is declared, or the frame was released.
    ReleaseError
        If reading the frame fails after the charge, for instance because memory runs out or a file
        changed. The amount stays charged.

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
    declaration = declaration_of(frame).with_unit(options["privacy_unit"]).in_part(options["part"])
    queries = in_part(declaration, queries)
    spend = Spend.among(options)
    record: RecordOptions = {"name": options["name"], "note": options["note"]}
    check_recorded(declaration.ledger, **record)
    method, mechanism = options["denoise"], options["mechanism"]
    apart = method is not None
    operation = plan_operation(frame, declaration, queries, spend, mechanism, apart=apart)
    operation = operation.denoised(method, options["graph"])
    return make_release(frame, operation, entry_of(operation, **record))

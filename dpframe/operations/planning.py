"""A release at once, or one that is planned and shown before anything is spent, then made so."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, overload

import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.certificates.diagnosis import ShownFrame
from dpframe.checker.check import check_charge
from dpframe.context import Context, at_the_door, cached_property
from dpframe.declaration.facts import Declaration, kept_declaration
from dpframe.denoising.methods import DenoiserName
from dpframe.engines import Frame, engine_for
from dpframe.engines.declared import SINGLE, check_matches, check_queries, declaration_of
from dpframe.errors import CalibrationError, DeclarationError, DPFrameError, QueryError, quote
from dpframe.frozen import frozen
from dpframe.operations.discover import plan_labels
from dpframe.operations.pipeline import Operation, check_recorded, entry_of, make_release
from dpframe.operations.select import plan_quantiles
from dpframe.operations.suggest import plan_suggestion
from dpframe.operations.tables import PlannedTables, check_aim, plan_tables
from dpframe.options import NO_AIM, Aim, Mechanisms, Usefulness, Within
from dpframe.plan.designs import candidates
from dpframe.plan.joining import Joining
from dpframe.plan.laws import best_mixture
from dpframe.plan.plan import Plan, log_ratios
from dpframe.privacy.amounts import Amount, Spend
from dpframe.privacy.neighbors import EachRow
from dpframe.privacy.selection import SELECT
from dpframe.public import public_call
from dpframe.queries.binned import Quantile
from dpframe.queries.query import Query, Request, Search
from dpframe.queries.searches import BoundSearch, CapSearch, Discovery
from dpframe.queries.where import Condition
from dpframe.strategies import MechanismName

_WORTH_TELLING = 0.8
"""Of the error as planned: what leaves more than that is no advice."""
_WORTH_TWO_LAWS = 1 / 1.15
"""The same of two laws in one charge: of 120 dicts they left 1 / 1.23 at best."""


@frozen(slots=True)
class PlanRequest:
    """What is asked of a frame, as it was given."""

    queries: Any
    spend: Spend
    part: object
    mechanism: Mechanisms
    privacy_unit: EachRow | None
    aim: Aim
    denoise: DenoiserName | None = None
    graph: object = None

    @property
    def apart(self) -> bool:
        """Whether errors of cells are to be independent, since tables are denoised."""
        return self.denoise is not None


@frozen(eq=False)
class ReleasePlan:
    """A release that was planned and checked: what it costs, and how accurate it will be.

    Nothing is spent, and no rows are read, until `release()`; that charges exactly what is shown.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> query = dpf.count(by="zone", keys=["A", "B", "C"])
    >>> plan = trips.dp.plan(query, epsilon=2, within=5, rows=100, privacy_unit=dpf.EACH_ROW)
    >>> plan.table[["mechanism", "epsilon", "half_width_95", "useful"]].round(2).to_dict("list")
    {'mechanism': ['laplace'], 'epsilon': [0.54], 'half_width_95': [5.0], 'useful': ['good']}
    >>> len(plan.release())
    3
    """

    _frame: Any
    _asked: PlanRequest
    _declared: Declaration | None
    _operation: Operation

    @cached_property
    def table(self) -> pd.DataFrame:
        """What to expect of every output.

        One row per output column (for margins per table and column):

        - `mechanism`, and `sigma`, the scale of the noise in the units of the column;
        - `std_error` and `half_width_95` of one cell. If `per` says "1 / rows" (means, at their
          worst), divide them by the number of rows in the cell, or give `rows`;
        - `useful`, if `rows` is given: "nothing" if the half-width is at least half of what the
          output can be, "rough" from a tenth, or "good"; `part`: that of its query in the amount;
        - `mu`, `epsilon`, `delta`: the cost of the whole release; `fits`: whether the budget allows
          it; `remaining_epsilon`, `remaining_mu`: the largest pure and Gaussian release that fits
          afterwards.

        Selected quantiles have one row each, with `rank_error_95`: at most so many rows lie between
        the quantile and the selected bin, with a probability of 95 % or more. Searches by
        `discover`, `suggest_caps` and `suggest_bounds` have tables of their own, described there.
        """
        return ShownFrame(self._operation.outlook_table())

    @property
    def mechanism(self) -> str:
        """The mechanism, or several where queries are measured in several ways."""
        return self._operation.mechanism

    @property
    def cost(self) -> dict[str, Any]:
        """The mu, epsilon and delta of the whole release."""
        return dict(self._operation.cost)

    @property
    def fits(self) -> bool:
        """Whether the budget allows it."""
        return self._operation.declaration.allows(self._operation.loss)

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """Public facts that would lessen errors to less than 0.8 of these, with what they cost."""
        return tuple(_advice(self))

    def release(self, name: str | None = None, note: str | None = None) -> Any:
        """Charge what is shown, and release.

        Parameters
        ----------
        name, note
            See `dpframe.options.Memo`.

        Returns
        -------
        DataFrame or dict of DataFrame
            As `dpframe.release`.

        Raises
        ------
        DeclarationError
            If the declaration, or what is left of the budget, is not what it was.
        """
        context = at_the_door()
        again = plan_asked(self._frame, self._asked, context, name, note)
        if again._declared is not self._declared or not again._is_like(self):
            reason = (
                "the declaration, or what is left of the budget, has changed since it was made."
            )
            raise DeclarationError(f"this plan is not what it would be now: {reason} Plan again.")
        return again.make(context, name, note)

    def make(self, context: Context, name: str | None, note: str | None) -> Any:
        """Charge and release in a context."""
        useless = self._operation.useless()
        if useless is not None:
            raise useless
        entry = entry_of(self._operation, context, name, note)
        return make_release(self._frame, self._operation, entry, context)

    def _is_like(self, other: "ReleasePlan") -> bool:
        """Whether it promises the same: what is left afterwards may differ."""
        left = ["fits", "remaining_epsilon", "remaining_mu"]
        mine = self.table.drop(columns=left, errors="ignore")
        theirs = other.table.drop(columns=left, errors="ignore")
        return self._operation.loss == other._operation.loss and mine.equals(theirs)

    def __repr__(self) -> str:
        lines = [f"Plan of {self._operation.words}", repr(self.table), *self.advice]
        return "\n".join(lines)

    def _repr_html_(self) -> str | None:
        html: str | None = self.table._repr_html_()  # type: ignore[operator]
        return html


def plan_asked(
    frame: Frame,
    request: PlanRequest,
    context: Context,
    name: str | None = None,
    note: str | None = None,
) -> ReleasePlan:
    """Check everything that is asked, and plan it."""
    declaration = declaration_of(frame, context).within(context)
    declaration = declaration.with_unit(request.privacy_unit).in_part(request.part)
    queries = in_part(declaration, request.queries)
    check_recorded(declaration.ledger, name, note)
    operation = plan_operation(
        frame, declaration, queries, request.spend, request.mechanism,
        aim=request.aim, apart=request.apart,
    )  # fmt: skip
    if request.apart or request.graph is not None:
        operation = operation.denoised(request.denoise, request.graph)
    return ReleasePlan(frame, request, kept_declaration(frame), operation)


@public_call
def plan(
    frame: Frame, queries: Request, *,
    epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
    rho: Amount | None = None, share: Amount | None = None, part: object = None,
    mechanism: Mechanisms = "auto", privacy_unit: EachRow | None = None,
    within: Within = None, rows: float | None = None, useful: Usefulness = "rough",
    denoise: DenoiserName | None = None, graph: object = None,
) -> ReleasePlan:  # fmt: skip
    """Plan a release without making it; see `DPAccessor.plan`."""
    context = at_the_door(looking=True)
    declaration_of(frame, context)  # a frame that is not private is refused first
    aim = check_aim(within, rows, useful)
    spend = Spend.of(epsilon=epsilon, delta=delta, mu=mu, rho=rho, share=share)
    request = PlanRequest(queries, spend, part, mechanism, privacy_unit, aim, denoise, graph)
    planned = plan_asked(frame, request, context)
    check_charge(planned._operation, planned._operation.loss)
    return planned


def _advice(planned: ReleasePlan) -> Iterable[str]:
    """Yield what would make errors smaller."""
    request, declaration = planned._asked, planned._operation.declaration
    if not isinstance(planned._operation, PlannedTables):
        return
    queries = in_part(declaration, request.queries)
    caps, spend = declaration.caps, request.spend
    changes: list[tuple[str, Declaration, Spend]] = []
    if declaration.unit_columns and caps.rows_per_group is None and caps.rows != 1:
        once = replace(declaration, caps=replace(caps, rows_per_group=1))
        words = "max_rows_per_group=1 (further rows of a unit in a group are left out)"
        changes.append((words, once, spend))
    if caps.rows is not None and caps.rows > 2:  # noqa: PLR2004
        half = caps.rows // 2
        fewer = replace(declaration, caps=replace(caps, rows=half))
        changes.append((f"max_rows={half} (further rows of a unit are left out)", fewer, spend))
    if spend.kind != "share":
        twice = replace(spend, amount=2 * spend.amount)
        changes.append((f"{spend.kind}={float(twice.amount):g}", declaration, twice))
    for words, changed, amount in changes:
        try:
            other = plan_operation(
                planned._frame, changed, queries, amount, request.mechanism,
                aim=replace(request.aim, within=None), apart=request.apart,
            )  # fmt: skip
        except DPFrameError:
            continue
        assert isinstance(other, PlannedTables)  # noqa: S101  # as before
        logs = log_ratios(other.plan, planned._operation.plan).values()
        ratio = math.exp(math.fsum(logs) / max(len(logs), 1))
        if ratio < _WORTH_TELLING:
            yield f"{ratio:.2f} of the error with {words}"
    if isinstance(queries, Mapping) and request.mechanism == "auto" and not request.aim.within:
        _, named = check_queries(planned._frame, queries)
        joining = Joining.of(declaration, named, apart=request.apart)
        yield from _advice_on_laws(joining, spend, planned._operation.plan)


def _advice_on_laws(joining: Joining, spend: Spend, plan: Plan) -> Iterable[str]:
    """Yield which mechanisms of two laws in one charge would make errors smaller in all."""
    ratio, largest, mechanisms = best_mixture(joining, spend, plan)
    if ratio <= _WORTH_TWO_LAWS:
        most = f"at most {largest:.2f} for a query"
        yield f"{ratio:.2f} of the error ({most}) with mechanism={mechanisms}"


def has_noise(request: Request, mechanism: Mechanisms) -> bool:
    """Whether what is asked are outputs of queries, with noise of which errors are known."""
    match request:
        case Search():
            return False
        case Quantile():
            return mechanism != SELECT
        case _:
            return True


def plan_operation(
    frame: Frame,
    declaration: Declaration,
    request: Request,
    spend: Spend,
    mechanism: Mechanisms,
    *,
    aim: Aim = NO_AIM,
    apart: bool = False,
) -> Operation:
    """Check everything public about a release and plan it, without reading data or spending.

    Errors of cells are independent where tables are to be measured apart, to be denoised.
    """
    if (aim.within, aim.rows) != (None, None) and not has_noise(request, mechanism):
        raise CalibrationError(
            "within= and rows= are for errors of noise in tables of queries, not for what is "
            "selected or looked for: plan an amount, epsilon=..., and see what it says, "
            "rank_error_95 of a quantile for instance.",
            parameter="rows" if aim.within is None else "within",
        )
    mechanisms = _read_mechanism(mechanism, request)
    if not is_one_of(mechanisms, (SELECT,)):
        _refuse_candidates(request)
    manifest = engine_for(frame).manifest(frame)
    declaration = declaration.with_truths(manifest.types)
    operation: Operation
    match request:
        case Discovery():
            operation = plan_labels(frame, declaration, request, spend, mechanisms)
        case CapSearch() | BoundSearch():
            operation = plan_suggestion(frame, declaration, request, spend, mechanisms)
        case Quantile() if mechanisms == SELECT:
            operation = plan_quantiles(frame, declaration, request, spend)
        case Query(counts_units=True, by=()):
            operation = plan_tables(
                frame, declaration, request, spend, mechanisms, aim=aim, look=True
            )
        case _:
            operation = plan_tables(
                frame, declaration, request, spend, mechanisms, aim=aim, apart=apart
            )
    named = request if isinstance(request, Mapping) else {SINGLE: request}
    if manifest.files is not None:  # which are listed again while a release is planned
        manifest = operation.engine.manifest(frame)
    source = check_matches(manifest, declaration, named, operation.axes)
    return replace(operation, source=source, files=manifest.files)


def _read_mechanism(mechanism: Any, request: Any) -> Any:
    """Check mechanisms that are named by query; where all are the same, it is the one."""
    if not isinstance(mechanism, Mapping):
        return mechanism
    if not isinstance(request, Mapping):
        rule = "must be one for the query that is asked"
        remedy = 'Name its mechanism, "gaussian" for instance, or give a dict of queries.'
        raise CalibrationError.about("mechanism", rule, mechanism, remedy)
    if mechanism.keys() != request.keys():
        rule = f"must name one for each query, and the queries are {quote(list(request))}"
        raise CalibrationError.about("mechanism", rule, mechanism)
    if any(len(candidates(name)) > 1 for name in mechanism.values()):
        rule = 'by query must name one for each, and "auto" chooses a law for all of them'
        remedy = 'Name "laplace" or "gaussian", as the advice of a plan with "auto" does.'
        raise CalibrationError.about("mechanism", rule, mechanism, remedy)
    same = {*mechanism.values()}
    return same.pop() if len(same) == 1 else dict(mechanism)


def _refuse_candidates(request: Request) -> None:
    """Refuse values to select among where nothing is selected."""
    queries: Iterable[object] = request.values() if isinstance(request, Mapping) else (request,)
    if any(getattr(query, "candidates", None) is not None for query in queries):
        reason = 'candidates= are selected among: add mechanism="select".'
        remedy = "Where quantiles are read off numbers of rows, give edges, bins=[...]."
        raise QueryError(f"{reason} {remedy}", parameter="candidates")


def in_part(declaration: Declaration, request: Request) -> Request:
    """Ask of the rows of one part alone, where the call says which."""
    condition = declaration.part_condition
    among: Request = request if condition is None else _among(condition, request)
    return among


def _among(condition: Condition, request: Any) -> Any:
    match request:
        case Mapping():
            return {name: _among(condition, query) for name, query in request.items()}
        case Query() | Discovery():
            return replace(request, where=Condition.all_of(condition, request.where))
        case CapSearch() | BoundSearch():
            return replace(request, query=_among(condition, request.query))
        case _:  # which is refused
            return request


@overload
def release(
    frame: Frame, queries: Query | Search, *,
    epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
    rho: Amount | None = None, share: Amount | None = None, part: object = None,
    mechanism: MechanismName = "auto", privacy_unit: EachRow | None = None,
    within: Within = None, rows: float | None = None, useful: Usefulness = "rough",
    name: str | None = None, note: str | None = None,
    denoise: DenoiserName | None = None, graph: object = None,
) -> pd.DataFrame: ...  # fmt: skip


@overload
def release(
    frame: Frame, queries: Mapping[str, Query], *,
    epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
    rho: Amount | None = None, share: Amount | None = None, part: object = None,
    mechanism: Mechanisms = "auto", privacy_unit: EachRow | None = None,
    within: Within = None, rows: float | None = None, useful: Usefulness = "rough",
    name: str | None = None, note: str | None = None,
    denoise: DenoiserName | None = None, graph: object = None,
) -> dict[str, pd.DataFrame]: ...  # fmt: skip


@public_call
def release(
    frame: Frame, queries: Request, *,
    epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
    rho: Amount | None = None, share: Amount | None = None, part: object = None,
    mechanism: Mechanisms = "auto", privacy_unit: EachRow | None = None,
    within: Within = None, rows: float | None = None, useful: Usefulness = "rough",
    name: str | None = None, note: str | None = None,
    denoise: DenoiserName | None = None, graph: object = None,
) -> Any:  # fmt: skip
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
    epsilon, delta, mu, rho, share, part, mechanism, privacy_unit
        See `dpframe.options.Spending`.
    within, rows, useful
        See `dpframe.options.Aim`.
    name, note, denoise, graph
        See `dpframe.options.Memo`.

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
    context = at_the_door()
    declaration_of(frame, context)  # a frame that is not private is refused first
    aim = check_aim(within, rows, useful)
    spend = Spend.of(epsilon=epsilon, delta=delta, mu=mu, rho=rho, share=share)
    request = PlanRequest(queries, spend, part, mechanism, privacy_unit, aim, denoise, graph)
    return plan_asked(frame, request, context, name, note).make(context, name, note)

"""The public call that releases: whatever is asked goes through one pipeline."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, overload

import pandas as pd

from dpframe.context import at_the_door
from dpframe.declaration.facts import Declaration
from dpframe.denoising.methods import DenoiserName
from dpframe.engines import Frame
from dpframe.engines.declared import SINGLE, check_matches, declaration_of
from dpframe.errors import QueryError
from dpframe.operations.discover import plan_labels
from dpframe.operations.pipeline import Operation, check_recorded, entry_of, make_release
from dpframe.operations.select import plan_quantiles
from dpframe.operations.suggest import plan_suggestion
from dpframe.operations.tables import plan_tables
from dpframe.privacy.amounts import Amount, Spend
from dpframe.privacy.neighbors import EachRow
from dpframe.privacy.selection import SELECT
from dpframe.public import public_call
from dpframe.queries.discovery import Discovery
from dpframe.queries.quantiles import Quantile
from dpframe.queries.query import Query, Request, Search
from dpframe.queries.suggestions import BoundSearch, CapSearch
from dpframe.queries.where import Condition
from dpframe.strategies import MechanismName


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
) -> Operation:
    """Check everything public about a release and plan it, without reading data or spending.

    Errors of cells are independent where tables are to be measured apart, to be denoised.
    """
    if isinstance(mechanism, str) and mechanism != SELECT:
        _refuse_candidates(asked)
    operation: Operation
    match asked:
        case Discovery():
            operation = plan_labels(frame, declaration, asked, spend, mechanism)
        case CapSearch() | BoundSearch():
            operation = plan_suggestion(frame, declaration, asked, spend, mechanism)
        case Quantile() if mechanism == SELECT:
            operation = plan_quantiles(frame, declaration, asked, spend)
        case Query(counts_units=True, by=()):
            operation = plan_tables(frame, declaration, asked, spend, mechanism, look=True)
        case _:
            operation = plan_tables(frame, declaration, asked, spend, mechanism, apart=apart)
    named = asked if isinstance(asked, Mapping) else {SINGLE: asked}
    manifest = operation.engine.manifest(frame)
    check_matches(manifest, declaration, named, operation.axes)
    return replace(operation, manifest=manifest)


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


@overload
def release(
    frame: Frame, queries: Query | Search, *,
    epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
    rho: Amount | None = None, share: Amount | None = None, part: object = None,
    mechanism: MechanismName = "auto", privacy_unit: EachRow | None = None,
    name: str | None = None, note: str | None = None,
    denoise: DenoiserName | None = None, graph: object = None,
) -> pd.DataFrame: ...  # fmt: skip


@overload
def release(
    frame: Frame, queries: Mapping[str, Query], *,
    epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
    rho: Amount | None = None, share: Amount | None = None, part: object = None,
    mechanism: MechanismName = "auto", privacy_unit: EachRow | None = None,
    name: str | None = None, note: str | None = None,
    denoise: DenoiserName | None = None, graph: object = None,
) -> dict[str, pd.DataFrame]: ...  # fmt: skip


@public_call
def release(
    frame: Frame, queries: Request, *,
    epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
    rho: Amount | None = None, share: Amount | None = None, part: object = None,
    mechanism: MechanismName = "auto", privacy_unit: EachRow | None = None,
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
    declaration = declaration_of(frame, context).within(context)
    declaration = declaration.with_unit(privacy_unit).in_part(part)
    queries = in_part(declaration, queries)
    spend = Spend.of(epsilon=epsilon, delta=delta, mu=mu, rho=rho, share=share)
    check_recorded(declaration.ledger, name, note)
    apart = denoise is not None
    operation = plan_operation(frame, declaration, queries, spend, mechanism, apart=apart)
    if apart or graph is not None:
        operation = operation.denoised(denoise, graph)
    entry = entry_of(operation, context, name, note)
    return make_release(frame, operation, entry, context)

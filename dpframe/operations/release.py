"""The public call that releases: whatever is asked goes through one pipeline."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Unpack, overload

import pandas as pd

from dpframe.calls import with_keywords
from dpframe.context import at_the_door
from dpframe.declaration.facts import Declaration
from dpframe.denoising.methods import DenoiserName
from dpframe.engines import Frame
from dpframe.engines.declared import SINGLE, check_matches, declaration_of
from dpframe.errors import QueryError
from dpframe.operations.discover import plan_labels
from dpframe.operations.operation import Operation
from dpframe.operations.pipeline import RecordOptions, check_recorded, entry_of, make_release
from dpframe.operations.select import plan_quantiles
from dpframe.operations.suggest import plan_suggestion
from dpframe.operations.tables import plan_tables
from dpframe.privacy.amounts import AmountOptions, Spend
from dpframe.privacy.neighbors import EachRow
from dpframe.privacy.selection import SELECT
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
) -> Operation:
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
    context = at_the_door()
    declaration = declaration_of(frame, context).within(context)
    declaration = declaration.with_unit(options["privacy_unit"]).in_part(options["part"])
    queries = in_part(declaration, queries)
    spend = Spend.among(options)
    record: RecordOptions = {"name": options["name"], "note": options["note"]}
    check_recorded(declaration.ledger, **record)
    method, mechanism = options["denoise"], options["mechanism"]
    apart = method is not None
    operation = plan_operation(frame, declaration, queries, spend, mechanism, apart=apart)
    operation = operation.denoised(method, options["graph"])
    entry = entry_of(operation, context, **record)
    return make_release(frame, operation, entry, context)

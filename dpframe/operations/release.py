"""The public call that releases: whatever is asked goes through one pipeline."""

from collections.abc import Mapping
from typing import Annotated, Any, Unpack, overload

import pandas as pd

from dpframe.calls import with_keywords
from dpframe.declaration.facts import Declaration
from dpframe.denoising.methods import DenoiserName
from dpframe.engines import Frame
from dpframe.engines.declared import declaration_of
from dpframe.operations.discover import plan_labels
from dpframe.operations.pipeline import (
    Operation,
    RecordOptions,
    check_recorded,
    entry_of,
    make_release,
)
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
    frame: Frame, declaration: Declaration, asked: Request, spend: Spend, mechanism: str
) -> Operation[Any, Any, Any]:
    """Check everything public about a release and plan it, without reading data or spending."""
    match asked:
        case Discovery():
            return plan_labels(frame, declaration, asked, spend, mechanism)
        case CapSearch() | BoundSearch():
            return plan_suggestion(frame, declaration, asked, spend, mechanism)
        case Quantile() if mechanism == SELECT:
            return plan_quantiles(frame, declaration, asked, spend)
        case _:
            return plan_tables(frame, declaration, asked, spend, mechanism)


class SpendOptions(AmountOptions, total=False):
    """How much to spend, and on which mechanism; see `dpframe.release`."""

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

    The amount is given in exactly one way. Gaussian noise is calibrated by the analytic Gaussian
    mechanism (Balle and Wang 2018, Theorem 8) and Laplace noise to the L1 sensitivity; both are
    integers, drawn exactly, and added to exact integers.

    Parameters
    ----------
    frame
        The private frame.
    queries
        A query such as `dpf.count(by="zone")`, or a dict of them by name; or what is looked for, by
        `dpf.discover`, `dpf.suggest_caps` or `dpf.suggest_bounds`.
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
    record: RecordOptions = {"name": options["name"], "note": options["note"]}
    check_recorded(declaration.ledger, **record)
    operation = plan_operation(frame, declaration, queries, spend, options["mechanism"])
    operation = operation.denoised(options["denoise"], options["graph"])
    return make_release(frame, operation, entry_of(operation.plan, declaration, **record))

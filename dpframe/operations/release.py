"""The public call that releases: whatever is asked goes through one pipeline."""

from collections.abc import Mapping
from typing import Any, overload

import pandas as pd

from dpframe.context import at_the_door
from dpframe.denoising.methods import DenoiserName
from dpframe.engines import Frame
from dpframe.engines.declared import declaration_of
from dpframe.operations.planning import PlanRequest, plan_asked
from dpframe.operations.tables import check_aim
from dpframe.options import Usefulness, Within
from dpframe.privacy.amounts import Amount, Spend
from dpframe.privacy.neighbors import EachRow
from dpframe.public import public_call
from dpframe.queries.query import Query, Request, Search
from dpframe.strategies import MechanismName


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
    mechanism: MechanismName = "auto", privacy_unit: EachRow | None = None,
    within: Within = None, rows: float | None = None, useful: Usefulness = "rough",
    name: str | None = None, note: str | None = None,
    denoise: DenoiserName | None = None, graph: object = None,
) -> dict[str, pd.DataFrame]: ...  # fmt: skip


@public_call
def release(
    frame: Frame, queries: Request, *,
    epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
    rho: Amount | None = None, share: Amount | None = None, part: object = None,
    mechanism: MechanismName = "auto", privacy_unit: EachRow | None = None,
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
    asked = PlanRequest(queries, spend, part, mechanism, privacy_unit, aim, denoise, graph)
    return plan_asked(frame, asked, context, name, note).make(context, name, note)

"""Keywords that calls share: typed here and told once. Their signatures repeat them."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields
from typing import Literal, TypeAlias

import pandas as pd

from dpframe.denoising.methods import DenoiserName
from dpframe.frozen import frozen
from dpframe.privacy.amounts import Amount
from dpframe.privacy.neighbors import EachRow
from dpframe.strategies import MechanismName

By: TypeAlias = Hashable | Iterable[Hashable] | None
Columns: TypeAlias = Hashable | Iterable[Hashable]
Keys: TypeAlias = Mapping[Hashable, object] | Iterable[object] | pd.DataFrame | pd.MultiIndex | None
GivenBounds: TypeAlias = tuple[float, float] | Mapping[Hashable, object] | None
KnownRows: TypeAlias = float | pd.Series | tuple[float | pd.Series, float] | None
Objective: TypeAlias = Literal["total", "worst"]
Other: TypeAlias = Hashable | Mapping[Hashable, Hashable] | None
Mechanisms: TypeAlias = MechanismName | Mapping[str, MechanismName]


@frozen(slots=True)
class ChosenRows:
    """Which rows a query looks at, in which groups, and how many of one unit.

    Parameters
    ----------
    where
        Row-wise condition, for instance `"fare > 0 and zone in ['A', 'B']"`.
    keys
        The groups, if not declared: a dict from column to list, a list for a single column, or a
        frame whose rows are the combinations.
    max_rows, max_groups, max_rows_per_group
        Caps on one unit, in place of the declared ones of the same name: rows in all, groups, rows
        per group. Noise follows the caps.
    weight
        How much its error counts: in a dict, queries share the amount in proportion; in an
        aggregate, variances of outputs do. For releases of several alone.
    other
        The key of rows that have none of the other keys, also missing ones: one for all columns
        with keys, or a dict by column. It comes last, and must not equal one of the keys.
    """

    where: str | None = None
    keys: Keys = None
    max_rows: int | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    weight: float = 1.0
    other: Other = None


@frozen(slots=True)
class Spending:
    """What a release may cost, and how it is hidden. Give the amount in exactly one way.

    Parameters
    ----------
    epsilon, delta
        The release is (epsilon, delta)-DP. `delta` defaults to the budget's, and to 0 without a
        budget. Gaussian noise spends the delta, however small epsilon is.
    mu
        The release is mu-GDP. For `release` and `plan`, as `rho`.
    rho
        The release is rho-zCDP: Gaussian noise with `mu = sqrt(2 rho)`, or pure noise with
        `epsilon tanh(epsilon / 2) = rho`. Laplace noise costs less: its epsilon is up to 15 %
        larger at 0.5.
    share
        Part of the budget, in (0, 1]; shares of one kind of noise may add up to 1. After shares
        that add up to S, a share s takes the part `s / (1 - S)` of what is left: of mu^2 for
        Gaussian noise, of epsilon for Laplace noise. After a release with `epsilon=`, it is thus a
        part of what is left. With "auto", `units` without groups and searches may cost less, if the
        share is at most an eighth of what is left, so that later noise of the other kind fits.
    part
        The part of the data to read and spend from, such as 47 or "2024-03", if the ledger has a
        budget for every part; `None`: all parts, each of which spends.
    mechanism
        "auto" (least predicted error at that spend), or the name of a mechanism in
        `dpframe.strategies.MECHANISMS`; for quantiles also "select". For a dict of queries also a
        dict with one for each, pure or Gaussian: both in one charge.
    privacy_unit
        `dpf.EACH_ROW`: every row is a person of its own, for a frame without a declared unit.
    """

    epsilon: Amount | None = None
    delta: Amount | None = None
    mu: Amount | None = None
    rho: Amount | None = None
    share: Amount | None = None
    part: object = None
    mechanism: MechanismName = "auto"
    privacy_unit: EachRow | None = None


@frozen(slots=True)
class Memo:
    """What the ledger keeps of a release, and what is added to its table.

    Parameters
    ----------
    name
        Name of this release in the ledger, such as "2024-03". A second release of that name is
        refused before anything is charged, so a job that runs again spends nothing. At most 200
        printed characters, no spaces at the ends; case matters, the encoding of accents does not.
    note
        Kept with it in the ledger: one line of at most 2,000 printed characters.
    denoise
        Add a denoised column beside each count and sum, and with "auto" beside each mean, at no
        privacy cost: "auto" or a method of `dpframe.denoise`.
    graph
        Which groups are neighbors, for `denoise`. For `release` alone.
    """

    name: str | None = None
    note: str | None = None
    denoise: DenoiserName | None = None
    graph: object = None


Within: TypeAlias = float | Mapping[Hashable, float] | None
Usefulness: TypeAlias = Literal["rough", "any"]


@frozen(slots=True)
class Aim:
    """How accurate a release is to be.

    Parameters
    ----------
    within
        The largest half-width of a 95 % interval: one number for all outputs, or a dict by output
        (by query and output, in a tuple, for a dict of queries; for margins also by table). Queries
        that are named get the least that reaches it; the others share what is left.
    rows
        A public guess of the rows in a cell, for errors of means and for `useful`.
    useful
        "rough": outputs whose half-width is more than half of what they can be are refused before
        anything is charged; "any": nothing is. It needs `rows`.
    """

    within: Within = None
    rows: float | None = None
    useful: Usefulness = "rough"


NO_AIM = Aim()
"""No accuracy is asked for."""

RARE = ("mu", "rho", "graph", "weight")
"""What `release` takes, and calls that make a query and release it at once do not."""

FRONT = tuple(
    field.name for family in (Spending, Memo) for field in fields(family) if field.name not in RARE
)
"""What these calls take of a release, in order."""

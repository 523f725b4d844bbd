"""Keywords of a release: how much to spend, how to denoise, and what to record."""

from typing import TypedDict

from dpframe.denoise.methods import DenoiserName
from dpframe.privacy.exact import Amount
from dpframe.privacy.neighbors import EachRow
from dpframe.strategies import MechanismName


class SpendOptions(TypedDict, total=False):
    """How much to spend, in exactly one way, and on which mechanism; see `dpframe.release`."""

    epsilon: Amount | None
    delta: Amount | None
    mu: Amount | None
    rho: Amount | None
    share: Amount | None
    mechanism: MechanismName
    privacy_unit: EachRow | None


class ReleaseOptions(SpendOptions, total=False):
    """How much to spend, how to denoise, and what to record; see `dpframe.release`."""

    denoise: DenoiserName | None
    graph: object
    name: str | None
    note: str | None

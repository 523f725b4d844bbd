"""Keywords that methods pass on: how much to spend, what to record, and caps."""

from typing import TypedDict

from dpframe.preview import Wanted
from dpframe.privacy.neighbors import EachRow
from dpframe.queries.reading import CapOptions

__all__ = ["CallOptions", "PreviewOptions", "ReleaseOptions", "SpendOptions", "caps_of"]


class SpendOptions(TypedDict, total=False):
    """How much to spend, in exactly one way, and on which mechanism; see `dpframe.release`."""

    epsilon: float | None
    delta: float | None
    mu: float | None
    rho: float | None
    share: float | None
    mechanism: str
    privacy_unit: EachRow | None


class PreviewOptions(SpendOptions, total=False):
    """What to show of a release that is not made; see `dpframe.preview`."""

    compare: bool
    std_error: Wanted | None
    half_width: Wanted | None
    rows: float | None


class ReleaseOptions(SpendOptions, total=False):
    """How much to spend, how to denoise, and what to record; see `dpframe.release`."""

    denoise: str | None
    graph: object
    name: str | None
    note: str | None


class CallOptions(ReleaseOptions, CapOptions, total=False):
    """Options of a release, and caps on one unit; see `dpframe.count`."""


def caps_of(options: CallOptions) -> CapOptions:
    """Take the caps out of the options of a call."""
    return {name: options.pop(name) for name in CapOptions.__annotations__ if name in options}  # type: ignore[misc, return-value]

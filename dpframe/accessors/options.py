"""Keywords that methods pass on: those of a release or a preview, and caps."""

from dpframe.operations.options import ReleaseOptions, SpendOptions
from dpframe.operations.preview import Wanted
from dpframe.queries.reading import CapOptions


class PreviewOptions(SpendOptions, total=False):
    """What to show of a release that is not made; see `dpframe.operations.preview`."""

    compare: bool
    std_error: Wanted | None
    half_width: Wanted | None
    rows: float | None


class CallOptions(ReleaseOptions, CapOptions, total=False):
    """Options of a release, and caps on one unit; see `dpframe.count`."""


def caps_of(options: CallOptions) -> CapOptions:
    """Take the caps out of the options of a call."""
    return {name: options.pop(name) for name in CapOptions.__annotations__ if name in options}  # type: ignore[misc, return-value]

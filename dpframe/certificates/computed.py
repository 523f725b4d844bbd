"""A note in `attrs` of what was computed from a release: it is no certificate, and says so.

pandas carries the note on, so that it stands for a frame that was made of such a frame, too.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpframe.arguments import visible
from dpframe.certificates.certificate import Certified, parts_of

_ATTRIBUTE = "dpframe_computed"
_WAYS = {
    "interval": "To publish them with it, use .dp.with_intervals() of the release.",
    "percent": "To publish them with it, use .dp.with_percent() of the release.",
}
_ELSE = "The release itself has one, and can be published beside it."
_MOST = 3


def noted(frame: pd.DataFrame, certificate: Certified, call: str) -> pd.DataFrame:
    """Note on a frame which call computed it, and of which releases."""
    releases = dict.fromkeys(part.release_id for part in parts_of(certificate))
    frame.attrs = {_ATTRIBUTE: {"by": call, "releases": list(releases)}}
    return frame


def about_computed(attrs: Mapping[Any, Any]) -> str | None:
    """Say what such a frame is, and what to publish; `None` where there is no note.

    Examples
    --------
    >>> about_computed({"dpframe_computed": {"by": "ratio", "releases": ["734b"]}})[:54]
    'this frame was computed by .dp.ratio from release 734b'
    """
    note = attrs.get(_ATTRIBUTE)
    if not isinstance(note, Mapping):
        return None
    call, releases = note.get("by"), note.get("releases")
    if not isinstance(call, str) or not isinstance(releases, list):  # a file may bring anything
        return None
    listed = ", ".join(map(str, releases[:_MOST])) + ", ..." * (len(releases) > _MOST)
    several = "s" * (len(releases) > 1)
    return visible(
        f"this frame was computed by .dp.{call} from release{several} {listed}, or made of such a "
        f"frame: it has no certificate of its own. {_WAYS.get(call, _ELSE)}"
    )

"""Frames of exact, private numbers: marked, so that nothing here takes one for a release."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from dpframe.arguments import visible
from dpframe.certificates.certificate import Release
from dpframe.provenance import DIAGNOSED

_ATTRIBUTE = "dpframe_computed"
_WAYS = {
    "interval": "To publish them with it, use .dp.interval(join=True) of the release.",
    "percent": "To publish them with it, use .dp.percent(join=True) of the release.",
}
_ELSE = "The release itself has one, and can be published beside it."
_MOST = 3


def mark_diagnosis(frame: pd.DataFrame, releases: Iterable[Release], call: str) -> pd.DataFrame:
    """Note on a frame which call computed it, and of which releases."""
    named = dict.fromkeys(one.release_id for one in releases)
    frame.attrs = {_ATTRIBUTE: {"by": call, "releases": list(named)}}
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


_HEADING = "Not for publication: exact numbers of the private frame, without noise."
_CHARGED = "Nothing was charged."


class Diagnosis(pd.DataFrame):  # type: ignore[misc, unused-ignore]  # pandas may have no types
    """A frame of exact, private numbers, for the eyes of the curator alone.

    It says so wherever it is shown, in `attrs`, and so do most frames that pandas makes of it:
    all but those that are built anew.
    """

    @property
    def _constructor(self) -> Callable[..., "Diagnosis"]:
        return Diagnosis

    @classmethod
    def of(cls, frame: pd.DataFrame) -> "Diagnosis":
        """Mark a frame."""
        marked = cls(frame)
        marked.attrs[DIAGNOSED] = f"{_HEADING} {_CHARGED}"
        return marked

    def __repr__(self) -> str:
        """Show the frame under a heading."""
        return f"{_HEADING} {_CHARGED}\n{super().__repr__()}"

    def _repr_html_(self) -> str | None:
        """Show the frame under a heading in a notebook."""
        table = super()._repr_html_()  # type: ignore[misc, unused-ignore]  # not in its stubs
        return None if table is None else f"<p><b>{_HEADING}</b> {_CHARGED}</p>{table}"

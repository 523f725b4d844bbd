"""Frames of exact, private numbers: marked, so that nothing here takes one for a release."""

from collections.abc import Callable

import pandas as pd

from dpframe.provenance import DIAGNOSED

_HEADING = "Not for publication: exact numbers of the private frame, without noise."
_CHARGED = "Nothing was charged."


class Diagnosis(pd.DataFrame):  # type: ignore[misc]  # pandas has no types
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
        table = super()._repr_html_()
        return None if table is None else f"<p><b>{_HEADING}</b> {_CHARGED}</p>{table}"

"""Frames that are shown in a way of their own: previews, suggestions and marked diagnoses."""

import math
import shutil
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pandas as pd

from dpframe.arguments import visible
from dpframe.certificates.certificate import TEST, Release
from dpframe.html import scrolling
from dpframe.provenance import DIAGNOSED

_ATTRIBUTE = "dpframe_computed"
_WAYS = {"interval": "To publish them with it, use .dp.interval(join=True) of the release."}
_ELSE = "The release itself has one, and can be published beside it."
_MOST = 3  # releases that are listed


def mark_diagnosis(frame: pd.DataFrame, releases: Iterable[Release], call: str) -> pd.DataFrame:
    """Note on a frame which call computed it, and of which releases."""
    named = dict.fromkeys(release.release_id for release in releases)
    frame.attrs = {_ATTRIBUTE: {"by": call, "releases": list(named)}}
    return frame


def about_computed(attrs: Mapping[Any, Any]) -> str | None:
    """Say what such a frame is, and what to publish; `None` where there is no note.

    Examples
    --------
    >>> about_computed({"dpframe_computed": {"by": "combine", "releases": ["734b"]}})[:56]
    'this frame was computed by .dp.combine from release 734b'
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


NOTE = "dpframe_note"
"""The name in `attrs` of a sentence that is shown with a frame."""

_PRIVATE = (
    "Not for publication: exact numbers of the private frame, without noise. Nothing was charged."
)
_MOST_COLUMNS = 40  # that are shown
_TABLE = "table"  # the level of previews that names tables by their columns
_PLAIN = 1e-4, 1e15  # numbers between these are shown without an exponent


class _WordedFrame(pd.DataFrame):  # type: ignore[misc, unused-ignore]  # pandas may have no types
    """A frame that is shown with a sentence above it, or below it."""

    _above = ""

    @property
    def _below(self) -> str:
        return ""

    def as_shown(self) -> pd.DataFrame:
        """Return what is shown of it."""
        return pd.DataFrame(self)

    def _options(self) -> AbstractContextManager[object]:
        return nullcontext()

    def __repr__(self) -> str:
        """Show the frame and the sentences."""
        with self._options():
            table = repr(self.as_shown())
        return "\n".join(filter(None, [self._above, table, self._below]))

    def _repr_html_(self) -> str | None:
        """Show the frame and the sentences in a notebook, where a wide table scrolls."""
        with self._options():
            table = self.as_shown()._repr_html_()  # type: ignore[operator, unused-ignore]
        if table is None:
            return None
        above = f"<p><b>{self._above}</b></p>" * bool(self._above)
        below = f"<p>{self._below}</p>" * bool(self._below)
        return f"{above}{scrolling(table)}{below}"


class Noted(_WordedFrame):
    """A frame that is shown with a sentence about it; what pandas makes of it is not."""

    @property
    def _below(self) -> str:
        return str(self.attrs.get(NOTE, ""))


class ShownFrame(_WordedFrame):
    """A frame that shows all its columns, below each other where a terminal is too narrow.

    Numbers are rounded, and names of tables are words, where it is shown and not in the frame.
    """

    digits_shown = 6

    @property
    def _constructor(self) -> Callable[..., "ShownFrame"]:
        return type(self)

    def as_shown(self) -> pd.DataFrame:
        """Return what is shown of it."""
        shown = super().as_shown()
        if not isinstance(self.columns, pd.MultiIndex):
            shown.columns = pd.Index(map(_in_words, self.columns), name=self.columns.name)
        if isinstance(self.index, pd.MultiIndex) and _TABLE in self.index.names:
            levels = self.index.to_frame()
            levels[_TABLE] = levels[_TABLE].map(_by)
            shown.index = pd.MultiIndex.from_frame(levels)
        return shown

    def _options(self) -> AbstractContextManager[object]:
        wide = max(shutil.get_terminal_size((100, 24)).columns, 80)
        columns = "display.max_columns", _MOST_COLUMNS, "display.width", wide
        hints = "display.max_colwidth", None  # a hint that is cut does not help
        return pd.option_context(*columns, *hints, "display.float_format", self._number)

    def _number(self, value: float) -> str:
        return plain_number(value, self.digits_shown)


def plain_number(value: float, digits: int) -> str:
    """Show a number with so many digits, without an exponent unless it is tiny or enormous.

    Examples
    --------
    >>> [plain_number(number, 4) for number in (822.0807, 1048576.0, 0.1065834, 3.0, 1e-06)]
    ['822.1', '1048576', '0.1066', '3', '1e-06']
    """
    size = abs(value)
    if not _PLAIN[0] <= size < _PLAIN[1]:
        return f"{value:.{digits}g}"
    shown = f"{value:.{max(digits - 1 - math.floor(math.log10(size)), 0)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _by(columns: object) -> str:
    """Name a table by its columns."""
    return visible(", ".join(map(str, columns)) if isinstance(columns, tuple) else str(columns))


def _in_words(label: Hashable) -> Hashable:
    """Say which output of which table and query a label is of; others are as they are.

    Examples
    --------
    >>> _in_words(("trips", ("zone", "hour"), "count")), _in_words(("trips", "count"))
    ('trips: count by zone, hour', 'trips: count')
    """
    if not isinstance(label, tuple):
        return label
    *above, name = label
    query = "".join(f"{part}: " for part in above if not isinstance(part, tuple))
    by = "".join(f" by {_by(part)}" for part in above if isinstance(part, tuple) and part)
    return visible(f"{query}{name}{by}")


class Diagnosis(ShownFrame):
    """A frame of exact, private numbers, for the eyes of the curator alone.

    It says so wherever it is shown, in `attrs`, and so do most frames that pandas makes of it:
    all but those that are built anew.
    """

    _above = _PRIVATE

    @classmethod
    def of(cls, frame: pd.DataFrame) -> "Diagnosis":
        """Mark a frame."""
        marked = cls(frame)
        marked.attrs[DIAGNOSED] = _PRIVATE
        return marked


class TestTable(_WordedFrame):
    """A released table that was made inside a testing block; it says so wherever it is shown."""

    __test__ = False  # pytest collects classes of such names
    _above = TEST

    @property
    def _constructor(self) -> Callable[..., "TestTable"]:
        return type(self)


def mark_test(frame: pd.DataFrame, releases: Iterable[Release]) -> None:
    """Let a table say that it is a test, if it is; the object that others hold already."""
    if any(release.testing for release in releases):
        frame.__class__ = TestTable

"""Entries of a ledger, what became of their runs, and hashes of its rows, in lists that only grow.

Each state of a ledger looks at the beginning of the lists that it knows, so that a charge costs the
same whatever was charged before.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dpframe.ledger.parts import Part
from dpframe.privacy.amounts import PrivacyLoss, Spend


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What a ledger keeps of the source that a release read; all of it is public.

    Parameters
    ----------
    manifest
        SHA-256 of what is public about the source, in hexadecimal.
    door
        What reads it, where nobody can tell which files that are; `None` elsewhere.
    unit
        The kinds of values of each column of the privacy unit; `None`: not known.
    part
        The kinds of values of the column of parts; `None`: not known, or there is none.
    """

    manifest: str
    door: str | None = None
    unit: tuple[str | None, ...] = ()
    part: str | None = None

    def joined(self, later: "SourceFacts") -> "SourceFacts":
        """Return the same with what a later one knows beside it."""
        unit = tuple(one or other for one, other in zip(self.unit, later.unit, strict=False))
        return SourceFacts(self.manifest, self.door, unit, self.part or later.part)


@dataclass(frozen=True, slots=True)
class Entry:
    """One release in a ledger.

    Parameters
    ----------
    release_id
        Identifier, also in the certificate of what was released; no other release has it.
    released_at
        When, as an ISO 8601 time in UTC.
    what
        The queries in words.
    mechanism
        Name of the mechanism.
    spend
        How the amount was given.
    loss
        What it costs.
    name
        Name that no other release of the ledger has; `None`: none was given.
    note
        What was noted with it.
    user
        Who released it, as the system calls them; `None` where it does not know.
    frame, unit, columns
        The names of the frame and of its privacy unit, and the private columns read.
    part
        The part of the data that alone was read; `None`: all of them.
    plan
        SHA-256 of the plan file that it was made by, in hexadecimal; `None`: by none. Only these
        can be run again.
    source
        What is kept of the source of its rows; `None`: nothing.
    """

    release_id: str
    released_at: str
    what: str
    mechanism: str
    spend: Spend
    loss: PrivacyLoss
    name: str | None = None
    note: str | None = None
    user: str | None = None
    frame: str | None = None
    unit: str | None = None
    columns: tuple[str, ...] = ()
    part: Part | None = None
    plan: str | None = None
    source: SourceFacts | None = None


RUN_ROWS = ("again", "noise", "drawn", "written", "lost")
"""What rows say of a run, beside its entry."""


class RunMark(NamedTuple):
    """A row about a run of a plan that was charged before, or about a move of the ledger.

    Parameters
    ----------
    number
        Number of the row.
    what
        "again": it was begun again, for nothing; "noise": its noise is about to be drawn; "drawn":
        what was drawn is kept; "written": its files are; "lost": it was given up. Of a move:
        "leaving", "left", and "arrived", where the ledger is now. Of a row: "void", by the keeper;
        and "voided", the row itself.
    release_id
        Identifier of its release; of a move, the other place; of a row, its number.
    epoch
        How often the run was begun again before it wrote this.
    nonce
        Tells the rows of rivals apart, which say the same.
    digests
        SHA-256 of the spool, or of the files.
    who, why
        Of a run that was given up.
    """

    number: int
    what: str
    release_id: str
    epoch: int = 0
    nonce: str = ""
    digests: tuple[str, ...] = ()
    who: str = ""
    why: str = ""


class Log:
    """What a ledger recorded up to some row; later logs share its lists."""

    __slots__ = ("_entries", "_hashes", "_ids", "_marked", "_marks", "_names", "_sizes")

    def __init__(self) -> None:
        self._hashes: list[str] = []
        self._entries: list[Entry] = []
        self._ids: dict[str, int] = {}  # of releases, and where their entries are
        self._names: dict[str, int] = {}
        self._marks: list[RunMark] = []
        self._marked: dict[str, list[RunMark]] = {}  # the same, by release
        self._sizes = 0, 0, 0

    def __eq__(self, other: object) -> bool:
        """Compare what was charged."""
        return isinstance(other, Log) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.entries)

    @property
    def hashes(self) -> tuple[str, ...]:
        """Hashes of all rows."""
        return tuple(self._hashes[: self.rows])

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries."""
        return tuple(self._entries[: self.releases])

    @property
    def rows(self) -> int:
        """Number of rows, those that are no entries included."""
        return self._sizes[0]

    @property
    def releases(self) -> int:
        """Number of entries."""
        return self._sizes[1]

    @property
    def marks(self) -> Sequence[RunMark]:
        """Rows about runs that were charged before."""
        return self._marks[: self._sizes[2]]

    def marks_of(self, release_id: str) -> list[RunMark]:
        """Give the rows that say something of a run, in order."""
        own = self._marked.get(release_id, ())
        return [mark for mark in own if mark.number < self.rows]

    @property
    def head(self) -> str:
        """Hash of the last row."""
        return self._hashes[self.rows - 1]

    def latest(self, most: int) -> tuple[Entry, ...]:
        """Give the last entries, at most so many."""
        return tuple(self._entries[max(self.releases - most, 0) : self.releases])

    def latest_of(self, part: Part | None, most: int) -> tuple[Entry, ...]:
        """Give the last entries that count against a part, or against all parts."""
        if part is None:
            return self.latest(most)
        own: list[Entry] = []
        for place in reversed(range(self.releases)):
            if len(own) == most:
                break
            if self._entries[place].part in (None, part):
                own.append(self._entries[place])
        return tuple(reversed(own))

    def with_id(self, release_id: str) -> Entry | None:
        """Find the entry of a release."""
        return self._at(self._ids.get(release_id))

    def with_name(self, name: str) -> Entry | None:
        """Find the first entry of a name, whichever way its accents are encoded."""
        return self._at(self._names.get(_compose_accents(name)))

    def _at(self, place: int | None) -> Entry | None:
        return None if place is None or place >= self.releases else self._entries[place]

    def plus(
        self, hashes: Sequence[str], entries: Sequence[Entry], marks: Sequence[RunMark] = ()
    ) -> "Log":
        """Add rows, some of which are entries, or about runs."""
        grown = Log()
        if (len(self._hashes), len(self._entries), len(self._marks)) == self._sizes:
            grown._hashes, grown._entries, grown._marks = self._hashes, self._entries, self._marks
            grown._ids, grown._names, grown._marked = self._ids, self._names, self._marked
        else:  # what was added before came to nothing
            grown._add(self.hashes, self.entries, self.marks)
        grown._add(hashes, entries, marks)
        return grown

    def apart(self) -> "Log":
        """Return the same with lists of its own: another ledger adds to them under another lock."""
        return Log().plus(self.hashes, self.entries, self.marks)

    def _add(
        self, hashes: Sequence[str], entries: Sequence[Entry], marks: Sequence[RunMark]
    ) -> None:
        first = len(self._entries)
        self._hashes.extend(hashes)
        self._entries.extend(entries)
        self._marks.extend(marks)
        for mark in marks:
            self._marked.setdefault(mark.release_id, []).append(mark)
        ids, names = self._ids, self._names
        for place, entry in enumerate(entries, start=first):
            ids.setdefault(entry.release_id, place)
            name = entry.name
            if name is not None:
                names.setdefault(name if name.isascii() else _compose_accents(name), place)
        self._sizes = len(self._hashes), len(self._entries), len(self._marks)


def _compose_accents(name: str) -> str:
    return unicodedata.normalize("NFC", name)

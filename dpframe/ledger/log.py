"""Entries of a ledger, whom it protects, what became of their runs, and hashes of its rows.

Entries and hashes stand in lists that only grow: each state of a ledger looks at the beginning of
the lists that it knows, so that a charge costs the same whatever was charged before.
"""

import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

from dpframe.arguments import is_unicode
from dpframe.errors import DeclarationError, DPFrameError, pip_install
from dpframe.frozen import frozen
from dpframe.ledger.parts import Part
from dpframe.privacy.amounts import PrivacyLoss, Spend, float_above, float_below
from dpframe.privacy.neighbors import Neighboring, check_neighboring

_KEY = "protected"  # tells its row from those of entries


@frozen(slots=True)
class Protected:
    """Whom all releases charged to one ledger protect, together.

    Losses add up for one unit and one relation only: a count of rows is free where neighbors have
    equally many, and is the private fact itself where they do not.

    Parameters
    ----------
    unit
        Name of the privacy unit; `None`: each row is a unit.
    neighboring
        The neighboring relation.
    """

    unit: str | None
    neighboring: Neighboring

    @classmethod
    def of(
        cls, unit_columns: Sequence[Hashable], neighboring: Neighboring, unit: str | None
    ) -> "Protected":
        """Name the unit of a frame after its columns, unless it has a name.

        Several columns are "aircraft in one week": a unit is one of these.

        Raises
        ------
        DeclarationError
            If the name is not usable.
        """
        if unit is None:
            named = " in one ".join(map(str, unit_columns)) if unit_columns else None
            return cls(named, neighboring)
        if not isinstance(unit, str) or not unit or not is_unicode(unit):
            rule = "must be a text, the name of the privacy unit"
            raise DeclarationError.about("unit", rule, unit, 'For instance, unit="patient".')
        if not unit_columns:
            rule = "names a privacy unit, and none is declared"
            remedy = "Name its column with privacy_unit=."
            raise DeclarationError.about("unit", rule, unit, remedy)
        return cls(unit, neighboring)

    @classmethod
    def in_row(cls, read: Any) -> "Protected | None":
        """Read a row's body; `None` for a row of another kind.

        Raises
        ------
        DeclarationError, KeyError, TypeError
            If it is of no form that was ever written.
        """
        if not isinstance(read, dict) or _KEY not in read:
            return None
        unit, neighboring = read[_KEY]["unit"], read[_KEY]["neighboring"]
        if not isinstance(unit, str | None):
            raise TypeError
        return cls(unit, check_neighboring(neighboring))

    def row(self) -> dict[str, Any]:
        """Write it as the body of a row."""
        return {_KEY: asdict(self)}

    def __str__(self) -> str:
        """Say it in the words of a declaration."""
        who = "each row" if self.unit is None else f"the unit {self.unit!r}"
        return f"{who} under neighboring={self.neighboring!r}"


@frozen(slots=True)
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
        kinds = zip(self.unit, later.unit, strict=False)
        unit = tuple(kind or later_kind for kind, later_kind in kinds)
        return SourceFacts(self.manifest, self.door, unit, self.part or later.part)


@frozen(slots=True)
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

    @property
    def share(self) -> Fraction | None:
        """The share that was asked for; `None`: the amount was given in another way."""
        return self.spend.amount if self.spend.kind == "share" else None


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
        marks = self._marked.get(release_id, ())
        return [mark for mark in marks if mark.number < self.rows]

    @property
    def head(self) -> str:
        """Hash of the last row."""
        return self._hashes[self.rows - 1]

    def latest_of(self, part: Part | None, most: int) -> list[Entry]:
        """Give the last entries, at most so many: all, or those that count against a part."""
        entries = (self._entries[place] for place in reversed(range(self.releases)))
        counting = (entry for entry in entries if part is None or entry.part in (None, part))
        return list(islice(counting, most))[::-1]

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
            if entry.name is not None:
                names.setdefault(_compose_accents(entry.name), place)
        self._sizes = len(self._hashes), len(self._entries), len(self._marks)


def _compose_accents(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def dp_event(losses: Iterable[PrivacyLoss]) -> Any:
    """Describe losses to the accountants of dp_accounting.

    A Gaussian loss of mu becomes `GaussianDpEvent(1 / mu)`, its noise multiplier rounded down. A
    pure epsilon becomes `DiscreteLaplaceDpEvent(epsilon, 1)`, rounded up: its loss is epsilon or
    -epsilon, as that of randomized response, which dominates every epsilon-DP mechanism (Kairouz,
    Oh and Viswanath 2015). `LaplaceDpEvent` would be that of continuous noise, which loses less.
    An extra delta becomes `EpsilonDeltaDpEvent(0, delta)` where the installed dp_accounting
    knows it, and else `UnsupportedDpEvent()`, at which its accountants refuse rather than forget
    the delta. Equal losses are grouped.

    Returns
    -------
    dp_accounting.DpEvent
        The composed event; `NoOpDpEvent()` where nothing was spent.

    Raises
    ------
    DPFrameError
        If dp_accounting is not installed.
    """
    try:
        from dp_accounting import dp_event as module  # optional, and slow to import
    except ImportError as error:
        reason = "events need dp_accounting, which is not installed"
        raise DPFrameError(f"{reason}: {pip_install('accounting')}.") from error
    events = [
        module.SelfComposedDpEvent(event, count) if count > 1 else event
        for loss, count in Counter(losses).items()
        for event in _of_one(loss, module)
    ]
    return module.ComposedDpEvent(events) if events else module.NoOpDpEvent()


def _of_one(loss: PrivacyLoss, module: Any) -> Iterator[Any]:
    """Describe one loss; floats are taken as the binary numbers that they are to others."""
    if loss.mu_squared:
        yield module.GaussianDpEvent(float_below(1 / Fraction(loss.mu)))
    if loss.epsilon:
        yield module.DiscreteLaplaceDpEvent(float_above(loss.epsilon), 1)
    if loss.delta:
        plain = getattr(module, "EpsilonDeltaDpEvent", None)
        above = float_above(loss.delta)
        yield plain(0.0, above) if plain else module.UnsupportedDpEvent()

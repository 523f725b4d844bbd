"""Entries of a ledger, as exact text, chained by hash.

Each row of a ledger has a number, a body and a hash: row 0 is the header, with the budget and the
pots that were settled for it; one says whom the ledger protects, once a frame is declared; some
say what became of a run of a plan, or where the ledger was moved; the others are entries. The hash
of a row is SHA-256 of the hash before it and the body, which is canonical JSON with exact fractions
as text.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field, fields, replace
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from operator import itemgetter
from types import NoneType
from typing import Any, NamedTuple

from dpframe.errors import CalibrationError, LedgerAlteredError, LedgerError
from dpframe.frozen import frozen
from dpframe.ledger.log import RUN_ROWS, Entry, Log, Protected, RunMark, SourceFacts
from dpframe.ledger.parts import Filled, Fullest, Part, PartStates, may_be_part
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend, SpendKind, exact
from dpframe.privacy.pots import KINDS, Pot, Pots, PotsOfParts, Priced, settle_pots

FORMAT = 5
"""Version of what rows mean."""

_START = "0" * 64  # the hash before the first row
_decode = json.JSONDecoder().raw_decode
# what reading a made-up row may raise: it is no JSON, has 1/0, or ten thousand brackets
_MISREAD = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
_LONG = 10_000  # bits; Python writes and reads no longer integers as decimals
MOST_CHARACTERS = 100_000
"""Characters of a fraction: longer ones take seconds to reduce."""

LOSS_KEYS = ("epsilon", "mu_squared", "delta")
_MOVES = ("leaving", "left", "arrived")
_VOID, _VOIDED = "void", "voided"
_PLAIN_MARKS = (*_MOVES, _VOID)
KEYS_OF_RUN = frozenset(("release_id", "epoch", "nonce", "digests", "who", "why"))
"""What a row about a run says."""
_MOST_POTS, _HIGHEST_ORDER = 100, 10**15  # six, and 10**13


class Row(NamedTuple):
    """A row of a ledger: its number, its body as canonical JSON, and its hash."""

    number: int
    body: str
    hash: str


@frozen(slots=True)
class Chain:
    """A ledger as it is known so far: what its rows say, and their hashes.

    Parameters
    ----------
    ledger_id
        Identifier of the ledger.
    budget
        The total.
    log
        What was charged, in order, and the hashes of all rows, that of the header first.
    pots
        What was settled when the ledger was made, filled by the entries; where the budget is for
        every part of the data, by those of all parts.
    settled
        The same, empty.
    shares
        Sum of the shares of entries that were spent by share, of the same entries.
    protected
        Whom the ledger protects; `None`: no frame was declared with it yet.
    protected_in
        Number of the row that says so.
    part
        The column whose values have a budget each; `None`: there is one for everything.
    parts
        What was charged to one part alone, by part.
    fullest
        The states of parts beside which least fits.
    moved
        What was said last of a move; `None`: it was never moved.
    source
        What is known of the sources of all entries; `None`: nothing.
    """

    ledger_id: str
    budget: Budget
    log: Log
    pots: Pots
    settled: Pots
    shares: Fraction = Fraction(0)
    protected: Protected | None = None
    protected_in: int = 0
    part: str | None = None
    parts: PartStates = field(default_factory=PartStates)
    fullest: Fullest = field(default_factory=Fullest, compare=False)
    moved: RunMark | None = None
    source: SourceFacts | None = None

    @property
    def moved_to(self) -> str | None:
        """Where a ledger is that left; `None`: it is here."""
        moved = self.moved
        return None if moved is None or moved.what == "arrived" else moved.release_id

    @property
    def rows_that_left(self) -> int:
        """Number of rows until a ledger was closed to be moved, what closed it included."""
        assert self.moved is not None  # noqa: S101  # it is closed
        return self.moved.number + (self.moved.what == "leaving")

    @property
    def entry_hashes(self) -> tuple[str, ...]:
        """Hashes of the entries alone."""
        others = {0, self.protected_in, *(mark.number for mark in self.log.marks)}
        rows = enumerate(self.log.hashes)
        return tuple(digest for number, digest in rows if number not in others)

    @classmethod
    def start(cls, ledger_id: str, budget: Budget, part: str | None = None) -> tuple["Chain", Row]:
        """Start a ledger, with its header."""
        pots = settle_pots(budget)
        content = {
            "format": FORMAT,
            "ledger_id": ledger_id,
            "budget": {name: _text(exact(amount)) for name, amount in asdict(budget).items()},
            "pots": [_json_of_pot(pot) for pot in pots.pots],
            "many": [_json_of_pot(pot) for pot in pots.many],
            "small": _text(pots.small),
            "whole": _text(pots.largest_mu_squared),
            "part": part,
        }
        body = _canonical(content)
        header = Row(0, body, _hash(_START, body))
        return cls(ledger_id, budget, Log().plus([header.hash], []), pots, pots, part=part), header

    @classmethod
    def of_rows(cls, rows: Sequence[Row], where: str, *, voiding: bool = False) -> "Chain":
        """Read a whole ledger; to void one of them, pass over all rows that may be.

        Raises
        ------
        LedgerError
            If the rows do not form a chain, or their meaning is not known.
        """
        if not rows or rows[0].number != 0 or rows[0].hash != _hash(_START, rows[0].body):
            raise LedgerAlteredError(broken(where, 0))
        try:
            read = json.loads(rows[0].body)
            version = read["format"]
            if version == FORMAT:
                amounts = {name: float(_fraction(text)) for name, text in read["budget"].items()}
                budget = Budget(**amounts)
                # as they were settled: another version would perhaps settle other ones
                filled = _settled(read, budget)
                log = Log().plus([rows[0].hash], [])
                part = read["part"]
                if not isinstance(part, str | None):
                    raise TypeError
                chain = cls(str(read["ledger_id"]), budget, log, filled, filled, part=part)
        except _MISREAD as error:
            raise LedgerError(_unreadable(where, 0)) from error
        if version != FORMAT:
            raise LedgerError(other_format(where, version))
        return chain.extend(rows[1:], where, voiding=voiding)

    def extend(self, rows: Sequence[Row], where: str, *, voiding: bool = False) -> "Chain":
        """Read rows that follow, each of which must continue the chain.

        One that cannot be read counts for nothing if it is no charge, and a later row voids it.

        Raises
        ------
        LedgerError
            If one does not.
        """
        seen, head, entries, hashes = self, self.log.head, [], []
        marks: list[RunMark] = []
        by_part = self.part is not None
        for number, row in enumerate(rows, start=self.log.rows):
            body = row.body
            if row.number != number or row.hash != _hash(head, body):
                raise LedgerAlteredError(broken(where, number))
            head = row.hash
            hashes.append(head)
            try:
                read, end = _decode(body)
                if end != len(body):
                    raise ValueError
                if (protected := Protected.in_row(read)) is not None:
                    seen = seen._protecting(protected, number)
                elif len(read) == 1 and (mark := _mark_in(read, number)) is not None:
                    marks.append(mark)
                else:
                    entries.append(_entry_of(read, by_part=by_part))
            except _MISREAD as error:
                may_be_void = not _may_be_charge(body)
                if not (may_be_void and (voiding or number in _voided_in(rows))):
                    reason = _unreadable(where, number, may_be_void=may_be_void)
                    raise LedgerError(reason) from error
                marks.append(RunMark(number, _VOIDED, str(number)))
        return seen._grown(hashes, entries, marks) if hashes else self

    def with_entry(self, entry: Entry) -> tuple["Chain", Row]:
        """Append an entry."""
        row = self._row(_json_of(entry))
        return self._grown([row.hash], [entry]), row

    def with_text(self, name: str, text: str) -> tuple["Chain", Row]:
        """Append where the ledger goes, or which row is void."""
        row = self._row({name: text})
        return self._grown([row.hash], [], [RunMark(row.number, name, text)]), row

    def with_mark(self, mark: RunMark) -> tuple["Chain", Row]:
        """Append what becomes of a run that was charged before."""
        row = self._row({mark.what: {name: getattr(mark, name) for name in KEYS_OF_RUN}})
        return self._grown([row.hash], [], [mark._replace(number=row.number)]), row

    def before(self, release_id: str) -> "Chain":
        """Return the ledger as it was when a release was charged, to plan with."""
        entries = self.log.entries
        place = next(at for at, entry in enumerate(entries) if entry.release_id == release_id)
        emptied = replace(self, log=Log(), pots=self.settled, shares=Fraction(0))
        emptied = replace(emptied, parts=PartStates(), fullest=Fullest())
        return emptied._grown(self.log.hashes, entries[:place])

    def _row(self, content: dict[str, Any]) -> Row:
        """Make the row that follows."""
        body = _canonical(content)
        return Row(self.log.rows, body, _hash(self.log.head, body))

    def filled_by(self, part: Part | None) -> tuple[Pots, Fraction]:
        """Give the pots and the shares of a part; `None`: of all parts, for what counts in each."""
        if part is not None:
            state = self.parts.get(part)
            if state is None:
                return self.pots, self.shares
            return state.with_common(self.pots).pots, state.shares + self.shares
        states = self.fullest.states(self.parts, self.pots)
        if not states:
            return self.pots, self.shares
        shares = max(state.shares for state in states)
        return PotsOfParts.of([state.pots for state in states]), self.shares + shares

    def _grown(
        self, hashes: Sequence[str], entries: Sequence[Entry], marks: Sequence[RunMark] = ()
    ) -> "Chain":
        """Add what was charged, whether it fits or not: all that is recorded counts."""
        log, pots, shares = self.log.plus(hashes, entries, marks), self.pots, self.shares
        source = _joined(self.source, entries)
        if entries:  # the very first, of whatever part, settles the pots of all
            pots = pots.begun_with(entries[0].loss)
        moved = next((mark for mark in reversed(marks) if mark.what in _MOVES), self.moved)
        charged = _count(pots, entries)
        if None in charged:
            pots, shares = _fill(pots, shares, charged.pop(None))
        grown = replace(self, log=log, pots=pots, shares=shares, moved=moved, source=source)
        if self.part is None:
            return grown
        changed: dict[Part, Filled] = {}
        alike: dict[frozenset[Any], Filled] = {}  # many parts are charged the same
        for part, charges in charged.items():
            assert part is not None  # noqa: S101  # it was taken out
            before = self.parts.get(part)
            if before is not None:
                before = before.with_common(pots)
                changed[part] = Filled(*_fill(before.pots, before.shares, charges), pots)
                continue
            key = frozenset(charges.items())
            if key not in alike:
                alike[key] = Filled(*_fill(pots, Fraction(0), charges), pots)
            changed[part] = alike[key]
        fullest = Fullest(self.fullest, changed)
        return replace(grown, parts=self.parts.plus(changed), fullest=fullest)

    def with_protected(self, protected: Protected) -> tuple["Chain", Row]:
        """Append whom the ledger protects, which nothing said before."""
        row = self._row(protected.row())
        seen = self._protecting(protected, row.number)
        return replace(seen, log=self.log.plus([row.hash], [])), row

    def _protecting(self, protected: Protected, number: int) -> "Chain":
        if self.protected is not None:
            raise ValueError
        return replace(self, protected=protected, protected_in=number)


def _joined(source: SourceFacts | None, entries: Iterable[Entry]) -> SourceFacts | None:
    """Join what entries say of their sources; what is read of equal ones is one object."""
    for later in {id(entry.source): entry.source for entry in entries}.values():
        if later is not None and later is not source:
            source = later if source is None else source.joined(later)
    return source


@frozen(slots=True, eq=False)
class _Charge:
    """A loss, priced, with the share that it was given as; 0 if it was not."""

    priced: Priced
    share: Fraction


def _count(pots: Pots, entries: Iterable[Entry]) -> dict[Part | None, dict[_Charge, int]]:
    """Count what was charged, by part: of entries that are read, equal amounts are one object."""
    charges: dict[tuple[int, int], _Charge] = {}
    counted: dict[Part | None, dict[_Charge, int]] = {}
    for entry in entries:
        loss, spend = entry.loss, entry.spend
        charge = charges.get((id(loss), id(spend)))
        if charge is None:
            share = entry.share or Fraction(0)
            charge = charges[id(loss), id(spend)] = _Charge(pots.price(loss), share)
        times = counted.setdefault(entry.part, {})
        times[charge] = times.get(charge, 0) + 1
    return counted


def _fill(pots: Pots, shares: Fraction, charged: Mapping[_Charge, int]) -> tuple[Pots, Fraction]:
    """Charge what was counted to some pots."""
    for charge, times in charged.items():
        if charge.share:
            shares += times * charge.share
    return pots.filled([(charge.priced, times) for charge, times in charged.items()]), shares


def other_format(where: str, version: object) -> str:
    """Say that a ledger is of another version."""
    return (
        f"the ledger {where} is of format {version!r}, and this version of dpframe reads format "
        f"{FORMAT}. Open it with the version that wrote it."
    )


def news_after(rows: list[Row], number: int, head: str, where: str, kept: str) -> list[Row]:
    """Return the rows that follow one that was seen, which is to be the first.

    Raises
    ------
    LedgerAlteredError
        If it is not there any more; `kept` names what is to be put back.
    """
    seen_row = rows[:1] and rows[0].number == number
    if seen_row and rows[0].hash == head:
        return rows[1:]
    change = "is not the one read before" if seen_row else "is missing"
    reason = f"the ledger {where} was replaced or changed: entry {number} {change}."
    remedy = f"Nothing is charged to it. Put back the {kept} with the latest entries."
    raise LedgerAlteredError(f"{reason} {remedy}")


def broken(where: str, number: int) -> str:
    """Say that a ledger was changed."""
    row = "its header, entry 0," if number == 0 else f"entry {number}"
    return (
        f"the ledger {where} was changed: {row} does not continue the chain of hashes. Nothing is "
        "charged to it. Restore the file from a copy, and compare ledger.head with the hash that "
        "was written down; certificates of releases show what else was spent."
    )


def form_was_changed(where: str) -> str:
    """Say that not the rows of a ledger were changed, but what keeps them."""
    return (
        f"the ledger {where} was changed: its table or the triggers that protect entry 0 and all "
        "after it are not as they were made. Restore it from a copy."
    )


def _unreadable(where: str, number: int, *, may_be_void: bool = False) -> str:
    reason = f"entry {number} of the ledger {where} was not written by this version of dpframe."
    remedy = "Open it with the version that wrote it."
    if may_be_void:
        remedy = f"{remedy} Or, as its keeper: dpframe ledger {where} --void {number}."
    return f"{reason} {remedy}"


def _may_be_charge(body: str) -> bool:
    """Whether a row that cannot be read may say what was spent: no later row takes that back."""
    try:
        read, _ = _decode(body)
    except _MISREAD:
        return False
    return isinstance(read, dict) and not read.keys().isdisjoint(("loss", "spend"))


def _voided_in(rows: Iterable[Row]) -> set[int]:
    """List the rows that others of some rows void."""
    numbers = set()
    for row in rows:
        with suppress(*_MISREAD):
            if row.body.startswith(f'{{"{_VOID}":'):
                numbers.add(int(_decode(row.body)[0][_VOID]))
    return numbers


def _hash(before: str, body: str) -> str:
    return sha256(f"{before}\n{body}".encode()).hexdigest()


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _text(value: Fraction) -> str:
    """Write a fraction exactly; with very many digits, in hexadecimal."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) < _LONG:
        return str(value)
    text = f"{value.numerator:#x}/{value.denominator:#x}"
    if len(text) > MOST_CHARACTERS:
        rule = f"an amount must be a fraction of at most {MOST_CHARACTERS:,} digits:"
        remedy = "nothing was charged. Give a number with fewer."
        raise CalibrationError(f"{rule} {remedy}", parameter="epsilon")
    return text


def _fraction(text: str) -> Fraction:
    if len(text) > MOST_CHARACTERS:
        raise ValueError
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator, 0), int(denominator or "1", 0))


def _json_of(entry: Entry) -> dict[str, Any]:
    spend, loss = entry.spend, entry.loss
    return {
        **{name: getattr(entry, name) for name in _AS_GIVEN},
        "spend": {"kind": spend.kind, "amount": _text(spend.amount), "delta": spend.delta},
        "loss": {name: _text(getattr(loss, name)) for name in LOSS_KEYS},
        "source": None if entry.source is None else asdict(entry.source),
    }


def _mark_in(read: dict[str, Any], number: int) -> RunMark | None:
    """Read what a row says of a run, or of a move; `None` if it is an entry."""
    name = next(iter(read), None)
    if name not in (*RUN_ROWS, *_PLAIN_MARKS):
        return None
    if name in RUN_ROWS:
        return _mark_of_run(read[name], number, name)
    if type(read[name]) is not str:
        raise TypeError
    if name == _VOID:
        int(read[name])
    return RunMark(number, name, read[name])


def _mark_of_run(read: dict[str, Any], number: int, name: str) -> RunMark:
    if read.keys() != KEYS_OF_RUN or type(read["digests"]) is not list:
        raise TypeError
    mark = RunMark(number, name, **{**read, "digests": tuple(read["digests"])})
    texts = (mark.release_id, mark.nonce, mark.who, mark.why, *mark.digests)
    if type(mark.epoch) is not int or not all(type(text) is str for text in texts):
        raise TypeError
    if mark.epoch < 0 or (name == "drawn" and len(mark.digests) != 1):
        raise ValueError
    return mark


_values_of = itemgetter(*(field.name for field in fields(Entry)))
_texts_of = itemgetter("release_id", "released_at", "what", "mechanism")
_others_of = itemgetter("name", "note", "user", "frame", "unit", "plan")  # which may be missing


def _entry_of(read: dict[str, Any], *, by_part: bool) -> Entry:
    if read.keys() != ENTRY_KEYS:
        raise TypeError
    part, columns = read["part"], tuple(read["columns"])
    # sets of types, and no keywords: a ledger may have many thousands of entries
    if {*map(type, _texts_of(read)), *map(type, columns)} != {str}:
        raise TypeError
    if not {*map(type, _others_of(read))} <= {str, NoneType}:
        raise TypeError
    if part is not None and not (by_part and type(part) is str and may_be_part(part)):
        raise ValueError
    read["spend"], read["loss"] = _spend_of(**read["spend"]), _loss_of(**read["loss"])
    read["columns"], read["source"] = columns, _source_of(read["source"])
    return Entry(*_values_of(read))


ENTRY_KEYS = frozenset(field.name for field in fields(Entry))
"""What is said of each entry."""

_AS_GIVEN = ENTRY_KEYS - {"loss", "source", "spend"}


def _source_of(read: dict[str, Any] | None) -> SourceFacts | None:
    return None if read is None else _facts_of(**{**read, "unit": tuple(read["unit"])})


@lru_cache(maxsize=1024)  # equal ones are one object: only others are joined
def _facts_of(
    *, manifest: str, door: str | None, unit: tuple[str | None, ...], part: str | None
) -> SourceFacts:
    texts = (door, part, *unit)
    is_sound = all(text is None or type(text) is str for text in texts)
    if not is_sound or type(manifest) is not str:
        raise TypeError
    return SourceFacts(manifest, door, unit, part)


@lru_cache(maxsize=1024, typed=True)
def _spend_of(*, kind: SpendKind, amount: str, delta: float | None) -> Spend:
    fraction = _fraction(amount)
    float(fraction)  # as with losses
    return Spend(kind, fraction, delta)


@lru_cache(maxsize=1024)  # most releases of a ledger cost the same
def _loss_of(*, epsilon: str, mu_squared: str, delta: str) -> PrivacyLoss:
    loss = PrivacyLoss(_fraction(epsilon), _fraction(mu_squared), _fraction(delta))
    amounts = loss.epsilon, loss.mu_squared, loss.delta
    if min(amounts) < 0:
        raise ValueError  # what is spent is never given back
    float(max(amounts))  # raises where no float is so large: nothing shows it
    return loss


def _json_of_pot(pot: Pot) -> dict[str, str]:
    return {"kind": pot.kind, **{name: _text(value) for name, value in asdict(pot).items()}}


def _settled(read: dict[str, Any], budget: Budget) -> Pots:
    settled = _pots_of(read["pots"]), _fraction(read["whole"]), exact(budget.discovery)
    many = read.get("many")  # earlier ledgers have one set
    if not many:
        return Pots(*settled)
    return Pots(*settled, many=_pots_of(many), small=_fraction(read["small"]))


def _pots_of(read: list[dict[str, str]]) -> tuple[Pot, ...]:
    pots = []
    for record in read:
        amounts = {name: _fraction(text) for name, text in record.items() if name != "kind"}
        pots.append(KINDS[record["kind"]](**amounts))
    sound = all(pot.limit >= 0 and 1 < getattr(pot, "order", 2) <= _HIGHEST_ORDER for pot in pots)
    if not (sound and 0 < len(pots) <= _MOST_POTS):
        raise ValueError
    return tuple(pots)

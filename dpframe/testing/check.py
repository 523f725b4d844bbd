"""The check of a pipeline: what it lets out, with and without one privacy unit at a time."""

import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import pandas as pd

from dpframe.context import cached_property
from dpframe.errors import DPFrameError, PrivacyTestError, UnknownColumnError
from dpframe.testing.comparing import RunOutcome, difference, watch
from dpframe.testing.neighbors import Splitter, TriedUnit, unit_columns
from dpframe.testing.recorder import CHARGE, INVARIANCE, Draw, Replay, Run, excess_words

_ADDITIVITY = "additivity"
_EMPTY = "on an empty frame"

ADVICE = {
    "result": "Something exact reached what is returned: all of it must come from releases.",
    "printed": "What is printed must not depend on the frame.",
    "logged": "What is logged must not depend on the frame.",
    "warned": "No warning may depend on the frame: change what warns, so that it never does.",
    "error": (
        "No error may depend on the frame: a pipeline runs on any cells, and on no rows. Convert "
        "with errors='coerce'."
    ),
    "files": "Something exact reached a file: all of it must come from releases.",
    "ledgers": "What is charged must not depend on the frame.",
    "facts": (
        "Bounds, keys, caps and queries must be written down, and not be read off the frame; or "
        "find them with .dp.suggest_bounds, .dp.discover and .dp.suggest_caps."
    ),
    "additivity": (
        "What a unit adds depends on others. Usual causes: rank, qcut, head after sorting, sample, "
        "drop_duplicates, category codes, group means, ffill, merges, cleaned ids. Prepare rows "
        "one by one, or grouped by the unit."
    ),
    "charge": (
        "What a unit adds is the same beside others and alone. Unless the pipeline changes whom a "
        "row belongs to, the fault is in dpframe: publish nothing, and report this "
        "(docs/security.md)."
    ),
    "units": (
        "Declare whom a row belongs to, privacy_unit=, with the column as it came, and caps; do "
        "not number people anew, and do not multiply rows after the declaration."
    ),
}
"""What to change in a pipeline, by what depends on a unit."""


class _Tries(Replay):
    """A replay that is compared by `check`, and not when its block ends."""

    def finish(self) -> None:
        """Leave it to `check`."""


class _Pipeline:
    """A pipeline that is checked, and what it did with the whole frame."""

    def __init__(
        self,
        pipeline: Callable[[pd.DataFrame], Any],
        frame: pd.DataFrame,
        unit: Hashable | list[Hashable] | None,
        folder: str | os.PathLike[str] | None,
    ) -> None:
        self.call, self.frame, self.folder = pipeline, frame, folder
        self.unit = unit
        self.run = Run(folder)
        self.first = watch(pipeline, frame, self.run)
        if self.first.raised is not None:
            reason = f"the pipeline failed on the whole frame: {self.first.error}"
            raise PrivacyTestError(reason, rule="failure") from self.first.raised
        if not self.run.measured:
            reason = "the pipeline released nothing inside of the check, so nothing was checked."
            raise PrivacyTestError(reason, rule="no effect")

    def replay(
        self, frame: pd.DataFrame, words: str, unit: Any = None, *, rule: str = INVARIANCE
    ) -> tuple[Draw, ...]:
        """Run it on another frame, and refuse whatever differs but exact integers."""
        block = _Tries(self.run, self.folder)
        try:
            again = watch(self.call, frame, block)
        except PrivacyTestError as fault:
            if not fault.rule or fault.rule == "outside":
                raise
            broken = CHARGE if fault.rule == CHARGE else "facts"
            kind = fault.rule if rule == INVARIANCE else rule
            raise self._error(kind, f"{words}, {fault}", broken, unit, fault.draw) from None
        self._compare(again, words, unit, rule)
        number, before = len(block.measured), len(self.run.measured)
        if number != before:
            wrong = f"{words}, {number} releases were made, and {before} with all"
            raise self._error(rule, wrong, "result", unit, number)
        return block.measured

    @cached_property
    def nothing(self) -> tuple[Draw, ...]:
        """What is measured of no rows."""
        return self.replay(self.frame.iloc[:0], _EMPTY)

    def _compare(self, again: RunOutcome, words: str, unit: Any, rule: str) -> None:
        if again.raised is not None and words == _EMPTY:
            reason = f"the pipeline fails {words}: {again.error}"
            raise self._error("empty frame", reason, "error") from again.raised
        differing = difference(self.first, again)
        if differing is not None:
            part, wrong = differing
            raise self._error(rule, f"{words}, {wrong}", part, unit)

    def _error(
        self, rule: str, wrong: str, broken: str, unit: Any = None, draw: int | None = None
    ) -> PrivacyTestError:
        if rule == "repetition":
            remedy = (
                "It differs by itself: a clock, uuid4, temporary names, a shuffle or a sample "
                "without random_state=, or something kept from one run to the next. Give it fixed "
                "ones, and keep nothing."
            )
        else:
            other = self._other_unit() if broken in (_ADDITIVITY, CHARGE) else ""
            # whoever declares other units is not told to report a fault of ours
            cause = "units" if other and broken == CHARGE else broken
            remedy = f"{other}{ADVICE.get(cause, 'It must not depend on the frame.')}"
        text = f"{rule}: {wrong.removesuffix('.')}.\n{remedy}"
        return PrivacyTestError(text, rule=rule, unit=unit, draw=draw)

    def _other_unit(self) -> str:
        """Say that the pipeline declares other units than are checked, if it does."""
        checked = tuple(unit_columns(self.unit))
        for draw in self.run.measured:
            declared = draw._operation.declaration.unit_columns
            if declared != checked:
                units = [_unit_words(columns) for columns in (declared, checked)]
                return f"The pipeline declares that {units[0]}; the check, that {units[1]}.\n"
        return ""

    def repeat(self) -> None:
        """Run it once more on the same frame."""
        draws = self.replay(self.frame, "run twice on the same frame", rule="repetition")
        for number, pair in enumerate(zip(self.run.measured, draws, strict=True)):
            if pair[0].differs_from(pair[1]):
                wrong = f"run twice on the same frame, draw {number} measures other numbers"
                raise self._error("repetition", wrong, "", draw=number)

    def check_charge(
        self, base: tuple[Draw, ...], other: tuple[Draw, ...], words: str, unit: Any
    ) -> None:
        """Compare what a unit moves with what was charged."""
        for number, pair in enumerate(zip(base, other, strict=True)):
            cost = pair[0].cost(pair[1])
            if cost > pair[0].allowed:
                wrong = f"draw {number}: {words}, {excess_words(pair[0], float(cost))}"
                raise self._error(CHARGE, wrong, CHARGE, unit, number)

    def check_sums(
        self, runs: tuple[tuple[Draw, ...], ...], words: str, unit: Any, beside: str
    ) -> None:
        """Compare what a unit adds beside others with what it adds alone; see `check`."""
        for number, (a, b, c, d) in enumerate(zip(*runs, strict=True)):
            if a.kind == "selection":
                continue
            excess = Draw.excess([(1, a), (-1, b), (-1, c), (1, d)])
            if excess:
                wrong = (
                    f"draw {number} ({a.what!r:.120}): what {words} adds beside others is not what "
                    f"it adds {beside}: {'; '.join(excess[:2])}"
                )
                raise self._error(_ADDITIVITY, wrong, _ADDITIVITY, unit, number)


def check(
    pipeline: Callable[[pd.DataFrame], Any],
    frame: pd.DataFrame,
    *,
    unit: Hashable | list[Hashable] | None = None,
    units: int = 50,
    odd_cells: bool = True,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
) -> Run:
    """Check that a pipeline lets out no more of one privacy unit than it charges for.

    The pipeline runs on the whole frame, and its noisy numbers are frozen. Then it runs without a
    unit, on the unit alone, and on no rows, for some units of the frame and some made-up ones.
    Three rules must hold of every unit u.

    *Invariance*: but for the exact integers that noise hides, all runs are equal to the last bit:
    results with index, dtypes, columns and certificates, entries of ledgers, warnings, logs,
    output, files and errors.

    *Charge*: ``sum over groups of (|m(D) - m(D - u)| / scale)^p <= charged``, with m the integers
    measured of a frame, D the frame, and p the norm of the law of the noise.

    *Additivity*: ``m(D) - m(D - u) = m(u) - m(nothing)``. Totals are sums over units; what depends
    on others, such as a rank, is not. Quantiles of `mechanism="select"` are left out.

    Where all releases have the relation "replace", a unit is replaced by another one in place of
    left out, beside everybody else and where all others are replaced, too.

    Passing is no proof: the check sees the frames that it tries. It sees no time, no memory, no
    other process, no file but those that dpframe and Python open, nothing that modules, caches or
    variables of the process keep from one run to the next, and not whether noise has its law.

    Parameters
    ----------
    pipeline
        A function from a private frame of pandas to what is published: preparation, declaration
        and releases. It is given copies, and runs twice for every unit that is tried.
    frame
        The frame, or a made-up one like it.
    unit
        The column that says whom a row belongs to, or a list of several, as in `declare`. `None`:
        every row is a unit.
    units
        How many units of the frame are tried: those that stand out first, then random ones.
    odd_cells
        Whether made-up units have missing, infinite, extreme and unknown cells, in one column at
        a time. `False`: where something before the pipeline refuses such, a schema for instance.
    seed
        Decides on the units that are tried.
    folder
        As for `record`.

    Returns
    -------
    Run
        The run on the whole frame: `measured` says what was measured.

    Raises
    ------
    PrivacyTestError
        If a rule is broken, naming it, the unit, the draw and what to change; if the pipeline
        fails, differs when it runs twice, or does not depend on any unit. It is no `Exception`.
    DPFrameError
        If the frame is none of pandas, or a number is out of range.
    UnknownColumnError
        If the frame has no column of units of that name.

    Examples
    --------
    >>> import pandas as pd
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"rider": [1, 1, 2, 3], "zone": ["A", "B", "A", "C"]})
    >>> def publish(trips):
    ...     trips.dp.declare(keys={"zone": ["A", "B"]}, privacy_unit="rider", max_rows=2)
    ...     return trips.dp.count("zone", epsilon=1)
    >>> run = check(publish, trips, unit="rider")
    >>> run.measured[0].integers
    (array([2, 1]),)
    >>> def publish_riders(trips):
    ...     return publish(trips).assign(riders=trips["rider"].nunique())
    >>> check(publish_riders, trips, unit="rider")
    Traceback (most recent call last):
    dpframe.errors.PrivacyTestError: invariance: ...
    """
    _check_arguments(frame, unit, units)
    tried = _Pipeline(pipeline, frame, unit, folder)
    try:
        tried.repeat()
    except PrivacyTestError as fault:
        if fault.rule != "repetition":
            raise
        tried = _second_try(pipeline, frame, unit, folder, fault)
    declarations = [draw._operation.declaration for draw in tried.run.measured]
    splitter = Splitter(frame, unit, declarations)
    if all(declaration.neighboring == "replace" for declaration in declarations):
        moved = _check_replaced(tried, splitter, units, seed)
    else:
        made_up = splitter.made_up(declarations, seed)
        moved = _check_units(tried, [*splitter.of_frame(units, seed), *made_up])
        odd = [*splitter.odd(declarations, seed)] * odd_cells  # last: such break most
        moved = _check_units(tried, odd) or moved
    if not moved:
        reason = "no unit that was tried moves any number that is measured, so nothing was checked"
        remedy = "Is unit= right, do declared keys occur, and is nothing kept from run to run?"
        raise PrivacyTestError(f"no effect: {reason}. {remedy}", rule="no effect")
    return tried.run


def _unit_words(columns: Sequence[Hashable]) -> str:
    if not columns:
        return "every row is a unit"
    return f"units are in {', '.join(map(repr, columns)):.80}"


def _second_try(
    pipeline: Callable[[pd.DataFrame], Any],
    frame: pd.DataFrame,
    unit: Hashable | list[Hashable] | None,
    folder: str | os.PathLike[str] | None,
    fault: PrivacyTestError,
) -> _Pipeline:
    """Try once more whether a pipeline repeats itself, now that all is loaded that is loaded once.

    Raises
    ------
    PrivacyTestError
        The first fault, if it does not.
    """
    try:
        tried = _Pipeline(pipeline, frame, unit, folder)
        tried.repeat()
    except PrivacyTestError:
        raise fault from None
    return tried


def _check_arguments(frame: object, unit: Hashable | list[Hashable] | None, units: object) -> None:
    if not isinstance(frame, pd.DataFrame):
        remedy = "Let the pipeline make other kinds of frames of it."
        raise DPFrameError.about("frame", "must be a pandas.DataFrame", frame, remedy)
    columns, labels = unit_columns(unit), [*frame.columns]
    twice = any(columns.count(label) > 1 or labels.count(label) != 1 for label in columns)
    if twice or (unit is not None and not columns):
        rule = "must be one column of the frame, or a list of several"
        raise UnknownColumnError.about("unit", rule, unit)
    if type(units) is not int or units < 1:
        raise DPFrameError.about("units", "must be a whole number, 1 or more", units)


def _check_units(tried: _Pipeline, chosen: Sequence[TriedUnit]) -> bool:
    """Check units that are left out or added; return whether one moves anything."""
    beside = [_with_and_without(tried, person) for person in chosen]
    moved, nothing = False, tried.nothing
    for person, (with_all, without) in zip(chosen, beside, strict=True):
        alone = tried.replay(person.alone, f"with {person.name} alone", person.unit)
        if not person.capped:
            tried.check_sums((with_all, without, alone, nothing), person.name, person.unit, "alone")
        tried.check_charge(with_all, without, f"with and without {person.name}", person.unit)
        tried.check_charge(alone, nothing, f"with {person.name} alone and nobody", person.unit)
        moved = moved or _moves(with_all, without) or _moves(alone, nothing)
    return moved


def _with_and_without(
    tried: _Pipeline, person: TriedUnit
) -> tuple[tuple[Draw, ...], tuple[Draw, ...]]:
    """Run it with and without a unit, one of which is the frame as it is."""
    if person.whole is not None:
        return tried.replay(person.whole, f"with {person.name}", person.unit), tried.run.measured
    assert person.without is not None  # noqa: S101  # of one of the two, there is a frame
    return tried.run.measured, tried.replay(person.without, f"without {person.name}", person.unit)


def _check_replaced(tried: _Pipeline, splitter: Splitter, units: int, seed: int) -> bool:
    """Check units that are replaced by another; return whether that moves anything."""
    moved, everybody = False, None
    for person, all_replaced in splitter.replacing(units, seed):
        if everybody is None:
            everybody = tried.replay(all_replaced, "with everybody replaced")
        assert person.without is not None  # noqa: S101  # it is given for each
        without = tried.replay(person.without, f"with {person.name} replaced", person.unit)
        alone = tried.replay(person.alone, f"with all but {person.name} replaced", person.unit)
        with_all = tried.run.measured
        runs = with_all, without, alone, everybody
        tried.check_sums(runs, person.name, person.unit, "beside others")
        tried.check_charge(with_all, without, f"with {person.name} replaced", person.unit)
        tried.check_charge(alone, everybody, f"with {person.name} replaced, too", person.unit)
        moved = moved or _moves(with_all, without)
    return moved


def _moves(base: tuple[Draw, ...], other: tuple[Draw, ...]) -> bool:
    return any(a.differs_from(b) for a, b in zip(base, other, strict=True))

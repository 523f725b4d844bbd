"""Covering arrays: cases that hold all combinations of a few features, found greedily."""

import itertools
import random
from dataclasses import dataclass, field

from support.features import FEATURES, NAMES, completed, possible

_TRIES = 20  # random cases of which the one that covers most is taken
PLAIN = {"engine": 0.8, "where": 0.4, "weights": 0.7, "part": 0.7, "known": 0.7}
"""How often a feature has its first value where it is free: plain ones hide others less."""
_REFUSALS = 10  # cases that cannot be asked before a combination counts as left out


@dataclass
class Covering:
    """What an array holds.

    Parameters
    ----------
    sets
        The sets of features of which all combinations are to be covered.
    cases
        The cases asked, with what they gave.
    refused
        Those that could not be asked, with what was said.
    left_out
        Combinations of which no case could be asked.
    """

    sets: list
    cases: list = field(default_factory=list)
    refused: list = field(default_factory=list)
    left_out: list = field(default_factory=list)


def combinations_of(case, sets):
    """The combinations that a case covers."""
    return {tuple((name, case[name]) for name in names) for names in sets}


def wanted_of(sets, fixed):
    """All combinations of which there are cases that no rule forbids, in a fixed order."""
    combinations = (
        tuple(zip(names, values, strict=True))
        for names in sets
        for values in itertools.product(*(FEATURES[name] for name in names))
    )
    return [one for one in combinations if _is_wanted(dict(one), fixed)]


def _is_wanted(part, fixed):
    if any(part.get(name, value) != value for name, value in fixed.items()):
        return False
    return possible(part | fixed) and completed(part | fixed) is not None


def cover(sets, fixed, ask, seed):
    """Cover all combinations of some sets of features by cases that can be asked.

    Parameters
    ----------
    sets
        Sets of features.
    fixed
        Features that have the same value in all cases.
    ask
        From a case to what it gives; raises `RefusedError` where it cannot be asked. Such a case
        covers nothing: what it was for is tried in others.
    seed
        Of the random choices.
    """
    dice = random.Random(seed)
    found, wanted = Covering(sets), wanted_of(sets, fixed)
    dice.shuffle(wanted)
    left, seen = set(wanted), set()
    for combination in wanted:
        for _ in range(_REFUSALS):
            if combination not in left:
                break
            case = _best_case(dict(combination) | fixed, sets, left, seen, dice)
            if case is None:
                break
            seen.add(tuple(case.values()))
            try:
                given = ask(case)
            except RefusedError as refusal:
                found.refused.append((case, str(refusal)))
                continue
            found.cases.append((case, given))
            left -= combinations_of(case, sets)
        if combination in left:
            found.left_out.append(combination)
            left.discard(combination)
    return found


def cases_of(sets, fixed, seed):
    """Cases that cover all combinations, if all of them can be asked."""
    return [case for case, _ in cover(sets, fixed, lambda case: None, seed).cases]


class RefusedError(Exception):
    """A case cannot be asked."""


def _best_case(part, sets, left, seen, dice):
    """Of some random cases with a part, the one that covers most of what is left."""
    best, most = None, 0
    for _ in range(_TRIES):
        case = _complete(dict(part), dice)
        if case is None or tuple(case.values()) in seen:
            continue
        covered = len(combinations_of(case, sets) & left)
        if covered > most:
            best, most = case, covered
    return best


def _complete(case, dice):
    """Give the other features random values, one by one, as rules allow; `None`: there are none."""
    others = [name for name in NAMES if name not in case]
    for name in dice.sample(others, len(others)):
        allowed = [value for value in FEATURES[name] if possible(case | {name: value}, name)]
        if not allowed:
            return None
        plain = dice.random() < PLAIN.get(name, 0.0)
        case[name] = allowed[0] if plain else dice.choice(allowed)
    return {name: case[name] for name in NAMES}

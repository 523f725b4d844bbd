"""Replays of a call on a neighbor, and the rules that they are judged by.

- *invariance*: with the noisy numbers frozen, nothing else differs between neighbors, to the last
  bit: what is returned, warned of, logged, printed, raised and charged;
- *charge*: what a unit moves is charged, once and in full;
- *additivity*: what is measured of a whole frame is what is measured of its parts, units apart;
- *noise*: every integer that is handed out has a fresh draw, of the law and scale that is claimed;
- *chance*: a label that one unit alone has is published as rarely as its delta says.
"""

import math
from collections import Counter
from contextlib import ExitStack, contextmanager
from itertools import chain, count
from typing import NamedTuple
from unittest import mock

import mpmath
import numpy as np
from support.plans import parts_of

from dpframe.errors import PrivacyTestError
from dpframe.privacy import box, laws, selection, staircase
from dpframe.privacy import law as drawing
from dpframe.privacy.laplace import LAPLACE_CURVE
from dpframe.testing.comparing import difference, watch
from dpframe.testing.recorder import Draw, Replay, Run

RULES = ("invariance", "charge", "additivity", "noise", "chance")


class Finding(NamedTuple):
    """A rule that was broken, and how."""

    rule: str
    how: str


class Replayed(NamedTuple):
    """A call that was replayed on a neighbor.

    Parameters
    ----------
    found
        What breaks a rule.
    runs
        How often the call was made.
    used
        The largest part of what was charged that the neighbor moves.
    """

    found: list[Finding]
    runs: int
    used: float = 0.0


def replay(ask, pair, word=0):
    """Replay a call on a neighbor, and look for what breaks a rule.

    Parameters
    ----------
    ask
        From the rows of a frame to what was released of it.
    pair
        The neighbors.
    word
        Stands in for random words by which rows are chosen.
    """
    run = Run(word=word)
    try:
        seen = watch(ask, pair.whole, run)
        again = run.replay()
        seen_again = watch(ask, pair.neighbor, again)
    except PrivacyTestError as fault:
        return Replayed([Finding(fault.rule, str(fault))], 2)
    differs = difference(seen, seen_again)
    found = [] if seen.error is None else [Finding("invariance", f"it fails: {seen.error}")]
    found += [] if differs is None else [Finding("invariance", differs[1])]
    found += [Finding("chance", one) for draw in run.measured for one in too_likely(draw)]
    if found:
        return Replayed(found, 2)
    parts = [_measured(ask, rows, run) for rows in (pair.mine, pair.theirs)]
    for draws in zip(run.measured, again.measured, *parts, strict=True):
        terms = list(zip((1, -1, -1, 1), draws, strict=True))
        found += [Finding("additivity", one) for one in Draw.excess(terms)]
    both = zip(run.measured, again.measured, strict=True)
    return Replayed(found, 4, max(float(a.cost(b) / (a.allowed or 1)) for a, b in both))


class _Part(Replay):
    """Some of the rows, with the labels that were found in all of them."""

    def finish(self):
        """Compare nothing: these are no neighbors."""


def _measured(ask, rows, first):
    in_rounds = any(len(draw.scales) > 1 for draw in first.measured if draw.kind == "labels")
    run = _Part(first, word=first.word) if in_rounds else Run(word=first.word)
    with run:
        ask(rows)
    return run.measured


# Chances of labels ---------------------------------------------------------------------------


def chance_of_a_label(threshold):
    """P(one of k labels of a single unit is published), in 50 digits, from the laws as documented.

    A label of one unit is published for noise of T less its weight, or more; in a round of a set,
    the number of labels is the one that makes it the likeliest. The noise is of the discrete
    Laplace law with `P(Y = y)` proportional to `exp(-|y| / s)`, or a normal number that is rounded.
    """
    rounds, norm = (*threshold.before, threshold), threshold.law.norm
    one = 2**20 if threshold.before else threshold.weights[0]
    many = range(1, threshold.labels + 1) if threshold.before else [threshold.labels]
    with mpmath.workdps(60):
        weights = {m: math.isqrt(one**2 // m) if norm == 2 else one // m for m in many}
        weights = weights if threshold.before else {threshold.labels: one}
        return mpmath.fsum(
            max(_chance_of(own, own.least - w, m) for m, w in weights.items()) for own in rounds
        )


def _chance_of(threshold, least, labels):
    s = mpmath.mpf(threshold.scale)
    if threshold.law.norm == 1:
        tail = mpmath.exp(-least / s) / (1 + mpmath.exp(-1 / s))
    else:
        tail = mpmath.erfc((least - mpmath.mpf(1) / 2) / s / mpmath.sqrt(2)) / 2
    return -mpmath.expm1(labels * mpmath.log1p(-tail))


def too_likely(draw):
    """Say whether a lone label is published more often than what was charged allows."""
    if draw.kind != "labels":
        return []
    threshold = draw._operation.threshold
    charged = draw.charged.delta
    with mpmath.workdps(60):
        delta = mpmath.mpf(charged.numerator) / charged.denominator
        chance = chance_of_a_label(threshold)
        if chance <= delta:
            return []
        return [
            f"a lone label is published with {mpmath.nstr(chance, 6)}, {float(delta):.6g} charged"
        ]


# Names in place of noise ----------------------------------------------------------------------


class Drawn(NamedTuple):
    """Which draw a number is of: the curve, the scale, the call, and the cell of it."""

    curve: object
    scale: float
    call: int
    cell: int


_CURVES = {laws.BOX: ("box", LAPLACE_CURVE), laws.STAIRCASE: ("staircase",)}
"""What draws noise of the laws that have no curve of their own; one alone in a box is Laplace."""


class Tags:
    """Numbers in place of noise: each is handed out once, and says which draw it is."""

    def __init__(self):
        self.known: dict[int, Drawn] = {}
        self._next, self._calls = count(2**40), count()

    @contextmanager
    def instead_of_noise(self):
        """Replace the samplers."""
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(drawing, "integer_noise", self._integers))
            stack.enter_context(mock.patch.object(box, "box_noise", self._box))
            stack.enter_context(mock.patch.object(selection, "geometric", self._geometric))
            stack.enter_context(mock.patch.object(staircase, "staircase_noise", self._staircase))
            yield

    def _named(self, curve, scales):
        call = next(self._calls)
        return np.array([self._name(curve, s, call, at) for at, s in enumerate(scales)], np.int64)

    def _name(self, curve, scale, call, cell):
        if not scale:
            return 0
        number = next(self._next)
        self.known[number] = Drawn(curve, scale, call, cell)
        return number

    def _integers(self, curve, scale, size, context):
        return self._named(curve, np.broadcast_to(np.asarray(scale, float), (size,)).tolist())

    def _box(self, scales, size, context):
        call = next(self._calls)
        return [
            np.array([self._name("box", s, call, at) for at in range(size)], np.int64)
            for s in scales
        ]

    def _staircase(self, scale, size, context):
        return self._named("staircase", [scale] * size)

    def _geometric(self, scale, size, context):
        self._named("geometric", [scale] * size)
        return np.arange(size) % 7  # any selection will do

    # What is wrong with a run that drew them

    def faults(self, draws):
        """Say which integers of some draws have no noise of their own."""
        used: set[int] = set()
        found = []
        for draw in draws:
            judge = {"noise": self._of_tables, "labels": self._of_labels}.get(draw.kind)
            found += self._of_selection(draw) if judge is None else judge(draw, used)
        unused = [one for number, one in self.known.items() if number not in used]
        if any(one.curve != "geometric" for one in unused) and not found:
            hidden = sum(draw.kind == "labels" for draw in draws)  # labels below the threshold
            found += [] if hidden else [f"{len(unused)} draws are in no number"]
        return found

    def _of_tables(self, draw, used):
        plan, found = draw._operation.plan, []
        triples = zip(parts_of(plan), draw._exact, draw._published, strict=True)
        for measured, exact, noisy in triples:
            found += self._of_blocks(measured.law, measured, _apart(noisy, exact), used)
        return found

    def _of_blocks(self, law, measured, noise, used):
        design, found = measured.design, []
        profile = None if design.layers is None else design.layers.profile.tolist()
        curves = _CURVES.get(law) or (law.curve,)
        for k, (block, scale) in enumerate(zip(noise, measured.scales, strict=True)):
            for at, number in enumerate(block):
                claimed = scale if profile is None else scale * profile[at]
                if claimed:
                    found += self._of_one(number, curves, claimed, used, f"{k}[{at}]")
                elif number:
                    found.append(f"{k}[{at}]: noise without a scale")
        if law.inside == "max" and profile is None and not found:
            found += self._of_boxes(measured, noise)
        return found

    def _of_one(self, number, curves, claimed, used, where):
        drawn = self.known.get(number)
        if drawn is None:
            return [f"{where}: no fresh draw"]
        wrong = []
        if number in used:
            wrong.append(f"{where}: a draw is used twice")
        used.add(number)
        if drawn.scale != claimed:
            wrong.append(f"{where}: scale {drawn.scale} is drawn, {claimed} is claimed")
        if drawn.curve not in curves:
            wrong.append(f"{where}: another law")
        return wrong

    def _of_boxes(self, measured, noise):
        """Coordinates of a box must be of one draw."""
        design, found = measured.design, []
        for position, group in enumerate(design.groups):
            moving = [k for k in group if measured.scales[k]]
            joined = design.joined and position == 0
            if len(moving) < 2 and not joined:
                continue
            numbers = [[noise[k][at] for at in range(len(noise[k]))] for k in moving]
            cells = [chain(*numbers)] if joined else zip(*numbers, strict=True)
            cells = list(map(list, cells))
            for cell in cells:
                if len({self.known[one].call for one in cell}) > 1:
                    found.append(f"group {group}: coordinates of a box are of several draws")
                elif not joined and len({self.known[one].cell for one in cell}) > 1:
                    found.append(f"group {group}: coordinates of a box are of several cells")
        return found

    def _of_labels(self, draw, used):
        threshold, found = draw._operation.threshold, []
        if threshold.before:
            return self._of_rounds(draw, threshold.rounds)
        noisy = draw._published
        labels = zip(*(column.tolist() for column in noisy.labels), strict=True)
        for label, number in zip(labels, noisy.units.tolist(), strict=True):
            own = number - draw.integers[label]
            found += self._of_one(own, (threshold.law.curve,), threshold.scale, used, repr(label))
        return found

    def _of_rounds(self, draw, rounds):
        """Of a set no number is published: every label of a round has a draw of its scale."""
        drawn = Counter((one.curve, one.scale) for one in self.known.values())
        labels = Counter(number for number, *_ in draw.integers)
        wanted = {(own.law.curve, own.scale): labels[at] for at, own in enumerate(rounds, 1)}
        return [] if drawn == Counter(wanted) else [f"draws {drawn}, labels {labels}"]

    def _of_selection(self, draw):
        scales = [one.scale for one in self.known.values() if one.curve == "geometric"]
        found = [] if set(scales) <= set(draw.scales) else ["a selection has another scale"]
        return found if len(scales) >= len(draw.integers) else [*found, "a selection has no noise"]


def _apart(noisy, exact):
    """Return the noise of every block, modulo 2**64."""
    return [
        (n.astype(np.int64) - e.astype(np.int64)).tolist()
        for n, e in zip(noisy, exact, strict=True)
    ]


def faults_of_noise(ask, frame):
    """Draw names in place of noise, and say what is wrong with them."""
    tags, run = Tags(), Run()
    with run, tags.instead_of_noise():
        ask(frame)
    return tags.faults(run.measured)

"""How far measured integers move between neighbors, exactly, beside what a plan claims."""

from fractions import Fraction

import numpy as np
from support.plans import parts_of

from dpframe.privacy.laws import STAIRCASE
from dpframe.privacy.neighbors import Caps

ALL_CAPS = [
    Caps(rows, groups, per_group)
    for rows, groups, per_group in [
        (1, None, None),
        (3, None, None),
        (4, 1, None),
        (2, 2, 1),
        (3, 2, 2),
        (4, 3, 2),
        (4, 2, 3),
        (None, 2, 1),
        (None, 1, 2),
        (None, 2, 2),
    ]
]


def allowed(plan):
    return plan.loss.mu_squared + plan.loss.epsilon  # one of them is 0


def cost_of(plan, steps):
    """Cost of a movement, exactly: for every block, by how much its integers move."""
    cost, at = Fraction(0), 0
    for part in parts_of(plan):
        own = steps[at : at + len(part.scales)]
        at += len(own)
        law = part.law
        lengths = [
            stairs_of(law, *each) if law is STAIRCASE else lengths_of(*each, law.norm)
            for each in zip(own, part.scales, strict=True)
        ]
        for position, group in enumerate(part.design.groups):
            mine = [lengths[k] for k in group]
            if law.inside == "sum" or (len(group) == 1 and not part.design.joined):
                cost += sum(map(sum, mine))
            elif part.design.joined and position == 0:
                cost += max(map(max, mine))
            else:
                cost += sum(map(max, zip(*mine, strict=True)))
    return cost


def lengths_of(steps, scale, norm):
    # a block without noise that moves would divide by zero
    return [Fraction(step) ** norm / Fraction(scale) ** norm if step else 0 for step in steps]


def stairs_of(law, steps, scale):
    # a stair is of D integers, and one that is crossed costs log(1 / b) whole
    stair = law.loss(1, scale) if scale else None
    return [-(-step // int(scale)) * stair if step else 0 for step in steps]


def farthest(plan, ones, others):
    """Largest cost of a movement over all pairs, exactly; the plan's claim bounds it."""
    laws = [part.law for part in parts_of(plan)]
    if any(law.inside == "max" or law is STAIRCASE for law in laws):
        worst = max(cost_of(plan, steps) for steps in _movements(ones, others))
    else:
        worst = _farthest_sum(plan, ones, others)
    assert worst <= allowed(plan)
    return worst


def _movements(ones, others):
    """All different movements between two frames."""
    found = {
        tuple(
            tuple(abs(int(step)) for step in np.asarray(after) - np.asarray(before))
            for before, after in zip(one, other, strict=True)
        )
        for one in ones
        for other in others
    }
    return list(found)


def _farthest_sum(plan, ones, others):
    """Do so where the costs of all integers add up."""
    scales = [scale for part in parts_of(plan) for scale in scales_of(part)]
    (norm,) = {part.law.norm for part in parts_of(plan)}  # laws of one plan add up alike
    moved = []
    for before, after in zip(zip(*ones, strict=True), zip(*others, strict=True), strict=True):
        steps = np.abs(np.array(before)[:, None] - np.array(after)[None])
        if steps.max() > 2**20:
            steps = steps.astype(object)  # squares would leave 64 bits
        moved.append((steps**norm).sum(axis=-1).ravel().tolist())
    worst = Fraction(0)
    for lengths in set(zip(*moved, strict=True)):
        # a block without noise that moves would divide by zero
        parts = [x / Fraction(s) ** norm for x, s in zip(lengths, scales, strict=True) if x]
        worst = max(worst, sum(parts, start=Fraction(0)))
    return worst


def scales_of(part):
    """The noise scale of every block, or of every integer where they are measured in layers."""
    if part.design.layers is None:
        return part.scales
    return [scale for one in part.scales for scale in (one * part.design.layers.profile).tolist()]


def reached(plan, worst):
    return worst >= allowed(plan) * (1 - Fraction(1, 10**9))

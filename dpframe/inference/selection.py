"""Intervals of cells that were chosen for their values: the law of a cell, given that it is shown.

The cut of a cell is fixed by all others. Where its noise is its own, the cell has the law of its
noise, cut off there; where it is not, or the choice is not known, a narrower level takes its place.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, assert_never

import numpy as np

from dpframe.cells.record import Opened
from dpframe.cells.verify import Shown
from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import ColumnPart
from dpframe.certificates.definitions import CutPart
from dpframe.certificates.mechanism_parts import LayersPart, SignsPart, ThresholdPart
from dpframe.privacy.law import Law
from dpframe.privacy.noise_sum import Value, norm
from dpframe.queries.edges import in_seconds

Sides: TypeAlias = tuple[np.ndarray, np.ndarray]

_OF_ANY_CHOICE = 0.1
"""Part of the misses that the interval under any choice may have (Andrews, Kitagawa, McCloskey)."""
_FAR = 2**53
"""An integer that no cell reaches: floats count up to it."""
_FUZZ = 1e-9  # of a step: how far a limit may be from the lattice that it stands for


class ChosenCells(NamedTuple):
    """How the cells of a column that are shown were chosen, as far as it changes intervals."""

    cells: int | None = None
    cuts: tuple[CutPart, ...] = ()


def level_of_chosen(level: float, cells: int, released: int) -> float:
    """Return the level of each of some intervals, of which a part `level` is to hold on average.

    It is `1 - (1 - level) R / m` for R of m cells, however they were chosen (Benjamini and
    Yekutieli 2005).

    Examples
    --------
    >>> round(level_of_chosen(0.95, 3, 12), 4)
    0.9875
    """
    return 1 - (1 - level) * cells / released


def choices_of(shown: Shown, chosen: str | None, *, sampling: bool) -> dict[str, ChosenCells]:
    """Return by column that is shown how its cells were chosen."""
    unexplained = set() if chosen == "keys" else _unexplained(shown)
    choices = {}
    for label in shown.labels:
        cells, released = shown.counts(label)
        if cells in (0, released):
            choices[label] = ChosenCells()
            continue
        cuts = _own_cuts(shown.opened, label)
        if cuts is None or label in unexplained or (cuts and sampling):
            choices[label] = ChosenCells(cells)
        else:
            choices[label] = ChosenCells(cells, cuts) if cuts else ChosenCells()
    return choices


def _unexplained(shown: Shown) -> set[str]:
    """Return the columns of which cells are hidden that the cuts would show."""
    opened = shown.opened
    if opened.table.published is not None:  # it does not say what was hidden otherwise
        return set(shown.labels)
    cuts = opened.table.cuts
    judges = {cut.column for cut in cuts if cut.column is not None}
    masks = {label: ~opened.columns[label].numbers.missing for label in {*shown.labels, *judges}}
    for cut in cuts:
        if cut.column is None:
            masks = {label: mask & passes(opened, label, cut) for label, mask in masks.items()}
        else:
            rows = masks[cut.column] & passes(opened, cut.column, cut)
            masks = {label: mask & rows for label, mask in masks.items()}
    return {label for label in shown.labels if (masks[label] & ~shown.seen[label]).any()}


def passes(opened: Opened, label: str, cut: CutPart) -> np.ndarray:
    """Tell which cells of a column are beyond a cut; where it is a value left out, none like it."""
    values = in_seconds(opened.frame_of([label]).iloc[:, 0], None)
    passed = np.asarray(~np.isnan(values))
    match cut.call:
        case "nlargest":
            return passed if cut.at is None else np.asarray(values > cut.at)
        case "nsmallest":
            return passed if cut.at is None else np.asarray(values < cut.at)
        case "suppress":
            if cut.at is not None:
                passed &= values >= cut.at
            if cut.relative_error is not None:
                error = np.full(len(values), np.nan)
                for release, column in _parts(opened, label):
                    error[release.places] = norm(column.deviations.values())
                passed &= error <= cut.relative_error * np.abs(values)
            return passed
        case _:
            assert_never(cut.call)


def _parts(opened: Opened, label: str) -> list[tuple[Release, ColumnPart]]:
    place = [part.label for part in opened.table.released].index(label)
    return [(release, release.columns[place]) for release in opened.certificate.releases]


def _own_cuts(opened: Opened, label: str) -> tuple[CutPart, ...] | None:
    """Return the cuts by the cells of a column; `None`: its noise had a part in other ones."""
    released = {part.label for part in opened.table.released}
    cuts = []
    for cut in opened.table.cuts:
        if cut.column in (None, label):
            cuts.append(cut)
        elif cut.column not in released or not _is_apart(opened, label, cut.column):
            return None
    independent = all(_noise_of_its_own(*part) for part in _parts(opened, label))
    return tuple(cuts) if independent or not cuts else None


def _noise_of_its_own(release: Release, column: ColumnPart) -> bool:
    """Whether each cell is a measured integer with noise of its own, of falling likelihoods."""
    noise = column.noise
    if noise is None or column.times is not None or noise.members > 1:
        return False
    match release.mechanism:
        case ThresholdPart():
            return True
        case LayersPart() | SignsPart():
            return False
    law, shared = release.noise.distribution, {*release.noise.shared_blocks}
    return law.shape == "norm" and not shared & column.deviations.keys()


def _is_apart(opened: Opened, label: str, judge: str) -> bool:
    pairs = zip(_parts(opened, label), _parts(opened, judge), strict=True)
    return all(_are_apart(release, column, other) for (release, column), (_, other) in pairs)


def _are_apart(release: Release, first: ColumnPart, second: ColumnPart) -> bool:
    if not (first.features and second.features) or isinstance(release.mechanism, LayersPart):
        return False
    noise = release.noise
    blocks = [
        {block for block in column.deviations if noise.scale_by_block.get(block, 1.0) > 0}
        for column in (first, second)
    ]
    groups = [{*group} for group in noise.drawn_together(release.query.cells)]
    linked = any(all(group & members for members in blocks) for group in groups)
    return not linked and not blocks[0] & blocks[1]


class Region(NamedTuple):
    """The integers that are shown: from `least` to `most`, but for those less than `gap` off 0.

    Between two integers, `least` shows a part of the lower one's mass.
    """

    least: Value = -_FAR
    most: Value = _FAR
    gap: int = 0

    def within(self, low: Value, high: Value) -> list[tuple[Value, Value]]:
        """Return the ends of the pieces of the region between two integers."""
        low, high = np.maximum(self.least, low), np.minimum(self.most, high)
        if not self.gap:
            return [(low, high)]
        return [(np.maximum(low, self.gap), high), (low, np.minimum(high, -self.gap))]


class OwnNoise(NamedTuple):
    """The noise of cells that were measured one by one."""

    law: Law
    scale: float
    step: float = 1.0  # how large one integer is, in the units of the column
    threshold: float | None = None  # least noisy number of units with which groups were found

    def region(self, cuts: Sequence[CutPart], y: np.ndarray) -> Region:
        """Return which integers are shown, by the cuts that they passed.

        The value left out may be shown for another cell: a cell is taken as beyond it where it is
        beyond it, which makes no interval hold less often.
        """
        least, most, gap = np.full(len(y), -_FAR), np.full(len(y), _FAR), 0
        error = self.law.standard_deviation(self.scale)
        for cut in cuts:
            at = None if cut.at is None else cut.at / self.step
            if cut.call == "nsmallest":
                most = most if at is None else np.minimum(most, np.maximum(y, round(at) - 1))
                continue
            if at is not None:
                first = round(at) + 1 if cut.call == "nlargest" else math.ceil(at - _FUZZ)
                least = np.maximum(least, np.minimum(y, first))
            if cut.relative_error is not None:
                gap = max(gap, math.ceil(error / cut.relative_error - _FUZZ))
        if self.threshold is not None:
            least = np.maximum(least, self.threshold)
        return Region(least, most, gap)

    def mass(self, n: np.ndarray, pieces: Sequence[tuple[Value, Value]]) -> np.ndarray:
        """Return how likely it is that n and noise are in pieces, each from end to end."""
        total = np.zeros(len(n))
        for low, high in pieces:
            near = 2 * n <= low + high  # from the side with the smaller tail
            first = np.where(near, low - n, n - high)
            after = np.where(near, high + 1 - n, n - low + 1)
            mass = self.law.at_least(self.scale, first) - self.law.at_least(self.scale, after)
            total += np.where(low < high + 1, mass, 0.0)
        return total


def selected_ends(
    y: np.ndarray, noise: OwnNoise, region: Region, level: float, within: Sides
) -> Sides:
    """Return the ends of intervals for the integers n that noisy ones y stand for.

    All n are in it for which neither `P(n + Y >= y)` nor `P(n + Y <= y)`, given that n + Y is in
    the region shown, is at most `(1 - level) / 2`, and all from there to y: next to the region's
    ends, y may be rare for each n. They are looked for within some ends.

    Examples
    --------
    >>> from dpframe.privacy.laws import LAPLACE
    >>> y = np.array([15, 17, 40])
    >>> selected_ends(y, OwnNoise(LAPLACE, 1.0), Region(15), 0.95, (np.ones_like(y), y + 3))
    (array([ 1,  1, 37]), array([17, 20, 43]))
    """
    first, last = within
    middle, tail = np.clip(y, first, last), (1 - level) / 2
    above, below = region.within(y, _FAR), region.within(-_FAR, y)
    all_pieces = region.within(-_FAR, _FAR)

    def is_enough(pieces: list[tuple[Value, Value]]) -> Callable[[np.ndarray], np.ndarray]:
        def holds(n: np.ndarray) -> np.ndarray:
            return noise.mass(n, pieces) > tail * noise.mass(n, all_pieces)

        return holds

    low = _first(is_enough(above), first, middle)
    enough = is_enough(below)
    beyond = _first(lambda n: ~enough(n), middle, last + 1)
    return low, np.maximum(beyond - 1, middle)


def chosen_ends(
    y: np.ndarray, noise: OwnNoise, level: float, cuts: Sequence[CutPart] = (), part: float = 1.0
) -> Sides:
    """Return the ends of intervals for the integers that noisy ones stand for, as they were chosen.

    Given cuts, those of their law at the level `1 - .9 (1 - level)` end where those under any
    choice do, at `1 - .1 (1 - level) R / m`: Laplace noise forgets how far off a cut is, and its
    law alone would reach to any distance.

    References
    ----------
    I. Andrews, T. Kitagawa and A. McCloskey, "Inference on winners", Quarterly Journal of Economics
    139(1), 2024. Y. Benjamini and D. Yekutieli, "False discovery rate-adjusted multiple confidence
    intervals for selected parameters", Journal of the American Statistical Association 100, 2005.
    """
    threshold = noise.threshold
    shown = y if threshold is None else np.maximum(y, math.floor(threshold))
    y, places = np.unique(shown, return_inverse=True)

    def uncut(level: float) -> Sides:
        width = noise.law.half_width(noise.scale, level)
        if threshold is None:
            return y - width, y + width
        return selected_ends(y, noise, Region(threshold), level, (np.ones_like(y), y + width))

    if not cuts:
        low, high = uncut(level)
    else:
        missed = 1 - level
        wide = uncut(1 - _OF_ANY_CHOICE * missed * part)
        level = 1 - (1 - _OF_ANY_CHOICE) * missed
        low, high = selected_ends(y, noise, noise.region(cuts, y), level, wide)
    return low[places], high[places]


def _first(
    holds: Callable[[np.ndarray], np.ndarray], start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Find the first integers at which something holds, as it does for all from there to an end."""
    while (start < end).any():
        middle = (start + end) // 2
        held = holds(middle)
        start, end = np.where(held, start, np.minimum(middle + 1, end)), np.where(held, middle, end)
    return end

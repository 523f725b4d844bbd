"""From which noisy number of units on a label may be published, though it was not known before.

A unit has at most k labels. Per label the units are counted, integer noise Y is added, and the
label is published with its noisy number where that is T or more. A label that one unit alone has is
hidden with probability `P = P(Y <= T - 2)`; with all but probability `1 - P^k` all labels that a
unit adds are hidden.

**Charge.** The release is charged as the noise of the counts, and beside it an extra delta of
`d = 1 - P^k`. Let a labels be in D alone, and b in D', with a, b <= k.

- From D to D': M(D) is within d of what M publishes of D without its a labels, and that and M(D')
  differ in counts alone.
- From D' to D, with a <> 0: TV distance and the noise would give `exp(epsilon) d`. But M(D') is
  within d of the mixture that publishes, with probability `1 - P^a`, what M(D) does given that one
  of the a labels is published, and what M(D') does otherwise. The other part of both mixtures, of
  equal weight `P^a`, differs in counts alone; the first part is the same.

So there are, within d of the truth, two laws that the noise alone keeps apart: losses of several
releases add up as those of the noise do, and their extra deltas add up. Where labels are replaced,
the weights are those of b, and `d = 1 - P^k` as well: the larger of `1 - P^a` and `1 - P^b`, not
their sum. (Korolova, Kenthapadi, Mishra and Ntoulas 2009.)

**Parts.** Gaussian noise is drawn in parts of a unit, and what reaches T is then rounded to whole
units. The number of parts is odd: so no part lies between two whole numbers, and the noise is what
whole numbers would have had. T is nearer to the exact one by half a unit, on average.

**Alone.** A unit that adds labels of its own moves fewer counts. So Gaussian noise that is charged
to no ledger has all of delta, and so does the threshold: see `delta_together`. (Wilkins, Kifer,
Zhang and Karrer 2024.)

**Sets.** Where labels alone are published, without their numbers, a unit that keeps m of its labels
gives each the weight `w_m = floor(2^20 / m^(1/p))`, p the norm of the noise. So `m w_m^p <= 2^20p`:
whoever has one label adds as much to it as a unit with k labels may add to all of them. A lone
label has the weight w_m, so T is the least integer with `1 - P(Y <= T - 1 - w_m)^m <= d` for every
`m <= k`. There are three rounds, each with a part of the amounts; labels found in one are left out
of the next, where units have room for others. (Swanberg, Desfontaines and Haney 2023.)
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpframe.errors import CalibrationError
from dpframe.frozen import frozen
from dpframe.privacy.amounts import PrivacyLoss, float_below, least_integer, round_up
from dpframe.privacy.gaussian import gaussian_mu
from dpframe.privacy.law import Allowance, Law
from dpframe.privacy.neighbors import Neighboring

# of a delta that noise and threshold share, where what is charged adds up
_PARTS = 50
# thresholds of weights take longer to find
_PARTS_OF_SETS = 10

# odd, see above; thresholds are multiples of .008
_PARTS_OF_UNIT = 125
# tails err by less than 2**-39
_MARGIN = 2.0**-36
# smaller ones lose digits
_LEAST_TAIL = 2.0**-1000
# noise and counts stay far within 64 bits
_MOST_SCALE = 2.0**50

UNIT_WEIGHT = 2**20
"""The weight of the only label of a unit."""
MOST_LABELS = 1_000
"""For how many labels a unit has weights."""
ROUND_PARTS = Fraction(1, 20), Fraction(3, 20), Fraction(16, 20)
"""Parts of what noise and thresholds of a set may cost, by round."""


@frozen(slots=True)
class LabelThreshold:
    """Noise for counts of units, and the least noisy count that is published.

    Parameters
    ----------
    law
        Law of the noise.
    scale
        Its scale.
    least
        T: labels with a noisy sum of weights of T or more are published.
    labels
        k, how many labels a unit is counted for at most.
    allowed
        What the noise is charged as: mu^2 of Gaussian, epsilon of Laplace noise.
    weights
        What each label of a unit counts for, by how many it keeps; of counts, one for all.
    before
        Thresholds of the earlier rounds of a set.
    """

    law: Law
    scale: float
    least: int
    labels: int
    allowed: Fraction
    weights: tuple[int, ...] = (1,)
    before: tuple["LabelThreshold", ...] = ()

    @property
    def rounds(self) -> tuple["LabelThreshold", ...]:
        """The thresholds of all rounds, in order."""
        return (*self.before, self)

    @property
    def least_units(self) -> float:
        """T, in units that have one label."""
        return self.least / self.weights[0]

    @property
    def sigma(self) -> float:
        """The scale, in units that have one label."""
        return self.scale / self.weights[0]

    @property
    def order(self) -> tuple[float, float]:
        """What is least for the smallest groups of units that have k labels: T, then the scale.

        All noise is rounded: what reaches T lies above `T - 1/2`.
        """
        weight = self.weights[-1]
        return (self.least - 0.5) / weight, self.scale / weight

    @property
    def loss(self) -> PrivacyLoss:
        """What a release costs, all rounds together."""
        last = self.law.charge(self.allowed) + PrivacyLoss(delta=self.extra_delta)
        return sum((earlier.loss for earlier in self.before), last)

    @property
    def extra_delta(self) -> Fraction:
        """`1 - P^k`, rounded up: that a label is published which one unit alone has."""
        return extra_delta(self.law, self.scale, self.least, self.labels, self.weights)

    def chance_published(self, units: int, labels: int = 1) -> float:
        """Return the probability that a label of units with so many labels is published."""
        weight = self.weights[min(labels, len(self.weights)) - 1]
        return float(self.law.at_least(self.scale, self.least - units * weight))

    def size_published(self, probability: float, labels: int = 1) -> int:
        """Return the smallest number of units that is published with at least a probability.

        Parameters
        ----------
        probability
            The probability, in (0, 1).
        labels
            How many labels each of them has.

        Examples
        --------
        >>> from dpframe.privacy.laws import LAPLACE
        >>> found = LabelThreshold(LAPLACE, 1.0, 15, 1, Fraction(1))
        >>> [found.size_published(probability) for probability in (0.05, 0.5, 0.95)]
        [13, 15, 17]
        """
        return least_integer(lambda n: self.chance_published(n, labels) >= probability, 1)


def counts_moved(labels: int, neighboring: Neighboring) -> int:
    """Return how many counts of units one unit can move by 1: of a replaced one, all of both."""
    return labels if neighboring == "add_remove" else 2 * labels


def parts_of_unit(law: Law) -> int:
    """Return in how many parts of a unit noise of a law is drawn for counts.

    Laplace noise in parts is wider than that of whole numbers.
    """
    return 1 if law.norm == 1 else _PARTS_OF_UNIT


def weights_of(law: Law, labels: int) -> tuple[int, ...]:
    """Return what each label of a unit counts for in a set, by how many it keeps, up to k.

    It is ``w_m = floor(2^20 / m^(1/p))``, exactly, with p the norm of the law: 1 or 2.

    Examples
    --------
    >>> from dpframe.privacy.laws import GAUSSIAN, LAPLACE
    >>> weights_of(GAUSSIAN, 3), weights_of(LAPLACE, 3)
    ((1048576, 741455, 605395), (1048576, 524288, 349525))
    """
    if law.norm == 1:
        return tuple(UNIT_WEIGHT // m for m in range(1, labels + 1))
    return tuple(math.isqrt(UNIT_WEIGHT**2 // m) for m in range(1, labels + 1))


def extra_delta(
    law: Law, scale: float, least: int, labels: int, weights: tuple[int, ...] = (1,)
) -> Fraction:
    """Bound the probability that one of k labels of a single unit is published, from above.

    It is the largest ``1 - P(Y <= T - 1 - w_m)^m`` of all m from 1 to k, of counts that of k: with
    `w + Y >= T`, noise of `T - w` publishes.

    Parameters
    ----------
    law, scale
        The noise Y.
    least
        T, above the weights.
    labels
        k.
    weights
        w_1 to w_k of a set, or that of all counts.

    Examples
    --------
    >>> from dpframe.privacy.laws import LAPLACE
    >>> float(extra_delta(LAPLACE, 1.0, 15, 1)) <= 1e-6 < float(extra_delta(LAPLACE, 1.0, 14, 1))
    True
    """
    lone = np.array(weights, np.int64)
    many = np.arange(labels - len(weights), labels) + 1
    tails = np.maximum(law.at_least(scale, least - lone), _LEAST_TAIL) * (1 + _MARGIN)
    if (tails >= 1).any():
        return Fraction(1)
    beyond = float((-np.expm1(many * np.log1p(-tails))).max()) * (1 + _MARGIN)
    return min(Fraction(math.nextafter(beyond, 1.0)), Fraction(1))


def set_threshold_of(
    law: Law, allowed: Fraction, delta: Fraction, labels: int, neighboring: Neighboring
) -> LabelThreshold:
    """Find the least thresholds of the rounds of a set, as `threshold_of` does for counts.

    Of each amount, round r has the part `ROUND_PARTS[r]`; the last round has the others `before`.

    Examples
    --------
    >>> from dpframe.privacy.laws import GAUSSIAN
    >>> found = set_threshold_of(GAUSSIAN, Fraction(1, 20), Fraction(1, 10**6), 3, "add_remove")
    >>> [round(one.least / UNIT_WEIGHT, 1) for one in found.rounds]
    [111.0, 62.1, 25.6]
    """
    weights = weights_of(law, labels)
    *before, last = (
        threshold_of(law, allowed * part, delta * part, labels, neighboring, weights=weights)
        for part in ROUND_PARTS
    )
    return replace(last, before=tuple(before))


def threshold_of(
    law: Law,
    allowed: Fraction,
    delta: Fraction,
    labels: int,
    neighboring: Neighboring,
    *,
    weights: tuple[int, ...] = (),
) -> LabelThreshold:
    """Find the least threshold for some loss and extra delta.

    The scale s is the smallest float for which ``m w_1^p / s^p <= allowed`` exactly, m the number
    of counts that move by w_1, p the norm of the law; then T is the smallest integer above w_1
    whose `extra_delta` is at most delta. In a set, what moves is at most one weight w_1, or two if
    a unit is replaced.

    Parameters
    ----------
    law
        Law of the noise.
    allowed
        mu^2 of Gaussian, epsilon of Laplace noise, > 0.
    delta
        Largest extra delta, > 0.
    labels
        How many labels a unit is counted for at most.
    neighboring
        The neighboring relation.
    weights
        Those of `weights_of`, in a set; of counts, `parts_of_unit`.

    Raises
    ------
    CalibrationError
        If the noise would be too wide to count anything, or delta is next to nothing.

    Examples
    --------
    >>> from dpframe.privacy.laws import LAPLACE
    >>> threshold_of(LAPLACE, Fraction(1), Fraction(1, 10**6), 1, "add_remove").least
    15
    """
    way_out = "" if weights else ", or declare a smaller max_groups"
    moved = counts_moved(1 if weights else labels, neighboring)
    weights = weights or (parts_of_unit(law),)
    distance = Fraction(moved * weights[0] ** law.norm)
    if distance / allowed > Fraction(_MOST_SCALE) ** law.norm:
        reason = f"the noise needed has a scale above {_MOST_SCALE / weights[0]:.2g} units"
        raise CalibrationError(f"{reason}. Spend more{way_out}.")
    if delta < 2 * labels * Fraction(_LEAST_TAIL):
        rule = "the extra delta of finding labels must be at least 2**-999 for each label of a unit"
        way_out = "Give a tenth of delta, for instance."
        raise CalibrationError(f"{rule}, got about {float(delta):g}. {way_out}")
    start = float(distance / allowed) ** (1 / law.norm)
    scale = round_up(start, lambda s: distance <= allowed * Fraction(s) ** law.norm)
    # so that noise above 0 alone shows a label of one unit
    first = weights[0] + 1
    least = least_integer(lambda t: extra_delta(law, scale, t, labels, weights) <= delta, first)
    return LabelThreshold(law, scale, least, labels, allowed, weights)


def delta_together(threshold: LabelThreshold, neighboring: Neighboring, epsilon: float) -> float:
    """Bound the delta of Gaussian counts and labels together at an epsilon, from above.

    With m counts that move and s of them on labels of one unit alone, at most k on either side,

        max_s 1 - P^min(s, k) + delta(epsilon + min(s, k) log(P), sqrt(m - s) / scale) ,

    where P is the probability that a label of one unit is hidden, and delta the curve of Gaussian
    noise. That of s = 0 is left out: the scale is for it.

    Examples
    --------
    >>> from dpframe.privacy.laws import GAUSSIAN
    >>> found = LabelThreshold(GAUSSIAN, 7.3174, 38, 3, Fraction(1, 18))
    >>> for least in (38, 37):
    ...     print(delta_together(replace(found, least=least), "add_remove", 1.0) <= 1e-6)
    True
    False
    """
    # slow to import, and not always needed
    from scipy import special

    moved = counts_moved(threshold.labels, neighboring)
    alone = np.arange(1, moved + 1)
    hidden = np.minimum(alone, threshold.labels)
    tail = threshold.chance_published(1)
    if tail >= 1 - _MARGIN:
        return 1.0
    log_hidden = math.log1p(-max(tail, _LEAST_TAIL) * (1 + _MARGIN))
    left = epsilon + hidden * log_hidden
    mu = np.sqrt(moved - alone) / threshold.sigma
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(mu > 0, left / mu, np.copysign(np.inf, left))
    above = special.ndtr(mu / 2 - ratio)
    below = np.exp(left + special.log_ndtr(-mu / 2 - ratio))
    noise = np.maximum(above - below, 0) + _MARGIN * above
    return float((noise - np.expm1(hidden * log_hidden)).max()) * (1 + _MARGIN)


def threshold_alone(
    law: Law, epsilon: Fraction, delta: Fraction, labels: int, neighboring: Neighboring
) -> LabelThreshold | None:
    """Find the least threshold of Gaussian counts for an epsilon and a delta, by `delta_together`.

    The scale is that of noise which has all of delta: with more noise, T is next to never smaller.

    Returns
    -------
    LabelThreshold or None
        `None` if there is no noise of this law for it.

    Examples
    --------
    >>> from dpframe.privacy.laws import GAUSSIAN
    >>> delta = Fraction(1, 10**6)
    >>> threshold_alone(GAUSSIAN, Fraction(1), delta, 3, "add_remove").least_units
    37.384
    """
    allowed = law.movement_allowed(_left(epsilon, delta))
    if not allowed:
        return None
    noise_alone = threshold_of(law, allowed, delta, labels, neighboring)
    number = float_below(epsilon)

    def holds(least: int) -> bool:
        return delta_together(replace(noise_alone, least=least), neighboring, number) <= delta

    return replace(noise_alone, least=least_integer(holds, noise_alone.least))


def best_split(
    law: Law,
    epsilon: Fraction,
    delta: Fraction,
    *,
    labels: int,
    neighboring: Neighboring,
    most: Fraction,
    sets: bool = False,
) -> LabelThreshold | None:
    """Find the least threshold of which noise and extra delta add up to (epsilon, delta)-DP.

    Noise that needs a delta has a part of it, in steps of a fiftieth (of sets, a tenth), and the
    threshold the rest; other noise leaves all of it to the threshold. Of equal thresholds, the
    least scale is taken.

    Parameters
    ----------
    law, labels, neighboring
        As in `threshold_of`.
    epsilon, delta
        What the release is to keep.
    most
        Largest extra delta.
    sets
        Whether labels are found in rounds, by weights; then the last round decides.

    Returns
    -------
    LabelThreshold or None
        `None` if there is no noise of this law for it.

    Examples
    --------
    >>> from dpframe.privacy.laws import GAUSSIAN, LAPLACE
    >>> delta = Fraction(1, 10**6)
    >>> facts = {"labels": 3, "neighboring": "add_remove", "most": delta}
    >>> [best_split(law, Fraction(1), delta, **facts).least_units for law in (LAPLACE, GAUSSIAN)]
    [45.0, 39.576]
    """
    find, steps = (set_threshold_of, _PARTS_OF_SETS) if sets else (threshold_of, _PARTS)
    parts = range(1, steps) if law.needs_delta else (steps,)
    extras = {min(most, delta * part / steps) for part in parts}
    thresholds = [
        find(law, allowed, extra, labels, neighboring)
        for extra in sorted(extras)
        if extra and (allowed := law.movement_allowed(_left(epsilon, delta - extra)))
    ]
    return min(thresholds, key=lambda threshold: threshold.order, default=None)


def _left(epsilon: Fraction, delta: Fraction) -> Allowance:
    """Say what noise may lose where the threshold has had its part of delta."""
    number = float_below(epsilon)
    return Allowance(Fraction(gaussian_mu(number, float_below(delta))) ** 2, Fraction(number))

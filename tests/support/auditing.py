"""Lower bounds on the privacy that releases lose, from what is published alone.

A game is a pair of neighboring frames. Releases from either are scored by statistics that tell them
apart; on one quarter of the releases the best event {score > t} or {score <= t} is chosen, on the
others its probabilities p and q under the two frames are bounded by Clopper-Pearson intervals. Then

    epsilon >= ln((p - delta) / q)          of a mechanism that is (epsilon, delta)-DP,
    mu >= Phi^-1(p) - Phi^-1(q)             of a mechanism that is mu-GDP

(Jagielski, Ullman and Oprea 2020; Nasr et al. 2023). Each of the two is false with a probability of
at most `FALSE_ALARM` / 2, whatever the mechanism is.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

import dpframe as dpf
from dpframe.privacy.gaussian import gaussian_epsilon, gaussian_mu

FALSE_ALARM = 1e-6
LEAST_RATIO = 0.8  # of the claim: a game at its worst comes at least so near
LEVELS = special.expit(np.linspace(-12, 12, 801))
"""Quantiles of the scores that are tried as thresholds, many of them far out in the tails."""

Score = Callable[[np.ndarray], np.ndarray]


def least_probability(successes: Any, trials: int, alpha: float) -> Any:
    """Return the Clopper-Pearson bound that a probability is below with probability <= alpha."""
    k = np.asarray(successes)
    return np.where(k > 0, special.betaincinv(np.maximum(k, 1), trials - k + 1, alpha), 0.0)


def largest_probability(successes: Any, trials: int, alpha: float) -> Any:
    """Return the Clopper-Pearson bound that a probability is above with probability <= alpha."""
    return 1 - least_probability(trials - np.asarray(successes), trials, alpha)


def epsilon_of(p: Any, q: Any, delta: float) -> Any:
    """Return the least epsilon, 0 or more, with `p <= exp(epsilon) q + delta`."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum((np.asarray(p) - delta) / q, 1.0))


def mu_of(p: Any, q: Any) -> Any:
    """Return the least mu >= 0 of a Gaussian trade-off that allows probabilities p and q."""
    with np.errstate(invalid="ignore"):
        return np.fmax(special.ndtri(p) - special.ndtri(q), 0.0)


def along_the_shift(first: np.ndarray, second: np.ndarray) -> Score:
    """Project on the direction of the likelihood ratio of two Gaussians that differ by a shift."""
    scale = np.std(np.vstack([first, second]), axis=0)
    scale[scale == 0] = 1
    first, second = first / scale, second / scale
    within = (np.cov(first.T, ddof=0) + np.cov(second.T, ddof=0)).reshape(first.shape[1], -1) / 2
    ridge = 1e-9 * np.eye(len(within))  # a direction without noise must not be left out
    direction = np.linalg.solve(within + ridge, first.mean(axis=0) - second.mean(axis=0))
    return lambda published: published @ (direction / scale)


def between_two_medians(first: np.ndarray, second: np.ndarray) -> Score:
    """Sum `(|x - a| - |x - b|) / scale` over outputs: the likelihood ratio of Laplace noise."""
    a, b = np.median(first, axis=0), np.median(second, axis=0)
    deviation = (np.abs(first - a).mean(axis=0) + np.abs(second - b).mean(axis=0)) / 2
    scale = np.maximum(deviation, 1e-12)
    return lambda published: ((np.abs(published - b) - np.abs(published - a)) / scale).sum(axis=1)


def lowest_bit(first: np.ndarray, second: np.ndarray) -> Score:
    """Return the exponent of the finest power of two that outputs are multiples of."""

    def score(published: np.ndarray) -> np.ndarray:
        mantissa, exponent = np.frexp(published)
        whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
        lowest = np.log2(np.maximum(whole & -whole, 1)) + exponent - 53.0
        return np.where(whole == 0, 2000.0, lowest).min(axis=1)

    return score


STATISTICS = (along_the_shift, between_two_medians, lowest_bit)


class Event(NamedTuple):
    """A set of outputs: the scores above a threshold, or the others; and who shows it more."""

    score: Score
    threshold: float
    above: bool
    swapped: bool

    def counts(self, first: np.ndarray, second: np.ndarray) -> tuple[int, int]:
        """Count how often it happens where it should be likely, and where it should not."""
        more, less = (second, first) if self.swapped else (first, second)
        inside = [int(np.sum((self.score(x) > self.threshold) == self.above)) for x in (more, less)]
        return inside[0], inside[1]


def _events(score: Score, first: np.ndarray, second: np.ndarray) -> Iterator[tuple[Event, Any]]:
    """Yield all events of a statistic, with how often each happens."""
    own = [np.sort(score(published)) for published in (first, second)]
    thresholds = np.unique(np.quantile(np.concatenate(own), LEVELS, method="lower"))
    below = [np.searchsorted(scores, thresholds, side="right") for scores in own]
    for above, swapped in product((False, True), repeat=2):
        counts = [len(scores) - k if above else k for scores, k in zip(own, below, strict=True)]
        counts = counts[::-1] if swapped else counts
        for threshold, more, less in zip(thresholds, *counts, strict=True):
            yield Event(score, float(threshold), above, swapped), (more, less)


class Bounds(NamedTuple):
    """What a mechanism loses at least: epsilon at some delta, and mu."""

    epsilon: float
    mu: float


def lower_bounds(first: np.ndarray, second: np.ndarray, delta: float) -> Bounds:
    """Bound from below what tells two samples of outputs apart.

    Parameters
    ----------
    first, second
        Independent releases from either frame, of shape (releases, outputs), as many of both.
    delta
        The delta at which epsilon is bounded.
    """
    chosen = len(first) // 4
    learned = first[:chosen], second[:chosen]
    events = [found for statistic in STATISTICS for found in _events(statistic(*learned), *learned)]
    tries = np.array([counts for _, counts in events])
    alpha = FALSE_ALARM / 4  # two bounds, each on two probabilities

    def measured(value: Callable[[Any, Any], Any]) -> float:
        best = int(np.argmax(value(*_interval(tries.T, chosen, alpha))))
        counts = events[best][0].counts(first[chosen:], second[chosen:])
        return float(value(*_interval(counts, len(first) - chosen, alpha)))

    return Bounds(measured(lambda p, q: epsilon_of(p, q, delta)), measured(mu_of))


def _interval(counts: Any, trials: int, alpha: float) -> tuple[Any, Any]:
    """Bound the likely probability from below and the unlikely one from above."""
    likely, unlikely = counts
    return (least_probability(likely, trials, alpha), largest_probability(unlikely, trials, alpha))


def as_published(outputs: np.ndarray) -> np.ndarray:
    """Take the outputs as they are."""
    return outputs


@dataclass(frozen=True, eq=False)
class Game:
    """Two neighboring frames, and what is released from either.

    A game is played many times in one release: every copy has groups and units of its own, so that
    its outputs depend on its own rows and on noise of its own. Whoever sees the groups of a single
    copy sees a part of the release, and the two laws of that part are those of neighbors: a claim
    for the release holds for each copy. Games on whole frames, and those whose groups share
    something, have one copy in each release.

    Parameters
    ----------
    others, unit, instead
        Rows that stay, rows of the unit, and rows that take their place in the other frame, if any.
        The column "zone" says in which of the groups of a copy a row lies.
    releases
        Arguments of each release.
    declared
        What is declared besides the keys of "zone".
    zones
        Groups in a copy; 0 where rows are not grouped by zone.
    copies
        Copies in a release.
    draws
        How many copies are drawn from either frame.
    features
        What the auditor makes of the outputs of a copy.
    tight
        Whether the two frames are neighbors as far from each other as the claim allows, and nearly
        all that tells them apart is published.
    budget
        What all releases together may lose; `None` if there is one, and its certificate says it.
    """

    others: pd.DataFrame
    unit: pd.DataFrame
    releases: tuple[Mapping[str, Any], ...]
    instead: pd.DataFrame | None = None
    declared: Mapping[str, Any] = field(default_factory=dict)
    zones: int = 1
    copies: int = 50_000
    draws: int = 600_000
    features: Score = as_published
    tight: bool = True
    budget: dpf.Budget | None = None

    def frame(self, own: pd.DataFrame | None) -> pd.DataFrame:
        """Copy the rows of the others and of one unit."""
        one = self.others if own is None else pd.concat([self.others, own], ignore_index=True)
        frame = one.iloc[np.tile(np.arange(len(one)), self.copies)].reset_index(drop=True)
        copy = np.arange(self.copies).repeat(len(one))
        for label, size in {"zone": self.zones, "who": 1000}.items():
            if label in frame and self.zones:
                frame[label] += copy * size
        return frame

    def published(self, frame: pd.DataFrame) -> tuple[np.ndarray, tuple[Any, ...]]:
        """Release once; return the outputs, of shape (copies, outputs), and the certificates."""
        facts = dict(self.declared)
        if self.zones:
            keys = {"zone": range(self.copies * self.zones)}
            facts["keys"] = {**keys, **facts.get("keys", {})}
        if self.budget is not None:
            facts["ledger"] = dpf.Ledger(budget=self.budget)
        frame.dp.declare(**facts)
        found = [frame.dp.release(**arguments) for arguments in self.releases]
        tables = [
            table for one in found for table in (one.values() if isinstance(one, dict) else [one])
        ]
        outputs = [table.to_numpy(np.float64).reshape(self.copies, -1) for table in tables]
        return self.features(np.hstack(outputs)), tuple(t.dp.certificate for t in tables)

    def sample(self, own: pd.DataFrame | None) -> np.ndarray:
        """Release as often as it takes."""
        frame = self.frame(own)
        times = range(0, self.draws, self.copies)
        return np.vstack([self.published(frame)[0] for _ in times])

    def claim(self) -> tuple[float, float, float | None]:
        """Return the epsilon and delta claimed, and mu where the noise is Gaussian."""
        _, (certificate, *_) = self.published(self.frame(self.unit))
        loss = certificate.privacy_loss
        gaussian = certificate.mechanism.law == "gaussian"
        if self.budget is None:
            return loss.epsilon, loss.delta, loss.mu if gaussian else None
        epsilon, delta = self.budget.epsilon, self.budget.delta
        return (epsilon, delta, gaussian_mu(epsilon, delta)) if gaussian else (epsilon, 0.0, None)


@dataclass(frozen=True)
class Finding:
    """What an audit found.

    Parameters
    ----------
    epsilon, delta, mu
        The claim; mu is `None` where the noise is not Gaussian.
    bounds
        Lower bounds on epsilon, from events alone, and on mu.
    """

    epsilon: float
    delta: float
    mu: float | None
    bounds: Bounds

    @property
    def certified(self) -> float:
        """Lower bound on epsilon; where the claim is one of mu, that on mu as an epsilon."""
        if self.mu is None:
            return self.bounds.epsilon
        of_mu = gaussian_epsilon(self.delta, self.bounds.mu) if self.bounds.mu else 0.0
        return max(of_mu, self.bounds.epsilon)

    @property
    def ratio(self) -> float:
        """The bound as a part of the claim."""
        return self.certified / self.epsilon


def audit(game: Game) -> Finding:
    """Play a game and compare what is lost with what is claimed."""
    epsilon, delta, mu = game.claim()
    bounds = lower_bounds(game.sample(game.unit), game.sample(game.instead), delta)
    return Finding(epsilon, delta, mu, bounds)

"""What a guarantee means for one unit: what others can come to believe, and how well they can test.

Both are bounds on what the answers tell between two neighbors, to somebody who knows all other
rows. The proof: docs/proofs/beliefs.md.
"""

import math
from functools import lru_cache
from typing import NamedTuple

from dpframe.errors import CalibrationError
from dpframe.privacy.gaussian import check_finite, gaussian_delta

# covers the errors of the normal distribution function and its inverse
_UP = 1 + 2.0**-40
# of the curve of deltas that are tried
_POINTS = 256
# standard deviations of the loss: beyond, delta is below any chance
_REACH = 9


class Guarantee(NamedTuple):
    """All that is promised about releases; of two promises the stronger one counts.

    Parameters
    ----------
    epsilon, delta
        Of (epsilon, delta)-differential privacy; epsilon may be infinite.
    mu, extra_delta
        Of mu-GDP that holds but for a chance of `extra_delta`; mu may be infinite.

    Examples
    --------
    >>> pure = Guarantee(epsilon=0.5)
    >>> round(pure.belief(0.5), 4), round(pure.power(0.05), 4)
    (0.6225, 0.0824)
    """

    epsilon: float = math.inf
    delta: float = 0.0
    mu: float = math.inf
    extra_delta: float = 0.0

    def growth(self, chance: float = 0.001) -> float:
        """Bound the logarithm of the factor by which odds grow or fall, but for a small chance.

        Where (e, d)-differential privacy holds, the privacy loss is above x with a probability of
        at most ``d / (1 - exp(e - x))``, for the event that it is has probabilities P and Q with
        ``P >= exp(x) Q`` and ``P <= exp(e) Q + d``. So it is below ``e - log(1 - d / chance)`` but
        for that chance. The least of these over all e that are known is returned.

        Parameters
        ----------
        chance
            With what probability the odds may change by more, in (0, 1).

        Raises
        ------
        CalibrationError
            If the chance is not in (0, 1).
        """
        chance = _check_probability("chance", chance)
        if not 0 < chance < 1:
            raise CalibrationError.about("chance", "must be in (0, 1)", chance)
        return _growth(self, chance)

    def belief(self, prior: float, chance: float = 0.001) -> float:
        """Bound what somebody believes after the release, who believed it with `prior` before.

        By Bayes' rule, ``p / (p + (1 - p) exp(-x))`` with the x of `growth`, for a claim that is
        true of one and false of the other of two neighbors. All other rows are known, or believed
        to be the same whether the claim is true or false. Under ``"add_remove"`` this is
        whether a unit is in the data; for other claims about its rows, ask `twice`.

        Parameters
        ----------
        prior
            Probability p that somebody gives to a claim about a unit, in [0, 1].
        chance
            As in `growth`.

        Raises
        ------
        CalibrationError
            If the prior is no probability, or the chance is not in (0, 1).
        """
        prior = _check_probability("prior", prior)
        growth = self.growth(chance)
        if not prior or growth == 0:
            return prior
        return min(_UP * prior / (prior + (1 - prior) * math.exp(-growth)), 1.0)

    def least(self, prior: float, chance: float = 0.001) -> float:
        """Bound from below what is believed after the release: `belief` of the contrary."""
        if self.growth(chance) == 0:
            return _check_probability("prior", prior)
        return max(1 - self.belief(1 - prior, chance), 0.0)

    def twice(self) -> "Guarantee":
        """Return what holds between two frames that are two changes apart.

        A unit is removed, and put back with other rows: ``(2 epsilon, (1 + exp(epsilon)) delta)``,
        and ``2 mu`` but for ``Phi(Phi^-1(d) + mu) + d``, with d the extra delta.

        Examples
        --------
        >>> Guarantee(epsilon=0.5).twice().epsilon, Guarantee(mu=0.25).twice().mu
        (1.0, 0.5)
        """
        delta = 0.0
        if self.delta:
            grown = math.exp(min(self.epsilon, 700.0))
            delta = min(_UP * (1 + grown) * self.delta, 1.0)
        extra = 0.0
        if self.extra_delta:
            extra = min(Guarantee(mu=self.mu).power(self.extra_delta) + self.extra_delta, 1.0)
        return Guarantee(2 * self.epsilon, delta, 2 * self.mu, extra)

    def power(self, false_positives: float) -> float:
        """Bound the true positive rate of every test between two neighbors.

        The least of ``Phi(Phi^-1(a) + mu) + extra_delta`` (Dong, Roth and Su 2022, section 2.2),
        of ``exp(epsilon) a + delta``, and of ``1 - exp(-epsilon) (1 - delta - a)`` (Kairouz, Oh and
        Viswanath 2017, Theorem 2.1), for a test with false positive rate a.

        Parameters
        ----------
        false_positives
            The false positive rate a, in [0, 1].

        Raises
        ------
        CalibrationError
            If the rate is no probability.

        References
        ----------
        J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B 84(1), 2022.
        P. Kairouz, S. Oh and P. Viswanath, "The composition theorem for differential privacy", IEEE
        Transactions on Information Theory 63(6), 2017.
        """
        # slow to import, and not always needed
        from scipy import special

        rate = _check_probability("false_positives", false_positives)
        if (self.epsilon, self.delta) == (0, 0) or (self.mu, self.extra_delta) == (0, 0):
            return rate
        bounds = [1.0]
        if self.epsilon < math.inf:
            grown = math.exp(min(self.epsilon + math.log(rate), 0.0)) if rate else 0.0
            missed = math.exp(-self.epsilon) * max(1 - self.delta - rate, 0.0)
            bounds += [grown + self.delta, 1 - missed]
        if self.mu < math.inf:
            bounds.append(special.ndtr(special.ndtri(rate) + self.mu) + self.extra_delta)
        return float(min(_UP * min(bounds), 1.0))


# several priors are asked about for each guarantee
@lru_cache(maxsize=64)
def _growth(promised: Guarantee, chance: float) -> float:
    bounds = [(promised.epsilon, promised.delta)]
    if promised.mu < math.inf:
        last = promised.mu * (promised.mu / 2 + _REACH)
        points = [last * i / _POINTS for i in range(_POINTS + 1)]
        bounds += [(e, gaussian_delta(e, promised.mu) + promised.extra_delta) for e in points]
    return min((e - math.log1p(-d / chance) for e, d in bounds if d < chance), default=math.inf)


def _check_probability(name: str, value: float) -> float:
    number = check_finite(name, value)
    if not 0 <= number <= 1:
        raise CalibrationError.about(name, "must be in [0, 1]", value)
    return number

"""Privacy quantities as exact, frozen values: budgets, spends, losses, caps, relations.

Amounts are kept as `fractions.Fraction`, so that seven sevenths of a budget are the whole budget,
to the last bit, and comparisons need no tolerance.
"""

import math
import operator
import re
from collections.abc import Callable
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

from dpframe.errors import CalibrationError, quote
from dpframe.frozen import frozen

Amount: TypeAlias = float | Fraction | Decimal | str
"""What an amount may be given as: a number, or a text such as "1/12"."""

WRITTEN = 10**4000
"""Python writes whole numbers below it as texts, and none of more than 4,300 digits."""

# a float near such a fraction is one
_SIMPLE_DENOMINATOR = 10**6
# characters of a text
_LONGEST = 100
# of a fraction; Python writes no longer integers
_MOST_BITS = 10_000
_WRITTEN = re.compile(
    r"\s*(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?|[+-]?\d+\s*/\s*\d+)\s*",
    re.ASCII | re.IGNORECASE,
)


def as_number(value: object) -> float | Fraction:
    """Read a number of Python or NumPy: integers and fractions stay exact, others become floats.

    Raises
    ------
    TypeError
        If it is something else: truth values, texts and arrays are no numbers, even where `float`
        takes them.

    Examples
    --------
    >>> as_number(2**70) == 2**70
    True
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise TypeError(f"{type(value).__name__} is no number")
    if isinstance(value, Fraction):
        return value
    return operator.index(value) if isinstance(value, Integral) else float(value)


def as_float(value: object) -> float:
    """Read a number as a float: NaN for what is no number, or is beyond all floats."""
    try:
        return float(as_number(value))
    except (TypeError, ValueError, OverflowError):
        return math.nan


def exact(value: float | Fraction) -> Fraction:
    """Return the simplest fraction that a float stands for.

    A float names the fraction a person wrote when that fraction, rounded to a float, gives it back:
    `0.1` is read as 1/10 and `1 / 7` as 1/7. Others are taken as their shortest decimal text.

    Parameters
    ----------
    value
        A finite number.

    Examples
    --------
    >>> exact(0.1), exact(1 / 7)
    (Fraction(1, 10), Fraction(1, 7))
    """
    return value if isinstance(value, Fraction) else _simplest(float(value))


# a release asks several times for each of its amounts
@lru_cache(maxsize=1024)
def _simplest(number: float) -> Fraction:
    simple = Fraction(number).limit_denominator(_SIMPLE_DENOMINATOR)
    return simple if float(simple) == number else Fraction(repr(number))


def below(value: Fraction) -> float:
    """Largest float that stands for no more than a fraction."""
    number = float(value)
    while is_above(exact(number), value):
        number = math.nextafter(number, -math.inf)
    return number


def float_below(value: Fraction) -> float:
    """Largest float that is no more than a fraction, as the binary number that it is.

    Examples
    --------
    >>> 0.1 > Fraction(1, 10) > float_below(Fraction(1, 10))
    True
    """
    number = float(value)
    while is_above(Fraction(number), value):
        number = math.nextafter(number, -math.inf)
    return number


def float_above(value: Fraction) -> float:
    """Smallest float that is no less than a fraction, as the binary number that it is.

    Examples
    --------
    >>> float_above(Fraction(1, 3)) > Fraction(1, 3) > 1 / 3
    True
    """
    return round_up(float(value), lambda number: Fraction(number) >= value)


def is_above(first: Fraction, second: Fraction) -> bool:
    """Compare as fractions do, without looking whether they are some: much faster."""
    return first.numerator * second.denominator > second.numerator * first.denominator


def read_amount(name: str, value: object) -> float | Fraction:
    """Read an amount, exactly where it is a fraction or a text; one beyond all floats is infinite.

    Raises
    ------
    CalibrationError
        If it is neither a number nor the text of one, has too many digits, or is so small that all
        floats but 0 are larger.

    Examples
    --------
    >>> read_amount("share", "1/12"), read_amount("delta", " 2.5e-1 ")
    (Fraction(1, 12), Fraction(1, 4))
    """
    number: float | Fraction
    if isinstance(value, str) or (isinstance(value, Decimal) and value.is_finite()):
        number = _read_number(name, str(value))
    else:
        try:
            number = as_number(value)
        except (TypeError, ValueError):
            raise _no_amount(name, value) from None
    try:
        rounded = float(number)
    except OverflowError:
        return math.inf
    if number and not rounded:
        rule = "must be 0 or at least 5e-324, the smallest float"
        raise CalibrationError.about(name, rule, value)
    if isinstance(number, Fraction) and number.denominator.bit_length() > _MOST_BITS:
        rule = f"must be a fraction of at most {_MOST_BITS:,} bits"
        raise CalibrationError.about(name, rule, number, "Give a float.")
    return number


def _read_number(name: str, text: str) -> Fraction:
    """Read the text of a number."""
    if len(text) <= _LONGEST and _WRITTEN.fullmatch(text):
        above, _, under = text.partition("/")
        if not under:
            return Fraction(above)
        if int(under):
            return Fraction(int(above), int(under))
    raise _no_amount(name, text)


def _no_amount(name: str, value: object) -> CalibrationError:
    such = f'must be a number, or a text such as "1/12" or "1e-6" of at most {_LONGEST} characters'
    percent = re.fullmatch(r"\s*(\d{1,2})\s*%\s*", value) if isinstance(value, str) else None
    hint = f"Did you mean {int(percent[1]) / _PERCENT:g}?" if percent else ""
    return CalibrationError.about(name, f"{such} and three digits of exponent", value, hint)


SpendKind = Literal["epsilon", "mu", "rho", "share"]


AMOUNTS = ("epsilon", "delta", "mu", "rho", "share")
"""The keywords that say how much to spend."""

# a share above 1 may be meant so
_PERCENT = 100
# from here on tanh(epsilon / 2) is 1 to any float
_FAR = 100
_TINY = Fraction(1, 2**1074)
# some dozens of roundings of parts of an epsilon
_SMALL, _SLACK = Fraction(1, 2**7), 2.0**-47


def check_epsilon(value: object) -> Fraction:
    """Validate an epsilon: a finite number >= 0."""
    number = read_amount("epsilon", value)
    if not math.isfinite(number) or number < 0:
        way_out = "Common choices lie between 0.01 and 10."
        raise CalibrationError.about("epsilon", "must be a finite number >= 0", value, way_out)
    return exact(number)


def check_delta(value: object) -> float:
    """Validate a delta: a number in [0, 1)."""
    number = read_amount("delta", value)
    if not 0 <= number < 1:
        way_out = "It should be far below one over the number of people, 1e-6 for instance."
        raise CalibrationError.about("delta", "must be in [0, 1)", value, way_out)
    return below(exact(number))


def check_positive(name: SpendKind, value: object) -> Fraction:
    """Validate a mu, a rho or a share: a finite number > 0, at most 1 for a share."""
    number = read_amount(name, value)
    if not math.isfinite(number) or number <= 0 or (name == "share" and exact(number) > 1):
        rule = "must be in (0, 1]" if name == "share" else "must be a finite number > 0"
        percent = name == "share" and 1 < number <= _PERCENT
        hint = f"Did you mean {float(number) / _PERCENT:g}?" if percent else ""
        raise CalibrationError.about(name, rule, value, hint)
    return exact(number)


@frozen(slots=True)
class Budget:
    """A total privacy budget: everything released together is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon
        Largest privacy loss outside the delta event, finite and >= 0.
    delta
        Probability mass on which the bound may fail, in [0, 1). With 0 only Laplace noise is
        possible.
    discovery
        Part of delta that is kept for extra deltas of releases, in [0, delta]; noise has the rest.
        It is settled here, once: nothing is moved between the two later.

    Raises
    ------
    CalibrationError
        If a parameter is out of range, or both are zero.

    Examples
    --------
    >>> Budget(epsilon=1, delta=1e-6)
    Budget(epsilon=1.0, delta=1e-06)
    """

    epsilon: float
    delta: float = 0.0
    discovery: float = 0.0

    def __init__(self, epsilon: Amount, delta: Amount = 0.0, discovery: Amount = 0.0) -> None:
        level, delta = check_epsilon(epsilon), check_delta(delta)
        discovery = _check_discovery(discovery, delta)
        if level == 0 and delta == 0:
            rule = "and delta must not both be 0, with which nothing at all could be released"
            raise CalibrationError.about("epsilon", rule, epsilon, "Give one of them > 0.")
        object.__setattr__(self, "epsilon", below(level))
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "discovery", discovery)

    @property
    def noise_delta(self) -> Fraction:
        """The delta that noise may use, all but what is kept for discovery."""
        return exact(self.delta) - exact(self.discovery)

    def __repr__(self) -> str:
        """Show the amounts that were given."""
        kept = f", discovery={self.discovery}" if self.discovery else ""
        return f"Budget(epsilon={self.epsilon}, delta={self.delta}{kept})"


def _check_discovery(value: object, delta: float) -> float:
    """Validate the part of delta that is kept for extra deltas."""
    number = read_amount("discovery", value)
    if not 0 <= number < math.inf or exact(number) > exact(delta):
        rule = f"must be in [0, delta], delta={delta}, of which it is the part for extra deltas"
        raise CalibrationError.about("discovery", rule, value)
    return below(exact(number))


@frozen(slots=True)
class Spend:
    """How much one release may use, as it was given: exactly one of epsilon, mu, rho and share.

    `epsilon` goes with an optional `delta`; a `share` s is the part `s / (1 - shares so far)` of
    what is left of the budget, of mu^2 for Gaussian noise and of epsilon for Laplace noise.
    """

    kind: SpendKind
    amount: Fraction
    delta: float | None = None

    @classmethod
    def of(cls, **amounts: Amount | None) -> "Spend":
        """Read the keywords of a release.

        Raises
        ------
        CalibrationError
            If none or several ways of spending are given, or a value is out of range.
        """
        named: dict[Any, Any] = {k: amount for k, amount in amounts.items() if amount is not None}
        delta = named.pop("delta", None)
        if len(named) != 1:
            listed = ", ".join(f"{k}={quote(v)}" for k, v in named.items()) or "none"
            rule = "say how much to spend in exactly one way, epsilon=, mu=, rho= or share="
            raise CalibrationError(f"{rule}; got {listed}.", parameter="epsilon")
        ((kind, value),) = named.items()
        if kind == "epsilon":
            checked = None if delta is None else check_delta(delta)
            return cls(kind, check_epsilon(value), checked)
        if delta is not None:
            rule = f"goes with epsilon= only, not with {kind}="
            raise CalibrationError.about("delta", rule, delta)
        return cls(kind, check_positive(kind, value))

    def rho_of(self, loss: "PrivacyLoss") -> float:
        """Return the rho of a release that was spent for: what was given as one, if less."""
        rho = loss.rho
        if self.kind != "rho" or Fraction(rho) <= self.amount:
            return rho
        return float_above(self.amount)


@frozen(slots=True)
class PrivacyLoss:
    """What a release costs: a pure `epsilon`, beside Gaussian `mu`, beside a plain `delta`.

    Losses add up coordinate by coordinate: pure epsilons, squares of mu and deltas (Dong, Roth and
    Su 2022, Corollary 3.3 for the Gaussian part).

    Parameters
    ----------
    epsilon
        Pure (epsilon, 0) part, exact.
    mu_squared
        Square of the Gaussian differential privacy parameter, exact.
    delta
        Extra probability of failure, exact.
    """

    epsilon: Fraction = field(default=Fraction(0))
    mu_squared: Fraction = field(default=Fraction(0))
    delta: Fraction = field(default=Fraction(0))

    def __add__(self, other: "PrivacyLoss") -> "PrivacyLoss":
        return PrivacyLoss(*map(operator.add, self.parts, other.parts))

    @property
    def parts(self) -> tuple[Fraction, Fraction, Fraction]:
        """The three parts, in their order."""
        return self.epsilon, self.mu_squared, self.delta

    @property
    def is_of_two_laws(self) -> bool:
        """Whether it has a pure part and a Gaussian one."""
        return bool(self.epsilon and self.mu_squared)

    @property
    def mu(self) -> float:
        """Root of `mu_squared`, rounded up."""
        value = self.mu_squared
        if not value:
            return 0.0
        # 4**half times the value has 128 bits or so: squares below all floats have a root, too
        above, below = value.numerator, value.denominator
        half = 64 + (below.bit_length() - above.bit_length()) // 2
        scaled = (above << max(2 * half, 0)) // (below << max(-2 * half, 0))
        root = math.ldexp(math.isqrt(scaled), -half)
        while Fraction(root) ** 2 < value:
            root = math.nextafter(root, math.inf)
        return root

    @property
    def rho(self) -> float:
        """The rho of zero-concentrated privacy, without the extra delta, rounded up.

        It is `mu^2 / 2 + epsilon tanh(epsilon / 2)`: see `rho_of_pure`.
        """
        total = self.mu_squared / 2 + rho_of_pure(self.epsilon)
        rho = float(total)
        return rho if Fraction(rho) >= total else math.nextafter(rho, math.inf)


def check_loss(loss: object) -> PrivacyLoss:
    """Validate a loss: exact parts, none of which would give something back."""
    if not isinstance(loss, PrivacyLoss):
        raise CalibrationError.about("loss", "must be a dpframe.privacy.amounts.PrivacyLoss", loss)
    if not all(isinstance(part, Fraction) and part >= 0 for part in loss.parts):
        rule = "must have exact fractions >= 0, for what is spent is never given back"
        raise CalibrationError.about("loss", rule, loss)
    return loss


@lru_cache(maxsize=1024)
def rho_of_pure(epsilon: Fraction) -> Fraction:
    """Bound the rho of every epsilon-DP mechanism, `epsilon tanh(epsilon / 2)`, from above.

    It is the Kullback-Leibler divergence of randomized response, which dominates every epsilon-DP
    mechanism and whose Renyi divergence of order alpha is at most alpha times it. It is below
    `epsilon^2 / 2` (Bun and Steinke 2016, Proposition 1.4).

    Examples
    --------
    >>> round(float(rho_of_pure(Fraction(1))), 9)
    0.462117157
    """
    if not epsilon:
        return Fraction(0)
    # right to some units of the last digit
    half = math.tanh(float(min(epsilon, Fraction(_FAR))) / 2)
    return epsilon * min(Fraction(1), Fraction(half) * (1 + Fraction(1, 2**48)) + _TINY)


def round_up(value: float, holds: Callable[[float], bool]) -> float:
    """Increase a number, by an ulp and then by doubling steps, until a predicate holds.

    Parameters
    ----------
    value
        Where to start, >= 0. The result is at most about twice as far above it as needed.
    holds
        Exact test, in rational arithmetic for instance, that is true of all large enough numbers.

    Raises
    ------
    CalibrationError
        If no finite number will do.

    Examples
    --------
    >>> round_up(1.0, lambda side: side > 1)
    1.0000000000000002
    """
    step = 1
    while math.isfinite(value) and not holds(value):
        value += step * math.ulp(value)
        step *= 2
    if not math.isfinite(value):
        text = "epsilon, delta or mu is so small that no float is enough noise. Give a larger one."
        raise CalibrationError(text, parameter="epsilon")
    return value


def least_integer(holds: Callable[[int], bool], start: int) -> int:
    """Find the smallest integer from a start on of which something holds, as of all larger ones."""
    last, enough, step = start - 1, start, 1
    while not holds(enough):
        last, enough, step = enough, enough + step, 2 * step
    while enough - last > 1:
        middle = (last + enough) // 2
        if holds(middle):
            enough = middle
        else:
            last = middle
    return enough


def rho_of_laplace(epsilon: Fraction, step: float) -> Fraction:
    """Bound the rho of discrete Laplace noise that costs a pure epsilon, from above.

    With t the largest cost of one step of an integer, the inverse of the least scale, it is

        epsilon - t / sinh(t) (1 - exp(-epsilon)) ,

    which is exact for a single integer that moves by epsilon / t, and `rho_of_pure` where that is
    1. It grows with t and is convex in epsilon, and 0 at 0: several integers cost no more than one.

    Parameters
    ----------
    epsilon
        Sum of all movements, each divided by its scale.
    step
        t, or more.

    References
    ----------
    C. Harrison and P. Manurangsi, "Exact zCDP characterizations for fundamental differentially
    private mechanisms", 2025 (for the continuous law, whose rho is smaller).

    Examples
    --------
    >>> one = Fraction(1)
    >>> [round(float(rho_of_laplace(one, step)), 6) for step in (1.0, 0.1, 0.001)]
    [0.462117, 0.368932, 0.36788]
    """
    of_any = rho_of_pure(epsilon)
    # there it is next to the same, or floats would lose it
    if not _SMALL < epsilon < _FAR:
        return of_any
    number = float(epsilon)
    # no overflow
    inverse = 2 * math.exp(-step) / -math.expm1(-2 * step)
    rho = number + step * inverse * math.expm1(-number)
    return min(of_any, Fraction(rho + _SLACK * number))


def root_below(square: Fraction) -> float:
    """Root of a fraction >= 0, rounded down."""
    root = PrivacyLoss(mu_squared=square).mu
    while Fraction(root) ** 2 > square:
        root = math.nextafter(root, 0.0)
    return root

"""Numbers that people write, read exactly: 0.1 and "1/10" are one amount.

A text is read in two forms, a decimal and a fraction, in plan files as in Python. Digits are
bounded: a number of a billion digits would never be read to its end.
"""

import math
import operator
import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Real
from typing import TypeAlias

from dpframe.errors import CalibrationError, quote

Amount: TypeAlias = float | Fraction | Decimal | str
"""What an amount may be given as: a number, or a text such as "1/12"."""

WRITTEN = 10**4000
"""Python writes whole numbers below it as texts, and none of more than 4,300 digits."""

_SIMPLE_DENOMINATOR = 10**6
_LONGEST = 100  # characters of a text
_MOST_BITS = 10_000  # of a fraction; Python writes no longer integers
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


@lru_cache(maxsize=1024)  # a release asks several times for each of its amounts
def _simplest(number: float) -> Fraction:
    simple = Fraction(number).limit_denominator(_SIMPLE_DENOMINATOR)
    return simple if float(simple) == number else Fraction(repr(number))


def below(value: Fraction) -> float:
    """Largest float that stands for no more than a fraction."""
    number = float(value)
    while exact(number) > value:
        number = math.nextafter(number, -math.inf)
    return number


def read_amount(name: str, given: object) -> float | Fraction:
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
    if isinstance(given, str) or (isinstance(given, Decimal) and given.is_finite()):
        number = _read_number(name, str(given))
    else:
        try:
            number = as_number(given)
        except (TypeError, ValueError):
            raise _no_amount(name, given) from None
    try:
        rounded = float(number)
    except OverflowError:
        return math.inf
    if number and not rounded:
        raise CalibrationError(
            f"{name} must be 0 or at least 5e-324, the smallest float, got {name}={quote(given)}."
        )
    if isinstance(number, Fraction) and number.denominator.bit_length() > _MOST_BITS:
        raise CalibrationError(
            f"{name} must be a fraction of at most {_MOST_BITS:,} bits, got "
            f"{number.denominator.bit_length():,}. Give a float."
        )
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


def _no_amount(name: str, given: object) -> CalibrationError:
    return CalibrationError(
        f'{name} must be a number, or a text such as "1/12" or "1e-6" of at most {_LONGEST} '
        f"characters and three digits of exponent, got {name}={quote(given)}."
    )

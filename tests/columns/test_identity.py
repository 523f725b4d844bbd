"""Keys of objects: equal where values of any class are, and quick where their hashes are."""

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction
from uuid import UUID

import numpy as np
import pytest

from dpframe.columns.identity import key_of

PRIME = 2**61 - 1  # Python's hashes of numbers are remainders of this
BIG = 2**70
EQUAL = [
    [1, 1.0, True, Decimal("1.0"), Fraction(1), 1 + 0j, complex(1, -0.0), np.clongdouble(1), "1"],
    [2**53 + 1, Decimal(2**53 + 1), Fraction(2**53 + 1), np.longdouble(2**53) + 1],
    [BIG, float(BIG), Decimal(BIG), Fraction(BIG), np.longdouble(BIG), complex(BIG)],
    [BIG + 1, Decimal(BIG + 1), Fraction(BIG + 1)],
    [10**400, Decimal("1e400"), Decimal("10e399"), Fraction(10**400)],
    [Decimal("0.1"), Decimal("0.10"), Fraction(1, 10)],
    [0.1, Fraction(0.1), np.longdouble(0.1), Decimal.from_float(0.1)],
    [np.float32(0.1), float(np.float32(0.1)), np.complex64(0.1)],
    [0.5, Decimal("0.5"), Fraction(1, 2), np.float16(0.5), "0.5"],
    [0, -0.0, Decimal("-0e999999"), 0j, False],
    [float("inf"), Decimal("Infinity"), np.longdouble("inf"), complex("inf")],
    [1j, np.complex64(1j), np.clongdouble(1j)],
    [complex(1, 2), np.complex128(1 + 2j)],
    [2**62 * 4, 2.0**64],
    [-(2**63), Decimal(-(2**63)), -(2.0**63)],
    [(1, Decimal("0.1")), (True, Fraction(1, 10))],
    [(BIG + 1, "a"), (Decimal(BIG + 1), np.str_("a"))],
    [UUID(int=7), UUID(int=7)],
    ["1.0"],
    ["01"],
    ["True"],
    ["5e-1"],
    [b"1"],
    [1 / 3],
    [Fraction(1, 3)],
    [complex(2, 1)],
    [np.longdouble(1) / 3] if np.finfo(np.longdouble).nmant > 52 else [7.5],
    [UUID(int=7 + PRIME)],
    [UUID(int=7).bytes],
    [(UUID, UUID(int=7).bytes)],
]


def test_keys_are_equal_where_values_are():
    keys = [{key_of(value) for value in values} for values in EQUAL]
    assert [len(one) for one in keys] == [1] * len(keys)
    assert not any(map(set.__and__, *zip(*itertools.combinations(keys, 2), strict=True)))
    assert None not in set().union(*keys)


HUGE = [10**40_000, -(10**40_000), Decimal("1e999999999"), Decimal("-3e-999999999"), 1 << 65_536]


@pytest.mark.parametrize("value", [*HUGE, Fraction(1, 10**40_000)], ids=range(len(HUGE) + 1))
def test_numbers_too_long_to_be_ids_are_missing(value):
    assert key_of(value) is None
    assert key_of((value, 1)) is None  # it must not be one with other such tuples


def test_keys_depend_on_no_context_of_decimals():
    expected = [key_of(value) for values in EQUAL for value in values]
    with localcontext(prec=1, Emax=1, Emin=-1) as context:
        context.traps = dict.fromkeys(context.traps, True)
        assert [key_of(value) for values in EQUAL for value in values] == expected

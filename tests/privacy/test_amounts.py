"""Exact privacy quantities: what is accepted, what is refused, and that nothing is rounded away."""

import dataclasses
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.raising import raises

from dpframe import Ledger
from dpframe.errors import CalibrationError, DeclarationError, quote
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend, as_number, below, exact
from dpframe.privacy.neighbors import Caps, check_neighboring

SECOND = np.timedelta64(1, "s")
NOT_NUMBERS = [
    True,
    np.True_,
    "one",
    b"1",
    None,
    pd.NA,
    1j,
    [1],
    np.array([1.0]),
    np.array(1.0),
    SECOND,
    pd.Timestamp("2020-01-01"),
    Decimal("sNaN"),
]
NOT_FINITE = [math.nan, math.inf, -math.inf, 10**400, Fraction(10**400), np.float64("nan"), pd.NaT]
NEGATIVE = [-1, -1e-300, np.float32(-1), np.int8(-1), Fraction(-1, 3)]
ONES = [1, 1.0, np.int64(1), np.uint8(1), np.float32(1), np.float64(1), Fraction(1), Decimal(1)]

wholes = st.integers(0, 10**6)
fractions = st.builds(Fraction, wholes, st.integers(1, 10**6))


@pytest.mark.parametrize("value", ONES)
def test_every_kind_of_number_is_read_alike(value):
    assert Budget(value, 1e-6) == Budget(1.0, 1e-6)
    assert [Spend.of(**{kind: value}).amount for kind in ("epsilon", "mu", "rho", "share")] == [
        1
    ] * 4


@pytest.mark.parametrize("value", NOT_NUMBERS + NOT_FINITE + NEGATIVE)
def test_epsilons_that_are_no_amount_are_refused(value):
    if value is not None:
        with raises(CalibrationError, "epsilon must be", parameter="epsilon"):
            Spend.of(epsilon=value)
    with raises(CalibrationError, "epsilon must be", parameter="epsilon") as caught:
        Budget(epsilon=value, delta=1e-6)
    assert quote(value) in str(caught.value)


@pytest.mark.parametrize("kind", ["mu", "rho", "share"])
@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NOT_FINITE, *NEGATIVE, 0, 0.0, -0.0])
def test_other_amounts_must_be_positive(kind, value):
    if value is None:
        return
    with pytest.raises(CalibrationError, match=rf"^{kind} must be") as caught:
        Spend.of(**{kind: value})
    assert f"{kind}={quote(value)}" in str(caught.value)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NEGATIVE, math.nan, math.inf, 1, 1.5, 10**400])
def test_deltas_lie_in_the_half_open_unit_interval(value):
    with raises(CalibrationError, "delta must be", parameter="delta"):
        Budget(1, value)
    if value is not None:
        with raises(CalibrationError, "delta must be", parameter="delta"):
            Spend.of(epsilon=1, delta=value)


@pytest.mark.parametrize("value", [0, 5e-324, 1 - 2**-53, np.float32(0.5), Fraction(1, 8)])
def test_deltas_at_the_ends_are_accepted(value):
    assert Budget(1, value).delta == value
    assert Spend.of(epsilon=1, delta=value).delta == value


def test_a_budget_of_nothing_is_refused():
    with raises(CalibrationError, "delta", parameter="epsilon"):
        Budget(0)
    assert Budget(0, 1e-9) == Budget(0.0, 1e-9)
    assert Budget(5e-324).epsilon == 5e-324


def test_shares_are_at_most_the_whole():
    assert Spend.of(share=1).amount == 1
    for share in (1 + 2**-52, 2, Fraction(8, 7)):
        with pytest.raises(CalibrationError, match=r"share must be in \(0, 1\]"):
            Spend.of(share=share)


@pytest.mark.parametrize(
    ("ways", "shown"),
    [
        ({}, "none"),
        ({"delta": 1e-6}, "none"),
        ({"epsilon": 1, "mu": 2}, "epsilon=1, mu=2"),
        ({"rho": 1, "share": 0.5}, "rho=1, share=0.5"),
        ({"epsilon": 0, "share": 0.5}, "epsilon=0, share=0.5"),
    ],
)
def test_a_spend_is_said_in_exactly_one_way(ways, shown):
    with raises(CalibrationError, "exactly one way", parameter="epsilon") as caught:
        Spend.of(**ways)
    assert str(caught.value).endswith(f"got {shown}.")


@pytest.mark.parametrize("kind", ["mu", "rho", "share"])
def test_delta_goes_with_epsilon_only(kind):
    with raises(CalibrationError, f"not with {kind}=", parameter="delta", value=1e-6):
        Spend.of(**{kind: 0.5}, delta=1e-6)


def test_a_delta_that_was_not_said_is_left_open():
    assert Spend.of(epsilon=0.1) == Spend("epsilon", Fraction(1, 10), None)
    assert Spend.of(epsilon=0.1, delta=0).delta == 0


@given(fractions)
def test_a_float_stands_for_the_fraction_a_person_wrote(value):
    assert exact(float(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_a_float_stands_for_rounds_to_it(value):
    assert float(exact(value)) == value


@given(st.integers(1, 1000))
def test_equal_parts_add_up_to_the_whole(n):
    assert sum(Spend.of(share=1 / n).amount for _ in range(n)) == 1


def test_short_decimals_are_read_as_written():
    assert exact(1e-9) == Fraction(1, 10**9)
    assert exact(0.1234567) == Fraction(1234567, 10**7)
    assert exact(Fraction(1, 10**400)) == Fraction(1, 10**400)


def test_integers_stay_exact_and_everything_else_is_refused():
    assert as_number(2**70 + 1) == 2**70 + 1
    assert type(as_number(np.int64(3))) is int
    assert type(as_number(np.float32(3))) is float
    for value in NOT_NUMBERS[:-1]:
        with pytest.raises(TypeError):
            as_number(value)


@given(st.builds(Fraction, st.integers(0, 2**200), st.integers(1, 2**200)))
def test_mu_is_the_smallest_float_that_covers_its_square(mu_squared):
    mu = PrivacyLoss(mu_squared=mu_squared).mu
    assert Fraction(mu) ** 2 >= mu_squared
    assert mu == 0 or Fraction(math.nextafter(mu, 0)) ** 2 < mu_squared


@pytest.mark.parametrize("power", [-700, -400, -320, 400, 600])
def test_mu_is_found_where_its_square_is_no_float(power):
    mu = PrivacyLoss(mu_squared=Fraction(10) ** power).mu
    assert mu == pytest.approx(float(Fraction(10) ** (power // 2)), rel=1e-15, abs=5e-324)
    assert Fraction(mu) ** 2 >= Fraction(10) ** power


def test_losses_add_up_coordinate_by_coordinate():
    part = PrivacyLoss(Fraction(1, 7), Fraction(4, 7), Fraction(1, 7 * 10**6))
    total = sum([part] * 7, start=PrivacyLoss())
    assert total == PrivacyLoss(Fraction(1), Fraction(4), Fraction(1, 10**6))
    assert (total.mu, total.rho) == (2.0, pytest.approx(2.462117157))  # 4 / 2 + tanh(1 / 2)
    assert PrivacyLoss() + part == part


NAMES = ("rows", "groups", "rows_per_group")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "value", [0, -1, 1.0, 2.5, True, np.True_, "3", np.float64(2), math.nan, SECOND, [1]]
)
def test_caps_are_whole_numbers_from_one_on(name, value):
    with pytest.raises(
        DeclarationError, match=rf"^max_{name} must be a whole number >= 1"
    ) as caught:
        Caps(**{name: value})
    assert f"max_{name}={value!r}" in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [1, 10**30, np.int64(3), np.uint8(200)])
def test_caps_become_plain_integers(name, value):
    kept = getattr(Caps(**{name: value}), name)
    assert kept == value
    assert type(kept) is int


def test_neighboring_is_one_of_two_words():
    assert check_neighboring("replace") == "replace"
    assert check_neighboring(np.str_("add_remove")) == "add_remove"
    for value in ("Replace", "add-remove", None, pd.NA, 1, np.array(["replace"]), ["replace"]):
        with raises(DeclarationError, "add_remove", parameter="neighboring"):
            check_neighboring(value)


@pytest.mark.parametrize("value", [Budget(1), Spend.of(mu=1), PrivacyLoss(), Caps(rows=1)])
def test_quantities_are_frozen_values(value):
    assert value == dataclasses.replace(value)
    assert hash(value) == hash(dataclasses.replace(value))
    first = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, first, 5)


WRITTEN = {
    "1/12": Fraction(1, 12),
    " 1 / 12\n": Fraction(1, 12),
    "0.1": Fraction(1, 10),
    " .5": Fraction(1, 2),
    "1.": Fraction(1),
    "5E-1": Fraction(1, 2),
    "0.12345678901234567890": Fraction(12345678901234567890, 10**20),
    Decimal("0.12345678901234567890"): Fraction(12345678901234567890, 10**20),
}
MISWRITTEN = [
    *(
        "",
        " ",
        "one",
        "inf",
        "nan",
        "True",
        "0x1p-1",
        "0x1",
        "1_000",
        "\uff10.\uff15",
        "1/\uff12",
        "0,5",
    ),
    *("1/0", "1/2/3", "1.5/2", "1/-2", "1e", "1e+-2", "1e9999", "1e999999999", "1/1e999", "--1"),
    *("9" * 101, "1/" + "9" * 200_000, "0" * 10**6, "50%", "1 000", "1j", "½", "-inf", "\x001"),
]


@pytest.mark.parametrize("kind", ["epsilon", "mu", "rho", "share"])
@pytest.mark.parametrize("text", WRITTEN)
def test_texts_of_numbers_are_read_exactly(text, kind):
    assert Spend.of(**{kind: text}).amount == WRITTEN[text]
    number = Ledger(budget=Budget(text, "1e-6", "1/10000000")).budget
    assert number == Budget(below(WRITTEN[text]), 1e-6, 1e-7)


@pytest.mark.parametrize("text", MISWRITTEN, ids=range(len(MISWRITTEN)))
def test_texts_of_no_numbers_are_refused(text):
    for spend in ({"epsilon": text}, {"epsilon": 1, "delta": text}, {"mu": text}, {"share": text}):
        with pytest.raises(
            CalibrationError, match=r"must be a number, or a text such as"
        ) as caught:
            Spend.of(**spend)
        assert len(str(caught.value)) < 400
    for amounts in ((text,), (1, text), (1, 1e-6, text)):
        with pytest.raises(CalibrationError, match="or a text such as"):
            Budget(*amounts)


TINY = ["1e-400", Decimal("1e-400"), Fraction(1, 10**400), Fraction(1, 3**20_000)]


@pytest.mark.parametrize("value", TINY, ids=range(4))
def test_amounts_below_all_floats_are_refused(value):
    for kind in ("epsilon", "mu", "rho", "share"):
        with pytest.raises(CalibrationError, match=f"^{kind} must be 0 or at least"):
            Spend.of(**{kind: value})
    with raises(CalibrationError, "least", parameter="delta"):
        Budget(1, value)


@pytest.mark.parametrize(
    "value", [10**5000, -(10**5000), Fraction(10**5000, 3), "1e999"], ids=range(4)
)
def test_amounts_beyond_all_floats_are_refused(value):
    for kind in ("epsilon", "mu", "rho", "share"):
        with pytest.raises(CalibrationError, match=f"^{kind} must be"):
            Spend.of(**{kind: value})


def test_fractions_have_so_many_digits_at_most():
    with raises(CalibrationError, "fraction", parameter="share"):
        Spend.of(share=Fraction(3**10_000, 2 * 3**10_000 + 1))


@pytest.mark.parametrize(
    "data", [pd.Series([0.123]), pd.DataFrame({"a": [0.123]}), [pd.Series([0.123])]]
)
def test_no_error_about_an_amount_shows_data(data):
    for spend in ({"epsilon": data}, {"epsilon": 1, "delta": data}, {"mu": 1, "share": data}):
        with pytest.raises(CalibrationError) as caught:
            Spend.of(**spend)
        assert "0.123" not in str(caught.value)


@pytest.mark.parametrize("delta", [Fraction(1, 3_000_001), "1/3000001", Fraction(7, 3_000_017)])
def test_deltas_are_rounded_down_to_floats(delta):
    kept = [Spend.of(epsilon=1, delta=delta).delta, Budget(1, delta).delta]
    assert all(exact(one) <= Fraction(delta) for one in kept)
    assert kept == pytest.approx([float(Fraction(delta))] * 2)

"""Plans: which mechanism is chosen, how much noise, and that it is enough, exactly."""

import itertools
import math
from fractions import Fraction
from uuid import uuid4

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plans import deviations_of, law_of, parts_of
from support.raising import raises

import dpframe as dpf
from dpframe import Ledger
from dpframe.declaration.facts import Column, Declaration
from dpframe.errors import BudgetExceededError, CalibrationError, DeclarationError
from dpframe.ledger.log import Entry
from dpframe.plan.plan import plan_release
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend
from dpframe.privacy.gaussian import gaussian_delta, gaussian_mu
from dpframe.privacy.laws import STAIRCASE
from dpframe.privacy.neighbors import Caps
from dpframe.privacy.noise import MAX_SCALE
from dpframe.strategies import MECHANISMS

COLUMNS = {
    "g": Column(keys=pd.Index(["A", "B", "C"], name="g")),
    "x": Column(bounds=(-2.0, 3.0)),
    "k": Column(bounds=(0, 9), integer=True),
}


def declared(budget=None, **facts):
    ledger = None if budget is None else Ledger(budget=budget)
    return Declaration(COLUMNS, ledger=ledger, **facts)


def plan(query, mechanism="auto", declaration=None, **spend):
    queries = query if isinstance(query, dict) else {None: query}
    return plan_release(declaration or declared(), queries, Spend.of(**spend), mechanism)


def scales(made):
    return [scale for part in parts_of(made) for scale in part.scales]


def cost_of(made, factor=1):
    """What the plan's own scales, times a factor, let a neighbor move, exactly."""
    if law_of(made) is STAIRCASE:  # scales are D + b
        ((part,), (scale,)) = parts_of(made), scales(made)
        moved = int(scale)
        return part.design.stairs * law_of(made).loss(moved, moved + (scale - moved) * factor)
    return sum(
        part.design.movement([Fraction(scale) * factor for scale in part.scales], law_of(made))
        for part in parts_of(made)
    )


def charged(made):
    return made.loss.mu_squared + made.loss.epsilon  # one of them is 0


def variance(made):
    return sum(one.variance for one in made.designs.values())


def charge(declaration, made):
    entry = Entry(uuid4().hex, "now", "what", made.mechanism, made.spend, made.loss)
    declaration.ledger.charge(entry)


SHARING = ("gaussian", "correlated", "laplace", "box")


def test_noise_is_shared_where_its_error_is_least():
    many = {"s": dpf.sum(["x", "k"], by="g"), "t": dpf.sum("k"), "n": dpf.count(by="g")}
    made = plan(many, mu=0.1)
    assert made.mechanism == "correlated, gaussian"
    errors = {name: variance(plan(many, name, mu=0.1)) for name in SHARING}
    assert variance(made) <= errors["correlated"] < errors["gaussian"]
    assert errors["gaussian"] < errors["box"] < errors["laplace"]
    # one column in groups: a single total cannot share noise with anything
    assert plan(dpf.count(by="g"), mu=0.1).mechanism == "gaussian"


MANY_QUERIES = [
    dpf.count(),
    dpf.sum(["x", "k"], by="g"),
    dpf.mean(["x", "k"]),
    {"a": dpf.count(by="g"), "b": dpf.sum(["k", "x"]), "c": dpf.histogram("x", [-2, 0, 3])},
]
MANY_SPENDS = [
    {"epsilon": 1, "delta": 1e-6},
    {"epsilon": 1e-6, "delta": 1e-9},
    {"epsilon": 0.1, "delta": 0.3},
    {"epsilon": 50, "delta": 1e-300},
    {"mu": 0.1},
    {"mu": 1e-6},
    {"rho": 1 / 3},
    {"share": 1 / 7},
]


def refusal(mechanism, query, spend, neighboring, caps):
    """What the error says where a mechanism cannot plan a query."""
    if mechanism == "classical" and not 0 < spend.get("epsilon", 2) < 1:
        return "epsilon in (0, 1)" if "epsilon" in spend else "epsilon= and delta="
    # a count has nothing to share noise with; where rows are replaced and not grouped, their
    # number is public
    grouped = query is MANY_QUERIES[1]
    public = neighboring == "replace" and caps is None and not grouped
    if mechanism == "correlated" and (query is MANY_QUERIES[0] or public):
        return 'mechanism="correlated" does not apply'
    if mechanism == "staircase" and (query is not MANY_QUERIES[0] or caps is None):
        return 'mechanism="staircase" does not apply'
    if mechanism == "staircase" and max(spend.values()) < 1e-5:
        return "take Laplace noise"
    if mechanism == "box" and query is MANY_QUERIES[0]:
        return 'mechanism="box" does not apply'
    return None


@pytest.mark.sampled(every=7, full=3)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("query", MANY_QUERIES)
@pytest.mark.parametrize("spend", MANY_SPENDS)
def test_noise_is_enough_exactly_and_no_more(query, spend, mechanism):
    for neighboring, caps in itertools.product(("add_remove", "replace"), (None, Caps(7, 3, 2))):
        facts = {"neighboring": neighboring}
        if caps is not None:
            facts |= {"privacy_unit": ("u",), "caps": caps}
        declaration = declared(Budget(1, 1e-6), **facts)
        if message := refusal(mechanism, query, spend, neighboring, caps):
            with raises(CalibrationError, message):
                plan(query, mechanism, declaration, **spend)
            continue
        made = plan(query, mechanism, declaration, **spend)
        assert cost_of(made) <= charged(made)
        coarse = (
            mechanism == "staircase" and spend.get("epsilon") == 50
        )  # below a float's last digit
        if any(scales(made)) and not coarse:
            assert cost_of(made, 1 - Fraction(1, 10**9)) > charged(made)
        for part in parts_of(made):
            cells = part.table.cells.size
            expected = deviations_of(law_of(made), part.design, part.scales, cells)
            assert part.deviations == expected


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9), st.floats(1e-12, 0.9))
@settings(max_examples=60, derandomize=True)
def test_losses_never_exceed_what_was_said(epsilon, mu, delta):
    gaussian = plan(dpf.count(), "gaussian", epsilon=epsilon, delta=delta)
    assert gaussian_delta(epsilon, math.sqrt(float(cost_of(gaussian)))) <= delta * (1 + 1e-12)
    assert cost_of(gaussian) <= Fraction(gaussian_mu(epsilon, delta)) ** 2
    assert cost_of(plan(dpf.count(), "laplace", epsilon=epsilon)) <= Fraction(epsilon)
    made = plan(dpf.count(), "gaussian", mu=mu)
    assert cost_of(made) <= Fraction(mu) ** 2
    assert plan(dpf.count(), "gaussian", rho=mu).loss.mu_squared <= 2 * Fraction(mu)


def test_pure_noise_for_a_mu_is_no_wider_than_it_must_be():
    from mpmath import mp

    made = plan(dpf.count(), "laplace", mu=1)
    with mp.workdps(40):
        epsilon = mp.log(mp.ncdf(0.5) / mp.ncdf(-0.5))  # exp(e)/(1 + exp(e)) = Phi(mu / 2)
    assert 0 < 1 - made.loss.epsilon / Fraction(str(epsilon)) < Fraction(1, 10**9)


@pytest.mark.parametrize("mechanism", ["gaussian", "correlated", "laplace"])
def test_shares_add_up_to_the_whole_budget_to_the_last_bit(mechanism):
    declaration = declared(Budget(1, 1e-6))
    for _ in range(7):
        charge(declaration, plan(dpf.sum(["x", "k"]), mechanism, declaration, share=1 / 7))
    spent = declaration.ledger.status().spent
    if mechanism == "laplace":
        assert spent.epsilon == 1
    else:
        assert spent.mu_squared == Fraction(gaussian_mu(1, 8e-7)) ** 2
    with raises(BudgetExceededError, "share=1e-09 does not fit "):
        plan(dpf.sum(["x", "k"]), mechanism, declaration, share=1e-9)


@pytest.mark.parametrize(("first", "share"), [("gaussian", 0.5), ("laplace", 0.01)])
def test_auto_compares_all_noise_whatever_shares_were_spent_on(first, share):
    declaration = declared(Budget(1, 1e-6))
    freely = plan(dpf.count(), "auto", declaration, share=share).mechanism
    assert freely != first
    charge(declaration, plan(dpf.count(), first, declaration, share=0.01))
    made = plan(dpf.count(), "auto", declaration, share=share)
    assert made.mechanism == freely


@pytest.mark.parametrize(
    ("mechanism", "query", "spend", "way"),
    [
        ("gaussian", dpf.count(), {}, "mu"),
        ("laplace", dpf.count(), {}, "mu"),
        ("auto", dpf.count(), {}, "mu"),
        ("correlated", dpf.aggregate(n=dpf.count(), s=dpf.sum("k")), {}, "mu"),
        ("classical", dpf.count(), {"delta": 1e-6}, "epsilon"),
    ],
)
def test_noise_too_wide_for_64_bits_is_refused(mechanism, query, spend, way):
    with raises(CalibrationError, "2**60", parameter="epsilon"):
        plan(query, mechanism, **spend, **{way: 1e-19})
    widest = max(scales(plan(query, mechanism, **spend, **{way: 4e-17})))
    assert MAX_SCALE / 100 < widest <= MAX_SCALE


def test_a_scale_that_rounding_lifts_above_the_limit_is_refused_before_the_charge():
    bounds = {"c0": (0, 46.12), "c1": (0, 1.55), "c2": (0, 23.33), "c3": (0, 47.17)}
    frame = pd.DataFrame(1.0, index=range(3), columns=list(bounds))
    frame.dp.declare(bounds=bounds, privacy_unit=dpf.EACH_ROW, budget=Budget(1))
    with raises(CalibrationError, "2**60", parameter="epsilon"):
        frame.dp.sum([*bounds], epsilon=2.8870999809610387e-09, mechanism="box")
    assert not frame.dp.ledger.entries


def test_the_choice_leaves_out_mechanisms_whose_noise_would_be_too_wide():
    query = dpf.sum("x", bounds=(0, 2**32))
    spend = {"epsilon": 1e-8, "delta": 1e-12}
    with raises(CalibrationError, "2**60", parameter="epsilon"):
        plan(query, "gaussian", **spend)
    assert plan(query, **spend).mechanism == "laplace"


@pytest.mark.parametrize(
    ("spend", "budget"),
    [
        ({"mu": 1e-200}, None),
        ({"mu": 5e-324}, None),
        ({"mu": 1e200}, None),
        ({"rho": 1e308}, None),
        ({"epsilon": 1e308, "delta": 1e-6}, None),
        ({"epsilon": 1e-300}, None),
        ({"share": 1}, Budget(1e308, 1e-6)),
        ({"share": 1e-300}, Budget(1, 1e-6)),
    ],
)
@pytest.mark.parametrize("mechanism", [*MECHANISMS, "auto"])
def test_spends_above_the_limit_are_refused(spend, budget, mechanism):
    with pytest.raises(CalibrationError):
        plan(dpf.count(), mechanism, declared(budget), **spend)


def test_gaussian_noise_needs_a_delta():
    with raises(CalibrationError, "needs delta > 0", parameter="delta"):
        plan(dpf.count(), "gaussian", epsilon=1)
    with raises(CalibrationError, "needs delta > 0", parameter="delta"):
        plan(dpf.count(), "gaussian", declared(Budget(1)), share=0.5)
    assert plan(dpf.count(), "gaussian", declared(Budget(2, 1e-6)), epsilon=1).loss.mu_squared
    assert plan(dpf.count(), epsilon=1).mechanism == "laplace"


@pytest.mark.parametrize(
    ("mechanism", "spend", "message"),
    [
        ("laplace", {"epsilon": 0, "delta": 1e-6}, "epsilon must be > 0 for Laplace"),
        ("laplace", {"epsilon": 0}, "epsilon must be > 0 for Laplace"),
        ("auto", {"epsilon": 0}, "epsilon must be > 0 where delta is 0"),
        ("gaussian", {"epsilon": 0}, "epsilon must be > 0 where delta is 0"),
        ("correlated", {"epsilon": 1}, 'mechanism="correlated" needs delta > 0'),
        ("correlated", {"mu": 1}, 'mechanism="correlated" does not apply'),
        ("classical", {"mu": 1}, 'mechanism="classical" is calibrated by'),
        # of the mechanisms compared, the first that the amount allows any noise of says why
        ("auto", {"epsilon": 1e-19}, "2**60"),
        ("auto", {"epsilon": 0, "delta": 1e-30}, "2**60"),
        ("exact", {"epsilon": 1}, "mechanism must be one of"),
        ("auto", {"share": 0.5}, "none is declared"),
        ("auto", {}, "exactly one way"),
        ("auto", {"epsilon": 1, "mu": 1}, "exactly one way"),
        ("auto", {"mu": 1, "delta": 1e-6}, "delta goes with epsilon"),
        ("auto", {"share": 1.01}, "share must be in"),
    ],
)
def test_what_cannot_be_planned_says_why(mechanism, spend, message):
    with raises(CalibrationError, message):
        plan(dpf.count(), mechanism, **spend)


def test_what_no_neighbor_moves_costs_nothing_and_gets_no_noise():
    declaration = declared(neighboring="replace")
    made = plan({"n": dpf.count(), "s": dpf.sum("x", by="g")}, "auto", declaration, epsilon=1)
    assert made.of(made.tables["n"]).scales == (0.0,)
    assert made.predictions(made.tables["n"])[0].std_error == 0
    alone = plan(dpf.sum("x", by="g"), "auto", declaration, epsilon=1)
    assert made.of(made.tables["s"]).scales == alone.of(alone.tables[None]).scales
    free = plan(dpf.count(), "auto", declaration, epsilon=1)
    assert free.loss == PrivacyLoss()
    # a condition leaves rows out: the count is not public then
    assert scales(plan(dpf.count(where="x > 0"), "auto", declaration, epsilon=1))[0] > 0


@pytest.mark.parametrize("caps", [Caps(10**400), Caps(None, 10**40, 10**40), Caps(2**61)])
def test_caps_that_no_noise_can_hide_are_refused(caps):
    with raises(DeclarationError, "needs a cap", parameter="max_rows", label="u"):
        plan(dpf.count(), declaration=declared(privacy_unit=("u",), caps=caps), epsilon=1)


def test_a_unit_needs_a_cap_that_bounds_its_rows():
    with raises(DeclarationError, "needs a cap", parameter="max_rows", label="u"):
        plan(dpf.count(), declaration=declared(privacy_unit=("u",), caps=Caps(None, 3)), epsilon=1)


def test_the_choice_is_among_what_the_budget_allows():
    declaration = declared(Budget(1))  # without a delta nothing Gaussian ever fits
    assert plan(dpf.count(), "auto", declaration, mu=0.1).mechanism == "laplace"


CLOSED_FORMS = [
    # caps, K = q c^2 + rem^2
    (Caps(5, 5, 5), 25),
    (Caps(5, 5, 1), 5),
    (Caps(4, 3, 2), 8),
    (Caps(3, 2, 2), 5),
    (Caps(None, 2, 3), 18),
    (Caps(4, 1, None), 16),
]
MANY = {"g": list(range(12))}


@pytest.mark.parametrize(
    ("query", "scale", "replaced"),
    [
        (dpf.count(by="g", keys=MANY), 1, (2, 2)),
        (dpf.sum("k", by="g", keys=MANY, bounds=(0, 7)), 49, (2, 2)),
        (dpf.sum("k", by="g", keys=MANY, bounds=(-7, 7)), 49, (4, 4)),
        (dpf.sum("k", by="g", keys=MANY, bounds=(-2, 7)), 49, (2, 4)),
    ],
)
def test_sigma_is_the_closed_form_of_the_caps(query, scale, replaced):
    # Delta^2 = B^2 K when a unit is added, 2 B^2 K when one with values of one sign is
    # replaced, (2 B)^2 K with symmetric bounds, and in between with asymmetric ones
    for caps, k in CLOSED_FORMS:
        for relation, ends in (("add_remove", (1, 1)), ("replace", replaced)):
            declaration = declared(privacy_unit=("u",), caps=caps, neighboring=relation)
            (sigma,) = scales(plan(query, "gaussian", declaration, mu=1))
            low, high = (scale * k * end for end in ends)
            assert low <= Fraction(sigma) ** 2 <= high * (1 + Fraction(1, 10**9))

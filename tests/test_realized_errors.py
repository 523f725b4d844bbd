"""Realized errors of releases with shared noise, against those predicted.

Every group of a release is a draw of its own: 60,000 of them tell a variance to sqrt(2 / 60,000) =
0.58 %, so 3 % is 5.2 of that, passed by chance once in 5 million comparisons. Fewer than 150 are
made: fewer than one run in 30,000 fails by chance.
"""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from support.plans import parts_of
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.declaration.facts import Column, Declaration
from dpframe.plan.plan import plan_release
from dpframe.privacy.amounts import Spend
from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.neighbors import Caps

DRAWS = 60_000
MOST_OFF = 0.03
GROUPS = range(DRAWS)
RELATIONS = ["add_remove", "replace"]
BOUNDS = {"a": (0, 10), "b": (-3, 5), "c": (4, 4), "p": (0, 1), "q": (0, 1), "r": (0, 1)}
ANSWERS = {"a": 9.5, "b": -2.0, "c": 8.0, "p": 2, "q": 1, "r": 0, "n": 2}


def trips():
    """Two rows in every group."""
    zone = np.repeat(np.arange(DRAWS), 2)
    cells = {"a": [9.5, 0], "b": [-4, 1], "c": [4, 4], "p": [1, 1], "q": [0, 1], "r": [0, 0]}
    columns = {name: np.tile(np.array(values, float), DRAWS) for name, values in cells.items()}
    return pd.DataFrame({"zone": zone, "who": zone, **columns})


def released(query, frame=None, **facts):
    frame = trips() if frame is None else frame
    frame.dp.declare(bounds=BOUNDS, keys={"zone": GROUPS}, **facts)
    return frame.dp.release(query, mu=0.5, mechanism="correlated")


def check(found, names, answers=ANSWERS):
    """Compare the variance of every column to the predicted one, and to one that is 5 % off."""
    errors = found.dp.std_error
    for name in names:
        predicted = np.mean(errors[name] ** 2)
        realized = np.mean((found[name] - answers[name]) ** 2)
        assert realized == pytest.approx(predicted, rel=MOST_OFF), name
        assert realized != pytest.approx(1.1 * predicted, rel=MOST_OFF), name


UNIT = {"privacy_unit": "who", "max_rows": 3, "max_groups": 2, "max_rows_per_group": 2}
OPTIONS = {
    "as it is": {},
    "an accurate n": {"n_weight": 5},
    "the worst": {"objective": "worst"},
    "the worst, with an accurate n": {"objective": "worst", "n_weight": 2},
}
COMBINATIONS = list(itertools.product(OPTIONS, RELATIONS, [False, True]))


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize(("option", "neighboring", "capped"), COMBINATIONS)
def test_sums_have_the_errors_predicted(option, neighboring, capped):
    query = dpf.sum(["a", "b", "c", "p"], "zone", **OPTIONS[option])
    caps = UNIT if capped else {}
    found = released(query, neighboring=neighboring, missing={"c": 4}, **caps)
    asked = ["n"] if OPTIONS[option].get("n_weight") else []
    assert list(found.columns) == ["a", "b", "c", "p", *asked]
    check(found, found.columns)


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_counts_have_the_errors_of_the_closed_form(neighboring):
    # mu^2 = 1/4; the rounding of every block adds 1/12 to its variance
    found = released(dpf.sum(["p", "q", "r"], "zone"), neighboring=neighboring)
    check(found, found.columns)
    d = 3
    expected = ((math.sqrt(d) + 1) / 2) ** 2 if neighboring == "add_remove" else d + 1
    realized = np.mean([np.mean((found[name] - ANSWERS[name]) ** 2) for name in "pqr"])
    assert realized == pytest.approx(4 * expected + 1 / 24, rel=MOST_OFF)
    shared = (math.sqrt(d) + 1) / 4 if neighboring == "add_remove" else 1
    covariance = np.mean((found["p"] - 2) * (found["q"] - 1))
    # a covariance is known to sqrt(v^2 + c^2) / sqrt(60,000): 6 of that
    margin = 6 * math.hypot(expected, shared) / math.sqrt(DRAWS)
    assert covariance / 4 == pytest.approx(shared, abs=margin)
    assert shared > 3 * margin


@pytest.mark.parametrize("variance", [0.0, 9.0])
@pytest.mark.parametrize("neighboring", RELATIONS)
def test_a_known_number_of_rows_has_the_errors_predicted(neighboring, variance):
    noise = np.random.default_rng(11).normal(0, math.sqrt(variance), DRAWS)
    n = pd.Series(2 + noise, index=pd.Index(GROUPS))
    query = dpf.sum(["a", "p", "q"], "zone", n=(n, variance))
    found = released(query, neighboring=neighboring, missing=dict.fromkeys("apq", 0))
    assert list(found.columns) == ["a", "p", "q"]
    check(found, found.columns)


@pytest.mark.parametrize("caps", [{}, UNIT])
def test_sparse_counts_have_the_errors_predicted(caps):
    pandera = pytest.importorskip("pandera.pandas")
    names = [f"x{position}" for position in range(6)]
    frame = pd.DataFrame({name: position < 2 for position, name in enumerate(names)}, index=GROUPS)
    frame = frame.assign(zone=np.arange(DRAWS), who=np.arange(DRAWS))
    schema = pandera.DataFrameSchema({name: pandera.Column(bool) for name in names}, strict=False)
    frame.dp.declare(schema, keys={"zone": GROUPS}, **caps)
    query = dpf.sum(names, "zone", max_true=3)
    found = frame.dp.release(query, mu=0.5, mechanism="correlated")
    answers = {name: position < 2 for position, name in enumerate(names)} | {"n": 1}
    check(found, found.columns, answers)
    wide = frame.dp.release(query, mu=0.5, mechanism="gaussian")
    assert (found.dp.std_error[names].iloc[0] < 0.95 * wide.dp.std_error[names].iloc[0]).all()


@pytest.mark.parametrize(("caps", "bins"), [(Caps(None, 3, 1), 10), (Caps(8, None, 1), 12)])
def test_bins_of_units_have_the_errors_predicted(caps, bins):
    # one release has one error of the number of units: its noise is drawn many times instead
    axis = Column(keys=pd.RangeIndex(bins, name="zone"))
    declaration = Declaration({"zone": axis}, privacy_unit=("who",), caps=caps)
    plan = plan_release(declaration, {None: dpf.count("zone")}, Spend.of(mu=0.5), "correlated")
    (part,) = parts_of(plan)
    draws = GAUSSIAN.draw(part.scales, DRAWS, SYSTEM)
    (estimate,) = part.design.decode(draws, part.deviations)
    predicted = part.predictions[0].std_error ** 2
    assert estimate.values.dtype == np.int64
    assert np.mean(estimate.values**2) == pytest.approx(predicted, rel=MOST_OFF)
    assert np.mean(estimate.values**2) != pytest.approx(1.1 * predicted, rel=MOST_OFF)
    plan = plan_release(declaration, {None: dpf.count("zone")}, Spend.of(mu=0.5), "gaussian")
    (alone,) = parts_of(plan)
    assert predicted < 0.95 * alone.predictions[0].std_error ** 2


BITS = [f"x{position}" for position in range(6)]
WHOLE = {
    "answers": dpf.sum(BITS, "zone"),
    "answers, n known": dpf.sum(BITS, "zone", n=pd.Series(1, GROUPS)),
    "few answers": dpf.sum(BITS, "zone", max_true=3),
    "rows of a condition": dpf.aggregate(
        "zone", n=dpf.count(), some=dpf.count(where="x0 == True"), ticked=dpf.sum("x2")
    ),
}


@pytest.mark.parametrize("mu", [0.5, 1.0])
@pytest.mark.parametrize("asked", WHOLE)
def test_counts_of_things_are_whole_and_their_intervals_hold(asked, mu):
    pandera = pytest.importorskip("pandera.pandas")
    frame = pd.DataFrame({name: position < 2 for position, name in enumerate(BITS)}, index=GROUPS)
    frame = frame.assign(zone=np.arange(DRAWS))
    schema = pandera.DataFrameSchema({name: pandera.Column(bool) for name in BITS}, strict=False)
    frame.dp.declare(schema, keys={"zone": GROUPS}, privacy_unit=dpf.EACH_ROW)
    found = frame.dp.release(WHOLE[asked], mu=mu, mechanism="correlated")
    answers = {name: position < 2 for position, name in enumerate(BITS)}
    answers |= {"n": 1, "some": 1, "ticked": 0}
    check(found, found.columns, answers)
    assert (found.dtypes == np.int64).all()
    bars = found.dp.interval(0.8)
    for name in found.columns:
        low, high = bars[f"{name}_low"], bars[f"{name}_high"]
        inside = ((low <= answers[name]) & (answers[name] <= high)).mean()
        # six deviations of 60,000 draws
        assert inside > 0.8 - 6 * math.sqrt(0.16 / DRAWS)
        fewer = ((low + 1 < answers[name]) & (answers[name] < high - 1)).mean()  # 2 too narrow
        assert fewer < 0.8 - 6 * math.sqrt(0.16 / DRAWS)


@pytest.mark.parametrize(
    "caps", [{"max_groups": 3, "max_rows": 3}, {"max_groups": 4, "max_rows": 9}]
)
def test_numbers_of_units_are_whole_where_they_share_noise(caps):
    who = np.arange(400)
    visits = pd.DataFrame({"who": who, "zone": who % 12})
    visits.dp.declare(keys={"zone": range(12)}, privacy_unit="who", **caps)
    query = dpf.units("zone")
    assert visits.dp.plan(query, mu=0.5).table["mechanism"].iloc[0] == "correlated"
    found = visits.dp.release(query, mu=0.5)
    assert found.dtypes.tolist() == [np.int64]
    assert len(dict.fromkeys(found.dp.certificate.mechanism.scales.values())) == 2
    bars = found.dp.interval()
    assert (bars.dtypes == np.int64).all()
    half = (bars["units_high"] - found["units"]).iloc[0]
    error = found.dp.std_error.iloc[0, 0]
    assert 1.96 * error - 1 < half < 1.96 * error + 1


ZONES = range(3000)
WIDTHS = {"n": 1, "a": 10, "b": 8, "count": 1}


@pytest.fixture(scope="module")
def table():
    """Groups of different sizes and values, with missing ones; b near a bound, or in the middle."""
    rng = np.random.default_rng(17)
    zone = rng.choice(len(ZONES), 600_000, p=rng.dirichlet(np.full(len(ZONES), 40.0)))
    a, far, near = rng.gamma(2, 2, len(zone)), rng.normal(4.5, 1, len(zone)), zone % 5 - 1.0
    a[rng.random(len(zone)) < 0.1] = np.nan
    frame = pd.DataFrame({"zone": zone, "a": a, "far": far, "near": near})
    bounds = {"a": (0, 10), "far": (-3, 5), "near": (-3, 5)}
    frame.dp.declare(bounds=bounds, keys={"zone": ZONES}, missing={"far": 0, "near": 0})
    return frame


def aggregate(b):
    return dpf.aggregate("zone", n=dpf.count(), a=dpf.sum("a"), b=dpf.mean(b))


def truth(frame, b):
    groups = frame.assign(a=frame["a"].clip(0, 10), b=frame[b].clip(-3, 5)).groupby("zone")
    answers = {"n": groups.size(), "a": groups["a"].sum(), "b": groups["b"].mean()}
    return pd.DataFrame({**answers, "count": answers["n"]}).reindex(ZONES)


def mean_squares(table, queries, mechanism, answers):
    """Mean squares of the realized and of the predicted errors, by column, over 8 releases."""
    sums = {"realized": 0, "predicted": 0}
    for _ in range(8):
        for found in table.dp.release(queries, mu=0.5, mechanism=mechanism).values():
            realized = (found - answers[found.columns]) ** 2
            sums["realized"] = realized.mean().add(sums["realized"], fill_value=0)
            sums["predicted"] = (found.dp.std_error**2).mean().add(sums["predicted"], fill_value=0)
    return pd.DataFrame(sums) / 8


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("b", ["far", "near"])
@pytest.mark.parametrize("joint", [False, True])
def test_shared_noise_beats_independent_noise_by_the_predicted_factor(table, joint, b):
    # 3,000 groups and 8 releases tell a mean square to sqrt(2 / 24,000) = 0.9 %, and a ratio of two
    # to 1.3 %: 5 % and 7 % are more than 5 of that, passed by chance once in 10^6 comparisons
    queries = {"one": aggregate(b), **({"two": dpf.count("zone")} if joint else {})}
    answers = truth(table, b)
    alone, shared = (
        mean_squares(table, queries, mechanism, answers) for mechanism in ("gaussian", "correlated")
    )
    for found in (alone, shared):
        assert set(found.index) == {"n", "a", "b", *(["count"] if joint else [])}
        assert found["realized"].to_numpy() == pytest.approx(
            found["predicted"].to_numpy(), rel=0.05
        )
    gains = alone / shared
    assert gains["realized"].to_numpy() == pytest.approx(gains["predicted"].to_numpy(), rel=0.07)
    assert gains.loc[["n", "a"]].min(axis=None) > (1 if joint else 1.2)
    # scales are chosen for the worst mean there can be: one in the middle of the bounds needs no
    # number of rows, and leaves a part of its accuracy to the others
    assert gains.loc["b"].min() > 0.7
    # all errors, relative to the range of what a row adds
    weights = pd.Series(WIDTHS)[alone.index].astype(float) ** -2
    weights["b"] *= answers["n"].mean() ** 2
    total, of_shared = (found.mul(weights, axis=0).sum() for found in (alone, shared))
    gain = total / of_shared
    assert gain["realized"] == pytest.approx(gain["predicted"], rel=0.05)
    assert gain.min() > (1 if joint else 1.2)


def test_plans_foresee_what_shared_noise_gains(table):
    query = aggregate("far")
    assert table.dp.plan(query, mu=0.5).mechanism == "correlated"
    found = table.dp.release({"one": query, "two": dpf.count("zone")}, mu=0.5)
    for part in found.values():
        assert part.dp.certificate.mechanism.name == "correlated"

"""Errors of sampled rows beside noise: exact laws, formulas of textbooks, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from support.quotients import changes, quotients_of
from support.raising import raises

import dpframe as dpf
from dpframe.errors import QueryError
from dpframe.inference.joint_errors import WithSampling, count_ends, widen
from dpframe.inference.sums import IndependentSum
from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.noise_sum import NoiseSum
from dpframe.statistics.form import Totals
from dpframe.statistics.moments import moments, of_parts
from dpframe.statistics.table import statistic_of

HARDLY = {"epsilon": 1e7, "mechanism": "laplace"}  # hardly any noise


def held(width, scale, deviation):
    """Probability that a Laplace and a normal error add up to no more than the width."""
    a, x = deviation / scale, width / deviation
    tails = np.exp(a * a / 2 - width / scale) * stats.norm.cdf(x - a)
    tails -= np.exp(a * a / 2 + width / scale) * stats.norm.cdf(-x - a)
    return 2 * stats.norm.cdf(x) - tails - 1


@pytest.mark.parametrize(
    ("level", "off"), [(0.8, 0.005), (0.9, 0.005), (0.95, 0.005), (0.99, 0.0015)]
)
@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.6, 1.0, 1.7, 4.0])
def test_a_half_width_for_laplace_and_normal_errors_holds_its_level(level, off, ratio):
    alone, deviation = -np.log1p(-level), np.sqrt(2)
    width = widen(alone, deviation, 2 * ratio**2, level).item()
    assert held(width, 1.0, ratio * deviation) == pytest.approx(level, abs=off)
    narrow = held(0.93 * width, 1.0, ratio * deviation)
    assert abs(narrow - level) > off  # and a scale that is 7 % off is seen


@pytest.mark.parametrize("noisy", [-3.0, 0.0, 3.0, 40.0, 2000.0])
def test_ends_of_counts_are_those_of_a_search(noisy):
    width, deviation = 9.0, 4.0
    low, high = count_ends((np.array([noisy]),) * 2, width, deviation, 0.95)
    rows = max(noisy, 1.0)
    factor = widen(width, deviation, rows, 0.95) / np.sqrt(deviation**2 + rows)

    def off(mean):
        return abs(noisy - mean) - factor * np.sqrt(deviation**2 + mean)

    upper = optimize.brentq(off, max(noisy, 0), noisy + 1000)
    assert high == pytest.approx(max(upper, noisy + width))
    if noisy > width:
        lower = optimize.brentq(off, 0, noisy)
        assert low == pytest.approx(lower)
        assert low < noisy - width
    else:
        assert low == noisy - width


def visits(**declared):
    rng = np.random.default_rng(4)
    ward = rng.choice(["A", "B", "C"], 400, p=[0.5, 0.4, 0.1])
    frame = pd.DataFrame({"ward": ward, "cost": rng.gamma(2.0, 3.0, 400).clip(0, 30)})
    frame["patient"] = np.arange(400) // 2
    keys = {"ward": ["A", "B", "C"]}
    facts = {"keys": keys, "bounds": {"cost": (0, 30)}, "privacy_unit": dpf.EACH_ROW}
    frame.dp.declare(**facts | declared)
    return frame


ALL = dpf.aggregate(
    "ward",
    n=dpf.count(),
    cost=dpf.mean("cost", sampling=True),
    dear=dpf.rate("cost > 9"),
    few=dpf.count(where="cost > 15"),
)


def of_samples(frame):
    """Numbers of rows, means and their textbook errors by ward."""
    by_ward = frame.groupby("ward")["cost"]
    return by_ward.size(), by_ward.mean(), by_ward.std() / np.sqrt(by_ward.size())


def near(some, others, **how):
    """Whether two columns hold nearly the same numbers."""
    return list(some) == pytest.approx(list(others), **how)


def test_without_noise_intervals_are_those_of_textbooks():
    frame = visits()
    made, z = frame.dp.release(ALL, **HARDLY), stats.norm.ppf(0.975)
    bars = made.dp.interval(sampling=True)
    n, mean, error = of_samples(frame)
    student = stats.t.ppf(0.975, n - 1)
    assert near(bars["cost_low"], (mean - student * error), rel=0.005)
    assert near(bars["cost_high"], (mean + student * error), rel=0.005)
    wilson = [
        stats.binomtest(k, m).proportion_ci(method="wilson")
        for k, m in zip((made["dear"] * n).round().astype(int), n, strict=True)
    ]
    assert near(bars["dear_low"], [one.low for one in wilson], abs=1e-5)
    assert near(bars["dear_high"], [one.high for one in wilson], abs=1e-5)
    high = n + z * z / 2 + z * np.sqrt(n + z * z / 4)
    assert (bars["n_high"] == np.ceil(high)).all()


@pytest.mark.parametrize("spend", [{"epsilon": 1.0, "mechanism": "laplace"}, {"mu": 0.5}])
def test_they_hold_those_of_the_noise(spend):
    made = visits().dp.release(ALL, **spend)
    alone, sampled = made.dp.interval(), dpf.interval(made, sampling=True)
    for low, high in zip(alone.columns[::2], alone.columns[1::2], strict=True):
        assert (sampled[low] <= alone[low] + 1e-9).all()
        assert (sampled[high] >= alone[high] - 1e-9).all()
    few = made.loc[["B"]].dp.interval(sampling=True, chosen="keys")
    pd.testing.assert_frame_equal(few, sampled.loc[["B"]])


def test_differences_have_the_errors_of_both_samples():
    frame = visits()
    n, mean, error = of_samples(frame)
    made = frame.dp.mean("cost", "ward", sampling=True, **HARDLY)
    (found,) = made.dp.combine({"A": 1, "B": -1}, sampling=True).itertuples()
    assert found.std_error == pytest.approx(np.hypot(error["A"], error["B"]), rel=1e-4)
    assert found.high - found.estimate == pytest.approx(1.959964 * found.std_error, rel=1e-4)
    assert found.estimate == pytest.approx(mean["A"] - mean["B"], abs=1e-3)
    counts = frame.dp.count("ward", **HARDLY)
    (found,) = counts.dp.combine({"A": 1, "B": -2}, sampling=True).itertuples()
    assert found.std_error == pytest.approx(np.sqrt(n["A"] + 4 * n["B"]), rel=1e-6)


def test_changes_have_the_errors_of_both_samples():
    first, second = visits(), visits()
    then, now = (frame.dp.release(ALL, **HARDLY) for frame in (first, second))
    bars = changes(now.dp.change(then, sampling=True))
    found = ((bars["high"] - bars["low"]) / 2 / 1.959964).unstack()
    n, _, error = of_samples(first)
    assert near(found["n"], np.sqrt(2 * n), abs=0.6)  # of whole numbers
    assert near(found["cost"], (np.sqrt(2) * error), rel=0.05)  # by intervals, as of Student
    rate = then["dear"]
    inside = rate.between(0.1, 0.9)
    assert near(found["dear"][inside], np.sqrt(2 * rate * (1 - rate) / n)[inside], rel=0.1)
    ends = changes(now.dp.change(then, sampling=True)).xs("n", level="column")
    assert (ends["high"] == np.ceil(1.959964 * np.sqrt(2 * n))).all()
    alone, both = changes(now.dp.change(then)), changes(now.dp.change(then, sampling=True))
    assert ((both["high"] - both["low"]) > (alone["high"] - alone["low"])).all()


def test_shares_have_the_intervals_of_wilson():
    frame = visits()
    made = frame.dp.release(ALL, **HARDLY)
    found = quotients_of(made.dp.ratio("few", "n", sampling=True))
    counts = frame.dp.count("ward", **HARDLY)
    shares = quotients_of(counts.dp.percent(sampling=True))
    few = frame.loc[frame["cost"] > 15].groupby("ward").size()
    n = frame.groupby("ward").size()
    pairs = [(found, few, n, 1), (shares, n, n * 0 + 400, 100)]
    for table, some, whole, times in pairs:
        wilson = [
            stats.binomtest(int(k), int(m)).proportion_ci(method="wilson")
            for k, m in zip(some, whole, strict=True)
        ]
        assert near(table["low"], [times * one.low for one in wilson], abs=1e-3)
        assert near(table["high"], [times * one.high for one in wilson], abs=1e-3)
    joined = counts.dp.percent(sampling=True)
    assert (joined["count_percent_low"] == shares["low"]).all()
    assert "sampled rows" in repr(joined.dp.certificate)


def test_what_was_not_measured_is_refused():
    frame = visits()
    query = dpf.aggregate("ward", total=dpf.sum("cost"), cost=dpf.mean("cost"), n=dpf.count())
    made = frame.dp.release(query, epsilon=1, mechanism="laplace")
    with raises(QueryError, "mean", parameter="sampling", value=True):
        made.dp.interval(sampling=True)
    with raises(QueryError, "dpf.mean(..., sampling=True)", parameter="sampling", value=True):
        made[["cost"]].dp.interval(sampling=True)
    with raises(QueryError, "counts, rates", parameter="sampling", value=True):
        frame.dp.std("cost", "ward", epsilon=1).dp.interval(sampling=True)
    pair = {"x": "cost", "y": "patient", "by": "ward", "bounds": {"patient": (0, 200)}}
    for of_pair in (frame.dp.corr(**pair, epsilon=1), frame.dp.slope(**pair, epsilon=1)):
        (kind,) = of_pair.columns
        with raises(QueryError, f"dpf.{kind}(..., sampling=True)", parameter="sampling"):
            of_pair.dp.interval(sampling=True)
    with raises(QueryError, "counts, rates", parameter="sampling", value=True):
        frame.dp.cov(**pair, epsilon=1).dp.interval(sampling=True)
    with raises(QueryError, "sum", parameter="sampling", value=True):
        quotients_of(made.dp.ratio("total", "n", sampling=True))
    with raises(QueryError, "True or False", parameter="sampling", value=1):
        made.dp.combine(pd.DataFrame({"n": {"A": 1}}), sampling=1)
    twice = pd.DataFrame({"n": [1.0], "total": [1.0]}, index=["A"])
    with raises(QueryError, "one column", parameter="sampling", value=True):
        made.dp.combine(twice, sampling=True)
    late = dpf.aggregate("ward", a=dpf.count(where="cost > 9"), b=dpf.count(where="cost > 3"))
    with raises(QueryError, "all rows of 'a'", parameter="sampling", value=True):
        quotients_of(frame.dp.release(late, epsilon=1).dp.ratio("a", "b", sampling=True))
    with raises(QueryError, "True or False", parameter="sampling", value="yes"):
        dpf.mean("cost", sampling="yes")


def test_several_rows_of_a_unit_are_no_sample_of_independent_ones():
    frame = visits(privacy_unit="patient", max_rows=2)
    with raises(QueryError, "patient", parameter="sampling", value=True):
        frame.dp.count("ward", epsilon=1).dp.interval(sampling=True)
    spread = frame.dp.var("cost", "ward", bounds=(0, 10), epsilon=1)
    with raises(QueryError, "not measured for var", parameter="sampling", value=True):
        spread.dp.interval(sampling=True)  # with one row of each unit, it is not known either
    once = frame.dp.count("ward", max_rows_per_group=1, epsilon=1)
    assert (once.dp.interval(sampling=True)["count_high"] > once["count"]).all()
    with raises(QueryError, "max_rows=1", parameter="sampling", value=True):
        quotients_of(once.dp.percent(sampling=True))
    with raises(QueryError, "max_rows=1", parameter="sampling", value=True):
        once.dp.combine({"A": 1, "B": -1}, sampling=True)
    one = frame.dp.count("ward", max_rows=1, epsilon=1)
    assert (quotients_of(one.dp.percent(sampling=True))["high"] > 0).all()


PAIR = dpf.aggregate(
    "ward", r=dpf.corr("age", "cost", sampling=True), b=dpf.slope("age", "cost"), n=dpf.count()
)


def pairs():
    """Visits with skewed costs that grow, and spread, with age."""
    rng = np.random.default_rng(6)
    age = rng.normal(50, 12, 1200).clip(18, 90)
    frame = pd.DataFrame({"ward": np.arange(1200) % 2, "age": age})
    frame["cost"] = (age / 10 * rng.gamma(4.0, 0.5, 1200)).clip(0, 40)
    facts = {"keys": {"ward": [0, 1]}, "bounds": {"age": (18, 90), "cost": (0, 40)}}
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, **facts)
    return frame


def first_order(frame):
    """Correlations, slopes and their errors, from what each row does to them."""
    rows = []
    for _, one in frame.groupby("ward"):
        x, y = one["age"] - one["age"].mean(), one["cost"] - one["cost"].mean()
        u, v, n = x / x.std(ddof=0), y / y.std(ddof=0), len(one)
        r, b = (u * v).mean(), (x * y).mean() / (x * x).mean()
        of_r, of_b = u * v - r * (u**2 + v**2) / 2, (x * y - b * x**2) / (x * x).mean()
        rows.append([r, b, *(np.sqrt((of**2).mean() / n) for of in (of_r, of_b))])
    return np.transpose(rows)


def test_correlations_and_slopes_have_the_errors_of_what_rows_do_to_them():
    frame = pairs()
    r, b, of_r, of_b = first_order(frame)
    made, z = frame.dp.release(PAIR, **HARDLY), stats.norm.ppf(0.975)
    bars = made.dp.interval(sampling=True)
    changed = changes(made.dp.change(frame.dp.release(PAIR, **HARDLY), sampling=True))
    for name, value, error in (("r", r, of_r), ("b", b, of_b)):
        assert near(made[name], value, rel=1e-3)
        low, high = bars[f"{name}_low"], bars[f"{name}_high"]
        # nearly as long as to first order, and each end has the error that it would have
        assert near(high - low, 2 * z * error, rel=0.02)
        found = changed.xs(name, level="column")
        assert near(found["high"] - found["low"], 2 * z * np.sqrt(2) * error, rel=0.02)
        alone = made[[name]].dp.combine({0: 1, 1: -1}, sampling=True)
        assert near(alone["std_error"], [np.hypot(*error)], rel=5e-3)
    low = bars["b_low"].to_numpy()
    for at, (_, one) in enumerate(frame.groupby("ward")):
        x, y = one["age"] - one["age"].mean(), one["cost"] - one["cost"].mean()
        off = ((x * y - low[at] * x**2) ** 2).sum() ** 0.5
        assert (x * y - low[at] * x**2).sum() == pytest.approx(z * off, rel=5e-3)


@pytest.mark.parametrize("kind", ["corr", "slope"])
def test_variances_that_noise_hides_are_taken_for_twice_those_of_normal_values(kind):
    frame, a, b = pairs(), np.array([0.8]), np.array([0.4])
    ends = {"age": (18, 90), "cost": (0, 40)}
    x, y = ((frame[name] - low) / (high - low) for name, (low, high) in ends.items())
    first, second = (stats.binom.pmf(np.arange(5)[:, None], 4, one.to_numpy()) for one in (x, y))
    statistic = statistic_of(kind, [(0, 2), (0, 2)], sampled=True)
    parts = (first @ second.T).reshape(25, 1)
    weights = {name: np.array(of_parts(p, 4)) for name, p in moments(2, 4).items()}
    values = {name: own @ parts for name, own in weights.items()}
    x, y = 2 * (x - x.mean()), 2 * (y - y.mean())
    spread, k = np.cov(x, y, ddof=0), y.std() / x.std()
    form = np.array([[0, a[0] / 2], [a[0] / 2, 0]])
    form -= b[0] * np.diag([1, 0] if kind == "slope" else [k / 2, 1 / k / 2])
    both = np.array([x, y])
    exact = ((both * (form @ both)).sum(axis=0) ** 2).sum()
    # the mean square of a form of normal values, with A S for the form and their covariances
    product = form @ spread
    normal = len(x) * (2 * np.trace(product @ product) + np.trace(product) ** 2)
    for noise, low, high in ((1e-9, 1 - 1e-9, 1), (1.0, 0.5, 0.99), (6.0, 0.01, 0.7)):
        loadings = {name: dict(enumerate(noise * own)) for name, own in weights.items()}
        totals = Totals(values, loadings)
        found = statistic.spread(totals)(a, b, slice(None))
        share = ((found.variance - 2 * normal) / (exact - 2 * normal)).item()
        assert low < share <= high + 1e-9
        assert share == pytest.approx(1 / (1 + (found.error.item() / share / 2 / normal) ** 2))


@pytest.mark.parametrize("error", [0.0, 1.0, 3.0, 1e6])
def test_a_variance_with_an_error_counts_as_one_of_few_values(error):
    noise = IndependentSum([(GAUSSIAN, NoiseSum({"0": 2.0}, {"0": 1e6}))])
    freedom = max(2 * 9.0**2 / error**2, 20) if error else np.inf
    for level in (0.8, 0.95):
        width = WithSampling(noise, np.array(5.0), np.array(error)).half_width(level)
        # a quantile of Student, whose expansion ends with the first term
        assert width == pytest.approx(3 * stats.t.ppf((1 + level) / 2, freedom), rel=4e-3)


@pytest.mark.parametrize("spend", [{"epsilon": 3.0, "mechanism": "laplace"}, {"mu": 2.0}])
def test_sampled_pairs_hold_the_intervals_of_the_noise(spend):
    made = pairs().dp.release(PAIR, **spend)
    alone, sampled = made.dp.interval(), made.dp.interval(sampling=True)
    for low, high in zip(alone.columns[::2], alone.columns[1::2], strict=True):
        assert (sampled[low] <= alone[low] + 1e-9).all()
        assert (sampled[high] >= alone[high] - 1e-9).all()
    assert (sampled["r_high"] - sampled["r_low"] > alone["r_high"] - alone["r_low"]).any()


def test_what_takes_one_row_of_a_unit_is_refused_before_it_is_charged():
    frame = pd.DataFrame({"who": [1, 1, 2], "x": [0.1, 0.5, 0.9], "y": [0.2, 0.3, 0.4]})
    facts = {"bounds": {"x": (0, 1), "y": (0, 1)}, "privacy_unit": "who", "max_rows": 3}
    frame.dp.declare(**facts, budget=dpf.Budget(epsilon=1))
    for query in (dpf.mean("x", sampling=True), dpf.corr("x", "y", sampling=True)):
        for call in (frame.dp.plan, frame.dp.release):
            with raises(QueryError, "max_rows_per_group=1", parameter="sampling"):
                call(query, epsilon=0.5)
    assert frame.dp.ledger.entries == ()
    frame.dp.mean("x", max_rows_per_group=1, sampling=True, epsilon=0.5).dp.interval(sampling=True)

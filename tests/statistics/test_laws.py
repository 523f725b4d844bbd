"""Laws of every statistic of the table: one test for each, so that a new one needs none."""

import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from support.designing import EVERYONE, square_of, workload

import dpframe as dpf
from dpframe.engines.blocks import powers
from dpframe.privacy.noise_sum import norm
from dpframe.queries.edges import Grid
from dpframe.statistics.form import Totals
from dpframe.statistics.moments import moments
from dpframe.statistics.table import STATISTICS, statistic_of
from dpframe.strategies.base import Output, Source
from dpframe.strategies.layout import separate
from dpframe.strategies.linear import corners, parts_of

BOUNDS = {"x": (-2, 12), "y": (0, 6), "z": (-1, 3), "u": (0, 1), "v": (-9, 9), "w": (2, 8)}
READ = [name for name, form in STATISTICS.items() if form.family]
QUOTIENTS = [name for name in READ if not STATISTICS[name].is_total]
FAR = [0.0, -3.0, 0.4, 1.0, 55.0, 1e19, -1e19]


REGRESSED = [name for name in READ if STATISTICS[name].name == "regression"]


def number_of(name):
    """How many columns it is about here."""
    if name in REGRESSED:
        return 1 + int(name[-1]) if name[-1].isdigit() else 3
    return STATISTICS[name].arity


def bounds_of(name):
    return list(BOUNDS.values())[: number_of(name)]


def made(name, *, sampled=False):
    return statistic_of(name, bounds_of(name), sampled=sampled)


def values(size=400, seed=3):
    """Skewed values of columns that go together, on whole numbers."""
    rng = np.random.default_rng(seed)
    x = np.rint(rng.gamma(2.0, 2.0, size) - 2).clip(*BOUNDS["x"])
    y = np.rint(x / 3 + rng.normal(2, 1, size)).clip(*BOUNDS["y"])
    others = [np.rint(y / 4 + rng.normal(0, 1, size)), (rng.random(size) < 0.3).astype(float)]
    others += [np.rint(x - y + rng.normal(0, 3, size)), np.rint(rng.normal(5, 2, size) - x / 5)]
    bounds = list(BOUNDS.values())[2:]
    return x, y, *(one.clip(*ends) for one, ends in zip(others, bounds, strict=True))


def totals_of(name, x, *others, sampled=False, noise=1.0):
    """Exact totals of the features, each with a block of noise of its own."""
    columns = (x, *others)[: max(number_of(name), 1)]
    low, high = np.array([*BOUNDS.values()])[: len(columns)].T
    off = 2 * (np.array(columns) - low[:, None]) / (high - low)[:, None] - 1
    u = np.where(x > 3, 1.0, -1.0) if name == "rate" else off[0]
    exact = {"rows": np.ones(len(x)), "value": x, "y": u, "squares": u**2 - 0.5}
    for moment, degrees in moments(len(columns), 4 if sampled else 2).items():
        exact[moment] = np.prod(off.T**degrees, axis=1)
    features = made(name, sampled=sampled).features
    sums = {feature: np.array([exact[feature].sum()]) for feature in features}
    scales = {feature: noise * (1 + at % 3) for at, feature in enumerate(features)}
    return Totals(sums, {feature: {feature: scales[feature]} for feature in features})


def fit_of(name, *columns):
    """Least squares by the matrix of covariates."""
    *covariates, response = columns[: number_of(name)]
    known = np.stack([np.ones(len(response)), *covariates], axis=1)
    found, *_ = np.linalg.lstsq(known, response)
    if name == "r_squared":
        return 1 - (response - known @ found).var() / response.var()
    return found[0 if name == "intercept" else int(name[-1])]


def definition(name, x, y, *others):
    """What textbooks say."""
    if name in REGRESSED:
        return fit_of(name, x, y, *others)
    return {
        "count": lambda: len(x),
        "sum": x.sum,
        "mean": x.mean,
        "rate": (x > 3).mean,
        "var": x.var,
        "std": x.std,
        "cov": lambda: np.cov(x, y, ddof=0)[0, 1],
        "corr": lambda: np.corrcoef(x, y)[0, 1],
        "slope": lambda: np.cov(x, y, ddof=0)[0, 1] / x.var(),
    }[name]()


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("name", READ)
def test_the_definition_holds_on_exact_totals(name, sampled):
    totals = totals_of(name, *values(), sampled=sampled, noise=0.0)
    value, _ = made(name, sampled=sampled).estimate(totals)
    assert value == pytest.approx(definition(name, *values()), rel=1e-9)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("name", QUOTIENTS)
def test_loadings_are_the_derivatives(name, sampled):
    statistic = made(name, sampled=sampled)
    totals = totals_of(name, *values(), sampled=sampled, noise=1e-3)  # so that bias is none
    _, loadings = statistic.estimate(totals)
    error = norm(loadings.values()).item()
    for feature, scale in ((k, of[k]) for k, of in totals.loadings.items()):
        ends = []
        for sign in (-1, 1):
            moved = totals.values[feature] + sign * 1e-3 * scale
            some = Totals({**totals.values, feature: moved}, totals.loadings)
            ends.append(statistic.estimate(some)[0].item())
        slope = (ends[1] - ends[0]) / 2e-3
        assert np.ravel(loadings.get(feature, 0.0))[0] == pytest.approx(slope, abs=1e-5 * error)


@pytest.mark.parametrize("sampled", [False, True])
def test_a_correlation_has_no_bias_of_second_order(sampled):
    totals = totals_of("corr", *values(4000), sampled=sampled)

    def plain(of):
        n, x, y, xx, xy, yy = (
            of[f"moment {p}"].item() for p in ("0 0", "1 0", "0 1", "2 0", "1 1", "0 2")
        )
        return (n * xy - x * y) / math.sqrt((n * xx - x * x) * (n * yy - y * y))

    sums, middle, bias = totals.values, plain(totals.values), 0.0
    for feature in sums:
        scale = totals.loadings[feature][feature]
        above, below = (plain({**sums, feature: sums[feature] + s * scale}) for s in (1, -1))
        bias += (above + below) / 2 - middle
    value, _ = made("corr", sampled=sampled).estimate(totals)
    assert abs(bias) > 5e-6
    assert middle - value.item() == pytest.approx(bias, rel=1e-3)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("name", QUOTIENTS)
def test_the_error_to_expect_is_the_largest_of_one_row(name, sampled):
    # of a standard deviation, a correlation or a slope it is that at a quarter of the width
    statistic, x = made(name, sampled=sampled), np.arange(-2.0, 13.0)
    totals = totals_of(name, *values(), sampled=sampled)
    foreseen = norm(statistic.predict(totals.loadings).values()).item()
    if name == "std" or STATISTICS[name].of_several:
        assert 0 < foreseen < np.inf
        return
    found = []
    for some in (*np.split(x, len(x)), x[[0, -1]], x[[0, 7, -1]], x[[3, -1]]):
        totals = totals_of(name, some, sampled=sampled)
        quotient = statistic.quotient(totals)
        noise = totals.noise(quotient.apart(quotient.value(totals)))
        found.append(norm(noise.values()).item() * statistic.unit)
    assert max(found) <= foreseen * (1 + 1e-9)
    assert max(found) >= 0.9 * foreseen


@pytest.mark.parametrize("name", QUOTIENTS)
def test_odd_totals_have_finite_answers_inside_what_is_possible(name):
    statistic = made(name)
    many = min(len(statistic.features), 3)
    grid = np.array(list(itertools.product(FAR, repeat=many))).T
    odd = {k: grid[at % many] * (-1) ** (at // many) for at, k in enumerate(statistic.features)}
    loadings = {k: {at: 1.0 + at % 2} for at, k in enumerate(odd)}
    value, moved = statistic.estimate(Totals(odd, loadings))
    low, high = statistic.span
    error = norm(moved.values())
    if name in REGRESSED:  # it is missing where moments are of no rows
        known = np.isfinite(value)
        assert not known.all() and (np.isfinite(error) == known).all()
        value, error = value[known], error[known]
    assert ((value >= low - 1e-9) & (value <= high + 1e-9)).all()
    assert np.isfinite(value).all() and np.isfinite(error).all()
    most = high - low if statistic.is_mean else statistic.unit
    if name != "slope" and name not in REGRESSED:
        assert (error <= most * (1 + 1e-9)).all()
    still = statistic.estimate(Totals(odd, {k: {0: 0.0} for k in odd}))[1]
    assert np.nan_to_num(norm(still.values())).max() == 0


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("name", READ)
def test_corners_hold_random_rows(name, optional):
    ends, *others = bounds_of(name) or [(0, int(name == "rate"))]
    source = Source(*ends, optional=optional, others=tuple(others))
    work = workload((EVERYONE, source), (Output(name, 1),))
    blocks = [block for block in separate(work).blocks if block.source == 1]
    rows = [Counter() for _ in range(optional)]
    rng = np.random.default_rng(5)
    held = [np.arange(low, high + 1) for low, high in (ends, *others)]
    every = itertools.product(*(one[[0, -1]] for one in held))
    some = zip(*(rng.choice(one, 300) for one in held), strict=True)
    for x, *rest in [*every, *some] if others else [(x,) for x in held[0]]:
        row = Counter({(1, "rows"): 1, (1, "value"): x})
        row[1, "square"] = square_of(x, source) if ends[1] > ends[0] else 0
        split = [
            powers(np.array([at]), Grid(0, *own))
            for at, own in zip((x, *rest), (ends, *others), strict=True)
        ]
        for moment, of_columns in moments(len(split), 2).items() if others else ():
            each = zip(split, of_columns, strict=True)
            row[1, moment] = math.prod(int(of[power][0]) for of, power in each)
        rows.append(row)
    added = np.array(
        [[sum(row[need] * by for need, by in b.parts) for b in blocks] for row in rows]
    )
    held = np.array(corners(source, blocks), float) / parts_of(blocks)
    if not blocks:  # rows that are always there are counted as those of the cell
        assert not optional
        return
    if others:  # no number is farther from 0, nor two farther from each other
        assert (np.abs(added).max(axis=0) == np.abs(held).max(axis=0)).all()
        apart, most = np.ptp(added, axis=0), np.ptp(held, axis=0)
        assert (apart <= most).all()
        assert all(apart[at] == most[at] for at, b in enumerate(blocks) if "2" not in str(b.part))
        return
    size = np.abs(held).max(axis=0).clip(1)
    for direction in rng.normal(size=(200, len(blocks))) / size:
        far = (held @ direction).max()
        assert (added @ direction).max() <= far + 1e-9 * abs(far)
    shrunk = 0.9 * held @ np.eye(len(blocks))[0]
    assert not shrunk.min() <= added[:, 0].min() <= added[:, 0].max() <= shrunk.max()


def asked(name):
    """The query of a statistic, of columns x, y and so on, by g; and the column with it."""
    labels = list(BOUNDS)[: number_of(name)]
    if name in REGRESSED:
        *covariates, response = labels
        column = covariates[-1] if name[-1].isdigit() else name
        return dpf.regression(response, covariates, "g"), column
    part = dpf.rate("x > 3") if name == "rate" else getattr(dpf, name)(*labels)
    return dpf.aggregate("g", a=part), "a"


@pytest.mark.full
@pytest.mark.parametrize("spend", [{"epsilon": 4.0, "mechanism": "laplace"}, {"mu": 2.0}])
@pytest.mark.parametrize("rows", [4, 60])
@pytest.mark.parametrize("name", READ)
def test_intervals_hold(name, rows, spend):
    groups = 500
    rows = min(100 * rows, 1_000) if name in REGRESSED else rows  # in fewer, nothing is known
    columns = dict(zip(BOUNDS, values(groups * rows, seed=8), strict=True))
    frame = pd.DataFrame({"g": np.arange(groups * rows) % groups, **columns})
    facts = {"keys": {"g": range(groups)}, "bounds": BOUNDS, "privacy_unit": dpf.EACH_ROW}
    frame.dp.declare(**facts)
    query, column = asked(name)
    made = frame.dp.release(query, **spend)[[column]]
    with np.errstate(invalid="ignore", divide="ignore"):  # a few groups have one value alone
        each = [definition(name, *one[[*BOUNDS]].to_numpy().T) for _, one in frame.groupby("g")]
    true = np.array(each)
    defined = np.isfinite(true)
    assert made[column].notna().mean() > 0.3 or rows < 100
    for level, least in ((0.8, 0.728), (0.95, 0.911)):
        low, high = made.dp.interval(level).to_numpy(float).T
        held = ((low <= true + 1e-9) & (true - 1e-9 <= high))[defined].mean()
        # four standard errors of a share of 500 groups: chance fails once in 30,000 tries
        assert held > least, (level, held)
    if rows > 10 and not STATISTICS[name].is_whole:
        assert held < 1

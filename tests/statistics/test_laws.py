"""Laws of every statistic of the table: one test for each, so that a new one needs none."""

import itertools
import json
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from support.columns import column_of
from support.designing import EVERYONE, workload
from support.moving import square_of

import dpframe as dpf
from dpframe.certificates.column_parts import ColumnPart
from dpframe.certificates.json_records import plain, read
from dpframe.engines.blocks import bernstein_parts
from dpframe.privacy.noise_sum import norm
from dpframe.queries.grid import Grid
from dpframe.statistics.form import Totals
from dpframe.statistics.pairs import parts_of_pair
from dpframe.statistics.table import STATISTICS, statistic_of
from dpframe.strategies.base import Output, Source
from dpframe.strategies.layout import separate
from dpframe.strategies.linear import corners, parts_of

READ = [name for name, form in STATISTICS.items() if form.family]
QUOTIENTS = [name for name in READ if not STATISTICS[name].is_total]
BOUNDS = {"x": (-2, 12), "y": (0, 6)}
FAR = [0.0, -3.0, 0.4, 1.0, 55.0, 1e19, -1e19]


def made(name, *, sampled=False):
    ends = list(BOUNDS.values())[: STATISTICS[name].arity]
    return statistic_of(name, ends, sampled=sampled)


def values(size=400, seed=3):
    """Skewed values of two columns that go together, on whole numbers."""
    rng = np.random.default_rng(seed)
    x = np.rint(rng.gamma(2.0, 2.0, size) - 2).clip(*BOUNDS["x"])
    y = np.rint(x / 3 + rng.normal(2, 1, size)).clip(*BOUNDS["y"])
    return x, y


def bernstein(u, degree):
    """Polynomials of degree d at u in [-1, 1]."""
    p = (1 + u) / 2
    return [math.comb(degree, i) * p**i * (1 - p) ** (degree - i) for i in range(degree + 1)]


def totals_of(name, x, y, *, sampled=False, noise=1.0):
    """Exact totals of the features, each with a block of noise of its own."""
    low, high = np.array([*BOUNDS.values()]).T
    u, v = (2 * (np.array([x, y]) - low[:, None]) / (high - low)[:, None]) - 1
    u = np.where(x > 3, 1.0, -1.0) if name == "rate" else u
    exact = {"rows": np.ones(len(x)), "value": x, "y": u, "squares": u**2 - 0.5}
    of_x, of_y = (bernstein(one, 4 if sampled else 2) for one in (u, v))
    exact |= {k: of_x[i] * of_y[j] for k, (i, j) in parts_of_pair(len(of_x) - 1).items()}
    features = made(name, sampled=sampled).features
    sums = {feature: np.array([exact[feature].sum()]) for feature in features}
    scales = {feature: noise * (1 + at % 3) for at, feature in enumerate(features)}
    return Totals(sums, {feature: {feature: scales[feature]} for feature in features})


def definition(name, x, y):
    """What textbooks say."""
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
    x, y = values()
    value, _ = made(name, sampled=sampled).estimate(
        totals_of(name, x, y, sampled=sampled, noise=0.0)
    )
    assert value == pytest.approx(definition(name, x, y), rel=1e-9)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("name", QUOTIENTS)
def test_loadings_are_the_derivatives(name, sampled):
    statistic, totals = made(name, sampled=sampled), totals_of(name, *values(), sampled=sampled)
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
@pytest.mark.parametrize("name", QUOTIENTS)
def test_the_error_to_expect_is_the_largest_of_one_row(name, sampled):
    # of a standard deviation, a correlation or a slope it is that at a quarter of the width
    statistic, x = made(name, sampled=sampled), np.arange(-2.0, 13.0)
    y = np.resize([0.0, 6.0, 3.0], len(x))
    foreseen = norm(
        statistic.predict(totals_of(name, x, y, sampled=sampled).loadings).values()
    ).item()
    if name in ("std", "corr", "slope", "cov"):
        assert 0 < foreseen < np.inf
        return
    found = []
    for some in (*np.split(x, len(x)), x[[0, -1]], x[[0, 7, -1]], x[[3, -1]]):
        totals = totals_of(name, some, some.clip(0, 6), sampled=sampled)
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
    assert ((value >= low - 1e-9) & (value <= high + 1e-9)).all()
    error = norm(moved.values())
    assert np.isfinite(value).all() and np.isfinite(error).all()
    most = high - low if statistic.is_mean else statistic.unit
    if name != "slope":
        assert (error <= most * (1 + 1e-9)).all()
    still = statistic.estimate(Totals(odd, {k: {0: 0.0} for k in odd}))[1]
    assert norm(still.values()).max() == 0


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("name", QUOTIENTS)
def test_the_record_reads_back(name, sampled):
    totals = totals_of(name, *values(), sampled=sampled)
    bounds = list(BOUNDS.values())[: STATISTICS[name].arity]
    named = {k: {str(at): of[k]} for at, (k, of) in enumerate(totals.loadings.items())}
    part = column_of(name, totals.values, named, *bounds)
    back = read(ColumnPart, json.loads(json.dumps(plain(part))), "a column")
    assert back == part
    one, other = (p.statistic.estimate(p.totals) for p in (part, back))
    assert one[0].tolist() == other[0].tolist()
    assert one[0] == made(name, sampled=sampled).estimate(totals)[0]
    assert {k: v.item() for k, v in one[1].items()} == {k: v.item() for k, v in other[1].items()}
    assert back.statistic.features == made(name, sampled=sampled).features


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("name", READ)
def test_corners_hold_random_rows(name, optional):
    bounds = [BOUNDS["x"], BOUNDS["y"]][: max(STATISTICS[name].arity, 1)]
    ends = {0: (0, int(name == "rate"))}.get(STATISTICS[name].arity, bounds[0])
    source = Source(*ends, optional=optional, other=bounds[1] if len(bounds) > 1 else None)
    work = workload((EVERYONE, source), (Output(name, 1),))
    blocks = [block for block in separate(work).blocks if block.source == 1]
    rows = [Counter() for _ in range(optional)]
    for x, y in itertools.product(range(ends[0], ends[1] + 1), range(7)):
        row = Counter({(1, "rows"): 1, (1, "value"): x})
        row[1, "square"] = square_of(x, source) if ends[1] > ends[0] else 0
        pairs = (x, ends), (y, BOUNDS["y"])
        parts = [bernstein_parts(np.array([at]), Grid(0, *own), 2) for at, own in pairs]
        for part, (i, j) in parts_of_pair(2).items():
            row[1, part] = int(parts[0][i][0] * parts[1][j][0])
        rows.append(row)
    added = np.array(
        [[sum(row[need] * by for need, by in b.parts) for b in blocks] for row in rows]
    )
    held = np.array(corners(source, blocks), float) / parts_of(blocks)
    if not blocks:  # rows that are always there are counted as those of the cell
        assert not optional
        return
    rng, size = np.random.default_rng(5), np.abs(held).max(axis=0).clip(1)
    for direction in rng.normal(size=(200, len(blocks))) / size:
        far = (held @ direction).max()
        assert (added @ direction).max() <= far + 1e-9 * abs(far)
    shrunk = 0.9 * held @ np.eye(len(blocks))[0]
    assert not shrunk.min() <= added[:, 0].min() <= added[:, 0].max() <= shrunk.max()


def asked(name):
    """The query of a statistic, of columns x and y."""
    if name == "rate":
        return dpf.rate("x > 3")
    return getattr(dpf, name)(*("x", "y")[: STATISTICS[name].arity])


@pytest.mark.parametrize("spend", [{"epsilon": 4.0, "mechanism": "laplace"}, {"mu": 2.0}])
@pytest.mark.parametrize("rows", [4, pytest.param(60, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", READ)
def test_intervals_hold(name, rows, spend):
    groups = 500
    x, y = values(groups * rows, seed=8)
    frame = pd.DataFrame({"g": np.arange(groups * rows) % groups, "x": x, "y": y})
    facts = {"keys": {"g": range(groups)}, "bounds": BOUNDS, "privacy_unit": dpf.EACH_ROW}
    frame.dp.declare(**facts)
    made = frame.dp.release(dpf.aggregate("g", a=asked(name)), **spend)
    with np.errstate(invalid="ignore", divide="ignore"):  # a few groups have one value alone
        each = [definition(name, *one[["x", "y"]].to_numpy().T) for _, one in frame.groupby("g")]
    true = np.array(each)
    defined = np.isfinite(true)
    for level, least in ((0.8, 0.728), (0.95, 0.911)):
        low, high = made.dp.interval(level).to_numpy(float).T
        held = ((low <= true + 1e-9) & (true - 1e-9 <= high))[defined].mean()
        # four standard errors of a share of 500 groups: chance fails once in 30,000 tries
        assert held > least, (level, held)
    if rows > 10 and not STATISTICS[name].is_whole:
        assert held < 1

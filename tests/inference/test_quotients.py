"""Quotients of released cells: whatever the noise was, they hold what they say, and are there."""

import itertools
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import special
from support.quotients import DISJOINT, changes, nothing, quotients_of, replaced, shifted
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CertificateError, QueryError
from dpframe.inference import quotients
from dpframe.inference.quotients import narrow
from dpframe.inference.sums import IndependentSum
from dpframe.privacy.laws import LAPLACE
from dpframe.privacy.noise_sum import NoiseSum

SPENDS = {
    "laplace": {"epsilon": 1},
    "gaussian": {"epsilon": 1, "delta": 1e-6},
    "box": {"epsilon": 1},
    "correlated": {"epsilon": 1, "delta": 1e-6},
}
LEVELS = (0.5, 0.9, 0.95, 0.99)


@pytest.fixture(scope="module")
def flights():
    rows = np.arange(700)
    frame = pd.DataFrame(
        {
            "hour": np.array(["5", "8", "8", "8", "9"])[rows % 5],
            "late": rows % 3 == 0,
            "fare": rows % 11 * 1.0,
            "gain": rows % 11 - 5.0,
            "taxi": pd.to_timedelta(rows % 60, "min"),
        }
    )
    minute = pd.Timedelta("1min")
    frame.dp.declare(
        keys={"hour": ["5", "8", "9", "23"]},
        bounds={"fare": (0, 10), "gain": (-5, 5), "taxi": (0 * minute, 60 * minute)},
        privacy_unit=dpf.EACH_ROW,
    )
    return frame


def tails(scales, weights):
    """P(|w Y + v Z| > t) for discrete Laplace Y, Z, by adding up: a function of t."""
    most = [max(40, round(25 * scale)) for scale in scales]
    values = [np.arange(-m, m + 1) for m in most]
    chances = []
    for scale, own in zip(scales, values, strict=True):
        q = math.exp(-1 / scale)
        chances.append((1 - q) / (1 + q) * q ** np.abs(own))
    sums = np.abs(weights[0] * values[0][:, None] + weights[1] * values[1])
    joint = chances[0][:, None] * chances[1]
    order = np.argsort(sums, axis=None)
    far, beyond = sums.ravel()[order], 1 - np.cumsum(joint.ravel()[order])
    return lambda t: beyond[np.searchsorted(far, t + 1e-9, side="right") - 1] if t >= 0 else 1


@pytest.mark.sampled(every=3, full=2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("cells", [(3, 7), (0, 1), (40, 90), (-2, 4), (9, 3), (-4, -3)], ids=str)
def test_the_interval_is_what_the_exact_law_does_not_reject(cells, level):
    released = nothing(1, DISJOINT, mechanism="laplace", epsilon=2)
    scales = list(released.dp.certificate.mechanism.scales.values())
    made = replaced(released, *([cell] for cell in cells))
    low, high = quotients_of(made.dp.ratio("late", "rest", level))[["low", "high"]].to_numpy()[0]
    grid = np.sort([*np.linspace(0, 6, 601), max(cells[0] / cells[1], 0)])

    def kept(top):
        off = np.abs(top - grid * cells[1])
        pairs = zip(grid, off, strict=True)
        # chances of what is as far off, or further
        chances = np.array([tails(scales, (1, r))(far - 1e-6) for r, far in pairs])
        return grid[chances > 1 - level]

    top, inside = cells[0], kept(cells[0])
    if not len(inside) and cells[1] > 0:  # a number below 0 that none fits counts as 0
        top, inside = 0, kept(0)
    if not len(inside):
        assert (low, high) == (0, math.inf)
        return
    assert low <= inside.min() + 1e-9
    assert high >= min(inside.max(), 6) - 1e-9
    for r in (low, high):  # and no further than a step of noise would bring it
        if 0 < r < 6:
            far = max(abs(top - r * cells[1]) - max(1, r), 0)
            assert tails(scales, (1, r))(far - 1e-6) > 1 - level


def chances_of(released, values):
    """The law of the noise of the columns, each measured as it is: by the textbook."""
    scale, other = released.dp.certificate.mechanism.scales.values()
    assert scale == other
    if released.dp.certificate.mechanism.law == "laplace":
        q = math.exp(-1 / scale)
        return (1 - q) / (1 + q) * q ** np.abs(values)
    return np.diff(special.ndtr((np.append(values, values[-1] + 1) - 0.5) / scale))


def quotients_of_all_noises(truths, level, spend, most=45):
    """Intervals of a quotient of disjoint counts, noise by noise, and how likely each is."""
    values = np.arange(-most, most + 1)
    noises = np.array(list(itertools.product(values, repeat=2)))
    released = nothing(len(noises), DISJOINT, **spend)
    one = chances_of(released, values)
    chances = np.multiply.outer(one, one).ravel()
    assert chances.sum() > 1 - 1e-9
    columns = [truth + noises[:, at] for at, truth in enumerate(truths)]
    bars = quotients_of(replaced(released, *columns).dp.ratio("late", "rest", level))
    check_sound(bars, 0, math.inf)
    return bars, noises, chances


def check_sound(bars, first, last):
    """Check that numbers are in their intervals, or missing where all is possible."""
    assert not bars[["low", "high"]].isna().to_numpy().any()
    unknown = (bars["low"] <= first) & (bars["high"] >= last)
    assert bars["estimate"].isna().equals(unknown)
    assert (unknown | bars["estimate"].between(bars["low"], bars["high"])).all()


def least_distance(off, chances, level):
    """The least of some distances that no more are beyond than the level allows."""
    order = np.argsort(off)
    return off[order][np.searchsorted(np.cumsum(chances[order]), level - 1e-12)]


@pytest.mark.sampled(every=5, full=2)
@pytest.mark.parametrize(
    "spend",
    [
        {"mechanism": "laplace", "epsilon": 2},
        {"mechanism": "gaussian", "mu": 1},
        {"mechanism": "gaussian", "mu": 0.25},
    ],
    ids=str,
)
@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("truths", [(0, 1), (1, 1), (1, 4), (5, 2), (50, 50)], ids=str)
def test_intervals_hold_the_truth_in_the_smallest_set_of_the_lattice(truths, level, spend):
    bars, noises, chances = quotients_of_all_noises(truths, level, spend)
    truth = truths[0] / truths[1]
    held = ((bars["low"] <= truth) & (truth <= bars["high"])).to_numpy()
    assert level <= chances[held].sum() <= 1
    off = np.abs(noises[:, 0] - truth * noises[:, 1]).round(9)
    least = least_distance(off, chances, level)
    assert held[off <= least].all()  # the smallest symmetric set of the level, all of it
    # no other noise but within half a step of both counts, which Gaussian noise is given
    more = 0 if spend["mechanism"] == "laplace" else (1 + truth) / 2
    beyond = held & (off > least + more)
    # of any other noise, every quotient is said to be possible, as none fits, or both ends do; or
    # none fits, as the upper number is below 0, and counts as 0
    assert (bars["low"][beyond] == 0).all()
    all_of = bars["high"][beyond].to_numpy() == math.inf
    x, y = (truths[at] + noises[beyond, at] for at in (0, 1))
    fit = np.zeros((60, beyond.sum()), bool)
    for own, t in zip(fit, np.linspace(0, math.pi / 2, len(fit)), strict=True):
        a, b = math.cos(t), math.sin(t)
        near = least_distance(np.abs(a * noises[:, 0] - b * noises[:, 1]), chances, level)
        own[:] = np.abs(a * x - b * y) <= near + (a + b) / 2 * (more > 0)
    none = ~fit.any(axis=0)
    assert (none | (fit[0] & fit[-1] & all_of)).all()
    assert ((x < 0) & (y > 0))[none & ~all_of].all()


def test_errors_take_the_covariance_into_account(flights):
    made = flights.dp.aggregate(
        "hour",
        late=dpf.count(where="late"),
        flights=dpf.count(),
        epsilon=1,
        delta=1e-6,
        mechanism="correlated",
    )
    row = quotients_of(made.dp.ratio("late", "flights")).loc["8"]
    rate = made.loc["8", "late"] / made.loc["8", "flights"]
    assert row["estimate"] == pytest.approx(rate)
    weights = pd.DataFrame({"late": 1.0, "flights": -rate}, index=["8"])
    combined = made.dp.combine(weights).iloc[0]
    # where the lower number is far from 0, the interval is nearly that of the first order
    width = combined["high"] - combined["low"]
    assert row["high"] - row["low"] == pytest.approx(width / made.loc["8", "flights"], rel=0.12)


def half_width(certificate, labels, level, r):
    """The half-width of `x - r y` in a row."""
    x, y = (
        next(column.deviations for column in certificate.columns if column.name == label)
        for label in labels
    )
    # as of several rows: the law of one sum for all of them is another route
    loadings = {
        block: np.array([abs(x.get(block, 0) - r * y.get(block, 0))]) for block in {**x, **y}
    }
    mechanism = certificate.mechanism
    groups = mechanism.drawn_together(certificate.query.cells)
    law = mechanism.distribution
    return law.sum_half_width(NoiseSum(loadings, mechanism.scales, groups), level)


@pytest.mark.parametrize("level", LEVELS)
def test_ends_are_where_the_test_changes_its_mind(flights, level):
    # Laplace noise so wide that its integers are not added up one by one
    for mechanism, spend in {**SPENDS, "laplace": {"epsilon": 0.12}}.items():
        made = flights.dp.aggregate(
            "hour",
            late=dpf.count(where="late"),
            flights=dpf.count(),
            fare=dpf.sum("fare"),
            mechanism=mechanism,
            **spend,
        )
        for top, limits in {"late": (0, 1), "fare": (0, 10)}.items():
            row = quotients_of(made.dp.ratio(top, "flights", level)).loc["8"]
            width = partial(half_width, made.dp.certificate, (top, "flights"), level)
            for end, sign in ((row["low"], -1), (row["high"], 1)):
                for factor, holds in ((1 - 1e-6, True), (1 + 1e-6, False)):
                    r = row["estimate"] + (end - row["estimate"]) * factor
                    held = abs(made.loc["8", top] - r * made.loc["8", "flights"]) <= width(r)
                    # an end that is a public limit says nothing of what is beyond
                    assert held == holds or (held and end in limits), (mechanism, top, sign)


def test_what_is_public_of_a_quotient_limits_it(flights):
    made = flights.dp.aggregate(
        "hour",
        late=dpf.count(where="late"),
        flights=dpf.count(),
        fare=dpf.sum("fare"),
        gain=dpf.sum("gain"),
        far=dpf.sum("fare", where="fare > 5"),
        rest=dpf.count(where="fare > 5"),
        epsilon=0.1,
        mechanism="laplace",
    )
    limits = {
        ("late", "flights"): (0, 1),
        ("fare", "flights"): (0, 10),
        ("gain", "flights"): (-5, 5),
        ("far", "rest"): (0, 10),
        ("late", "rest"): (0, math.inf),
        ("gain", "fare"): (-math.inf, math.inf),
        ("fare", "gain"): (-math.inf, math.inf),
    }
    for labels, (low, high) in limits.items():
        row = quotients_of(made.dp.ratio(*labels)).loc["23"]  # without any rows
        assert low <= row["low"] <= row["high"] <= high
        empty = quotients_of(replaced(made, *([0] * 4 for _ in made)).dp.ratio(*labels)).loc["23"]
        assert (empty["low"], empty["high"]) == (low, high), labels
        assert np.isnan(empty["estimate"])


def test_percentages_are_of_the_total_of_the_table(flights):
    made = flights.dp.count("hour", epsilon=1)
    shares = quotients_of(made.dp.percent())
    total = made["count"].sum()
    expected = 100 * made["count"].clip(lower=0) / total
    np.testing.assert_allclose(shares["estimate"], expected)
    row = made["count"] / total
    weights = -row["8"] * pd.Series(1.0, made.index)
    weights["8"] += 1
    combined = made.dp.combine(weights).iloc[0]
    width = combined["high"] - combined["low"]
    assert shares.loc["8", "high"] - shares.loc["8", "low"] == pytest.approx(
        100 * width / total, rel=0.05
    )
    several = flights.dp.aggregate("hour", n=dpf.count(), fare=dpf.sum("fare"), epsilon=9)
    assert quotients_of(several.dp.percent("fare"))["estimate"].sum() == pytest.approx(100, abs=10)
    assert quotients_of(several.dp.percent("fare", 0.5)).loc["8", "low"] > 20


def test_percentages_of_a_shared_noise_count_it_once():
    rows = np.arange(900)
    frame = pd.DataFrame({"x": rows % 3, "who": rows // 3})
    frame.dp.declare(privacy_unit="who", max_groups=3, max_rows_per_group=1)
    made = frame.dp.histogram("x", [-1, 0, 1, 2], mechanism="correlated", epsilon=1, delta=1e-6)
    assert made.dp.certificate.mechanism.common_blocks
    label = made.columns[0]
    values = made[label].to_numpy(np.float64)
    share = values[0] / values.sum()
    weights = pd.DataFrame({label: -share}, index=made.index)
    weights.iloc[0] += 1
    combined = made.dp.combine(weights).iloc[0]
    row = quotients_of(made.dp.percent(label)).iloc[0]
    width = combined["high"] - combined["low"]
    assert row["high"] - row["low"] == pytest.approx(100 * width / values.sum(), rel=0.05)


def test_function_and_method_say_the_same(flights):
    made = flights.dp.aggregate("hour", late=dpf.count(where="late"), n=dpf.count(), epsilon=1)
    pd.testing.assert_frame_equal(
        quotients_of(dpf.ratio(made, "late", "n")), quotients_of(made.dp.ratio("late", "n"))
    )
    denoised = made.dp.denoise()
    pd.testing.assert_frame_equal(
        quotients_of(denoised.dp.ratio("late", "n")), quotients_of(made.dp.ratio("late", "n"))
    )


def test_nothing_is_charged(flights):
    frame = flights.copy()
    frame.attrs.clear()
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, budget=dpf.Budget(epsilon=2))
    made = frame.dp.release(dpf.aggregate(late=dpf.count(where="late"), n=dpf.count()), epsilon=1)
    before = frame.dp.budget.used
    quotients_of(made.dp.ratio("late", "n"))
    quotients_of(made.dp.percent("n"))
    assert frame.dp.budget.used == before


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize("bounds", [(0, 0), (0, 1e100), (-1e100, 1e100), (5, 5), (-3, -1)], ids=str)
def test_quotients_of_any_sums_are_there(bounds, neighboring):
    frame = pd.DataFrame({"x": np.linspace(*bounds, 50), "late": np.arange(50) % 2 == 0})
    frame.dp.declare(bounds={"x": bounds}, neighboring=neighboring, privacy_unit=dpf.EACH_ROW)
    made = frame.dp.aggregate(
        late=dpf.count(where="late"),
        n=dpf.count(),
        x=dpf.sum("x"),
        y=dpf.sum("x", where="late"),
        epsilon=1,
        mechanism="laplace",
    )
    for labels in itertools.permutations(made.columns, 2):
        (row,) = quotients_of(made.dp.ratio(*labels)).itertuples(index=False)
        assert row.low <= row.estimate <= row.high or np.isnan(row.estimate), labels
    for label in made.columns:
        (row,) = quotients_of(made.dp.percent(label)).itertuples(index=False)
        assert row.low <= row.estimate <= row.high or np.isnan(row.estimate)


def test_what_does_not_fit_is_refused(flights):
    made = flights.dp.aggregate(
        "hour", late=dpf.count(where="late"), n=dpf.count(), m=dpf.mean("fare"), epsilon=1
    )
    cases = [
        (lambda: quotients_of(made.dp.ratio("lat", "n")), "label", "numerator"),
        (lambda: quotients_of(made.dp.ratio("late", ["n"])), "label", "denominator"),
        (lambda: quotients_of(made.dp.ratio("n", "n")), "another column", "denominator"),
        (lambda: quotients_of(made.dp.ratio("m", "n")), "a count or a sum", "numerator"),
        (lambda: quotients_of(made.dp.percent("m")), "a count or a sum", "column"),
        (lambda: quotients_of(made.dp.ratio("late", "n", 1)), "a number", "level"),
        (lambda: quotients_of(made.dp.percent("n", level=0)), "a number", "level"),
    ]
    for ask, word, parameter in cases:
        with raises(QueryError, word, parameter=parameter):
            ask()
    changed = made + 1
    for ask in (
        lambda: quotients_of(changed.dp.ratio("late", "n")),
        lambda: quotients_of(changed.dp.percent("n")),
    ):
        with pytest.raises(CertificateError):
            ask()


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_of_two_noises_of_one_scale_no_distance_is_held_that_need_not_be(scale, level):
    rng = np.random.default_rng(4)
    steps = rng.uniform(0.2, 1.7, (2, 60))
    own = LAPLACE.standard_deviation(scale)
    noise = NoiseSum({"0": steps[0] * own, "1": steps[1] * own}, {"0": scale, "1": scale})
    least = np.array([width_of(tails((scale, scale), pair), pair, level) for pair in steps.T])
    assert (LAPLACE.sum_excess(least * (1 - 1e-6), noise, level) <= 0).all()
    assert (LAPLACE.sum_excess(least * 1.02 + 1e-6, noise, level) > 0).all()


def width_of(beyond, steps, level):
    """The least distance of a lattice that no more lies beyond than a level allows."""
    values = np.arange(-60, 61)
    far = np.unique(np.abs(steps[0] * values[:, None] + steps[1] * values).round(9))
    start, end = 0, len(far) - 1
    while start < end:
        middle = (start + end) // 2
        start, end = (start, middle) if beyond(far[middle]) <= 1 - level else (middle + 1, end)
    return far[start]


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_ends_do_not_depend_on_rows_that_are_left_out_once_they_are_found(law, monkeypatch):
    # of 400 rows, noises of scale 4 are not added up one by one; of half of them they would be
    spend = {"epsilon": 0.25} if law == "laplace" else {"epsilon": 1, "delta": 1e-6}
    noise = [nothing(400, DISJOINT, mechanism=law, **spend) for _ in range(2)]
    now, then = (shifted(one, 3, 5) for one in noise)

    def ask():
        yield quotients_of(now.dp.ratio("late", "rest"))
        yield changes(now.dp.change(then, percent=True, sampling=law == "gaussian"))

    found = list(ask())
    monkeypatch.setattr(quotients, "narrow", lambda *given, by_row: narrow(*given, by_row=False))
    for one, other in zip(found, ask(), strict=True):
        assert not one[["low", "high"]].isna().to_numpy().any()
        angles = [np.arctan(ends[["low", "high"]].to_numpy() / 100) for ends in (one, other)]
        assert angles[0] == pytest.approx(angles[1], abs=1e-9)


def test_how_two_noises_are_added_up_follows_from_the_whole_table():
    own = LAPLACE.standard_deviation(4.0)
    noise = NoiseSum({"0": np.full(3, own), "1": np.full(3, own)}, {"0": 4.0, "1": 4.0})
    at = np.array([1.0, 10.0, 40.0])
    alone, of_many = (LAPLACE.sum_excess(at, noise, 0.95, rows) for rows in (0, 10_000))
    assert set(alone.tolist()) == {-1.0, 1.0}
    assert not np.isin(of_many, alone).any()
    assert (IndependentSum([(LAPLACE, noise)]).excess(at, 0.95, 10_000) == of_many).all()

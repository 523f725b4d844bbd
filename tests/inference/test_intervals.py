"""From released frames to errors, covariances and intervals."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.columns import column_of
from support.raising import raises

import dpframe as dpf
from dpframe.certificates.mechanism_parts import BlockNoisePart
from dpframe.errors import CertificateError, QueryError
from dpframe.inference.intervals import TableNoise, covariance, quotient_ends, std_error
from dpframe.privacy.laws import law_named
from dpframe.privacy.noise_sum import NoiseSum
from dpframe.strategies import MECHANISMS

BOUNDS = {"fare": (-10, 30), "tips": (0, 5)}
QUERY = dpf.aggregate(
    "zone",
    keys=["A", "B", "C"],
    n=dpf.count(),
    fare=dpf.sum("fare", bounds=BOUNDS["fare"]),
    mean=dpf.mean("fare", bounds=BOUNDS["fare"]),
    tips=dpf.mean("tips", bounds=BOUNDS["tips"]),
)


def trips(n=3000):
    rows = np.arange(n)
    zone = np.array(["A", "A", "B"])[rows % 3]
    return pd.DataFrame({"zone": zone, "fare": rows % 17 * 2.0, "tips": rows % 5 * 1.0})


def released(**spend):
    return dpf.release(trips(), QUERY, **(spend or {"epsilon": 2, "delta": 1e-6}))


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_are_as_wide_as_the_noise(mechanism, level):
    frame = released(epsilon=2, delta=1e-6, mechanism=mechanism)
    bars = dpf.interval(frame, level)
    assert bars.index.equals(frame.index)
    expected = [f"{name}_{end}" for name in frame.columns for end in ("low", "high")]
    assert list(bars.columns) == expected
    noise = frame.dp.certificate.columns[0].noise
    law = law_named(mechanism)
    width = noise.step * law.half_width(noise.scale, level)
    assert bars["n_low"].equals((frame["n"] - int(width)).clip(lower=0))
    assert bars["n_high"].equals((frame["n"] + int(width)).clip(lower=0))
    mean = next(part for part in frame.dp.certificate.columns if part.name == "mean")
    scales = frame.dp.certificate.mechanism.scales
    width = law.sum_half_width(NoiseSum(mean.deviations, scales, smooth=True), level)
    if mechanism == "gaussian":
        assert width == pytest.approx(law.quantile(level) * frame.dp.std_error["mean"].to_numpy())
    low, high = (np.clip(frame["mean"] + side * width, *BOUNDS["fare"]) for side in (-1, 1))
    off = [bars["mean_low"] - low, bars["mean_high"] - high]
    # of a thousand rows or more, the test differs from the error to first order by hardly anything
    assert (np.abs(off) / (high - low).to_numpy())[:, :2].max() < 0.03


def test_intervals_of_means_stay_within_the_declared_bounds():
    bars = released(epsilon=1e-3).dp.interval(0.99)
    for column, name in (("fare", "mean"), ("tips", "tips")):
        low, high = BOUNDS[column]
        assert bars[f"{name}_low"].between(low, high).all()
        assert bars[f"{name}_high"].between(low, high).all()


@pytest.mark.parametrize("level", [0, 1, 95, "95%", None])
def test_levels_are_checked(level):
    with raises(QueryError, "a number", parameter="level", value=level):
        released().dp.interval(level)


@pytest.mark.parametrize("mechanism", ["gaussian", "correlated"])
def test_covariances_are_those_of_the_noise(mechanism):
    # 4,000 cells tell a correlation to 1.6 %: 0.1 is 6 times that, chance fails once in 10^7 runs
    n, rows = 4000, 50
    frame = pd.DataFrame({"zone": np.repeat(np.arange(n), rows), "fare": np.tile([0.0, 9], n * 25)})
    query = dpf.aggregate(
        "zone",
        keys=range(n),
        n=dpf.count(),
        rows=dpf.count(where="fare == fare"),
        s=dpf.sum("fare", bounds=(0, 20)),
        m=dpf.mean("fare", bounds=(0, 20)),
    )
    made = dpf.release(frame, query, mu=2.0, mechanism=mechanism)
    realized = made.corr().to_numpy()
    table = covariance(made).to_numpy().reshape(n, 4, 4).mean(axis=0)
    predicted = table / np.sqrt(np.outer(np.diag(table), np.diag(table)))
    assert np.abs(realized - predicted).max() < 0.1
    assert (predicted[0, 2] > 0.3) == (mechanism == "correlated")  # of the count and the sum


def test_labels_of_any_kind_are_kept():
    frame = pd.DataFrame({("a", 1): [1.0], 2: [2.0]})
    made = frame.dp.sum([("a", 1), 2], bounds=(0, 3), epsilon=1)
    assert list(made.dp.std_error.columns) == [("a", 1), 2]
    assert list(made.dp.interval().columns) == ["('a', 1)_low", "('a', 1)_high", "2_low", "2_high"]


@pytest.mark.parametrize("function", [std_error, dpf.interval, covariance])
def test_nothing_is_said_about_altered_frames(function):
    frame = released()
    with pytest.raises(CertificateError):
        function(frame * 2)
    with pytest.raises(CertificateError):
        function(trips())


def test_post_processing_changes_nothing():
    frame = released()
    before = frame.copy()
    frame.dp.interval()
    frame.dp.std_error  # noqa: B018
    covariance(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert dpf.verify(frame)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "correlated", "box"])
def test_means_of_no_rows_are_no_bounds_and_may_be_anything(mechanism):
    empty = pd.DataFrame({"zone": [0], "fare": [3.0]})
    empty.dp.declare(keys={"zone": range(300)}, bounds={"fare": (0, 20)}, privacy_unit=dpf.EACH_ROW)
    query = dpf.aggregate("zone", n=dpf.count(), fare=dpf.mean("fare"), low=dpf.rate("fare < 9"))
    made = empty.dp.release(query, epsilon=1, delta=1e-6, mechanism=mechanism)
    assert made["fare"].isna().mean() > 0.5  # by chance, some have rows enough
    for name, width in (("fare", 20), ("low", 1)):
        bars = made.dp.interval()
        low, high = bars[f"{name}_low"], bars[f"{name}_high"]
        assert made[name].isna().equals((low == 0) & (high == width))
        assert made[name].between(low, high)[made[name].notna()].all()
    for level in (0.01, 0.3, 0.999):
        bars = made.dp.interval(level)
        inside = (bars["low_low"] <= made["low"]) & (made["low"] <= bars["low_high"])
        assert (inside | made["low"].isna()).all()


X, XX, ONES = np.array([-1, 0, 1]), np.array([1, -1, 1]), np.ones(3)
READ = {
    "moment 0 0": (ONES, ONES),
    "moment 1 0": (X, ONES),
    "moment 0 1": (ONES, X),
    "moment 2 0": (XX, ONES),
    "moment 1 1": (X, X),
    "moment 0 2": (ONES, XX),
}
OF = np.array([np.outer(*factors).ravel() for factors in READ.values()])
"""How moments are read off nine parts."""
NOISE = 1.0 + np.arange(9) % 4


def ends_of(kind, sums, level):
    """Ends of the interval of a statistic of nine parts whose noises are of different sizes."""
    how, scales = MECHANISMS["gaussian"], {str(at): 1e6 for at in range(9)}
    named = "gaussian", how.title, how.law.name
    part = BlockNoisePart("noise", *named, scales, (), joined=False, common_blocks=())
    moments = dict(zip(READ, np.array(sums, float)[:, None], strict=True))
    loadings = {
        name: {str(at): own for at, own in enumerate(of * NOISE)}
        for name, of in zip(READ, OF, strict=True)
    }
    column = column_of(kind, moments, loadings, (-1, 1), (-1, 1))
    ends = np.ravel(quotient_ends(column, TableNoise(part, (), level))).tolist()
    return ends, column.statistic.estimate(column.totals)[0].item()


@pytest.mark.parametrize(("rows", "xx", "xy"), [(200, 80, 40), (100, 50, -70), (300, 90, 0)])
@pytest.mark.parametrize("kind", ["slope", "corr"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_ends_of_quotients_are_the_roots_of_a_quadratic(rows, xx, xy, kind, level):
    x, y, yy = 20 / rows, -30 / rows, 130.0
    top, bottom, other = xy - rows * x * y, xx - rows * x**2, yy - rows * y**2
    of_top = np.array([x * y, -y, -x, 0, 1, 0]) @ OF * NOISE
    of_bottom = np.array([x**2, -2 * x, 0, 1, 0, 0]) @ OF * NOISE
    if kind == "corr":
        of_other = np.array([y**2, 0, -2 * y, 0, 0, 1]) @ OF * NOISE
        root = np.sqrt(bottom * other)
        of_bottom, bottom = root / 2 * (of_bottom / bottom + of_other / other), root
    z = stats.norm.ppf((1 + level) / 2)
    squares = [a @ b for a, b in ((of_bottom,) * 2, (of_top, of_bottom), (of_top,) * 2)]
    products = bottom**2, top * bottom, top**2
    a, b, c = (own - z**2 * of for own, of in zip(products, squares, strict=True))
    roots = np.sort(np.roots([a, -2 * b, c]))
    assert a > 0
    expected = roots if kind == "slope" else roots.clip(-1, 1)
    found, value = ends_of(kind, [rows, 20.0, -30.0, xx, xy, yy], level)
    low, high = expected  # the interval holds the value, whose variances are at least their errors
    assert found == pytest.approx([min(low, value), max(high, value)], rel=1e-4)


@pytest.mark.parametrize("xx", [-40, 0, 4])
@pytest.mark.parametrize(("kind", "end"), [("slope", np.inf), ("corr", 1)])
def test_quotients_have_no_ends_where_nothing_may_be_divided_by(xx, kind, end):
    assert ends_of(kind, [200, 20.0, -30.0, xx, 30, 130.0], 0.95)[0] == [-end, end]


def test_a_column_of_one_value_has_ends_that_are_numbers():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0] * 900, "y": 4.0})
    for x, y in (("x", "y"), ("y", "x")):
        query = dpf.slope(x, y, bounds={"x": (0, 4), "y": (4, 4)})
        assert not dpf.release(frame, query, epsilon=1).dp.interval().isna().any(axis=None)

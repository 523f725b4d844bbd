"""What a suggestion predicts: formulas by another route, and what all results can do."""

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from support.certifying import carry_text, recertified, record_of

import dpframe as dpf
from dpframe.denoising.tails import likely_counts, log_widths, mean_sizes
from dpframe.errors import CertificateError, QueryError
from dpframe.queries.searches import candidate_caps, power_ends
from dpframe.steps.suggest_caps import (
    BoundErrors,
    CapErrors,
    expected_error,
    mean_error,
    needed,
    unseen,
)

mpl.use("Agg")
from matplotlib.figure import Figure  # the backend comes first

FACTS = {"privacy_unit": "u", "max_rows": 9}


def visits(units=400):
    """Unit n has one row, or two, or up to five."""
    rows = [(unit, zone) for unit in range(units) for zone in "ABABA"[: 1 + unit * unit % 5]]
    frame = pd.DataFrame(rows, columns=["u", "zone"])
    frame.dp.declare(keys={"zone": ["A", "B"]}, **FACTS)
    return frame


@pytest.fixture(scope="module")
def found():
    return visits().dp.suggest_caps("zone", largest=16, epsilon=0.5)


def test_the_mean_error_is_that_of_laplace_noise():
    size = np.arange(1, 4000)
    weights = np.exp(-size / 50.0)  # P(|Y| = k), up to a factor
    deviation = np.sqrt((size**2 * weights).sum() * 2 / (1 + 2 * weights.sum()))
    mean = (size * weights).sum() * 2 / (1 + 2 * weights.sum())
    assert mean_error(deviation) == pytest.approx(mean, rel=1e-3)


def test_the_error_is_that_of_laplace_noise_beside_a_bias():
    lost, noise, k = np.array([0.0, 2.0, 9.0]), np.array([1.5, 1.0, 3.0]), np.arange(-9000, 9001)
    for bias, scale, error in zip(lost, noise, expected_error(lost, noise), strict=True):
        density = np.exp(-np.abs(k / 100) / scale)
        assert error == pytest.approx(np.average(np.abs(bias + k / 100), weights=density), rel=0.02)


def test_errors_are_averages_over_what_the_released_numbers_may_come_from(found):
    caps, scale = found.index.to_numpy(), mean_error(found.dp.std_error["units"].iloc[0])
    drawn = likely_counts(found["units"].to_numpy(float), scale, log_widths(caps))
    errors = []
    for cap, (lost, noise, *_) in found.drop(columns="units").iterrows():
        beyond = sum(
            n * max(size - cap, 0) for n, size in zip(drawn.T, mean_sizes(caps), strict=True)
        )
        errors.append(
            [b / 2 + noise * np.exp(-b / 2 / noise) for b in np.broadcast_to(beyond, 300)]
        )
        assert lost == pytest.approx(np.median(beyond / 2), rel=1e-9, abs=1e-9)
    least = [min(of_draw) for of_draw in zip(*errors, strict=True)]
    typical = np.prod(np.power(least, 1 / 300))
    for error, of_cap in zip(found["error"], errors, strict=True):
        ratios = [one / best for one, best in zip(of_cap, least, strict=True)]
        assert error == pytest.approx(typical * np.mean(ratios))
    assert (np.diff(found["lost"]) <= 0).all()
    assert (found["error"] >= found["noise"] * (1 - 1e-9)).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_few_units_with_very_many_rows_are_not_lost(seed):
    # bins one by one look like noise, which is 10 in each; together they stand out
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([rng.geometric(0.5, 21_000), rng.integers(8, 29, 150)])
    caps = candidate_caps("rows", 2**20).to_numpy()
    units = np.bincount(np.searchsorted(caps, sizes), minlength=len(caps))
    frame = pd.DataFrame({"k": np.repeat(caps, units)})
    keys = {"max_rows": caps.tolist()}
    raw = frame.rename(columns={"k": "max_rows"}).dp.count(
        by="max_rows", keys=keys, epsilon=0.1, privacy_unit=dpf.EACH_ROW, mechanism="laplace"
    )
    noisy = (units + rng.laplace(0, 10, len(caps))).round().astype(int)
    released = recertified(raw.rename(columns={"count": "units"}).assign(units=noisy), raw)
    errors = CapErrors("count", {"epsilon": 0.9}, caps, caps / 0.9, 1.0, 1.0)
    found = errors.add_to(released)
    best = found.dp.best["max_rows"]
    real = np.maximum(sizes - best, 0).sum() + best / 0.9
    assert 12 <= best <= 64
    assert (sizes > best).sum() <= found["unseen"].loc[best]
    assert real / 3 <= found["error"].loc[best] <= 3 * real


def histogram(noisy, name):
    """Released numbers of units, or of rows, with Laplace noise of scale 10, as they are given."""
    keys = list(range(len(noisy)))
    raw = pd.DataFrame({"k": keys}).dp.count(
        by="k", keys={"k": keys}, epsilon=0.1, privacy_unit=dpf.EACH_ROW, mechanism="laplace"
    )
    return recertified(raw.rename(columns={"count": name}).assign(**{name: noisy}), raw)


def of_caps(noisy):
    caps = candidate_caps("rows", 2**20).to_numpy()
    facts = CapErrors("count", {"epsilon": 0.9}, caps, caps / 0.9, 1.0, 1.0)
    return facts.add_to(histogram(noisy, "units"))


def of_bounds(noisy):
    ends = power_ends(2.0**-8, 2.0**8)
    noise = np.where(ends[:, None] < ends, 300.0, np.inf)
    facts = BoundErrors("sum", {"epsilon": 0.9}, ends, noise, 1, is_mean=False, powers=True)
    return facts.add_to(histogram(noisy, "count"))


@pytest.mark.parametrize(
    ("suggested", "truth"),
    [(of_caps, np.eye(1, 40, 20)[0] * 300), (of_bounds, np.eye(1, 36, 30)[0] * 240)],
)
def test_too_few_people_are_said_to_be_too_few(suggested, truth):
    # 300 people, and 240 values, at epsilon .1; fixed draws, so that nothing fails by chance
    rng = np.random.default_rng(5)
    said = 0
    for _ in range(10):
        noisy = np.rint(truth + rng.laplace(0, 10, len(truth))).astype(int)
        try:
            assert suggested(noisy).dp.best
        except QueryError as error:
            said += "too few people to tell: about" in str(error)
    assert said >= 9
    assert needed(math.sqrt(2) / 0.1, len(truth)) * 0.1 == pytest.approx(47, abs=1)  # as docs say
    assert suggested((30 * truth).astype(int)).dp.best


@pytest.mark.parametrize("bins", [1, 2, 5, 38])
def test_no_more_units_are_unseen_than_the_exact_law_says(bins):
    # sums of Laplace noise of scale 10 in so many bins; fixed draws
    release = of_caps(np.zeros(40, int)).dp.certificate.release
    bound = unseen(np.zeros(40), release)[39 - bins]
    noise = np.random.default_rng(bins).laplace(0, 10, (100_000, bins)).sum(axis=1)
    assert 0.947 < np.mean(noise <= bound + 0.5) < 0.956


def test_the_best_has_the_least_error_and_is_recorded(found):
    name = found["error"].idxmin()
    assert found.dp.best == {"max_rows": name}
    steps = dpf.verify(found).table.definitions
    assert [step.into for step in steps] == ["lost", "noise", "error", "unseen"]
    assert {step.query for step in steps} == {"count by zone"}
    assert {tuple(step.planned.items()) for step in steps} == {(("epsilon", 4.5),)}
    with pytest.raises(CertificateError, match="suggests nothing"):
        visits().dp.count("zone", epsilon=1).dp.best  # noqa: B018


def test_a_record_that_was_changed_is_found(found):
    certificate = record_of(found)
    certificate["table"]["columns"][1]["definition"]["best"] = {"max_rows": 7}
    other = carry_text(found.copy(), certificate)
    with pytest.raises(CertificateError):
        dpf.verify(other)
    worse = found.assign(error=0.0)
    worse.attrs = dict(found.attrs)
    with pytest.raises(CertificateError):
        dpf.verify(worse)


def test_all_that_results_can_do_works(found, tmp_path):
    found.dp.write_csv(tmp_path / "caps.csv")
    back = dpf.read_csv(tmp_path / "caps.csv")
    pd.testing.assert_frame_equal(back, found, check_frame_type=False)
    assert dpf.verify(back).state == "post-processed" and back.dp.best == found.dp.best
    dpf.schema(found).validate(back)
    Draft202012Validator(dpf.certificate_schema()).validate(record_of(found))
    bars = found.dp.interval()
    assert list(bars.columns) == ["units_low", "units_high"]
    assert found.dp.std_error["units"].iloc[0] == pytest.approx(2.8, abs=0.1)
    assert list(found.dp.denoise("nonnegative").columns)[-1] == "units_denoised"
    assert len(found.dp.certificate.denoising) == 0
    assert "best max_rows=" in repr(found.dp.certificate)
    assert "best max_rows=" in found.dp.certificate._repr_html_()
    parquet = tmp_path / "caps.parquet"
    found.to_parquet(parquet)
    dpf.verify(pd.read_parquet(parquet))


def test_the_plot_shows_both_errors_and_the_best(found):
    axes = found.dp.plot(ax=Figure().add_subplot())
    labels = [line.get_label() for line in axes.lines]
    (name, cap), *_ = found.dp.best.items()
    assert labels == ["cut off", "noise", "both", f"best: {name}={cap}"]
    lines = dict(zip(labels, axes.lines, strict=True))
    assert lines["both"].get_ydata().tolist() == found["error"].tolist()
    assert lines[labels[-1]].get_xdata().tolist() == [cap]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    bars = found.dp.plot(kind="bar", ax=Figure().add_subplot())
    assert len(bars.patches) == len(found)


@pytest.mark.parametrize("caps", [[1, 2], [1, 2**60]])
def test_no_noise_at_all_is_no_division_by_zero(caps):
    raw = visits().dp.count("zone", epsilon=1e6)
    caps = np.array(caps)
    facts = CapErrors("count", {"epsilon": 1.0}, caps, np.zeros(2), 1.0, 1.0)
    renamed = recertified(raw.rename(columns={"count": "units"}), raw)
    made = facts.add_to(renamed)
    assert np.isfinite(made[["lost", "noise", "error", "unseen"]].to_numpy()).all()


def test_a_dozen_candidates_next_to_the_best_are_shown_in_plain_numbers(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    found = visits().dp.suggest_caps("zone", epsilon=0.5)
    for shown in (repr(found), found._repr_html_()):
        assert "e+" not in shown and "..." not in shown
        assert f"12 of {len(found)} candidates" in shown
    rows = [line.split()[0] for line in repr(found).splitlines()[2:-2]]
    (cap,) = found.dp.best.values()
    place = list(found.index).index(cap)
    first = max(min(place - 6, len(found) - 12), 0)
    assert len(rows) == 12 and str(cap) in rows
    assert abs(list(found.index).index(int(rows[0])) - first) <= 1
    assert len(repr(found.head(3)).splitlines()) == 2 + 3
    bare = found.copy()
    bare.attrs = {}
    assert f"12 of {len(found)}" in repr(bare)

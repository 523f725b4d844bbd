"""What a suggestion predicts: formulas by another route, and what all results can do."""

import json

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from support.certifying import recertified

import dpframe as dpf
from dpframe.denoising.tails import log_widths, mean_sizes, tail_counts
from dpframe.errors import CertificateError
from dpframe.steps.suggest_caps import CapErrors, mean_error

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
    released = visits().dp.suggest_caps("zone", largest=4, epsilon=0.5)
    noise, k = released["noise"].to_numpy(), np.arange(-4000, 4001)
    for lost, scale, error in released[["lost", "noise", "error"]].to_numpy():
        density = np.exp(-np.abs(k / 100) / scale)
        expected = np.average(np.abs(lost + k / 100), weights=density)
        assert error == pytest.approx(expected, rel=0.02)
    assert (released["error"] <= released["lost"] + noise).all()
    assert (released["error"] >= np.maximum(released["lost"], noise)).all()


def test_what_is_cut_off_is_counted_from_the_released_numbers(found):
    caps, noise = found.index.to_numpy(), mean_error(found.dp.std_error["units"].iloc[0])
    counts = tail_counts(found["units"].to_numpy(float), noise, log_widths(caps))
    sizes = mean_sizes(found.index.to_numpy())
    for cap, lost in found["lost"].items():
        beyond = sum(n * max(size - cap, 0) for n, size in zip(counts, sizes, strict=True))
        assert lost == pytest.approx(beyond / 2, rel=1e-9, abs=1e-9)
    assert (np.diff(found["lost"]) <= 0).all()


def test_the_best_has_the_least_error_and_is_recorded(found):
    name = found["error"].idxmin()
    assert found.dp.best == {"max_rows": name}
    steps = dpf.verify(found).steps
    assert [step.into for step in steps] == ["lost", "noise", "error"]
    assert {step.query for step in steps} == {"count by zone"}
    assert {tuple(step.planned.items()) for step in steps} == {(("epsilon", 4.5),)}
    with pytest.raises(CertificateError, match="suggests nothing"):
        visits().dp.count("zone", epsilon=1).dp.best  # noqa: B018


def test_a_record_that_was_changed_is_found(found):
    certificate = json.loads(json.dumps(found.attrs["dpframe"]))
    certificate["steps"][0]["best"] = {"max_rows": 7}
    other = found.copy()
    other.attrs = {"dpframe": certificate}
    with pytest.raises(CertificateError):
        dpf.verify(other)
    worse = found.assign(error=0.0)
    worse.attrs = dict(found.attrs)
    with pytest.raises(CertificateError):
        dpf.verify(worse)
    forged = recertified(found.assign(units=0), found)
    with pytest.raises(CertificateError):  # the steps name the release they were made from
        dpf.verify(forged)


def test_all_that_results_can_do_works(found, tmp_path):
    found.dp.write_csv(tmp_path / "caps.csv")
    back = dpf.read_csv(tmp_path / "caps.csv")
    pd.testing.assert_frame_equal(back, found)
    assert dpf.verify(back).state == "post-processed" and back.dp.best == found.dp.best
    dpf.schema(found).validate(back)
    Draft202012Validator(dpf.certificate_schema()).validate(found.attrs["dpframe"])
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
    with pytest.raises(CertificateError, match="suggests nothing"):
        visits().dp.count("zone", epsilon=1).dp.plot(kind="errors", ax=Figure().add_subplot())


def test_no_noise_at_all_is_no_division_by_zero():
    raw = visits().dp.count("zone", epsilon=1e6)
    caps = np.array([1, 2])
    facts = CapErrors("count", {"epsilon": 1.0}, caps, np.zeros(2), 1.0)
    renamed = recertified(raw.rename(columns={"count": "units"}), raw)
    made = facts.add_to(renamed)
    assert np.isfinite(made[["lost", "noise", "error"]].to_numpy()).all()

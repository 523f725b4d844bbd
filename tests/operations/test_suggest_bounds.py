"""Suggested bounds: what is charged and refused, what comes out, and that the formulas hold."""

from functools import partial
from itertools import pairwise
from unittest import mock

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from support.raising import raises
from support.searching import preview_of

import dpframe as dpf
from dpframe.errors import BudgetExceededError, CalibrationError, QueryError, UnknownColumnError
from dpframe.privacy.law import Law
from dpframe.queries.searches import power_ends
from dpframe.steps.suggest_caps import best_suggestion, expected_error

mpl.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first
from matplotlib.figure import Figure

COLUMNS = ["count", "as_low", "as_high"]
SMALL = {"smallest": 1, "largest": 64}


def no_noise(law, scales, size, _):
    return [np.zeros(size, np.int64) for _ in scales]


def quiet():
    """Draw no noise, so that the numbers are those of the data."""
    return mock.patch.object(Law, "draw", no_noise)


def trips(rows=3000, **facts):
    """Fares from 0 to 40, a few refunds, and values that are odd."""
    fare = np.arange(rows) % 41 * 1.0
    fare[::50] = -3.0
    fare[::97] = np.nan
    fare[::20] = np.inf
    frame = pd.DataFrame({"u": np.arange(rows) // 3, "zone": ["A", "B", "Z"] * (rows // 3)})
    frame["fare"] = fare
    facts = {"privacy_unit": "u", "max_rows": 3} | facts
    frame.dp.declare(keys={"zone": ["A", "B"]}, **facts)
    return frame


def test_function_and_accessor_count_values_in_powers_of_two():
    frame = trips()
    kept = frame["fare"].dropna()
    edges = [-np.inf, *power_ends(1, 64), np.inf]
    expected = pd.cut(kept, edges).value_counts(sort=False)
    with quiet():
        for found in (
            dpf.release(frame, dpf.suggest_bounds("fare", "zone", **SMALL), epsilon=1),
            frame.dp.suggest_bounds("fare", "zone", epsilon=1, **SMALL),
        ):
            assert found["count"].tolist() == expected.tolist()
            assert list(found.columns) == COLUMNS and found.index.name == "fare"
            assert found.dp.best


def test_noise_of_all_bounds_is_what_the_planner_says():
    frame = trips()
    spend = {"epsilon": 0.9, "delta": 1e-6}
    for query in ("sum", "mean"):
        shown = preview_of(
            frame,
            dpf.suggest_bounds,
            "fare",
            "zone",
            query=query,
            epsilon=0.1,
            planned=spend,
            smallest=2,
            largest=8,
        )
        ends = power_ends(2, 8)
        make = getattr(dpf, query)
        noise = {
            (low, high): frame.dp.plan(make("fare", "zone", bounds=(low, high)), **spend)
            .table["std_error"]
            .iloc[0]
            for low in ends
            for high in ends
            if low < high
        }
        for at, low in enumerate(ends[:-1]):
            least = min(one for (left, _), one in noise.items() if left == low)
            assert shown["as_low"].iloc[at + 1] == pytest.approx(least * np.sqrt(0.5))
        assert np.isinf(shown["as_low"].iloc[[0, -1]]).all()
        assert np.isinf(shown["as_high"].iloc[[0, -1]]).all()


def test_errors_are_those_of_typical_values_and_noise():
    frame = trips()
    with quiet():
        found = frame.dp.suggest_bounds("fare", "zone", epsilon=1, **SMALL)
    (low, high), counts = found.dp.best["bounds"], found["count"].to_numpy()
    assert (low, high) == (-4.0, 64.0)  # lower ones do not make less noise
    later = frame.dp.plan(dpf.sum("fare", "zone", bounds=(low, high)), epsilon=9).table
    # what is beyond 64 counts as 64 / log 2
    beyond = counts[-1] * (64 / np.log(2) - 64) / 2
    noise = later["std_error"].iloc[0] * np.sqrt(0.5)
    expected = expected_error(np.array([beyond]), np.array([noise]))[0]
    assert found["as_high"].min() == pytest.approx(expected)
    assert found["as_high"].min() == found["as_low"].min()


def test_bins_of_equal_widths_refine_what_was_found():
    frame = trips()
    with quiet():
        asked = {"within": (0, 64), "bins": 16, "where": "fare < 50"}
        found = frame.dp.suggest_bounds("fare", "zone", epsilon=1, **asked)
    assert len(found) == 18 and found.dp.best["bounds"] == (0.0, 40.0)
    widths = {bin_.length for bin_ in found.index[1:-1]}
    assert widths == {4.0}


def test_rows_without_a_unit_of_their_own_are_units():
    frame = pd.DataFrame({"fare": np.arange(4000) % 33})
    later = {"planned": {"epsilon": 0.01}, "privacy_unit": dpf.EACH_ROW}
    found = frame.dp.suggest_bounds("fare", epsilon=1, **later, **SMALL)
    # others are better only if noise of scale 1 makes 100 rows: with a probability below e^-50
    assert found.dp.best["bounds"] == (0.0, 32.0)


def test_one_release_is_charged_and_all_results_work(tmp_path):
    frame = trips(budget=dpf.Budget(epsilon=1, delta=1e-6))
    preview_of(frame, dpf.suggest_bounds, "fare", "zone", share=0.1, **SMALL)
    assert frame.dp.budget.used == 0
    found = frame.dp.suggest_bounds("fare", "zone", share=0.1, name="bounds", **SMALL)
    (entry,) = frame.dp.ledger.entries
    assert entry.what == "histogram of fare" and entry.name == "bounds"
    steps = dpf.verify(found, ledger=frame.dp.ledger).table.definitions
    assert [step.into for step in steps] == ["as_low", "as_high"]
    assert steps[0].query == "sum of fare by zone" and steps[0].planned == {"share": 0.9}
    found.dp.write_csv(tmp_path / "bounds.csv")
    back = dpf.read_csv(tmp_path / "bounds.csv")
    pd.testing.assert_frame_equal(back, found, check_frame_type=False)
    assert back.dp.best == found.dp.best
    dpf.schema(found).validate(back)
    axes = found.dp.plot(ax=Figure().add_subplot())
    assert axes.get_xlabel() == "fare" and len(axes.lines) == 4
    assert axes.get_xscale() == "symlog"
    with pytest.raises(BudgetExceededError):
        frame.dp.suggest_bounds("fare", "zone", epsilon=1, **SMALL)


@pytest.mark.parametrize("options", [SMALL, {}])
def test_labels_of_the_plot_stand_beside_each_other(options):
    axes = trips().dp.suggest_bounds("fare", "zone", epsilon=1, **options).dp.plot()
    axes.figure.canvas.draw()
    ends = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    assert len(ends) >= 3 and 0.0 in axes.get_xticks()
    assert all(one.x1 < other.x0 for one, other in pairwise(ends))
    plt.close(axes.figure)


@pytest.mark.parametrize("rows", [0, 3, 600])
def test_shape_and_dtypes_do_not_depend_on_the_data(rows):
    found = trips(rows).dp.suggest_bounds("fare", "zone", epsilon=1, **SMALL)
    assert found.shape == (16, 3) and found["count"].dtype == np.int64
    assert found[["as_low", "as_high"]].notna().all(axis=None)
    assert np.isfinite(best_suggestion(found)[-1].best["bounds"]).all()


REFUSED = [
    (QueryError, "query must be", {"query": "median"}),
    (QueryError, "query must be", {"query": dpf.sum("fare")}),
    (QueryError, "smallest must be", {"smallest": 0}),
    (QueryError, "largest must be", {"largest": np.inf}),
    (QueryError, "no larger than", {"smallest": 8, "largest": 2}),
    (QueryError, "within must be", {"within": (3, 3)}),
    (QueryError, "within must be", {"within": 5}),
    (QueryError, "bins must be", {"within": (0, 3), "bins": 129}),
    (QueryError, "leave out smallest", {"within": (0, 3), "smallest": 2}),
    (QueryError, "planned must be", {"planned": 3}),
    (CalibrationError, "cannot be released", {"planned": {"epsilon": 1e-18, "delta": 0}}),
    (UnknownColumnError, "fair", {"column": "fair"}),
]


@pytest.mark.parametrize(("error", "words", "options"), REFUSED)
def test_what_is_not_usable_is_refused_before_anything_is_charged(error, words, options):
    frame = trips(budget=dpf.Budget(epsilon=1, delta=1e-6))
    options = {"column": "fare", "epsilon": 0.1} | options
    for call in (frame.dp.suggest_bounds, partial(preview_of, frame, dpf.suggest_bounds)):
        with raises(error, words):
            call(**options)
    assert frame.dp.budget.used == 0


def test_times_are_refused():
    frame = pd.DataFrame({"t": pd.to_datetime(["2024-01-01"])})
    day = pd.Timestamp("2024-01-01")
    frame.dp.declare(bounds={"t": (day, day + pd.Timedelta("1D"))}, privacy_unit=dpf.EACH_ROW)
    with raises(QueryError, "must be of numbers", parameter="column"):
        frame.dp.suggest_bounds("t", epsilon=1)

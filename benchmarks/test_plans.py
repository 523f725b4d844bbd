"""The table of plans on the page is that of the figures that are kept; bounds are bounds."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))
bench = importlib.import_module("bench_plans")
errors = importlib.import_module("plan_errors")


def test_the_page_shows_the_figures_that_are_kept():
    table = "\n".join(bench.lines(bench.earlier()))
    assert f"{bench.BEGIN}\n\n{table}\n\n{bench.END}" in bench.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("window", [None, "expanding", 3])
def test_no_columns_of_length_one_err_less_than_the_bound(window):
    bins = 7
    low, high = errors.wanted(bins, window)
    sums = (np.arange(bins) >= low[:, None]) & (np.arange(bins) < high[:, None])
    nuclear = np.linalg.svd(sums, compute_uv=False).sum() / np.sqrt(sums.size)
    plain, best = (errors.least_error(low, high, bins, rounds) for rounds in (0, 60))
    assert plain == pytest.approx(nuclear) and plain <= best
    dice = np.random.default_rng(3)
    for spread in (0, 0.1, 1):
        measured = np.eye(bins) + spread * dice.normal(size=(bins, bins))
        far = np.square(measured).sum(0).max()
        squares = np.square(sums @ np.linalg.inv(measured)).sum()
        assert np.sqrt(far * squares / len(sums)) > best


def test_a_figure_above_its_goal_is_not_met():
    rows = [bench.Row("one", 1.1, 1), bench.Row("two", 1.0, 1), bench.Row("three", 9.0, None)]
    assert [line.split(" | ")[3] for line in [*bench.lines(rows)][2:]] == ["no", "yes", ""]

"""The automatic choice, and what every method is told of the noise."""

import math
import re
import statistics
from pathlib import Path

import numpy as np
import pytest
from support.raising import raises

from dpframe.denoising import methods
from dpframe.denoising.methods import METHODS, Facts, choose, denoise_array
from dpframe.denoising.projection import check_edges
from dpframe.errors import QueryError
from dpframe.privacy.laws import GAUSSIAN, LAPLACE

PATH = np.column_stack([np.arange(199), np.arange(1, 200)])
SIGMA = 8.0
# fixed draws: nothing here can fail by chance
NOISE = SIGMA * np.random.default_rng(5).standard_normal(200)
TRUTHS = {
    "flat": np.full(200, 70.0),
    "steps": np.repeat([20.0, 150, 60, 90], 50),
    "sparse": np.where(np.arange(200) % 40 == 7, 300.0, 0.0),
    "far apart": 1000.0 * (np.arange(200) * 37 % 200),
}


def error(values, truth):
    return float(np.mean((values - truth) ** 2))


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("edges", [None, PATH])
def test_the_choice_is_nearly_the_best(truth, edges):
    truth = TRUTHS[truth]
    facts = Facts(GAUSSIAN, SIGMA, nonnegative=True, edges=edges)
    found = choose(truth + NOISE, facts)
    errors = [error(each.values, truth) for each in found.tried.values()]
    nothing = error(NOISE, 0)
    assert error(found.denoised.values, truth) <= 1.02 * nothing
    assert error(found.denoised.values, truth) <= min([*errors, nothing]) + 0.1 * nothing


def test_an_average_has_the_average_risk_less_its_spread(monkeypatch):
    monkeypatch.setattr(methods, "_TEMPERATURE", 1e3)
    found = choose(TRUTHS["flat"] + NOISE, Facts(GAUSSIAN, SIGMA, edges=PATH))
    assert len(found.methods) > 1
    assert found.name == "average"
    parts = [found.tried[name] for name in found.methods]
    weights = np.exp([-200 * part.risk / SIGMA**2 / 1e3 for part in parts])
    weights /= weights.sum()
    assert [found.denoised.chosen[f"{name}: weight"] for name in found.methods] == pytest.approx(
        weights
    )
    mean = sum(weight * part.values for weight, part in zip(weights, parts, strict=True))
    assert found.denoised.values == pytest.approx(mean)
    losses = [part.risk - error(part.values, mean) for part in parts]
    assert found.denoised.risk == pytest.approx(weights @ losses)


def test_values_far_apart_are_left_alone():
    values = TRUTHS["far apart"] + NOISE
    found = choose(values, Facts(GAUSSIAN, SIGMA))
    assert found.methods == ()
    assert found.name == "none"
    assert found.denoised.values.tolist() == values.tolist()
    assert found.denoised.risk == SIGMA**2
    assert found.tried


@pytest.mark.parametrize("n", [3, 20])
def test_counts_below_zero_are_raised_to_it_where_nothing_else_helps(n):
    values = 1000.0 * np.arange(n)
    values[1] = -3.0
    found = choose(values, Facts(LAPLACE, SIGMA, nonnegative=True, integer=True))
    assert found.methods == ("nonnegative",)
    assert found.denoised.values.tolist() == np.maximum(values, 0).tolist()
    assert choose(values, Facts(LAPLACE, SIGMA)).methods == ()
    assert choose(np.abs(values), Facts(LAPLACE, SIGMA, nonnegative=True)).methods == ()


def test_neighbors_are_averaged_over_and_nothing_else_is():
    values = TRUTHS["steps"] + NOISE
    assert choose(values, Facts(GAUSSIAN, SIGMA)).methods == ("posterior",)
    on_a_path = choose(values, Facts(GAUSSIAN, SIGMA, nonnegative=True, edges=PATH)).tried
    assert {"posterior loss=squared", "tree_wavelets", "trend_filter order=1"} < set(on_a_path)


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.drifts])
def test_methods_that_drift_leave_common_noise_and_count_it(method):
    values = TRUTHS["steps"] + NOISE
    alone = denoise_array(values, method, Facts(GAUSSIAN, SIGMA, edges=PATH), {})
    moved = denoise_array(values + 500, method, Facts(GAUSSIAN, SIGMA, 3.0, edges=PATH), {})
    grid = 0.35 * SIGMA if method == "posterior" else 1e-9
    assert moved.values == pytest.approx(alone.values + 500, abs=grid)
    assert moved.risk == pytest.approx(alone.risk + 9, rel=0.05 if method == "posterior" else 1e-9)


def test_methods_with_a_fixed_place_are_given_all_the_noise():
    values = TRUTHS["sparse"] + NOISE
    for method, options in (
        ("soft_threshold", {}),
        ("james_stein", {"toward": "zero"}),
        ("posterior", {"prior": {0.0: 0.9, 300.0: 0.1}}),
    ):
        apart = denoise_array(values, method, Facts(GAUSSIAN, 6.0, 4.5), options)
        whole = denoise_array(values, method, Facts(GAUSSIAN, 7.5), options)
        assert apart.values.tolist() == whole.values.tolist()
        assert apart.risk == whole.risk


def test_results_stay_above_the_smallest_truth_but_for_projections():
    values = np.array([-30.0, 2, -5, 11, 0, 7, -2, 40])
    for method in ("james_stein", "soft_threshold"):
        made = denoise_array(values, method, Facts(GAUSSIAN, 1.0, nonnegative=True), {})
        assert made.values.min() == 0
        assert denoise_array(values, method, Facts(GAUSSIAN, 1.0), {}).values.min() < 0
    whole = denoise_array(values, "whole", Facts(GAUSSIAN, 1.0, nonnegative=True), {})
    assert whole.values.tolist() == values.tolist()


def test_graphs_are_needed_where_they_are_used():
    for method in ("tree_wavelets", "trend_filter"):
        with raises(QueryError, "give graph=", parameter="graph"):
            denoise_array([1.0, 2], method, Facts(GAUSSIAN, 1.0), {})


@pytest.mark.parametrize(
    "edges", [[[0, 5]], [[-1, 2]], [[0.0, 1]], [0, 1], [[0, 1, 2]], [["a", "b"]]]
)
def test_edges_are_checked(edges):
    with raises(QueryError, "edges must", parameter="edges"):
        check_edges(edges, 4)


def test_edges_become_simple():
    assert check_edges([[2, 1], [1, 2], [3, 3], [0, 3]], 4).tolist() == [[0, 3], [1, 2]]


@pytest.mark.full
@pytest.mark.parametrize(
    ("law", "largest"), [(GAUSSIAN, 2 * math.log(200)), (LAPLACE, math.log(200) ** 2 / 2)]
)
def test_methods_that_are_tuned_are_judged_with_their_tuning(law, largest):
    values = TRUTHS["steps"] + NOISE
    facts = Facts(law, SIGMA, nonnegative=True, edges=PATH)
    tried = choose(values, facts).tried
    plain = denoise_array(values, "tree_wavelets", facts, {}).risk
    assert tried["tree_wavelets"].risk == pytest.approx(plain + 2 * largest * SIGMA**2 / 200)
    plain = denoise_array(values, "trend_filter", facts, {"order": 1}).risk
    assert tried["trend_filter order=1"].risk == pytest.approx(plain + largest * SIGMA**2 / 400)


def test_the_page_says_what_the_tables_of_measurements_show():
    docs = Path(__file__).parents[2] / "docs"
    page = " ".join((docs / "denoising.md").read_text(encoding="utf-8").split())
    sections = (docs.parent / "benchmarks" / "results" / "denoising.md").read_text(encoding="utf-8")

    def rows_of(title):
        section = sections.split(f"\n## {title}\n")[1].split("\n## ")[0]
        return [line.strip("| ").split(" | ") for line in section.splitlines() if "| " in line][1:]

    counts = [row for row in rows_of("Real tables of counts") if "(chosen on)" not in row[0]]
    ratios = [[float(cell.split()[0]) for cell in row[4:6]] for row in counts]
    assert len(counts) == 40 and "no setting lost more than 2 %" in page
    assert max(max(pair) for pair in ratios) <= 1.02
    assert "in 92 % of settings" in page and "in 92% for L2" in sections
    means = [row for row in rows_of("Real tables of means") if "(chosen on)" not in row[0]]
    ratios = [[[float(x.strip("()")) for x in cell.split()] for cell in row[2:]] for row in means]
    assert len(means) == 16 and "On 16 real tables" in page
    assert max(real for row in ratios for real, _ in row) == 1.05 and "worst table lost 5 %" in page
    half = statistics.median(row[2][0] for row in ratios)
    assert half == pytest.approx(0.68, abs=0.01) and "saved 32 % of the squared error" in page
    close = [0.7 <= expected / real <= 1.4 for row in ratios for real, expected in row]
    assert f"in {100 * statistics.mean(close):.0f} % of settings" in page
    assert re.search(r"flights, delay by plane \|.* 0\.22 \(0\.07\)", sections)

"""Numbers that pages print are those of plans, of laws and of what the audits accept."""

import importlib.util
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpframe as dpf
from dpframe.privacy.gaussian import gaussian_epsilon, gaussian_mu

ROOT = Path(__file__).resolve().parents[1]
ONE = {"epsilon": 1, "delta": 1e-6}


def text_of(page):
    return " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())


def says(page, words):
    assert words in text_of(page), f"{page} does not say: {words}"


def declared(columns, **facts):
    """Return a frame of one row, each row a unit."""
    frame = pd.DataFrame(columns)
    frame.dp.declare(**{"privacy_unit": dpf.EACH_ROW, **facts})
    return frame


def columns_of(number, **facts):
    names = [f"x{k}" for k in range(number)]
    return declared({key: [0.5] for key in names}, bounds=dict.fromkeys(names, (0, 1)), **facts)


def errors(frame, query, **spend):
    return frame.dp.plan(query, **spend).table["std_error"]


def error_of_a_count(**spend):
    return errors(columns_of(1), dpf.count(), **spend).item()


def test_errors_of_one_count():
    laplace = error_of_a_count(**ONE, mechanism="laplace")
    gaussian = error_of_a_count(**ONE, mechanism="gaussian")
    of_both = f"{laplace:.2f} with Laplace noise, and of {gaussian:.2f} with Gaussian noise"
    says("how-it-works.md", f"one count has a standard deviation of {of_both}")
    many = f"of a single count: {laplace:.2f} at epsilon 1, instead of {gaussian:.1f}"
    says("many-counts-at-once.md", many)


def test_errors_of_sums_that_share_noise():
    page = text_of("many-counts-at-once.md")
    printed = re.search(r"# correlated ([\d.]+), gaussian ([\d.]+)", page)
    shared, independent = map(float, printed.groups())
    says("many-counts-at-once.md", f"{shared / independent:.2f} times the error of independent")
    source = re.search(r"```python\n(.*?for mechanism.*?)```", raw("many-counts-at-once.md"), re.S)
    names = {"print": lambda *_: None}
    exec(compile(source[1].split("query = ")[0], "page", "exec"), names)  # noqa: S102
    query = dpf.sum(names["answers"], by="region")
    for mechanism, error in (("correlated", shared), ("gaussian", independent)):
        plan = names["survey"].dp.plan(query, share=0.2, mechanism=mechanism)
        assert plan.table.loc["q0", "std_error"] == pytest.approx(error, rel=1e-6)


def raw(page):
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def test_errors_in_a_box():
    sums = {
        d: errors(columns_of(d), dpf.sum([f"x{k}" for k in range(d)]), epsilon=1).max()
        for d in (2, 3, 5, 10)
    }
    alone = errors(columns_of(1), dpf.sum("x0"), epsilon=1).item()
    separate = ", ".join(f"{d * alone:.1f}" for d in sums)
    together = ", ".join(f"{error:.2f}" for error in sums.values())
    says("many-counts-at-once.md", f'| {separate} | {together} | the same | `"box"` |')
    outputs = {"n": dpf.count()}
    for k in range(3):
        outputs |= {f"sum{k}": dpf.sum(f"x{k}"), f"mean{k}": dpf.mean(f"x{k}")}
    query = dpf.aggregate(None, **outputs)
    filled = columns_of(3, missing={f"x{k}": "drop" for k in range(3)})
    plans = [(filled, "laplace"), (filled, "auto"), (columns_of(3), "auto")]
    shown = []
    for frame, mechanism in plans:
        found = errors(frame, query, epsilon=1, mechanism=mechanism)
        shown.append(", ".join(f"{found[name]:.1f}" for name in ("n", "sum0", "mean0")))
    says("many-counts-at-once.md", f'| {" | ".join(shown)} | `"box"` |')
    mean = errors(columns_of(1), dpf.mean("x0"), epsilon=1).item()
    says("many-counts-at-once.md", f"| {math.sqrt(2) * mean:.2f} | {mean:.2f} | {mean:.2f} |")


def test_what_staircase_noise_spares():
    found = []
    for epsilon in (3, 5):
        plan = columns_of(1).dp.plan(dpf.sum("x0"), epsilon=epsilon)
        laplace = errors(columns_of(1), dpf.sum("x0"), epsilon=epsilon, mechanism="laplace")
        assert plan.mechanism == "staircase"
        found.append(round(100 * (1 - plan.table["std_error"].item() / laplace.item())))
    small, large = found
    words = f"{small} % below that of Laplace noise at epsilon 3, and {large} % at 5"
    says("many-counts-at-once.md", words)


MARGINS = {
    "eleven columns of a census": ((11, 9, 16, 7, 15, 6, 5, 2, 8, 42, 2), 2),
    "the same": ((11, 9, 16, 7, 15, 6, 5, 2, 8, 42, 2), 3),
    "ten columns of two groups": ((2,) * 10, 2),
    "seven columns of 2 to 100 groups": ((2, 3, 5, 10, 20, 50, 100), 2),
}


@pytest.mark.full
@pytest.mark.parametrize("title", MARGINS)
def test_errors_of_margins(title):
    sizes, ways = MARGINS[title]
    keys = {f"c{k}": range(size) for k, size in enumerate(sizes)}
    query = dpf.margins(list(keys), ways)
    frame = declared({key: [0] for key in keys}, keys=keys)
    mu = 0.01  # so much noise that rounding does not show
    planned = errors(frame, query, mu=mu, mechanism="gaussian")
    row = re.search(rf"\| {title}.*?: (\d+) \| ([\d.]+) \| ([\d.]+) \|", raw("margins.md"))
    number, alone, together = row.groups()
    assert int(number) == len(query.tables)
    assert float(alone) == pytest.approx(math.sqrt(len(query.tables)), rel=0.003)
    assert float(together) == pytest.approx(mu * math.sqrt((planned**2).mean()), rel=0.005)


def test_epsilons_of_parts_of_a_budget():
    for page, share in (("privacy-promise.md", "1/12"), ("start/reading.md", "0.25")):
        budget = dpf.Ledger(budget=dpf.Budget(epsilon=1, delta=1e-6))
        frame = columns_of(1, ledger=budget)
        plan = frame.dp.plan(dpf.count(), share=share, mechanism="gaussian")
        epsilon = plan.table["epsilon"].item()
        said = f"({epsilon:.2f}, 1e-6)-DP" if page[0] == "p" else f"epsilon of {epsilon:.2f} each"
        says(page, said)
    twelve = 12**0.5 * 0.26
    says("privacy-promise.md", f"0.26 times the root of 12 is {twelve:.1f}")


def test_amounts_of_the_reference():
    frame = columns_of(1, ledger=dpf.Ledger(budget=dpf.Budget(epsilon=9)))
    frame.dp.count(epsilon=4)
    left = frame.dp.plan(dpf.count(), share=0.5).table["epsilon"].item()
    says("reference/releasing.md", f"`share=0.5` costs {left:g}, half of the {2 * left:g} that")
    spend = {"epsilon": 1e-300, "delta": 1e-6, "mechanism": "gaussian"}
    mu = columns_of(1).dp.plan(dpf.count(), **spend).table["mu"].item()
    says("reference/releasing.md", f"with `delta=1e-6` costs mu={mu:.1e}".replace("e-06", "e-6"))


def test_odds_can_grow_by_more_with_a_chance_above_delta():
    mu = gaussian_mu(1, 1e-6)
    chance = norm.sf(1 / mu - mu / 2)  # that the loss is above epsilon
    says("how-to/epsilon.md", f"{chance / 1e-6:.0f} times for Gaussian noise of (1, 1e-6)")


def test_added_noise_of_the_promise():
    table = raw("privacy-promise.md").split("| more noise |")[1].split("\n")[0]
    percents = [float(cell) for cell in re.findall(r"([\d.]+) %", table)]
    source = (ROOT / "tests" / "ledger" / "test_bounds.py").read_text(encoding="utf-8")
    added = source.split("ADDED = [")[1].split("\n]")[0]
    assert percents == [float(more) for more in re.findall(r", ([\d.]+)\),", added)]


def test_thresholds():
    table = raw("unknown-groups.md").split("## How many riders")[1]
    caps = [int(cap) for cap in re.search(r"\| `max_groups` \|(.*)\|", table)[1].split("|")]
    for row, neighboring in (("threshold", "add_remove"), ("with `neighboring=.*?`", "replace")):
        shown = [cell.strip() for cell in re.search(rf"\| {row} \|(.*)\|", table)[1].split("|")]
        for cap, threshold in zip(caps, shown, strict=True):
            facts = {"privacy_unit": "u", "max_rows": 100, "max_groups": cap}
            frame = declared({"u": [1], "zone": ["A"]}, **facts, neighboring=neighboring)
            plan = frame.dp.plan(dpf.discover("zone"), **ONE)
            assert f"{round(plan.table['threshold'].iloc[0], 1):g}" == threshold
    frame = declared({"u": [1], "zone": ["A"]}, privacy_unit="u", max_rows=1, max_groups=1)
    labels = frame.dp.plan(dpf.discover("zone", counts=False), **ONE).table["threshold"].iloc[0]
    says("unknown-groups.md", f"their threshold is 15, not {math.ceil(labels)}")


def test_a_suggestion_has_the_noise_of_a_count_of_people():
    frame = declared({"u": [1]}, privacy_unit="u", max_rows=1)
    found = errors(frame, dpf.suggest_caps(), epsilon=0.05)
    says("caps-and-bounds.md", f"a standard error of {found.max():.0f} at epsilon = 0.05")


def test_what_correlations_cost():
    names = {"x": [0.5], "y": [0.5]}
    frame = declared(names, bounds={"x": (0, 1), "y": (0, 1)})
    count = error_of_a_count(epsilon=1)
    beside = errors(frame, dpf.aggregate(None, n=dpf.count(), r=dpf.corr("x", "y")), epsilon=1)
    query = dpf.aggregate(None, n=dpf.count(), r=dpf.corr("x", "y", sampling=True))
    sampled = errors(frame, query, epsilon=1)
    assert round(beside["n"] / count) == 3 and round(sampled["n"] / count) == 5
    assert round(sampled["r"] / beside["r"], 2) == 1.25
    gaussian = errors(frame, dpf.corr("x", "y"), **ONE, mechanism="gaussian").item()
    assert round(gaussian / beside["r"]) == 3
    for words in ("three times its usual error", "five times the error", "a quarter larger"):
        says("association.md", words)


@pytest.mark.full
def test_coefficients_are_off_by_what_the_page_says():
    # the median of 3 * 60 coefficients has a relative standard error of some 9 %: half is five
    rng, rows, groups = np.random.default_rng(1), 10_000, 60
    covariates = rng.normal(0, 0.3, (rows, 3)).clip(-1, 1)
    y = (covariates @ [0.4, -0.3, 0.2] + rng.normal(0, 0.2, rows)).clip(-1, 1)
    exact = np.linalg.lstsq(np.c_[np.ones(rows), covariates], y, rcond=None)[0][1:]
    names = ["a", "b", "c"]
    frame = pd.DataFrame(np.tile(covariates, (groups, 1)), columns=names)
    frame["y"], frame["zone"] = np.tile(y, groups), np.repeat(np.arange(groups), rows)
    bounds = dict.fromkeys([*names, "y"], (-1, 1))
    frame.dp.declare(keys={"zone": range(groups)}, bounds=bounds, privacy_unit=dpf.EACH_ROW)
    off = frame.dp.regression("y", names, by="zone", epsilon=1)[names] - exact
    shown = float(re.search(r"coefficients are off by (\.\d+) \(median", raw("association.md"))[1])
    assert off.abs().stack().median() == pytest.approx(shown, rel=0.5)


def test_two_counts_or_sums_err_more_than_a_rate_or_mean():
    rows = 10**5
    half = error_of_a_count(epsilon=0.5)
    rates, means = [], []
    for part in (0, 0.5, 0.62, 0.75, 1):
        x = (np.arange(rows) < part * rows).astype(float)
        frame = pd.DataFrame({"x": x, "w": 100.0})
        frame.dp.declare(bounds={"x": (0, 1), "w": (0, 100)}, privacy_unit=dpf.EACH_ROW)
        together = frame.dp.rate("x > 0.5", epsilon=1).dp.std_error.iloc[0, 0] * rows
        rates.append(math.hypot(half, part * half) / together)
        together = frame.dp.mean("x", weights="w", epsilon=1).dp.std_error.iloc[0, 0] * rows
        # two sums with Laplace noise of half of epsilon, in weights of 100
        means.append(math.sqrt(8) * math.hypot(1, part) / together)
    for page, found in (("rates.md", rates), ("weights.md", means)):
        least, most = re.search(r"error is (\S+) to (\S+) times as large", text_of(page)).groups()
        assert float(least) - 0.01 < min(found) < float(least) + 0.1
        assert float(most) - 0.1 < max(found) < float(most)


def test_rank_errors_of_the_exact_plans():
    frame = declared({"x": [1.0]}, bounds={"x": (0, 100)})
    one = frame.dp.plan(dpf.quantile("x", [0.5]), epsilon=0.5, mechanism="select")
    says("quantiles.md", f'plan.table["rank_error_95"] # {one.table.iloc[0, 1]:.0f} rows')
    deciles = dpf.quantile("x", [k / 10 for k in range(1, 10)])
    nine = frame.dp.plan(deciles, epsilon=0.5, mechanism="select").table["rank_error_95"]
    assert round(nine.loc[0.5] / one.table["rank_error_95"].item()) == 4
    says("quantiles.md", "each of nine has four times the error of one")


def test_mean_rank_errors_are_those_of_the_script():
    measured = (ROOT / "benchmarks" / "results" / "rank-errors.md").read_text(encoding="utf-8")

    def mean(mechanism, law, quantiles, size):
        row = rf"\| {mechanism}.*? \| {law} \| {quantiles} \| {size} \| ([\d.]+) \|"
        return f"{float(re.search(row, measured)[1]):.1f}"

    for quantiles in ("one median", "nine deciles"):
        cells = [
            mean("select", law, quantiles, size)
            for size in ("10,000 rows", "20 groups of 500 rows")
            for law in ("exponential", "with ties")
        ]
        says("quantiles.md", f"| {quantiles} | {' | '.join(cells)} |")
    read = [
        mean(f"ranges, {law}", "exponential", "one median", "10,000 rows")
        for law in ("Laplace", "Gaussian")
    ]
    says("quantiles.md", f"by {read[0]} of 10,000 rows with Laplace noise, and by {read[1]} with")


@pytest.mark.full
@pytest.mark.parametrize("spend", [{"epsilon": 1}, {**ONE, "mechanism": "gaussian"}])
def test_many_bins_do_not_double_the_error_of_a_range(spend):
    ends = np.sort(np.random.default_rng(3).choice(17, (40, 2)), axis=1)
    error = {}
    for bins in (64, 1024):
        frame = declared({"x": [1.0]}, bounds={"x": (0, 16)})
        released = frame.dp.ranges("x", bins, **spend)
        between = [released.dp.between(a, b)["std_error"].item() for a, b in ends if a < b]
        error[bins] = np.mean(np.square(between)) ** 0.5
    assert 1 < error[1024] / error[64] < 2
    says("quantiles.md", "16 times as many bins do not double the error of a range")


def test_ordinary_intervals_hold_for_none_of_the_largest():
    # each of ten is beyond its half-width unless fewer than ten of 2,500 are: 2.5 % are expected
    groups = 2_500
    frame = pd.DataFrame({"zone": np.repeat(np.arange(groups), 2)})
    frame.dp.declare(keys={"zone": range(groups)}, privacy_unit=dpf.EACH_ROW)
    released = frame.dp.count("zone", epsilon=0.2)
    lows = released.dp.interval()["count_low"][released["count"].nlargest(10).index]
    assert (lows > 2).all()
    says("publishing.md", "hold for none of the largest ten")


def test_claims_of_ledgers_are_those_of_their_tests():
    source = (ROOT / "tests" / "operations" / "test_looks.py").read_text(encoding="utf-8")
    assert "after[name] <= 1.08 * before[name]" in source
    says("privacy-promise.md", "errors grow by at most 8 %")
    source = (ROOT / "tests" / "ledger" / "test_pots_kept.py").read_text(encoding="utf-8")
    assert '"1/14"' in source
    says("privacy-promise.md", "takes at most 1/14 of epsilon")
    says("known-limits.md", "Gaussian releases alone lose 0.7 to 1.5 % of accuracy")
    table = raw("privacy-promise.md").split("| more noise |")[1].split("\n")[0]
    percents = [float(cell) for cell in re.findall(r"([\d.]+) %", table)]
    assert (round(min(percents), 1), round(max(percents), 1)) == (0.7, 1.5)
    says("reference/declaring.md", f"which is ({gaussian_epsilon(1e-6, 2):.0f}, 1e-6)-DP")


def test_where_a_peer_admits_more_is_as_measured():
    measured = (ROOT / "benchmarks" / "results" / "comparison.md").read_text(encoding="utf-8")
    words = " ".join(measured.split())
    assert "From 200 releases on OpenDP admits 3 to 4 % more" in words
    says("why.md", "fits 3 to 4 % more from 200 small releases on")
    best = re.search(r"\| ([\d.]+)x: OpenDP, one-way tables", text_of("benchmarks.md"))[1]
    says("why.md", f"{round(100 * (1 - float(best)))} % less error for some small tables")


AUDITED = [
    ("association.md", "2.8 to 7.8 % at 5 %", "independence_level", "0.028 < rejected"),
    ("association.md", "2.8 to 7.8 % at 5 %", "independence_level", "< 0.078"),
    ("association.md", "0 is off by 0.026, one of 0.8 by 0.035", "association_coverage",
     "of 1,000 groups: .026, .029 and .035 are expected"),
    ("association.md", "at least 92.5 % of cases at 95 %", "association_coverage",
     "for level, least in ((0.8, 0.756), (0.95, 0.925))"),
    ("association.md", "at least 92.5 % of 95 % intervals held, and 75.6 % of those of 80 %",
     "association_coverage", "((0.8, 0.756, 0.865), (0.95, 0.925, 0.985))"),
    ("rates.md", "at least 94.2 % of 95 % intervals held the rate", "rate_coverage",
     "LEAST = 0.942"),
    ("rates.md", "at least 93 % of 95 % intervals held the truth", "variance_coverage",
     "0.942 if rows == 10_000 else 0.93"),
    ("weights.md", "at least 94.2 % of 95 % intervals held", "weighted_coverage", "LEAST = 0.942"),
]  # fmt: skip


@pytest.mark.parametrize(("page", "words", "audit", "code"), AUDITED)
def test_coverages_are_those_that_audits_accept(page, words, audit, code):
    says(page, words)
    assert code in (ROOT / "tests" / "audit" / f"test_{audit}.py").read_text(encoding="utf-8")


def test_coverages_of_samples_are_those_that_the_audit_accepts():
    path = ROOT / "tests" / "audit" / "test_sampling_coverage.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    audit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(audit)
    ends = {
        level: f"{100 * audit.LEAST[level]:.1f} to {100 * audit.MOST[level]:.1f} %"
        for level in (0.95, 0.8)
    }
    says("sampling.md", f"held in {ends[0.95]} of 4,000 samples, 80 % intervals in {ends[0.8]}")


def test_errors_of_variances_are_those_of_the_closed_forms():
    source = (ROOT / "tests" / "strategies" / "test_bernstein.py").read_text(encoding="utf-8")
    rows = re.findall(r"\(\(\S+, \S+\), ([\d.]+), ([\d.]+)\)", source)
    best, alone = zip(*((float(one), float(other)) for one, other in rows), strict=True)
    says("rates.md", f"an error of {min(best)} to {max(best)} squared widths")
    says("rates.md", f"squares alone gives up to {max(alone)}")


def test_the_readme_tells_of_the_table_that_it_prints():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    count, _, low, high = re.search(r"^17 +(\d+) +([\d.]+) +(\d+) +(\d+)", readme, re.M).groups()
    said = re.search(r"about ([\d,]+) flights left, between ([\d,]+) and ([\d,]+) with", readme)
    rounded = [f"{round(int(count), -2):,}", *(f"{round(int(end), -1):,}" for end in (low, high))]
    assert [*said.groups()] == rounded


def test_costs_of_files_are_those_that_were_measured():
    measured = (ROOT / "benchmarks" / "results" / "comparison.md").read_text(encoding="utf-8")
    dask = {}
    for task, unit in (
        ("each row its own unit", "none"),
        ("units, with caps", "5 groups of 2 rows"),
    ):
        row = rf"^\| 100,000,000 \| 1,000 \| {task} \|(.*)\|$"
        seconds, peaks = (
            [cell.strip() for cell in found.split("|")] for found in re.findall(row, measured, re.M)
        )
        peak = peaks[2].split("(")[1].strip(")")
        says("large-data.md", f"| 100 million | {unit} | {seconds[2]} | {peak} MB |")
        dask[unit] = seconds[2], seconds[3]
    scan, threads = dask["5 groups of 2 rows"]
    says("dask.md", f"take {threads} with two threads, and")
    says("dask.md", f"takes {scan} and a tenth of the memory")

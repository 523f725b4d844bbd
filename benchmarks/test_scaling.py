"""The page of how cost grows says what was measured: slopes, tables, words and pictures."""

import importlib
import json
import math
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))
axes = importlib.import_module("slopes_axes")
page = importlib.import_module("slopes_page")
slopes = importlib.import_module("slopes")


def results(name, seconds, megabytes=lambda size, place: 10.0):
    """Return what a measuring would have found on an axis, by laws of size and place of line."""
    axis = axes.AXES[name]
    return [
        {
            "axis": name,
            "line": line,
            "size": size,
            "seconds": seconds(size, place),
            "runs": 7,
            "before_mb": 100.0,
            "peak_mb": 100.0 + megabytes(size, place),
            "machine": "on 2026-01-02 with 2 cores (X), 24 GB of memory, Python 3.11.7",
        }
        for size in axis.sizes
        for place, line in enumerate(axis.lines)
    ]


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_the_slope_of_a_power_is_its_exponent(exponent):
    points = [(size, 3e-4 * size**exponent) for size in (10, 30, 100, 1_000, 4_000)]
    assert page.slope(points) == pytest.approx(exponent, abs=1e-12)


def test_the_slope_is_of_the_upper_half_by_least_squares():
    # log10 of the upper half: (2, 1), (3, 2), (4, 5), whose line has slope 2
    points = [(1, 9.0), (10, 9.0), (100, 10.0), (1_000, 100.0), (10_000, 1e5)]
    assert page.slope(points) == pytest.approx(2, abs=1e-12)
    assert page.slope(points[:1]) is None
    assert page.slope([]) is None


def test_memory_that_is_not_told_from_chance_has_no_slope():
    assert page.memory_slope([(1, 0.0), (10, 2.0), (100, 20.0)]) == pytest.approx(1)
    assert page.memory_slope([(1, 2.0), (10, 0.0), (100, 20.0)]) is None


def test_every_axis_grows_from_small_by_powers_of_ten():
    for axis in axes.AXES.values():
        assert axis.sizes[0] in {1, 1_000}
        assert all(
            math.isclose(b, 10 * a) for a, b in zip(axis.sizes, axis.sizes[1:], strict=False)
        )
        assert axis.quick in axis.sizes
        assert 2 <= len(axis.lines) <= 4  # there are as many colors


def test_cases_are_those_asked_for():
    found = list(slopes.cases(["keys"], 1e4, quick=False))
    assert {case["size"] for case in found} == {1_000, 10_000}
    assert {case["line"] for case in found} == set(axes.AXES["keys"].lines)
    assert {case["size"] for case in slopes.cases(["entries"], 1e8, quick=True)} == {1, 10, 100}
    assert max(case["size"] for case in slopes.cases(["rows"], 1e8, quick=False)) == 10**8


def test_results_of_other_axes_are_kept(tmp_path):
    kept = tmp_path / "results.jsonl"
    made = results("rows", lambda n, _: n) + results("keys", lambda n, _: n)
    kept.write_text("".join(json.dumps(result) + "\n" for result in made))
    assert {r["axis"] for r in slopes.earlier(kept, ["keys"], again=False)} == {"rows"}
    assert slopes.earlier(kept, ["keys"], again=True) == made
    assert slopes.earlier(tmp_path / "none", ["keys"], again=True) == []


def test_a_quick_try_does_not_touch_the_page(tmp_path):
    options = slopes.parsed(["--quick", "--scratch", str(tmp_path), "--only", "keys", "units"])
    assert tmp_path in options.output.parents
    assert options.only == ["keys", "units"]
    assert slopes.parsed(["--continue"]).again
    assert slopes.parsed([]).output == ROOT / "benchmarks" / "results" / "scaling.md"


def test_the_page_says_what_was_measured(tmp_path):
    powers = (0.5, 1.0, 2.0, 0.0)
    made = results("keys", lambda n, place: 1e-6 * n ** powers[place], lambda n, _: n / 1_000)
    made += results("entries", lambda n, place: 0.004, lambda n, _: 0.2)
    page.write(made, tmp_path / "scaling.md")
    text = (tmp_path / "scaling.md").read_text(encoding="utf-8")
    assert "Measured on 2026-01-02 with 2 cores (X)" in text
    assert "| slope of time | 0.50 | 1.00 | 2.00 | 0.00 |" in text
    assert "| slope of memory | 1.00 | 1.00 | 1.00 | 1.00 |" in text
    assert "| 100,000 | 316 µs, 100 MB | 100 ms, 100 MB | 10,000 s, 100 MB | " in text
    assert "| Keys | plain pandas | 3.2 times | 10 times |" in text
    assert "| Keys | later release | 100 times (more) | 10 times |" in text
    assert "| Keys | later release, texts | the same | 10 times |" in text
    assert "| 1 | 4.0 ms, below 1 MB |" in text
    assert "## Units" not in text  # nothing was measured
    for name in ("keys", "entries"):
        assert f"](images/scaling-{name}.png)" in text
        assert (tmp_path / "images" / f"scaling-{name}.png").stat().st_size > 5_000
    assert not (tmp_path / "images" / "scaling-units.png").exists()


def test_the_page_says_what_took_too_long(tmp_path):
    made = results("queries", lambda n, _: 1e-3 * n)
    made[-1] = {k: made[-1][k] for k in ("axis", "line", "size", "machine")}
    made[-1]["failed"] = "more than 90 s"
    text = page.page(made)
    assert "| 10,000 | 10 s, 10 MB | 10 s, 10 MB | more than 90 s |" in text
    assert (
        "- tables of their own, 10,000 queries: left out, as its process took more than 90 s"
        in text
    )


def test_labels_of_lines_do_not_lie_on_each_other():
    picture = importlib.import_module("slopes_picture")
    placed = picture.spread([0.99, 0.5, 0.985, 0.5, 0.1], gap=0.1)
    gaps = pd.Series(sorted(placed)).diff().dropna()
    assert (gaps > 0.1 - 1e-9).all()
    assert max(placed) <= 1
    assert placed[4] == 0.1


@pytest.fixture
def work():
    """Return the module beside the peers' that it measures with."""
    return importlib.import_module("slopes_work")


@pytest.mark.parametrize("name", list(axes.AXES))
def test_each_kind_of_work_runs(name, work, tmp_path, monkeypatch):
    made = work.rows
    axis = axes.AXES[name]
    if name in slopes.WRITTEN:
        work.WRITTEN[name](axis.sizes[0], tmp_path / "made")
    if name in {"keys", "units"}:  # of a million rows, and of ten
        monkeypatch.setattr(work, "rows", lambda number, **how: made(1_000, **how))
    for line in reversed(axis.lines):
        assert work.WORK[name](line, axis.sizes[0], tmp_path / "made")() is not None


def test_written_files_hold_the_rows_and_a_ledger_its_entries(work, tmp_path):
    work.write_files(1_000, tmp_path / "files")
    assert len(pd.read_parquet(tmp_path / "files")) == 1_000
    work.write_ledger(20, tmp_path / "ledger")
    assert len(work.dpf.Ledger(tmp_path / "ledger").entries) == 20

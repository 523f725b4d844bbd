"""The table of speeds on the page is that of the figures that are kept, and its rows can run."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))
bench = importlib.import_module("bench_speed")


def test_the_page_shows_the_figures_that_are_kept():
    table = "\n".join(bench.lines(bench.earlier()))
    assert f"{bench.BEGIN}\n\n{table}\n\n{bench.END}" in bench.PAGE.read_text(encoding="utf-8")


def test_each_row_calls_a_function_of_the_work():
    work = importlib.import_module("speed_work")
    for row in bench.ROWS.values():
        name, *arguments = row.work.split()
        assert callable(getattr(work, name))
        assert len(arguments) <= getattr(work, name).__code__.co_argcount


@pytest.mark.parametrize(
    ("figures", "median"), [([3.0, 1.0, 2.0], 2.0), ([1.0, "not installed"], "not installed")]
)
def test_words_of_a_round_are_those_of_the_row(figures, median):
    assert bench.median(figures) == median

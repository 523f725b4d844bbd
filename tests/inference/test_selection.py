"""Intervals of cells that were chosen for their values: how often they hold, and by which law."""

import math

import numpy as np
import pandas as pd
import pytest
from support.histograms import tails

import dpframe as dpf
from dpframe.certificates.definitions import CutPart
from dpframe.inference.selection import OwnNoise, Region, chosen_ends, selected_ends
from dpframe.privacy.laws import GAUSSIAN, LAPLACE

ZONES = [f"z{at:02}" for at in range(40)]
LAW = {"laplace": (LAPLACE, 5.0), "gaussian": (GAUSSIAN, 6.5)}
LARGEST = CutPart("nlargest", None, 17.0, None)
WIDE = CutPart("suppress", None, None, 0.4)
CUTS = {
    "nlargest": ([LARGEST], lambda y, error: y > 17),
    "nlargest, as the value left out": ([LARGEST], lambda y, error: y >= 17),
    "nsmallest": ([CutPart("nsmallest", None, 3.0, None)], lambda y, error: y < 3),
    "suppress below": ([CutPart("suppress", None, 11.5, None)], lambda y, error: y >= 11.5),
    "suppress wide": ([WIDE], lambda y, error: error <= 0.4 * np.abs(y)),
    "two": ([WIDE, LARGEST], lambda y, error: (error <= 0.4 * np.abs(y)) & (y > 17)),
}


@pytest.mark.parametrize("law", LAW)
@pytest.mark.parametrize("cut", CUTS)
def test_intervals_hold_as_often_as_they_say_given_that_a_cell_is_shown(law, cut):
    law, scale = LAW[law]
    noise, reach = OwnNoise(law, scale), math.ceil(30 * scale)
    cuts, passes = CUTS[cut]
    at = tails(law, scale, -reach, reach + 1)
    for n in (0, 2, 9, 18, 31, 60):
        y = np.arange(n - reach, n + reach + 1)
        shown = passes(y, law.standard_deviation(scale))
        y, chance = y[shown], (at[:-1] - at[1:])[shown]
        within = y - 2 * reach, y + 2 * reach
        low, high = selected_ends(y, noise, noise.region(cuts, y), 0.9, within)
        below, above = chance[high < n].sum(), chance[low > n].sum()
        assert max(below, above) <= 0.05 * chance.sum() * (1 + 1e-9)


def test_the_value_left_out_makes_no_cell_shown_too_sure():
    # a cell like the one left out was kept for its place, and is held to less
    noise = OwnNoise(LAPLACE, 5.0)
    region = noise.region([LARGEST], np.array([17, 18, 30]))
    assert region.least.tolist() == [17, 18, 18]


def trips(rows):
    frame = pd.DataFrame({"zone": np.repeat(ZONES, rows)})
    frame["late"] = np.arange(len(frame)) % 3 == 0
    frame["night"] = np.arange(len(frame)) % 7 == 0
    frame.dp.declare(keys={"zone": ZONES}, privacy_unit=dpf.EACH_ROW)
    return frame


@pytest.fixture(scope="module")
def counts():
    frame = trips(np.arange(0, 400, 10))
    query = dpf.aggregate("zone", n=dpf.count(where="not late"), late=dpf.count(where="late"))
    return frame.dp.release(query, epsilon=0.4, mechanism="laplace")


def expected(released, label, rows, cuts, cells=40):
    column = next(one for one in released.dp.certificate.columns if one.name == label)
    noise = OwnNoise(LAPLACE, column.noise.scale)
    y = released.loc[rows, label].to_numpy()
    return np.maximum(chosen_ends(y, noise, 0.95, cuts, len(rows) / cells), 0).T


def test_each_choice_that_is_known_gives_the_law_of_its_cut(counts):
    top = counts[["n"]].dp.nlargest(5)
    cut = top.dp.certificate.table.cuts
    assert (top.dp.interval() == expected(counts, "n", top.index, cut)).all(axis=None)
    few = counts[["n"]].dp.suppress(below=55)
    rows = few.index[few["n"].notna()]
    bars = few.dp.interval()
    assert (bars.loc[rows] == expected(counts, "n", rows, few.dp.certificate.table.cuts)).all(
        axis=None
    )
    assert bars["n_low"].isna().sum() == 40 - len(rows)
    assert "given their choice by suppress" in repr(bars)
    both = few.dp.nlargest(5)
    assert both.index.equals(top.index)
    again = both.dp.certificate.table.cuts
    assert (both.dp.interval() == expected(counts, "n", top.index, again)).all(axis=None)
    assert (both.dp.interval(chosen="keys") == both.dp.interval()).all(axis=None)


def test_noise_that_had_no_part_in_the_choice_changes_nothing(counts):
    beside = counts.dp.nlargest(5, "n")[["late"]]
    bars = beside.dp.interval()
    assert bars.equals(counts.dp.interval().loc[beside.index, ["late_low", "late_high"]])
    assert "5 of 40 cells shown: their noise had no part" in repr(bars)


@pytest.mark.parametrize(
    "choose",
    [
        lambda r: r[["n"]].sort_values("n").tail(5),
        lambda r: r[["n"]].dp.nlargest(9).head(5),
        lambda r: r[["n"]].dp.nlargest(9).dp.publish().head(5),
        lambda r: r[["n"]].dp.nlargest(5).dp.publish(),
        lambda r: r.dp.percent("n").dp.nlargest(9, "n").head(5)[["n"]],
    ],
)
def test_another_choice_has_the_level_of_any(counts, choose):
    chosen = choose(counts)
    level = 1 - 0.05 * 5 / 40
    bars = chosen.dp.interval()
    assert bars.equals(counts.dp.interval(level).loc[chosen.index, ["n_low", "n_high"]])
    assert f"Level {level:.6g} for 5 of 40 cells" in repr(bars)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (dpf.aggregate("zone", n=dpf.count(), r=dpf.rate("late")), {"epsilon": 2}),
        (
            dpf.aggregate("zone", n=dpf.count(where="late"), r=dpf.count(where="night")),
            {"epsilon": 2, "delta": 1e-6, "mechanism": "correlated"},
        ),
    ],
    ids=["rates beside counts", "correlated counts"],
)
def test_cells_that_share_noise_have_the_level_of_any_choice(query, options):
    released = trips(np.arange(100, 500, 10)).dp.release(query, **options)
    chosen = released.dp.nlargest(5, "n")[["r"]]
    level = 1 - 0.05 * 5 / 40
    bars = released.dp.interval(level).loc[chosen.index, ["r_low", "r_high"]]
    assert chosen.dp.interval().equals(bars)


def test_published_intervals_of_chosen_cells_are_computed_again(counts):
    table = counts[["n"]].dp.suppress(relative_error=0.3).dp.nlargest(5).dp.interval(join=True)
    public = table.dp.publish()
    assert dpf.verify(public, against=counts)
    assert public["n_low"].equals(table["n_low"])
    definition = public.dp.certificate.table.definitions[0]
    assert [cut.call for cut in definition.given] == ["suppress", "nlargest"]
    assert "given their cut" in repr(public.dp.certificate)


def test_each_table_says_under_which_choice_it_holds(counts):
    assert repr(counts.dp.interval()).endswith(
        "Holds for 95 % of all 40 cells. To pick some by size later: simultaneous=True."
    )
    at_once = counts.dp.interval(0.9, simultaneous=True)
    assert "All 40 hold at once in 90 % of releases, however cells are picked." in repr(at_once)
    mixed = counts.dp.nlargest(5, "n").dp.interval()
    assert "\nn: Holds" in repr(mixed) and "\nlate: Holds" in repr(mixed)


def test_a_region_is_what_lies_between_its_ends_but_for_its_gap():
    assert Region(3, 9, 5).within(-100, 100) == [(5, 9), (3, -5)]

"""Changes from one release to another: their values, what their intervals hold, what is refused."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import special
from support.quotients import DISJOINT, changes, nothing, replaced
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CertificateError, QueryError

COLUMNS = ["estimate", "low", "high"]
ZONES = ["A", "B", "C"]
QUERY = dpf.aggregate(
    "zone",
    n=dpf.count(),
    total=dpf.sum("fare"),
    mean=dpf.mean("fare"),
    high=dpf.rate("fare > 5"),
    spread=dpf.std("fare"),
)
SPENDS = {
    "laplace": {"mechanism": "laplace", "epsilon": 2},
    "gaussian": {"mechanism": "gaussian", "mu": 1},
    "box": {"mechanism": "box", "epsilon": 2},
}


def trips(rows, **declared):
    zone = np.repeat(ZONES, [rows, rows // 2, 3])
    frame = pd.DataFrame({"zone": zone, "fare": np.arange(len(zone)) * 7 % 11.0})
    facts = {"keys": {"zone": ZONES}, "bounds": {"fare": (0, 10)}, "privacy_unit": dpf.EACH_ROW}
    frame.dp.declare(**facts | declared)
    return frame


def years(query=QUERY, spend=SPENDS["laplace"], other=None):
    """Two releases, of fewer and of more rows."""
    spends = spend, spend if other is None else other
    return [
        trips(rows).dp.release(query, **own) for rows, own in zip((90, 120), spends, strict=True)
    ]


@pytest.mark.parametrize("spend", SPENDS)
def test_a_change_is_the_difference_with_the_errors_of_both(spend):
    before, now = years(spend=SPENDS[spend])
    found = changes(now.dp.change(before, 0.9))
    assert found.equals(changes(now.dp.change(before, level=0.9))) and list(found) == COLUMNS
    assert found.index.names == ["zone", "column"] and len(found) == 15
    wide = found["estimate"].unstack("column")[list(now)].loc[ZONES]
    # what is missing now, or then, is in the change: its interval is all that is possible
    assert np.allclose(wide, now.astype(float) - before.astype(float), equal_nan=True)
    known = found["estimate"].notna()
    assert found["estimate"].between(found["low"], found["high"])[known].all()
    relative = (
        changes(now.dp.change(before, percent=True))["estimate"].unstack("column").loc["A", "n"]
    )
    assert relative == pytest.approx(100 * (now.loc["A", "n"] / before.loc["A", "n"] - 1))
    table = now.dp.change(before)
    ids = {one.dp.certificate.release_id for one in (now, before)}
    assert {one.release_id for one in dpf.verify(table).releases} == ids
    with raises(CertificateError, "neither the released one nor a rounding"):
        dpf.verify(table + 1)


@pytest.mark.parametrize("spend", SPENDS)
def test_a_change_of_one_cell_is_a_combination_of_two(spend):
    query = dpf.aggregate("zone", n=dpf.count(), high=dpf.count(where="fare > 5"))
    before, now = (one[["n"]] for one in years(query, SPENDS[spend]))
    both = {2025: before, 2026: now}
    weights = {2025: {"B": -1.0}, 2026: {"B": 1.0}}
    combined = dpf.combine(both, weights).iloc[0]
    changed = changes(now.dp.change(before)).loc["B"]
    assert changed["estimate"] == combined["estimate"]
    assert abs(changed["high"] - combined["high"]) <= 1  # a change of counts is whole
    table = dpf.concat(both, name="year")
    assert table.dp.combine({(2025, "B"): -1, (2026, "B"): 1}).iloc[0].equals(combined)
    joined = table.sort_values("n").dp.combine({(2025, "B"): -1, (2026, "B"): 1})
    assert np.allclose(joined, combined)


def test_a_trend_is_a_combination_of_many_releases():
    made = [trips(90).dp.count(epsilon=1, mechanism="laplace") for _ in range(5)]
    slopes = np.arange(-2.0, 3.0) / 10
    found = dpf.combine(dict(enumerate(made)), {at: {0: w} for at, w in enumerate(slopes)})
    error = made[0].dp.std_error.iloc[0, 0] * math.sqrt((slopes**2).sum())
    assert found["std_error"].iloc[0] == pytest.approx(error)
    assert found["estimate"].iloc[0] == pytest.approx(
        sum(w * one.iloc[0, 0] for w, one in zip(slopes, made, strict=True))
    )
    assert 1.8 * error < found["high"].iloc[0] - found["estimate"].iloc[0] < 2.1 * error


def chances(released, values):
    """The law of the noise of a count, by the textbook."""
    mechanism = released.dp.certificate.mechanism
    scale = max(mechanism.scales.values())
    if mechanism.law == "laplace":
        q = math.exp(-1 / scale)
        return (1 - q) / (1 + q) * q ** np.abs(values)
    return np.diff(special.ndtr((np.append(values, values[-1] + 1) - 0.5) / scale))


def exact_coverage(truths, level, spends, *, percent, most=16):
    """Return how often a change of counts is held, noise by noise."""
    values = np.arange(-most, most + 1)
    noises = np.array(list(itertools.product(values, repeat=2)))
    made = [nothing(len(noises), DISJOINT, **spend) for spend in spends]
    each = [chances(one, values) for one in made]
    likely = np.multiply.outer(*each).ravel()
    assert likely.sum() > 1 - 1e-6
    now, before = (
        replaced(one, truth + noises[:, at], noises[:, at])[["late"]]
        for at, (one, truth) in enumerate(zip(made, truths, strict=True))
    )
    found = changes(now.dp.change(before, level, percent=percent))
    assert not found.isna().to_numpy().any()
    truth = 100 * (truths[0] / truths[1] - 1) if percent else truths[0] - truths[1]
    return likely[(found["low"] <= truth) & (truth <= found["high"])].sum()


SCALES = {
    "laplace": [{"mechanism": "laplace", "epsilon": 1}] * 2,
    "gaussian": [{"mechanism": "gaussian", "mu": 0.5}] * 2,
    "both": [{"mechanism": "laplace", "epsilon": 1}, {"mechanism": "gaussian", "mu": 0.5}],
}


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("percent", [False, True])
@pytest.mark.parametrize("spend", SCALES)
def test_coverage_is_at_least_what_it_says_by_the_law_of_the_noise(spend, percent, level):
    spends = SCALES[spend]
    covered = exact_coverage((60, 40), level, spends, percent=percent)
    assert level <= covered < 1
    assert exact_coverage((60, 40), 0.7 * level, spends, percent=percent) < level


def test_rows_are_matched_by_their_keys():
    before, now = years(dpf.count("zone"))
    found = now.dp.change(before)
    assert now.sort_values("count").dp.change(before).equals(found)
    fewer = trips(90).dp.count("zone", keys=["C", "A"], **SPENDS["laplace"])
    assert list(now.dp.change(fewer).index) == ["A", "C"]
    other = trips(90).dp.count("zone", keys=["X"], **SPENDS["laplace"])
    with raises(QueryError, "no two rows"):
        now.dp.change(other)


def test_totals_and_keys_of_several_levels_are_matched():
    before, now = years(dpf.count())
    assert changes(now.dp.change(before)).index.equals(now.index)
    pair = [
        trips(rows).dp.aggregate(
            ["zone", "fare"], n=dpf.count(), keys={"fare": [0.0, 7.0]}, **SPENDS["laplace"]
        )
        for rows in (90, 120)
    ]
    assert changes(pair[0].dp.change(pair[1])).index.equals(pair[0].index)


def test_where_a_group_may_be_empty_everything_possible_is_in_the_interval():
    query = dpf.rate("fare > 5", "zone", keys={"zone": ["A", "none"]})
    before, now = years(query)
    assert before.loc["none"].isna().all() and now.loc["none"].isna().all()
    found = changes(now.dp.change(before))
    assert found["estimate"].isna().tolist() == [False, True]
    assert found.loc["none", "high"] - found.loc["none", "low"] > 0.9
    assert (found["low"] >= -1).all() and (found["high"] <= 1).all()
    relative = changes(now.dp.change(before, percent=True))
    assert (relative["low"] >= -100).all() and relative["estimate"].isna().tolist() == [False, True]
    assert relative.loc["A", "high"] < 100


def test_times_change_in_seconds():
    lengths = pd.DataFrame({"wait": pd.to_timedelta([60, 120] * 50, unit="s")})
    bounds = (pd.Timedelta(0), pd.Timedelta("300s"))
    made = [
        lengths.head(rows).dp.sum("wait", bounds=bounds, epsilon=1e6, privacy_unit=dpf.EACH_ROW)
        for rows in (50, 100)
    ]
    found = changes(made[1].dp.change(made[0])).iloc[0]
    assert found["estimate"] == pytest.approx(25 * 180, abs=1)
    assert changes(made[1].dp.change(made[0], percent=True)).iloc[0, 0] == pytest.approx(
        100, abs=0.1
    )
    moments = pd.DataFrame({"at": pd.Timestamp("2024-01-01") + lengths["wait"]})
    span = (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02"))
    made = [
        moments.head(rows).dp.mean("at", bounds=span, epsilon=1e6, privacy_unit=dpf.EACH_ROW)
        for rows in (49, 100)
    ]
    assert abs(changes(made[0].dp.change(made[1])).iloc[0, 0]) < 10
    with raises(QueryError, "points in time have no zero", parameter="percent"):
        changes(made[0].dp.change(made[1], percent=True))


def count(frame, **options):
    return frame.dp.count("zone", **SPENDS["laplace"], **options)


REFUSED = {
    "a copy": (lambda one: one, "noise was drawn once"),
    "a part of it": (lambda one: one.loc[["A"]], "noise was drawn once"),
    "another column": (lambda one: count(trips(9)).dp.rename({"count": "n"}), "the same columns"),
    "another level": (
        lambda one: count(trips(9)).dp.rename(levels={"zone": "area"}),
        "the same columns and levels",
    ),
    "another kind": (
        lambda one: (
            trips(9).dp.mean("fare", "zone", **SPENDS["laplace"]).dp.rename({"fare": "count"})
        ),
        "of the same kinds",
    ),
    "another unit": (
        lambda one: count(trips(9, privacy_unit="fare", max_rows=3)),
        "the same privacy unit",
    ),
    "rounded": (
        lambda one: count(trips(9)).dp.round(-1).dp.publish(),
        "needs all cells as released",
    ),
    "several": (
        lambda one: dpf.concat({1: count(trips(9)), 2: count(trips(9))}, name="year"),
        "put together before",
    ),
    "found": (
        lambda one: trips(9).dp.discover("zone", epsilon=5, discovery=1e-3, max_groups=1),
        "the same columns",
    ),
}


@pytest.mark.parametrize("other", REFUSED)
def test_what_measures_something_else_or_shares_noise_is_refused(other):
    now = count(trips(9))
    make, words = REFUSED[other]
    with raises(QueryError, words):
        changes(now.dp.change(make(now)))


def test_other_bounds_and_given_numbers_of_rows_are_refused():
    one = trips(9).dp.sum("fare", "zone", **SPENDS["laplace"])
    other = trips(9, bounds={"fare": (0, 20)}).dp.sum("fare", "zone", **SPENDS["laplace"])
    with raises(QueryError, "0 to 20 and 0 to 10", label="fare"):
        changes(one.dp.change(other))
    rows = pd.Series([9.0, 4.0, 3.0], ZONES)
    frame = trips(9).assign(high=True, low=False)
    frame.dp.declare(
        keys={"zone": ZONES}, bounds={"high": (0, 1), "low": (0, 1)}, privacy_unit=dpf.EACH_ROW
    )
    given, known = (
        [
            frame.dp.release(dpf.sum(["high", "low"], "zone", n=n), mu=1, mechanism="correlated")
            for _ in range(2)
        ]
        for n in ((rows, 4.0), rows)
    )
    with raises(QueryError, "given with an error"):
        changes(given[0].dp.change(given[1]))
    with raises(QueryError, "given with an error"):
        dpf.combine(
            dict(enumerate(given)), dict.fromkeys((0, 1), pd.DataFrame({"high": {"A": 1.0}}))
        )
    assert list(changes(known[0].dp.change(known[1]))) == COLUMNS

"""Suggested caps: what is charged, what is refused, and what comes out, whatever the data hold."""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from support.raising import raises
from support.searching import preview_of

import dpframe as dpf
from dpframe.errors import (
    AlreadyReleasedError,
    BudgetExceededError,
    CalibrationError,
    DeclarationError,
    QueryError,
    UnknownColumnError,
)
from dpframe.operations.tables import PlannedTables
from dpframe.privacy.law import Law

COLUMNS = ["units", "lost", "noise", "error", "unseen"]
DAYS = pd.Timedelta("1D")


def no_noise(law, scales, size, _):
    return [np.zeros(size, np.int64) for _ in scales]


def quiet():
    """Draw no noise, so that the numbers are those of the data."""
    return mock.patch.object(Law, "draw", no_noise)


def rides(units=300, **facts):
    """Unit n rides 1, 2, 3, 4 or 40 times, in one zone or two."""
    rows = [
        (unit, "AB"[ride % 2], ride, unit * DAYS / units)
        for unit in range(units)
        for ride in range((1, 2, 3, 4, 40)[unit % 5])
    ]
    frame = pd.DataFrame(rows, columns=["u", "zone", "fare", "time"])
    facts = {"privacy_unit": "u", "max_rows": 9} | facts
    frame.dp.declare(
        keys={"zone": ["A", "B", "C"]}, bounds={"fare": (0, 50), "time": (0 * DAYS, DAYS)}, **facts
    )
    return frame


BUDGET = {"budget": dpf.Budget(epsilon=1, delta=1e-6)}


def test_function_and_accessor_count_units_by_rows():
    frame = rides()
    with quiet():
        for found in (
            dpf.release(frame, dpf.suggest_caps("zone", largest=64), epsilon=1),
            frame.dp.suggest_caps("zone", epsilon=1, largest=64),
        ):
            assert found["units"].loc[[1, 2, 3, 4, 32, 48]].tolist() == [60, 60, 60, 60, 0, 60]
            assert found["units"].sum() == 300 and found["units"].dtype == np.int64
            assert list(found.columns) == COLUMNS and found.index.name == "max_rows"
            assert found.dp.best["max_rows"] in found.index


def test_only_rows_that_the_query_would_look_at_count():
    frame = rides()
    frame = pd.concat([frame, frame.assign(zone="Z"), frame.assign(u=None)], ignore_index=True)
    frame.dp.declare(keys={"zone": ["A", "B"]}, privacy_unit="u", max_rows=9)
    query = dpf.count("zone", where="fare < 3", keys=["A"])
    with quiet():
        found = frame.dp.suggest_caps(query=query, largest=4, epsilon=1)
    # of the rides 0, 1 and 2, those in A are 0 and 2
    assert found["units"].tolist() == [120, 180, 0, 0]
    assert found.dp.certificate.query.where == "fare < 3"


@pytest.mark.parametrize(
    ("cap", "expected"),
    [
        ("max_rows", {1: 60, 2: 60, 3: 60, 4: 60, 6: 0, 8: 60}),
        ("max_groups", {1: 60, 2: 240, 3: 0}),
        ("max_rows_per_group", {1: 120, 2: 120, 3: 0, 4: 0, 6: 0, 8: 60}),
    ],
)
def test_each_cap_has_its_histogram(cap, expected):
    with quiet():
        found = rides().dp.suggest_caps("zone", cap=cap, largest=8, epsilon=1)
    assert found["units"].to_dict() == expected and found.index.name == cap
    assert found.dp.best.keys() == {cap}
    assert rides().dp.count("zone", epsilon=1, **found.dp.best).shape == (3, 1)


def test_what_is_asked_later_may_be_sums_histograms_units_and_several():
    frame = rides()
    queries = {
        "sum": dpf.sum("fare", "zone"),
        "times": dpf.sum("time", "zone"),
        "histogram": dpf.histogram("fare", [0, 10, 50], "zone"),
        "units": dpf.units("zone"),
        "several": dpf.aggregate("zone", n=dpf.count(), s=dpf.sum("fare", where="fare > 1")),
    }
    for query in queries.values():
        found = frame.dp.suggest_caps(query=query, largest=4, epsilon=1)
        dpf.verify(found)
        assert np.isfinite(found.to_numpy()).all() and (found["noise"] > 0).all()
        frame.dp.release(replace(query, limits=limits(found.dp.best)), epsilon=1)


def limits(best):
    return dpf.count(**best).limits


def test_errors_are_in_the_units_of_the_only_output():
    spend = {"epsilon": 0.1, "largest": 8, "planned": {"epsilon": 0.9}}
    with quiet():
        count = rides().dp.suggest_caps("zone", **spend)
        total = rides().dp.suggest_caps(query=dpf.sum("fare", "zone"), **spend)
        both = dpf.aggregate("zone", n=dpf.count(), s=dpf.sum("fare"))
        several = rides().dp.suggest_caps(query=both, **spend)
    # a row is 25 on average, half of the upper bound, which is what noise must hide
    np.testing.assert_allclose(total["lost"], 25 * count["lost"])
    assert np.median(total["noise"] / count["noise"]) == pytest.approx(50, rel=0.01)
    np.testing.assert_allclose(several["lost"], count["lost"])
    assert (several["noise"] > count["noise"]).all()


def test_noise_is_what_the_later_release_says():
    frame = rides()
    for cap, noise in preview_of(frame, dpf.suggest_caps, "zone", largest=6, epsilon=0.1)[
        "noise"
    ].items():
        later = frame.dp.plan(dpf.count("zone", max_rows=cap), epsilon=0.9).table
        assert noise == pytest.approx(later["std_error"].iloc[0] * np.sqrt(0.5))


def test_a_preview_says_what_comes_out_but_for_the_units():
    frame = rides(**BUDGET)
    shown = preview_of(frame, dpf.suggest_caps, "zone", share=0.1, largest=16)
    assert frame.dp.budget.used == 0
    found = frame.dp.suggest_caps("zone", share=0.1, largest=16)
    pd.testing.assert_series_equal(shown["noise"], found["noise"])
    assert shown["std_error"].tolist() == found.dp.std_error["units"].tolist()
    pd.testing.assert_frame_equal(
        shown, rides(**BUDGET).dp.plan(dpf.suggest_caps("zone", largest=16), share=0.1).table
    )


def test_one_release_is_charged_and_certified():
    frame = rides(**BUDGET)
    found = frame.dp.suggest_caps("zone", epsilon=0.1, name="caps", note="before March")
    (entry,) = frame.dp.ledger.entries
    assert entry.what == "units by the max_rows that they need by zone"
    assert float(entry.loss.epsilon) == 0.1 and entry.columns == ("zone", "u")
    certificate = dpf.verify(found, ledger=frame.dp.ledger)
    assert [part.column for part in certificate.query.by] == ["max_rows"]
    assert certificate.query.by[0].source == "call"
    with pytest.raises(AlreadyReleasedError):
        frame.dp.suggest_caps("zone", epsilon=0.1, name="caps")
    with pytest.raises(BudgetExceededError):
        frame.dp.suggest_caps("zone", epsilon=1)
    assert len(frame.dp.ledger.entries) == 1


REFUSED = [
    (QueryError, "give one of the two", {"by": "zone", "query": dpf.count()}),
    (QueryError, "counts, sums or units", {"query": dpf.mean("fare", "zone")}),
    (QueryError, "counts, sums or units", {"query": dpf.rate("fare > 2", "zone")}),
    (QueryError, "counts, sums or units", {"query": dpf.std("fare", "zone")}),
    (QueryError, "query must be", {"query": "zone"}),
    (QueryError, "cap must be one of", {"cap": "max_columns"}),
    (QueryError, "cap must be one of", {"cap": ["max_rows"]}),
    (QueryError, "for units", {"query": dpf.units("zone"), "cap": "max_rows"}),
    (QueryError, "largest must be", {"largest": 0}),
    (QueryError, "largest must be", {"largest": 2**41}),
    (QueryError, "largest must be", {"largest": "many"}),
    (QueryError, "largest must be", {"largest": True}),
    (QueryError, "planned must be", {"planned": 0.9}),
    (QueryError, "planned must be", {"planned": {"eps": 0.9}}),
    (CalibrationError, "exactly one way", {"planned": {}}),
    (CalibrationError, "leaves no share", {"epsilon": None, "share": 1}),
    (CalibrationError, "cannot be released", {"planned": {"epsilon": 1e-18, "delta": 0}}),
    (UnknownColumnError, "zon", {"by": "zon"}),
    (DeclarationError, "no public keys", {"by": "fare"}),
]


@pytest.mark.parametrize(("error", "words", "options"), REFUSED)
def test_what_is_not_usable_is_refused_before_anything_is_charged(error, words, options):
    frame = rides(**BUDGET)
    options = {"epsilon": 0.1} | options
    for call in (frame.dp.suggest_caps, partial(preview_of, frame, dpf.suggest_caps)):
        with raises(error, words):
            call(**options)
    assert frame.dp.budget.used == 0


@pytest.mark.parametrize("unit", [None, dpf.EACH_ROW])
def test_without_a_unit_there_is_nothing_to_cap(unit):
    frame = pd.DataFrame({"zone": ["A"]})
    frame.dp.declare(keys={"zone": ["A"]}, privacy_unit=unit)
    with raises(DeclarationError, "nothing to cap", parameter="privacy_unit"):
        frame.dp.suggest_caps("zone", epsilon=1)


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_shape_and_dtypes_do_not_depend_on_the_data(rows):
    frame = pd.DataFrame({"u": [7] * rows, "zone": pd.Series(["A"] * rows, dtype=object)})
    frame.dp.declare(keys={"zone": ["A", "B"]}, privacy_unit="u", max_rows=1)
    found = frame.dp.suggest_caps("zone", epsilon=0.1, largest=300)
    other = rides().dp.suggest_caps("zone", epsilon=0.1, largest=300)
    pd.testing.assert_index_equal(found.index, other.index, exact=True)
    assert found.dtypes.tolist() == other.dtypes.tolist()


def test_groups_of_units_are_those_that_rows_allow():
    shown = preview_of(rides(max_rows=2), dpf.suggest_caps, query=dpf.units("zone"), epsilon=1)
    assert shown.index.tolist() == [1, 2]
    assert preview_of(
        rides(), dpf.suggest_caps, query=dpf.units("zone"), epsilon=1
    ).index.tolist() == [1, 2, 3]


def forty_rows(units=5000):
    """Each unit has 40 rows, in about 13 of 14 zones, of which it may show 2 in each of 3."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"u": np.repeat(np.arange(units), 40)})
    frame["zone"] = rng.integers(0, 14, len(frame))
    caps = {"max_rows": 10, "max_groups": 3, "max_rows_per_group": 2}
    frame.dp.declare(keys={"zone": range(14)}, privacy_unit="u", **caps)
    return frame


def test_rows_that_other_caps_drop_count():
    # noise of 20 beside 5,000 units in a bin: no probability above 1e-30 moves either
    frame = forty_rows()
    kept = frame.dp.count("zone", epsilon=1e6)["count"]
    dropped = (frame["zone"].value_counts() - kept).mean()
    found = frame.dp.suggest_caps("zone", epsilon=0.1)
    assert found.dp.best == {"max_rows": 6}  # which three groups of two rows may need
    assert found["dropped"].nunique() == 1
    assert found["dropped"].iloc[0] == pytest.approx(dropped, rel=0.1)
    assert found["error"].loc[6] == pytest.approx(found["dropped"].loc[6], rel=0.01)
    assert list(found.columns) == [*COLUMNS, "dropped"]
    caps = "max_groups=3, max_rows_per_group=2"
    assert f"the max_rows that they need beside {caps} by zone" in repr(found.dp.certificate)
    assert (found["units"].sum() - 5000) ** 2 < 600**2  # of those that need fewer, none is missing


@pytest.mark.parametrize("cap", ["max_rows", "max_groups", "max_rows_per_group"])
def test_no_histogram_of_dropped_rows_costs_more_than_was_given(cap):
    frame = forty_rows(50)
    frame.dp.declare(
        keys={"zone": range(14)}, privacy_unit="u", max_rows=10, max_groups=3,
        max_rows_per_group=2, budget=dpf.Budget(epsilon=1),
    )  # fmt: skip
    shown = preview_of(frame, dpf.suggest_caps, "zone", cap=cap, epsilon=0.25)
    found = frame.dp.suggest_caps("zone", cap=cap, epsilon=0.25)
    assert frame.dp.ledger.entries[0].loss.epsilon == Fraction(1, 4)
    assert shown["std_error"].iloc[0] == pytest.approx(np.sqrt(2) / 0.125, rel=0.01)
    assert found.index.equals(shown.index) and dpf.verify(found)


def test_the_histogram_is_charged_before_anything_is_counted():
    frame, seen = rides(**BUDGET), []
    exact = PlannedTables.measure

    def counted(*arguments):
        seen.append(len(frame.dp.ledger.entries))
        return exact(*arguments)

    with mock.patch.object(PlannedTables, "measure", counted):
        frame.dp.suggest_caps("zone", epsilon=0.1, largest=4)
    assert seen == [1]


def test_the_suggestion_is_near_the_best_of_all_caps():
    # 300 of 1,500 units have 40 rows, beside noise of 5 in a bin: only noise of some -250 there,
    # with a probability below 1e-20, lets a smaller cap look better
    frame = rides(1500)
    found = frame.dp.suggest_caps("zone", epsilon=0.2, largest=64, planned={"epsilon": 1.8})
    assert found.dp.best["max_rows"] >= 32

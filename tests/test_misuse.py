"""What is easily got wrong: each mistake gets an error that names the way out."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import (
    CalibrationError,
    CertificateError,
    DeclarationError,
    DPFrameError,
    QueryError,
    UnknownColumnError,
)
from dpframe.inference.intervals import covariance, std_error


@pytest.fixture
def trips():
    frame = pd.DataFrame({"driver": [1, 1, 2], "zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=10, delta=1e-6))
    frame.dp.declare(
        keys={"zone": ["A", "B"]},
        bounds={"fare": (0, 5)},
        privacy_unit="driver",
        max_rows=2,
        ledger=ledger,
    )
    return frame


@pytest.mark.parametrize(
    "query",
    [
        dpf.count(by="zonne"),
        dpf.sum("fares"),
        dpf.histogram("fares", bins=[0, 1]),
        dpf.aggregate(by="zone", n=dpf.count(where="fares > 1")),
    ],
)
def test_a_misspelled_column_is_named_with_its_neighbor(trips, query):
    for call in (trips.dp.release, trips.dp.plan):
        with raises(UnknownColumnError, "Did you mean"):
            call(query, epsilon=1)


def test_declaring_again_cannot_drop_the_privacy_unit(trips):
    with raises(DeclarationError, "repeat", parameter="privacy_unit"):
        trips.dp.declare(bounds={"fare": (0, 9)})
    trips.dp.declare(bounds={"fare": (0, 9)}, privacy_unit="driver", max_rows=1)
    assert trips.dp.budget.budget.epsilon == 10


@pytest.mark.parametrize("size", [10**9, 10**12])
def test_more_groups_than_fit_are_refused_before_they_are_read(trips, size):
    with raises(DeclarationError, "100,000,000"):
        trips.dp.count(by="zone", keys=range(size), epsilon=1)
    with raises(DeclarationError, "100,000,000"):
        trips.dp.histogram("fare", bins=range(size), epsilon=1)


def test_nothing_is_charged_for_a_name_that_is_no_text(trips):
    with raises(QueryError, "valid Unicode", parameter="name"):
        trips.dp.aggregate(epsilon=1, **{"\ud800": dpf.count()})
    assert not trips.dp.ledger.entries


def test_a_series_of_a_release_has_no_certificate(trips):
    released = trips.dp.count(by="zone", epsilon=1)
    for call in (dpf.verify, dpf.interval, std_error, covariance, dpf.plot):
        with raises(CertificateError, "whole released DataFrame"):
            call(released["count"])


@pytest.mark.parametrize("mechanism", [["gaussian"], {}, None, 1])
def test_mechanisms_are_named_by_text(trips, mechanism):
    with raises(CalibrationError, "mechanism", parameter="mechanism"):
        trips.dp.count(epsilon=1, mechanism=mechanism)


def test_bins_have_an_order(trips):
    with raises(QueryError, "order", parameter="bins", label="fare"):
        trips.dp.histogram("fare", bins={0, 1, 2}, epsilon=1)


def test_reserved_names_of_outputs_are_told(trips):
    with raises(QueryError, "cannot be names"):
        trips.dp.release(dpf.aggregate(), mu=1, epsilon=None)


def test_units_that_cannot_be_compared_are_left_out():
    frame = pd.DataFrame({"u": [1, 2, Decimal("sNaN")]})
    frame.dp.declare(privacy_unit="u", max_rows=1)
    assert abs(int(frame.dp.count(epsilon=1e6).iloc[0, 0]) - 2) <= 1


def test_dates_within_a_day_are_read():
    pyarrow = pytest.importorskip("pyarrow")
    days = pyarrow.array([0, 86_400_001, None, -1], pyarrow.date64())
    frame = pd.DataFrame({"day": pd.arrays.ArrowExtensionArray(days)})
    released = frame.dp.count(where="day >= '1970-01-01'", epsilon=1e6)
    assert abs(int(released.iloc[0, 0]) - 2) <= 1


ODD = [pd.NA, pd.Series(["fare"]), np.array(["a", "b"]), pd.DataFrame({"fare": [1]}), ["fare"], {}]
CALLS = {
    "mechanism": lambda frame, odd: frame.dp.count(epsilon=1, mechanism=odd),
    "mechanism of discover": lambda frame, odd: frame.dp.discover(
        "zone", max_groups=1, mechanism=odd, discovery=1e-7, epsilon=1
    ),
    "useful": lambda frame, odd: frame.dp.plan(dpf.count(), epsilon=1, useful=odd),
}
AFTER = {
    "numerator": lambda made, odd: made.dp.ratio(odd, "n"),
    "denominator": lambda made, odd: made.dp.ratio("n", odd),
    "percent": lambda made, odd: made.dp.percent(odd),
    "columns": lambda made, odd: made.dp.denoise(columns=odd),
    "column": lambda made, odd: made.dp.plot(column=odd),
    "kind": lambda made, odd: made.dp.plot(kind=odd),
    "sampling": lambda made, odd: made.dp.interval(sampling=odd),
}


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
@pytest.mark.parametrize("call", [*CALLS, *AFTER])
def test_what_has_no_truth_value_is_refused_as_any_other_value(trips, call, odd):
    # a comparison with pd.NA, a column or an array is neither true nor false
    with raises(DPFrameError, "must be") as caught:
        if call in CALLS:
            CALLS[call](trips, odd)
        else:
            made = trips.dp.aggregate("zone", n=dpf.count(), total=dpf.sum("fare"), epsilon=1)
            AFTER[call](made, odd)
    assert "\n" not in str(caught.value)
    assert len(trips.dp.ledger.entries) <= (call in AFTER)


TAKEN_FROM = {
    "weights": lambda made, odd: made.dp.combine(odd),
    "weights, of a dict": lambda made, odd: dpf.combine({(): made}, {(): odd}),
    "numerator": lambda made, odd: made.dp.ratio(odd, "n"),
    "percent": lambda made, odd: made.dp.percent(odd),
    "by": lambda made, odd: made.dp.percent("n", by=odd),
    "level": lambda made, odd: made.dp.interval(odd),
    "suppress": lambda made, odd: made.dp.suppress(below=3, by=odd),
    "below": lambda made, odd: made.dp.suppress(below=odd),
    "round": lambda made, odd: made.dp.round(odd),
    "rename": lambda made, odd: made.dp.rename(odd),
    "denoise": lambda made, odd: made.dp.denoise(odd),
    "across": lambda made, odd: made.dp.denoise(across=odd),
    "graph": lambda made, odd: made.dp.denoise(graph=odd),
    "toward": lambda made, odd: made.dp.denoise("james_stein", toward=odd),
    "order": lambda made, odd: made.dp.denoise("trend_filter", graph="ordered", order=odd),
    "total": lambda made, odd: made.dp.denoise("posterior", total=odd),
    "column": lambda made, odd: made.dp.plot(column=odd),
    "per": lambda made, odd: made.dp.plot(column="n", per=odd),
    "plot level": lambda made, odd: made.dp.plot(level=odd),
    "report level": lambda made, odd: dpf.report(made, level=odd),
    "report ledger": lambda made, odd: dpf.report(made, ledger=odd),
    "verify ledger": lambda made, odd: dpf.verify(made, ledger=odd),
    "quantile": lambda made, odd: made.dp.quantile(odd),
    "between": lambda made, odd: made.dp.between(odd, odd),
}


@pytest.mark.parametrize("call", TAKEN_FROM)
@pytest.mark.parametrize("part", ["frame", "column", "made of it"])
def test_another_release_is_no_argument(call, part):
    visits = pd.DataFrame({"zone": [*"ABA"], "day": [*"MMT"], "fare": [1.0, 2.0, 3.0]})
    keys = {"zone": ["A", "B"], "day": ["M", "T"]}
    kind = dpf.ranges("fare", 4, bounds=(0, 4)) if call in ("quantile", "between") else None
    query = kind or dpf.aggregate(by=["zone", "day"], keys=keys, n=dpf.count())
    made, other = (visits.dp.release(query, epsilon=1, privacy_unit=dpf.EACH_ROW) for _ in "ab")
    odd = {"frame": other, "column": other.iloc[:, 0], "made of it": -other}[part]
    with pytest.raises(DPFrameError, match=r"must|for a whole|takes") as caught:
        TAKEN_FROM[call](made, odd)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message.split()) <= 50 or "columns of this table" in message

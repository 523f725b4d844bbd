"""Bounded columns of times: counted in whole ticks, released as times, the same in every dtype."""

from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa
import pytest
from support.certifying import record_of
from support.raising import raises
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.columns.times import durations
from dpframe.declaration.facts import Column, Declaration
from dpframe.declaration.kinds import check_bounds
from dpframe.engines import engine_for
from dpframe.errors import DeclarationError, QueryError
from dpframe.plan.tables import table_of
from dpframe.queries.edges import microseconds, ticks_of

MAY, JUNE = pd.Timestamp("2021-05-01"), pd.Timestamp("2021-06-01")
HOUR, DAY = pd.Timedelta("1h"), pd.Timedelta("1D")
PRECISE = {"epsilon": 1e15}  # noise far below a tick


def days_of_may(zone=None):
    """Points in time, two beyond the bounds, one missing."""
    given = ["2021-04-01", "2021-05-02 01:00", "2021-05-11 12:30:00.25", None, "2022-01-01"]
    times = pd.Series(pd.to_datetime(given, format="ISO8601")).astype("M8[us]")
    return times if zone is None else times.dt.tz_localize(zone)


CLIPPED = [MAY, MAY + 25 * HOUR, MAY + 10 * DAY + 12.5 * HOUR + timedelta(seconds=0.25), JUNE]
FORMS = {
    "microseconds": lambda times: times,
    "nanoseconds": lambda times: times.astype("M8[ns]"),
    "objects": lambda times: times.astype(object),
    "datetimes": lambda times: pd.Series(list(times.dt.to_pydatetime()), dtype=object),
    "categories": lambda times: times.astype("category"),
    "Arrow": lambda times: times.astype(pd.ArrowDtype(pa.timestamp("us"))),
    "dictionaries": lambda times: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(times, from_pandas=True).dictionary_encode())
    ),
}


def frame_of(column, **declared):
    frame = pd.DataFrame({"t": column, "k": "A"})
    frame.dp.declare(keys={"k": ["A", "B"]}, **declared)
    return frame


@pytest.mark.filterwarnings("ignore:The behavior of DatetimeProperties:FutureWarning")
@pytest.mark.parametrize("form", FORMS)
def test_means_of_times_are_times_and_their_sums_are_counted_from_the_lower_bound(form):
    frame = frame_of(FORMS[form](days_of_may()), bounds={"t": (MAY, JUNE)})
    mean = frame.dp.mean("t", "k", **PRECISE)
    offsets = sum((time - MAY for time in CLIPPED), start=timedelta(0))
    assert mean["t"].dtype == "datetime64[us]"
    assert abs(mean.loc["A", "t"] - (MAY + offsets / 4)) <= timedelta(milliseconds=1)
    total = frame.dp.sum("t", "k", **PRECISE)
    assert total["t"].dtype == "timedelta64[ms]"  # 2**32 seconds would be too coarse, 31 days fit
    assert abs(total.loc["A", "t"] - offsets) <= timedelta(milliseconds=1)
    assert abs(total.loc["B", "t"]) <= timedelta(milliseconds=1)


def test_a_missing_time_is_replaced_by_a_time():
    frame = frame_of(days_of_may(), bounds={"t": (MAY, JUNE)}, missing={"t": date(2021, 5, 3)})
    offsets = sum((time - MAY for time in CLIPPED), start=timedelta(days=2))
    released = frame.dp.mean("t", **PRECISE)
    assert abs(released.loc[0, "t"] - (MAY + offsets / 5)) <= timedelta(milliseconds=1)


def test_times_with_a_zone_count_where_the_bounds_have_one_and_are_shown_in_that_of_the_lower():
    zoned = days_of_may("America/New_York")
    bounds = (MAY.tz_localize("Europe/Berlin"), JUNE.tz_localize("UTC"))
    frame = frame_of(zoned, bounds={"t": bounds})
    mean = frame.dp.mean("t", **PRECISE)
    assert str(mean["t"].dtype) == "datetime64[us, Europe/Berlin]"
    expected = zoned.dropna().clip(bounds[0], bounds[1].tz_convert("America/New_York")).mean()
    assert abs(mean.loc[0, "t"] - expected) <= timedelta(milliseconds=1)
    assert str(mean.dp.interval()["t_low"].dtype) == "datetime64[us, Europe/Berlin]"
    for column, ends in ((days_of_may(), bounds), (zoned, (MAY, JUNE))):
        with raises(QueryError, "no row can match", parameter="bounds"):
            frame_of(column, bounds={"t": ends}).dp.sum("t", **PRECISE)


LENGTHS = [HOUR / 2, None, -HOUR, 3 * HOUR, timedelta(microseconds=7)]
LENGTH_FORMS = {
    **{unit: f"m8[{unit}]" for unit in ("us", "ns")},
    "objects": object,
    "categories": "category",
    "Arrow": pd.ArrowDtype(pa.duration("ns")),
}


@pytest.mark.parametrize("form", LENGTH_FORMS)
def test_sums_and_means_of_durations_are_durations(form):
    lengths = pd.Series(LENGTHS, dtype="m8[ns]").astype(LENGTH_FORMS[form])
    frame = frame_of(lengths, bounds={"t": (timedelta(0), np.timedelta64(60, "m"))})
    total, mean = frame.dp.sum("t", **PRECISE), frame.dp.mean("t", **PRECISE)
    expected = HOUR / 2 + HOUR + timedelta(microseconds=7)
    assert total["t"].dtype == mean["t"].dtype == "timedelta64[us]"
    assert abs(total.loc[0, "t"] - expected) <= timedelta(microseconds=2)
    assert abs(mean.loc[0, "t"] - expected / 4) <= timedelta(microseconds=2)


def test_durations_of_any_unit_and_reach():
    values = [np.timedelta64(1, "m"), np.timedelta64(5, ("s", 2)), np.timedelta64(2, "ns")]
    values += [np.timedelta64(-1, "ns"), np.timedelta64(2**62, "s"), np.timedelta64(1, "M")]
    values += [np.timedelta64("NaT", "s"), pd.NaT, 5, "1h", timedelta.max, pd.Timedelta(-1, "D")]
    column = np.empty(len(values), object)
    column[:] = values
    lengths, valid = durations(pd.Series(column, dtype=object))
    assert valid.tolist() == [True] * 5 + [False] * 5 + [True] * 2
    assert lengths[:4].tolist() == [60_000_000, 10_000_000, 0, -1]
    assert lengths[4] == 2**62 // 10**6 * 10**6
    assert lengths[11] == -86_400_000_000


@pytest.mark.parametrize(
    ("lower", "upper", "tick"),
    [
        (MAY, MAY + timedelta(microseconds=2**32), 1),
        (MAY, MAY + timedelta(microseconds=2**32 + 1), 1_000),
        (MAY, MAY + timedelta(milliseconds=2**32 + 1), 1_000_000),
        (-HOUR, HOUR, 1),
        (pd.Timestamp(1, 1, 1), pd.Timestamp(9999, 12, 31), 1_000_000),
    ],
)
def test_ticks_are_the_finest_of_which_few_enough_lie_between_the_bounds(lower, upper, tick):
    ticks = ticks_of(lower, upper)
    origin = microseconds(lower) if isinstance(lower, pd.Timestamp) else 0
    assert (ticks.tick, ticks.origin) == (tick, origin)


def totals(column, bounds):
    """Exact sum of the grid integers of a column, and the grid."""
    declaration = Declaration({"t": Column(bounds=check_bounds("t", bounds))})
    table = table_of(dpf.sum("t"), declaration)
    grid = table.outputs[0].grid
    frame = pd.DataFrame({"t": column})
    return int(engine_for(frame).totals(frame, [table.task([(1, "value")])], SYSTEM)[0][0, 0]), grid


def test_a_time_is_rounded_to_a_tick_and_clipped_exactly():
    bounds = (MAY, MAY + 100 * DAY)  # seconds
    column = pd.Series([MAY + timedelta(seconds=n + 0.5) for n in range(4)])
    assert totals(column, bounds)[0] == 0 + 2 + 2 + 4
    assert totals(pd.Series([pd.Timestamp.min, pd.Timestamp.max]), bounds)[0] == 100 * 86_400
    far = (pd.Timestamp(1, 1, 1), pd.Timestamp(9999, 12, 31))
    found, grid = totals(pd.Series([MAY]), far)
    seconds = Fraction(microseconds(MAY) - microseconds(far[0]), 10**6)
    assert (grid.exponent, found) == (7, round(seconds / 128))


def test_durations_may_be_longer_than_nanoseconds_reach():
    found, grid = totals(pd.Series([timedelta(days=1)]), (timedelta(0), timedelta(days=400_000)))
    assert grid.exponent == 4  # ticks of 16 seconds
    assert (found * 16, grid.upper * 16) == (86_400, 400_000 * 86_400)


@pytest.mark.full
def test_intervals_hold_what_was_measured_as_often_as_they_say():
    frame = frame_of(days_of_may(), bounds={"t": (MAY, JUNE)})
    exact = sum((time - MAY for time in CLIPPED), start=timedelta(0))
    held, widest = 0, timedelta(0)
    for _ in range(300):
        released = frame.dp.sum("t", epsilon=1, delta=1e-6, mechanism="gaussian")
        bars = released.dp.interval(0.8).iloc[0]
        held += bars["t_low"] <= exact <= bars["t_high"]
        widest = max(widest, bars["t_high"] - bars["t_low"])  # that of one that is not cut at 0
    # binomial(300, 0.8): outside of 206 to 268 with probability below 1e-5
    assert 206 <= held <= 268
    error = released.dp.std_error.loc[0, "t"]
    assert error == pd.Timedelta(seconds=released.dp.certificate.columns[0].std_error).round("us")
    assert widest / 2 / error == pytest.approx(1.2816, rel=1e-3)


def test_certificates_of_times_are_json_and_survive_files(tmp_path):
    zone = "Europe/Berlin"
    bounds = {"t": (MAY.tz_localize(zone), JUNE.tz_localize(zone)), "w": (timedelta(0), HOUR)}
    frame = pd.DataFrame({"t": days_of_may(zone), "w": HOUR / 3, "k": "A"})
    frame.dp.declare(bounds=bounds, keys={"k": ["A", "B"]})
    released = frame.dp.mean(["t", "w"], "k", epsilon=1)
    about = record_of(released)["releases"][0]["columns"]
    assert about[0]["columns"][0]["bounds"]["written"] == [
        "2021-05-01 00:00:00+02:00",
        "2021-06-01 00:00:00+02:00",
    ]
    assert about[0]["columns"][0]["bounds"]["zone"] == zone
    assert about[0]["columns"][0]["bounds"]["bounds"] == [microseconds(end) for end in bounds["t"]]
    assert about[1]["columns"][0]["bounds"]["origin"] == 0
    released.to_parquet(tmp_path / "means.parquet")
    dpf.verify(pd.read_parquet(tmp_path / "means.parquet"))


def test_combinations_are_in_seconds():
    zones = pd.Series(["A", "B"])
    frame = pd.DataFrame({"t": [MAY + DAY, MAY + 3 * DAY], "k": zones})
    frame.dp.declare(bounds={"t": (MAY, JUNE)}, keys={"k": ["A", "B"]})
    means = frame.dp.mean("t", "k", **PRECISE)
    difference = means.dp.combine({"B": 1, "A": -1})
    assert difference.loc[0, "estimate"] == pytest.approx(2 * 86_400, abs=0.01)
    assert means.dp.combine({"B": 1}).loc[0, "estimate"] == pytest.approx(3 * 86_400, abs=0.01)
    sums = frame.dp.sum("t", **PRECISE)
    assert sums.dp.combine({0: 1}).loc[0, "estimate"] == pytest.approx(4 * 86_400, abs=0.01)


def test_edges_of_times_may_lie_in_all_years_and_zones():
    far = [pd.Timestamp(1, 1, 1), MAY, pd.Timestamp(9999, 12, 31)]
    assert dpf.histogram("t", far).bins.edges.left.dtype == "datetime64[us]"
    counts = frame_of(days_of_may()).dp.histogram("t", far, **PRECISE)
    assert counts["count"].tolist() == [1, 3]
    edges = [MAY.tz_localize("Asia/Tokyo"), MAY.tz_localize("UTC"), JUNE.tz_localize("UTC")]
    assert str(dpf.histogram("t", edges).bins.edges.left.dtype) == "datetime64[us, Asia/Tokyo]"


def test_a_schema_of_times_declares_bounds():
    checks = [pandera.Check.ge(MAY), pandera.Check.in_range(MAY - DAY, JUNE)]
    schema = pandera.DataFrameSchema({"t": pandera.Column("datetime64[ns]", checks)})
    frame = pd.DataFrame({"t": days_of_may()})
    frame.dp.declare(schema)
    assert frame.dp.mean("t", epsilon=1).dp.certificate.columns[0].declared == (
        "2021-05-01 00:00:00",
        "2021-06-01 00:00:00",
    )


@pytest.mark.parametrize(
    "bounds",
    [
        (MAY, 5),
        (MAY, HOUR),
        (MAY, JUNE.tz_localize("UTC")),
        (JUNE, MAY),
        (MAY, pd.NaT),
        (MAY, "2022-01-01"),
        (MAY, JUNE, JUNE),
        (MAY, np.datetime64(10**6, "Y")),
        (HOUR, np.timedelta64(2**62, "s")),
    ],
)
def test_bounds_of_times_are_two_of_one_kind(bounds):
    with raises(DeclarationError, "bounds of 't'"):
        frame_of(days_of_may(), bounds={"t": bounds})


@pytest.mark.parametrize(
    ("bounds", "missing"),
    [((MAY, JUNE), 0), ((MAY, JUNE), HOUR), ((0, 1), MAY), ((MAY, JUNE), MAY.tz_localize("UTC"))],
)
def test_a_replacement_is_of_the_kind_of_the_bounds(bounds, missing):
    frame = frame_of(days_of_may(), bounds={"t": bounds}, missing={"t": missing})
    with raises(DeclarationError, "bounds"):
        frame.dp.sum("t", epsilon=1)


@pytest.mark.parametrize(
    "bins",
    [
        [MAY],
        [MAY, MAY],
        [MAY, 5],
        [MAY, JUNE.tz_localize("UTC")],
        [MAY, HOUR],
        [MAY, pd.NaT],
        [MAY, MAY + pd.Timedelta(1, "ns")],
        [MAY, np.datetime64(10**6, "Y")],
        [np.datetime64(-(10**6), "Y"), MAY],
    ],
)
def test_bins_of_times_increase_and_are_of_one_kind(bins):
    with raises(QueryError, "bins of 't'", parameter="bins", label="t"):
        dpf.histogram("t", bins)


def test_sums_never_leave_the_range_of_their_unit():
    frame = frame_of(pd.Series([JUNE] * 3), bounds={"t": (pd.Timestamp(1, 1, 1), JUNE)})
    for query in (dpf.sum("t"), dpf.mean("t")):
        released = frame.dp.release(query, epsilon=1e-6)
        bars = released.dp.interval(0.999)
        assert not bars.isna().any(axis=None)
        assert released.dp.std_error.loc[0, "t"] >= timedelta(0)

"""Intervals and percentages in the table of a release, which keeps its certificate."""

import json

import numpy as np
import pandas as pd
import pytest
from support.publishing import KINDS, released

import dpframe as dpf
from dpframe.errors import CertificateError, QueryError

LEVEL = 0.9
PERCENT = ["flights_percent", "flights_percent_low", "flights_percent_high"]
ENDS = ["flights_low", "flights_high"]


def whole(frame):
    return frame.dp.interval(LEVEL, join=True).dp.percent("flights", LEVEL)


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_are_those_of_the_release(kind):
    frame = released(kind)
    for simultaneous in (False, True):
        table = frame.dp.interval(LEVEL, simultaneous=simultaneous, join=True)
        bars = frame.dp.interval(LEVEL, simultaneous=simultaneous)
        pd.testing.assert_frame_equal(table, frame.join(bars))
        assert dpf.verify(table).columns == frame.dp.certificate.columns
    assert table.equals(dpf.interval(frame, LEVEL, simultaneous=True, join=True))
    assert table.dp.interval().equals(frame.dp.interval())
    assert table.dp.std_error.equals(frame.dp.std_error)
    assert list(frame.columns) == list(released(kind).columns)  # it is left as it was


def test_percentages_are_those_of_the_release():
    frame = released("several")
    for column in ("flights", "total"):
        table = frame.dp.percent(column, LEVEL)
        assert list(table.columns[-3:]) == [
            f"{column}_percent{end}" for end in ("", "_low", "_high")
        ]
        assert table.equals(frame.dp.percent(column, LEVEL))
        total = frame[column].sum()
        assert np.allclose(table[f"{column}_percent"], 100 * frame[column] / total)
    assert list(released("one key").dp.percent().columns)[1] == "count_percent"


def test_intervals_of_rates_can_be_about_more_rows():
    frame = released("rate")
    table = frame.dp.interval(sampling=True, join=True)
    bars = frame.dp.interval(sampling=True)
    assert table[list(bars.columns)].equals(bars)
    assert not bars.equals(frame.dp.interval())
    assert "sampled rows" in repr(table.dp.certificate)


def test_they_travel_with_their_rows_and_names():
    frame = released("several")
    table = whole(frame)
    wanted = table.sort_values("flights_percent", ascending=False).head(3)
    made = wanted.dp.rename({"flights": "n"}, levels={"zone": "borough"})
    assert (made.to_numpy() == wanted.to_numpy()).all() and len(made) == 3
    assert list(made.columns) == [name.replace("flights", "n") for name in table.columns]
    assert dpf.verify(made, against=frame) and dpf.verify(made, against=table)
    alone = table[[ENDS[0], "paid"]].dp.rename({ENDS[0]: "best"})
    assert dpf.verify(alone, against=frame) and list(alone.columns) == ["best", "paid"]


def test_round_takes_their_ends_outwards():
    table = whole(released("several"))
    rounded = table.dp.round({"flights": -2, "flights_percent": 0, "fare": 1})
    for label, unit in (("flights", 100), ("flights_percent", 1), ("fare", 0.1)):
        low, high = rounded[f"{label}_low"], rounded[f"{label}_high"]
        before = table[f"{label}_low"], table[f"{label}_high"]
        slack = 1e-9 * unit
        assert ((before[0] - unit - slack <= low) & (low <= before[0])).all()
        assert ((before[1] <= high) & (high <= before[1] + unit + slack)).all()
        assert ((low <= rounded[label]) & (rounded[label] <= high)).all()
        assert np.allclose(rounded[[label, f"{label}_low"]] / unit % 1 % 1, 0) or unit == 0.1
    assert rounded["total_low"].equals(table["total_low"])
    tenths = table.dp.round(1)
    assert str(tenths["flights_low"].dtype) == "int64" and tenths[ENDS].equals(table[ENDS])
    for label in (ENDS[0], PERCENT[2]):
        with pytest.raises(QueryError, match="rounded to the outside with"):
            table.dp.round({label: 0})


def test_the_order_of_calls_does_not_matter():
    frame = released("several")
    rounded = frame.dp.round(-1)
    ends = rounded.dp.interval()
    assert ends[ENDS].equals(frame.dp.interval(join=True).dp.round(-1)[ENDS])
    shares = frame.dp.percent("flights")
    assert rounded.head(2).dp.percent("flights")[PERCENT].equals(shares.head(2)[PERCENT])
    ordered = frame.sort_values("paid").dp.percent("flights")
    assert ordered.equals(shares.loc[frame["paid"].sort_values().index])


def test_what_is_suppressed_is_missing_in_them():
    frame = released("several")
    hidden = (frame["flights"] < 1_000).to_numpy()
    assert 0 < hidden.sum() < len(frame)
    by = whole(frame).dp.suppress(below=1_000, by="flights")
    assert (by.isna().to_numpy() == hidden[:, None]).all()
    again = by.dp.round(-1)
    assert (again.isna().to_numpy() == hidden[:, None]).all()
    assert str(again["flights_low"].dtype) == "Int64"
    own = whole(released("correlated").dp.rename({"n": "flights"})).dp.suppress(
        relative_error=0.004
    )
    missing = own.isna()
    assert missing.any(axis=None)
    for label in missing.columns:
        (source,) = [name for name in ("fare", "day", "flights") if label.startswith(name)]
        assert missing[label].equals(missing[source])
    share = whole(frame).dp.suppress(below=20, by="flights_percent")
    assert (share.isna().to_numpy() == (whole(frame)[PERCENT[0]] < 20).to_numpy()[:, None]).all()
    with pytest.raises(QueryError, match="was computed, and has no standard error"):
        whole(frame).dp.suppress(relative_error=0.1, by="flights_percent")


def test_labels_that_begin_alike_belong_to_one_column():
    zones = ["A", "B"]
    query = dpf.aggregate("zone", keys=zones, n=dpf.count(), n_percent=dpf.count(where="day > 0"))
    trips = pd.DataFrame({"zone": zones * 50, "day": range(100)})
    frame = dpf.release(trips, query, epsilon=10, privacy_unit=dpf.EACH_ROW)
    with pytest.raises(QueryError, match="'n_percent', which is the name of a column"):
        frame.dp.percent("n")
    named = frame.dp.interval(join=True).dp.rename({"n": "rows"})
    assert list(named.columns)[2:] == ["rows_low", "rows_high", "n_percent_low", "n_percent_high"]


def test_what_is_computed_again_takes_its_place():
    table = whole(released("several"))
    assert whole(table).equals(table)
    other = table.dp.interval(0.5, join=True)
    assert sorted(other.columns) == sorted(table.columns)
    assert (other[ENDS[0]] > table[ENDS[0]]).all()


def test_other_calls_take_the_released_columns():
    frame = released("several")
    table = whole(frame)
    assert table.dp.percent("flights")[PERCENT].equals(frame.dp.percent("flights")[PERCENT])
    share = "paid_per_flights"
    ratios = (one.dp.ratio("paid", "flights")[share] for one in (table, frame))
    assert next(ratios).equals(next(ratios))
    weights = pd.DataFrame({"flights": {"A": 1, "B": -1}})
    assert table.dp.combine(weights).equals(frame.dp.combine(weights))
    assert table.dp.covariance.equals(frame.dp.covariance)
    dpf.schema(table).validate(table)
    later = whole(released("several")).head(1)
    assert dpf.concat({1: table, 2: later}, name="part").dp.interval().shape == (5, 8)
    assert table.dp.denoise()["flights_denoised"].equals(frame.dp.denoise()["flights_denoised"])


def test_wide_tables_come_back_in_rows():
    frame = released("two keys")
    wide = frame.unstack().head(2)
    table = wide.dp.interval(join=True, chosen="keys")
    assert table.equals(frame.dp.interval(join=True).loc[["A", "B"]])
    assert dpf.verify(frame.dp.interval(join=True).unstack(), against=frame)


def test_arguments_are_checked():
    frame = released("two keys")
    for wrong in (0, 1, "wide", None):
        with pytest.raises(QueryError, match="level"):
            frame.dp.interval(wrong, join=True)
    with pytest.raises(QueryError, match="simultaneous must be"):
        frame.dp.interval(simultaneous=1, join=True)


@pytest.mark.parametrize("kind", ["several", "denoised"])
def test_files_keep_all_of_it(kind, tmp_path):
    frame = released(kind)
    column = frame.columns[0]
    table = frame.dp.interval(join=True).dp.percent(column).dp.round(1)
    table.dp.write_csv(tmp_path / "table.csv")
    table.dp.write_parquet(tmp_path / "table.parquet")
    for back in (dpf.read_csv(tmp_path / "table.csv"), pd.read_parquet(tmp_path / "table.parquet")):
        pd.testing.assert_frame_equal(back, table)
        assert dpf.verify(back, against=frame).table.published.units[f'"{column}_percent_low"'] > 0


def test_numbers_that_were_changed_are_found():
    table = whole(released("several"))
    table.iloc[0, -1] += 1
    with pytest.raises(CertificateError, match="neither the released one nor a rounding"):
        dpf.verify(table)


def test_whoever_joins_them_is_shown_the_call():
    frame = released("one key")
    joined = frame.join(frame.dp.interval())
    joined.attrs = frame.attrs
    with pytest.raises(CertificateError, match=r"no column '.*' was released"):
        dpf.verify(joined)


def test_their_steps_are_in_the_certificate():
    made = whole(released("several"))
    definitions = made.dp.certificate.table.definitions
    assert {(one.call, one.level) for one in definitions} == {
        ("interval", LEVEL),
        ("derive", LEVEL),
    }
    assert made.dp.certificate.table.definitions[-1].column == "flights"


CALLS = {
    "interval": (lambda f: f.dp.interval(), "interval"),
    "std_error": (lambda f: f.dp.std_error, "beside it"),
    "covariance": (lambda f: f.dp.covariance, "beside it"),
    "combine": (lambda f: f.dp.combine(pd.DataFrame({"flights": {"A": 1, "B": -1}})), "beside it"),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_was_computed_says_so_where_a_release_is_wanted(name, tmp_path):
    make, way = CALLS[name]
    frame = released("several")
    made, found = make(frame), frame.dp.certificate.release_id
    said = rf"computed by \.dp\.{name} from release {found}.*{way}"
    for call in (
        lambda: dpf.verify(made),
        lambda: made.dp.certificate,
        lambda: made.dp.round(1),
        lambda: made.dp.write_csv(tmp_path / "made.csv"),
        lambda: dpf.report(made),
    ):
        with pytest.raises(CertificateError, match=said):
            call()
    assert not list(tmp_path.iterdir())
    assert "dpframe" not in made.attrs and dpf.verify(frame).state == "released"
    assert json.loads(json.dumps(made.attrs)) == made.attrs


def test_of_several_releases_the_first_are_named():
    years = {year: released("one key") for year in range(5)}
    bars = dpf.concat(years, name="year").dp.interval()
    first = ", ".join(years[year].dp.certificate.release_id for year in range(3))
    with pytest.raises(CertificateError, match=f"from releases {first}, "):
        dpf.verify(bars)


def test_a_note_keeps_nobody_from_private_queries():
    trips = pd.DataFrame({"zone": ["A", "B"]})
    trips.attrs = released("one key").dp.interval().attrs
    made = trips.dp.count("zone", keys=["A"], epsilon=1, privacy_unit=dpf.EACH_ROW)
    assert dpf.verify(made).state == "released" and set(made.attrs) == {"dpframe"}

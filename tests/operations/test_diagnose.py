"""Diagnoses are private: marked, refused wherever a release is wanted, charged nowhere."""

import pickle
from io import StringIO
from unittest import mock
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.engines import base
from dpframe.errors import CertificateError, DeclarationError, DPFrameError, QueryError
from dpframe.operations import lines as operation_hints
from dpframe.privacy.law import Law

HEADING = "Not for publication"
BY_ZONE = dpf.count(by="zone")


@pytest.fixture
def trips():
    rows = np.arange(907)
    frame = pd.DataFrame(
        {
            "zone": np.array(["A", "A", "B", "Z"])[rows % 4],
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rows % 9, "D"),
            "rider": rows % 50,
            "fare": rows % 7 * 1.5,
            "note": pd.Series(np.array(["x", "y"])[rows % 2], dtype=object),
        }
    )
    frame.dp.declare(
        keys={"zone": ["A", "B", "C"]},
        bounds={"fare": (1, 6)},
        privacy_unit="rider",
        max_rows_per_group=2,
        budget=dpf.Budget(epsilon=1, delta=1e-6),
    )
    return frame


def hints(found):
    return [hint for hint in found["hint"] if hint]


def test_nothing_is_charged_and_no_noise_is_drawn(trips):
    with mock.patch.object(Law, "draw", side_effect=AssertionError):
        trips.dp.diagnose()
        trips.dp.diagnose(BY_ZONE, groups=True)
        dpf.diagnose(trips, {"zones": BY_ZONE})
    assert trips.dp.budget.used == 0
    assert not trips.dp.ledger.entries


def test_function_and_method_say_the_same(trips):
    query = dpf.count(by="zone", where="fare > 0")
    pd.testing.assert_frame_equal(dpf.diagnose(trips, query), trips.dp.diagnose(query))


def test_a_dict_of_queries_gives_a_dict(trips):
    found = trips.dp.diagnose({"zones": BY_ZONE, "all": dpf.sum("fare")}, groups=True)
    assert list(found) == ["zones", "all"]
    assert [len(one) for one in found.values()] == [3, 1]


def test_without_a_query_everything_declared_is_shown(trips):
    found = trips.dp.diagnose()
    assert list(dict.fromkeys(found.index.get_level_values("part"))) == [
        "rows by zone",
        "values of fare",
    ]
    assert found.loc[("rows by zone", "zone is not a declared key"), "rows"] == 226
    low = (trips["fare"] < 1).sum()
    assert found.loc[("values of fare", "of these, fare below 1"), "rows"] == low
    assert found.loc[("values of fare", "of these, fare below 1"), "share"] == low / len(trips)


def test_a_frame_without_any_declaration_has_its_rows():
    found = dpf.diagnose(pd.DataFrame({"x": [1, 2, 3]}))
    assert found["rows"].to_dict() == {("rows", "in all"): 3, ("rows", "counted"): 3}


def made_of(found):
    """What pandas makes of a diagnosis."""
    return {
        "itself": found,
        "rows": found.iloc[:1],
        "columns": found[["rows"]],
        "sum": found.select_dtypes("number") + 1,
        "copy": found.copy(),
        "pickle": pickle.loads(pickle.dumps(found)),  # noqa: S301
        "reset": found.reset_index(),
    }


@pytest.mark.parametrize(
    "use",
    [
        dpf.verify,
        lambda frame: frame.dp.std_error,
        dpf.interval,
        lambda frame: frame.dp.covariance,
        dpf.denoise,
        lambda frame: frame.dp.certificate,
        dpf.plot,
        dpf.schema,
        lambda frame: dpf.write_csv(frame, "made.csv"),
        lambda frame: dpf.combine(frame, {0: 1}),
        lambda frame: dpf.ratio(frame, "rows", "left"),
        lambda frame: frame.dp.percent("rows"),
        lambda frame: frame.dp.certificate,
        lambda frame: frame.dp.plot_map({}),
    ],
)
def test_it_is_refused_where_a_release_is_wanted(trips, use, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for groups in (False, True):
        for frame in made_of(trips.dp.diagnose(BY_ZONE, groups=groups)).values():
            with raises(CertificateError, "not for publication"):
                use(frame)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "use",
    [
        lambda frame: frame.dp.declare(),
        lambda frame: frame.dp.count(epsilon=1),
        lambda frame: frame.dp.plan(dpf.count(), epsilon=1).table,
        lambda frame: frame.dp.diagnose(),
    ],
)
def test_it_is_refused_where_a_private_frame_is_wanted(trips, use):
    for frame in made_of(trips.dp.diagnose(BY_ZONE)).values():
        with raises(DeclarationError, "is a diagnosis"):
            use(frame)


def test_it_says_that_it_is_private_wherever_it_is_shown(trips):
    for frame in made_of(trips.dp.diagnose(BY_ZONE)).values():
        assert repr(frame).startswith(HEADING)
        assert str(frame).startswith(HEADING)
        assert frame._repr_html_().startswith(f"<p><b>{HEADING}")
        assert "Nothing was charged" in repr(frame)
        assert any(HEADING in str(value) for value in frame.attrs.values())


def test_hints_are_shown_whole():
    waits = pd.DataFrame({"wait": ["12 min", "3 min"]}, dtype=object)
    waits.dp.declare(privacy_unit=dpf.EACH_ROW, bounds={"wait": (0, 120)})
    shown = waits.dp.diagnose(dpf.mean("wait"))
    hint = "bounds are numbers, the column holds texts: no value can match"
    assert hint in repr(shown) and hint in shown._repr_html_()


def test_a_released_frame_with_the_mark_is_no_release(trips):
    released = trips.dp.count(by="zone", epsilon=0.1)
    released.attrs |= trips.dp.diagnose(BY_ZONE).attrs
    with raises(CertificateError, "not for publication"):
        dpf.verify(released)


@pytest.mark.parametrize(
    ("column", "keys", "said"),
    [
        ("rider", ["1", "2"], "keys are texts, the column holds numbers: no row can match"),
        ("note", [1, 2], "keys are numbers, the column holds texts: no row can match"),
        ("zone", ["a", "b"], "most often 'A' (454), 'B' (227), 'Z' (226)"),
        ("zone", ["A"], "most often 'B' (227), 'Z' (226)"),
        ("rider", [1.0, 2.0], "most often 0 (19), 3 (19), 4 (19)"),
    ],
)
def test_hints_say_why_keys_do_not_match(trips, column, keys, said):
    found = trips.dp.diagnose(dpf.count(by=column, keys=keys))
    step = ("rows", f"{column} is not a declared key")
    assert found.loc[step, "hint"].startswith(said)


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
def test_a_key_that_pandas_reads_as_missing_is_named(neighboring):
    text = 'ward\nNA\nA\nA\n""\n'
    keys = {"ward": ["A", "NA", "B", "null"]}
    read = {"keep_default_na": False, "na_values": [""]}
    hint = "pd.read_csv reads declared keys as missing, 'NA' and 'null': pass it"
    for options, said in (({}, hint), (read, hint.replace("'NA' and ", "")), (read, "")):
        wards = pd.read_csv(StringIO(text), **options)
        known = {"ward": ["A", "NA"]} if not said else keys
        wards.dp.declare(keys=known, privacy_unit=dpf.EACH_ROW, neighboring=neighboring)
        told = hints(wards.dp.diagnose(dpf.count("ward")))
        assert any(said and said in one for one in told) == bool(said)
        assert said or not any("pd.read_csv" in one for one in told)


def test_texts_that_pandas_reads_as_missing_are_those_of_its_reader():
    from pandas._libs.parsers import STR_NA_VALUES

    assert operation_hints._READ_AS_MISSING == STR_NA_VALUES - {""}


def test_hints_say_why_bins_hold_nothing(trips):
    bins = pd.date_range("2024-01-01", periods=3)
    found = trips.dp.diagnose(dpf.histogram("rider", bins))
    assert hints(found)[0] == "bins are times, the column holds numbers: no row can match"
    found = trips.dp.diagnose(dpf.histogram("fare", [100, 200]))
    assert hints(found)[0].startswith("most often ")


def test_units_are_left_out_of_groups_by_the_cap_that_binds(trips):
    for caps, said in (
        ({"max_rows": 1, "max_groups": 2}, "beyond max_rows=1"),
        ({"max_rows": 2, "max_groups": 1}, "beyond max_groups=1"),
        ({"max_rows": 1}, "beyond max_rows=1"),
    ):
        frame = pd.DataFrame(trips.to_dict("series"))
        frame.dp.declare(keys={"zone": ["A", "B"]}, privacy_unit="rider", **caps)
        found = frame.dp.diagnose(dpf.units("zone"))["rows"]["rows"]
        pairs = trips[trips["zone"] != "Z"].groupby("rider")["zone"].nunique()
        assert found[said] == (pairs - 1).sum() > 0
        assert found["counted"] == len(pairs)


def test_combinations_that_are_not_wanted_are_counted(trips):
    keys = pd.DataFrame({"zone": ["A"], "rider": [0]})
    found = trips.dp.diagnose(dpf.count(by=["zone", "rider"], keys=keys))
    said = found.loc["rows", "rows"]
    assert said["combination of keys is not wanted"] == 0  # keys of one column each leave them out
    keys = pd.DataFrame({"zone": ["A", "B"], "rider": [0, 1]})
    found = trips.dp.diagnose(dpf.count(by=["zone", "rider"], keys=keys))
    there = trips[trips["zone"].isin(["A", "B"]) & trips["rider"].isin([0, 1])]
    unwanted = (there["zone"] == "A") & (there["rider"] == 1)
    unwanted |= (there["zone"] == "B") & (there["rider"] == 0)
    assert found.loc["rows", "rows"]["combination of keys is not wanted"] == unwanted.sum() > 0


def test_rows_without_a_value_are_left_out_of_all_outputs_where_so_declared(trips):
    trips.loc[::10, "day"] = pd.NaT
    trips = pd.DataFrame(trips.to_dict("series"))
    bounds = {"day": (pd.Timestamp("2024-01-03"), pd.Timestamp("2024-01-05"))}
    trips.dp.declare(bounds=bounds, missing={"day": "drop"}, privacy_unit=dpf.EACH_ROW)
    both = trips.dp.diagnose(dpf.aggregate(n=dpf.count(), m=dpf.mean("day")))
    gone = int(trips["day"].isna().sum())
    assert gone > 0
    assert both.loc["rows", "rows"]["day is missing"] == gone
    assert both.loc["rows", "rows"]["counted"] == len(trips) - gone
    assert both.loc["values of day", "rows"]["day is missing"] == 0
    alone = trips.dp.diagnose(dpf.count())
    assert alone.loc["rows", "rows"]["counted"] == len(trips)


def test_times_and_replacements_are_looked_at(trips):
    first, last = pd.Timestamp("2024-01-03"), pd.Timestamp("2024-01-05")
    trips.loc[::10, "day"] = pd.NaT
    trips = pd.DataFrame(trips.to_dict("series"))
    trips.dp.declare(
        bounds={"day": (first, last)}, missing={"day": first}, privacy_unit=dpf.EACH_ROW
    )
    found = trips.dp.diagnose(dpf.mean("day")).loc["values of day"]
    assert found["rows"].to_dict() == {
        "rows dropped above": 0,
        "counted": len(trips),
        "of these, day is missing": int(trips["day"].isna().sum()),
        "of these, day is not a point in time without a time zone": 0,
        f"of these, day below {first}": int((trips["day"] < first).sum()),
        f"of these, day above {last}": int((trips["day"] > last).sum()),
    }
    assert found.loc["of these, day is missing", "hint"] == f"counted as {first}"
    assert (found["left"] == len(trips)).all()


def test_what_cannot_be_shown_is_refused(trips):
    with raises(QueryError, "groups must be True or False, got groups=1", parameter="groups"):
        trips.dp.diagnose(BY_ZONE, groups=1)
    with raises(QueryError, "needs a query", parameter="query"):
        trips.dp.diagnose(groups=True)
    with raises(QueryError, "no column 'zones'"):
        trips.dp.diagnose(dpf.count(by="zones"))
    with raises(DeclarationError, "no public keys", parameter="keys", label="rider"):
        trips.dp.diagnose(dpf.count(by="rider"))
    with pytest.raises(DeclarationError, match="derived"):
        trips.head().dp.diagnose()


class BrokenError(RuntimeError):
    pass


@pytest.mark.parametrize("error", [BrokenError("Ms. Smith"), MemoryError("Ms. Smith")])
def test_errors_show_no_private_value(trips, error):
    with mock.patch("dpframe.operations.diagnose.RowTrace", side_effect=error):
        with raises(DPFrameError, "diagnose failed") as caught:
            trips.dp.diagnose(BY_ZONE)
    assert "Smith" not in str(caught.value)
    assert caught.value.__context__ is None
    assert ("memory" in str(caught.value)) == isinstance(error, MemoryError)


def scanned(trips, tmp_path):
    pytest.importorskip("pyarrow")
    for part in range(3):
        trips.iloc[part::3].to_parquet(tmp_path / f"{part}.parquet", index=False)
    return dpf.scan_parquet(tmp_path, batch_rows=100)


def collected(trips, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    pytest.importorskip("dpframe.dask")
    trips = trips.assign(its_own=uuid4().hex)  # equal collections are one to Dask
    return dd.from_pandas(trips, npartitions=4)


@pytest.mark.parametrize("read", [scanned, collected])
def test_files_and_collections_are_diagnosed_as_frames(trips, read, tmp_path):
    plain = pd.DataFrame(trips.to_dict("series"))
    other = read(plain, tmp_path)
    for frame in (plain, other):
        frame.dp.declare(
            keys={"zone": ["A", "B", "C"]},
            bounds={"fare": (1, 6)},
            privacy_unit="rider",
            max_rows_per_group=2,
        )
    for query in (BY_ZONE, None, dpf.units("zone"), {"a": BY_ZONE}, dpf.sum("fare", where="fare")):
        found, expected = other.dp.diagnose(query), plain.dp.diagnose(query)
        if isinstance(query, dict):
            found, expected = found["a"], expected["a"]
        counted = ~found.index.isin(["clipped"], level=0) & ~(found["hint"] == "clipped")
        columns = ["rows", "share", "left", "units_left"]
        pd.testing.assert_frame_equal(found.loc[counted, columns], expected.loc[counted, columns])
    groups = other.dp.diagnose(BY_ZONE, groups=True)
    pd.testing.assert_frame_equal(groups, plain.dp.diagnose(BY_ZONE, groups=True))
    assert repr(groups).startswith(HEADING)


@pytest.mark.parametrize("read", [scanned, collected])
def test_rows_without_columns_are_counted_too(trips, read, tmp_path):
    found = dpf.diagnose(read(pd.DataFrame(trips.to_dict("series")), tmp_path))
    assert found["rows"].tolist() == [907, 907]


@pytest.mark.parametrize("read", [scanned, collected])
def test_too_many_rows_are_not_read(trips, read, tmp_path, monkeypatch):
    frame = read(pd.DataFrame(trips.to_dict("series")), tmp_path)
    monkeypatch.setattr(base, "MOST_GATHERED", 900)
    with raises(DPFrameError, "more than 900 rows"):
        dpf.diagnose(frame)
    monkeypatch.setattr(base, "MOST_GATHERED", 907)
    assert dpf.diagnose(frame)["rows"].iloc[0] == 907


def test_odd_cells_are_counted_where_a_release_leaves_them_out():
    class Silent:
        __hash__ = None

        def __repr__(self):
            raise RuntimeError

    cells = [1.0, "x", None, np.nan, Silent(), [1], 10**400, True, 1j, "\x1b[31m"]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object), "who": range(10)})
    frame.dp.declare(keys={"x": [1]}, bounds={"x": (0, 5)}, privacy_unit="who", max_rows=1)
    found = frame.dp.diagnose()
    assert found.loc["values of x", "rows"].to_dict() == {
        "rows dropped above": 0,
        "x is missing": 2,
        "x is not a number": 5,
        "counted": 3,
        "of these, x below 0": 0,
        "of these, x above 5": 1,
    }
    assert found.loc[("rows by x", "x is missing"), "rows"] == 2
    assert found.loc[("rows by x", "x is not a declared key"), "rows"] == 6
    assert "\x1b" not in repr(found)
    with mock.patch.object(Law, "draw", lambda law, s, n, *_: [np.zeros(n, np.int64) for _ in s]):
        assert frame.dp.count("x", epsilon=1)["count"].tolist() == [2]

"""What `.dp` shows of itself: public facts, what applies, and the right call for a wrong name."""

import copy
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.accessors.private import PrivateAccessor
from dpframe.accessors.showing import public_names
from dpframe.engines.pandas import PandasEngine
from dpframe.errors import CallError, DPFrameError, NoSuchNameError

PRIVATE = public_names(PrivateAccessor)
RELEASED = public_names(dpf.DPAccessor) - PRIVATE | {"quantile"}
OF_SOME = {"best", "between", "independence", "quantile", "ratio", "unstack"}
SECRET = "987654321"  # noqa: S105


def made():
    return pd.DataFrame(
        {"who": [1, 1, 2], "zone": [SECRET, "B", "A"], "fare": [1.0, 2.5, float(SECRET)]}
    )


@pytest.fixture
def frame():
    one = made()
    one.dp.declare(
        keys={"zone": ["A", "B", "C"]},
        bounds={"fare": (0, 30)},
        missing={"fare": 2.5},
        privacy_unit="who",
        max_rows=2,
        budget=dpf.Budget(epsilon=2, delta=1e-6),
    )
    return one


def offered(accessor):
    return {name for name in dir(accessor) if not name.startswith("_")}


def test_other_frames_offer_what_applies(frame):
    assert offered(frame.dp.count("zone", epsilon=0.5).dp) == RELEASED - OF_SOME
    assert offered(frame.dp.suggest_caps("zone", epsilon=0.5).dp) == RELEASED - OF_SOME | {"best"}
    assert offered(frame[frame["fare"] > 1].dp) == {"declare"}
    assert offered(frame.dp.diagnose().dp) == set()
    assert offered(dpf.DPAccessor([1, 2])) == set()
    assert {"count", "declare"} <= PRIVATE
    assert {"interval", "certificate"} <= RELEASED


def test_all_that_is_offered_is_there(frame):
    released = frame.dp.count("zone", epsilon=0.5)
    for one in (frame, released):
        assert all(getattr(one.dp, name, None) is not None for name in offered(one.dp))


def test_a_declared_frame_shows_facts_budget_and_what_is_possible(frame):
    before = repr(frame.dp)
    assert before.startswith(
        ".dp of a private frame, declared as public:\n  privacy unit  all rows"
    )
    assert "Remaining  100.0% of the budget: epsilon=2 of Laplace noise, or mu=" in before
    assert ".aggregate  .budget  .corr  .count" in before and ".interval" not in before
    frame.dp.count("zone", epsilon=0.5)
    assert "epsilon=1.5 of Laplace noise" in repr(frame.dp)


def test_frames_of_all_kinds_say_what_they_are(frame):
    released = frame.dp.count("zone", epsilon=0.5)
    assert repr(made().dp).startswith(".dp of a private frame, of which nothing is declared\n")
    assert repr(frame.copy().dp).endswith(
        "declare it, with ledger= of the first\n  possible: .declare"
    )
    shown = repr(released.dp)
    assert "a released frame" in shown and "count by zone" in shown and ".interval" in shown
    assert repr(frame.dp.diagnose().dp).endswith("exact numbers, not for publication")
    released.attrs["dpframe"] = {"format": "no certificate"}
    assert "its certificate cannot be read" in repr(released.dp)


def test_notebooks_show_the_same_as_tables(frame):
    shown = frame.dp._repr_html_()
    assert "Declared as public" in shown and "100.0% of the budget" in shown
    assert ".aggregate .budget" in shown and "<table" in shown
    released = frame.dp.count("zone", epsilon=0.5).dp._repr_html_()
    assert "count by zone" in released and ".interval" in released and "budget now" not in released
    assert "possible" not in frame.dp.diagnose().dp._repr_html_()
    hostile = pd.DataFrame({"<b>": [1]})
    hostile.dp.declare(bounds={"<b>": (0, 1)}, privacy_unit=dpf.EACH_ROW)
    assert "&lt;b&gt;" in hostile.dp._repr_html_() and "<b>:" not in hostile.dp._repr_html_()


def test_what_is_possible_is_in_lines_that_fit(frame):
    _, possible = repr(frame.dp).split("  possible: ")
    lines = possible.splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= 80
    assert possible.split() == [f".{name}" for name in sorted(offered(frame.dp))]


def test_nothing_that_is_shown_reads_rows_or_quotes_them(frame, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    kept = [frame, made(), frame.copy(), frame.dp.count("zone", epsilon=0.5)]
    assert kept[-1].dp.certificate  # a release is described when somebody first looks
    for name in ("totals", "gather", "labels"):
        monkeypatch.setattr(PandasEngine, name, never)
    monkeypatch.setattr("dpframe.context._system_bytes", never)
    for name in ("__getitem__", "itertuples", "to_numpy", "__repr__", "__len__"):
        monkeypatch.setattr(pd.DataFrame, name, never)
    for one in kept:
        assert SECRET not in repr(one.dp)
        assert SECRET not in one.dp._repr_html_()
        assert SECRET not in " ".join(dir(one.dp))
        with pytest.raises(AttributeError) as caught:
            one.dp.nunique  # noqa: B018
        assert SECRET not in str(caught.value)


def test_labels_cannot_write_to_the_terminal():
    frame = pd.DataFrame({"\x1b[31mred": [1], "\u202eright": [2]})
    frame.dp.declare(bounds={label: (0, 1) for label in frame}, privacy_unit=dpf.EACH_ROW)
    for shown in (repr(frame.dp.declaration), repr(frame.dp)):
        assert "\x1b" not in shown and "\u202e" not in shown and r"\x1b[31mred" in shown


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nunique", r"\.dp\.units\(by=.*\.dp\.discover\("),
        ("average", r"\.dp\.mean\("),
        ("value_counts", r"\.dp\.count\("),
        ("groupby", "by="),
        ("percentile", r"\.dp\.quantile\("),
        ("counts", r"Did you mean \.dp\.count\?"),
        ("intervall", r"Did you mean \.dp\.interval\?"),
        ("zzz", r"It has aggregate, budget, corr, count, cov, declar"),
        ("query", r"\.dp\.count\(where="),
        ("median", r"\.dp\.quantile\(column, 0\.5"),
        ("quantiles", r"\.dp\.quantile\(column"),
        ("to_csv", r"\.dp\.write_csv"),
    ],
)
def test_wrong_names_are_answered_with_the_right_call(frame, name, words):
    with pytest.raises(NoSuchNameError, match=rf"^\.dp has no '{name}'\. .*{words}") as caught:
        getattr(frame.dp, name)
    assert isinstance(caught.value, AttributeError)
    assert isinstance(caught.value, DPFrameError)
    assert caught.value.obj is None  # no frame in an error
    assert not hasattr(frame.dp, name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("query", r"pandas keeps the certificate: use .*released\.query"),
        ("loc", r"released\.loc\[keys\]"),
        ("drop", r"released\.loc\[keys\]"),
        ("sort_values", r"released\.sort_values\(by\)"),
        ("share", r"\.dp\.percent"),
        ("cert", r"\.dp\.certificate"),
        ("replace", r"\.dp\.rename\(columns, levels="),
        ("map", r"keys=\.\.\."),
        ("swaplevel", r"released\.swaplevel\(\)"),
        ("intervall", r"Did you mean \.dp\.interval\?"),
        ("quantiles", r"\.dp\.quantile\(\["),
        ("median", r"\.dp\.quantile\(\["),
        ("denoised", r"\.dp\.denoise\?"),
        ("average", "It has certificate, change, combine, "),
        ("counts", "It has certificate, change, combine, "),
    ],
)
def test_wrong_names_of_released_frames_are_answered_at_no_cost(frame, name, words):
    released = frame.dp.count("zone", epsilon=0.5)
    with pytest.raises(NoSuchNameError, match=rf"^\.dp has no '{name}'\. .*{words}") as caught:
        getattr(released.dp, name)
    assert not {*re.findall(r"(\w+)[,.(]", str(caught.value))} & (PRIVATE - RELEASED | {"best"})


def test_advice_names_what_there_is():
    from dpframe.accessors.showing import _FOR_PRIVATE, _FOR_RELEASED

    for advice, names in ((_FOR_PRIVATE, RELEASED | PRIVATE), (_FOR_RELEASED, RELEASED)):
        assert not names & {*advice}
        for hint in advice.values():
            assert {*re.findall(r"\.dp\.(\w+)", hint)} <= names


def test_names_that_programs_ask_for_are_simply_not_there(frame):
    for name in ("_repr_png_", "__array__", "_ipython_display_", "__len__", "__dataframe__"):
        assert not hasattr(frame.dp, name)
    assert isinstance(copy.copy(frame.dp), dpf.DPAccessor)
    assert copy.deepcopy(made().dp).declaration.ledger is None
    assert isinstance(pickle.loads(pickle.dumps(made().dp)), dpf.DPAccessor)  # noqa: S301


def test_a_property_that_fails_keeps_its_error(frame, monkeypatch):
    def failing(_):
        raise AttributeError("of its own")

    monkeypatch.setattr(dpf.DPAccessor, "covariance", property(failing))
    with pytest.raises(AttributeError, match=r"^of its own$"):
        frame.dp.covariance  # noqa: B018


def test_a_series_says_what_to_ask_of_its_frame(frame):
    released = frame.dp.count("zone", epsilon=0.5)
    with pytest.raises(NoSuchNameError, match=r'query its frame.*df\.dp\.mean\("fare"'):
        frame["fare"].dp  # noqa: B018
    with pytest.raises(NoSuchNameError, match="the whole released frame"):
        released["count"].dp  # noqa: B018


def test_a_series_is_as_it_was(frame):
    for series in (frame["fare"], frame.dp.count("zone", epsilon=0.5)["count"]):
        assert not hasattr(series, "dp")
        assert "dp" not in dir(series)
        pd.testing.assert_series_equal(pickle.loads(pickle.dumps(series)), series)  # noqa: S301
        pd.testing.assert_series_equal(copy.deepcopy(series), series)
        assert np.isclose((series + 1).sum(), series.sum() + len(series))


@pytest.mark.parametrize(
    ("by", "given"),
    [("zone", "'zone'"), (["zone", "who"], "['zone', 'who']"), ([SECRET, "B", "A"], "...")],
)
def test_groups_are_named_in_the_call(frame, by, given):
    grouped = frame.groupby(by).dp
    assert f"df.dp.count(by={given}, epsilon=...)" in repr(grouped) and SECRET not in repr(grouped)
    with raises(NoSuchNameError, f"df.dp.mean(by={given}"):
        grouped.mean("fare", epsilon=1)
    assert not hasattr(grouped, "__array__")
    with raises(CallError, ".dp.mean('fare', ...)"):
        frame.dp["fare"]


@pytest.mark.parametrize("kind", ["parquet", "dask"])
def test_frames_of_other_engines_show_the_same(kind, tmp_path):
    pytest.importorskip("pyarrow")
    made().to_parquet(tmp_path / "trips.parquet")
    if kind == "parquet":
        scan = dpf.scan_parquet(tmp_path / "trips.parquet")
    else:
        pytest.importorskip("dask.dataframe")
        import dask.dataframe as dd

        import dpframe.dask  # noqa: F401

        scan = dd.read_parquet(tmp_path)
    assert offered(scan.dp) == PRIVATE - {"budget", "ledger"}
    scan.dp.declare(keys={"zone": ["A"]}, privacy_unit="who", max_rows=1, budget=dpf.Budget(1))
    assert "all rows of one 'who'" in repr(scan.dp) and ".count" in repr(scan.dp)
    assert SECRET not in repr(scan.dp)
    with pytest.raises(NoSuchNameError, match=r"\.dp\.mean\("):
        scan.dp.average  # noqa: B018


def test_a_declared_frame_offers_what_is_done_with_private_frames(frame):
    assert offered(frame.dp) == PRIVATE
    frame = made()
    frame.dp.declare(privacy_unit=dpf.EACH_ROW)
    assert offered(frame.dp) == PRIVATE - {"budget", "ledger"}
    assert offered(made().dp) == PRIVATE - {"budget", "ledger"}


def test_a_declaration_reads_as_its_table(frame):
    lines = repr(frame.dp.declaration).splitlines()
    assert lines == [
        "Declared as public",
        "  privacy unit  all rows of one 'who', max_rows=2",
        "  neighbors     add_remove",
        "  budget        epsilon=2, delta=1e-06",
        "  column  bounds   keys  whole numbers  missing values  from",
        "  fare    0 to 30                       taken as 2.5    declared",
        "  zone             3                    left out        declared",
    ]
    assert len(repr(made().dp.declaration).splitlines()) == 4


def test_only_some_columns_are_shown():
    frame = pd.DataFrame([range(40)], columns=[f"c{i}" for i in range(40)])
    frame.dp.declare(bounds={f"c{i}": (0, 1) for i in range(40)}, privacy_unit=dpf.EACH_ROW)
    assert "and 30 more" in repr(frame.dp)
    assert "c39" in repr(frame.dp.declaration)

"""Every public call shows its keywords, and says of a misspelled one what was meant."""

import inspect
import pickle
import re
import traceback
from inspect import Parameter

import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CallError, DPFrameError, NoSuchNameError, QueryError
from dpframe.public import public_call
from dpframe.queries.aggregate import NOT_OUTPUTS

SPEND = {"epsilon", "delta", "share", "mechanism", "privacy_unit"}
RECORDED = {"name", "note"}
CAPS = {"max_rows", "max_groups", "max_rows_per_group"}
QUERIES = {"count", "rate", "sum", "mean", "var", "std", "histogram", "units", "aggregate"}
CATCH_ALLS = {"aggregate": "queries", "margins": "queries", "denoise": "options"}

FUNCTIONS = {
    name: getattr(dpf, name) for name in dir(dpf) if inspect.isfunction(getattr(dpf, name))
}
METHODS = {
    f".{name}": method
    for accessor in dpf.DPAccessor.__mro__
    for name, method in vars(accessor).items()
    if inspect.isfunction(method) and not name.startswith("_")
}
CALLS = {**FUNCTIONS, **METHODS}


def parameters(call):
    return inspect.signature(call).parameters


def required(call):
    """Return placeholders for the arguments that a call needs."""
    return [
        one.name
        for one in parameters(call).values()
        if one.default is Parameter.empty and one.kind is Parameter.POSITIONAL_OR_KEYWORD
    ]


def test_all_calls_are_looked_at():
    assert {*QUERIES, "release", "discover", "declare", "interval"} <= {*FUNCTIONS}
    assert {f".{name}" for name in (*QUERIES, "release", "denoise", "plot")} <= {*METHODS}


@pytest.mark.parametrize("name", CALLS)
def test_no_call_hides_its_keywords(name):
    hidden = [one.name for one in parameters(CALLS[name]).values() if one.kind is one.VAR_KEYWORD]
    called = name.removeprefix(".")
    assert hidden == ([] if called not in CATCH_ALLS else hidden[:1])
    assert all("Unpack" not in str(one.annotation) for one in parameters(CALLS[name]).values())


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_methods_of_queries_show_amounts_caps_and_what_is_recorded(name):
    shown = parameters(METHODS[f".{name}"])
    assert {*shown} >= SPEND | RECORDED | CAPS | {"denoise", "by", "where", "keys"}
    assert shown["mechanism"].default == "auto"
    assert shown["epsilon"].default is None
    assert {*parameters(FUNCTIONS[name])} >= CAPS


@pytest.mark.parametrize("name", ["release"])
def test_methods_show_the_keywords_of_their_functions_with_the_same_defaults(name):
    function, method = parameters(FUNCTIONS[name]), parameters(METHODS[f".{name}"])
    known = {one: function[one].default for one in function if one not in ("frame", "queries")}
    assert {one: method[one].default for one in method if one not in ("self", "query")} == known


@pytest.mark.parametrize("name", sorted({*CALLS} - {"aggregate", ".aggregate"}))
def test_a_misspelled_keyword_names_the_call_and_the_keyword_meant(name):
    call = CALLS[name]
    known = [p for p, one in parameters(call).items() if one.kind is one.KEYWORD_ONLY]
    catches = any(one.kind is one.VAR_KEYWORD for one in parameters(call).values())
    if not known or catches:
        return
    words = rf"^{call.__name__}\(\) has no keyword '{known[0]}x'; did you mean '{known[0]}'\?$"
    with pytest.raises(CallError, match=words) as caught:
        call(*required(call), **{f"{known[0]}x": 1})
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, DPFrameError)


@pytest.mark.parametrize("name", CALLS)
def test_a_keyword_like_no_other_is_answered_with_those_there_are(name):
    call = CALLS[name]
    if any(one.kind is one.VAR_KEYWORD for one in parameters(call).values()):
        return
    with pytest.raises(CallError, match=rf"^{call.__name__}\(\) has no keyword 'zzzz'\. It takes"):
        call(*required(call), zzzz=1)


@pytest.fixture
def frame():
    made = pd.DataFrame({"zone": list("ABA"), "fare": [1.0, 2.0, 3.0]})
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=1, delta=1e-6))
    made.dp.declare(
        keys={"zone": ["A", "B"]}, bounds={"fare": (0, 9)}, privacy_unit=dpf.EACH_ROW, ledger=ledger
    )
    return made


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda dp: dp.count(epsilom=0.5), "'epsilom'; did you mean 'epsilon'"),
        (lambda dp: dp.count("zone", eps=0.5), "'eps'; did you mean 'epsilon'"),
        (lambda dp: dp.mean("fare", groupby="zone", epsilon=1), "did you mean 'by'"),
        (lambda dp: dp.sum("fare", clip=(0, 1), epsilon=1), "did you mean 'bounds'"),
        (lambda dp: dp.units(filter="fare > 1", epsilon=1), "did you mean 'where'"),
        (lambda dp: dp.aggregate(n=dpf.count(), epsilom=1), "'epsilom'; did you mean 'epsilon'"),
        (lambda dp: dp.declare(budgets=1), "did you mean 'budget'"),
        (lambda dp: dp.count("zone", 0.5), "Give the amount by keyword: epsilon=0.5"),
        (lambda dp: dp.plan(dpf.count(), 0.5).table, "takes query alone by position"),
    ],
)
def test_nothing_is_charged_for_a_call_that_is_wrong(frame, ask, words):
    with pytest.raises(CallError, match=words):
        ask(frame.dp)
    assert frame.dp.ledger.entries == ()


def test_outputs_of_aggregate_may_be_called_like_a_keyword_with_a_letter_more(frame):
    query = dpf.aggregate("zone", keys_=dpf.count(), notes=dpf.sum("fare"))
    assert [output.name for output in query.outputs] == ["keys_", "notes"]
    with pytest.raises(QueryError, match=r"visits must be dpf\.count\(\)"):
        dpf.aggregate("zone", visits=3)
    assert "epsilon" in NOT_OUTPUTS


def test_options_of_denoising_are_told_from_its_keywords(frame):
    released = frame.dp.count("zone", epsilon=0.5)
    with raises(CallError, "'colums'; did you mean 'columns'"):
        released.dp.denoise("posterior", colums=["count"])
    with raises(QueryError, "is not an option of method='posterior'"):
        released.dp.denoise("posterior", radius=1)


def test_ledgers_answer_too(tmp_path):
    budget = dpf.Budget(epsilon=1)
    with raises(CallError, "has no keyword 'budgt'; did you mean 'budget'"):
        dpf.Ledger(budgt=budget)
    with raises(CallError, "create() has no keyword 'bugdet'; did you mean"):
        dpf.Ledger.create(tmp_path / "a.ledger", bugdet=budget)
    with raises(CallError, "Ledger() takes path alone by position: give budget="):
        dpf.Ledger(tmp_path / "a.ledger", budget)
    assert list(parameters(dpf.Ledger)) == ["path", "budget", "part"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_still_found_by_name(name):
    function = FUNCTIONS[name]
    assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301
    assert function.__doc__ and function.__module__.startswith("dpframe.")


def test_what_a_wrapped_function_takes_reaches_it():
    @public_call
    def add(a, b=2, *more, c=3):
        return a, b, more, c

    assert add(1) == (1, 2, (), 3)
    assert add(1, 5, 6, 7, c=0) == (1, 5, (6, 7), 0)
    with raises(CallError, "add() needs a: add(a)."):
        add()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda frame: frame.dp.mean(), "mean() needs columns: mean(columns)."),
        (
            lambda frame: frame.dp.ratio(level=0.9),
            "ratio() needs numerator and denominator: ratio(numerator, denominator).",
        ),
        (lambda frame: dpf.Ledger.create("x"), "create() needs budget: create(path, budget=...)."),
        (
            lambda frame: dpf.release(),
            "release() needs frame and queries: release(frame, queries).",
        ),
    ],
)
def test_what_is_needed_and_not_given_is_named(frame, ask, words):
    with pytest.raises(CallError, match=f"^{re.escape(words)}$"):
        ask(frame)


@pytest.mark.parametrize("name", CALLS)
def test_every_call_names_what_it_needs(name):
    needed = [
        one.name
        for one in parameters(CALLS[name]).values()
        if one.default is Parameter.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and one.name != "self"
    ]
    if needed:
        with pytest.raises(CallError, match=rf"\(\) needs {' and '.join(needed)}: "):
            CALLS[name](*[None] * name.startswith("."))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("read_parquet", r"Use pandas\.read_parquet; dpf\.read_csv reads"),
        ("percents", r"Did you mean \.dp\.percent of a frame\?"),
        ("median", r"\.dp\.quantile\(column, 0\.5, by"),
        ("quantiles", r"\.dp\.quantile\(column"),
        ("denoised", r"Did you mean dpf\.denoise\?"),
        ("schema_of", r"Did you mean dpf\.schema\?"),
        ("std_error", r"\.dp\.std_error"),
        ("covariance", r"\.dp\.covariance"),
        ("best", r"\.dp\.best"),
        ("zzzz", r"^dpframe has no 'zzzz'\.$"),
    ],
)
def test_wrong_names_of_the_package_are_answered(name, words):
    with pytest.raises(NoSuchNameError, match=words) as caught:
        getattr(dpf, name)
    assert isinstance(caught.value, AttributeError)
    assert not hasattr(dpf, "__wrapped__")


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_queries_take_no_frame(name):
    frame = pd.DataFrame({"YEAR": [7001]})
    describe = getattr(dpf, name)
    for call in (lambda: describe(frame), lambda: describe(frame, by="YEAR")):
        with pytest.raises(
            CallError, match=rf"use frame\.dp\.{name}\(.*dpf\.release\(frame"
        ) as said:
            call()
        assert "7001" not in str(said.value)


def test_what_is_given_twice_is_said():
    with raises(CallError, "count() has by twice, by position and by keyword"):
        dpf.count("zone", by="zone")


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"eps": 1}, r"Budget\(\) has no keyword 'eps'; did you mean 'epsilon'\?"),
        ({"epsilon": 1, "dleta": 0}, "did you mean 'delta'"),
        ({}, r"Budget\(\) needs epsilon"),
    ],
)
def test_budgets_say_what_was_meant(keywords, said):
    with pytest.raises(CallError, match=said):
        dpf.Budget(**keywords)
    assert [*parameters(dpf.Budget)][:2] == ["epsilon", "delta"]
    assert dpf.Budget(1, 1e-6) == dpf.Budget(epsilon=1, delta=1e-6)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda f, r: f.dp.count(epsilon=1, mechanism="laplac"), "laplace"),
        (lambda f, r: r.dp.plot(kind="lines"), "line"),
        (lambda f, r: r.dp.plot(column="Rows"), "rows"),
        (lambda f, r: dpf.plot(r, column="row"), "rows"),
    ],
)
def test_values_that_are_names_say_what_was_meant(call, meant):
    frame = pd.DataFrame({"zone": ["A", "B"]})
    frame.dp.declare(keys={"zone": ["A", "B"]}, privacy_unit=dpf.EACH_ROW)
    released = frame.dp.aggregate("zone", rows=dpf.count(), epsilon=1)
    with pytest.raises(DPFrameError, match=rf"Did you mean '{meant}'\?"):
        call(frame, released)


def test_percentages_of_a_table_are_drawn_from_what_they_are_of():
    frame = pd.DataFrame({"zone": ["A", "B"]})
    made = frame.dp.count("zone", keys=["A", "B"], epsilon=9, privacy_unit=dpf.EACH_ROW)
    table = made.dp.percent()
    with raises(QueryError, "drawn by column='count', percent=True"):
        table.dp.plot(column="count_percent")


@pytest.mark.parametrize(
    ("call", "inside"),
    [
        (lambda frame: frame.dp.count("zonne", epsilon=1), "engines/base.py"),
        (lambda frame: dpf.release(frame, dpf.count("zonne"), epsilon=1), "engines/base.py"),
        (lambda frame: frame.dp.count("zone", epsilon=-1), "privacy/amounts.py"),
        (lambda frame: dpf.Budget(epsilon=-1), "privacy/amounts.py"),
    ],
    ids=["method", "function", "amount", "class"],
)
def test_a_traceback_ends_at_the_call_and_the_rest_stays_as_text(call, inside):
    frame = pd.DataFrame({"zone": ["A", "B"]})
    frame.dp.declare(keys={"zone": ["A", "B"]})
    with pytest.raises(DPFrameError) as caught:
        call(frame)
    names = [summary.name for summary in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-2:] == ["<lambda>", "checked"]
    assert len(traceback.format_exception(caught.value)) <= 5  # three frames, above and below
    assert any(inside in place for place in caught.value.places)
    assert caught.value.__context__ is None


def test_the_cause_of_an_error_is_shown_in_a_line(tmp_path):
    path = tmp_path / "trips.ledger"
    path.write_bytes(b"SQLite format 3\0" + b"no database" * 100)
    with pytest.raises(DPFrameError) as caught:
        dpf.Ledger(path)
    cause = caught.value.__cause__
    assert cause is not None
    assert cause.__traceback__ is None


@pytest.mark.parametrize("read", [dpf.read_csv, dpf.scan_parquet])
def test_a_missing_file_has_no_more_frames_than_other_mistakes(read, tmp_path):
    with pytest.raises((FileNotFoundError, DPFrameError), match="no such file") as caught:
        read(tmp_path / "trips.parquet")
    names = [one.name for one in traceback.extract_tb(caught.value.__traceback__)]
    assert names[1:] == ["checked"]  # IPython shows each frame in seven lines
    assert caught.value.__cause__ is None


MISTAKES = {
    "keyword": lambda frame, made: frame.dp.count("zone", epsilom=1),
    "query": lambda frame, made: dpf.count(frame, by="zone", epsilon=1),
    "step": lambda frame, made: made.dp.round(1.5),
    "property": lambda frame, made: made.dp.best,
    "certificate": lambda frame, made: dpf.interval(made + 1000),
    "name": lambda frame, made: frame.dp.median("fare"),
    "item": lambda frame, made: frame.dp["fare"],
    "groups": lambda frame, made: frame.groupby("zone").dp.count(epsilon=1),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_tracebacks_of_all_kinds_of_calls_are_short(frame, name):
    made = frame.dp.count("zone", epsilon=0.1)
    with raises(DPFrameError) as caught:
        MISTAKES[name](frame, made)
    error = caught.value
    frames = traceback.extract_tb(error.__traceback__)
    assert [one.name for one in frames[-2:-1]] == ["<lambda>"] and len(frames) == 4
    assert error.__context__ is None and error.__cause__ is None
    assert error.places or frames[-1].name != "checked" or name == "keyword"

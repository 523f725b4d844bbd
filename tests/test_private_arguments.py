"""No public argument takes what is private, and no error shows it: some cases of the audit."""

import datetime
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from support import arguments
from support.arguments import NESTS, declared

import dpframe as dpf
from dpframe.errors import DeclarationError, quote
from dpframe.provenance import origin_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arguments")


@pytest.fixture(scope="module")
def things(folder):
    return {"marked": arguments.marked(folder), "unmarked": arguments.unmarked()}


@pytest.fixture(scope="module")
def calls(folder):
    return arguments.all_calls(folder)


def test_all_public_calls_are_walked(calls):
    (_, found) = calls["functions"]
    functions = {name for name in dir(dpf) if inspect.isfunction(getattr(dpf, name))}
    assert found.keys() == functions
    named = {name for _, one in calls.values() for name in one}
    methods = {name for name in dir(dpf.DPAccessor) if name[0] != "_"}
    assert (
        methods - named
        == {name for name in methods if isinstance(getattr(dpf.DPAccessor, name), property)} - named
    )


@pytest.mark.parametrize("kind", ["marked", "unmarked"])
@pytest.mark.parametrize("group", arguments.GROUPS)
def test_no_public_argument_takes_or_shows_what_is_private(calls, things, group, kind):
    frame, found = calls[group]
    every = {"marked": 59, "unmarked": 97}[kind]
    assert not arguments.walked(found, things[kind], frame, every=every)


def test_what_was_accepted_as_a_public_fact_is_refused(things):
    frame, marked = declared(arguments.cells()), things["marked"]
    numbers = frame["fare"]
    for call in (
        lambda: frame.dp.count("zone", keys=marked["diagnosis from Parquet"], epsilon=1),
        lambda: frame.dp.histogram("fare", bins=numbers, epsilon=1),
        lambda: frame.dp.margins(["day", "fare"], 1, bins={"fare": numbers}, epsilon=1),
        lambda: frame.dp.sum("fare", n=numbers.iloc[0:1].reset_index(drop=True), epsilon=1),
        lambda: frame.dp.sum("fare", n=(numbers, 1), epsilon=1),
        lambda: frame.dp.count("zone", keys=frame.index, epsilon=1),
        lambda: dpf.count("zone", keys={"zone": frame["zone"].drop_duplicates()}),
        lambda: dpf.Budget(epsilon=numbers),
        lambda: arguments.cells().dp.declare(bounds={"fare": (numbers.iloc[:1], 9)}),
        lambda: arguments.cells().dp.declare(keys={"zone": frame.loc[frame["day"] > 0, "zone"]}),
    ):
        with pytest.raises(DeclarationError, match="must be public, and was taken from a d"):
            call()
    assert not frame.dp.ledger.entries


def test_schemas_are_looked_into():
    pa = pytest.importorskip("pandera.pandas")
    frame = declared(arguments.cells())
    checks = pa.Check.isin(frame["zone"]), pa.Check.ge(frame["fare"])
    for check in checks:
        schema = pa.DataFrameSchema({"zone": pa.Column(None, check)})
        with pytest.raises(DeclarationError, match="the schema of 'zone' must be public"):
            arguments.cells().dp.declare(schema)
    own = {"dpframe": {"keys": frame["zone"]}}
    schema = pa.DataFrameSchema({"zone": pa.Column(None, metadata=own)})
    with pytest.raises(DeclarationError, match="the schema of 'zone' must be public"):
        arguments.cells().dp.declare(schema)


def test_what_is_public_is_taken_as_before():
    public = pd.Series(["A", "B"], name="zone")
    frame = declared(pd.DataFrame({"zone": ["A"] * 60, "day": 0, "fare": 1.0, "who": [*range(60)]}))
    found = frame.dp.discover("zone", max_groups=1, discovery=1e-6, epsilon=9)
    caps = frame.dp.suggest_caps("zone", largest=4, epsilon=1).dp.best
    for keys in (public, {"zone": public}, public.to_frame(), pd.Index(public), found.index):
        released = frame.dp.count("zone", keys=keys, epsilon=1, **caps)
        assert set(released.index) <= {"A", "B"}
    rows = pd.Series([60.0, 0.0], index=pd.Index(["A", "B"], name="zone"))
    made = frame.dp.sum("fare", by="zone", n=rows, epsilon=1)
    weights = pd.Series({"A": 1.0, "B": -1.0})
    assert len(made.dp.combine(weights)) == 1
    assert "fare" in dpf.report([made, released])
    edges = pd.Series([0.0, 1.0, 2.0])
    assert len(frame.dp.histogram("fare", bins=edges, epsilon=1)) == 2


def test_released_frames_of_a_declared_one_are_not_marked():
    frame = declared(arguments.cells())
    made = frame.dp.count("zone", epsilon=1)
    assert origin_of(made) is None
    assert origin_of([made, {"a": made.index}]) is None


@pytest.mark.parametrize("nest", NESTS)
def test_marks_are_found_wherever_they_are(nest):
    frame = declared(arguments.cells())
    assert origin_of(NESTS[nest](frame["fare"])) == "a declared frame"
    assert origin_of(NESTS[nest](frame.index)) == "a declared frame"
    assert origin_of(NESTS[nest](frame.index.copy())) is None  # nothing says where it is from
    assert origin_of(NESTS[nest](arguments.diagnosed()["rows"])) == "a diagnosis"


def test_a_frame_that_lost_its_attrs_is_known_while_it_lives():
    frame = declared(arguments.cells())
    frame.attrs.clear()
    assert origin_of([frame]) == "a declared frame"
    assert origin_of(pickle.loads(pickle.dumps(frame))) is None  # noqa: S301


def test_containers_that_hold_themselves_are_looked_at_once():
    loop = []
    loop.append(loop)
    assert origin_of(loop) is None
    assert quote(loop) == "[[[a list of 1]]]"


def test_short_plain_values_are_shown_and_all_else_by_its_type():
    plain = [1, -0.5, "a", b"a", None, True, 1j, [1, ("a", {2: 3})], frozenset({1}), (), set()]
    plain += [datetime.date(2024, 1, 2), pd.Timestamp(0), pd.NaT, pd.NA, np.float64(2), range(3)]
    for value in plain:
        assert quote(value) == repr(value)
    assert quote("x" * 201) == "a str of many characters"
    assert quote(10**5000) == "an int"
    assert quote([0] * 11) == "a list of 11"
    assert quote([["y" * 150] * 2]) == "[a list of 2]"
    data = arguments.unmarked()
    for value in data.values():
        name = type(value).__name__
        for nest in NESTS.values():
            assert not arguments.quotes([quote(nest(value))])
        assert quote((value,)).strip("(,)").split()[1] == name


class _Liar(str):
    def __repr__(self):
        return arguments.TEXT

    __str__ = __repr__


def test_texts_are_not_shown_as_their_class_would():
    assert quote(_Liar("a")) == "'a'"

"""Public facts read from pandera schemas."""

import math
import os
import subprocess
import sys
from typing import Optional

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from pandera.errors import SchemaErrors
from pandera.typing import Series
from support.raising import raises

import dpframe as dpf
from dpframe.declaration.facts import Column
from dpframe.declaration.from_pandera import facts
from dpframe.errors import DeclarationError

Check = pa.Check


def column(*arguments, **options) -> Column:
    return facts(pa.DataFrameSchema({"x": pa.Column(*arguments, **options)}))["x"]


def keys_of(*arguments, **options) -> list:
    return list(column(*arguments, **options).keys)


@pytest.mark.parametrize(
    ("dtype", "checks", "expected"),
    [
        (float, [Check.ge(0), Check.le(9)], (0, 9)),
        (float, [Check.gt(0), Check.lt(9)], (0, 9)),
        (int, [Check.ge(0), Check.le(9)], (0, 9)),
        (int, [Check.gt(0), Check.lt(9)], (1, 8)),
        (int, [Check.gt(0.5), Check.lt(8.5)], (1, 8)),
        (int, [Check.gt(-1.5), Check.lt(-0.5)], (-1, -1)),
        ("Int64", [Check.gt(0), Check.lt(9)], (1, 8)),
        (pd.UInt8Dtype(), Check.in_range(0, 9), (0, 9)),
        (np.int8, Check.in_range(0, 9, include_min=False, include_max=False), (1, 8)),
        (float, Check.in_range(0, 9, include_min=False), (0, 9)),
        (float, Check.between(-1.5, 2), (-1.5, 2)),
        (float, [Check.in_range(0, 9), Check.ge(3), Check.lt(20)], (3, 9)),
        (float, Check.isin([3, 1.5, 2]), (1.5, 3)),
        (float, [Check.isin([3, 1, 2]), Check.ge(2)], (2, 3)),
        (float, Check.eq(4), (4, 4)),
        (bool, [], (0, 1)),
        ("boolean", [], (0, 1)),
        (bool, Check.eq(True), (1, 1)),
        (object, Check.isin([True, False]), (0, 1)),
        (pd.CategoricalDtype([3, 1, 2]), [], (1, 3)),
        (None, Check.in_range(0, 9), (0, 9)),
        (float, Check.in_range(np.int64(0), np.float32(0.5)), (0, 0.5)),
    ],
)
def test_checks_become_bounds(dtype, checks, expected):
    assert column(dtype, checks, nullable=True).bounds == expected


@pytest.mark.parametrize(
    ("dtype", "checks"),
    [
        (float, Check.ge(0)),
        (int, Check.lt(9)),
        (int, Check.gt(-math.inf)),
        (int, Check.in_range(-math.inf, 9, include_min=False)),
        (float, [Check.ge(0), Check.le(math.inf)]),
        (str, [Check.ge("a"), Check.le("b")]),
        (str, Check.isin(["1", "2"])),
        (object, Check.isin([1, "2"])),
        ("datetime64[ns]", [Check.ge(pd.Timestamp("2020")), Check.ne(pd.Timestamp("2021"))]),
        ("timedelta64[ns]", Check.le(np.timedelta64(9, "s"))),
        (float, [Check.notin([1]), Check(lambda values: values > 0), Check.ne(3)]),
        (complex, Check.isin([1j])),
        ("category", []),
    ],
)
def test_other_checks_bound_nothing(dtype, checks):
    assert column(dtype, checks).bounds is None


def test_keys_come_in_the_order_they_are_written():
    assert keys_of(str, Check.isin(["b", "a"])) == ["b", "a"]
    assert keys_of(str, Check.isin(np.array(["b", "a"]))) == ["b", "a"]
    assert keys_of(str, Check.eq("b")) == ["b"]
    assert keys_of(bool) == keys_of("boolean") == [False, True]
    assert keys_of(pd.CategoricalDtype(["q", "p"])) == ["q", "p"]
    assert column(str).keys is None
    assert column("category").keys is None


def test_sets_are_sorted_for_they_have_no_order():
    assert keys_of(str, Check.isin(set("cadb"))) == ["a", "b", "c", "d"]
    assert keys_of(int, Check.isin({10, 9, 100})) == [9, 10, 100]
    assert keys_of(object, Check.isin(frozenset(["b", 2, 10, "a"]))) == [2, 10, "a", "b"]


def test_several_sets_of_keys_are_intersected():
    assert keys_of(str, [Check.isin(["c", "a", "b"]), Check.isin(["b", "c"])]) == ["c", "b"]
    narrowed = column(
        pd.CategoricalDtype(["q", "p", "r"], ordered=True), Check.isin(["r", "q"])
    ).keys
    assert list(narrowed) == ["q", "r"]
    assert isinstance(narrowed.dtype, pd.CategoricalDtype)
    assert narrowed.dtype.ordered
    with raises(DeclarationError, "least", parameter="keys", label="x"):
        column(str, [Check.isin(["a"]), Check.isin(["b"])])


@pytest.mark.parametrize(
    ("dtype", "checks"),
    [
        (float, [Check.ge(5), Check.le(1)]),
        (int, [Check.gt(3), Check.lt(4)]),
        (float, [Check.isin([10]), Check.le(5)]),
        (float, [Check.in_range(0, 1), Check.in_range(2, 3)]),
        (bool, Check.ge(2)),
        (int, [Check.ge(0.25), Check.le(0.75)]),
        ("Int64", Check.in_range(-0.75, -0.25)),
    ],
)
def test_checks_that_contradict_each_other_are_refused(dtype, checks):
    with raises(DeclarationError, "contradict", parameter="schema", label="x"):
        column(dtype, checks)


def test_bounds_of_integers_hold_one():
    """Between others there is nothing to count: a mean would be off, and say it has no error."""
    rule = "must hold a whole number"
    with raises(DeclarationError, rule, parameter="bounds", label="x"):
        column(int, metadata={"dpframe": {"bounds": (0.25, 0.75)}})
    frame = pd.DataFrame({"x": [0, 1]})
    schema = pa.DataFrameSchema({"x": pa.Column(int)})
    for low, high in ((0.25, 0.75), (-0.75, -0.25)):
        with raises(DeclarationError, rule, parameter="bounds", label="x"):
            frame.dp.declare(schema, bounds={"x": (low, high)})
    frame.dp.declare(schema, privacy_unit=dpf.EACH_ROW)
    with raises(DeclarationError, rule, parameter="bounds", label="x"):
        frame.dp.plan(dpf.mean("x", bounds=(0.25, 0.75)), epsilon=1)
    for bounds in ((0.5, 1), (1, 1), (-0.5, 0.5)):
        frame.dp.plan(dpf.mean("x", bounds=bounds), epsilon=1)


def test_metadata_override_checks():
    own = {"bounds": (0, 5), "keys": ["b"], "missing": 3}
    found = column(float, [Check.ge(5), Check.le(1)], metadata={"dpframe": own, "owner": "me"})
    assert (found.bounds, list(found.keys), found.missing) == ((0, 5), ["b"], 3)
    assert found.source == "schema"
    assert (
        column(float, Check.in_range(0, 1), metadata={"dpframe": {"bounds": None}}).bounds is None
    )
    assert column(float, Check.in_range(0, 1), metadata={"owner": "me"}).bounds == (0, 1)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ((0, 1), r"^metadata\['dpframe'\] of 'x' must be a dict"),
        (None, r"^metadata\['dpframe'\] of 'x' must be a dict"),
        ({"bound": (0, 1)}, "some of the keys 'bounds', 'keys', 'missing'"),
        ({"bounds": (1, 0)}, "^bounds of 'x' must have lower <= upper"),
        ({"keys": "AB"}, "^keys of 'x' must be a list"),
        ({"missing": "none"}, "^missing of 'x' must be a finite number"),
    ],
)
def test_metadata_are_checked_like_keywords(own, message):
    with pytest.raises(DeclarationError, match=message):
        column(float, metadata={"dpframe": own})


class Trips(pa.DataFrameModel):
    fare: float = pa.Field(ge=0, le=100, nullable=True)
    riders: int = pa.Field(gt=0, lt=7)
    zone: Series[str] = pa.Field(isin=["B", "A"], alias="pick up")
    tip: Optional[float] = pa.Field(in_range={"min_value": 0, "max_value": 9})  # noqa: UP045
    day: Series[pd.CategoricalDtype] = pa.Field(dtype_kwargs={"categories": ["Mo", "Tu"]})


class ShortTrips(Trips):
    fare: float = pa.Field(ge=0, le=20, metadata={"dpframe": {"missing": 5}})


def test_models_inherit_and_override():
    found = facts(ShortTrips)
    assert (found["fare"].bounds, found["fare"].missing) == ((0, 20), 5)
    assert found["riders"].bounds == (1, 6)


@pytest.mark.parametrize(
    "thing", [5, {"x": float}, float, pd.DataFrame, pa.SeriesSchema(float), Trips.fare]
)
def test_schemas_are_panderas(thing):
    with raises(DeclarationError, "DataFrameModel", parameter="schema"):
        facts(thing)


def frame(fare: float = 3.0) -> pd.DataFrame:
    return pd.DataFrame({"fare": [fare], "zone": ["A"]})


SCHEMA = pa.DataFrameSchema(
    {
        "fare": pa.Column(float, Check.in_range(0, 100)),
        "zone": pa.Column(str, Check.isin(["A", "B"])),
        "extra": pa.Column(float, Check.in_range(0, 1), required=False),
    }
)


def test_keywords_override_the_schema():
    trips = frame()
    trips.dp.declare(SCHEMA, bounds={"fare": (0, 50)}, missing={"fare": 1})
    fare = trips.dp.declaration.column("fare")
    assert (fare.bounds, fare.missing, fare.source) == ((0, 50), 1, "declared")
    zone = trips.dp.declaration.column("zone")
    assert (list(zone.keys), zone.source) == (["A", "B"], "schema")


def test_the_data_are_only_validated_on_request():
    trips = frame(fare=-5.0)
    trips.dp.declare(SCHEMA)
    assert trips.dp.declaration.column("fare").bounds == (0, 100)
    frame().dp.declare(SCHEMA, validate=True)


def test_a_frame_that_fails_validation_stays_undeclared():
    trips = frame(fare=-5.0)
    with pytest.raises(SchemaErrors):
        trips.dp.declare(SCHEMA, budget=dpf.Budget(1), validate=True)
    assert trips.dp.declaration.ledger is None
    assert not trips.attrs


def packages_after(code: str) -> set[str]:
    """Packages of which some code imports modules beyond those of pandas, in a fresh process."""
    program = f"""
import sys
import pandas
frame = pandas.DataFrame({{"x": [1.0]}})
known = set(sys.modules)
import dpframe
{code}
print(*(set(sys.modules) - known))
"""
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.full
def test_pandera_is_not_imported():
    heavy = {"pandera", "matplotlib", "pyarrow", "typeguard", "pydantic", "mpmath"}
    without = packages_after("frame.dp.declare(bounds={'x': (0, 1)})")
    assert "dpframe" in without
    assert not without & heavy
    given = "try: frame.dp.declare(5)\nexcept ValueError: pass"
    assert "pandera" not in packages_after(given)

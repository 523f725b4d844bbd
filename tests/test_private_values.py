"""Whatever the cells of a frame hold, a release looks the same: no error, no warning, no dtype."""

import datetime
import decimal
import fractions

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpframe as dpf

N = 40


def objects(values):
    """A column of Python objects, taken as they are."""
    cells = np.empty(len(values), object)
    for row, value in enumerate(values):
        cells[row] = value
    return pd.Series(cells, dtype=object)


def honest():
    rows = np.arange(N)
    return pd.DataFrame(
        {
            "zone": np.array(list("ABC"))[rows % 3],
            "day": rows % 2,
            "fare": rows * 0.5,
            "size": rows % 5,
            "who": rows // 3,
        }
    )


class Hostile:
    """A value whose every method raises."""

    def _fail(self, *_):
        raise RuntimeError

    __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = __hash__ = __bool__ = _fail
    __float__ = __int__ = __index__ = __len__ = __iter__ = __str__ = __repr__ = __array__ = _fail


class LyingFloat(float):
    def __float__(self):
        raise RuntimeError

    def __mul__(self, other):
        raise RuntimeError


VALUES = {
    "nan": np.nan,
    "infinity": np.inf,
    "minus infinity": -np.inf,
    "none": None,
    "missing": pd.NA,
    "not a time": pd.NaT,
    "the largest integer": 2**63 - 1,
    "an unsigned integer": 2**64 - 1,
    "the least integer": -(2**63),
    "a huge integer": 10**400,
    "a huge float": 1.7e308,
    "a tiny float": 5e-324,
    "a number in text": "3.5",
    "a text": "\ud800 nowhere",
    "bytes": b"A",
    "truth": True,
    "a complex number": 1j,
    "a decimal": decimal.Decimal("sNaN"),
    "a fraction": fractions.Fraction(10**400, 3),
    "a date": datetime.date(1, 1, 1),
    "a time": pd.Timestamp("2020", tz="UTC"),
    "an ancient time": np.datetime64("-290000000", "Y"),
    "a list": [1, 2],
    "a dict": {},
    "an array": np.ones(3),
    "a frame": pd.DataFrame({"a": [1]}),
    "a hostile object": Hostile(),
    "a lying float": LyingFloat(2),
    "a type": float,
}
COLUMNS = ["zone", "day", "fare", "size", "who"]
WHERE = "fare > 3 and (zone in ['A', 'B'] or size % 2 == 0) and not day == who"
QUERIES = {
    "total": dpf.count(),
    "count": dpf.count("zone", where=WHERE),
    "count by two": dpf.count(["zone", "day"]),
    "sum": dpf.sum(["fare", "size"], "zone"),
    "mean": dpf.mean("fare", "day", where="size > 0 or fare + size * 2 <= 3"),
    "histogram": dpf.histogram("fare", [-np.inf, 0, 10, np.inf], "zone"),
    "units": dpf.units("zone", where=WHERE),
    "rate": dpf.rate(WHERE, "zone"),
    "variance": dpf.var("fare", "zone"),
    "deviation": dpf.std("size", where=WHERE),
    "weighted": dpf.aggregate(
        "zone", n=dpf.count(where=WHERE, weights="size"), m=dpf.mean("fare", weights="size")
    ),
    "aggregate": dpf.aggregate(
        "zone", n=dpf.count(where=WHERE), s=dpf.sum("size"), m=dpf.mean("fare", where="day == 1")
    ),
}


def declared(frame, unit):
    caps = {"privacy_unit": "who", "max_rows": 4, "max_groups": 2} if unit else {}
    frame.dp.declare(
        keys={"zone": ["A", "B", "C"], "day": [0, 1]},
        bounds={"fare": (-5, 10), "size": (0, 4)},
        missing={"size": 1},
        **caps,
    )
    return frame


def suggestions(frame):
    """All that is suggested of a frame that is declared with a unit."""
    spend = {"epsilon": 1, "delta": 1e-6}
    query = dpf.count("zone", where=WHERE)
    return {
        "caps": frame.dp.suggest_caps(query=query, largest=3, **spend),
        "group caps": frame.dp.suggest_caps("day", cap="max_groups", **spend),
        "caps in groups": frame.dp.suggest_caps(
            ["zone", "day"], cap="max_rows_per_group", largest=2, **spend
        ),
        "bounds": frame.dp.suggest_bounds("fare", smallest=1, largest=1, **spend),
    }


def looks(frame):
    """Everything about releases of a frame but the numbers in them."""
    shown = []
    for unit in (False, True):
        made = declared(frame, unit).dp.release(QUERIES, epsilon=1, delta=1e-6)
        made |= suggestions(frame) if unit else {}
        for name, released in made.items():
            (record,) = released.dp.certificate.to_dict()["releases"]
            bars = released.dp.interval()
            shown.append(
                (
                    name,
                    released.shape,
                    released.dtypes.astype(str).tolist(),
                    list(released.columns),
                    released.index.tolist(),
                    str(released.index.dtype),
                    bars.dtypes.astype(str).tolist(),
                    bars.isna().to_numpy().any(),
                    record["query"],
                    [(c.get("noise"), c.get("std_error")) for c in record["columns"]],
                )
            )
    return shown


@pytest.fixture(scope="module")
def expected():
    return looks(honest())


@pytest.mark.sampled(every=17, full=24)
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", VALUES)
def test_one_hostile_value_shows_in_nothing_but_numbers(expected, name, column):
    frame = honest()
    values = frame[column].tolist()
    values[7] = VALUES[name]
    frame[column] = objects(values)
    assert looks(frame) == expected


@pytest.mark.sampled(every=5, full=2)
@pytest.mark.parametrize("name", VALUES)
def test_a_frame_of_hostile_values_shows_in_nothing_but_numbers(expected, name):
    frame = pd.DataFrame({column: objects([VALUES[name]] * N) for column in COLUMNS})
    assert looks(frame) == expected


def mixed():
    """Values of all kinds beside each other in every column."""
    return pd.DataFrame({column: objects(list(VALUES.values())) for column in COLUMNS})


def times(frame):
    day = pd.Timestamp("2020-03-01")
    # in columns of objects: what a column of times cannot match is refused
    cells = {"zone": day, "day": day.tz_localize("UTC"), "fare": day - day}
    columns = {name: objects([cell] * N) for name, cell in cells.items()}
    return frame.assign(who=day.to_period("D"), **columns)


FRAMES = {
    "mixed values": mixed,
    "no rows": lambda: honest().iloc[:0],
    "no rows of no type": lambda: honest().iloc[:0].astype(object),
    "one row": lambda: honest().iloc[:1],
    "one unit": lambda: honest().assign(who=1),
    "a unit for each row": lambda: honest().assign(who=np.arange(N)),
    "no unit at all": lambda: honest().assign(who=np.nan),
    "no declared group": lambda: honest().assign(zone="elsewhere", day=-1),
    "unhashable units and groups": lambda: honest().assign(
        who=[[n] for n in range(N)], zone=[{n} for n in range(N)]
    ),
    "floats everywhere": lambda: honest().assign(day=1.0, size=2.5, who=0.1),
    "wrong texts everywhere": lambda: honest().astype(str).astype(object),
    "nullable": lambda: honest().convert_dtypes(),
    "nullable and missing": lambda: honest().convert_dtypes().mask(honest() != 1),
    "Arrow": lambda: honest().convert_dtypes(dtype_backend="pyarrow"),
    "Arrow and missing": lambda: (
        honest().convert_dtypes(dtype_backend="pyarrow").mask(honest()["day"] == 0)
    ),
    "Arrow decimals": lambda: honest().assign(
        fare=pd.array([decimal.Decimal("1.5")] * N, dtype=pd.ArrowDtype(pa.decimal128(5, 2)))
    ),
    "categories": lambda: honest().astype("category"),
    "categories and missing": lambda: honest().astype("category").mask(honest()["day"] == 1),
    "no category": lambda: honest().assign(zone=pd.Categorical([np.nan] * N, categories=[])),
    "small integers": lambda: honest().astype({"fare": np.int8, "size": np.uint8, "who": np.int8}),
    "unsigned integers": lambda: honest().assign(fare=np.uint64(2**64 - 1), who=np.uint64(2**63)),
    "small floats": lambda: honest().astype({"fare": np.float16, "size": np.float32}),
    "long floats": lambda: honest().astype({"fare": np.longdouble}),
    "complex numbers": lambda: honest().astype({"fare": complex}),
    "booleans": lambda: honest().assign(fare=True, size=False, zone=True, who=False),
    "times": lambda: times(honest()),
    "intervals": lambda: honest().assign(
        fare=pd.interval_range(0, N), zone=pd.interval_range(0, N)
    ),
    "sparse": lambda: honest().astype({"fare": "Sparse[float]", "size": "Sparse[int]"}),
    "missing everywhere": lambda: pd.DataFrame(np.nan, index=range(N), columns=COLUMNS),
    "a repeated index": lambda: honest().set_axis([0] * N),
    "a deep index": lambda: honest().set_index([honest()["zone"], honest()["day"]]),
}


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("name", FRAMES)
def test_frames_of_any_kind_show_in_nothing_but_numbers(expected, name):
    assert looks(FRAMES[name]()) == expected


def test_the_frame_is_left_as_it_was():
    frame = declared(mixed(), unit=True)
    before = [list(map(id, frame[column])) for column in COLUMNS]
    frame.dp.release(QUERIES, epsilon=1)
    assert [list(map(id, frame[column])) for column in COLUMNS] == before
    kept = honest()
    declared(kept, unit=True).dp.release(QUERIES, epsilon=1)
    pd.testing.assert_frame_equal(kept, honest())

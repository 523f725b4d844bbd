"""Releases of one part of the data: which rows they read, what they spend, what is refused."""

import os
from decimal import Decimal

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from support.charging import PURE
from support.raising import raises
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe import Ledger
from dpframe.columns.filters import keep
from dpframe.columns.identity import key_of
from dpframe.errors import BudgetExceededError, DeclarationError, ReleaseError, UnknownColumnError
from dpframe.ledger.parts import check_part, number_of
from dpframe.operations.pipeline import Operation
from dpframe.operations.planning import in_part, plan_operation
from dpframe.privacy.amounts import Spend
from dpframe.queries.where import Condition

UNIT = {"privacy_unit": ["plane", "week"], "max_rows": 4, "max_groups": 2}
KEYS = {"zone": ["A", "B"]}
BUDGET = dpf.Budget(epsilon=1, delta=1e-6, discovery=1e-7)
ROWS = [
    ("a", 47, "A", 1),
    ("a", 47, "B", 2),
    ("a", 48, "A", 4),
    ("b", 47, "A", 8),
    ("c", 49, "B", 16),
]


def flights(rows=ROWS, ledger: Ledger | None = None, **facts) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["plane", "week", "zone", "x"])
    ledger = Ledger(budget=BUDGET, part="week") if ledger is None else ledger
    frame.dp.declare(ledger=ledger, keys=KEYS, bounds={"x": (0, 16)}, **{**UNIT, **facts})
    return frame


def totals(frame, query, part):
    """Return what a release would hide with noise."""
    declaration = frame.dp.declaration.in_part(part)
    asked = in_part(declaration, query)
    operation: Operation = plan_operation(
        frame, declaration, asked, Spend.of(epsilon=0.1), "laplace"
    )
    return operation.measure(frame, SYSTEM)


def measured(frame, query, part) -> list:
    """Return the integers among it."""
    found = totals(frame, query, part)
    return [np.concatenate(list(map(np.ravel, one))).tolist() for one in found]


QUERIES = {
    "count": dpf.count("zone"),
    "sum": dpf.sum("x", "zone", where="x < 20"),
    "units": dpf.units("zone"),
    "several": {"n": dpf.count(), "m": dpf.sum("x")},
    "caps": dpf.suggest_caps("zone"),
    "bounds": dpf.suggest_bounds("x", "zone"),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_release_of_a_part_reads_no_row_of_another(query):
    whole = {part: measured(flights(), query, part) for part in (47, 48, 49)}
    assert whole[47] != whole[48]
    for plane, week in {row[:2] for row in ROWS}:
        fewer = flights([row for row in ROWS if row[:2] != (plane, week)])
        changed = [part for part in whole if measured(fewer, query, part) != whole[part]]
        assert changed == [week]


@pytest.mark.parametrize("law", ["box", "correlated", "laplace"])
def test_queries_that_are_measured_as_one_read_no_row_of_another_part(law):
    def counted(rows):
        frame = flights(rows, privacy_unit=dpf.EACH_ROW, max_rows=None, max_groups=None)
        declaration = frame.dp.declaration.in_part(47)
        queries = {"some": dpf.count("zone", where="x > 1"), "all": dpf.count("zone")}
        asked, spend = in_part(declaration, queries), Spend.of(epsilon=0.1, delta=1e-7)
        operation = plan_operation(frame, declaration, asked, spend, law)
        return [block.tolist() for blocks in operation.measure(frame, SYSTEM) for block in blocks]

    among = counted(ROWS)
    assert among == counted([row for row in ROWS if row[1] == 47])
    assert among != counted([row for row in ROWS if row[1] != 47])


@pytest.mark.audit
def test_no_call_that_releases_reads_a_row_of_another_part():
    calls = pytest.importorskip("support.replay_calls")
    frames = pytest.importorskip("support.replay_frames")
    crowd = calls.Crowd(7, filed=False, caps=None)
    rows = [(week, *crowd.plain(who)) for who in range(12) for week in (1, 1, 2, 2)]
    for name, call in calls.CALLS.items():
        if "max_true" in call.options:  # it draws which flags of a unit count
            continue
        caps = {"max_groups": 2} if call.method == "discover" else {}

        def of_part(kept, call=call, caps=caps):
            frame = pd.DataFrame(kept, columns=["week", *frames.Row._fields])
            frame.dp.declare(
                calls.FLAGS if call.method == "sum" else None,
                ledger=Ledger(budget=BUDGET, part="week"),
                privacy_unit=["who", "week"],
                max_rows=4,
                keys={"zone": calls.ZONES, "day": calls.DAYS},
                bounds=calls.BOUNDS,
                **caps,
            )
            with np.printoptions(threshold=10**6):
                return repr(totals(frame, call.query(), 1))

        whole = of_part(rows)
        assert of_part([row for row in rows if row[0] == 1 or row[1] > 2]) == whole, name
        assert of_part([row for row in rows if row[0] == 2 or row[1] > 2]) != whole, name


def test_parts_whose_unit_spans_several_would_be_seen():
    # the check above, where a unit is a plane: what the declaration refuses
    whole = {part: measured(flights(), dpf.count(), part) for part in (47, 48, 49)}
    fewer = flights([row for row in ROWS if row[0] != "a"])
    changed = [part for part in whole if measured(fewer, dpf.count(), part) != whole[part]]
    assert changed == [47, 48]


def test_each_call_spends_of_its_part_alone():
    frame = flights()
    ledger = frame.dp.ledger
    asked = {
        1: lambda part: frame.dp.count("zone", part=part, epsilon=0.5),
        2: lambda part: frame.dp.aggregate(n=dpf.count(), part=part, share=0.5),
        3: lambda part: frame.dp.discover("zone", part=part, epsilon=0.1),
        4: lambda part: frame.dp.suggest_caps("zone", part=part, epsilon=0.1),
        5: lambda part: frame.dp.suggest_bounds("x", part=part, epsilon=0.1),
        6: lambda part: dpf.release(frame, {"a": dpf.count()}, part=part, epsilon=0.1),
        7: lambda part: frame.dp.quantile("x", 0.5, part=part, epsilon=0.1, mechanism="select"),
    }
    for part, call in asked.items():
        call(part)
        assert ledger.entries[-1].part == str(part)
        assert [ledger.status(part=one).used > 0 for one in asked] == [one <= part for one in asked]
    assert "where week == 7" in ledger.entries[-1].what
    assert list(frame.dp.plan(dpf.count(), part=1, epsilon=0.6).table["fits"]) == [False]
    assert list(frame.dp.plan(dpf.count(), part=9, epsilon=0.6).table["fits"]) == [True]
    with raises(BudgetExceededError, "for part='1'") as caught:
        frame.dp.count(part=1.0, epsilon=0.6)
    assert "Released last: count by zone where week == 1, 20" in str(caught.value)
    with raises(BudgetExceededError):
        frame.dp.count(epsilon=0.6)
    assert "for every week" in repr(frame.dp.declaration)
    certificate = frame.dp.count(part=9, epsilon=0.25, mechanism="laplace").dp.certificate
    assert certificate.ledger.used == 0.25


def test_a_unit_in_several_parts_is_refused():
    ledger = Ledger(budget=PURE, part="week")
    with raises(DeclarationError, "['plane', 'week']", parameter="privacy_unit"):
        flights(ledger=ledger, privacy_unit="plane")
    assert ledger.protected is None
    flights(ledger=ledger, privacy_unit=["week", "plane"])
    frame = flights(ledger=Ledger(budget=PURE), privacy_unit="plane")
    with raises(DeclarationError, "needs a ledger by part", parameter="part"):
        frame.dp.count(part=47, epsilon=0.1)


def in_partitions(frame, _):
    return pytest.importorskip("support.dasking").split(frame, 2)


def in_a_file(frame, folder):
    frame.to_parquet(folder / "rows.parquet")
    return dpf.scan_parquet(folder / "rows.parquet", progress=False)


ENGINES = [lambda frame, _: frame.copy(), in_partitions, in_a_file]
SCHEMA = pa.DataFrameSchema({"zone": pa.Column(str, pa.Check.isin(["A", "B"]))})


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["keywords", "schema"])
@pytest.mark.parametrize("engine", ENGINES, ids=["pandas", "dask", "parquet"])
def test_every_engine_refuses_a_unit_that_may_be_in_several_parts(tmp_path, engine, schema):
    ledger = Ledger.create(tmp_path / "x.ledger", budget=PURE, part="week")
    rows = pd.DataFrame(ROWS, columns=["plane", "week", "zone", "x"])

    def declared(unit, **facts):
        frame = engine(rows, tmp_path)
        dpf.declare(frame, schema, privacy_unit=unit, ledger=ledger, **facts)
        return frame

    for unit in ("plane", ["plane"], ["plane", "zone"], "x"):
        with raises(DeclarationError, "one unit may be in several", parameter="privacy_unit"):
            declared(unit, max_rows=4)
        with raises(DeclarationError, "one unit may be in several", parameter="privacy_unit"):
            dpf.declares(schema, privacy_unit=unit, max_rows=4, ledger=ledger)(engine)(
                rows, tmp_path
            )
    assert ledger.head == Ledger(ledger.path).head
    assert Ledger(ledger.path).protected is None  # nothing was settled
    frame = declared(["week", "plane"], max_rows=4)
    # the ledger stays with the frame, and so does what it protects
    with raises(DeclarationError, "", parameter="privacy_unit"):
        dpf.declare(frame, schema, privacy_unit="plane", max_rows=4)
    rowwise = Ledger(budget=PURE, part="week")
    dpf.declare(engine(rows, tmp_path), schema, privacy_unit=dpf.EACH_ROW, ledger=rowwise)
    with raises(UnknownColumnError, "year"):
        dpf.declare(
            engine(rows, tmp_path),
            schema,
            privacy_unit=dpf.EACH_ROW,
            ledger=Ledger(budget=PURE, part="year"),
        )


def test_a_frame_without_a_budget_has_no_parts():
    with raises(DeclarationError, "no budget is declared", parameter="part"):
        pd.DataFrame({"week": [1]}).dp.count(part=1, epsilon=1, privacy_unit=dpf.EACH_ROW)


def test_parts_that_the_column_cannot_hold_are_refused():
    days = pd.DataFrame({"plane": ["a"], "week": pd.to_datetime(["2024-03-01"])})
    days.dp.declare(ledger=Ledger(budget=PURE, part="week"), **UNIT)
    with raises(DeclarationError, "which holds times", parameter="part"):
        days.dp.count(part="2024-03-01", epsilon=0.1)


ASKED = [1, 1.5, 300, "2024-03", "047"]
TEXTS, NUMBERS, NOTHING = ASKED, [1, 1.5, 300], []
UNTOLD = [  # where one cell may have decided on the dtype
    pd.Series([1, 2]),
    pd.Series([1, None]),
    pd.Series([True]),
    pd.Series(["2024-03"], dtype=object),
    pd.Series([1], dtype="category"),
    pd.Series([None, None]),
]
HELD = [
    *((column, NUMBERS) for column in UNTOLD),
    (pd.Series(["a"], dtype="string"), TEXTS),
    (pd.Series(pd.Categorical.from_codes([0], pd.array(["a"], dtype="string"))), TEXTS),
    (pd.Series([1], dtype="Int8"), [1]),
    (pd.Series([1], dtype="UInt16"), [1, 300]),
    (pd.Series([True], dtype="boolean"), [1]),
    (pd.Series([0.5], dtype="Float64"), NUMBERS),
    (pd.Series(pd.to_datetime(["2024-03-01"])), NOTHING),
    (pd.Series(pd.to_timedelta([300])), NOTHING),
    (pd.Series(pd.period_range("2024-03", periods=1, freq="M")), NOTHING),
    (pd.Series(pd.interval_range(0, 1)), NOTHING),
]


def taken(frame, **facts) -> list:
    """Return the parts that a release takes; the others are refused before anything is charged."""
    declared = {"ledger": Ledger(budget=BUDGET, part="week"), **UNIT, **facts}
    dpf.declare(frame, **declared)
    found = []
    for part in ASKED:
        try:
            dpf.release(frame, dpf.count(), part=part, epsilon=0.01)
            found.append(part)
        except DeclarationError as error:
            assert error.parameter == "part"
    assert len(declared["ledger"].entries) == len(found)
    return found


@pytest.mark.parametrize(("column", "held"), HELD, ids=lambda one: str(getattr(one, "dtype", "")))
def test_a_type_decides_which_parts_a_column_can_hold(column, held):
    assert taken(pd.DataFrame({"plane": "a", "week": column})) == held


@pytest.mark.parametrize("column", UNTOLD, ids=lambda one: str(one.dtype))
def test_what_is_declared_decides_where_one_cell_may_have_decided_on_the_dtype(column):
    for keys, held in ((["2024-03"], TEXTS), ([1, "a"], TEXTS), ([1], NUMBERS)):
        frame = pd.DataFrame({"plane": "a", "week": column})
        assert taken(frame, keys={"week": keys}) == held
    dates = pd.date_range("2024", periods=2)
    assert taken(pd.DataFrame({"plane": "a", "week": column}), bounds={"week": dates}) == NOTHING


def test_schemas_say_which_parts_a_column_can_hold():
    pa = pytest.importorskip("pandera.pandas")
    for kind, held in ((str, TEXTS), (int, [1, 300]), (None, NUMBERS)):
        frame = pd.DataFrame({"plane": "a", "week": pd.Series(["2024-03"], dtype=object)})
        schema = pa.DataFrameSchema({"week": pa.Column(kind)})
        assert taken(frame, schema=schema) == held


@pytest.mark.parametrize("engine", ["dask", "files", "folders"])
def test_every_engine_refuses_parts_that_a_column_cannot_hold(tmp_path, engine):
    pytest.importorskip("pyarrow")
    rows = pd.DataFrame({"plane": ["a"], "week": pd.array([1], dtype="Int8")})
    if engine == "dask":
        dd = pytest.importorskip("dask.dataframe")
        pytest.importorskip("dpframe.dask")
        assert taken(dd.from_pandas(rows, npartitions=1)) == [1]
        return
    folders = ["week"] if engine == "folders" else None  # of texts; those of digits are numbers
    rows.to_parquet(tmp_path / "x", partition_cols=folders)
    held = [1] if folders is None else [*NUMBERS, "2024-03"]
    assert taken(dpf.scan_parquet(tmp_path / "x")) == held


def lake(folder, rows=ROWS) -> dpf.Scan:
    """Write rows into folders by week, as of long ago, and scan them."""
    frame = pd.DataFrame(rows, columns=["plane", "week", "zone", "x"])
    frame.to_parquet(folder, partition_cols=["week"])
    for file in folder.glob("*/*"):
        os.utime(file, (1e9, 1e9))
    return dpf.scan_parquet(folder)


def test_folders_of_other_parts_are_not_opened(tmp_path):
    pytest.importorskip("pyarrow")
    scan = lake(tmp_path / "x")
    ledger = Ledger(budget=dpf.Budget(epsilon=1e6), part="week")
    scan.dp.declare(ledger=ledger, keys=KEYS, bounds={"x": (0, 16)}, **UNIT)
    whole = {part: measured(scan, dpf.sum("x", "zone"), part) for part in (47, 48, 49, 50)}
    assert [part for part, (sums,) in whole.items() if any(sums)] == [47, 48, 49]
    for file in (tmp_path / "x").glob("week=4[89]/*"):
        file.write_bytes(bytes(file.stat().st_size))
        os.utime(file, (1e9, 1e9))
    assert measured(scan, dpf.sum("x", "zone"), 47) == whole[47]
    for part in (48, None):
        with pytest.raises(ReleaseError):
            scan.dp.count("zone", part=part, epsilon=1)


def test_files_that_were_written_to_are_looked_at_anew(tmp_path):
    pytest.importorskip("pyarrow")
    scan = lake(tmp_path / "x")
    (file,) = (tmp_path / "x").glob("week=48/*")
    file.write_bytes(bytes(file.stat().st_size))
    with raises(DeclarationError, "cannot be read", parameter="path"):
        scan.refresh()


class AlwaysEqual(str):
    """Texts that are one unit, whatever they say."""

    __slots__ = ()

    def __eq__(self, other):
        return isinstance(other, AlwaysEqual)

    def __hash__(self):
        return 7


ODD = [
    *(47, 47.0, np.int8(47), np.float32(47), Decimal(47), complex(47), "47", np.str_("47"), "47.0"),
    *(True, 1, "1", "True", None, float("nan"), pd.NaT, "", "048", 2**53, 2**53 + 1, float("inf")),
    *(
        pd.Timestamp("2024-03-01"),
        "2024-03-01",
        "2024-03-01T00:00",
        np.timedelta64(47, "ns"),
        b"47",
    ),
    *(AlwaysEqual("47"), AlwaysEqual("48"), [47], (47,), "48", 48, 0, -0.0, 0.5, "0.5"),
]
PARTS = [
    *dict.fromkeys(check_part(one) for one in (47, 48, 1, 0, 0.5, "47.0", "True", "2024-03-01"))
]


@pytest.mark.parametrize("dtype", [object, "category", "by itself"])
def test_a_value_is_in_one_part_and_equal_values_in_the_same(dtype):
    cells = ODD if dtype != "category" else [one for one in ODD if not isinstance(one, list)]
    columns = [pd.Series(cells, dtype=object)]
    if dtype == "category":
        kept = [one for one in cells if type(one) is str or type(one) is int]
        columns, cells = [pd.Series(kept, dtype=object).astype("category")], kept
    elif dtype == "by itself":  # as pandas reads it, which keeps no class of texts
        cells = [one for one in cells if type(one) is not AlwaysEqual]
        columns = [pd.Series([one]) for one in cells]
    found = []
    for part in PARTS:
        condition = Condition.of_part("c", part, number_of(part))
        found.append(np.concatenate([keep(condition, column.to_frame("c")) for column in columns]))
    members = np.array(found)
    assert members.sum(axis=0).max() == 1
    assert members.any(axis=1).all()
    by_key: dict = {}
    for cell, own in zip(cells, members.T, strict=True):
        if key_of(cell) is not None and own.any():
            assert by_key.setdefault(key_of(cell), PARTS[own.argmax()]) == PARTS[own.argmax()]
    assert not any(
        own.any() for cell, own in zip(cells, members.T, strict=True) if type(cell) is AlwaysEqual
    )


def test_a_diagnosis_of_a_part_looks_at_its_rows_alone():
    frame = flights()
    steps = frame.dp.diagnose(dpf.count("zone"), part=47)
    assert steps["left"].loc[("rows", "not in the part week == 47")] == 3
    assert steps["left"].iloc[-1] == 3
    groups = frame.dp.diagnose(dpf.count("zone"), part=48, groups=True)
    assert list(groups["counted"]) == [1, 0]
    everything = frame.dp.diagnose(part=49)
    assert everything["left"].loc[("rows by zone", "counted")] == 1
    assert not frame.dp.ledger.entries
    with raises(DeclarationError, "holds texts", parameter="part"):
        frame.dp.diagnose(part="a")

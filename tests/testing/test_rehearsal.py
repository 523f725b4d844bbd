"""Made-up rows come from public facts alone, fill caps and go beyond, and keep their mark."""

import datetime
import pickle

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import dpframe as dpf
import dpframe.testing as dpt
from dpframe.errors import CallError, CertificateError, DeclarationError
from dpframe.provenance import MADE_UP

DAYS = (pd.Timestamp("2020-01-01"), pd.Timestamp("2020-03-01"))
FACTS = {
    "keys": {"zone": ["A", "B", "C"], "hour": range(24), "day": [datetime.date(2020, 1, 31)]},
    "bounds": {"fare": (-5, 100), "at": DAYS, "wait": (pd.Timedelta(0), pd.Timedelta(1, "h"))},
    "privacy_unit": "rider",
}


class Rides(pa.DataFrameModel):
    rider: int = pa.Field(ge=1000)
    ride: int = pa.Field(unique=True)
    zone: pd.CategoricalDtype = pa.Field(
        dtype_kwargs={"categories": ["A", "B"], "ordered": False}, nullable=True
    )
    paid: bool
    seats: pd.Int8Dtype = pa.Field(ge=1, le=4, nullable=True)
    fare: float = pa.Field(in_range={"min_value": 0, "max_value": 100})
    tip: float = pa.Field(gt=0)
    stop: pd.Timestamp = pa.Field(lt=pd.Timestamp("2019-01-01"))
    start: pd.DatetimeTZDtype = pa.Field(dtype_kwargs={"unit": "us", "tz": "UTC"})
    note: str = pa.Field(nullable=True)


def test_rows_have_the_keys_bounds_and_kinds_that_are_declared():
    made = dpt.rehearsal(rows=500, max_rows=12, **FACTS)
    assert set(made.columns) == {"zone", "hour", "day", "fare", "at", "wait", "rider"}
    assert len(made) == 500
    assert not made.isna().any(axis=None)
    assert set(made["zone"]) == {"A", "B", "C"}
    assert set(made["hour"]) <= set(range(24))
    assert set(made["day"]) == {datetime.date(2020, 1, 31)}
    assert (made["fare"].min(), made["fare"].max()) == (-5, 100)
    assert (made["at"].min(), made["at"].max()) == DAYS
    assert made["wait"].max() == pd.Timedelta(1, "h")


@pytest.mark.parametrize("nasty", [False, True])
def test_equal_arguments_make_equal_rows(nasty):
    first, again = (dpt.rehearsal(rows=300, seed=5, nasty=nasty, max_rows=9, **FACTS) for _ in "12")
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(dpt.rehearsal(rows=300, seed=6, nasty=nasty, max_rows=9, **FACTS))


def test_units_fill_every_cap_and_go_beyond_it():
    made = dpt.rehearsal(rows=2000, max_rows=30, max_groups=5, max_rows_per_group=8, **FACTS)
    rows = made["rider"].value_counts()
    assert {30, 31, 60} <= set(rows)
    assert (rows < 8).sum() > 100
    cells = made.groupby(["rider", "hour"]).size()
    assert cells.max() > 8
    groups = cells.groupby(level="rider").size()
    alone = rows[groups.reindex(rows.index) == 1]
    assert {8, 9, 16} <= set(alone)  # all their rows in one group
    assert {5, 6, 10} <= set(groups[groups == rows.reindex(groups.index)])  # a group for each row


@pytest.mark.parametrize("weeks", [None, range(1, 53)])
def test_units_of_several_columns_share_values_and_fill_caps(weeks):
    facts = {"privacy_unit": ["aircraft", "week"], "max_rows": 5}
    keys = {"zone": ["A", "B"]} | ({} if weeks is None else {"week": weeks})
    made = dpt.rehearsal(rows=800, keys=keys, **facts)
    rows = made.groupby(["aircraft", "week"]).size()
    assert {5, 6, 10} <= set(rows)
    assert made["aircraft"].nunique() < len(rows) / 3  # an aircraft is in several weeks
    assert rows.groupby(level="week").size().max() > 1
    assert weeks is None or set(made["week"]) == set(weeks)

    def publish(flights):
        flights.dp.declare(keys=keys, **facts)
        return flights.dp.count("zone", epsilon=1)

    assert dpt.check(publish, made, unit=["aircraft", "week"], units=2).measured


def test_rows_of_a_schema_pass_it():
    made = dpt.rehearsal(Rides, rows=400, privacy_unit="rider", max_rows=20)
    Rides.validate(made)
    assert list(made.columns) == list(Rides.to_schema().columns)
    assert made["rider"].min() == 1000
    assert made["ride"].is_unique
    assert made["tip"].max() > 50
    assert made["stop"].min() > pd.Timestamp("2017-12-01")
    for label in ("zone", "seats", "note"):
        assert 0 < made[label].isna().sum() < 40
    assert not made["fare"].isna().any()


def test_nasty_rows_have_what_nobody_declared():
    made = dpt.rehearsal(rows=1000, nasty=True, max_rows=12, **FACTS)
    plain = dpt.rehearsal(rows=1000, max_rows=12, **FACTS)
    assert made.isna().any().all()
    assert {"", " ", "undeclared", "A ", "a"} <= set(made["zone"])
    assert {"", "nan", "made-up 0 "} <= set(made["rider"])
    assert {-1, 24, 2**63 - 1, -(2**63)} <= set(made["hour"].dropna())
    fare = made["fare"]
    assert (fare < -5).any()
    assert (fare > 100).any()
    assert np.isinf(fare).sum() > 1
    assert made["at"].min() < DAYS[0]
    changed = (made["fare"] != plain["fare"]).mean()
    assert 0 < changed <= 0.5


def test_nasty_rows_of_a_schema_keep_its_dtypes():
    made = dpt.rehearsal(Rides, rows=400, nasty=True, privacy_unit="rider", max_rows=20)
    plain = dpt.rehearsal(Rides, rows=400, privacy_unit="rider", max_rows=20)
    assert made.dtypes.equals(plain.dtypes)
    with pytest.raises(pa.errors.SchemaErrors):
        Rides.validate(made, lazy=True)
    assert set(made["zone"].cat.categories) == {"A", "B"}
    assert made["seats"].min() == 0
    assert made["seats"].max() == 5  # what 8 bits cannot hold is left out


def test_what_was_declared_makes_rows():
    frame = pd.DataFrame({"zone": ["never seen"], "fare": [-1e9], "rider": [8], "other": ["x"]})
    private = frame.dp.declare(
        keys={"zone": ["A", "B"]}, bounds={"fare": (0, 1)}, privacy_unit="rider", max_rows=4
    )
    made = dpt.rehearsal(private.declaration, rows=50)
    assert list(made.columns) == ["fare", "zone", "rider"]
    assert set(made["zone"]) == {"A", "B"}
    assert made["fare"].between(0, 1).all()
    pd.testing.assert_frame_equal(dpt.rehearsal(private, rows=50), made)


def test_facts_beside_a_declaration_are_refused():
    private = pd.DataFrame({"zone": ["A"]}).dp.declare(privacy_unit=dpf.EACH_ROW)
    with pytest.raises(DeclarationError, match="keys") as caught:
        dpt.rehearsal(private.declaration, keys={"zone": ["A"]})
    assert caught.value.parameter == "keys"


@pytest.mark.parametrize(
    ("given", "error", "parameter"),
    [
        ({"rows": -1}, DeclarationError, "rows"),
        ({"rows": 1.0}, DeclarationError, "rows"),
        ({"rows": True}, DeclarationError, "rows"),
        ({"seed": "1"}, DeclarationError, "seed"),
        ({"row": 1}, CallError, "row"),
        ({"declaration": 3}, DeclarationError, "schema"),
        ({"privacy_unit": "rider"}, DeclarationError, "privacy_unit"),
        ({"bounds": {"fare": (1, 0)}}, DeclarationError, "bounds"),
        ({"bounds": 3}, DeclarationError, "bounds"),
    ],
)
def test_wrong_arguments_are_named(given, error, parameter):
    with pytest.raises(error) as caught:
        dpt.rehearsal(**given)
    assert caught.value.parameter == parameter


def _parquet(frame, folder):
    frame.to_parquet(folder / "rows.parquet")
    return pd.read_parquet(folder / "rows.parquet")


def _csv(frame, folder):
    frame.to_csv(folder / "rows.csv")
    return pd.read_csv(folder / "rows.csv")


OTHER = pd.DataFrame({"zone": ["A", "B"], "price": [1.5, 2.5]})
KEPT = {
    "copy": lambda made, _: made.copy(),
    "filter": lambda made, _: made[made["fare"] > 3],
    "query": lambda made, _: made.query("fare > 3"),
    "assign": lambda made, _: made.assign(twice=2 * made["fare"]),
    "sort": lambda made, _: made.sort_values("fare"),
    "drop": lambda made, _: made.dropna().drop(columns="hour"),
    "duplicates": lambda made, _: made.drop_duplicates("rider"),
    "types": lambda made, _: made.astype({"fare": "float32"}),
    "melt": lambda made, _: made.melt("rider"),
    "agg": lambda made, _: made.groupby("zone", as_index=False).agg({"fare": "sum"}),
    "head": lambda made, _: made.groupby("rider").head(2),
    "concat of parts": lambda made, _: pd.concat([part for _, part in made.groupby("zone")]),
    "pickle": lambda made, _: pickle.loads(pickle.dumps(made)),  # noqa: S301
    "parquet": _parquet,
}
LOST = {
    "merge": lambda made, _: made.merge(OTHER, on="zone"),
    "concat": lambda made, _: pd.concat([made, OTHER]),
    "named agg": lambda made, _: made.groupby("zone").agg(total=("fare", "sum")),
    "dummies": lambda made, _: pd.get_dummies(made[["zone"]]),
    "dict": lambda made, _: pd.DataFrame(made.to_dict("list")),
    "csv": _csv,
}


def test_made_up_rows_are_released_inside_of_tests_alone():
    made = dpt.rehearsal(rows=60, max_rows=4, **FACTS)
    facts = {**FACTS, "max_rows": 4}
    for call in (
        lambda frame: frame.dp.declare(**facts),
        lambda frame: frame[frame["fare"] > 3].dp.count("zone", keys=["A"], epsilon=1),
        lambda frame: frame.dp.plan(dpf.count(), epsilon=1).table,
    ):
        with pytest.raises(DeclarationError, match="made up"):
            call(made)
    with dpt.seeded_noise(1):
        made.dp.declare(**facts)
        released = made.dp.count("zone", epsilon=1)
        assert released.dp.certificate.releases[0].testing
    with pytest.raises(CertificateError):
        released.dp.interval()


def test_files_of_made_up_rows_are_released_inside_of_tests_alone(tmp_path):
    dpt.rehearsal(rows=60, max_rows=4, **FACTS).to_parquet(tmp_path / "rows.parquet")
    scan = dpf.scan_parquet(tmp_path / "rows.parquet")
    with pytest.raises(DeclarationError, match="made up"):
        scan.dp.declare(privacy_unit="rider", max_rows=4)
    with dpt.seeded_noise(1):
        scan.dp.declare(privacy_unit="rider", max_rows=4)
        assert len(scan.dp.count("zone", keys=["A", "B"], epsilon=1)) == 2


@pytest.mark.parametrize("step", KEPT)
def test_steps_keep_the_mark_as_the_pages_say(step, tmp_path):
    made = dpt.rehearsal(rows=60, max_rows=4, **FACTS)
    assert KEPT[step](made, tmp_path).attrs[MADE_UP] is True


@pytest.mark.parametrize("step", LOST)
def test_steps_lose_the_mark_as_the_pages_say(step, tmp_path):
    made = dpt.rehearsal(rows=60, max_rows=4, **FACTS)
    assert MADE_UP not in LOST[step](made, tmp_path).attrs


def test_columns_of_which_a_type_alone_is_declared_are_made_up():
    held = {"zone": "string", "rides": "int64", "day": "date", "paid": "bool"}
    made = dpt.rehearsal(types=held, privacy_unit=dpf.EACH_ROW, rows=50)
    assert set(made.columns) == set(held)
    assert (made["rides"].dtype, made["paid"].dtype) == (np.int64, np.bool_)

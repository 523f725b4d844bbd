"""What `check` finds in pipelines: usual mistakes, each by a named rule, and no false alarm."""

import asyncio
import contextlib
import itertools
import logging
import sqlite3
import sys
import uuid

import numpy as np
import pandas as pd
import pytest
from support import pipelines
from support.checking import let_all_charges_pass
from support.designing import keep_no_plans
from support.pipelines import FACTS, RIGHT, WRONG, by_zone, released, rides

import dpframe as dpf
import dpframe.testing as dpt
from dpframe.errors import DPFrameError, UnknownColumnError
from dpframe.strategies import linear
from dpframe.testing.check import ADVICE

SMALL = rides(120, 20)


def fault(pipeline, frame=SMALL, unit="rider", units=4, **options):
    """Check a pipeline that has something wrong."""
    with pytest.raises(dpt.PrivacyTestError) as caught:
        dpt.check(pipeline, frame, unit=unit, units=units, **options)
    return caught.value


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("pipeline", RIGHT, ids=lambda one: one.__name__)
def test_right_pipelines_pass(pipeline):
    assert dpt.check(pipeline, rides(), unit="rider", units=8).measured


def test_a_right_pipeline_with_the_relation_of_replacement_passes():
    assert dpt.check(pipelines.each_row_replaced, rides(60), units=4).measured


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("pipeline", WRONG, ids=lambda one: one.__name__)
def test_mistakes_are_found_by_a_rule(pipeline):
    found = fault(pipeline, rides(), units=8)
    assert found.rule == WRONG[pipeline], str(found)
    assert f"{found.rule}: " in str(found)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("kind", ["texts", "times", "floats", "categories", "nullable", "none"])
def test_units_of_all_types_pass_and_are_found(kind):
    frame = SMALL.copy()
    frame["rider"] = {
        "texts": lambda ids: "r" + ids.astype(str),
        "times": lambda ids: pd.Timestamp("2024-01-01") + pd.to_timedelta(ids, "D"),
        "floats": lambda ids: ids + 0.5,
        "categories": lambda ids: ids.astype("category"),
        "nullable": lambda ids: ids.astype("Int64").where(ids != ids[0]),
        "none": lambda ids: ids.astype(object).where(ids != ids[0]),
    }[kind](frame["rider"])
    assert dpt.check(by_zone, frame, unit="rider", units=3).measured
    assert fault(pipelines.ranked, frame, units=3).rule == "additivity"


def test_a_fault_names_unit_rule_draw_and_usual_causes():
    found = fault(pipelines.ranked)
    assert (found.rule, found.draw) == ("additivity", 0)
    assert found.unit in set(SMALL["rider"])
    words = f"rider {found.unit}", "draw 0", "Usual causes: rank, qcut"
    assert [one for one in words if one not in str(found)] == []


def test_ids_that_become_one_are_named():
    written = [f" R{one}" if at % 3 == 0 else f"r{one}" for at, one in enumerate(SMALL["rider"])]

    def cleaned(frame):
        rider = frame["rider"].str.strip().str.lower()
        return released(frame.assign(rider=rider))

    found = fault(cleaned, SMALL.assign(rider=written))
    assert found.rule == "additivity" and "cleaned ids" in str(found)
    clean = SMALL.assign(rider=[one.strip().lower() for one in written])
    assert dpt.check(cleaned, clean, unit="rider", units=4).measured


def hidden_if_small(frame):
    table = released(frame)
    sizes = frame["zone"].value_counts().reindex(table.index, fill_value=0)
    return table[sizes >= 5]


def warns_of_no_rows(frame):
    np.nanmean(frame["fare"].to_numpy())
    return released(frame)


def prints_long(frame):
    print("-" * 300, len(frame))
    return released(frame)


def spends_by_size(frame):
    frame.dp.declare(**FACTS)
    return frame.dp.count("zone", epsilon=round(9 / (len(frame) + 100), 6))


def no_keys(frame):
    return released(frame, keys={"zone": sorted(frame["zone"].unique())})


MESSAGES = {
    hidden_if_small: ["what is returned is not the same", ADVICE["result"]],
    warns_of_no_rows: ["RuntimeWarning: Mean of empty slice (line ", ADVICE["warned"]],
    prints_long: ["---- 120\\n' and ...", ADVICE["printed"]],
    spends_by_size: ["cost of 'count by zone' differ: epsilon 0.040909 and epsilon 0.0"],
    no_keys: ["got none.\n"],
    pipelines.cap_from_data: ["caps of ", "differ: max_rows=", ADVICE["facts"]],
    pipelines.ranked: [ADVICE["additivity"]],
}


@pytest.mark.parametrize("pipeline", MESSAGES, ids=lambda one: one.__name__)
def test_messages_say_what_differs_and_what_to_change(pipeline):
    found = str(fault(pipeline, units=1))
    assert [words for words in MESSAGES[pipeline] if words not in found] == [], found
    wrong = ("dpf.sum", "..\n", "0x", "PrivacyLoss", "It must not depend")
    assert [words for words in wrong if words in found] == [], found


def test_frames_of_another_type_are_named_by_their_type():
    def nothing(frame):
        table = released(frame)
        return table if len(frame) else None

    assert "is not the same: a TestTable and None" in str(fault(nothing))


def test_another_unit_is_named_first():
    def by_hour(frame):
        return released(frame, privacy_unit="hour")

    words = "The pipeline declares that units are in 'hour'; the check, that"
    assert words in str(fault(by_hour))


def test_a_pipeline_that_differs_by_itself_is_reported_as_that():
    numbers = itertools.count()

    def numbered(frame):
        return released(frame), next(numbers)

    def named(frame):
        return released(frame).rename(columns={"n": uuid.uuid4().hex})

    def shuffled(frame):
        frame = frame.assign(zone=frame["zone"].sample(frac=1).to_numpy())
        return released(frame)

    for pipeline in (numbered, named, shuffled):
        found = fault(pipeline)
        assert found.rule == "repetition" and "differs by itself" in str(found)


def test_what_is_kept_from_run_to_run_is_reported():
    kept = {}

    def prepared_once(frame):
        return released(kept.setdefault("rides", frame))

    def released_once(frame):
        if "released" not in kept:
            kept["released"] = released(frame)
        return kept["released"]

    assert fault(prepared_once).rule == "no effect"
    assert fault(released_once).rule == "repetition"


def test_a_pipeline_that_no_unit_moves_is_reported():
    assert fault(lambda frame: released(SMALL)).rule == "no effect"
    nothing = fault(lambda frame: None)
    assert nothing.rule == "no effect" and "released nothing" in str(nothing)


def test_a_pipeline_that_fails_is_reported_as_that():
    def fails(frame):
        raise KeyError("fare")

    def leaves(frame):
        released(frame)
        sys.exit(0)

    found = fault(fails)
    assert found.rule == "failure" and isinstance(found.__cause__, KeyError)
    assert "SystemExit: 0" in str(fault(leaves))
    empty = fault(lambda frame: released(frame, keys={"zone": [frame["zone"].mode()[0]]}))
    assert empty.rule == "empty frame" and "fails on an empty frame" in str(empty)


def test_errors_that_pipelines_catch_are_found():
    def hides(frame):
        try:
            return released(frame, bounds={"fare": (0, float(frame["fare"].max()))})
        except BaseException:
            return None

    assert fault(hides).rule == "invariance"


def test_objects_are_compared_by_what_they_hold():
    def made(frame, number):
        class Found:
            def __init__(self):
                self.table, self.number, self.whole = released(frame), number, self

        ledger = dpf.Ledger(budget=dpf.Budget(epsilon=3))
        return Found(), ledger, released(frame, ledger=ledger), lambda: number

    def of_size(frame):
        return made(frame, len(frame))[0]

    def behind_a_function(frame):
        return made(frame, len(frame))[-1]

    assert dpt.check(lambda frame: made(frame, 3), SMALL, unit="rider", units=1).measured
    assert "at .number: 120 and " in str(fault(of_size))
    assert "at .closure: 120 and " in str(fault(behind_a_function))


def test_plots_are_compared_by_what_they_show():
    def drawn(frame):
        from matplotlib.figure import Figure  # slow to import

        axes = Figure().subplots()
        released(frame)
        axes.bar(["rides"], [len(frame)])
        return axes

    assert "what is returned is not the same, at .drawn" in str(fault(drawn))


def test_generators_are_run_and_coroutines_refused():
    def tables(frame):
        yield released(frame)
        yield len(frame)

    async def later(frame):
        return released(frame)

    assert fault(tables).rule == "invariance"
    assert "is asynchronous" in str(fault(later))
    dpt.check(lambda frame: asyncio.run(later(frame)), SMALL, unit="rider", units=2)


def test_what_is_written_is_compared(tmp_path):
    def writes(frame):
        table = released(frame)
        place = tmp_path / f"zones-{len(frame)}.csv"
        dpf.write_csv(table, place)

    found = fault(writes)
    assert found.rule == "invariance" and "what is in files" in str(found)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["csv", "text", "renamed", "database"])
def test_files_that_others_write_are_compared(tmp_path, kind):
    def write(frame, number):
        path, table = tmp_path / "rides", pd.DataFrame({"n": [number]})
        if kind == "csv":
            table.to_csv(path)
        elif kind == "text":
            path.write_text(f"{number} rides")
        elif kind == "renamed":
            path.with_suffix(".new").write_text(f"{number} rides")
            path.with_suffix(".new").replace(path)
        else:
            with contextlib.closing(sqlite3.connect(path)) as database:
                table.to_sql("rides", database, if_exists="replace")
        return released(frame)

    found = str(fault(lambda frame: write(frame, len(frame)), units=1))
    assert f"what is in files is not the same, at ['{tmp_path / 'rides'}']" in found
    assert dpt.check(lambda frame: write(frame, 3), SMALL, unit="rider", units=1).measured


def test_all_levels_of_the_log_are_compared_and_handlers_left_alone():
    quiet = logging.getLogger("quiet")
    quiet.propagate = False
    before = logging.getLogger().level, list(logging.getLogger().handlers)

    def logs(frame):
        quiet.debug("rows: %d", len(frame))
        return released(frame)

    found = fault(logs)
    assert found.rule == "invariance" and "what is logged" in str(found)
    assert (logging.getLogger().level, logging.getLogger().handlers) == before


def test_odd_cells_can_be_left_out():
    def strict(frame):
        if frame["zone"].isna().any():
            raise ValueError("a zone is missing")
        return released(frame)

    assert fault(strict).rule == "invariance"
    assert dpt.check(strict, SMALL, unit="rider", units=3, odd_cells=False).measured


def test_charges_are_compared_with_the_unit_that_is_given():
    def by_ride(frame):
        return released(frame.assign(ride=range(len(frame))), privacy_unit="ride", max_rows=1)

    found = fault(by_ride)
    assert found.rule == "charge" and "was charged" in str(found)
    assert "declares that units are in 'ride'" in str(found) and "report" not in str(found)


def test_a_charge_that_is_too_small_is_a_fault_to_be_reported(monkeypatch):
    """Nothing that the pipeline does is wrong: it is not told to change anything."""
    moved = linear.movement
    monkeypatch.setattr(linear, "movement", lambda *given, **how: moved(*given, **how) / 9)
    keep_no_plans(monkeypatch)
    let_all_charges_pass(monkeypatch)
    found = fault(by_zone)
    assert found.rule == "charge" and "report this" in str(found)
    assert "anew" not in str(found) and "privacy_unit" not in str(found)


FLIGHTS = pd.DataFrame(
    {
        "aircraft": [1, 1, 1, 2, 2, 3, None, 3],
        "week": [1, 1, 2, 1, 2, 2, 1, 2],
        "hours": [1.0, 2.5, 4.0, 2.0, 8.0, 1.5, 3.0, 9.0],
    }
)


def flown(flights, neighboring="add_remove"):
    flights.dp.declare(
        keys={"week": [1, 2]},
        bounds={"hours": (0, 10)},
        privacy_unit=["week", "aircraft"],
        max_rows=2,
        neighboring=neighboring,
    )
    return flights.dp.sum("hours", by="week", epsilon=1)


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
def test_units_of_several_columns_are_tried(neighboring):
    seen = []

    def count_flights(flights):
        seen.append(flights.groupby(["week", "aircraft"]).size())
        return flown(flights, neighboring)

    unit = ["week", "aircraft"]
    assert dpt.check(count_flights, FLIGHTS, unit=unit, units=9).measured
    if neighboring == "add_remove":
        every = seen[0].index  # without each unit, and with it alone
        assert {one for made in seen for one in every.difference(made.index)} == {*every}
        assert {*every} <= {made.index[0] for made in seen if len(made) == 1}
        new = [one for made in seen for one in made.index.difference(every)]
        assert new and all(week in (1, 2) for week, _ in new)  # where keys are known


def test_units_of_several_columns_are_found():
    def by_aircraft(flights):  # in one week, it moves the other ones
        mean = flights.groupby("aircraft")["hours"].transform("mean")
        return flown(flights.assign(hours=flights["hours"] - mean / 4))

    found = fault(by_aircraft, FLIGHTS, ["week", "aircraft"], odd_cells=False)
    assert found.rule == "additivity"
    assert f"week, aircraft {found.unit}" in str(found) or "made-up unit" in str(found)


def test_arguments_are_checked():
    for unit in ("driver", ["rider", "driver"], ["rider", "rider"], []):
        with pytest.raises(UnknownColumnError, match="or a list of several"):
            dpt.check(by_zone, SMALL, unit=unit)
    with pytest.raises(DPFrameError, match=r"must be a pandas\.DataFrame"):
        dpt.check(by_zone, "rides.csv")
    with pytest.raises(UnknownColumnError, match="one column of the frame"):
        dpt.check(by_zone, SMALL, unit="driver")
    with pytest.raises(DPFrameError, match="units must be a whole number"):
        dpt.check(by_zone, SMALL, unit="rider", units=0)


def test_the_frame_is_as_it_was():
    frame = SMALL.copy()

    def changes(frame):
        frame["fare"] = frame["fare"].clip(0, 10)
        frame.drop(columns="hour", inplace=True)
        return released(frame)

    dpt.check(changes, frame, unit="rider", units=2)
    pd.testing.assert_frame_equal(frame, SMALL)
    assert frame.attrs == {}

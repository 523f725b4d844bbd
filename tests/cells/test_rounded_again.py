"""Cells are hidden and rounded and intervals joined in any order; all tables are written, twice."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.errors import CertificateError, QueryError

FEW, MANY = ["full"], [f"empty {at}" for at in range(8)]
LONG = (pd.Timedelta(0), pd.Timedelta("50s"))
DATES = (pd.Timestamp("2025-01-01"), pd.Timestamp("2025-01-02"))
PAIR = {"x": (0, 50), "tiny": (0, 0.2)}
STATISTICS = {
    "count": dpf.count(),
    "sum": dpf.sum("x", bounds=(0, 50)),
    "mean": dpf.mean("x", bounds=(0, 50)),
    "tiny": dpf.mean("tiny", bounds=(0, 0.2)),
    "rate": dpf.rate("late"),
    "variance": dpf.var("x", bounds=(0, 50)),
    "slope": dpf.slope("x", "tiny", bounds=PAIR),
    "length": dpf.mean("length", bounds=LONG),
    "time": dpf.mean("time", bounds=DATES),
}
LAWS = {"laplace": {"epsilon": 1}, "gaussian": {"rho": 0.5}}
STEPS = {
    "suppress": lambda table: table.dp.suppress(below=3, by="n"),
    "interval": lambda table: table.dp.interval(join=True),
    "round": lambda table: table.dp.round(1),
}


def private(rows=300):
    rng = np.random.default_rng(8)
    frame = pd.DataFrame({"zone": ["full"] * rows, "x": rng.uniform(0, 50, rows)})
    frame["day"], frame["tiny"], frame["late"] = 0, frame["x"] / 250, frame["x"] > 30
    frame["length"] = pd.to_timedelta(frame["x"], "s")
    frame["time"] = DATES[0] + frame["length"]
    return frame


def released(name, law, zones, days=(0,)):
    keys = {"zone": zones, "day": list(days)}
    query = dpf.aggregate([*keys], keys=keys, n=dpf.count(), cell=STATISTICS[name])
    return dpf.release(private(), query, **LAWS[law], privacy_unit=dpf.EACH_ROW)


def tables(name, law):
    """Release tables whose cells are all known, some of them, and none, if any can be missing."""
    yield released(name, law, FEW)
    some = released(name, law, FEW + MANY, days=(0, 1))
    yield some
    yield some.unstack()
    yield some.head(0)
    if some["cell"].isna().any():
        while (alone := released(name, law, MANY[:1]))["cell"].notna().all():
            continue  # an empty group of no known rows, one of two
        yield alone


def write_csv(table, path):
    table.dp.write_csv(path)
    return dpf.read_csv(path)


def write_excel(table, path):
    table.dp.write_excel(path)
    return dpf.read_excel(path)


def write_parquet(table, path):
    table.dp.write_parquet(path)
    return pd.read_parquet(path)


FILES = {".csv": write_csv, ".xlsx": write_excel, ".parquet": write_parquet}


def check_again(table, whole, folder):
    """Check that what is published already is published as it is."""
    once = table.dp.publish()
    certificate = once.dp.certificate
    assert once.dp.publish().dp.certificate == certificate
    for suffix, write in FILES.items():
        back = write(once, folder / f"one{suffix}")
        assert back.dp.certificate == certificate
        same = {"check_dtype": False, "check_like": True}  # files put ends beside their numbers
        plain = [pd.DataFrame(frame).reset_index() for frame in (back, once)]
        pd.testing.assert_frame_equal(*plain, **same)
        assert write(back, folder / f"two{suffix}").dp.certificate == certificate
    dpf.verify(once, against=whole)


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", STATISTICS)
def test_every_order_of_steps_is_written_and_again(name, law, tmp_path):
    for number, whole in enumerate(tables(name, law)):
        for at, order in enumerate(permutations(STEPS)):
            table = whole
            for step in order:
                table = STEPS[step](table)
            table.dp.publish()
            if at == number:  # each order in one pattern
                (folder := tmp_path / f"{number}").mkdir()
                check_again(table, whole, folder)


def test_an_interval_of_a_cell_that_is_hidden_is_not_published():
    whole = released("mean", "laplace", FEW + MANY)
    table = whole.dp.interval(join=True)
    table.dp.publish()
    known = whole["cell"].notna()
    for hidden in (known, known & (np.cumsum(known) == 1)):
        with pytest.raises(QueryError, match="'cell' is hidden where 'cell_low' tells it"):
            table.assign(cell=table["cell"].mask(hidden)).dp.publish()


@pytest.mark.parametrize("name", ["count", "mean", "tiny", "slope", "rate"])
@pytest.mark.parametrize("law", LAWS)
def test_no_end_of_a_published_table_moves_by_a_unit(name, law):
    table = released(name, law, FEW).dp.interval(join=True).dp.round(1).dp.publish()
    assert dpf.verify(table)
    unit = {"n": 1, "cell": 1 if name == "count" else 0.1}
    for label in ("n", "cell"):
        for side in ("low", "high"):
            ends = table[f"{label}_{side}"]
            for way in (-1, 1):
                moved = (ends + way * unit[label]).round(1).astype(ends.dtype)
                if (np.rint(moved / unit[label]) % 5 == 0).all():
                    continue  # that is a rounding to five units, to the outside
                with pytest.raises(CertificateError):
                    dpf.verify(table.assign(**{ends.name: moved}))


def test_a_unit_of_any_size_stays_when_a_table_is_rounded_again():
    table = released("sum", "laplace", FEW).dp.interval(join=True).dp.round(to=25)
    again = table.dp.round(1).dp.round(to=5)
    pd.testing.assert_frame_equal(pd.DataFrame(again), pd.DataFrame(table))
    twice = released("mean", "gaussian", FEW + MANY)  # a half that is rounded twice goes too far
    once, twice = twice.dp.round(0), twice.dp.round(3).dp.round(1).dp.round(0)
    pd.testing.assert_frame_equal(pd.DataFrame(once), pd.DataFrame(twice))


def test_all_cells_may_round_to_nothing():
    table = released("count", "laplace", FEW).dp.interval(join=True).dp.round(-3)
    assert table["n"].item() == 0
    assert dpf.verify(table) and dpf.verify(table.dp.publish())
    with pytest.raises(QueryError, match="would round all of 'cell' to 0"):
        released("rate", "laplace", MANY).dp.round(-1)


def test_a_table_that_shows_no_column_says_so():
    table = released("mean", "laplace", FEW)
    with pytest.raises(QueryError, match="shows none of the columns of its release"):
        table[[]].dp.publish()

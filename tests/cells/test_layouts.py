"""Tables that pandas makes of a release: each harmless call keeps the certificate, others lose it.

The same tables go through CSV and Parquet, and are compared with the release afterwards.
"""

import io
from functools import cache

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.cells.record import ATTRIBUTE

KEYS = {
    "zones": {"zone": list("ABCD"), "day": [0, 1, 2]},
    "days": {"day": list(pd.date_range("2024-01-01", periods=4)), "on": [False, True]},
    "months": {"m": list(pd.period_range("2024-01", periods=4, freq="M")), "zone": list("AB")},
    "od": {"origin": list("ABC"), "dest": list("ABC")},
    "codes": {"code": ["01", "1", "02"]},
    "ints": {"code": [1, 2, 3]},
    "texts": {"code": ["1", "2", "3"]},
    "ages": {"age": list(pd.interval_range(0, 30, periods=3)), "zone": list("AB")},
}


@cache
def release(name, seed=1):
    keys, rows = KEYS[name], 6000
    rng = np.random.default_rng(seed)
    drawn = {key: pd.Series(of).iloc[rng.integers(0, len(of), rows)] for key, of in keys.items()}
    df = pd.DataFrame({key: column.to_numpy() for key, column in drawn.items()})
    df["fare"] = rng.uniform(0, 50, rows)
    df.dp.declare(keys=keys, bounds={"fare": (0, 50)}, privacy_unit=dpf.EACH_ROW)
    query = {"n": dpf.count(), "total": dpf.sum("fare"), "fare": dpf.mean("fare")}
    return df.dp.aggregate(list(keys), **query, epsilon=1)


def whole(name):
    match name:
        case "full":
            return release("zones").dp.interval(join=True)
        case "alias":
            new = {"fare": "mean fare"}, {"zone": "borough"}, {"zone": {"A": "Alpha"}}
            return release("zones").dp.rename(new[0], levels=new[1], keys=new[2])
        case _:
            return release(name)


def read_again(frame, **options):
    return pd.read_csv(io.StringIO(frame.to_csv(**options)))


def of_arrow(frame):
    return frame.convert_dtypes(dtype_backend="pyarrow")


def middle(frame):
    return frame["n"].median()


GOOD = {
    "sort_values": lambda r: r.sort_values("n"),
    "head": lambda r: r.head(5),
    "tail": lambda r: r.tail(2),
    "nlargest": lambda r: r.nlargest(3, "n"),
    "query": lambda r: r.query("n > 300 and zone != 'A'"),
    "loc": lambda r: r.loc[["B", "D"]],
    "xs": lambda r: r.xs("B", drop_level=False),
    "columns": lambda r: r[["fare"]],
    "reorder": lambda r: r[["fare", "n"]],
    "sample": lambda r: r.sample(4, random_state=1),
    "round 1": lambda r: r.round(1),
    "round tens": lambda r: r.round({"n": -1}),
    "fives": lambda r: r.assign(n=(r["n"] / 5).round() * 5),
    "half up": lambda r: r.assign(fare=np.floor(r["fare"] * 10 + 0.5) / 10),
    "where": lambda r: r.where(r["n"] > middle(r)),
    "where cell": lambda r: r.where(r > 320),
    "unstack column": lambda r: r["n"].unstack("day"),
    "unstack all": lambda r: r.unstack("day"),
    "unstack zone": lambda r: r.unstack("zone"),
    "unstack rounded": lambda r: r["n"].unstack("day").round(-1),
    "unstack, stack": lambda r: r.unstack("day").stack(future_stack=True),
    "T": lambda r: r.T,
    "unstack, T": lambda r: r["n"].unstack("day").T,
    "stack": lambda r: r.stack(future_stack=True),
    "reset_index": lambda r: r.reset_index(),
    "reset one": lambda r: r.reset_index("day"),
    "swaplevel": lambda r: r.swaplevel(),
    "sort_index": lambda r: r.sort_index(ascending=False),
    "set_index": lambda r: r.reset_index().set_index(["day", "zone"]),
    "pivot": lambda r: r.reset_index().pivot(index="zone", columns="day", values="n"),
    "pivot all": lambda r: r.reset_index().pivot(index="zone", columns="day"),
    "pivot_table": lambda r: r.reset_index().pivot_table(index="zone", columns="day", values="n"),
    "melt": lambda r: r.reset_index().melt(id_vars=["zone", "day"]),
    "drop": lambda r: r.drop(index="A"),
    "drop column": lambda r: r.drop(columns="n"),
    "csv": read_again,
    "csv unstacked": lambda r: (
        read_again(r["n"].unstack("day")).set_index("zone").rename_axis(columns="day")
    ),
    "csv 2 decimals": lambda r: read_again(r, float_format="%.2f"),
    "reindex": lambda r: r.reindex(r.index[::-1]),
    "gaps": lambda r: r.where(r > 320).convert_dtypes(),
    "arrow": of_arrow,
    "float32": lambda r: r.astype("float32"),
    "float": lambda r: r.astype(float),
    "category": lambda r: r.reset_index().astype({"zone": "category"}),
    "Int64 keys": lambda r: r.reset_index().astype({"day": "Int64"}),
    "float keys": lambda r: r.reset_index().astype({"day": float}),
    "objects": lambda r: r.astype(object),
    "names dropped": lambda r: r.rename_axis([None, None]),
    "one group": lambda r: r.loc[[("A", 0)]],
    "series": lambda r: r["n"],
    "halves": lambda r: pd.concat([r.head(3), r.tail(3)]),
    "drop_duplicates": lambda r: r.drop_duplicates(),
    "dropna": lambda r: r.where(r["n"] > middle(r)).dropna(),
    "assign same": lambda r: r.assign(n=r["n"]),
    "copy": lambda r: r.copy(),
    "isin": lambda r: r[r.index.get_level_values("zone").isin(["A"])],
    "full: as it is": lambda r: r,
    "full: unstack": lambda r: r.unstack("day"),
    "full: head": lambda r: r.sort_values("n").head(3),
    "full: csv": read_again,
    "full: suppressed": lambda r: r.where(r["n"] > middle(r)),
    "days: sort": lambda r: r.sort_values("n"),
    "days: csv": read_again,
    "days: unstack": lambda r: r["n"].unstack("on"),
    "months: csv": read_again,
    "months: unstack": lambda r: r["n"].unstack("m"),
    "ages: csv": read_again,
    "ages: unstack": lambda r: r["n"].unstack("age"),
    "od: unstack": lambda r: r.unstack("dest"),
    "od: T": lambda r: r["n"].unstack("dest").T,
    "ints: texts": lambda r: read_again(r).astype({"code": str}),
    "texts: ints": read_again,
    "codes: reset": lambda r: r.reset_index(),
    "alias: as it is": lambda r: r,
    "alias: unstack": lambda r: r["n"].unstack("day"),
    "alias: csv": lambda r: read_again(r.sort_values("n")),
}


def made(name, tables):
    of = whole(name.partition(": ")[0] if ":" in name else "zones")
    return tables[name](of), of


def certified(table, of):
    if isinstance(table, pd.Series):
        table = table.to_frame()
    if ATTRIBUTE not in table.attrs:
        table = table.copy()
        table.attrs = {ATTRIBUTE: of.attrs[ATTRIBUTE]}
    return table


@pytest.mark.parametrize("name", GOOD)
def test_tables_keep_it_through_parquet(name, tmp_path):
    pytest.importorskip("pyarrow")
    table, of = made(name, GOOD)
    table = certified(table, of)
    if name == "full: suppressed":
        table = of.dp.suppress(below=middle(of), by="n")
    dpf.write_parquet(table, tmp_path / "table.parquet")
    dpf.verify(pd.read_parquet(tmp_path / "table.parquet"), against=of)

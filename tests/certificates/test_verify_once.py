"""Each public call on a released frame checks it once, however much it computes from it."""

import pandas as pd
import pytest

import dpframe as dpf
from dpframe.cells import verify

ZONES = ["A", "B", "C", "D"]


def trips():
    frame = pd.DataFrame({"zone": ZONES * 25, "late": [0, 1] * 50, "fare": [1.0, 2, 3, 4, 5] * 20})
    frame.dp.declare(
        keys={"zone": ZONES, "late": [0, 1]}, bounds={"fare": (0, 8)}, privacy_unit=dpf.EACH_ROW
    )
    return frame


def made(kind):
    if kind == "margins":
        return dpf.release(trips(), dpf.margins(["zone", "late"], ways=2), epsilon=1)
    query = {
        "columns": dpf.aggregate("zone", n=dpf.count(), s=dpf.sum("fare"), m=dpf.mean("fare")),
        "one": dpf.count("zone"),
        "keys": dpf.count(["zone", "late"]),
        "ranges": dpf.ranges("fare", 8, by="zone"),
    }[kind]
    return dpf.release(trips(), query, epsilon=1)


SEVERAL = {
    "concat": ("columns", lambda f: dpf.concat({"a": f, "b": made("columns")}, name="year"), 2),
    "verify against": ("columns", lambda f: dpf.verify(f.dp.round(1).head(2), against=f), 5),
    "certify": ("keys", lambda f: dpf.certify(f.unstack(), of=f), 2),
    "consistent": ("margins", dpf.consistent, 4),
    "change": ("columns", lambda f: f.dp.change(made("columns"), percent=True), 4),
    "combine": ("margins", lambda f: dpf.combine(f, {(): pd.Series([1.0])}), 1),
    "report": ("columns", lambda f: dpf.report([f, made("one")]), 2),
    "write_csv": ("columns", lambda f: f.dp.write_csv("table.csv"), 1),
    "write_parquet": ("columns", lambda f: f.dp.write_parquet("table.parquet"), 2),
    "write_excel": ("columns", lambda f: f.dp.write_excel("table.xlsx"), 2),
}


@pytest.fixture
def count(monkeypatch, tmp_path):
    """Count how often a frame is compared with its certificate."""
    monkeypatch.chdir(tmp_path)
    checks = []
    compare = verify._compare

    def counted(frame, opened):
        checks.append(frame)
        return compare(frame, opened)

    monkeypatch.setattr(verify, "_compare", counted)
    return checks


@pytest.mark.parametrize("name", SEVERAL)
def test_a_call_checks_each_of_its_frames_once(name, count):
    kind, call, frames = SEVERAL[name]
    call(made(kind))
    assert len(count) == frames

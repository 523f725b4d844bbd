"""What releases cost is recomputed from certificates: by `verify`, and by a script alone."""

import importlib.util
import json
from pathlib import Path

import pandas as pd
import pytest
from support.certifying import read_certificate, record_of, recorded

import dpframe as dpf
from dpframe.errors import CertificateError

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "recompute_epsilon.py"
TRIPS = pd.DataFrame(
    {
        "driver": [1, 1, 2, 2, 3],
        "zone": list("ABABA"),
        "hour": [0, 1, 0, 1, 1],
        "fare": [9.5, 12.0, 7.0, 3.0, 20.0],
        "weight": [1.0, 2.0, 0.5, 1.0, 3.0],
    }
)
GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-6}
CALLS = {
    "laplace": (dpf.count("zone"), {"mechanism": "laplace"}),
    "gaussian": (dpf.sum("fare", "zone"), GAUSSIAN),
    "box": (dpf.aggregate("zone", n=dpf.count(), s=dpf.sum("fare")), {"mechanism": "box"}),
    "staircase": (dpf.sum("fare", "zone"), {"mechanism": "staircase", "epsilon": 3}),
    "weights": (dpf.sum("fare", "zone", weights="weight"), {}),
    "margins": (dpf.margins(["zone", "hour"], 1), GAUSSIAN),
    "margins, pure": (dpf.margins(["zone", "hour"], 1), {"mechanism": "laplace"}),
    "ranges": (dpf.ranges("fare", range(0, 51, 2), "zone"), GAUSSIAN),
    "tables": ({"a": dpf.count("zone"), "b": dpf.mean("fare"), "c": dpf.count("hour")}, {}),
    "two laws": (
        {"a": dpf.count("zone"), "b": dpf.sum("fare")},
        {"mechanism": {"a": "laplace", "b": "gaussian"}, "delta": 1e-6},
    ),
    "found": (dpf.discover("zone", discovery=1e-7), GAUSSIAN),
    "found alone": (dpf.discover("zone"), GAUSSIAN),
    "found, pure": (dpf.discover("zone", discovery=1e-7), {"mechanism": "laplace"}),
    "set": (dpf.discover("zone", counts=False, discovery=1e-7), {"mechanism": "laplace"}),
    "selected": (dpf.quantile("fare", [0.25, 0.5], "zone"), {"mechanism": "select"}),
}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("recompute_epsilon", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def released(name, relation):
    frame = TRIPS.copy()
    frame.dp.declare(
        keys={"zone": list("AB"), "hour": [0, 1]},
        bounds={"fare": (0, 50), "weight": (0, 3)},
        privacy_unit="driver",
        max_rows=5,
        neighboring=relation,
        **({} if "margins" in name else {"max_groups": 2, "max_rows_per_group": 3}),
    )
    query, spend = CALLS[name]
    found = dpf.release(frame, query, **{"epsilon": 0.5, **spend})
    while isinstance(found, dict):
        found = next(iter(found.values()))
    return found


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("name", CALLS)
def test_a_script_without_dpframe_finds_what_is_promised(name, relation, script):
    found = released(name, relation)
    record = dpf.verify(found).to_dict()
    for release in json.loads(json.dumps(record))["releases"]:
        mu, epsilon, extra = script.recompute(release)
        promised = release["privacy_loss"]
        main, most = (mu, promised["mu"]) if mu else (epsilon, promised["epsilon"])
        assert 0.6 < main / most < 1 + 1e-11
        assert name in ("box", "weights", "tables") or main / most > 0.999
        near = 0.01 if "found" in name else 1e-5  # part of that delta is not used
        near = 1e-3 if name == "ranges" else near  # rows of other bins move a little more
        assert abs(epsilon / promised["epsilon"] - 1) < near or main / most < 0.999
        assert extra <= promised["extra_delta"] * (1 + 1e-11)
        assert extra >= 0.5 * promised["extra_delta"]
        assert not any("MORE" in line for line in script.compare(release))


@pytest.mark.parametrize(
    ("caps", "cells", "relation", "within"),
    [
        ((5, 2), (3, 2), "add_remove", False),
        ((5, 2), (2, 2), "add_remove", True),
        ((5, None), (3, 2), "add_remove", False),
        ((3, 9), (1, 3), "add_remove", True),
        ((3, 9), (1, 4), "replace", False),
        ((5, 2), (5, 2), "replace", True),
        ((5, 2), (6, 2), "replace", False),
        ((None, 2), (9, 2), "add_remove", True),
    ],
)
def test_the_script_counts_rows_over_all_cells(caps, cells, relation, within, script):
    times, rows = cells
    part = {"law": "laplace", "cells": [{"times": times, "rows": [rows, 0]}]}
    known = dict(zip(("max_rows", "max_rows_per_group"), caps, strict=True))
    release = {"privacy_unit": {"caps": known}, "neighboring": relation, "witness": [part]}
    assert script.most_rows(release) == within


def test_the_script_needs_nothing_of_dpframe():
    text = SCRIPT.read_text("utf-8")
    assert "import dpframe" not in text and "from dpframe" not in text
    assert len(text.splitlines()) <= 150


CHANGED = {
    "a smaller scale": lambda part: part["scales"].update({"0": part["scales"]["0"] * 0.99}),
    "another cell": lambda part: part["cells"][0].update(times=part["cells"][0]["times"] + 1),
    "another measurement": lambda part: part.update(alike=2),
    "farther": lambda part: part["cells"][0]["moves"].update({"0": [2, 0]}),
}


def test_a_witness_that_costs_more_than_is_promised_is_refused(script):
    for change in CHANGED.values():
        found = released("laplace", "add_remove")
        record = record_of(found)
        (release,) = record["releases"]
        change(release["witness"][0])
        assert any("MORE" in line for line in script.compare(release))
        found.attrs.clear()
        recorded(found, read_certificate(record).releases)
        with pytest.raises(CertificateError, match="more than it promises"):
            dpf.verify(found)


def test_the_worst_unit_is_said_in_words():
    found = released("laplace", "replace")
    (release,) = found.dp.certificate.releases
    (part,) = release.witness
    assert part.unit == "a unit in place of another, with 3 rows in each of 2 cells"
    assert part.unit in found.dp.certificate._repr_html_()
    page = dpf.report(found)
    assert "who loses the most" in page and f"{part.unit}: epsilon 0.5" in page

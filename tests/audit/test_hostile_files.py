"""Hundreds of files that somebody made to do harm: each is answered soon, in little memory.

They are read in processes of their own, which tell what each file took.
"""

import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from support.certifying import record_of
from support.crafting import ledger_of
from support.publishing import sidecar_of
from support.swelling import PAYLOADS, put, swollen, ways

import dpframe as dpf
from dpframe.cells.record import ATTRIBUTE, RECORD

pytestmark = [
    pytest.mark.audit,
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what a process takes"),
]

SECONDS, MEGABYTES = 2, 300
SIZE = 50_000
CASES = 300
READER = """
import json, resource, sys, time
from pathlib import Path
import pandas as pd
import dpframe as dpf
from dpframe.jobs.commands import main
from dpframe.jobs.output_paths import read_released

paths = [Path(line) for line in sys.stdin.read().splitlines()]
good, paths = paths[0], paths[1:]
dpf.verify(read_released(good))  # imports what is needed
for path in paths:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    command = ["ledger"] if path.suffix == ".ledger" else ["show", "--quiet"]
    try:
        said = main([*command, str(path)])
    except BaseException as error:
        said = repr(error)
    took = time.process_time() - begun
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps([path.name, said, took, more]), flush=True)
"""


@pytest.fixture(scope="module")
def released() -> pd.DataFrame:
    frame = pd.DataFrame({"zone": ["A", "B"], "fare": [1.0, 2.0]})
    query = dpf.aggregate("zone", keys=["A", "B"], n=dpf.count(), m=dpf.mean("fare", bounds=(0, 9)))
    made = dpf.release(frame, query, epsilon=1, privacy_unit=dpf.EACH_ROW)
    return made.dp.round(1).head(2)


def looked_at(good: Path, paths: list[Path]) -> list[tuple[str, object, float, float]]:
    """Read files in a process of its own; give exit codes, seconds and megabytes."""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", READER],
        input="\n".join(map(str, [good, *paths])),
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60 + SECONDS * len(paths),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [tuple(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("[")]


def check(answers: list[tuple[str, object, float, float]], number: int) -> None:
    assert len(answers) == number
    slow = [one for one in answers if one[2] > SECONDS or one[3] > MEGABYTES]
    assert slow == []
    odd = [one for one in answers if one[1] not in (0, 1, 2)]
    assert odd == []
    assert sum(one[1] != 0 for one in answers) > number / 2


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_certificates_in_files(tmp_path, released, kind):
    good = tmp_path / f"good.{kind}"
    write(released, good)
    record = record_of(released)
    source = random.Random(kind)
    cases = list(itertools.product(ways(record), PAYLOADS))
    paths = []
    for number, case in enumerate(source.sample(cases, CASES // 3)):
        path = tmp_path / f"{number} {case[1]} at {'.'.join(map(str, case[0]))}.{kind}"
        write_with(swollen(record, case, SIZE), released, good, path)
        paths.append(path)
    check(looked_at(good, paths), len(paths))


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write a released table."""
    if path.suffix == ".csv":
        dpf.write_csv(frame, path)
    else:
        frame.to_parquet(path)


def write_with(record: object, frame: pd.DataFrame, good: Path, path: Path) -> None:
    """Write a table with any certificate."""
    if path.suffix == ".csv":
        path.write_bytes(good.read_bytes())
        beside = json.loads(sidecar_of(good).read_bytes())
        sidecar_of(path).write_text(json.dumps({**beside, "certificate": record}))
        return
    table = pa.Table.from_pandas(pd.DataFrame(frame))
    attrs = {ATTRIBUTE: {RECORD: json.dumps(record)}}
    said = {**json.loads(table.schema.metadata[b"pandas"]), "attributes": attrs}
    metadata = {"pandas": json.dumps(said), "PANDAS_ATTRS": json.dumps(attrs)}
    parquet.write_table(table.replace_schema_metadata(metadata), path)


def test_sidecars(tmp_path, released):
    good = tmp_path / "good.csv"
    write(released, good)
    beside = json.loads(sidecar_of(good).read_bytes())
    own = [way for way in ways(beside) if way[0] != "certificate"]
    paths = []
    for number, case in enumerate(itertools.product(own, PAYLOADS)):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(good.read_bytes())
        sidecar_of(path).write_text(json.dumps(swollen(beside, case, SIZE)))
        paths.append(path)
    check(looked_at(good, paths), len(paths))


def test_ledgers(tmp_path, released):
    good = tmp_path / "good.parquet"
    write(released, good)
    bodies = []
    ledger_of(tmp_path / "probe.ledger", bodies.extend)
    cases = list(itertools.product(ways(bodies), PAYLOADS))
    paths = []
    for number, (way, name) in enumerate(random.Random(5).sample(cases, CASES // 3)):

        def change(bodies, way=way, name=name):
            bodies[:] = put(bodies, way, PAYLOADS[name](SIZE), beside=True)

        path = tmp_path / f"{number} {name} at {'.'.join(map(str, way))}.ledger"
        paths.append(ledger_of(path, change))
    check(looked_at(good, paths), len(paths))

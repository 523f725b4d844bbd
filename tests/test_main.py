"""The commands of a terminal and their exit codes."""

import json
import os
import subprocess
import sys

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from support.terminal import ALTERED, LATER, SOUND, UNREADABLE, main

import dpframe as dpf
from dpframe import columns
from dpframe.ledger import platform

HOLD = """
import pathlib, sys
from dpframe.ledger.locks import with_locked_file

def hold(_):
    print("held", flush=True)
    sys.stdin.read()

with_locked_file(pathlib.Path(sys.argv[1]), hold)
"""


@pytest.fixture
def released():
    trips = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2, 3]})
    query = dpf.aggregate(
        "zone", keys=["A", "B", "C"], n=dpf.count(), s=dpf.sum("fare", bounds=(0, 3))
    )
    return dpf.release(trips, query, epsilon=1)


def written(frame, folder, kind):
    path = folder / f"trips.{kind}"
    if kind == "csv":
        dpf.write_csv(frame, path)
    else:
        getattr(frame, f"to_{kind}")(path)
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_released_files_are_sound(released, tmp_path, capsys, kind):
    path = written(released, tmp_path, kind)
    assert main(["verify", str(path)]) == SOUND
    assert f"released, {released.dp.certificate.digest}" in capsys.readouterr().out
    assert main(["show", str(path)]) == SOUND
    shown = capsys.readouterr().out
    assert repr(released.dp.certificate) in shown
    assert "zone" in shown


def test_all_sheets_of_an_excel_file_are_checked(tmp_path, capsys):
    trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    ledger = dpf.Ledger.create(tmp_path / "a.ledger", budget=dpf.Budget(2))
    trips.dp.declare(keys={"zone": ["A", "B"]}, privacy_unit=dpf.EACH_ROW, ledger=ledger)
    table = trips.dp.count("zone", epsilon=1)
    path = tmp_path / "a.xlsx"
    table.dp.write_excel(path, tables={"Again": table.dp.percent()})
    assert main(["verify", str(path), "--ledger", str(tmp_path / "a.ledger"), "--json"]) == SOUND
    (facts,) = json.loads(capsys.readouterr().out)
    assert [*facts["tables"]] == ["Table", "Again"]
    assert facts["tables"]["Table"]["digest"] == table.dp.certificate.digest
    assert main(["verify", str(path)]) == SOUND
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        f"{path}, sheet 'Table'",
        f"{path}, sheet 'Again'",
    ]
    for command in (["show", str(path)], ["report", str(path), "--output", str(tmp_path / "x")]):
        assert main(command) == UNREADABLE
        assert "dpf.read_excel reads them" in capsys.readouterr().err
    strange = pd.DataFrame({"zone": ["A"]})
    strange.dp.declare(keys={"zone": ["A"]}, privacy_unit=dpf.EACH_ROW)
    other = strange.dp.count("zone", epsilon=1)
    table.dp.write_excel(path, tables={"Other": other})
    assert main(["verify", str(path), "--ledger", str(tmp_path / "a.ledger")]) == ALTERED
    book = openpyxl.load_workbook(path)
    book["Other"]["B2"] = 10**6
    book.save(path)
    assert main(["verify", str(path)]) == ALTERED


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_altered_files_are_not(released, tmp_path, capsys, kind):
    path = written(released, tmp_path, kind)
    if kind == "csv":
        path.write_text(path.read_text().replace("B", "b"))
    else:
        changed = pd.read_parquet(path)
        changed["n"] += 1000
        changed.to_parquet(path)
    for command in ("verify", "show"):
        assert main([command, str(path)]) == ALTERED
        out, err = capsys.readouterr()
        assert out == ""
        assert str(path) in err


def test_files_without_certificates_are_not_sound(tmp_path, capsys):
    path = tmp_path / "plain.parquet"
    pd.DataFrame({"x": [1]}).to_parquet(path)
    assert main(["verify", str(path)]) == ALTERED
    assert "carries no certificate" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["show", "verify"])
@pytest.mark.parametrize(
    "name", ["none.parquet", "none.csv", "trips.pkl", "trips", "broken.parquet"]
)
def test_what_cannot_be_read_has_a_code_of_its_own(tmp_path, capsys, command, name):
    (tmp_path / "trips.pkl").write_bytes(b"")
    (tmp_path / "trips").write_bytes(b"")
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    assert main([command, str(tmp_path / name)]) == UNREADABLE
    assert "cannot be read" in capsys.readouterr().err


def shown(error, path):
    """Check that what is said of a file is one line that a terminal shows, and return it."""
    (line,) = error.splitlines()
    assert line.isprintable()
    assert line.startswith(f"{path}: ")
    return line


def with_attrs(frame, value, path):
    """Write a Parquet file whose attrs hold any text."""
    from pyarrow import parquet

    table = pa.Table.from_pandas(frame)
    pandas = json.loads(table.schema.metadata[b"pandas"])
    pandas["attributes"] = "PLACE"
    said = json.dumps(pandas).replace('"PLACE"', value)
    metadata = {b"pandas": said.encode(), b"PANDAS_ATTRS": value.encode()}
    parquet.write_table(table.replace_schema_metadata(metadata), path)


DEEP = "[" * 100_000 + "]" * 100_000
ATTRS = {
    "no attrs": "{}",
    "no JSON": "{",
    "a certificate that is a text": '{"dpframe": "released"}',
    "a certificate without fields": '{"dpframe": {}}',
    "an older certificate": '{"dpframe": {"format": 1, "digest": "sha256:0"}}',
    "nothing": "null",
    "a deep certificate": f'{{"dpframe": {DEEP}}}',
    "a deep text": DEEP,
    "numbers too long": '{"dpframe": {"format": ' + "9" * 10_000 + "}}",
}


@pytest.mark.parametrize("command", ["show", "verify"])
@pytest.mark.parametrize("name", ATTRS)
def test_certificates_that_cannot_be_read_have_a_code_of_their_own(
    released, tmp_path, capsys, command, name
):
    path = tmp_path / "odd.parquet"
    with_attrs(released, ATTRS[name], path)
    assert main([command, str(path)]) == (ALTERED if name == "no attrs" else UNREADABLE)
    out, err = capsys.readouterr()
    assert out == ""
    assert len(shown(err, path)) < 1000


SIDECARS = {
    "deep": lambda _: DEEP,
    "binary": lambda _: "\x00\x01\ud800",
    "of wrong types": lambda s: json.dumps({**s, "kinds": 3}),
    "without a field": lambda s: json.dumps({k: v for k, v in s.items() if k != "levels"}),
    "without a certificate": lambda s: json.dumps({**s, "certificate": None}),
    "of another format": lambda s: json.dumps({**s, "format": 99}),
    "with a torn certificate": lambda s: json.dumps({**s, "certificate": {"format": 2}}),
}


@pytest.mark.parametrize("name", SIDECARS)
def test_sidecars_that_cannot_be_read_have_a_code_of_their_own(released, tmp_path, capsys, name):
    path = written(released, tmp_path, "csv")
    beside = tmp_path / "trips.csv.certificate.json"
    text = SIDECARS[name](json.loads(beside.read_text()))
    beside.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert main(["verify", str(path)]) == UNREADABLE
    assert "trips.csv.certificate.json' " in shown(capsys.readouterr().err, path)


PLACES = {
    "garbage": lambda path: path.write_bytes(bytes(range(256)) * 9),
    "nothing": lambda path: path.touch(),
    "a folder": lambda path: path.mkdir(),
    "nowhere": lambda _: None,
    "a beginning": lambda path: path.write_bytes(b"PAR1" + bytes(99)),
}


@pytest.mark.parametrize("command", ["show", "verify", "ledger"])
@pytest.mark.parametrize("suffix", ["parquet", "feather", "csv", "xlsx", "ledger"])
@pytest.mark.parametrize("what", PLACES)
def test_files_of_any_content_are_refused_in_one_line(tmp_path, capsys, command, suffix, what):
    path = tmp_path / f"odd.{suffix}"
    PLACES[what](path)
    # any bytes may be a table of texts, or a workbook, which has no certificate
    is_table = suffix == "csv" and command != "ledger" and path.is_file()
    is_table |= suffix == "xlsx" and command == "verify" and path.is_file()
    assert main([command, str(path)]) == (ALTERED if is_table else UNREADABLE)
    out, err = capsys.readouterr()
    assert out == ""
    shown(err, path)


def test_a_ledger_of_another_format_is_not_altered(tmp_path, capsys):
    path = tmp_path / "trips.ledger"
    dpf.Ledger.create(path, budget=dpf.Budget(1))
    data = bytearray(path.read_bytes())
    data[60:64] = (99).to_bytes(4)
    path.write_bytes(bytes(data))
    assert main(["ledger", str(path)]) == UNREADABLE
    assert "in the format of this version" in shown(capsys.readouterr().err, path)


def test_a_missing_package_is_named(released, tmp_path, capsys, monkeypatch):
    path = written(released, tmp_path, "parquet")
    monkeypatch.setattr(columns, "pa", None)
    assert main(["verify", str(path)]) == UNREADABLE
    assert "pyarrow" in shown(capsys.readouterr().err, path)


EVIL = "red\x1b[31m\u202e\x9b2J\x07\r\n  digest        sha256:fine\u2028"


def test_control_characters_are_escaped_in_a_terminal(tmp_path, capsys):
    trips = pd.DataFrame({EVIL: [EVIL, "B"]})
    frame = dpf.release(trips, dpf.count(EVIL, keys=[EVIL, "B"]), epsilon=1)
    path = written(frame, tmp_path, "parquet")
    assert main(["show", str(path)]) == SOUND
    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.splitlines())
    assert "\\x1b[31m\\u202e" in out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("  digest")] == [
        frame.dp.certificate.digest
    ]
    hostile = tmp_path / f"{EVIL[:8]}.parquet"
    assert main(["show", str(hostile)]) == UNREADABLE
    assert capsys.readouterr().err.rstrip("\n").isprintable()


@pytest.mark.full
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_terminals_of_any_encoding_get_an_answer(tmp_path, encoding):
    frame = dpf.release(
        pd.DataFrame({"zone": [0]}), dpf.count("zone", keys=["\u0141\u00f3d\u017a"]), epsilon=1
    )
    path = written(frame, tmp_path, "parquet")
    command = [sys.executable, "-m", "dpframe", "show", str(path)]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    told = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert (told.returncode, told.stderr) == (SOUND, b"")
    assert "d" in told.stdout.decode(encoding)


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="pipes break otherwise there")
def test_a_broken_pipe_is_no_error(released, tmp_path):
    path = written(released, tmp_path, "parquet")
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "dpframe", "show", str(path)]
    told = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (told.returncode, told.stderr) == (SOUND, b"")


def test_pickles_are_not_opened(tmp_path, capsys):
    (tmp_path / "trips.pkl").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    assert main(["verify", str(tmp_path / "trips.pkl")]) == UNREADABLE
    assert "can run code" in capsys.readouterr().err


def test_ledgers_are_shown_and_checked(tmp_path, capsys):
    path = tmp_path / "trips.ledger"
    ledger = dpf.Ledger.create(path, budget=dpf.Budget(1, 1e-6))
    frame = pd.DataFrame({"x": [1, 2]})
    frame.dp.declare(ledger=ledger)
    frame.dp.count(epsilon=0.25)
    assert main(["ledger", str(path)]) == SOUND
    shown = capsys.readouterr().out
    assert repr(ledger.status()) in shown
    assert f"head {ledger.head}" in shown
    data = bytearray(path.read_bytes())
    place = data.index(b"laplace")
    data[place : place + 7] = b"nothing"
    path.write_bytes(bytes(data))
    assert main(["ledger", str(path)]) == ALTERED
    assert "trips.ledger" in capsys.readouterr().err


@pytest.fixture
def charged(tmp_path):
    """A released file and the ledger that was charged for it."""
    ledger = dpf.Ledger.create(tmp_path / "trips.ledger", budget=dpf.Budget(1))
    trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    trips.dp.declare(keys={"zone": ["A", "B"]}, ledger=ledger)
    return written(trips.dp.count("zone", epsilon=0.25), tmp_path, "parquet"), ledger


def test_a_release_is_looked_up_in_its_ledger(charged, capsys):
    path, ledger = charged
    assert main(["verify", str(path), "--ledger", str(ledger.path)]) == SOUND
    out = capsys.readouterr().out
    assert out.startswith(f"{path}: released, sha256:")
    assert out.endswith(f", in ledger {ledger.ledger_id}\n")


def test_a_release_of_another_ledger_is_told(charged, tmp_path, capsys):
    path, ledger = charged
    other = dpf.Ledger.create(tmp_path / "other.ledger", budget=dpf.Budget(1))
    assert main(["verify", str(path), "--ledger", str(other.path)]) == ALTERED
    said = shown(capsys.readouterr().err, path)
    assert f"charged to ledger {ledger.ledger_id}, not to ledger {other.ledger_id}" in said


def test_an_altered_release_is_told_whatever_its_ledger_says(charged, tmp_path, capsys):
    path, ledger = charged
    changed = pd.read_parquet(path)
    changed["count"] += 1000
    changed.to_parquet(path)
    for place in (ledger.path, tmp_path / "none.ledger"):
        assert main(["verify", str(path), "--ledger", str(place)]) == ALTERED
        shown(capsys.readouterr().err, path)


def test_a_ledger_that_was_altered_vouches_for_nothing(charged, capsys):
    path, ledger = charged
    data = ledger.path.read_bytes()
    ledger.path.write_bytes(data.replace(b"laplace", b"nothing"))
    assert main(["verify", str(path), "--ledger", str(ledger.path)]) == ALTERED
    assert "entry 2 does not continue the chain" in shown(capsys.readouterr().err, path)


@pytest.mark.parametrize("what", PLACES)
def test_a_ledger_that_cannot_be_read_has_a_code_of_its_own(charged, tmp_path, capsys, what):
    place = tmp_path / "odd.ledger"
    PLACES[what](place)
    assert main(["verify", str(charged[0]), "--ledger", str(place)]) == UNREADABLE
    assert f"the ledger {place}: " in shown(capsys.readouterr().err, charged[0])


@pytest.mark.full
@pytest.mark.parametrize("command", ["ledger", "verify"])
def test_a_busy_ledger_is_not_an_altered_one(charged, capsys, monkeypatch, command):
    path, ledger = charged
    monkeypatch.setattr(platform, "USUAL_PATIENCE", 0.1)
    file = ledger.path if command == "ledger" else path
    more = [] if command == "ledger" else ["--ledger", str(ledger.path)]
    holding = [sys.executable, "-c", HOLD, str(ledger.path)]
    with subprocess.Popen(holding, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline().strip() == b"held"
        assert main([command, str(file), *more]) == LATER
        other.stdin.close()
    out, err = capsys.readouterr()
    assert out == ""
    assert "(it is locked)" in shown(err, file)
    assert main([command, str(file), *more]) == SOUND


def test_unknown_commands_are_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["sign", "trips.parquet"])
    assert stopped.value.code == UNREADABLE
    assert "invalid choice" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["show", "verify", "ledger"])
def test_an_empty_path_is_no_folder(capsys, command):
    with pytest.raises(SystemExit) as stopped:
        main([command, ""])
    assert stopped.value.code == UNREADABLE
    assert "must be the path of a file, got ''" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
@pytest.mark.parametrize("command", ["show", "verify", "ledger"])
def test_devices_and_pipes_are_not_read(tmp_path, capsys, command):
    pipe = tmp_path / "trips.csv"
    os.mkfifo(pipe)
    for path in ("/dev/null", str(pipe)):
        assert main([command, path]) == UNREADABLE
        assert "it is a device or a pipe, not a file" in shown(capsys.readouterr().err, path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-30],
        lambda data: data[:-200] + b"\xff" * 150 + data[-50:],
        lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1",
        lambda data: b"nothing of the kind",
    ],
    ids=["cut", "a footer", "a length", "something else"],
)
def test_damaged_files_are_called_so_in_plain_words(released, tmp_path, capsys, damage):
    path = written(released, tmp_path, "parquet")
    path.write_bytes(damage(path.read_bytes()))
    assert main(["verify", str(path)]) == UNREADABLE
    told = f"{path}: cannot be read: it is damaged, or no parquet file of a table."
    assert shown(capsys.readouterr().err, path) == told

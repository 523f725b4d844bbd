"""The commands of a terminal and their exit codes."""

import subprocess
import sys

import pandas as pd
import pytest

import dpframe as dpf
from dpframe.__main__ import ALTERED, SOUND, UNREADABLE, main


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


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv"])
def test_released_files_are_sound(released, tmp_path, capsys, kind):
    path = written(released, tmp_path, kind)
    assert main(["verify", str(path)]) == SOUND
    assert f"released, {released.dp.certificate['digest']}" in capsys.readouterr().out
    assert main(["show", str(path)]) == SOUND
    shown = capsys.readouterr().out
    assert repr(released.dp.certificate) in shown
    assert "zone" in shown


def test_post_processed_files_are_sound(released, tmp_path, capsys):
    path = written(released.dp.denoise("nonnegative"), tmp_path, "parquet")
    assert main(["verify", str(path)]) == SOUND
    assert "post-processed, sha256:" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_altered_files_are_not(released, tmp_path, capsys, kind):
    path = written(released, tmp_path, kind)
    if kind == "csv":
        path.write_text(path.read_text().replace("B", "b"))
    else:
        changed = pd.read_parquet(path)
        changed["n"] += 1
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


def test_a_missing_ledger_is_not_created(tmp_path, capsys):
    assert main(["ledger", str(tmp_path / "none.ledger")]) == UNREADABLE
    assert not list(tmp_path.iterdir())
    assert "none.ledger" in capsys.readouterr().err


def test_commands_that_there_are_not_are_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["sign", "trips.parquet"])
    assert stopped.value.code == UNREADABLE
    assert "invalid choice" in capsys.readouterr().err


def test_the_module_runs(released, tmp_path):
    path = written(released, tmp_path, "parquet")
    command = [sys.executable, "-m", "dpframe", "verify", str(path)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == SOUND
    assert subprocess.run([*command[:-1], "none"], capture_output=True, check=False).returncode == 2

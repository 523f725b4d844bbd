"""Files that somebody damaged: the terminal answers in one line, with a code."""

import json
import random

import pandas as pd
import pytest
from support.terminal import main

import dpframe as dpf

SEVERAL = [1, 1, 1, 2, 5, 20]
PIECES = [
    *[b'"', b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\r\n", b"\x00", b"\xff", b"\xef\xbb\xbf"],
    *[b"null", b"true", b"1e999", b"NaN", b"-", b"0", b"\\ud800", b"9" * 5000, b"[" * 12_000],
]
VALUES = [None, True, -1, 0, 1, "", "x", [], {}, 1e308, 10**400, float("nan"), 2**63, 1.5, {"a": 1}]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Give the bytes of sound files by name, with those of what stands beside them."""
    folder = tmp_path_factory.mktemp("sound")
    trips = pd.DataFrame(
        {"zone": ["A", "B"], "fare": [1.0, 2], "day": pd.to_datetime(["2020"] * 2)}
    )
    trips.dp.declare(bounds={"fare": (0, 3)}, keys={"zone": ["A", "B"], "day": trips["day"][:1]})
    totals = dpf.aggregate("zone", n=dpf.count(), s=dpf.sum("fare"))
    frames = {
        "totals": trips.dp.release(totals, epsilon=1),
        "means": trips.dp.mean("fare", "day", epsilon=1),
        "denoised": trips.dp.release(totals, mu=1, denoise="nonnegative"),
    }
    for name, frame in frames.items():
        frame.to_parquet(folder / f"{name}.parquet")
        dpf.write_csv(frame, folder / f"{name}.csv")
    trips.dp.declare(ledger=dpf.Ledger.create(folder / "trips.ledger", budget=dpf.Budget(1)))
    for _ in range(3):
        trips.dp.count(epsilon=0.1, note="weekly")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def damaged(draw, data):
    """Change, insert, cut, repeat or overwrite some bytes."""
    changed = bytearray(data)
    for _ in range(draw.choice(SEVERAL)):
        at, other = (draw.randrange(len(changed) + 1) for _ in range(2))
        length = draw.choice([1, 2, 10, 100])
        piece = changed[other : other + length]
        how = draw.randrange(5)
        if how == 0:
            changed[at : at + 1] = bytes([draw.randrange(256)])
        elif how == 1:
            changed[at:at] = draw.choice(PIECES)
        elif how == 2:
            del changed[at : at + draw.choice([length, len(changed)])]
        else:
            changed[at : at + length * (how == 3)] = piece
    return bytes(changed)


def places(value):
    """Give each object and list in JSON with each of its keys."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(below, dict | list):
            yield from places(below)


def rewritten(draw, data):
    """Change the value of a field, or drop it."""
    record = json.loads(data)
    holder, key = draw.choice(list(places(record)))
    if draw.random() < 0.3:
        del holder[key]
    else:
        holder[key] = draw.choice(VALUES)
    return json.dumps(record).encode()


def spoil(draw, sound, folder):
    """Write a file of which something is damaged."""
    name = draw.choice([name for name in sound if not name.endswith(".json")])
    files = {name: sound[name]}
    victim, how = name, damaged
    if name.endswith(".csv"):
        beside = f"{name}.certificate.json"
        files[beside] = sound[beside]
        victim = draw.choice(list(files))
        how = draw.choice([damaged, rewritten]) if victim == beside else damaged
    files[victim] = how(draw, files[victim])
    for place in folder.iterdir():
        place.unlink()
    for file, data in files.items():
        (folder / file).write_bytes(data)
    return folder / name


# 1,000 in all
@pytest.mark.sampled(every=20, full=3)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.filterwarnings("ignore")  # readers of other packages may warn of what they find
def test_damaged_files_have_an_exit_code_and_one_line(sound, tmp_path, capsys, seed):
    draw = random.Random(seed)
    seen = set()
    for _ in range(50):
        path = spoil(draw, sound, tmp_path)
        command = "ledger" if path.suffix == ".ledger" else draw.choice(["show", "verify"])
        code = main([command, str(path)])
        out, err = capsys.readouterr()
        seen.add(code)
        assert code in {0, 1, 2}
        assert (out == "") == (code > 0)
        assert len(err.splitlines()) == (code > 0)
        assert len(err) < 1000
    assert seen == {0, 1, 2}

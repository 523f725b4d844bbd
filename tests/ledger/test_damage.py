"""Files of ledgers that were damaged: each is refused in words of our own, or means the same."""

import contextlib
import hashlib
import os
import random
import sqlite3
from pathlib import Path

import pytest
from support.charging import ONE, entry, gaussian, pure
from support.raising import raises

from dpframe import Ledger
from dpframe.errors import LedgerError, TemporaryError

LOSSES = [pure(0.1), gaussian(0.05), pure(0.2)]
HEADER = 100  # bytes of an SQLite file that say how to read the others


@pytest.fixture
def path(tmp_path) -> Path:
    ledger = Ledger.create(tmp_path / "x.ledger", budget=ONE)
    for loss in LOSSES:
        ledger.charge(entry(loss))
    return ledger.path


def flipped(whole: bytes, source: random.Random) -> bytearray:
    damaged = bytearray(whole)
    damaged[source.randrange(len(whole))] ^= 1 << source.randrange(8)
    return damaged


def cut(whole: bytes, source: random.Random) -> bytes:
    return whole[: source.randrange(len(whole))]


def lengthened(whole: bytes, source: random.Random) -> bytes:
    return whole + source.randbytes(source.randrange(1, 10_000))


def overwritten(whole: bytes, source: random.Random) -> bytearray:
    damaged, start = bytearray(whole), source.randrange(len(whole))
    noise = source.randbytes(min(source.randrange(1, 64), len(whole) - start))
    damaged[start : start + len(noise)] = noise
    return damaged


def blanked(whole: bytes, source: random.Random) -> bytearray:
    damaged, start = bytearray(whole), 512 * source.randrange(len(whole) // 512)
    damaged[start : start + 512] = bytes(512)
    return damaged


def shifted(whole: bytes, source: random.Random) -> bytes:
    start = source.randrange(len(whole))
    return whole[:start] + source.randbytes(1) + whole[start:]


def without_sidecars(path: Path) -> None:
    for left in path.parent.glob(f"{path.name}-*"):
        left.unlink()


def refused(path: Path, expected: tuple[object, ...]) -> bool:
    """Open a file: it holds what is expected, or is refused by name."""
    try:
        assert Ledger(path).entries == expected
    except LedgerError as error:
        assert str(path) in str(error)
        assert not isinstance(error, TemporaryError)
        return True
    return False


DAMAGES = [flipped, cut, lengthened, overwritten, blanked, shifted]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_or_means_the_same(path, damage):
    whole, expected, source, found = path.read_bytes(), Ledger(path).entries, random.Random(8), 0
    for _ in range(250):
        path.write_bytes(damage(whole, source))
        found += refused(path, expected)
        without_sidecars(path)
    if damage is not lengthened:  # what follows the last page is not read
        assert found > 20
    path.write_bytes(whole)
    assert not refused(path, expected)


@pytest.mark.full
def test_every_bit_that_says_how_to_read_the_file(path):
    whole, expected, found = path.read_bytes(), Ledger(path).entries, 0
    for bit in range(8 * HEADER):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        found += refused(path, expected)
        without_sidecars(path)
    assert found > HEADER


@pytest.mark.sampled(every=3, full=2)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_ledger_at_work_is_refused_or_goes_on(path, damage):
    whole, source = path.read_bytes(), random.Random(9)
    for _ in range(60):
        path.write_bytes(whole)
        ledger = Ledger(path)
        path.write_bytes(damage(whole, source))
        for use in (ledger.status, lambda used=ledger: used.charge(entry(pure(0.01)))):
            with contextlib.suppress(LedgerError):
                use()
        assert ledger.last_status().losses[: len(LOSSES)] == tuple(LOSSES)
        without_sidecars(path)


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_texts_of_another_encoding_are_no_ledger(tmp_path, path, encoding):
    copied = tmp_path / "copied.ledger"
    with (
        contextlib.closing(sqlite3.connect(path)) as source,
        contextlib.closing(sqlite3.connect(copied)) as target,
    ):
        target.execute(f"PRAGMA encoding = '{encoding}'")
        target.executescript("\n".join(source.iterdump()))
    with raises(LedgerError, "dpframe"):
        Ledger(copied)


@pytest.mark.parametrize(
    "body",
    ["[" * 100_000, '{"protected": 1}', '{"protected": {"unit": 1, "neighboring": "replace"}}'],
)
def test_a_made_up_row_is_refused(path, body):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        number, head = connection.execute("SELECT max(number) + 1, hash FROM chain").fetchone()
        digest = hashlib.sha256(f"{head}\n{body}".encode()).hexdigest()
        connection.execute("INSERT INTO chain VALUES (?, ?, ?)", [number, body, digest])
    with raises(LedgerError, "written"):
        Ledger(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with raises(LedgerError, "pipe"):
        Ledger(tmp_path / "pipe")

"""One odd line moves no row of others: not in the reader, nor in releases of scans and plans."""

import io
import random

import pytest
from support.planning import Overrides, planned, read_plan, release_job

import dpframe as dpf
from dpframe.sources import text
from dpframe.sources.cells import Dialect
from dpframe.sources.text import LONGEST_LINE, Lines, Tally, TextReader

BITS = [b'"', b",", b"a", b"1", b"\\", b" ", b"\xff", b"\r", b'""', b"\0", b"'", b'","']
BITS += [b"\xef\xbb\xbf", b"-", b"9" * 400]
PLAIN = [b"%d,%d" % (i, i) for i in range(4)] + [b'"q,%d",%d' % (i, i) for i in range(4)]
CELLS = [(b"%d" % i, b"%d" % i) for i in range(4)] + [(b"q,%d" % i, b"%d" % i) for i in range(4)]


def odd_line(source, most=8):
    return b"".join(source.choices(BITS, k=source.randint(0, most)))


def read(data, **options):
    """Read two columns as bytes; give rows and what was left out."""
    tally = Tally()
    reader = TextReader(io.BytesIO(data), Dialect.of(**options), "a file")
    batches = reader.batches(dict.fromkeys(reader.labels, "id"), tally)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()], tally.lines


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("block", [7, 30, 1 << 22])
def test_an_odd_line_moves_no_other(monkeypatch, seed, block):
    monkeypatch.setattr(text, "_LINES_BLOCK", block)
    source = random.Random(f"{seed} {block}")
    for _ in range(40):
        end = source.choice([b"\n", b"\r\n"])
        place, odd = source.randrange(len(PLAIN)), odd_line(source)
        file = end.join([b"id,x", *PLAIN[:place], odd, *PLAIN[place + 1 :], b""])
        rows, left_out = read(file)
        assert rows[:place] == CELLS[:place]
        behind = CELLS[place + 1 :]
        assert rows[len(rows) - len(behind) :] == behind
        own = len(rows) - len(CELLS) + 1
        assert own + left_out == (odd not in (b"", b"\r") or (odd == b"\r" and end == b"\r\n"))


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        (b'"a,b",1', (b"a,b", b"1")),
        (b'"a""b",1', (b'a"b', b"1")),
        (b'a"b,1', (b'a"b', b"1")),
        (b'"a"b,1', (b"ab", b"1")),
        (b'"",1', (None, b"1")),
        (b',"1"', (None, b"1")),
        (b'"1', None),
        (b'x","z', None),
        (b'"x","z', None),
        (b"a", None),
        (b"a,b,c", None),
        (b"a\rb,c", None),
        (b'"a\rb",c', None),
        (b"9," + b"x" * LONGEST_LINE, None),
        (b"\xff,1", (b"\xff", b"1")),
        (b"\xff", None),
        (b"\0,1", (b"\0", b"1")),
    ],
    ids=range(17),
)
def test_a_line_is_a_row_or_left_out(line, cells):
    rows, left_out = read(b"id,x\n1,1\n" + line + b"\n2,2\n")
    middle = [] if cells is None else [cells]
    assert rows == [(b"1", b"1"), *middle, (b"2", b"2")]
    assert left_out == (cells is None)


def test_line_ends_within_quotes_need_trust():
    file = b'id,x\n"a\nb",1\n"c\r\nd",2\n"e\rf",3\ng\rh,4\n5,5\n'
    rows, left_out = read(file, newlines=True)
    assert rows == [(b"a\nb", b"1"), (b"c\r\nd", b"2"), (b"e\rf", b"3"), (b"5", b"5")]
    assert left_out == 1
    rows, left_out = read(file)
    assert (rows, left_out) == ([(b'b"', b"1"), (b'd"', b"2"), (b"5", b"5")], 4)


@pytest.mark.parametrize("seed", range(4))
def test_trust_raises_nothing(monkeypatch, seed):
    monkeypatch.setattr(text, "_LINES_BLOCK", 64)
    monkeypatch.setattr(text, "LONGEST_LINE", 100)
    source = random.Random(seed)
    for _ in range(100):
        odd = [odd_line(source, 30) for _ in range(source.randint(1, 6))]
        read(b"id,x\n" + b"\n".join([*PLAIN, *odd, *PLAIN]), newlines=True)


def test_empty_lines_are_no_rows_and_the_last_needs_no_end():
    assert read(b"\n\r\nid,x\n\n1,1\r\n\r\n2,2") == ([(b"1", b"1"), (b"2", b"2")], 0)
    assert Lines(io.BytesIO(b""), b",").header == b""


# Releases --------------------------------------------------------------------------------------

KEYS = [f"key-{number}" for number in range(60)]
HEADER = b"driver,zone,fare\n"


def file_with(odd, source):
    """Write a row of each key among odd lines, in any order."""
    rows = [f"{number},{key},5".encode() for number, key in enumerate(KEYS)]
    mixed = [*rows, *odd]
    source.shuffle(mixed)
    return HEADER + b"\n".join(mixed)


def check_scan(path):
    scan = dpf.scan(path, types={"driver": "id", "zone": "string", "fare": "float64"})
    scan.dp.declare(keys={"zone": KEYS}, privacy_unit="driver", max_rows=2, bounds={"fare": (0, 9)})
    found = scan.dp.aggregate("zone", n=dpf.count(), total=dpf.sum("fare"), epsilon=1e9)
    assert found["n"].tolist() == [1] * len(KEYS)
    assert found["total"].round(3).tolist() == [5.0] * len(KEYS)


def check_plan(path):
    changes = [
        ("trips-{month}.csv", path.name),
        ('["A", "B", "C"]', str(KEYS).replace("'", '"')),
        ('share = "1/12"', "epsilon = 1e9\ndelta = 0"),
        ("trips.ledger", "large.ledger"),
        ("trips {month}", "trips"),
        ("{query}-{month}", "{query}"),
    ]
    dpf.Ledger.create(path.parent / "large.ledger", budget=dpf.Budget(1e10, 1e-9))
    job = read_plan(planned(path.parent, *changes), Overrides())
    assert release_job(job).frames["by_zone"]["trips"].tolist() == [1] * len(KEYS)


def check_releases(folder, seed, files, lines_each):
    source = random.Random(seed)
    for number in range(files):
        path = folder / str(number) / "rows.csv"
        path.parent.mkdir()
        odd = [odd_line(source, source.choice([3, 8, 20])) for _ in range(lines_each)]
        path.write_bytes(file_with(odd, source))
        check_scan(path)
        check_plan(path)


def test_odd_lines_change_no_release(tmp_path):
    check_releases(tmp_path, 1, files=2, lines_each=100)


@pytest.mark.audit
def test_twenty_thousand_odd_lines_change_no_release(tmp_path):
    check_releases(tmp_path, 2, files=50, lines_each=400)

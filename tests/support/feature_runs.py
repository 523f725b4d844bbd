"""One case of features, asked and tried: what a unit costs, and whether answers are true."""

import itertools
import math
import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pytest
from support.covering import RefusedError
from support.feature_tables import declared, options_of, request_of, tables_of, true_tables
from support.feature_units import adversaries, beside, beyond, frame_of
from support.law_costs import charged_of, costs_of, is_within
from support.randomness import SYSTEM

import dpframe as dpf
import dpframe.dask
from dpframe.checker.witness import Found, Witness
from dpframe.engines.pandas import PandasEngine
from dpframe.operations import pipeline
from dpframe.testing.block import TestBlock

DELTA = 1e-5  # of budgets
SLACK = 1e-9  # of sums of floats

KNOWN_REFUSALS = ("does not apply to these queries", "staircase noise needs an epsilon of")
"""What may be said of a case that cannot be asked; whatever else is said is a fault."""


@dataclass(frozen=True)
class Tried:
    """What a case gave.

    Parameters
    ----------
    ratio
        The most that a pair of neighbors costs, as a multiple of what is charged.
    faults
        What else is wrong.
    plan
        Its plan.
    """

    ratio: float
    faults: tuple[str, ...]
    plan: object

    @property
    def is_wrong(self):
        return self.ratio > 1 + SLACK or bool(self.faults)


class NoNoise(TestBlock):
    """A testing block in which noise is 0."""

    def draw(self, operation, exact, entry):
        self.operation = operation
        return exact


def engine_frame(name, frame, folder):
    """The frame as an engine reads it, in several parts."""
    match name:
        case "pandas":
            return frame
        case "dask":
            return dd.from_pandas(frame, npartitions=3)
        case "files":
            place = Path(tempfile.mkdtemp(dir=folder))
            for at, part in enumerate((frame.iloc[::2], frame.iloc[1::2])):
                part.to_parquet(place / f"{at}.parquet")
            return dpf.scan_parquet(place, progress=False)
    raise AssertionError(name)


def ask(case):
    """Ask a case, and try units on it.

    Raises
    ------
    RefusedError
        If it cannot be asked, for a reason that is known.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _ask(case, folder)


def _ask(case, folder):
    benign = frame_of([])
    frame = declared(case, engine_frame(case["engine"], benign, folder))
    with NoNoise(folder=folder) as block:
        try:
            released = dpf.release(frame, request_of(case), **options_of(case))
        except dpf.errors.DPFrameError as error:
            raise RefusedError(_known(error)) from None
    operation = block.operation
    faults = [*_untrue(case, released, benign)]
    plan = operation.plan
    measured = _Measured(case, operation, folder)
    faults += measured.faults
    delta = DELTA if plan.spend.delta is None else plan.spend.delta
    if not is_within(plan.spend, plan.loss, delta):
        faults.append("more is charged than was asked for")
    costs = costs_of(plan, measured.units, pairs_of(case, len(measured.units)))
    worst, charged = float(sum(costs).max(initial=0.0)), charged_of(plan.loss)
    witness = pipeline.check_charge(operation, plan.loss)
    if witness.found and not are_bounded(costs, witness):
        faults.append("a unit costs more than the check of its charge found")
    ratio = worst / charged if charged else math.inf * bool(worst)
    return Tried(ratio, tuple(faults), plan)


def are_bounded(costs, witness):
    """Whether what pairs cost is, for every measurement, at most what the check has found.

    Where it tried a sample of units alone, as of squares, it says so, and may have found less.
    """
    return all(
        found.sampled or own.max() <= float(found.cost) * (1 + SLACK)
        for own, found in zip(costs, witness.found, strict=True)
    )


@contextmanager
def unchecked():
    """Leave the check of charges out, so that what costs too much is asked, and tried."""
    with pytest.MonkeyPatch.context() as patch:
        nobody = Witness((Found("laplace", {}, (), "nobody was looked for"),))
        patch.setattr(pipeline, "check_charge", lambda *charged: nobody)
        yield


def refusal_of(case):
    """What is said where a case cannot be asked; nothing where it can."""
    try:
        frame = declared(case, frame_of([]))
        frame.dp.plan(request_of(case), **options_of(case))
    except dpf.errors.DPFrameError as error:
        return str(error)
    return ""


def _known(error):
    """Why a case cannot be asked; a refusal that is not known is a fault."""
    for known in KNOWN_REFUSALS:
        if known in str(error):
            return known
    raise error


class _Measured:
    """The integers of others beside each of some units."""

    def __init__(self, case, operation, folder):
        self.case, self.operation, self.folder = case, operation, folder
        chosen = adversaries(case)
        nowhere, elsewhere = beside(case)
        self.units = [self._measure(unit) for unit in ([], *chosen, nowhere)]
        if case["engine"] != "pandas":
            self.units.append(self._by_engine(beyond(case)))
        self.faults = [*self._faults(chosen[0], elsewhere)]

    def _faults(self, unit, elsewhere):
        """Say what is wrong, whatever it costs, with a unit that fills its caps and no more."""
        others, own = self.units[:2]
        if elsewhere and not _are_equal(others, self._measure(elsewhere)):
            yield "a unit of another part moves what is measured"
        alone, nobody = self._measure(unit, alone=True), self._measure([], alone=True)
        if self.case["tables"] == "of other caps":
            return  # one table leaves some rows out, at random
        if not _are_equal(_added(own, nobody), _added(others, alone)):
            yield "a unit adds other numbers beside others than alone"
        engine = self.case["engine"]
        if engine != "pandas" and not _are_equal(own, self._by_engine(unit)):
            yield f"{engine} totals other numbers than pandas"

    def _measure(self, unit, *, alone=False):
        plain = replace(self.operation, engine=PandasEngine())
        return plain.measure(frame_of(unit, alone=alone), SYSTEM)

    def _by_engine(self, unit):
        frame = engine_frame(self.case["engine"], frame_of(unit), self.folder)
        with dask.config.set(scheduler="synchronous"):
            return self.operation.measure(frame, SYSTEM)


def pairs_of(case, count):
    """Which of some frames are neighbors, the first one of them without a unit."""
    if case["relation"] == "add_remove":
        return np.zeros(count, int), np.arange(count)
    first = 1 if case["unit"] == "row" else 0  # rows are replaced, and never leave
    one, other = np.triu_indices(count - first, 1)
    return one + first, other + first


def _added(one, other):
    with np.errstate(over="ignore"):
        return [list(map(np.add, *blocks)) for blocks in zip(one, other, strict=True)]


def _are_equal(one, other):
    blocks = zip(itertools.chain(*one), itertools.chain(*other), strict=True)
    return all(np.array_equal(*pair) for pair in blocks)


def _untrue(case, released, frame):
    """Say which tables, decoded without noise, are not what pandas says."""
    tables = tables_of(case)
    if case["known"] == "yes" or (case["unit"] == "row" and case["kind"] == "units"):
        return
    several = released if len(tables) > 1 else {next(iter(tables)): released}
    for name, table in tables.items():
        margins = table.form == "margins"
        found = several[name] if margins else {table.by: several[name]}
        for by, expected in true_tables(table, frame, case).items():
            own = found[by]
            values = own.iloc[:, : expected.shape[1]].to_numpy(float)
            known = expected.notna().to_numpy()
            apart = np.abs(values - expected.to_numpy(float))[known]
            if apart.max(initial=0.0) > 1e-3:
                yield f"table {name} by {by} is off by {apart.max():g}"

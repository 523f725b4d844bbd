"""Finding groups in neighboring frames: what a unit brings adds one to its labels, and no more.

Whatever the cells hold, nothing is raised or warned of, and the result has the dtypes that were
asked for. Noise is left out, so that all that a unit moves is seen.
"""

import itertools
from collections import Counter
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from support.dasking import split
from support.hostile import DAY, HOSTILE, KINDS, NOON, OBJECTS
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.engines import engine_for
from dpframe.errors import ReleaseError
from dpframe.operations import planning
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.threshold import UNIT_WEIGHT, weights_of
from dpframe.queries.tasks import LabelAxis, LabelTask

LABELS = ["string", "int64", "bool", "date", "datetime"]
SPEND = {"epsilon": 5, "delta": 1e-3}
ZONE = LabelAxis("zone", "string", 9)
BASE = [(unit, zone) for unit, zone in enumerate("AAAABBBC")]  # within all caps


@pytest.fixture(autouse=True)
def quiet():
    """Draw no noise."""
    zeros = mock.patch.object(Law, "draw", lambda law, scales, size, *_: [np.zeros(size, np.int64)])
    with zeros:
        yield


def column(values):
    cells = np.empty(len(values), object)
    for row, value in enumerate(values):
        cells[row] = value
    return pd.Series(cells, dtype=object)


def counted(frame, task):
    found = engine_for(frame).labels(frame, task, SYSTEM)
    labels = zip(*(part.tolist() for part in found.labels), strict=True)
    return Counter(dict(zip(labels, found.units.tolist(), strict=True)))


UNITS = [zones for n in range(5) for zones in itertools.combinations_with_replacement("ABDE", n)]


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("kind", ["pandas", "dask"])
def test_a_unit_moves_as_many_counts_by_one_as_it_has_labels_but_no_more_than_its_cap(kind, most):
    task = LabelTask((ZONE,), most, None, ("u",))
    for zones in UNITS if kind == "pandas" else UNITS[::7]:
        rows = [*BASE, *(("new", zone) for zone in zones)]
        frame = pd.DataFrame(rows, columns=["u", "zone"]).astype(object)
        frame = frame if kind == "pandas" else split(frame, 3)
        moved = counted(frame, task)
        moved.subtract(Counter((zone,) for _, zone in BASE))
        moved = +moved | -moved
        assert moved.total() == min(most, len(set(zones)))
        assert set(moved.values()) <= {1} and {zone for (zone,) in moved} <= set(zones)


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("kind", ["pandas", "dask"])
def test_a_unit_moves_weights_by_what_its_number_of_labels_says(kind, law):
    weights, known = weights_of(law, 2), (np.array(["D", "X"], object),)
    task = LabelTask((ZONE,), 2, None, ("u",), weights, known)
    before = Counter({("A",): 4 * weights[0], ("B",): 3 * weights[0], ("C",): weights[0]})
    for zones in UNITS if kind == "pandas" else UNITS[::7]:
        rows = [*BASE, *(("new", zone) for zone in zones)]
        frame = pd.DataFrame(rows, columns=["u", "zone"]).astype(object)
        moved = counted(frame if kind == "pandas" else split(frame, 3), task)
        moved.subtract(before)
        left = {*zones} - {"D"}
        kept = min(2, len(left))
        steps = {zone: step for (zone,), step in moved.items() if step}
        assert len(steps) == kept and {*steps} <= left
        assert {*steps.values()} <= {weights[kept - 1]}
        assert sum(step**law.norm for step in steps.values()) <= UNIT_WEIGHT**law.norm


every = pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.audit)])


@every
@pytest.mark.parametrize("dtype", LABELS)
def test_a_row_counts_for_its_label_or_for_nothing(dtype, every):
    one = {"string": "A", "int64": 1, "bool": True, "date": DAY, "datetime": NOON}[dtype]
    plain = pd.DataFrame({"zone": column([one] * 20)})
    before = plain.dp.discover("zone", dtype=dtype, **SPEND)
    assert before["units"].to_dict() == {one: 20}
    values = [*HOSTILE, *OBJECTS, [], {}, "x" * 300, "\ud800", "a\0", 2**70, b"A"]
    for value in values[LABELS.index(dtype) % every :: every]:  # each for one of the dtypes
        frame = pd.DataFrame({"zone": column([value, *[one] * 20])})
        found = frame.dp.discover("zone", dtype=dtype, **SPEND)
        pd.testing.assert_index_equal(found.index, before.index)
        assert found["units"].tolist() in ([20], [21])


@every
@pytest.mark.parametrize("dtype", LABELS)
def test_columns_of_any_dtype_give_the_dtype_asked_for(dtype, every, monkeypatch):
    monkeypatch.setattr(planning, "check_matches", lambda *_: None)  # some dtypes are refused
    expected = pd.DataFrame({"zone": []}).dp.discover("zone", dtype=dtype, **SPEND)
    for kind in KINDS[LABELS.index(dtype) % every :: every]:
        cells = kind.column(kind.chosen(np.random.default_rng(2).integers(0, 256, 300).tolist()))
        found = pd.DataFrame({"zone": cells, "u": cells}).dp.discover("zone", dtype=dtype, **SPEND)
        assert found.index.dtype == expected.index.dtype
        assert found.index.is_unique and found.index.is_monotonic_increasing
        assert found["units"].dtype == np.int64


@pytest.mark.parametrize("error", [MemoryError, OSError("A"), RuntimeError("A"), KeyError("A")])
def test_what_fails_after_the_charge_shows_nothing_private(error):
    frame = pd.DataFrame({"zone": ["A"]})
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, budget=dpf.Budget(1, 1e-6, 1e-7))
    place = "dpframe.engines.pandas.label_counts"
    with mock.patch(place, side_effect=error), pytest.raises(ReleaseError) as caught:
        frame.dp.discover("zone", epsilon=0.5)
    assert "'A'" not in str(caught.value) and caught.value.__context__ is None
    assert len(frame.dp.ledger.entries) == 1

"""Units by label: the same in every engine, and one unit moves no other."""

import itertools
import time
from collections import Counter, defaultdict
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from support.dasking import split
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.engines import engine_for, scans
from dpframe.engines.labels import label_counts
from dpframe.privacy import noise
from dpframe.queries.tasks import LabelAxis, LabelTask
from dpframe.queries.where import Condition

ZONE, DAY = LabelAxis("zone", "string", 4), LabelAxis("day", "int64")
WHERE = Condition.parse("fare > 2")
RNG = np.random.default_rng(8)
ROWS = 400
FRAME = pd.DataFrame(
    {
        "zone": RNG.choice(np.array(["A", "B", "CC", "long one", None, "D", 5], object), ROWS),
        "day": RNG.choice([1.0, 2.0, 2.5, np.nan, 3.0], ROWS),
        "u": RNG.choice(np.array([None, *range(60)], object), ROWS),
        "fare": RNG.integers(0, 9, ROWS),
    }
)
OPTIONS = list(itertools.product([None, "u"], [None, WHERE], [(ZONE,), (DAY,), (ZONE, DAY)]))


def labeled(counts):
    """The counts by label; each label once."""
    found = dict(
        zip(
            zip(*(column.tolist() for column in counts.labels), strict=True),
            counts.units.tolist(),
            strict=True,
        )
    )
    assert len(found) == len(counts.units) and counts.units.dtype == np.int64
    assert all(number > 0 for number in found.values())
    return found


def is_label(part):
    """Whether a zone or a day is one, as the axes say."""
    return len(part) <= 4 if isinstance(part, str) else part in (1.0, 2.0, 3.0)


def by_hand(frame, axes, unit, where):
    """The labels of every unit, row by row."""
    labels = defaultdict(set)
    for at, row in enumerate(frame.to_dict("records")):
        label = tuple(row[axis.column] for axis in axes)
        kept = (where is None or row["fare"] > 2) and (unit is None or row["u"] is not None)
        if kept and label[0] != 5 and all(part is not None and is_label(part) for part in label):
            labels[at if unit is None else row["u"]].add(label)
    return labels


def in_files(frame, folder):
    """The frame in two Parquet files; columns of several kinds as texts and numbers."""
    for at, half in enumerate(np.array_split(np.arange(len(frame)), 2)):
        frame.iloc[half].to_parquet(folder / f"{at}.parquet")
    return dpf.scan_parquet(folder, batch_rows=37)


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    # Dask makes texts of objects, and files have one type
    plain = FRAME.assign(zone=FRAME["zone"].map(lambda zone: zone if zone != 5 else None))
    scan = in_files(plain, tmp_path_factory.mktemp("files"))
    return {"pandas": FRAME, "dask": split(plain, 7), "parquet": scan}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_engines_count_what_is_counted_by_hand(frames, options):
    unit, where, axes = options
    task = LabelTask(axes, 99, where, () if unit is None else (unit,))
    expected = Counter(itertools.chain(*by_hand(FRAME, axes, unit, where).values()))
    assert len(expected) >= 3
    for kind, frame in frames.items():
        with mock.patch.object(scans, "_BUCKET_ROWS", 60):
            found = engine_for(frame).labels(frame, task, SYSTEM)
        assert labeled(found) == expected, kind


@pytest.mark.parametrize("kind", ["pandas", "dask", "parquet"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_unit_counts_for_no_more_labels_than_it_may(frames, kind, most):
    with mock.patch.object(scans, "_BUCKET_ROWS", 60):
        task = LabelTask((ZONE,), most, None, ("u",))
        found = engine_for(frames[kind]).labels(frames[kind], task, SYSTEM)
    units = by_hand(FRAME, (ZONE,), "u", None)
    assert sum(labeled(found).values()) == sum(min(most, len(own)) for own in units.values())
    assert max(map(len, units.values())) > most


@pytest.mark.parametrize("kind", ["pandas", "dask", "parquet"])
@pytest.mark.parametrize("axes", [(ZONE,), (DAY,), (ZONE, DAY)], ids=str)
def test_the_same_words_keep_the_same_labels_of_a_unit_whatever_others_have(
    tmp_path, monkeypatch, kind, axes
):
    make = {
        "pandas": lambda frame: frame,
        "dask": lambda frame: split(frame, 3),
        "parquet": lambda frame: in_files(frame, tmp_path),
    }[kind]
    own = [("E", 7), ("B", 9), ("D", 8), ("E", 8), ("A", 2)]
    alone = pd.DataFrame([(*cells, 1) for cells in own], columns=["zone", "day", "u"])
    others = alone.iloc[::-1].assign(u=2)  # in another order, so that nothing of it may matter
    task = LabelTask(axes, 2, None, "u")
    for word in range(5):
        words = partial(np.full, fill_value=word, dtype=np.uint64)
        monkeypatch.setattr(noise, "random_words", lambda n, *_, words=words: words(n))
        kept = [
            labeled(engine_for(frame).labels(frame, task, SYSTEM))
            for frame in map(make, (alone, pd.concat([others, alone]).reset_index(drop=True)))
        ]
        assert kept[1] == {label: 2 * number for label, number in kept[0].items()}
        assert len(kept[0]) == 2


def one_more(labels):
    more = pd.DataFrame({"zone": labels, "day": 1.0, "u": "new", "fare": 5})
    return pd.concat([FRAME.astype({"day": object}), more.astype({"day": object})])


@pytest.mark.parametrize("labels", [["A"], ["A", "A", "new"], ["x" * 9, None, 5, b"A", "\ud800"]])
@pytest.mark.parametrize("first", [False, True])
def test_one_unit_more_adds_one_to_its_labels_and_nothing_else(labels, first):
    frame = one_more(labels)
    frame = frame.iloc[::-1] if first else frame
    task = LabelTask((ZONE, DAY), 99, None, ("u",))
    now, before = (labeled(label_counts([one], [task], SYSTEM)[0]) for one in (frame, FRAME))
    texts = {one for one in labels if isinstance(one, str) and len(one) < 5 and one.isascii()}
    assert Counter(now) - Counter(before) == Counter((text, 1) for text in texts)
    assert before.keys() <= now.keys()


@pytest.mark.parametrize("kind", ["pandas", "dask", "parquet"])
def test_a_frame_without_labels_has_none(frames, kind):
    task = LabelTask((ZONE, LabelAxis("fare", "date")), 2, None, ("u",))
    found = engine_for(frames[kind]).labels(frames[kind], task, SYSTEM)
    assert [column.dtype for column in found.labels] == [object, object]
    assert len(found.units) == 0


@pytest.mark.full
def test_two_million_labels_of_one_unit_take_seconds():
    labels = pd.Series(np.arange(2_000_000).astype("U8"), dtype=object)
    frame = pd.DataFrame({"zone": labels, "u": 1})
    task = LabelTask((LabelAxis("zone", "string"),), 3, None, ("u",))
    times = []
    for _ in range(2):
        start = time.thread_time()
        (found,) = label_counts([frame], [task], SYSTEM, threads=1)
        times.append(time.thread_time() - start)
    assert sum(labeled(found).values()) == 3
    assert min(times) < 8  # far less where nothing else runs; hours, if it were quadratic

"""Labels of a column: one per value, from that value alone, of the kind that was asked for."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from support.hostile import HOSTILE, OBJECTS

from dpframe.engines.labels import coded_labels, no_labels
from dpframe.queries.tasks import LabelAxis

LABELS = ["string", "int64", "bool", "date", "datetime"]
NOON = pd.Timestamp("2020-02-01 12:00")
DAY = datetime.date(2020, 2, 1)


class Text(str):
    """A text that lies about its length."""

    def __len__(self):
        return 1


class Whole(int):
    """An integer that refuses to say which."""

    def __index__(self):
        raise RuntimeError

    __int__ = __eq__ = __index__
    __hash__ = int.__hash__


READ = {
    "string": [
        ("a", "a"),
        ("", ""),
        ("é", "é"),
        (np.str_("b"), "b"),
        ("x" * 5, "x" * 5),
        ("x" * 6, None),
        (Text("long one"), None),
        ("\ud800", None),
        ("a\0", None),
        (b"a", None),
        (1, None),
        (("a",), None),
        ("nan", "nan"),
    ],
    "int64": [
        (1, 1),
        (1.0, 1),
        (True, 1),
        (np.int8(1), 1),
        (np.bool_(False), 0),
        (complex(7, -0.0), 7),
        (np.complex64(7), 7),
        (np.clongdouble(7), 7),
        (complex(7, 1), None),
        (complex(7.5, 0), None),
        (complex(math.nan, 0), None),
        (np.float32(3), 3),
        (np.longdouble(7), 7),
        (Decimal(1), 1),
        (Fraction(4, 2), 2),
        (Whole(5), 5),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (2**63, None),
        (2.0**63, None),
        (np.uint64(2**63), None),
        (1.5, None),
        (math.inf, None),
        (Decimal("sNaN"), None),
        (Decimal("1e999999"), None),
        ("1", None),
        (1 + 0j, 1),
        (np.timedelta64(1, "s"), None),
        (NOON, None),
    ],
    "bool": [(True, True), (0, False), (1.0, True), (2, None), (0.5, None), ("True", None)],
    "date": [(DAY, DAY), (NOON, None), (datetime.datetime(2020, 2, 1), None), ("2020-02-01", None)],
    "datetime": [
        (NOON, NOON),
        (datetime.datetime(2020, 2, 1, 12), NOON),
        (np.datetime64("2020-02-01T12:00:00"), NOON),
        (NOON.tz_localize("UTC"), None),
        (DAY, None),
        (np.datetime64("12000-01-01", "s"), None),
        ("2020-02-01", None),
    ],
}
MISSING = [None, math.nan, pd.NaT, pd.NA, Decimal("NaN"), np.float32("nan")]
MISSING += [np.datetime64("NaT", "s")]


def read(values, kind, longest=5):
    column = values if isinstance(values, pd.Series) else pd.Series(values, dtype=object)
    found = coded_labels(column, LabelAxis("x", kind, longest))
    assert found.labels.dtype == no_labels(LabelAxis("x", kind)).dtype
    assert len(set(found.labels.tolist())) == len(found.labels)
    labels = [*found.labels.tolist(), None]
    return [labels[code] for code in found.codes]


@pytest.mark.parametrize("kind", LABELS)
def test_every_value_has_the_label_that_it_equals(kind):
    values = [value for value, _ in READ[kind]]
    labels = [label for _, label in READ[kind]]
    assert read(values, kind) == labels
    types = {type(label) for label in labels if label is not None}
    assert {type(label) for label in read(values, kind) if label is not None} == (
        {datetime.datetime} if kind == "datetime" else types
    )


@pytest.mark.parametrize("label", LABELS)
def test_a_value_has_the_same_label_beside_any_other(label):
    pool = [*OBJECTS, *HOSTILE, *MISSING, *(value for value, _ in READ[label])]
    alone = [read(pd.Series([value], dtype=object), label)[0] for value in pool]
    assert any(one is not None for one in alone)
    rng = np.random.default_rng(3)
    for _ in range(60):
        places = rng.integers(0, len(pool), 12).tolist()
        column = pd.Series([None] * 12, dtype=object)
        column[:] = np.fromiter((pool[at] for at in places), object, 12)
        assert read(column, label) == [alone[at] for at in places]


def test_a_complex_cell_takes_no_label_from_the_others():
    column = pd.Series([7, 7, 1j, 0])
    found = coded_labels(column, LabelAxis("n", "int64"))
    assert [None if code < 0 else found.labels[code] for code in found.codes] == [7, 7, None, 0]

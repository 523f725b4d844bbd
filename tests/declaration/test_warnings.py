"""Careless amounts, units and frames: warned of or refused on public facts, before any charge."""

import copy
import itertools
import pickle
import warnings

import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CalibrationError, DeclarationError, DPFrameWarning

dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("dpframe.dask")

IN_MEMORY = "budget= alone is kept in memory"
pytestmark = [
    pytest.mark.filterwarnings("error::dpframe.errors.DPFrameWarning"),
    pytest.mark.filterwarnings(f"ignore:{IN_MEMORY}"),
]

ROW = {"privacy_unit": dpf.EACH_ROW}
FACTS = {"keys": {"zone": ["A", "B"]}, "bounds": {"fare": (0, 10)}}
QUERY = dpf.count("zone", keys=["A", "B"])
WAYS = {
    "function": lambda frame, **spend: dpf.release(frame, QUERY, **spend),
    "accessor": lambda frame, **spend: frame.dp.release(QUERY, **spend),
}
CALLS = {
    "count": lambda frame, **spend: frame.dp.count("zone", keys=["A", "B"], **spend),
    "sum": lambda frame, **spend: frame.dp.sum("fare", bounds=(0, 10), **spend),
    "mean": lambda frame, **spend: frame.dp.mean("fare", bounds=(0, 10), **spend),
    "histogram": lambda frame, **spend: frame.dp.histogram("fare", [0, 5, 10], **spend),
    "units": lambda frame, **spend: frame.dp.units(**spend),
    "aggregate": lambda frame, **spend: frame.dp.aggregate(n=dpf.count(), **spend),
    **WAYS,
}


TIMES = itertools.count()


def rows():
    """Three rows, other ones each time: collections of Dask are told apart by what is in them."""
    return pd.DataFrame(
        {"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0], "driver": [1, 1, 2], "time": next(TIMES)}
    )


def scanned(frame, folder):
    frame.to_parquet(folder / "rows.parquet")
    return dpf.scan_parquet(folder)


KINDS = {
    "pandas": lambda frame, folder: frame,
    "parquet": scanned,
    "dask": lambda frame, folder: dd.from_pandas(frame, npartitions=2),
}


@pytest.fixture(params=KINDS)
def kind(request, tmp_path):
    return lambda frame: KINDS[request.param](frame, tmp_path)


@pytest.fixture
def heard():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", IN_MEMORY)
        yield caught


def subjects(caught):
    return [str(one.message).split(" ")[0] for one in caught if one.category is DPFrameWarning]


@pytest.mark.parametrize("way", WAYS)
def test_a_missing_unit_is_warned_of_once_per_frame_at_the_line_of_the_caller(way, kind, heard):
    frame = kind(rows())
    for _ in range(2):
        WAYS[way](frame, epsilon=1)
    (warning,) = [one for one in heard if one.category is DPFrameWarning]
    assert warning.filename == __file__
    assert "no privacy unit is declared" in str(warning.message)
    assert "privacy_unit=dpf.EACH_ROW" in str(warning.message)


@pytest.mark.parametrize("name", CALLS)
def test_each_row_can_be_said_in_every_call(name, kind):
    released = CALLS[name](kind(rows()), epsilon=1, **ROW)
    unit = released.dp.certificate.privacy_unit
    assert unit.columns == ()
    assert unit.caps.max_rows == 1
    assert "one row" in released.dp.certificate._repr_html_()


def test_each_row_can_be_declared(kind):
    frame = kind(rows())
    frame.dp.declare(**FACTS, **ROW)
    assert frame.dp.declaration.privacy_unit is dpf.EACH_ROW
    assert "one row" in frame.dp.declaration._repr_html_()
    frame.dp.count("zone", epsilon=1)
    frame.dp.count("zone", epsilon=1, **ROW)


def test_previews_take_each_row_and_warn_of_nothing():
    frame = rows()
    frame.dp.plan(QUERY, epsilon=100, delta=0.5)
    frame.dp.plan(QUERY, epsilon=1, **ROW)


@pytest.mark.parametrize("given", ["driver", 7, "each row", True])
def test_calls_take_no_other_unit(given):
    with raises(DeclarationError, "dpf.EACH_ROW", parameter="privacy_unit"):
        rows().dp.count(epsilon=1, privacy_unit=given)


def test_a_call_cannot_take_the_unit_away():
    frame = rows()
    frame.dp.declare(privacy_unit="driver", max_rows=2, budget=dpf.Budget(1))
    with raises(DeclarationError, "declared with privacy_unit='driver'", parameter="privacy_unit"):
        frame.dp.count(epsilon=0.5, **ROW)
    assert not frame.dp.ledger.entries


@pytest.mark.parametrize("cap", ["max_rows", "max_groups", "max_rows_per_group"])
def test_each_row_has_no_caps_and_no_name(cap):
    with raises(DeclarationError, "cap a privacy unit"):
        rows().dp.declare(**ROW, **{cap: 1})
    with raises(DeclarationError, "names a privacy unit"):
        rows().dp.declare(**ROW, unit="person")


def test_rows_are_one_unit_for_a_ledger_said_or_not():
    ledger = dpf.Ledger(budget=dpf.Budget(1))
    for unit in (ROW, {}, ROW):
        rows().dp.declare(**unit, ledger=ledger)
    with pytest.raises(DeclarationError):
        rows().dp.declare(privacy_unit="driver", max_rows=1, ledger=ledger)


def test_copies_of_each_row_are_the_same_object():
    assert pickle.loads(pickle.dumps(dpf.EACH_ROW)) is dpf.EACH_ROW  # noqa: S301
    assert copy.deepcopy([dpf.EACH_ROW])[0] is dpf.EACH_ROW
    assert repr(dpf.EACH_ROW) == "dpf.EACH_ROW"


LARGE = {
    "epsilon": {"epsilon": 10.5},
    "mu": {"mu": 2.5},
    "rho": {"rho": 2.5},
    "delta": {"epsilon": 1, "delta": 1e-3},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LARGE)
def test_large_amounts_of_a_call_are_warned_of(name, way, kind, heard):
    frame = kind(rows())
    for _ in range(2):
        WAYS[way](frame, **LARGE[name], **ROW)
    (subject,) = subjects(heard)
    assert subject.startswith(f"{name}=")


@pytest.mark.parametrize("declare", [dpf.declare, lambda frame, **facts: frame.dp.declare(**facts)])
@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (dpf.Budget(100), ["budget: epsilon=100"]),
        (dpf.Budget(1, 0.01), ["budget: delta=0.01"]),
        (dpf.Budget(11, 0.001), ["budget: epsilon=11", "budget: delta=0.001"]),
        (dpf.Budget(10, 0.0009), []),
    ],
)
def test_large_budgets_are_warned_of_when_they_are_declared(budget, expected, declare, kind, heard):
    frame = kind(rows())
    for _ in range(2):
        declare(frame, budget=budget, **ROW)
    found = [one for one in heard if one.category is DPFrameWarning]
    assert [one.filename for one in found] == [__file__] * len(expected)
    for one, start in zip(found, expected, strict=True):
        assert str(one.message).startswith(start)


def test_nothing_is_declared_where_the_warning_is_an_error(kind):
    frame = kind(rows())
    ledger = dpf.Ledger(budget=dpf.Budget(100))
    for _ in range(2):  # as long as it is an error, it is said again
        with pytest.raises(DPFrameWarning, match="epsilon=100"):
            frame.dp.declare(ledger=ledger, **ROW)
    assert ledger.protected is None
    assert frame.dp.declaration.ledger is None


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_charged_where_the_warning_is_an_error(way, kind):
    frame = kind(rows())
    frame.dp.declare(budget=dpf.Budget(1))
    for _ in range(2):
        with pytest.raises(DPFrameWarning, match="no privacy unit"):
            WAYS[way](frame, epsilon=0.5)
    assert not frame.dp.ledger.entries
    WAYS[way](frame, epsilon=0.5, **ROW)
    assert len(frame.dp.ledger.entries) == 1


def test_what_is_warned_of_does_not_depend_on_the_rows(heard):
    rows().iloc[:0].dp.count("zone", keys=["A"], epsilon=20)
    assert len(subjects(heard)) == 2


@pytest.fixture
def released(kind):
    return kind(rows().dp.count("zone", keys=["A", "B"], epsilon=1, **ROW))


@pytest.mark.parametrize("way", [*WAYS, "declare", "declare by function", "preview"])
def test_released_frames_are_refused(way, released):
    ways = {
        "declare": lambda frame, **_: frame.dp.declare(),
        "declare by function": lambda frame, **_: dpf.declare(frame),
        "preview": lambda frame, **spend: frame.dp.plan(dpf.count(), **spend).table,
        **WAYS,
    }
    with pytest.raises(DeclarationError, match="was released by dpframe") as caught:
        ways[way](released, epsilon=1, **ROW)
    for hint in (".dp.combine", "at no cost", "del frame.attrs['dpframe']"):
        assert hint in str(caught.value)


def test_a_declared_frame_that_gets_a_certificate_is_refused_and_charged_nothing():
    private = rows()
    private.dp.declare(**ROW, budget=dpf.Budget(1))
    ledger = private.dp.ledger
    private.attrs.update(rows().dp.count(epsilon=1, **ROW).attrs)
    with pytest.raises(DeclarationError, match="was released by dpframe"):
        private.dp.count(epsilon=0.5)
    assert not ledger.entries


@pytest.mark.parametrize("mechanism", ["auto", "gaussian", "laplace"])
@pytest.mark.parametrize("way", WAYS)
def test_epsilon_zero_on_the_delta_of_the_budget_is_refused(way, mechanism):
    frame = rows()
    frame.dp.declare(**ROW, budget=dpf.Budget(1, 1e-6))
    with raises(CalibrationError, "delta is that of the budget, delta=1e-06"):
        WAYS[way](frame, epsilon=0, mechanism=mechanism)
    assert not frame.dp.ledger.entries


def test_epsilon_zero_on_a_delta_that_is_given_is_released():
    frame = rows()
    frame.dp.declare(**ROW, budget=dpf.Budget(1, 1e-6))
    frame.dp.count("zone", keys=["A", "B"], epsilon=0, delta=1e-7)
    (entry,) = frame.dp.ledger.entries
    assert entry.loss.mu_squared > 0

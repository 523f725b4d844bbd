"""The accessor says what the public functions say."""

import inspect

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.errors import CertificateError, DeclarationError
from dpframe.inference import intervals
from dpframe.options import FRONT

EXACT = {"epsilon": 1e6}


@pytest.fixture
def frame():
    rows = np.arange(90)
    made = pd.DataFrame({"zone": np.array(list("ABC"))[rows % 3], "fare": rows % 7 * 1.5})
    made.dp.declare(keys={"zone": ["A", "B", "C"]}, bounds={"fare": (0, 10)})
    return made


CALLS = {
    "count": (
        lambda f, **s: f.dp.count("zone", where="fare > 1", **s),
        dpf.count("zone", where="fare > 1"),
    ),
    "sum": (lambda f, **s: f.dp.sum("fare", "zone", **s), dpf.sum("fare", "zone")),
    "mean": (lambda f, **s: f.dp.mean(["fare"], by="zone", **s), dpf.mean(["fare"], "zone")),
    "var": (
        lambda f, **s: f.dp.var("fare", "zone", where="fare > 1", **s),
        dpf.var("fare", "zone", where="fare > 1"),
    ),
    "std": (lambda f, **s: f.dp.std(["fare"], "zone", **s), dpf.std(["fare"], "zone")),
    "rate": (
        lambda f, **s: f.dp.rate("fare > 4", "zone", where="fare > 1", **s),
        dpf.rate("fare > 4", "zone", where="fare > 1"),
    ),
    "histogram": (
        lambda f, **s: f.dp.histogram("fare", [0, 5, 10], by="zone", **s),
        dpf.histogram("fare", [0, 5, 10], "zone"),
    ),
    "units": (
        lambda f, **s: f.dp.units("zone", where="fare > 1", **s),
        dpf.units("zone", where="fare > 1"),
    ),
    "aggregate": (
        lambda f, **s: f.dp.aggregate("zone", n=dpf.count(), m=dpf.mean("fare"), **s),
        dpf.aggregate("zone", n=dpf.count(), m=dpf.mean("fare")),
    ),
    "release": (lambda f, **s: f.dp.release(dpf.count("zone"), **s), dpf.count("zone")),
}


@pytest.mark.parametrize("name", CALLS)
def test_methods_are_the_public_functions(frame, name):
    call, query = CALLS[name]
    by_method, by_function = call(frame, **EXACT), dpf.release(frame, query, **EXACT)
    pd.testing.assert_frame_equal(by_method, by_function, atol=1e-3)
    words = [made.dp.certificate.query.words for made in (by_method, by_function)]
    assert words[0] == words[1]


@pytest.mark.parametrize("name", sorted({*CALLS} - {"release"}))
def test_methods_take_what_the_descriptions_take(name):
    described = inspect.signature(getattr(dpf, name)).parameters
    method = inspect.signature(getattr(dpf.DPAccessor, name)).parameters
    of_query = [p for p in method if p not in {"self", "named", *FRONT}]
    rare = {"queries", "n_weight", "objective", "weight"}
    assert of_query == [p for p in described if p not in rare]


@pytest.mark.parametrize("way", [{"epsilon": 0.1}, {"share": 0.1}])
@pytest.mark.parametrize("name", CALLS)
def test_every_method_passes_on_how_much_to_spend(frame, name, way):
    frame.dp.declare(
        keys={"zone": ["A", "B", "C"]}, bounds={"fare": (0, 10)}, budget=dpf.Budget(1, 1e-6)
    )
    CALLS[name][0](frame, **way, mechanism="gaussian")
    (entry,) = frame.dp.ledger.entries
    assert entry.spend.kind == next(iter(way))
    assert entry.mechanism == "gaussian"
    CALLS[name][0](frame, epsilon=0.1, delta=1e-9, mechanism="gaussian")
    assert frame.dp.ledger.entries[1].spend.delta == 1e-9


def test_previews_and_post_processing_are_the_functions(frame):
    query = dpf.count("zone")
    pd.testing.assert_frame_equal(
        frame.dp.plan(query, mu=1).table, frame.dp.plan(query, mu=1).table
    )
    made = frame.dp.count("zone", epsilon=1)
    assert made.dp.certificate == dpf.verify(made)
    pd.testing.assert_frame_equal(made.dp.std_error, intervals.std_error(made))
    pd.testing.assert_frame_equal(made.dp.interval(0.8), dpf.interval(made, 0.8))


def test_without_a_budget_there_is_none_to_show(frame):
    with pytest.raises(DeclarationError, match="no budget is declared"):
        frame.dp.budget  # noqa: B018
    with pytest.raises(CertificateError, match="carries no certificate"):
        frame.dp.certificate  # noqa: B018


def test_importing_registers_dp_and_nothing_else():
    assert pd.DataFrame.dp is dpf.DPAccessor
    assert not hasattr(pd.Series([1]), "dp")
    assert all(hasattr(dpf, name) for name in dir(dpf))

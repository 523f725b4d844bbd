"""Previews: what a release would cost and how accurate it would be."""

import math

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.engines.pandas import PandasEngine
from dpframe.errors import CalibrationError, DeclarationError, UnknownColumnError
from dpframe.privacy import noise
from dpframe.privacy.calibration import gaussian_mu


@pytest.fixture
def frame():
    made = pd.DataFrame({"zone": list("ABAB"), "fare": [1.0, 2, 3, np.nan], "who": [1, 1, 2, 3]})
    made.dp.declare(
        keys={"zone": ["A", "B", "C"]}, bounds={"fare": (0, 100)}, budget=dpf.Budget(1, 1e-6)
    )
    return made


QUERY = dpf.aggregate(by="zone", n=dpf.count(), s=dpf.sum("fare"), m=dpf.mean("fare"))


def test_a_preview_reads_no_data_and_spends_nothing(frame, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr(PandasEngine, "totals", never)
    monkeypatch.setattr(noise, "random_bytes", never)
    before = dpf.preview(frame, QUERY, epsilon=0.5)
    frame["fare"] = 7.0
    frame["zone"] = None
    pd.testing.assert_frame_equal(frame.dp.preview(QUERY, epsilon=0.5), before)
    assert frame.dp.ledger.entries == ()


@pytest.mark.parametrize("spend", [{"epsilon": 0.5}, {"mu": 0.1}, {"share": 0.25}, {"rho": 0.01}])
@pytest.mark.parametrize("mechanism", ["auto", "gaussian", "correlated", "laplace"])
def test_a_preview_is_what_the_certificate_then_says(frame, spend, mechanism):
    foreseen = frame.dp.preview(QUERY, **spend, mechanism=mechanism)
    released = frame.dp.release(QUERY, **spend, mechanism=mechanism)
    record = released.dp.certificate.to_dict()
    assert list(foreseen.index) == [column["name"] for column in record["columns"]]
    assert (foreseen["mechanism"] == record["mechanism"]["name"]).all()
    for name in ("mu", "epsilon", "delta"):
        assert foreseen[name].tolist() == [record["privacy_loss"][name]] * 3
    for column in record["columns"][:2]:
        row = foreseen.loc[column["name"]]
        assert row["std_error"] == column["std_error"]
        if column["noise"] is None:  # read off several integers
            assert (record["mechanism"]["name"], column["name"]) == ("correlated", "s")
            assert np.isnan(row["sigma"])
        else:
            assert row["sigma"] == column["noise"]["scale"] * column["noise"]["step"]
        width = released.dp.interval(0.95)[f"{column['name']}_high"] - released[column["name"]]
        assert row["half_width_95"] == pytest.approx(width.iloc[0])
        assert row["per"] == "cell"
    assert foreseen.loc["m", "per"] == "1 / rows"
    assert np.isnan(foreseen.loc["m", "sigma"])
    # for the worst mean in a cell of one row; with more rows it is to be divided by their number
    rows = np.maximum(released["n"], 1)
    assert (released.dp.std_error["m"] <= foreseen.loc["m", "std_error"] * (1 + 1e-9)).all()
    assert len(rows) == 3


def test_the_numbers_of_one_count(frame):
    row = frame.dp.preview(dpf.count(), epsilon=1, mechanism="gaussian").loc["count"]
    assert row["sigma"] == pytest.approx(4.224679, rel=1e-6)
    assert row["std_error"] == pytest.approx(math.hypot(4.224679, math.sqrt(1 / 12)), rel=1e-6)
    assert row["half_width_95"] == 8
    assert row["mu"] == gaussian_mu(1, 1e-6)
    assert (row["epsilon"], row["delta"], row["fits"]) == (1, 1e-6, True)
    row = frame.dp.preview(dpf.count(), epsilon=1).loc["count"]
    assert (row["mechanism"], row["sigma"], row["half_width_95"]) == ("laplace", 1, 3)
    assert (row["epsilon"], row["delta"]) == (1, 0)


def test_whether_a_release_fits(frame):
    frame.dp.count(epsilon=0.75)
    assert frame.dp.preview(dpf.count(), epsilon=0.25)["fits"].all()
    assert not frame.dp.preview(dpf.count(), epsilon=0.5, mechanism="laplace")["fits"].any()
    bare = pd.DataFrame({"x": [1.0]})
    assert bare.dp.preview(dpf.count(), epsilon=50)["fits"].all()


def test_several_queries_have_a_row_per_column(frame):
    table = frame.dp.preview({"n": dpf.count("zone"), "all": QUERY}, share=0.5)
    expected = [("n", "count"), ("all", "n"), ("all", "s"), ("all", "m")]
    assert list(table.index) == expected
    assert table.index.names == ["query", "column"]
    assert table["mechanism"].nunique() == 1


def test_gaussian_noise_without_a_delta_has_a_mu_and_no_epsilon():
    table = pd.DataFrame({"x": [1.0]}).dp.preview(dpf.count(), mu=0.5, mechanism="gaussian")
    assert table["mu"].tolist() == [0.5]
    assert table["epsilon"].isna().all()


@pytest.mark.parametrize(
    ("query", "spend", "error"),
    [
        (dpf.sum("price", bounds=(0, 1)), {"epsilon": 1}, UnknownColumnError),
        (dpf.sum("who"), {"epsilon": 1}, DeclarationError),
        (dpf.count("who"), {"epsilon": 1}, DeclarationError),
        (dpf.count(), {}, CalibrationError),
        (dpf.count(), {"mu": 1e-30}, CalibrationError),
    ],
)
def test_a_preview_refuses_what_a_release_would_refuse(frame, query, spend, error):
    with pytest.raises(error):
        frame.dp.preview(query, **spend)
    with pytest.raises(error):
        frame.dp.release(query, **spend)

"""No setting of NumPy, pandas, decimals or warnings matters to a call, after the charge least."""

import decimal
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from support.hostile import objects

import dpframe as dpf
from dpframe.columns.buckets import unit_buckets
from dpframe.columns.lookup import finder
from dpframe.columns.values import missing, numbers
from dpframe.engines.units import unit_codes
from dpframe.queries.tasks import KeyAxis

N = 60
BUDGET = dpf.Budget(epsilon=100, delta=1e-5, discovery=1e-6)
PAIRS = {
    "mode.copy_on_write": True,
    "mode.string_storage": "python",
    "mode.performance_warnings": True,
    "compute.use_numexpr": False,
    "compute.use_bottleneck": False,
    "future.infer_string": False,
    "future.no_silent_downcasting": True,
    "future.distinguish_nan_and_na": True,
    "future.python_scalars": True,
    "display.precision": 1,
}


@contextmanager
def strict_decimals():
    with decimal.localcontext(prec=1, Emax=1, Emin=-1, clamp=1) as context:
        context.traps = dict.fromkeys(context.traps, True)
        yield


@contextmanager
def strict_pandas(options=PAIRS):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns of some options where they are set
        given = {name: pd.get_option(name) for name in options if known(name)}
        try:
            for name in given:
                pd.set_option(name, options[name])
            yield
        finally:
            for name, value in given.items():
                pd.set_option(name, value)


def known(name):
    try:
        pd.get_option(name)
    except KeyError:
        return False
    return True


SETTINGS = {
    "floats": lambda: np.errstate(all="raise"),
    "decimals": strict_decimals,
    "pandas": strict_pandas,
    "warnings": lambda: warnings.catch_warnings(action="error"),
}


def private():
    rows = np.arange(N)
    odd = [5e-324, 1e308, -1e308, np.inf, np.nan, decimal.Decimal("0.1"), 10**400, None, "x", 1j]
    odd += [np.longdouble("1e4000"), decimal.Decimal("sNaN"), np.float16(1), True, 2.5]
    frame = pd.DataFrame(
        {
            "zone": np.array(list("ABC"))[rows % 3],
            "fare": np.where(rows % 9, rows * 1e-300, 1e308),
            "odd": objects([odd[row % len(odd)] for row in rows]),
            "who": rows // 2,
            "when": pd.Timestamp("2020") + pd.to_timedelta(rows, unit="h"),
        }
    )
    frame.dp.declare(
        keys={"zone": ["A", "B", "C"]},
        bounds={
            "fare": (0, 1e100),
            "odd": (-1e-300, 1e-300),
            "when": (pd.Timestamp("2020"), pd.Timestamp("2021")),
        },
        privacy_unit="who",
        max_rows=2,
        max_groups=2,
        budget=BUDGET,
    )
    return frame


WHERE = "fare / odd > 1e308 or odd ** 2 >= 0 or zone in ['A']"
SPEND = {"epsilon": 1, "delta": 1e-7}
CALLS = {
    "count": lambda dp: dp.count("zone", where=WHERE, **SPEND),
    "sum": lambda dp: dp.sum(["fare", "odd"], "zone", **SPEND),
    "mean": lambda dp: dp.mean(["odd", "when"], "zone", epsilon=1e-3),
    "var": lambda dp: dp.var("odd", **SPEND),
    "std": lambda dp: dp.std("fare", "zone", epsilon=1e-6),
    "rate": lambda dp: dp.rate(WHERE, "zone", **SPEND),
    "histogram": lambda dp: dp.histogram("odd", [-np.inf, 0, 5e-324, np.inf], "zone", **SPEND),
    "units": lambda dp: dp.units("zone", **SPEND),
    "margins": lambda dp: dp.margins(["zone"], max_rows=1, **SPEND),
    "quantile": lambda dp: dp.quantile("fare", [0.1, 0.5], **SPEND),
    "quantile of few": lambda dp: dp.quantile("odd", 0.5, "zone", epsilon=1e-6),
    "selected": lambda dp: dp.quantile("odd", 0.5, mechanism="select", epsilon=1),
    "median": lambda dp: dp.quantile("when", 0.5, **SPEND),
    "discover": lambda dp: dp.discover("zone", **SPEND),
    "suggest_caps": lambda dp: dp.suggest_caps("zone", **SPEND),
    "suggest_bounds": lambda dp: dp.suggest_bounds("odd", **SPEND),
    "preview": lambda dp: dp.plan(dpf.mean("odd", "zone"), **SPEND).table,
    "diagnose": lambda dp: dp.diagnose(dpf.mean("odd", "zone", where=WHERE)),
    "intervals": lambda dp: dp.mean("odd", "zone", **SPEND).dp.interval(),
    "errors": lambda dp: dp.mean("odd", "zone", **SPEND).dp.std_error,
    "verified": lambda dp: dpf.verify(dp.sum("fare", "zone", **SPEND)),
    "denoised": lambda dp: dp.count("zone", denoise="james_stein", **SPEND),
    "shown": lambda dp: repr(dp) + repr(dp.sum("odd", **SPEND).dp.certificate),
}


@pytest.mark.sampled(every=5, full=2)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_matters(setting, call):
    frame = private()
    with SETTINGS[setting]():
        made = CALLS[call](frame.dp)
    assert made is not None


READ = SETTINGS | {"infinities": lambda: strict_pandas({"mode.use_inf_as_na": True})}


@pytest.mark.parametrize("setting", READ)
@pytest.mark.parametrize("dtype", ["float64", "Float64", "object", "category", "double[pyarrow]"])
def test_no_setting_changes_how_cells_are_read(setting, dtype):
    column = pd.Series([1.5, np.inf, None, -np.inf, 0.1, 1.5], dtype=dtype)
    expected = read(column)
    with READ[setting]():
        assert read(column) == expected


def read(column):
    keys = KeyAxis("k", pd.Index([np.inf, 1.5]))
    views = missing(column), numbers(column), unit_codes([column])[0], unit_buckets([column], 99)
    return [repr(view.tolist()) for view in (*views, finder(keys, column)(column))]


def test_settings_are_as_they_were():
    before = np.geterr()
    private().dp.sum("odd", **SPEND)
    assert np.geterr() == before

"""Amounts as texts: they mean the same in a plan file, on the command line and in Python."""

from decimal import Decimal
from fractions import Fraction

import pandas as pd
import pytest
from support.raising import raises
from support.terminal import SOUND, UNREADABLE, main

import dpframe as dpf
from dpframe.errors import CalibrationError


def declared(**more):
    """Declare a frame of a hundred people with a ledger of its own."""
    frame = pd.DataFrame({"zone": ["a", "b"] * 50, "who": range(100), "fare": [1.0, 2.0] * 50})
    frame.dp.declare(
        privacy_unit="who",
        max_rows=1,
        max_groups=1,
        bounds={"fare": (0, 3)},
        keys={"zone": ["a", "b"]},
        budget=dpf.Budget(**({"epsilon": 2, "delta": 1e-6, "discovery": 1e-7} | more)),
    )
    return frame


CALLS = {
    "release": lambda dp, amount: dp.count(by="zone", epsilon=amount, delta="1e-8"),
    "preview": lambda dp, amount: dp.plan(dpf.count(by="zone"), epsilon=amount).table,
    "discover": lambda dp, amount: dp.release(
        dpf.discover("zone", discovery="1/20000000"), mu=amount
    ),
    "discovery": lambda dp, amount: dp.release(dpf.discover("zone", discovery=amount), mu=0.1),
    "select": lambda dp, amount: dp.quantile("fare", 0.5, epsilon=amount, bins=4),
    "caps": lambda dp, amount: dp.suggest_caps(epsilon=amount, largest=4),
    "planned": lambda dp, amount: dp.suggest_caps(epsilon=1, largest=4, planned={"mu": amount}),
    "bounds": lambda dp, amount: dp.suggest_bounds(
        "fare", epsilon=1, within=(1, 100), bins=4, planned={"epsilon": "0.9", "delta": amount}
    ),
    "share": lambda dp, amount: dp.budget.share(amount),
}


@pytest.mark.parametrize("call", CALLS)
def test_all_calls_read_texts(call):
    small = "1/20000000"  # fits wherever a delta goes, too
    for amount in (small, float(Fraction(small)), Decimal("5e-8"), Fraction(small)):
        assert CALLS[call](declared().dp, amount) is not None
    for wrong in ("1e999999999", "1/0", "nan"):
        with raises(CalibrationError, "or a text such as"):
            CALLS[call](declared().dp, wrong)


def test_a_ledger_is_made_with_texts(tmp_path, capsys):
    path = tmp_path / "new.ledger"
    made = ["ledger", str(path), "--create", "--epsilon", "1/3", "--delta", "1e-6", "--quiet"]
    assert main(made) == SOUND
    assert dpf.Ledger(path).budget == dpf.Budget("1/3", "1e-6")
    for wrong in ("inf", "1e999999999", "-1"):
        other = str(tmp_path / "other.ledger")
        assert main(["ledger", other, "--create", f"--epsilon={wrong}"]) == UNREADABLE
        assert "epsilon must be" in capsys.readouterr().err

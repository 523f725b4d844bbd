"""Rows and a ledger for all tests."""

import pandas as pd
import pytest
from rides.schemas import MAX_ROWS, Rides

import dpframe as dpf
import dpframe.testing as dpt


@pytest.fixture
def rides() -> pd.DataFrame:
    """Made-up rides: some riders have more than may count."""
    return dpt.rehearsal(Rides, rows=2000, privacy_unit="rider", max_rows=MAX_ROWS)


@pytest.fixture
def nasty_rides() -> pd.DataFrame:
    """Made-up rides, some of them odd."""
    facts = {"privacy_unit": "rider", "max_rows": MAX_ROWS}
    return dpt.rehearsal(Rides, rows=500, nasty=True, **facts)


@pytest.fixture
def ledger() -> dpf.Ledger:
    """Return a budget in memory."""
    return dpf.Ledger(budget=dpf.Budget(epsilon=2, delta=1e-6))

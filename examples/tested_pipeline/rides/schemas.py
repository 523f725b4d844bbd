"""What is public about the rides: written down without looking at them."""

import pandas as pd
import pandera.pandas as pa

STATIONS = {"Harbor": "East", "Market": "East", "Museum": "West", "Station": "West", "Zoo": "West"}
"""The zone of every station."""

ZONES = ["East", "West"]
MAX_ROWS = 10
"""How many rides of one rider count in a month."""
FIRST, LAST = pd.Timestamp("2000-01-01"), pd.Timestamp("2100-01-01")
"""A ride that starts or stops outside has no minutes."""


class Rides(pa.DataFrameModel):
    """A ride as the scheme records it."""

    rider: str
    station: str = pa.Field(isin=list(STATIONS))
    start: pd.Timestamp
    stop: pd.Timestamp = pa.Field(nullable=True)
    status: str = pa.Field(isin=["done", "canceled"])


class Prepared(pa.DataFrameModel):
    """A ride as it is published from."""

    rider: str
    zone: str = pa.Field(isin=ZONES)
    hour: pd.Int32Dtype = pa.Field(isin=range(24))
    minutes: float = pa.Field(ge=0, le=120, nullable=True)

"""What is prepared is what the schema says."""

import pandas as pd
from rides.publish import prepare
from rides.schemas import Prepared


def test_a_ride_has_a_zone_an_hour_and_minutes() -> None:
    """Compare with rows written by hand."""
    rides = pd.DataFrame(
        {
            "rider": ["ann", "bob"],
            "station": ["Zoo", "Zoo"],
            "start": pd.to_datetime(["2024-03-01 08:50", "2024-03-01 09:00"]),
            "stop": pd.to_datetime(["2024-03-01 09:05", "2024-03-01 09:00"]),
            "status": ["done", "canceled"],
        }
    )
    assert prepare(rides).to_dict("records") == [
        {"rider": "ann", "zone": "West", "hour": 8, "minutes": 15}
    ]


def test_all_columns_of_the_schema_are_prepared(rides: pd.DataFrame) -> None:
    """Made-up rides last as long as they like: a release clips their minutes."""
    prepared = prepare(rides)
    prepared["minutes"] = prepared["minutes"].clip(0, 120)
    Prepared.validate(prepared)

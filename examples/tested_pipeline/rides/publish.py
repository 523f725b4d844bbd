"""Prepare the rides of a month, and publish them."""

import pandas as pd

import dpframe as dpf
from rides.schemas import FIRST, LAST, MAX_ROWS, STATIONS, Prepared


def prepare(rides: pd.DataFrame) -> pd.DataFrame:
    """Compute what is published from. Every row depends on its own ride alone."""
    done = rides[rides["status"] == "done"]
    start, stop = (done[time].where(done[time].between(FIRST, LAST)) for time in ("start", "stop"))
    return pd.DataFrame(
        {
            "rider": done["rider"],
            "zone": done["station"].map(STATIONS),
            "hour": done["start"].dt.hour.astype("Int32"),
            "minutes": (stop - start).dt.total_seconds() / 60,  # far apart, times overflow
        }
    )


def publish(rides: pd.DataFrame, ledger: dpf.Ledger, name: str) -> dict[str, pd.DataFrame]:
    """Publish three tables, for a tenth of the budget."""
    private = dpf.DPAccessor(prepare(rides))
    private.declare(Prepared, privacy_unit="rider", max_rows=MAX_ROWS, ledger=ledger)
    queries = {
        "by_zone": dpf.count("zone"),
        "by_hour": dpf.count("hour"),
        "minutes": dpf.mean("minutes", by="zone"),
    }
    return private.release(queries, share=0.1, name=name)

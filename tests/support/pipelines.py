"""Pipelines from a private frame to releases: right ones, and such as make one usual mistake."""

import logging
import sys
import warnings

import numpy as np
import pandas as pd

import dpframe as dpf

ZONES = ["A", "B", "C", "D"]
FACTS = {
    "keys": {"zone": ZONES},
    "bounds": {"fare": (0, 60)},
    "privacy_unit": "rider",
    "max_rows": 4,
}


def rides(rows=400, riders=60, seed=3):
    """Rides of riders, few of which stand out; zone E is not declared."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "rider": rng.integers(100, 100 + riders, rows),
            "zone": rng.choice([*ZONES, "E"], rows, p=[0.5, 0.25, 0.15, 0.07, 0.03]),
            "fare": rng.gamma(2, 9, rows).round(2),
            "hour": rng.integers(0, 24, rows),
            "age": rng.integers(0, 60, rows) + 0.5,
        }
    )
    frame.loc[frame.sample(frac=0.1, random_state=1).index, "fare"] = np.nan
    frame.loc[rows - 1, ["rider", "fare", "zone"]] = [7, 500.0, "F"]
    return frame


def released(frame, **changed):
    """Declare a frame, and release."""
    frame = frame.copy()
    frame.dp.declare(**(FACTS | changed))
    return frame.dp.aggregate("zone", n=dpf.count(), fares=dpf.sum("fare"), epsilon=1)


# right ones


def by_zone(frame):
    return released(frame)


def late_rides(frame):
    late = frame.assign(late=frame["hour"] >= 20, fare=frame["fare"].fillna(10).clip(0, 60) * 1.2)
    late = late[late["late"]].sort_values("fare")
    table = released(late, budget=dpf.Budget(epsilon=2, delta=1e-6))
    return table.dp.interval(0.9), table.dp.suppress(below=3, by="n")


def rides_of_a_rider(frame):
    """What is grouped by the unit is its own: the number of a ride, and the fare so far."""
    own = frame.groupby("rider")
    frame = frame.assign(ride=own.cumcount(), fare=own["fare"].cumsum())
    return released(frame[frame["ride"] < 3])


def in_any_order(frame):
    """Equal hours come in an order that depends on all rows; no cap chooses among them."""
    return released(frame.sort_values("hour"), max_rows=40)


def with_names_of_zones(frame):
    names = pd.DataFrame({"zone": ZONES, "name": ["Airport", "Bridge", "Center", "Docks"]})
    frame = frame.merge(names, on="zone", validate="many_to_one")
    facts = {"keys": {"name": list(names["name"])}, "bounds": {"fare": (0, 60)}}
    frame.dp.declare(**facts, privacy_unit="rider", max_rows=2, neighboring="add_remove")
    return {
        "medians": frame.dp.quantile("fare", [0.5], by="name", epsilon=1, mechanism="select"),
        "sizes": frame.dp.units("name", epsilon=1, max_groups=2),
    }


def found_zones(frame):
    budget = dpf.Budget(epsilon=9, delta=1e-5, discovery=5e-6)
    facts = {"bounds": {"fare": (0, 60)}, "privacy_unit": "rider", "max_rows": 500}
    frame.dp.declare(**facts, budget=budget)
    found = frame.dp.discover("zone", epsilon=7, max_groups=1)
    return found, frame.dp.count("zone", keys=found, epsilon=0.5)


def each_row_replaced(frame):
    frame.dp.declare(
        keys={"zone": ZONES},
        bounds={"fare": (0, 60)},
        privacy_unit=dpf.EACH_ROW,
        neighboring="replace",
    )
    return frame.dp.mean("fare", by="zone", epsilon=1)


RIGHT = [by_zone, late_rides, in_any_order, rides_of_a_rider, with_names_of_zones, found_zones]

# one mistake each, with the rules that may name it


def cap_from_data(frame):
    return released(frame, max_rows=int(frame["rider"].value_counts().max()))


def bounds_from_data(frame):
    return released(frame, bounds={"fare": (0, float(frame["fare"].max()))})


def bounds_by_quantile(frame):
    return released(frame, bounds={"fare": (0, float(frame["fare"].quantile(0.99)))})


def keys_from_data(frame):
    return released(frame, keys={"zone": sorted(frame["zone"].unique())})


def centered(frame):
    return released(
        frame.assign(fare=frame["fare"] - frame["fare"].mean()), bounds={"fare": (-30, 30)}
    )


def ranked(frame):
    return released(frame.assign(fare=frame["fare"].rank(pct=True)), bounds={"fare": (0, 1)})


def in_quartiles(frame):
    quarters = pd.qcut(frame["fare"], 4, labels=False, duplicates="drop")
    return released(frame.assign(zone=quarters), keys={"zone": [0, 1, 2, 3]})


def fifty_largest(frame):
    return released(frame.sort_values("fare", ascending=False).head(50))


def group_means(frame):
    means = frame.groupby("zone")["fare"].transform("mean")
    return released(frame.assign(fare=frame["fare"].fillna(means)))


def gaps_that_never_occur(frame):
    """No age is missing in the frame; in other data one may be."""
    age = frame["age"].fillna(frame["age"].median())
    return released(frame.assign(fare=age))


def filled_forward(frame):
    return released(frame.assign(fare=frame["fare"].ffill()))


def renumbered_people(frame):
    return released(frame.assign(rider=np.arange(len(frame)) // 2))


def joined_with_many(frame):
    pairs = frame.merge(frame[["zone", "hour"]], on="zone", suffixes=("", "_other"))
    return released(pairs, max_rows=4)


def prints_rows(frame):
    print(frame.head(2))
    return released(frame)


def logs_the_size(frame):
    logging.getLogger("rides").debug("%d rides", len(frame))
    return released(frame)


def warns_of_gaps(frame):
    if frame["fare"].isna().sum() > 37:
        warnings.warn("many gaps", stacklevel=2)
    return released(frame)


def returns_early(frame):
    if len(frame) < 50:
        return None
    return released(frame)


def drops_zones_afterwards(frame):
    counted = released(frame)
    rows = frame["zone"].value_counts().reindex(ZONES, fill_value=0)
    return counted[(rows >= 30).to_numpy()]


def without_duplicates(frame):
    return released(frame.drop_duplicates(["zone", "hour"]))


def sampled(frame):
    return released(frame.sample(n=min(200, len(frame)), random_state=1))


def category_codes(frame):
    codes = frame["fare"].round().astype("category").cat.codes
    return released(frame.assign(fare=codes))


def large_groups(frame):
    return released(frame.groupby("hour").filter(lambda rows: len(rows) > 15))


def exact_total(frame):
    return released(frame), float(frame["fare"].sum())


def raises_on_outliers(frame):
    if (frame["fare"] > 400).any():
        frame = frame.assign(zone="A")
    else:
        raise ValueError("no outlier")
    return released(frame)


def each_row_a_person(frame):
    return released(frame, privacy_unit=dpf.EACH_ROW, max_rows=None)


def leaves_if_small(frame):
    if len(frame) < 395:
        sys.exit(0)
    return released(frame)


def first_zone_of_all(frame):
    return released(frame, keys={"zone": [frame["zone"].mode()[0], "D"]})


WRONG = {
    cap_from_data: "invariance",
    bounds_from_data: "invariance",
    bounds_by_quantile: "invariance",
    keys_from_data: "invariance",
    centered: "additivity",
    ranked: "additivity",
    in_quartiles: "additivity",
    fifty_largest: "additivity",
    group_means: "additivity",
    gaps_that_never_occur: "additivity",
    filled_forward: "additivity",
    renumbered_people: "charge",
    joined_with_many: "additivity",
    prints_rows: "invariance",
    logs_the_size: "invariance",
    warns_of_gaps: "invariance",
    returns_early: "invariance",
    drops_zones_afterwards: "invariance",
    without_duplicates: "additivity",
    sampled: "additivity",
    category_codes: "additivity",
    large_groups: "additivity",
    exact_total: "invariance",
    raises_on_outliers: "invariance",
    each_row_a_person: "charge",
    leaves_if_small: "invariance",
    first_zone_of_all: "empty frame",
}

"""A released frame of every kind, to do things with that people do before they publish."""

import numpy as np
import pandas as pd

import dpframe as dpf

ZONES = ["A", "B", "C", "D"]
LOTS = {"epsilon": 2, "privacy_unit": dpf.EACH_ROW}


def sidecar_of(place):
    """The file beside a CSV file that holds its certificate."""
    return place.with_name(f"{place.name}.certificate.json")


def trips():
    rows = np.arange(4_000)
    return pd.DataFrame(
        {
            "zone": pd.Series(np.array(ZONES)[np.minimum(rows % 11 // 2, 3)], dtype=object),
            "day": rows % 3,
            "paid": rows % 7 < 3,
            "fare": rows % 50 * 0.5,
            "wait": pd.to_timedelta(rows % 60, unit="s"),
        }
    )


ZONE = {"keys": ZONES}
BOTH = {"keys": {"zone": ZONES, "day": [0, 1, 2]}}
SEVERAL = dpf.aggregate(
    "zone",
    **ZONE,
    flights=dpf.count(),
    paid=dpf.count(where="paid"),
    total=dpf.sum("fare", bounds=(0, 25)),
    fare=dpf.mean("fare", bounds=(0, 25)),
)


def found():
    frame = pd.DataFrame({"zone": np.repeat(["A", "B", "C"], [900, 300, 120])})
    return frame.dp.discover("zone", epsilon=1, delta=1e-6, privacy_unit=dpf.EACH_ROW)


def made(query, **spend):
    return lambda: dpf.release(trips(), query, **{**LOTS, **spend})


KINDS = {
    "one key": made(dpf.count("zone", **ZONE)),
    "two keys": made(dpf.count(["zone", "day"], **BOTH)),
    "histogram": made(dpf.histogram("fare", [0, 5, 10, 25])),
    "histogram by key": made(dpf.histogram("fare", [0, 5, 25], "zone", **ZONE)),
    "several": made(SEVERAL),
    "correlated": made(
        dpf.sum(["fare", "day"], "zone", **ZONE, bounds=(0, 25), n_weight=1),
        mechanism="correlated",
        delta=1e-6,
    ),
    "box": made(SEVERAL, mechanism="box"),
    "denoised": lambda: made(dpf.count("zone", **ZONE))().dp.denoise("nonnegative"),
    "discovery": found,
    "rate": made(dpf.rate("paid", "zone", **ZONE)),
    "variance": made(dpf.var("fare", "zone", **ZONE, bounds=(0, 25))),
    "mean": made(dpf.mean("fare", "zone", **ZONE, bounds=(0, 25))),
    "times": made(dpf.sum("wait", "zone", **ZONE, bounds=(pd.Timedelta(0), pd.Timedelta("60s")))),
    "total": made(dpf.count()),
}
"""By kind, what releases such a frame."""


def released(kind):
    return KINDS[kind]()


def first(frame):
    """Return the label of the first column."""
    return frame.columns[0]


STEPS = {
    "sort_values": lambda frame: frame.sort_values(first(frame), ascending=False),
    "head": lambda frame: frame.head(2),
    "tail": lambda frame: frame.tail(2),
    "select": lambda frame: frame.iloc[::2],
    "round": lambda frame: frame.dp.round(-1),
    "suppress": lambda frame: frame.dp.suppress(relative_error=0.05, by=first(frame)),
    "rename": lambda frame: frame.dp.rename({first(frame): "renamed"}),
    "interval": lambda frame: frame.dp.interval(join=True),
}
"""By name, steps that most frames can take."""


def is_refused(kind, *steps):
    """Whether a step has no meaning: times are neither rounded nor judged, and rates are no tens.

    Nor are intervals put beside numbers twice.
    """
    twice = steps.count("interval") > 1
    unable = {"times": {"round", "suppress"}, "rate": {"round"}}.get(kind, set())
    return twice or bool(unable & {*steps})

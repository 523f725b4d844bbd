"""What `.dp` of a released frame offers works, and what it does not offer says why."""

import sys

import pandas as pd
import pytest
from support.publishing import BOTH, KINDS, LOTS, ZONE, made, released, trips

import dpframe as dpf
from dpframe.accessors.private import PrivateAccessor
from dpframe.accessors.showing import public_names
from dpframe.errors import DPFrameError


def suggestion():
    frame = trips().assign(who=lambda rows: rows.index // 10)  # enough people for `best`
    frame.dp.declare(privacy_unit="who", max_rows=10, keys={"zone": ["A", "B", "C", "D"]})
    return frame.dp.suggest_caps("zone", largest=4, epsilon=1)


def table_of_margins(**options):
    query = dpf.margins(["zone", "day"], 2, **BOTH)
    return dpf.release(trips(), query, **LOTS, **options)["zone", "day"]


RANGES = dpf.ranges("fare", 16, "zone", bounds=(0, 25), **ZONE)
QUANTILE = dpf.quantile("fare", [0.25, 0.5], "zone", bounds=(0, 25), **ZONE)
FRAMES = {
    **KINDS,
    "std": made(dpf.std("fare", "zone", bounds=(0, 25), **ZONE)),
    "units": made(dpf.units("zone", **ZONE)),
    "ranges": made(RANGES),
    "quantiles": made(QUANTILE),
    "selected quantiles": made(QUANTILE, mechanism="select"),
    "suggestion": suggestion,
    "margins": table_of_margins,
    "margins made whole": lambda: table_of_margins(denoise="consistent"),
    "rounded ranges": lambda: made(RANGES)().dp.round(-1),
    "concatenated": lambda: dpf.concat(
        {"a": released("one key"), "b": released("one key")}, name="from"
    ),
    "concatenated, two keys": lambda: dpf.concat(
        {"a": released("two keys"), "b": released("two keys")}, name="from"
    ),
    "head": lambda: released("several").head(2),
    "rounded": lambda: released("several").dp.round(1),
    "suppressed": lambda: released("several").dp.suppress(below=10, by="flights"),
    "renamed": lambda: released("several").dp.rename({"flights": "n"}),
    "one column": lambda: released("several")[["fare"]],
    "joined": lambda: released("one key").dp.interval(join=True),
}
RELEASED = public_names(dpf.DPAccessor) - public_names(PrivateAccessor) | {"quantile"}


def attempts(frame, name, folder, kind):
    """List calls of a method as somebody would write them, or reads of a property."""
    if isinstance(vars(dpf.DPAccessor).get(name), property):
        return [lambda: getattr(frame.dp, name)]
    first, keys = frame.columns[0], list(frame.index)
    levels = [one for one in frame.index.names if one is not None]
    tops = [frame.index.get_level_values(one)[0] for one in levels]
    weights = pd.DataFrame(0.0, index=frame.index, columns=frame.columns)
    given = {
        "between": [{"low": 5}],
        "change": [{"along": one} for one in (*levels, FRAMES[kind]())] if name == "change" else [],
        "per": [{"population": 10.0}],
        "relative": [{"along": one, "to": to} for one, to in zip(levels, tops, strict=True)],
        "standardize": [
            {
                "weights": dict.fromkeys(frame.index.unique(one), 1),
                "over": one,
                "population": people,
            }
            for one in levels
            for people in (9.0, None)
        ],
        "combine": [{"weights": {keys[0]: 1}}, {"weights": "total"}, {"weights": weights}],
        "plot_map": [{"coords": {key: (at, at) for at, key in enumerate(keys)}, "column": first}],
        "ratio": [
            {"numerator": one, "denominator": other}
            for one in frame.columns
            for other in frame.columns
            if one != other
        ],
        "independence": [{"column": one} for one in frame.columns],
        "percent": [{"column": one} for one in frame.columns],
        "rename": [{"columns": {first: "renamed"}}],
        "nlargest": [{"n": 1, "column": one} for one in frame.columns],
        "nsmallest": [{"n": 1, "column": one} for one in frame.columns],
        "round": [{"decimals": 2}],
        "suppress": [{"relative_error": 0.5}, {"below": 10, "by": first}],
        "write_csv": [{"path": folder / "a.csv"}],
        "write_excel": [{"path": folder / "a.xlsx"}],
        "write_parquet": [{"path": folder / "a.parquet"}],
    }.get(name, [{}])
    return [lambda one=one: getattr(frame.dp, name)(**one) for one in given]


def outcome(calls):
    """Return whether one of several calls works, and the last error."""
    error = None
    for call in calls:
        try:
            call()
        except DPFrameError as raised:
            error = raised
        else:
            return True, None
    return False, error


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("kind", FRAMES)
def test_what_is_offered_works_and_the_rest_says_why_not(kind, tmp_path):
    pytest.importorskip("jinja2")
    frame = FRAMES[kind]()
    offered = {name for name in dir(frame.dp) if name[0] != "_"}
    assert offered <= RELEASED
    works = {name: outcome(attempts(frame, name, tmp_path, kind)) for name in sorted(RELEASED)}
    assert offered == {name for name, (done, _) in works.items() if done}
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    for _, error in works.values():
        assert error is None or len(str(error).split()) <= 50

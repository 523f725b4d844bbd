"""A diagnosis says what a release does: against pandas, and against releases without noise."""

from unittest import mock

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from support.neighbors import ALL_CAPS

import dpframe as dpf
from dpframe.engines.capping import binding
from dpframe.privacy import noise
from dpframe.privacy.law import Law
from dpframe.privacy.neighbors import Caps

KEYS, HOURS = ["A", "B", "C"], [0, 1]
CAPS = [*ALL_CAPS, Caps(rows=4, rows_per_group=9), Caps(None, None, 2)]
WHERE = "fare > 1"


def frame_of(seed, size=300):
    rng = np.random.default_rng(seed)
    fares = rng.integers(-3, 9, size).astype(object)
    fares[::7], fares[3::11] = None, "free"
    return pd.DataFrame(
        {
            "zone": rng.choice(["A", "B", "C", "Z", None], size),
            "hour": rng.integers(0, 3, size),
            "rider": np.where(rng.random(size) < 0.1, np.nan, rng.geometric(0.2, size)),
            "fare": fares,
            "late": rng.random(size) < 0.6,
            "long": rng.random(size) < 0.6,
        }
    )


def declared(frame, caps):
    frame.dp.declare(
        keys={"zone": KEYS, "hour": HOURS},
        bounds={"fare": (0, 5), "late": (0, 1), "long": (0, 1)},
        privacy_unit="rider",
        max_rows=caps.rows,
        max_groups=caps.groups,
        max_rows_per_group=caps.rows_per_group,
        budget=dpf.Budget(epsilon=1e9),
    )
    return frame


def lines(found, part="rows"):
    """The numbers of rows of a part, by step."""
    return found.loc[part, "rows"].to_dict()


def usable(frame, where, by):
    """The rows with a group and a unit, and how many are left out before, by step."""
    fare = pd.to_numeric(frame["fare"], errors="coerce")
    steps = {"in all": len(frame)}
    left = pd.Series(True, frame.index)
    conditions = []
    if where:
        conditions.append(("where fare > 1: a value is missing", frame["fare"].notna()))
        conditions.append(("where fare > 1: not met", fare > 1))
    conditions.append(("no unit (rider)", frame["rider"].notna()))
    for label, keys in (("zone", KEYS), ("hour", HOURS)):
        if label in by:
            conditions.append((f"{label} is missing", frame[label].notna()))
            conditions.append((f"{label} is not a declared key", frame[label].isin(keys)))
    for step, passed in conditions:
        steps[step] = int((left & ~passed).sum())
        left &= passed
    return frame[left], steps


def expected_left(rows, by, caps):
    """The least and the most rows that are left after each cap: which ones, is drawn.

    Of two caps that say the same, a release applies that on rows.
    """
    cells = {0: 1, 1: 3, 2: 6}[len(by)]
    groups = cells if caps.groups is None else caps.groups
    if groups >= min(cells, caps.rows or cells):
        groups = cells
    sizes = rows.groupby(["rider", *by]).size()
    sizes = sizes[sizes > 0]
    found = {}
    if caps.rows_per_group is not None:
        if caps.rows is None or caps.rows_per_group < caps.rows:
            sizes = sizes.clip(upper=caps.rows_per_group)
        found["max_rows_per_group"] = [int(sizes.sum())] * 2
    units = [np.sort(own.to_numpy()) for _, own in sizes.groupby(level="rider")]
    if caps.groups is not None:
        found["max_groups"] = [
            sum(int(own[:groups].sum()) for own in units),
            sum(int(own[-groups:].sum()) for own in units),
        ]
    if caps.rows is not None:
        ends = [own[:groups].sum() for own in units], [own[-groups:].sum() for own in units]
        found["max_rows"] = [int(np.minimum(end, caps.rows).sum()) for end in ends]
    return found


@pytest.mark.sampled(every=5, full=3)
@pytest.mark.parametrize("where", [None, WHERE])
@pytest.mark.parametrize("by", [[], ["zone"], ["zone", "hour"]], ids=str)
@pytest.mark.parametrize("caps", CAPS, ids=str)
def test_every_step_leaves_out_what_pandas_counts(caps, by, where):
    frame = declared(frame_of(len(by)), caps)
    found = frame.dp.diagnose(dpf.count(by, where=where))
    rows, steps = usable(frame, where, by)
    said = lines(found)
    assert {step: said[step] for step in steps} == steps
    left = found.loc["rows", "left"].to_dict()
    units = found.loc["rows", "units_left"].to_dict()
    before = len(rows)
    for cap, (least, most) in expected_left(rows, by, caps).items():
        (step,) = [step for step in said if step.startswith(f"beyond {cap}=")]
        assert least <= left[step] <= most
        assert said[step] == before - left[step]
        assert units[step] == rows["rider"].nunique()  # no cap leaves out a whole unit
        before = left[step]
    assert said["counted"] == left["counted"] == before
    shares = found.loc["rows", "share"] * len(frame)
    np.testing.assert_allclose(shares, found.loc["rows", "rows"])


class Words:
    """Random words that come again: the same choice of rows."""

    def __init__(self):
        self._rng = np.random.default_rng(5)

    def __call__(self, n, context):
        return self._rng.integers(0, 2**64, n, np.uint64)


def again(ask):
    """Ask with the same choice of rows, and without noise."""
    silent = mock.patch.object(
        Law, "draw", lambda law, scales, n, context: [np.zeros(n, np.int64) for _ in scales]
    )
    with mock.patch.object(noise, "random_words", Words()), silent:
        return ask()


@pytest.mark.sampled(every=5, full=3)
@pytest.mark.parametrize("make", [dpf.count, dpf.units])
@pytest.mark.parametrize("by", [[], ["zone"], ["zone", "hour"]], ids=str)
@pytest.mark.parametrize("caps", CAPS, ids=str)
def test_groups_are_those_of_a_release_that_draws_the_same_rows(caps, by, make):
    frame = declared(frame_of(11 + len(by)), caps)
    query = make(by, where=WHERE)
    released = again(lambda: frame.dp.release(query, epsilon=1))
    groups = again(lambda: frame.dp.diagnose(query, groups=True))
    counted, answer = groups["counted"], released.iloc[:, 0]
    bound = binding(query.caps(caps), len(groups))
    if bound.rows is None or (bound.groups, bound.rows_per_group) == (None, None):
        assert counted.tolist() == answer.tolist()
    elif caps.groups is None or (caps.rows_per_group == 1):
        assert counted.sum() == answer.sum()  # rows are drawn from an order by unit alone
    assert groups.index.equals(released.index)
    rows, _ = usable(frame, WHERE, by)
    there = rows.groupby(by).size() if by else pd.Series([len(rows)])
    units = rows.groupby(by)["rider"].nunique() if by else pd.Series([rows["rider"].nunique()])
    assert groups["rows"].tolist() == there.reindex(groups.index, fill_value=0).tolist()
    assert groups["units"].tolist() == units.reindex(groups.index, fill_value=0).tolist()
    whole = groups["units"] if make is dpf.units else groups["rows"]
    assert (groups["lost"] == whole - groups["counted"]).all()
    expected = (groups["lost"] / whole).fillna(0.0)
    np.testing.assert_allclose(groups["share_lost"], expected)


@pytest.mark.parametrize("caps", [None, *CAPS], ids=str)
def test_values_are_counted_as_a_release_adds_them_up(caps):
    frame = frame_of(3)
    if caps is None:
        frame.dp.declare(bounds={"fare": (0, 5)}, privacy_unit=dpf.EACH_ROW)
    else:
        declared(frame, caps)
    query = dpf.aggregate(s=dpf.sum("fare", where="hour > 0"), n=dpf.count(where="late"))
    found = again(lambda: frame.dp.diagnose(query))
    kept = again(lambda: frame.dp.aggregate(n=dpf.count(), epsilon=1))["n"].iloc[0]
    assert lines(found)["counted"] == kept
    late = lines(found, "rows of an output where late")["where late: not met"]
    assert again(lambda: frame.dp.release(query, epsilon=1))["n"].iloc[0] == kept - late
    part = lines(found, "values of fare where hour > 0")
    if caps is not None:
        return
    rows = frame[frame["hour"] > 0]
    fare = pd.to_numeric(rows["fare"], errors="coerce")
    assert part == {
        "rows dropped above": 0,
        "where hour > 0: a value is missing": 0,
        "where hour > 0: not met": len(frame) - len(rows),
        "fare is missing": int(rows["fare"].isna().sum()),
        "fare is not a number": int((rows["fare"] == "free").sum()),
        "counted": int(fare.notna().sum()),
        "of these, fare below 0": int((fare < 0).sum()),
        "of these, fare above 5": int((fare > 5).sum()),
    }


def test_rows_of_a_unit_are_drawn_by_the_law_of_a_release():
    # a unit keeps 1.17 rows in A, with a standard deviation of 0.9; the difference between two
    # draws for 2,000 units is beyond 5 standard deviations of it with probability 6e-7
    rows = [(zone, unit) for unit in range(2000) for zone in "AAABBBC"]
    frame = pd.DataFrame(rows, columns=["zone", "rider"])
    frame.dp.declare(
        keys={"zone": KEYS}, privacy_unit="rider", max_groups=2, max_rows_per_group=2, max_rows=3
    )
    with mock.patch.object(Law, "draw", lambda law, s, n, *_: [np.zeros(n, np.int64) for _ in s]):
        released = frame.dp.count("zone", epsilon=1)["count"]
    counted = frame.dp.diagnose(dpf.count("zone"), groups=True)["counted"]
    assert counted.sum() == released.sum() == 6000
    assert abs(counted["A"] - released["A"]) < 5 * 0.9 * np.sqrt(2 * 2000)


def test_true_values_beyond_the_limit_are_counted():
    flags = frame_of(4)[["late", "long", "zone"]]
    schema = pa.DataFrameSchema({"late": pa.Column(bool), "long": pa.Column(bool)})
    flags.dp.declare(schema, keys={"zone": KEYS}, privacy_unit=dpf.EACH_ROW)
    found = flags.dp.diagnose(dpf.sum(["late", "long"], by="zone", max_true=1))
    rows = flags[flags["zone"].isin(KEYS)]
    both = int((rows["late"] & rows["long"]).sum())
    assert lines(found, "true values") == {
        "in all": int(rows[["late", "long"]].to_numpy().sum()),
        "beyond max_true=1": both,
        "counted": int(rows[["late", "long"]].to_numpy().sum()) - both,
    }
    assert found.loc[("true values", "beyond max_true=1"), "left"] == (
        int(rows[["late", "long"]].to_numpy().sum()) - both
    )

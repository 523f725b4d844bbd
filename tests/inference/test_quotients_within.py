"""Percentages of the totals of groups: they hold what they say, and count shared noise once."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from support.certifying import recertified
from support.publishing import released
from support.quotients import quotients_of, replaced
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CallError, QueryError

SPENDS = {
    "laplace": {"epsilon": 0.5},
    "gaussian": {"epsilon": 0.5, "delta": 1e-6},
    "box": {"epsilon": 0.5},
    "correlated": {"epsilon": 0.5, "delta": 1e-6},
}
KEYS = {"year": [2023, 2024, 2025], "kind": ["a", "b"]}


def births(**spend):
    rows = np.arange(900)
    frame = pd.DataFrame(
        {
            "year": 2023 + rows**2 % 97 % 3,
            "kind": np.array(["a", "b"])[rows % 7 % 2],
            "weight": rows % 13,
        }
    )
    query = dpf.aggregate(["year", "kind"], keys=KEYS, n=dpf.count(), kg=dpf.sum("weight"))
    frame.dp.declare(bounds={"weight": (0, 12)}, privacy_unit=dpf.EACH_ROW)
    return dpf.release(frame, query, **spend)


def combined(frame, label, row, share, rows):
    """The width of the interval of `x - share * total` of some rows."""
    weights = pd.DataFrame({label: 0.0}, index=frame.index)
    weights.loc[rows, label] -= share
    weights.loc[[row], label] += 1
    found = frame.dp.combine(weights).iloc[0]
    return found["high"] - found["low"]


@pytest.mark.parametrize("label", ["n", "kg"])
@pytest.mark.parametrize("mechanism", SPENDS)
@pytest.mark.parametrize("by", ["year", "kind"])
def test_parts_and_totals_are_of_one_group(by, mechanism, label):
    frame = births(mechanism=mechanism, **SPENDS[mechanism])
    shares = quotients_of(frame.dp.percent(label, by=by))
    total = frame[label].groupby(level=by).transform("sum")
    np.testing.assert_allclose(shares["estimate"], 100 * frame[label] / total)
    np.testing.assert_allclose(shares["estimate"].groupby(level=by).sum(), 100)
    for row in frame.index:
        group = total.index.get_level_values(by) == row[frame.index.names.index(by)]
        width = combined(frame, label, row, frame.loc[row, label] / total[row], frame.index[group])
        found = shares.loc[row, "high"] - shares.loc[row, "low"]
        assert found == pytest.approx(100 * width / total[row], rel=0.1)
    pd.testing.assert_frame_equal(shares, quotients_of(frame.dp.percent(label, by=[by])))


def test_noise_that_all_rows_share_is_counted_once_in_a_group():
    rows = np.arange(900)
    frame = pd.DataFrame({"x": rows % 3, "zone": rows % 2, "who": rows // 3})
    frame.dp.declare(privacy_unit="who", max_groups=3, max_rows_per_group=1)
    spend = {"mechanism": "correlated", "epsilon": 1, "delta": 1e-6}
    frame = frame.dp.histogram("x", [-1, 0, 1, 2], "zone", keys=[0, 1], **spend)
    assert frame.dp.certificate.mechanism.common_blocks
    (label,) = frame.columns
    shares = quotients_of(frame.dp.percent(by="zone"))
    for zone in (0, 1):
        group = frame.index[frame.index.get_level_values("zone") == zone]
        total = frame.loc[group, label].sum()
        width = combined(frame, label, group[0], frame.loc[group[0], label] / total, group)
        found = shares.loc[group[0], "high"] - shares.loc[group[0], "low"]
        assert found == pytest.approx(100 * width / total, rel=0.1)


def noisy(truths, most, mechanism, **spend):
    """Groups of two cells, noise by noise, and how likely each is: by the textbook."""
    values = np.arange(-most, most + 1)
    noises = np.array(list(itertools.product(values, repeat=2)))
    keys = {"g": range(len(noises)), "part": [0, 1]}
    frame = pd.DataFrame({"g": pd.Series([], dtype=int), "part": pd.Series([], dtype=int)})
    query = dpf.count(["g", "part"], keys=keys)
    nothing = dpf.release(frame, query, mechanism=mechanism, privacy_unit=dpf.EACH_ROW, **spend)
    (scale,) = nothing.dp.certificate.mechanism.scales.values()
    q = math.exp(-1 / scale)
    one = (1 - q) / (1 + q) * q ** np.abs(values)
    cells = pd.DataFrame({"count": (noises + truths).ravel()}, index=nothing.index)
    return recertified(cells, nothing), np.multiply.outer(one, one).ravel()


@pytest.mark.full
@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("truths", [(0, 1), (1, 1), (1, 4), (5, 2), (50, 50)], ids=str)
def test_coverage_is_at_least_as_large_as_it_says(truths, level):
    frame, chances = noisy(truths, 40, "laplace", epsilon=1)
    assert chances.sum() > 1 - 1e-9
    shares = quotients_of(frame.dp.percent(level=level, by="g")).iloc[::2]
    truth = 100 * truths[0] / sum(truths)
    held = (shares["low"] <= truth) & (truth <= shares["high"])
    assert level <= chances[held.to_numpy()].sum()
    if min(truths) == 50:
        half = shares.iloc[len(shares) // 2]  # no noise at all
        assert half["high"] - half["low"] < 10


def test_percentages_within_groups_go_with_the_certificate():
    frame = released("two keys")
    table = frame.dp.percent(by="zone", level=0.9)
    wanted = quotients_of(frame.dp.percent(by="zone", level=0.9))[["estimate", "low", "high"]]
    assert (table.iloc[:, 1:].to_numpy() == wanted.to_numpy()).all()
    (step, low, high) = dpf.verify(table).table.definitions
    assert (step.call, step.column, step.chain[0].by) == ("derive", "count", ("zone",))
    assert (low.end, high.end) == ("low", "high")
    assert "percentages of the total by zone, of count" in repr(table.dp.certificate)
    later = table.dp.round({"count_percent": 0}).dp.rename(levels={"zone": "borough"}).head(3)
    assert dpf.verify(later, against=frame)
    renamed = frame.dp.rename(levels={"zone": "borough"})
    made = renamed.dp.percent(by="borough").dp.certificate
    assert made.table.definitions[-1].chain[0].by == ("zone",)
    with raises(QueryError, "levels", parameter="by"):
        renamed.dp.percent(by="zone")


def test_files_keep_within_what_percentages_are(tmp_path):
    table = released("histogram by key").dp.percent(by="zone")
    table.dp.write_csv(tmp_path / "table.csv")
    back = dpf.read_csv(tmp_path / "table.csv")
    assert dpf.verify(back) == table.dp.certificate
    for key, of_key in back.groupby(level="zone"):
        assert of_key.iloc[:, 1].sum() == pytest.approx(100), key


@pytest.mark.parametrize(
    "by",
    ["x", [], ["zone", "day"], ("zone", "day"), ["zone", "zone"], [None], [["zone"]], 0],
    ids=str,
)
def test_what_makes_no_groups_is_refused(by):
    with raises(QueryError, "'zone', 'day'", parameter="by", value=by):
        released("two keys").dp.percent(by=by)


def test_frames_are_not_shown():
    with raises(QueryError, "a Series", parameter="by") as error:
        quotients_of(released("two keys").dp.percent(by=pd.Series(["secret"])))
    assert "secret" not in str(error.value)


def test_rows_that_were_left_out_are_missed():
    whole = released("two keys")
    few = whole.head(4)
    assert quotients_of(few.dp.percent(by="zone")).equals(
        quotients_of(whole.dp.percent(by="zone")).head(4)
    )
    with raises(QueryError, "levels", parameter="by", value="zone"):
        quotients_of(released("one key").dp.percent(by="zone"))
    with pytest.raises(CallError, match="by position"):
        quotients_of(released("two keys").dp.percent("count", 0.95, "zone"))


def shares_of(truth, noises, epsilon, level):
    """Intervals of all percentages of tables of three counts, one table for each noise."""
    frame = pd.DataFrame({"at": pd.Series([], dtype=int), "g": pd.Series([], dtype=int)})
    keys = {"at": range(len(noises)), "g": range(len(truth))}
    frame.dp.declare(keys=keys, privacy_unit=dpf.EACH_ROW)
    empty = frame.dp.count(["at", "g"], mechanism="laplace", epsilon=epsilon)
    table = replaced(empty, (noises + truth).ravel())
    found = quotients_of(table.dp.percent(by="at", level=level))[["low", "high"]].to_numpy()
    return found.reshape(*noises.shape, 2)


@pytest.mark.full
@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("epsilon", [1.5, 3, 5])
@pytest.mark.parametrize("truth", [(4, 11, 30), (0, 3, 1)])
def test_percentages_of_laplace_counts_hold_as_often_as_their_law_says(truth, epsilon, level):
    values = np.arange(-7, 8)
    noises = np.array(list(itertools.product(values, repeat=3)))
    chances = np.prod(np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(noises)), axis=1)
    ends = np.concatenate(
        [shares_of(truth, part, epsilon, level) for part in np.array_split(noises, 5)]
    )
    right = 100 * np.divide(truth, sum(truth))
    slack = 1e-9
    held = (ends[:, :, 0] <= right + slack) & (right <= ends[:, :, 1] + slack)
    assert (chances @ held + 1 - chances.sum() >= level).all()
    if truth[0] and epsilon < 5:
        middle, half = ends.mean(axis=2), 0.95 * (ends[:, :, 1] - ends[:, :, 0]) / 2
        narrow = np.abs(right - middle) <= half
        assert (chances @ narrow < level).any()  # planted: a bit too narrow
        assert (chances @ held).mean() < level + 0.13  # the law has few values, next to 1


@pytest.mark.parametrize("epsilon", [4, 8])
def test_with_noise_of_less_than_half_a_row_a_certain_share_is_certain(epsilon):
    frame = pd.DataFrame({"zone": ["A"] * 500})
    query = dpf.count(by="zone", keys=["A", "B", "C"])
    released = dpf.release(frame, query, epsilon=epsilon, privacy_unit=dpf.EACH_ROW)
    shares = quotients_of(released.dp.percent())[["low", "high"]]
    sure = released["count"].tolist() == [500, 0, 0]  # with a chance of .9 at epsilon 4
    whole = np.array([[100, 100], [0, 0], [0, 0]])
    if epsilon == 8 and sure:
        np.testing.assert_allclose(shares, whole, atol=1e-6)
    assert shares.loc["A", "low"] > 98 and shares.loc[["B", "C"], "high"].max() < 2

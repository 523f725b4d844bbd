"""The test of independence: its statistic, its law, and what it refuses."""

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.errors import QueryError
from dpframe.inference.independence import CellNoise, NoisyTable, cramers_v
from dpframe.privacy.laws import LAPLACE

KEYS = {"tea": ["yes", "no"], "milk": ["much", "little", "none"], "year": [1, 2]}
RNG = np.random.default_rng(3)
CLEAR = {"epsilon": 1e6, "mechanism": "laplace"}


def answers(n=600):
    tea = RNG.integers(0, 2, n)
    milk = np.where(RNG.random(n) < 0.4, tea, RNG.integers(0, 3, n))
    frame = pd.DataFrame(
        {
            "tea": np.array(KEYS["tea"])[tea],
            "milk": np.array(KEYS["milk"])[milk],
            "year": RNG.integers(1, 3, n),
            "cost": 1.0,
        }
    )
    frame.dp.declare(keys=KEYS, privacy_unit=dpf.EACH_ROW, bounds={"cost": (0, 1)})
    return frame


def test_without_noise_the_statistic_is_that_of_pearson():
    frame = answers()
    exact = pd.crosstab(frame["tea"], frame["milk"]).loc[KEYS["tea"], KEYS["milk"]].to_numpy()
    expected = np.outer(exact.sum(1), exact.sum(0)) / exact.sum()
    pearson = ((exact - expected) ** 2 / expected).sum()
    found = dpf.independence(frame.dp.count(["tea", "milk"], **CLEAR)).iloc[0]
    assert found["statistic"] == pytest.approx(pearson, rel=1e-9)
    assert found["p_value"] == 0.001
    assert cramers_v(exact / exact.sum()) == pytest.approx(np.sqrt(pearson / len(frame)))
    assert found["low"] < np.sqrt(pearson / len(frame)) < found["high"]
    assert found["low"] <= found["cramers_v"] <= found["high"]


def test_there_is_one_test_for_each_table_in_any_order_of_rows():
    released = answers().dp.count(["year", "tea", "milk"], epsilon=1)
    found = released.dp.independence()
    assert list(found.index) == [1, 2]
    assert found.index.name == "year"
    resorted = released.sort_values("count")
    pd.testing.assert_frame_equal(found, resorted.dp.independence().loc[[1, 2]])
    pd.testing.assert_frame_equal(found, dpf.independence(released))  # the same in every run
    two = dpf.independence(answers().dp.count(["year", "tea"], epsilon=1))
    assert two.index.tolist() == [0]


def test_noise_is_no_association():
    noise, rng = CellNoise(LAPLACE, 2.0), np.random.default_rng(2)
    shares = np.outer([0.85, 0.1, 0.05], [0.6, 0.25, 0.1, 0.05])

    def p_value(noisy, known):
        return NoisyTable(noisy, known).p_value(199)

    tables = rng.multinomial(200, shares.ravel(), 300).reshape(-1, 3, 4)
    noisy = tables + noise.draw(tables.shape, rng)
    rejected = np.mean([p_value(one, noise) <= 0.05 for one in noisy])
    naive = np.mean([p_value(one, CellNoise(LAPLACE, 0.0)) <= 0.05 for one in noisy])
    # 5 % are expected, with a standard error of 1.3 %: more than 12 % in one run of 10 million
    assert rejected < 0.12 < naive


def test_empty_and_negative_tables_have_answers():
    noise = CellNoise(LAPLACE, 1.0)
    for counts in (np.zeros((2, 2)), np.full((2, 3), -4.0), np.diag([5.0, 0.0])):
        table = NoisyTable(counts, noise)
        low, high = table.association(0.95)[1:]
        assert 0 < table.p_value() <= 1
        assert 0 <= low <= high <= 1


@pytest.mark.parametrize(
    ("made", "telling"),
    [
        (lambda frame: frame.dp.count("tea", epsilon=1), "two columns"),
        (
            lambda frame: frame.dp.count(["tea", "milk"], epsilon=1).head(2).dp.publish(),
            "needs all cells",
        ),
        (lambda frame: frame.dp.sum("cost", ["tea", "milk"], epsilon=1), "counts"),
        (lambda frame: frame.dp.margins(["tea", "milk"], 2, epsilon=1)["tea", "milk"], "alone"),
    ],
)
def test_what_is_no_table_of_counts_is_refused(made, telling):
    with pytest.raises(QueryError, match=telling):
        made(answers()).dp.independence()


def test_several_rows_of_a_unit_are_refused():
    frame = answers()
    frame["person"] = np.arange(len(frame)) // 3
    frame.dp.declare(keys=KEYS, privacy_unit="person", max_rows=3)
    with pytest.raises(QueryError, match="max_rows=1"):
        frame.dp.count(["tea", "milk"], epsilon=1).dp.independence()
    assert len(frame.dp.count(["tea", "milk"], max_rows=1, epsilon=1).dp.independence()) == 1


@pytest.mark.full
@pytest.mark.parametrize("keys", [2, 3])
def test_groupings_that_are_the_same_may_have_a_v_of_one(keys):
    """Each of 40 intervals of 99 % misses it with chance .005: more than 4 with chance 5e-7."""
    people = pd.DataFrame({"a": np.arange(600) % keys, "run": 0})
    people["b"] = people["a"]
    people = pd.concat([people.assign(run=run) for run in range(40)], ignore_index=True)
    keyed = {"run": range(40), "a": range(keys), "b": range(keys)}
    people.dp.declare(keys=keyed, privacy_unit=dpf.EACH_ROW)
    made = people.dp.count(["run", "a", "b"], epsilon=1, mechanism="laplace")
    found = made.dp.independence(level=0.99)
    assert (found["high"] < 1).sum() <= 4
    assert (found["low"] > 0.9).all()

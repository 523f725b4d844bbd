"""Counting privacy units: released, previewed, certified and shown like any other query."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import QueryError

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

ZONES = ["A", "B", "C"]
EXACT = {"epsilon": 1e6}


def trips(**facts):
    """Ten drivers, each with many trips in A and some, for every second one, in B."""
    rows = np.arange(200)
    frame = pd.DataFrame(
        {
            "driver": rows % 10,
            "zone": pd.Series(np.where((rows % 2 == 1) & (rows > 100), "B", "A"), dtype=object),
            "fare": rows % 13,
        }
    )
    facts = {"privacy_unit": "driver", "max_rows": 2, **facts}
    frame.dp.declare(keys={"zone": ZONES}, bounds={"fare": (0, 12)}, **facts)
    return frame


@pytest.mark.parametrize("ask", ["accessor", "function"])
def test_a_unit_counts_once_in_each_of_its_groups(ask):
    frame = trips()
    if ask == "accessor":
        found = frame.dp.units("zone", **EXACT)
    else:
        found = dpf.release(frame, dpf.units("zone"), **EXACT)
    assert list(found.columns) == ["units"]
    assert found["units"].tolist() == [10, 5, 0]
    # the rows that caps leave are fewer
    assert frame.dp.count("zone", **EXACT)["count"].sum() == 20


def test_rows_without_a_unit_count_nowhere():
    frame = pd.DataFrame({"u": ["p", None, "p", "q"], "zone": ["A", "A", "A", "C"]})
    frame.dp.declare(keys={"zone": ZONES}, privacy_unit="u", max_groups=2, max_rows_per_group=5)
    assert frame.dp.units("zone", **EXACT)["units"].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("facts", "groups"),
    [
        ({"max_rows": 2}, 2),
        ({"max_rows": 50}, 3),
        ({"max_rows": 50, "max_groups": 1}, 1),
        ({"max_rows": 1, "max_groups": 2}, 1),
        ({"max_rows": None, "max_rows_per_group": 9}, 3),
    ],
)
def test_the_noise_hides_the_groups_that_a_unit_can_be_in(facts, groups):
    frame = trips(**facts)
    preview = frame.dp.plan(dpf.units("zone"), epsilon=0.5, mechanism="laplace").table
    assert preview.index.tolist() == ["units"]
    assert preview["sigma"].item() == pytest.approx(groups / 0.5, rel=1e-9)
    assert preview["per"].item() == "cell"
    made = frame.dp.units("zone", epsilon=0.5, mechanism="laplace")
    assert made.dp.std_error["units"].iloc[0] == pytest.approx(preview["std_error"].item())


def test_correlated_noise_is_of_use():
    frame = trips(max_rows=9, max_groups=5)
    keys = list("ABCDEFGHIJ")
    query = dpf.units("zone", keys=keys)
    chosen = frame.dp.plan(query, mu=0.3)
    plain = frame.dp.plan(query, mu=0.3, mechanism="gaussian")
    assert chosen.mechanism == "correlated"
    assert chosen.cost == plain.cost
    assert chosen.table["std_error"].item() < 0.9 * plain.table["std_error"].item()


def test_released_units_have_intervals_pictures_and_denoised_columns():
    made = trips().dp.units("zone", epsilon=1, denoise="nonnegative")
    bars = made.dp.interval()
    assert (bars["units_low"] <= made["units"].clip(lower=0)).all()
    assert (bars["units_high"] > made["units"]).all()
    assert (made["units_denoised"] >= 0).all()
    dpf.schema(made).validate(made)
    assert made.dp.plot().get_ylabel() == "units"
    plt.close("all")


def test_the_ledger_says_that_units_were_counted():
    frame = trips(budget=dpf.Budget(1))
    frame.dp.units("zone", epsilon=0.25)
    (entry,) = frame.dp.ledger.entries
    assert "units by zone" in frame.dp.ledger.to_frame().to_string()
    assert entry.loss.epsilon == 0.25


def test_units_and_rows_are_released_together_but_not_aggregated():
    frame = trips(budget=dpf.Budget(1, 1e-6))
    with raises(QueryError, "people= counts units", parameter="people"):
        frame.dp.aggregate("zone", people=dpf.units(), n=dpf.count(), epsilon=1)
    asked = {"people": dpf.units("zone"), "rows": dpf.aggregate("zone", n=dpf.count())}
    made = frame.dp.release(asked, epsilon=1)
    assert [list(table.columns) for table in made.values()] == [["units"], ["n"]]
    assert frame.dp.budget.spent.epsilon == 1


@pytest.mark.parametrize("wrong", [{"where": 5}, {"by": {"zone"}}, {"where": "fare >"}])
def test_what_is_no_query_is_refused(wrong):
    with pytest.raises(QueryError):
        dpf.units(**wrong)


def test_a_cap_on_rows_of_a_group_is_refused_where_it_would_change_nothing():
    frame = trips()
    for ask in (dpf.units, frame.dp.units):
        with raises(QueryError, "max_rows_per_group=1", parameter="max_rows_per_group"):
            ask("zone", max_rows_per_group=1)
    assert dpf.units("zone", max_rows_per_group=None, max_groups=1).limits.groups == 1
    declared = trips(max_rows=None, max_groups=2, max_rows_per_group=3)
    assert declared.dp.units("zone", **EXACT)["units"].tolist() == [10, 5, 0]

"""Tables computed from released ones: their numbers, their records, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from support.quotients import quotients_of
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CertificateError, QueryError

KEYS = {"ward": ["A", "B", "C"], "age": ["young", "old"], "year": [2023, 2024, 2025]}
BY = list(KEYS)
RESIDENTS = pd.Series(
    {("A", "young"): 900, ("A", "old"): 400, ("B", "young"): 700, ("B", "old"): 500}
    | {("C", "young"): 300, ("C", "old"): 800}
).rename_axis(["ward", "age"])
STANDARD = {"young": 3, "old": 1}
SPENDS = {
    "laplace": {"mechanism": "laplace", "epsilon": 1},
    "gaussian": {"mechanism": "gaussian", "rho": 0.1},
    "box": {"mechanism": "box", "epsilon": 1},
    "correlated": {"mechanism": "correlated", "epsilon": 1, "delta": 1e-6},
}


def rows():
    at = np.arange(2_000)
    frame = pd.DataFrame({"ward": np.array(["A", "B", "C"])[at * 7 % 11 % 3]})
    frame["age"] = np.array(["young", "old"])[at % 5 // 3]
    frame["year"] = 2023 + at * 13 % 17 % 3
    frame["cost"] = at * 31 % 97 / 10
    return frame


def released(spend="laplace", outputs=None, **declared):
    frame = rows()
    facts = {"keys": KEYS, "bounds": {"cost": (0, 10)}, "privacy_unit": dpf.EACH_ROW}
    frame.dp.declare(**facts | declared)
    query = dpf.aggregate(
        BY, **(outputs or {"n": dpf.count(), "total": dpf.sum("cost"), "cost": dpf.mean("cost")})
    )
    return frame.dp.release(query, **SPENDS[spend])


MADE = {
    "total": lambda r: r.dp.total(["ward", "year"]),
    "total of all": lambda r: r.dp.total(),
    "margins": lambda r: r.dp.total(["year", "age"], margins=True),
    "joined keys": lambda r: r.dp.total({"ward": {"B": "other", "C": "other"}}),
    "change": lambda r: r.dp.change("year"),
    "change in percent": lambda r: r.dp.change("year", percent=True, lag=2),
    "change of totals": lambda r: r.dp.total(["ward", "year"]).dp.change("year"),
    "percent": lambda r: r[["n"]].dp.percent(by=["ward", "year"]),
    "percent of a number": lambda r: r[["n"]].dp.percent(of=2_000),
    "percent of totals": lambda r: r[["total"]].dp.total(["ward"]).dp.percent(),
    "per": lambda r: r[["n"]].dp.per(RESIDENTS),
    "standardize": lambda r: r[["n"]].dp.standardize(STANDARD, over="age", population=RESIDENTS),
    "standardize means": lambda r: r[["cost"]].dp.standardize(STANDARD, over="age"),
    "change of standardized means": lambda r: (
        r[["cost"]].dp.standardize(STANDARD, over="age", unit=1_000).dp.change("year")
    ),
    "relative": lambda r: r[["n"]].dp.relative("year", to=2023),
    "ratio": lambda r: r.dp.ratio("total", "n"),
    "chain": lambda r: (
        r[["n"]]
        .dp.standardize(STANDARD, over="age", population=RESIDENTS)
        .dp.change("year", percent=True)
    ),
}


@pytest.mark.parametrize("spend", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", MADE)
def test_each_table_is_computed_again_from_its_release_and_altered_ones_are_refused(name, spend):
    release = released(spend)
    table = MADE[name](release)
    assert dpf.verify(table, against=release).state == "post-processed"
    numbers = table.to_numpy(float)
    assert not np.isnan(numbers).any()
    wide = table.unstack(table.index.names[-1]) if table.index.nlevels > 1 else table
    assert dpf.verify(wide, against=release) and dpf.verify(table.iloc[::-1], against=release)
    altered = table.copy()
    altered.iloc[0, -1] += 1 + abs(altered.iloc[0, -1])
    with raises(CertificateError, "neither the released one nor a rounding"):
        dpf.verify(altered)
    public = table.dp.round(2).dp.publish(note="a table")
    assert dpf.verify(public, against=release)
    hidden = public.dp.certificate.table.salt is None  # without it, nobody can guess the release
    assert hidden or name in ("percent", "percent of a number", "per", "relative", "ratio")
    with raises(CertificateError, "not made from that release"):
        dpf.verify(public, against=released(spend))


def test_numbers_are_those_of_pandas():
    r = released()
    total = r.dp.total(["ward", "year"])
    wanted = r[["n", "total"]].groupby(level=["ward", "year"], sort=False).sum()
    np.testing.assert_allclose(total[["n", "total"]], wanted)
    margins = r.dp.total(["ward", "age"], margins=True)
    assert margins.loc[("All", "All"), "n"] == r["n"].sum() and len(margins) == 12
    assert margins.loc[("B", "All"), "n"] == r.loc["B", "n"].sum()
    other = r.dp.total({"ward": {"B": "other", "C": "other"}})
    assert (
        other.loc[("other", "old", 2024), "n"]
        == r.loc[["B", "C"], "n"].xs(("old", 2024), level=["age", "year"]).sum()
    )
    change = r.dp.change("year")
    assert change.loc[("A", "old", 2025), "n"] == r.loc[("A", "old"), "n"].diff().loc[2025]
    mean = r["cost"] - r.groupby(level=["ward", "age"])["cost"].shift()
    np.testing.assert_allclose(change["cost"], mean.loc[change.index])
    relative = r[["n"]].dp.relative("year", to=2024)["n_relative"]
    n = r["n"].clip(lower=0)
    base = r["n"].xs(2024, level="year").clip(lower=1)
    wanted = [n[key] / base[key[:2]] for key in r.index]
    np.testing.assert_allclose(relative, wanted)
    rate = r[["n"]].dp.per(RESIDENTS, unit=1_000)["n_per_1000"]
    np.testing.assert_allclose(
        rate, [1_000 * r.loc[key, "n"] / RESIDENTS[key[:2]] for key in r.index]
    )
    rates = r[["n"]].dp.standardize(STANDARD, over="age", population=RESIDENTS)["n"]
    for ward, year in rates.index:
        own = sum(
            weight / 4 * r.loc[(ward, age, year), "n"] / RESIDENTS[ward, age]
            for age, weight in STANDARD.items()
        )
        assert rates[ward, year] == pytest.approx(1e5 * own)


def test_the_mean_of_joined_groups_is_that_of_their_rows():
    r = released(outputs={"n": dpf.count(), "cost": dpf.mean("cost")}, privacy_unit=dpf.EACH_ROW)
    features = r.dp.certificate.columns[1].totals.values
    total = r.dp.total("ward")
    groups = r.index.get_level_values("ward")
    for ward in KEYS["ward"]:
        y, n = (features[name][groups == ward].sum() for name in ("y", "rows"))
        assert total.loc[ward, "cost"] == pytest.approx(5 + 5 * y / n)
        assert total.loc[ward, "cost_low"] < total.loc[ward, "cost"] < total.loc[ward, "cost_high"]


@pytest.mark.parametrize("spend", SPENDS)
@pytest.mark.parametrize("label", ["n", "total"])
def test_linear_tables_have_the_intervals_of_combine(spend, label):
    r = released(spend)[[label]]
    total, change = r.dp.total("ward"), r.dp.change("year")
    for ward in KEYS["ward"]:
        wanted = r.dp.combine(pd.DataFrame({label: 1.0}, r.loc[[ward]].index)).iloc[0]
        found = total.loc[ward]
        assert found[label] == pytest.approx(wanted["estimate"])
        slack = 1.0 if label == "n" else 0.02 * (wanted["high"] - wanted["low"])
        assert found[f"{label}_low"] == pytest.approx(wanted["low"], abs=slack)
    weights = pd.DataFrame({label: [-1.0, 1.0]}, r.index[[0, 1]])
    wanted = r.dp.combine(weights).iloc[0]
    slack = 1.0 if label == "n" else 0.05 * (wanted["high"] - wanted["low"])
    assert change.iloc[0, 2] == pytest.approx(wanted["high"], abs=slack)


@pytest.mark.parametrize("spend", ["laplace", "gaussian"])
def test_standardized_means_are_those_of_combine(spend):
    parts = {"then": released(spend)[["cost"]], "now": released(spend)[["cost"]]}
    r = dpf.concat(parts, name="part")
    rates = r.dp.standardize(STANDARD, over="age")
    changes = rates.dp.change("part")
    for ward in KEYS["ward"]:
        then, now = (
            {(part, ward, age, 2024): weight / 4 for age, weight in STANDARD.items()}
            for part in parts
        )
        wanted = r.dp.combine(now)[["estimate", "low", "high"]].iloc[0]
        np.testing.assert_allclose(rates.loc[("now", ward, 2024)], wanted, rtol=1e-9)
        change = now | {key: -weight for key, weight in then.items()}
        wanted = r.dp.combine(change)[["estimate", "low", "high"]].iloc[0]
        np.testing.assert_allclose(changes.loc[("now", ward, 2024)], wanted, rtol=1e-9)


def test_percentages_of_people_with_several_answers():
    people = pd.DataFrame({"p": np.repeat(range(1_000), 2), "lang": ["A", "B"] * 1_000})
    people.dp.declare(
        privacy_unit="p", max_groups=2, max_rows_per_group=1, keys={"lang": ["A", "B"]}
    )
    spoken = people.dp.units("lang", epsilon=20)
    for call, way_out in ((spoken.dp.percent, "of=df.dp.units"), (spoken.dp.total, "units(by=")):
        with raises(QueryError, way_out):
            call()
    everybody = people.dp.units(epsilon=20)
    found = spoken.dp.percent(of=everybody)
    assert found["units_percent"].between(99, 100).all()
    assert (found["units_percent_high"] <= 100).all()
    assert dpf.verify(found, against=found)
    assert dpf.verify(found.dp.publish(), against=found)
    assert spoken.dp.percent(of=1_000)["units_percent"].between(99, 101).all()
    once = people.drop_duplicates("p").dp
    once.declare(privacy_unit="p", max_rows=1, keys={"lang": ["A", "B"]})
    assert once.units("lang", epsilon=20).dp.percent()["units_percent"].iloc[0] > 99


REFUSED = {
    "a percentage of percentages": (lambda r: r[["n"]].dp.percent().dp.total("ward"), "last"),
    "totals of totals with margins": (
        lambda r: r.dp.total(["ward", "year"], margins=True)[["n"]].dp.percent(),
        "apart",
    ),
    "an unknown level": (lambda r: r.dp.total("zone"), "'ward'"),
    "a level twice": (lambda r: r.dp.total(["ward", "ward"]), "once"),
    "an unknown key": (lambda r: r.dp.relative("year", to=1999), "2023"),
    "no earlier row": (lambda r: r.dp.change("year", lag=3), "no two rows"),
    "a lag of nothing": (lambda r: r.dp.change("year", lag=0), "lag"),
    "a population of nobody": (lambda r: r.dp.per(RESIDENTS * [0, 1, 1, 1, 1, 1]), '"A", "young"'),
    "a population that lacks a key": (lambda r: r.dp.per(RESIDENTS.iloc[1:]), '"A", "young"'),
    "a population of others": (
        lambda r: r.dp.per(pd.Series({"A": 1, "B": 1, "C": 1, "D": 1}).rename_axis("ward")),
        '"D"',
    ),
    "a population without names": (lambda r: r.dp.per({"A": 1, "B": 2, "C": 3}), "name them"),
    "weights that lack a key": (
        lambda r: r.dp.standardize({"old": 1}, over="age", population=9.0),
        '"young"',
    ),
    "several levels": (
        lambda r: r[["n"]].dp.standardize(9.0, over=["age", "year"], population=9.0),
        "must be one level",
    ),
    "a mean of counts": (lambda r: r.dp.standardize(STANDARD, over="age"), "Give population="),
    "a mean of joined means": (
        lambda r: r[["cost"]].dp.total(["age", "year"]).dp.standardize(STANDARD, over="age"),
        "before totals",
    ),
    "a percentage of standardized means": (
        lambda r: r[["cost"]].dp.standardize(STANDARD, over="age").dp.change("year", percent=True),
        "last",
    ),
    "a quotient of a mean": (lambda r: r.dp.percent("cost"), "a count or a sum"),
    "another label": (lambda r: r.dp.percent("mean"), "'n'"),
    "a key that is there": (lambda r: r.dp.total("ward", margins=True, margins_name="A"), "have"),
    "a key that is shown": (
        lambda r: r.dp.rename(keys={"ward": {"A": "All"}}).dp.total("ward", margins=True),
        "two keys 'All'",
    ),
    "no key": (lambda r: r.dp.total("ward", margins=True, margins_name=np.nan), "not missing"),
    "a percentage of itself": (lambda r: r[["n"]].dp.percent(of=r[["n"]]), "another release"),
    "intervals of it": (lambda r: r.dp.total("ward").dp.interval(), "beside its numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_is_refused_with_a_way_out(case):
    call, words = REFUSED[case]
    with raises(QueryError, words):
        call(released())


def test_groups_of_any_law_hold_a_row_divided_by_itself():
    made = released()[["n"]].dp.relative("year", to=2023)
    own = quotients_of(made).xs(2023, level="year")
    assert (own == 1).all(axis=None)


def test_columns_follow_new_names():
    r = released()[["n"]].dp.rename({"n": "visits"}, levels={"ward": "area"})
    table = r.dp.total(["area", "year"])
    assert list(table.columns) == ["visits", "visits_low", "visits_high"]
    assert table.index.names == ["area", "year"]
    assert dpf.verify(table, against=r)
    assert list(r.dp.percent(by="area").columns)[1] == "visits_percent"


def test_times_stay_times():
    waits = pd.DataFrame({"zone": ["A", "B"] * 50, "year": [1, 1, 2, 2] * 25})
    waits["wait"] = pd.to_timedelta(range(100), unit="min")
    hours = (pd.Timedelta(0), pd.Timedelta("2h"))
    waits.dp.declare(
        keys={"zone": ["A", "B"], "year": [1, 2]}, bounds={"wait": hours}, privacy_unit=dpf.EACH_ROW
    )
    r = waits.dp.aggregate(["zone", "year"], s=dpf.sum("wait"), m=dpf.mean("wait"), epsilon=1e3)
    total = r.dp.total("zone")
    assert abs(total["s"].sum() - waits["wait"].sum()) < pd.Timedelta("9min")
    assert total["m"].between(pd.Timedelta("45min"), pd.Timedelta("54min")).all()
    change = r.dp.change("year")
    assert all(dtype.kind == "m" for dtype in [*total.dtypes, *change.dtypes])
    assert dpf.verify(change, against=r) and dpf.verify(total, against=r)

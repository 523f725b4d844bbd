"""Several releases in one table: each keeps its intervals, and the table its certificates."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from matplotlib.figure import Figure
from support.certifying import carry_text, record_of
from support.publishing import KINDS, STEPS, ZONES, is_refused, made, released
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CertificateError, QueryError

YEARS = {2025: {"epsilon": 2}, 2026: {"epsilon": 1, "delta": 1e-6, "mechanism": "gaussian"}}
QUERY = dpf.aggregate("zone", keys=ZONES, n=dpf.count(), fare=dpf.mean("fare", bounds=(0, 25)))


def years(query=QUERY):
    return {year: made(query, **spend)() for year, spend in YEARS.items()}


def exchanged(table):
    """Exchange the labels of two columns, step by step."""
    return table.dp.rename({"n": "x", "fare": "n"}).dp.rename({"x": "fare"})


def joined(tables):
    return dpf.concat(tables, name="year")


def expected(tables, make):
    return pd.concat({year: make(table) for year, table in tables.items()}, names=["year"])


@pytest.mark.parametrize("kind", KINDS)
def test_releases_of_every_kind_keep_their_intervals(kind):
    tables = {"one": released(kind), "other": released(kind)}
    both = joined(tables)
    certificate = dpf.verify(both)
    assert certificate.state == "post-processed" and len(certificate.releases) == 2
    for make in (lambda f: f.dp.interval(0.9), lambda f: f.dp.std_error, pd.DataFrame):
        wanted = expected(tables, make)
        if both.index.nlevels == 1:  # totals
            wanted = wanted.droplevel(1)
        pd.testing.assert_frame_equal(make(both), wanted, check_index_type=False)
    dpf.schema(both).validate(both)
    both.dp.plot(column=both.columns[0], ax=Figure().add_subplot())


@pytest.mark.parametrize("steps", list(product(STEPS, STEPS)), ids="-".join)
@pytest.mark.sampled(every=4, full=3)
def test_steps_follow(steps):
    if is_refused("several", *steps):
        return
    tables = years()
    both = joined(tables)
    between = STEPS[steps[0]](both)
    table = STEPS[steps[1]](between)
    assert dpf.verify(table, against=both).table.joined.keys == ("2025", "2026")
    bars = expected(tables, lambda f: f.dp.interval()).loc[table.index].to_numpy(float)
    ends = table.dp.interval(chosen="keys").to_numpy(float, na_value=np.nan)
    here = table.iloc[:, : ends.shape[1] // 2].notna().to_numpy().repeat(2, axis=1)
    assert (np.isnan(ends) == ~here).all()
    assert (ends[:, ::2] <= bars[:, ::2] + 1e-9)[here[:, ::2]].all()
    assert (ends[:, 1::2] >= bars[:, 1::2] - 1e-9)[here[:, 1::2]].all()


def test_years_become_columns():
    tables = years()
    both = joined(tables)
    wide = dpf.certify(both["n"].unstack("year"), of=tables, name="year")
    for year, table in tables.items():
        assert wide[year].equals(table["n"].rename(year))
        bars = wide.dp.interval().loc[year]
        assert (bars.to_numpy() == table.dp.interval()[["n_low", "n_high"]].to_numpy()).all()
    few = wide.sort_values(2026).head(2).dp.round(-1).dp.suppress(below=300)
    assert dpf.verify(few, against=both).state == "post-processed"


def test_the_rows_that_are_shown_are_joined():
    one, other = years().values()
    some = joined({2025: one.tail(1).round(-1), 2026: other.head(2).round(-1)})
    assert list(some.index) == [(2025, "D"), (2026, "A"), (2026, "B")]
    assert some.loc[(2026, "A"), "n"] == round(other.loc["A", "n"], -1)
    whole = joined({2025: one, 2026: other})
    dpf.verify(some, against=whole)
    bars = some[["n"]].dp.interval(chosen="keys")["n_low"]
    assert (bars <= whole.dp.interval()["n_low"].loc[some.index]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_cell_comes_twice(kind):
    table = released(kind)
    tables = {"all": table, "one": table.tail(1)}
    with pytest.raises(QueryError, match="releases 1 and 2 have cells of one release"):
        dpf.concat(tables, name="part")


def test_columns_of_one_release_may_be_put_below_each_other():
    table = released("several")
    parts = {label: table[[label]].dp.rename({label: "n"}) for label in ("flights", "paid")}
    assert list(dpf.concat(parts, name="of")["n"]) == [*table["flights"], *table["paid"]]


def test_intervals_that_hold_at_once_count_all_releases():
    tables = {"a": released("one key"), "b": released("one key")}
    both = joined(tables)
    cells = sum(map(len, tables.values()))
    each = 1 - (1 - 0.95) / cells
    wanted = tables["a"].dp.interval(each)
    assert (both.dp.interval(simultaneous=True).loc["a"] == wanted).all(axis=None)


def test_the_ledger_must_hold_every_release():
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=3))
    frame = pd.DataFrame({"zone": ["A"]})
    frame.dp.declare(keys={"zone": ["A", "B"]}, privacy_unit=dpf.EACH_ROW, ledger=ledger)
    one, other = (frame.dp.count("zone", epsilon=1) for _ in range(2))
    both = joined({1: one, 2: other})
    assert dpf.verify(both, ledger=ledger) == both.dp.certificate
    foreign = joined(
        {
            1: one,
            2: dpf.release(
                pd.DataFrame({"zone": ["A"]}),
                dpf.count("zone", keys=["A", "B"]),
                epsilon=1,
                privacy_unit=dpf.EACH_ROW,
            ),
        }
    )
    with pytest.raises(CertificateError, match="charged to no ledger"):
        dpf.verify(foreign, ledger=ledger)


def from_csv(frame, folder):
    frame.dp.write_csv(folder / "made.csv")
    return dpf.read_csv(folder / "made.csv")


def from_parquet(frame, folder):
    frame.to_parquet(folder / "made.parquet")
    return pd.read_parquet(folder / "made.parquet")


@pytest.mark.parametrize("travel", [from_csv, from_parquet])
@pytest.mark.parametrize("kind", ["several", "two keys", "denoised", "rate", "times"])
def test_tables_of_several_releases_travel_in_files(kind, travel, tmp_path):
    both = joined({"one": released(kind), "other": released(kind)})
    back = travel(both, tmp_path)
    assert dpf.verify(back) == both.dp.certificate
    again = back.dp.interval().reset_index(drop=True)
    pd.testing.assert_frame_equal(again, both.dp.interval().reset_index(drop=True))
    if not is_refused(kind, "round"):
        assert dpf.verify(back.dp.round(-1).head(1)).state == "post-processed"


def test_certificates_fit_their_schema_and_others_do_not():
    validator = Draft202012Validator(dpf.certificate_schema())
    record = record_of(joined(years()))
    validator.validate(record)
    assert not validator.is_valid({**record, "releases": []})


def test_changes_are_found_in_table_and_parts():
    both = joined(years())
    assert dpf.verify(both[::-1]) == both.dp.certificate
    with pytest.raises(CertificateError, match="neither the released one nor a rounding"):
        dpf.verify(both.assign(n=both["n"].to_numpy()[::-1]))
    record = record_of(both)
    record["releases"][0]["privacy_loss"]["mu"] = 0.0
    carry_text(both, record)
    with pytest.raises(CertificateError, match="the certificate itself was changed"):
        dpf.verify(both)


def test_the_certificate_says_what_is_in_the_table():
    both = joined(years())
    certificate = both.dp.certificate
    said = repr(certificate)
    assert "Table of 2 releases" in said and "tables in one by year: 2025, 2026" in said
    assert said.count("privacy unit") == 2 and certificate._repr_html_().count("ledger") == 2
    with raises(QueryError, "2 releases"):
        _ = certificate.privacy_loss  # one of them would be too small
    assert certificate == replace(certificate)


@pytest.mark.parametrize("call", ["denoise", "covariance", "plot_map"])
def test_what_is_about_one_release_is_refused(call):
    both = joined(years())
    arguments = {"plot_map": [{}]}.get(call, [])
    with pytest.raises(QueryError, match="2 releases, each with its own promise"):
        found = getattr(both.dp, call)
        found(*arguments)


def other(query):
    return made(query)()


WRONG = {
    "nothing": (lambda one, two: dpf.concat([]), "must be a list or a dict"),
    "a frame": (lambda one, two: dpf.concat(one), "must be a list or a dict"),
    "rows twice": (lambda one, two: dpf.concat([one, two]), "keys come twice"),
    "a release twice": (
        lambda one, two: dpf.concat({1: one, 2: two, 3: one.dp.round(-1)}, name="year"),
        "releases 1 and 3 have cells of one release, [0-9a-f]{32}, whose noise was drawn once",
    ),
    "keys without a name": (
        lambda one, two: dpf.concat({1: one, 2: two}),
        "name must be that of the level",
    ),
    "a name without keys": (lambda one, two: dpf.concat([one], name="year"), "Give keys="),
    "the name of a column": (
        lambda one, two: dpf.concat({1: one}, name="n"),
        "of no column, got name='n'",
    ),
    "keys of a dict": (lambda one, two: dpf.concat({1: one}, keys=[1], name="y"), "of the dict"),
    "a key less": (lambda one, two: dpf.concat([one, two], keys=[1], name="y"), "keys must be 2"),
    "a key twice": (
        lambda one, two: dpf.concat([one, two], keys=[1, "1"], name="y"),
        "no two may read alike",
    ),
    "half a letter": (lambda one, two: dpf.concat([one], keys=["\ud800"], name="y"), "Unicode"),
    "other columns": (
        lambda one, two: joined({1: one, 2: two[["n"]]}),
        "the same columns and levels",
    ),
    "other kinds": (lambda one, two: joined({1: one[["n"]], 2: exchanged(two)[["n"]]}), "kinds"),
    "a table of several": (lambda one, two: joined({1: joined({1: one}), 2: two}), "in one call"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_go_together_is_refused(name):
    call, message = WRONG[name]
    one, two = years().values()
    with pytest.raises(QueryError, match=message):
        call(one, two)


def test_private_and_changed_frames_are_refused():
    one = released("one key")
    with pytest.raises(CertificateError, match="carries no certificate"):
        dpf.concat([one, pd.DataFrame({"count": [1]})])
    with pytest.raises(CertificateError, match="is not what its certificate was given for"):
        dpf.concat([one + 1])


def margins(outputs=None, **spend):
    at = np.arange(900)
    frame = pd.DataFrame(
        {"zone": np.array(["A", "B", "C"])[at * 7 % 11 % 3], "year": 2024 + at % 2}
    )
    frame["fare"] = at % 20
    frame.dp.declare(
        keys={"zone": ["A", "B", "C"], "year": [2024, 2025]},
        bounds={"fare": (0, 20)},
        privacy_unit=dpf.EACH_ROW,
    )
    tables = [[], ["zone"], ["year", "zone"], ["year"]]
    query = dpf.margins(tables, **(outputs or {"n": dpf.count(), "fare": dpf.sum("fare")}))
    return frame.dp.release(query, **spend or {"epsilon": 1})


@pytest.mark.parametrize(
    "spend", [{"epsilon": 1}, {"rho": 0.1, "mechanism": "gaussian"}, {"epsilon": 1, "delta": 1e-6}]
)
def test_margins_are_one_table_with_released_totals(tmp_path, spend):
    tables = margins(**spend)
    whole = dpf.concat(tables, margins_name="All")
    assert whole.index.names == ["zone", "year"] and len(whole) == 6 + 3 + 2 + 1
    assert whole.loc[("All", "All"), "n"] == tables[()]["n"].item()
    assert whole.loc[("All", 2024), "n"] == tables["year",].loc[2024, "n"]
    bars = whole.dp.interval()
    wanted = tables["zone",].dp.interval().loc["B"]
    assert bars.loc[("B", "All")].tolist() == wanted.tolist()
    weights = {("All", "All"): 1, **dict.fromkeys(whole.index[:6], -1)}
    assert whole[["n"]].dp.combine(weights)["std_error"].item() == pytest.approx(0, abs=1e-6)
    assert dpf.verify(whole).state == "released"
    public = whole.round(-1).unstack("zone").dp.publish()
    assert dpf.verify(public, against=whole).state == "post-processed"
    whole.dp.write_csv(tmp_path / "whole.csv")
    back = dpf.read_csv(tmp_path / "whole.csv")
    assert dpf.verify(back, against=whole) == whole.dp.certificate
    altered = whole.copy()
    altered.loc[("All", "All"), "n"] += 0.5
    with raises(CertificateError, "neither the released one nor a rounding"):
        dpf.verify(altered)
    moved = whole.rename({"A": "All", "All": "A"}, level="zone")
    with raises(CertificateError, "neither the released one nor a rounding"):
        dpf.verify(moved)


def test_releases_of_fewer_groups_are_margins_too():
    frame = pd.DataFrame({"zone": ["A", "B", "B"], "day": [1, 1, 2]})
    frame.dp.declare(keys={"zone": ["A", "B"], "day": [1, 2]}, privacy_unit=dpf.EACH_ROW)
    total = frame.dp.count(epsilon=1e5)
    both = dpf.concat([total, frame.dp.count("zone", epsilon=1e5)], margins_name=0)
    assert both["count"].to_dict() == {"A": 1, "B": 2, 0: 3}
    assert len(dpf.verify(both).releases) == 2


MARGINS_REFUSED = {
    "a key": ({"margins_name": "A"}, "do not have"),
    "no key": ({"margins_name": ["All"]}, "must be a key"),
    "names": ({"margins_name": "All", "name": "of"}, "without margins_name"),
    "other levels": ({"margins_name": "All", "drop": ("zone", "year")}, "got ['year']"),
}


@pytest.mark.parametrize("case", MARGINS_REFUSED)
def test_margins_that_make_no_table_are_refused(case):
    options, message = MARGINS_REFUSED[case]
    tables = margins()
    tables.pop(options.pop("drop", None), None)
    with raises(QueryError, message):
        dpf.concat(tables, **options)


def test_keys_are_as_they_are_shown_where_totals_get_one():
    tables = margins()
    tables["zone",] = tables["zone",].dp.rename(keys={"zone": {"A": "All"}})
    with raises(QueryError, "do not have"):
        dpf.concat(tables, margins_name="All")

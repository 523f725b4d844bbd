"""Margins from a frame to released tables that agree, by all ways to ask for them."""

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
import dpframe.testing as dpt
from dpframe.errors import CalibrationError, DeclarationError, QueryError

pytestmark = pytest.mark.filterwarnings("ignore:epsilon")
KEYS = {"sex": ["f", "m"], "region": ["n", "s", "e"]}
NO_NOISE = {"epsilon": 1e9}
TABLES = [(), ("sex",), ("region",), ("age",), ("sex", "region"), ("sex", "age"), ("region", "age")]


@pytest.fixture
def people():
    rng = np.random.default_rng(4)
    n = 2_000
    made = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n, p=[0.6, 0.4]),
            "region": rng.choice(["n", "s", "e", "?", None], n, p=[0.4, 0.3, 0.2, 0.05, 0.05]),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 90, n)),
            "pay": rng.gamma(2, 10, n),
            "house": rng.integers(0, 700, n),
        }
    )
    made.dp.declare(keys=KEYS, bounds={"pay": (0, 50)}, privacy_unit=dpf.EACH_ROW)
    return made


AGES = dpf.cut("age", [0, 17, 64, 200])


def asked(**options):
    return dpf.margins(["sex", "region", AGES], **options)


def inside(people):
    """Rows that have a place in every column."""
    known = people["region"].isin(["n", "s", "e"]) & (people["age"] >= 0)
    ages = pd.cut(people["age"], [0, 17, 64, 200], include_lowest=True, labels=list(AGES.labels))
    return people.assign(age=ages)[known]


SIDES = {
    "counts": {"up": dpf.count(where="pay > 9"), "down": dpf.count(where="pay <= 9")},
    "sums": {"up": dpf.sum("pay", where="house >= 90"), "down": dpf.sum("pay", where="house < 90")},
    "rates": {
        "up": dpf.rate("pay > 20", where="house >= 90"),
        "down": dpf.rate("pay > 20", where="house < 90"),
    },
}
"""Pairs of conditions of which a row meets one."""


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("beside", [{}, {"n": dpf.count()}], ids=["alone", "beside all rows"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "auto"])
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
def test_no_row_moves_conditions_that_exclude_each_other_beyond_the_charge(
    sides, mechanism, beside, neighboring
):
    rows = pd.DataFrame({"sex": ["f", "m", "f"], "region": ["n", "s", "e"]})
    rows = rows.assign(pay=[50.0, 0.0, 9.5], house=[90, 7, 89])

    def released(frame):
        facts = {"keys": KEYS, "bounds": {"pay": (0, 50)}, "neighboring": neighboring}
        frame.dp.declare(**facts, privacy_unit=dpf.EACH_ROW)
        query = dpf.margins(["sex", "region"], 1, **SIDES[sides], **beside)
        delta = {} if mechanism == "laplace" else {"delta": 1e-6}
        return frame.dp.release(query, epsilon=0.01, mechanism=mechanism, **delta)

    with dpt.record() as run:
        released(rows)
    for row in rows.index:
        other = rows.iloc[[row]].assign(sex="m", region="e", pay=50.0 - rows["pay"][row])
        others = [rows.drop(row)]
        if neighboring == "replace":
            others = [pd.concat([rows.drop(row), other.assign(house=h)]) for h in (90, 7)]
        for neighbor in others:
            with run.replay():
                released(neighbor)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("sides", ["counts", "sums"])
def test_conditions_that_exclude_each_other_cost_what_one_of_them_does(people, sides, mechanism):
    how = {"epsilon": 0.5, "mechanism": mechanism}
    how |= {"delta": 1e-6} if mechanism == "gaussian" else {}
    both = people.dp.plan(dpf.margins(["sex", "region"], 1, **SIDES[sides]), **how).table
    one = {"up": SIDES[sides]["up"]}
    alone = people.dp.plan(dpf.margins(["sex", "region"], 1, **one), **how).table
    errors = both["std_error"].xs("up", level="column")
    expected = alone["std_error"].xs("up", level="column")
    np.testing.assert_allclose(errors, expected, rtol=1e-9)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_tables_hold_what_was_counted_and_agree(people, mechanism):
    query = asked(n=dpf.count(), total=dpf.sum("pay"), pay=dpf.mean("pay"))
    how = {"delta": 1e-6} if mechanism == "gaussian" else {}
    tables = people.dp.release(query, mechanism=mechanism, **NO_NOISE, **how)
    assert list(tables) == TABLES
    rows = inside(people).assign(pay=lambda own: own["pay"].clip(0, 50))
    for table, released in tables.items():
        own = rows.groupby([rows[one] for one in table] or np.zeros(len(rows)), observed=False)
        expected = own["pay"].agg(["size", "sum", "mean"])
        expected = expected.reindex(released.index) if table else expected
        np.testing.assert_allclose(released["n"], expected["size"], atol=0.1)
        np.testing.assert_allclose(released["total"], expected["sum"], rtol=1e-3)
        np.testing.assert_allclose(released["pay"], expected["mean"], rtol=1e-3)
        assert released.index.names == (list(table) or [None])


def test_all_cells_have_the_standard_error_of_the_closed_form(people):
    tables = people.dp.release(dpf.margins(["sex", "region"]), mu=0.1, mechanism="gaussian")
    expected = 10 * np.sqrt(1 + 1 / 3 + 2 / 4 + 1 / 3 * 2 / 4)
    for released in tables.values():
        errors = released.dp.std_error["count"]
        np.testing.assert_allclose(errors, expected, rtol=1e-3)
        assert errors.nunique() == 1


def test_rows_with_another_key_are_in_no_table_or_under_that_of_the_rest(people):
    left = people.dp.margins(["sex", "region"], **NO_NOISE)
    kept = people.dp.margins(["sex", "region"], other={"region": "other"}, **NO_NOISE)
    known = people["region"].isin(KEYS["region"])
    assert left[()]["count"].item() == pytest.approx(known.sum(), abs=0.1)
    assert left["sex",]["count"].sum() == pytest.approx(known.sum(), abs=0.1)
    assert kept[()]["count"].item() == pytest.approx(len(people), abs=0.1)
    assert kept["region",].index.tolist() == ["n", "s", "e", "other"]
    assert kept["region",]["count"]["other"] == pytest.approx((~known).sum(), abs=0.1)


def test_one_sample_of_the_rows_of_a_unit_is_kept_for_all_tables(people):
    people.dp.declare(keys=KEYS, privacy_unit="house", max_rows=2, bounds={"pay": (0, 50)})
    tables = people.dp.margins(["sex", "region"], other="z", **NO_NOISE)
    kept = people["house"].value_counts().clip(upper=2).sum()
    for released in tables.values():
        assert released["count"].sum() == pytest.approx(kept, abs=0.5)
        assert released.dp.certificate.privacy_unit.caps.max_rows == 2


@pytest.mark.parametrize(
    "caps", [{"max_groups": 3, "max_rows_per_group": 1}, {"max_rows": 9, "max_groups": 3}]
)
def test_caps_on_groups_are_refused_and_replaced_by_max_rows(people, caps):
    people.dp.declare(keys=KEYS, privacy_unit="house", **caps)
    with pytest.raises(QueryError, match=r"one cell of every table.*Give max_rows= in the query"):
        people.dp.margins(["sex", "region"], epsilon=1)
    released = people.dp.margins(["sex", "region"], max_rows=3, epsilon=1)
    assert released[()].dp.certificate.privacy_unit.caps.max_rows == 3


def test_max_rows_without_a_unit_is_refused(people):
    with pytest.raises(DeclarationError, match="of a privacy unit"):
        people.dp.margins(["sex"], max_rows=3, epsilon=1)


def test_mechanisms_that_have_no_such_margins_say_so(people):
    with pytest.raises(CalibrationError, match="does not apply to these queries"):
        people.dp.margins(["sex"], epsilon=1, delta=1e-6, mechanism="correlated")
    means = dpf.margins(["sex"], pay=dpf.mean("pay"))
    with pytest.raises(CalibrationError, match="does not apply to these queries"):
        people.dp.release(means, epsilon=1, mechanism="box")


@pytest.mark.parametrize("mechanism", ["correlated", "box"])
def test_noise_that_is_shared_goes_with_margins_beside_other_tables(people, mechanism):
    queries = {
        "by": dpf.margins(["sex", "region"]),
        "s": dpf.aggregate(n=dpf.count(), s=dpf.sum("pay")),
    }
    found = people.dp.release(queries, epsilon=1, delta=1e-6, mechanism=mechanism)
    assert list(found["by"]) == [(), ("sex",), ("region",), ("sex", "region")]


def test_weighted_tables_have_less_error(people):
    query = dpf.margins(["sex", "region"], weights={(): 100})
    even, first = (
        people.dp.plan(one, mu=1, mechanism="gaussian").table["std_error"]
        for one in (dpf.margins(["sex", "region"]), query)
    )
    assert first.iloc[0] < 0.8 * even.iloc[0]
    assert first.iloc[-1] > even.iloc[-1]


def test_the_spend_for_an_error_is_found_by_column_or_table(people):
    query = asked(n=dpf.count(), total=dpf.sum("pay"))
    spend = {"epsilon": 9, "mechanism": "gaussian", "delta": 1e-6}
    for wanted in ({"n": 14.0}, {(("region", "age"), "n"): 14.0}):
        shown = people.dp.plan(query, within=wanted, **spend).table["half_width_95"]
        assert shown[("region", "age"), "n"] == pytest.approx(14, rel=2e-3)
    with pytest.raises(QueryError, match="a dict by output"):
        people.dp.plan(query, within={"m": 7.0}, **spend)


def test_certificates_say_what_was_asked_and_where_groups_come_from(people):
    tables = people.dp.release(asked(other={"region": "z"}), epsilon=1)
    query = tables["region", "age"].dp.certificate.query
    assert query.words == "count in 7 margins by sex, region, age"
    assert [(part.column, part.groups, part.source, part.rest) for part in query.by] == [
        ("region", 4, "declared", "z"),
        ("age", 3, "call", None),
    ]
    ids = {frame.dp.certificate.release_id for frame in tables.values()}
    assert len(ids) == 1
    assert all(dpf.verify(frame) for frame in tables.values())


def test_a_report_says_that_no_row_is_left_out_where_a_group_holds_the_rest(people):
    tables = people.dp.release(asked(other={"region": "z"}), epsilon=1)
    page = str(dpf.report(tables["sex", "region"]))
    assert "sex is missing or not a declared key" in page
    assert "region is missing or not a declared key" not in page
    assert "also holds all that is none of them, or missing" in page


def test_the_ledger_is_charged_once_and_says_what_for(people):
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=2, delta=1e-6))
    people.dp.declare(keys=KEYS, privacy_unit=dpf.EACH_ROW, ledger=ledger)
    people.dp.margins(["sex", "region"], epsilon=1, name="first")
    (entry,) = ledger.entries
    assert entry.what == "count in 4 margins by sex, region"
    assert entry.columns == ("sex", "region")
    with pytest.raises(dpf.errors.AlreadyReleasedError):
        people.dp.margins(["sex", "region"], epsilon=1, name="first")


def test_sums_in_the_last_of_many_cells_do_not_leave_64_bits():
    size = 300_000
    rows = pd.DataFrame({"a": [99] * size, "b": [99] * size, "x": [7.3] * size})
    rows.dp.declare(
        keys={"a": range(100), "b": range(100)}, bounds={"x": (0, 7.5)}, privacy_unit=dpf.EACH_ROW
    )
    query = dpf.margins(["a", "b"], total=dpf.sum("x"), mean=dpf.mean("x"))
    tables = rows.dp.release(query, epsilon=1, delta=1e-6, mechanism="gaussian")
    last = tables["a", "b"].loc[(99, 99)]
    assert last["total"] == pytest.approx(7.3 * size, rel=1e-3)
    assert last["mean"] == pytest.approx(7.3, rel=1e-3)

"""Margins made whole numbers that add up, in the call of their release or afterwards."""

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.errors import CertificateError, QueryError

KEYS = {"sex": ["f", "m"], "age": [1, 2, 3], "edu": ["low", "mid", "high", "top"]}
COLUMNS = list(KEYS)
ENOUGH = {"epsilon": 0.3, "privacy_unit": dpf.EACH_ROW, "keys": KEYS}


def people(rows=200):
    rng = np.random.default_rng(5)
    return pd.DataFrame({name: rng.choice(keys[:2], rows) for name, keys in KEYS.items()})


def check_agreement(tables, column="count_denoised"):
    for columns, table in tables.items():
        cells = table[column]
        assert cells.dtype == np.int64 and (cells >= 0).all()
        assert cells.sum() == tables[()][column].iloc[0]
        for one in columns if len(columns) > 1 else ():
            assert (cells.groupby(level=one, sort=False).sum() == tables[one,][column]).all()


@pytest.mark.parametrize("rows", [0, 1, 200])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_whole_numbers_agree_to_the_last_bit(rows, mechanism):
    options = {"delta": 1e-6} if mechanism == "gaussian" else {}
    for _ in range(3):
        tables = people(rows).dp.margins(
            COLUMNS, ways=2, denoise="consistent", mechanism=mechanism, **options, **ENOUGH
        )
        assert len(tables) == 7
        check_agreement(tables)
        assert {dpf.verify(table).state for table in tables.values()} == {"post-processed"}


def test_what_was_released_stays_as_it_was():
    tables = people().dp.margins(COLUMNS, ways=2, **ENOUGH)
    made = dpf.consistent(tables)
    assert made.keys() == tables.keys()
    for columns, table in made.items():
        assert table["count"].equals(tables[columns]["count"])
        assert list(tables[columns].columns) == ["count"]
        assert table.dp.std_error.equals(tables[columns].dp.std_error)
        (step,) = table.dp.certificate.table.definitions
        assert (step.column, step.method) == ("count", "consistent")
    again = dpf.consistent(made)
    for columns, table in again.items():
        assert (
            table.equals(made[columns])
            and dpf.verify(table).table.definitions
            == made[columns].dp.certificate.table.definitions
        )
    assert made["sex", "age"].dp.certificate.denoising.empty


def test_whole_numbers_are_compared_with_those_of_the_release():
    tables = people().dp.margins(COLUMNS, ways=2, **ENOUGH)
    made = dpf.consistent(tables)
    whole, released = made["sex", "age"], tables["sex", "age"]
    for published in (whole, whole.head(2)):
        with pytest.raises(CertificateError, match="give it with its denoised columns"):
            dpf.verify(published, against=released)
        assert dpf.verify(published, against=whole)
    with pytest.raises(CertificateError, match="was not made from that release"):
        dpf.verify(whole, against=tables["sex", "edu"])


def test_margins_named_in_any_order():
    sets = [["age", "edu"], ["edu", "sex"], ["age", "sex"], ["sex"], ["edu"], ["age"], []]
    made = people().dp.margins(sets, denoise="consistent", **ENOUGH)
    check_agreement(made)


def test_beside_other_queries_and_outputs():
    frame = people()
    queries = {
        "survey": dpf.margins(COLUMNS, keys=KEYS, n=dpf.count(), young=dpf.count(where="age == 1")),
        "edu": dpf.count(by="edu", keys=KEYS["edu"]),
    }
    words = r"'edu' is released beside them.*dpf\.consistent\(tables\['survey'\]\) afterwards"
    with pytest.raises(QueryError, match=words):
        dpf.release(frame, queries, epsilon=1, denoise="consistent")
    made = dpf.release(frame, queries["survey"], epsilon=1, denoise="consistent")
    for column in ("n_denoised", "young_denoised"):
        check_agreement(made, column)
    made = dpf.release(frame, queries, epsilon=1, denoise="auto")
    assert list(made["survey"]["sex",].columns) == ["n", "young"]


def test_nothing_is_charged_where_it_cannot_be():
    frame = people().assign(wage=1.0)
    budget = dpf.Budget(epsilon=1, delta=1e-6)
    dpf.declare(frame, keys=KEYS, bounds={"wage": (0, 2)}, privacy_unit=dpf.EACH_ROW, budget=budget)
    three = dpf.margins(COLUMNS, ways=3)
    means = dpf.margins(COLUMNS, wage=dpf.mean("wage"))
    taken = dpf.margins(COLUMNS, count=dpf.count(), count_denoised=dpf.count())
    for query, message in ((three, "at most two"), (means, "for counts"), (taken, "are taken")):
        with pytest.raises(QueryError, match=message):
            dpf.release(frame, query, epsilon=0.5, denoise="consistent")
    with pytest.raises(QueryError, match="graph= has no meaning"):
        frame.dp.release(dpf.margins(COLUMNS), epsilon=0.5, denoise="consistent", graph="ordered")
    assert frame.dp.budget.used == 0


def test_tables_of_margins_alone():
    frame = people()
    one, other = (frame.dp.margins(COLUMNS, ways=2, **ENOUGH) for _ in range(2))
    with pytest.raises(QueryError, match="margins of one query"):
        dpf.consistent({("sex",): one["sex",], ("age",): other["age",]})
    count = frame.dp.count(by="sex", epsilon=1, keys=KEYS["sex"])
    with pytest.raises(QueryError, match="margins of one query"):
        dpf.consistent({("sex",): count})
    with pytest.raises(QueryError, match="got a DataFrame"):
        dpf.consistent(count)
    with pytest.raises(QueryError, match="must be the dict"):
        dpf.consistent({})
    with pytest.raises(CertificateError):
        dpf.consistent({("sex",): one["sex",] + 1})
    three = frame.dp.margins(COLUMNS, ways=3, **ENOUGH)
    with pytest.raises(QueryError, match="at most two columns"):
        dpf.consistent(three)


def test_counts_with_very_wide_noise_still_agree():
    tables = people().dp.margins(COLUMNS, ways=2, **(ENOUGH | {"epsilon": 1e-11}))
    assert tables["sex", "age"]["count"].abs().max() > 1e11
    check_agreement(dpf.consistent(tables))

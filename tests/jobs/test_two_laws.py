"""Plans whose queries have noise of two laws, in one charge."""

import pytest
from support.planning import QUERIES, planned
from support.terminal import SOUND, UNREADABLE, main

import dpframe as dpf

MARCH = ("--set", "month=2024-03")
COUNT, TOTAL = (
    f'[queries.{name}]\nby = "zone"\nkind = "{kind}"\n'
    for name, kind in [("n", "count"), ("t", "sum")]
)
LAPLACE, GAUSSIAN = (f'mechanism = "{name}"\n' for name in ("laplace", "gaussian"))
FARE = 'columns = "fare"\n'
BOTH = COUNT + LAPLACE + TOTAL + FARE + GAUSSIAN


def test_queries_of_a_plan_name_their_mechanisms(tmp_path, capsys):
    plan = planned(tmp_path, (QUERIES, BOTH))
    assert main(["preview", str(plan), *MARCH]) == SOUND
    assert main(["release", str(plan), *MARCH]) == SOUND, capsys.readouterr().err
    ledger = dpf.Ledger(tmp_path / "trips.ledger")
    (entry,) = ledger.entries
    assert entry.loss.epsilon > 0 < entry.loss.mu_squared
    for name, law in {"n": "laplace", "t": "gaussian"}.items():
        frame = dpf.read_csv(tmp_path / f"{name}-2024-03.csv")
        assert dpf.verify(frame, ledger=ledger).release.mechanism.law == law


@pytest.mark.parametrize(
    ("queries", "of_release", "words"),
    [
        (COUNT + LAPLACE + TOTAL + FARE, "", "in every query, or one for all in [release]"),
        (BOTH, GAUSSIAN, "stands in [release], too"),
    ],
)
def test_a_mechanism_is_named_in_all_queries_or_for_all(
    tmp_path, capsys, queries, of_release, words
):
    plan = planned(tmp_path, (QUERIES, queries), ("[release]\n", f"[release]\n{of_release}"))
    assert main(["preview", str(plan), *MARCH]) == UNREADABLE
    said = capsys.readouterr().err
    assert "queries.n.mechanism" in said and words in said


@pytest.mark.parametrize("name", ["gausian", "auto", ""])
def test_a_mechanism_of_a_query_that_is_none_is_refused_where_it_is(tmp_path, capsys, name):
    queries = BOTH.replace("gaussian", name)
    assert main(["preview", str(planned(tmp_path, (QUERIES, queries))), *MARCH]) == UNREADABLE
    assert "mechanism" in capsys.readouterr().err
    assert not (tmp_path / "n-2024-03.csv").exists()

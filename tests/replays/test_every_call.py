"""Every public call, replayed on neighbors: no rule of `support.replay_rules` is broken.

By default every call is replayed on one engine, in the gate on two, and in the audit on all, with
everything that it can be combined with; `report.py` beside this file writes down how often.
"""

import pytest
from support.replay_calls import (
    CALLS,
    ENGINES,
    MECHANISM_NAMES,
    NO_RELEASES,
    RELATIONS,
    allowed,
    cases_of,
    replay_case,
)
from support.replay_frames import ANY, CAPS, DAYS, ZONES, Row, in_memory

import dpframe as dpf
from dpframe.accessors.private import PrivateAccessor
from dpframe.jobs import job


def some(engine, turn, path):
    """Return one allowed case of every fourth call on an engine, each turn others."""
    skipped = -(ENGINES.index(engine) + turn) % 4
    cases = [allowed(cases_of(call, engine), path) for call in list(CALLS)[skipped::4]]
    return [next(own) for own in cases]


def test_every_public_call_is_replayed():
    public = {name for name in vars(PrivateAccessor) if not name.startswith("_")}
    assert {call.method for call in CALLS.values()} == public - NO_RELEASES
    assert NO_RELEASES < public


def test_every_kind_of_query_is_replayed():
    kinds = {*job.QUERIES, *job.SEARCHES}
    assert kinds <= {call.method for call in CALLS.values()}


@pytest.mark.parametrize(("label", "keys"), [("zone", ZONES), ("day", DAYS)])
def test_no_keys_are_refused_for_a_guessed_dtype(label, keys):
    """Else a part of a frame could be refused that holds one odd cell, such as "1" for a day."""
    blank = Row(*[None] * len(Row._fields))
    for cell in ANY[label]:
        frame = in_memory([blank._replace(**{label: cell})], inferred=True)
        query = dpf.count(label, keys=keys)
        dpf.release(frame, query, epsilon=1, privacy_unit=dpf.EACH_ROW)


@pytest.mark.parametrize("turn", [0, pytest.param(3, marks=pytest.mark.full)])
@pytest.mark.parametrize("engine", ENGINES)
def test_no_rule_is_broken(engine, turn, tmp_path):
    path = tmp_path / "private.parquet"  # of one name, whatever it holds
    cases = some(engine, turn, path)
    assert len(cases) >= len(CALLS) // 4
    wrong = []
    for case in cases:
        pairs = case.pairs()
        wrong += replay_case(case, [pairs[case.place % len(pairs)]], path).wrong
    assert not wrong


@pytest.mark.full
def test_what_is_replayed_is_of_everything(tmp_path):
    path = tmp_path / "private.parquet"
    turns = [[one for kind in ENGINES for one in some(kind, turn, path)] for turn in (0, 3)]
    assert all({case.call for case in cases} == set(CALLS) for cases in turns)
    assert all({case.relation for case in cases} == set(RELATIONS) for cases in turns)
    assert all({case.caps for case in cases} == set(CAPS) for cases in turns)
    mechanisms = {case.mechanism for cases in turns for case in cases}
    assert mechanisms >= set(MECHANISM_NAMES) - {"select"}  # which few calls have


@pytest.mark.audit
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("call", CALLS)
def test_no_rule_is_broken_whatever_a_call_is_combined_with(call, engine, tmp_path):
    path = tmp_path / "private.parquet"
    cases = list(allowed(cases_of(call, engine), path))
    assert cases
    assert not [one for case in cases for one in replay_case(case, case.pairs(), path).wrong]

"""Whatever lists kinds of queries lists all of them: functions, methods, plan files, messages."""

import inspect
import re

import pytest

import dpframe as dpf
from dpframe import Query
from dpframe.errors import QueryError
from dpframe.jobs import job
from dpframe.queries.binned import Quantile
from dpframe.queries.query import AggregatePart
from dpframe.queries.reading import check_query

NOT_PARTS = {"histogram", "ranges", "quantile", "units", "aggregate", "margins", "regression"}
"""Kinds with groups of their own, or that do not add up rows."""


def maker_of(function):
    """Return the kind of query that a function makes, if it makes one."""
    made = inspect.signature(function).return_annotation
    return made if isinstance(made, type) and issubclass(made, Query) else None


KINDS = {
    name: maker_of(function)
    for name, function in vars(dpf).items()
    if inspect.isfunction(function) and maker_of(function)
} | {"quantile": Quantile}  # or a table, of a release


def test_every_public_kind_is_known_here():
    assert len(KINDS) == 16
    assert KINDS.keys() <= {*dir(dpf)}


def test_plan_files_know_every_kind():
    assert job.QUERIES == {name: getattr(dpf, name) for name in KINDS}


def test_every_kind_has_a_method():
    assert all(hasattr(dpf.DPAccessor, name) for name in KINDS)


def test_every_kind_is_a_part_of_an_aggregate_or_said_not_to_be():
    parts = {name for name, kind in KINDS.items() if issubclass(kind, AggregatePart)}
    assert parts == KINDS.keys() - NOT_PARTS


def test_the_error_about_what_is_no_query_names_every_kind():
    with pytest.raises(QueryError) as found:
        check_query("count")
    assert set(re.findall(r"dpf\.(\w+)\(", str(found.value))) == KINDS.keys()

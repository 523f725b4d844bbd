"""Graphs in all their forms become the same edges."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dpframe.errors import QueryError
from dpframe.steps.denoise_checks import edges_of

DAYS = pd.Index(["mon", "tue", "wed", "thu"], name="day")
TABLE = pd.MultiIndex.from_product([["B", "A"], [3, 1, 2]], names=["zone", "hour"])
EXPECTED = [[0, 2], [1, 2]]


@pytest.mark.parametrize(
    "graph",
    [
        pd.DataFrame({"u": ["wed", "wed", "tue"], "v": ["mon", "tue", "wed"], "meters": [1, 2, 3]}),
        nx.Graph([("mon", "wed"), ("wed", "tue"), ("thu", "thu")]),
        nx.DiGraph([("mon", "wed"), ("wed", "tue"), ("tue", "wed")]),
        nx.MultiGraph([("mon", "wed"), ("mon", "wed"), ("tue", "wed")]),
        sparse.coo_array(([5.0, -1, 0], ([0, 2, 1], [2, 1, 3])), shape=(4, 4)),
        sparse.csr_matrix(([1, 1, 1], ([2, 1, 2], [0, 2, 1])), shape=(4, 4)),
    ],
    ids=["frame", "networkx", "directed", "multigraph", "coo", "csr"],
)
def test_every_form_of_a_graph_gives_the_same_edges(graph):
    assert edges_of(graph, DAYS).tolist() == EXPECTED


def test_rows_follow_each_other_within_outer_keys():
    assert edges_of("ordered", DAYS).tolist() == [[0, 1], [1, 2], [2, 3]]
    assert edges_of("ordered", TABLE).tolist() == [[0, 1], [1, 2], [3, 4], [4, 5]]


def test_a_grid_joins_both_keys_in_declared_order():
    across = [[0, 3], [1, 4], [2, 5]]
    assert edges_of("grid", TABLE).tolist() == sorted(
        [*edges_of("ordered", TABLE).tolist(), *across]
    )


def test_a_grid_with_holes_joins_the_next_rows_that_there_are():
    holed = TABLE.delete(1)  # B has lost hour 1, which A still has
    assert edges_of("grid", holed).tolist() == [[0, 1], [0, 2], [1, 4], [2, 3], [3, 4]]


def test_a_grid_of_three_keys_joins_the_innermost_two():
    index = pd.MultiIndex.from_product([["x", "y"], [0, 1], [0, 1]])
    square = [[0, 1], [0, 2], [1, 3], [2, 3]]
    assert edges_of("grid", index).tolist() == [*square, *np.add(square, 4).tolist()]


@pytest.mark.parametrize("index", [pd.Index([]), pd.Index(["only"]), TABLE[:0]])
@pytest.mark.parametrize("graph", ["ordered", nx.Graph(), pd.DataFrame({"u": [], "v": []})])
def test_nothing_to_join_gives_no_edges(graph, index):
    assert edges_of(graph, index).shape == (0, 2)


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("circle", "graph='circle'"),
        (7, "got graph=7"),
        (None, "got graph=None"),
        (sparse.eye(3), r"each of the 4 rows .* shape \(3, 3\)"),
        (pd.DataFrame({"u": ["mon"]}), "two columns"),
        (nx.Graph([("mon", "sun")]), "1 of 1 ends"),
        (pd.DataFrame({"u": ["mon"], "v": [[1]]}), "1 of 1 ends"),
        ("grid", "two ordered keys"),
    ],
)
def test_graphs_that_do_not_fit_are_refused(graph, said):
    with pytest.raises(QueryError, match=said):
        edges_of(graph, DAYS)

"""Which rows of a released frame are neighbors: graphs in several forms to pairs of positions."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from dpframe.denoise.base import check_edges
from dpframe.errors import QueryError, shown

_FORMS = (
    "a scipy sparse adjacency matrix, a networkx graph, a frame of edges whose first two columns "
    'hold keys of the release, "ordered" or "grid"'
)


def is_ordered(index: pd.Index) -> bool:
    """Whether the innermost keys are bins, which have a known order."""
    level = index.levels[-1] if isinstance(index, pd.MultiIndex) else index
    return isinstance(level.dtype, pd.IntervalDtype)


def edges_of(graph: object, index: pd.Index) -> np.ndarray:
    """Return the edges of a graph on the rows of a frame.

    Parameters
    ----------
    graph
        A scipy sparse adjacency matrix in the order of the rows (any entry that is not 0 is an
        edge); a networkx graph whose nodes are keys; a frame whose first two columns hold the keys
        that an edge joins; "ordered": rows that follow each other with the same outer keys are
        joined; "grid": also those that follow each other with the same keys except for the second
        to last.
    index
        The index of the frame.

    Returns
    -------
    ndarray of shape (m, 2)
        Positions of the rows that an edge joins, each pair once, without loops.

    Raises
    ------
    QueryError
        If the graph has no such form, or names keys that are not in the index.

    Examples
    --------
    >>> edges_of("ordered", pd.Index(["mon", "tue", "wed"])).tolist()
    [[0, 1], [1, 2]]
    >>> edges_of(pd.DataFrame({"u": ["wed"], "v": ["mon"]}), pd.Index(["mon", "tue", "wed"]))
    array([[0, 2]])
    """
    return check_edges(_pairs(graph, index), len(index))


def _pairs(graph: Any, index: pd.Index) -> np.ndarray:
    if isinstance(graph, str):
        return _by_order(graph, index)
    if isinstance(graph, pd.DataFrame):
        if graph.shape[1] < 2:  # noqa: PLR2004
            raise QueryError(
                f"graph as a frame must have two columns with the keys that an edge joins, got "
                f"{graph.shape[1]}."
            )
        return np.column_stack([_positions(graph.iloc[:, end], index) for end in (0, 1)])
    if hasattr(graph, "tocoo"):
        return _of_adjacency(graph, len(index))
    if hasattr(graph, "edges") and hasattr(graph, "nodes"):
        ends = [edge[:2] for edge in graph.edges]
        return np.column_stack([_positions([edge[end] for edge in ends], index) for end in (0, 1)])
    raise QueryError(f"graph must be {_FORMS}; got {type(graph).__name__}.")


def _of_adjacency(graph: Any, n: int) -> np.ndarray:
    if tuple(graph.shape) != (n, n):
        raise QueryError(
            f"graph as an adjacency matrix must have one row and one column for each of the {n} "
            f"rows of the release, in their order; got shape {tuple(graph.shape)}."
        )
    found = graph.tocoo()
    kept = np.asarray(found.data) != 0
    return np.column_stack([np.asarray(found.row)[kept], np.asarray(found.col)[kept]])


def _positions(keys: Iterable[object], index: pd.Index) -> np.ndarray:
    """Find keys among the rows."""
    places = {key: place for place, key in enumerate(index)}
    wanted = list(keys)
    found = np.array([_place(places, key) for key in wanted], np.intp)
    unknown = np.flatnonzero(found < 0)
    if len(unknown):
        raise QueryError(
            f"graph joins keys that are not rows of the release: {len(unknown)} of {len(wanted)} "
            "ends. Leave out the edges that lead there, or declare these keys."
        )
    return found


def _place(places: dict[Any, int], key: object) -> int:
    try:
        return places.get(key, -1)
    except TypeError:  # a key that cannot be hashed is none
        return -1


def _by_order(graph: str, index: pd.Index) -> np.ndarray:
    if graph == "ordered":
        return _along(index, 1)
    if graph == "grid":
        if index.nlevels < 2:  # noqa: PLR2004
            raise QueryError(
                'graph="grid" needs a release by two ordered keys; this one is by '
                f'{list(index.names)!r}. Use graph="ordered" for one.'
            )
        return np.concatenate([_along(index, 1), _along(index, 2)])
    raise QueryError(f"graph must be {_FORMS}; got graph={shown(graph)}.")


def _along(index: pd.Index, level: int) -> np.ndarray:
    """Join rows that follow each other among those that differ only at a level.

    Levels are counted from the innermost. The order is that of the rows, which is the declared one.
    """
    codes = [index.get_level_values(i).factorize()[0] for i in range(index.nlevels)]
    del codes[len(codes) - level]
    rest = np.zeros(len(index), np.intp)
    if codes:
        rest = np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(rest, kind="stable")
    first, second = order[:-1], order[1:]
    joined = rest[first] == rest[second]
    return np.column_stack([first[joined], second[joined]])

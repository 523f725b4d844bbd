"""What to denoise and how, checked against public facts before there are values."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.certificates.column_parts import ColumnPart
from dpframe.denoising.methods import METHODS
from dpframe.denoising.projection import check_edges
from dpframe.errors import QueryError, is_data, quote
from dpframe.frozen import frozen
from dpframe.public import nearest, no_such_keyword
from dpframe.statistics.form import Statistic

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
            rule = "graph as a frame must have two columns with the keys that an edge joins"
            raise QueryError(f"{rule}, got {graph.shape[1]}.", parameter="graph")
        return np.column_stack([_positions_of_graphs(graph.iloc[:, end], index) for end in (0, 1)])
    if hasattr(graph, "tocoo"):
        return _of_adjacency(graph, len(index))
    if hasattr(graph, "edges") and hasattr(graph, "nodes"):
        edges = list(graph.edges)
        ends = ([edge[end] for edge in edges] for end in (0, 1))
        return np.column_stack([_positions_of_graphs(keys, index) for keys in ends])
    raise QueryError.about("graph", f"must be {_FORMS}", graph)


def _of_adjacency(graph: Any, n: int) -> np.ndarray:
    if tuple(graph.shape) != (n, n):
        rule = f"graph as a matrix must have a row and a column for each of the {n} rows released"
        raise QueryError(f"{rule}, got shape {tuple(graph.shape)}.", parameter="graph")
    matrix = graph.tocoo()
    kept = np.asarray(matrix.data) != 0
    return np.column_stack([np.asarray(matrix.row)[kept], np.asarray(matrix.col)[kept]])


def _positions_of_graphs(keys: Iterable[object], index: pd.Index) -> np.ndarray:
    """Find keys among the rows."""
    places = {key: place for place, key in enumerate(index)}
    listed = list(keys)
    positions = np.array([_place(places, key) for key in listed], np.intp)
    unknown = np.flatnonzero(positions < 0)
    if len(unknown):
        ends = f"{len(unknown)} of {len(listed)} ends"
        rule = f"graph joins keys that are not rows of the release: {ends}"
        way_out = "Leave out the edges that lead there, or declare these keys."
        raise QueryError(f"{rule}. {way_out}", parameter="graph")
    return positions


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
            rule = f"needs a release by two ordered keys; this one is by {list(index.names)!r}"
            raise QueryError.about("graph", rule, graph, 'Use graph="ordered" for one.')
        return np.concatenate([_along(index, 1), _along(index, 2)])
    raise QueryError.about("graph", f"must be {_FORMS}", graph)


def _along(index: pd.Index, level: int) -> np.ndarray:
    """Join rows that follow each other among those that differ only at a level.

    Levels are counted from the innermost. The order is that of the rows, which is the declared one.
    """
    codes = [index.get_level_values(i).factorize()[0] for i in range(index.nlevels)]
    del codes[len(codes) - level]
    others = np.zeros(len(index), np.intp)
    if codes:
        others = np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(others, kind="stable")
    first, second = order[:-1], order[1:]
    joined = others[first] == others[second]
    return np.column_stack([first[joined], second[joined]])


Across: TypeAlias = Literal["rows", "columns"]

_SAME = 1e-9  # relative: errors that close are one
_DENOISED = "counts, sums, and means and rates without weights"
_BY_ROW = "parents"  # the only option with a value for each row
_BY_VALUE = "prior"
_KEYWORDS = ("method", "columns", "graph", "across")


class Described(NamedTuple):
    """What is public about a released column before it has values."""

    name: Hashable
    form: type[Statistic]
    std_error: float | None
    weighted: bool

    @property
    def is_mean(self) -> bool:
        """Whether it is denoised as a mean: by numbers of rows, which weights do not say."""
        return self.form.is_mean and not self.weighted

    @property
    def counts_rows(self) -> bool:
        """Whether it is a number of rows, which is whole."""
        return self.form.is_whole and not self.weighted

    @property
    def is_total(self) -> bool:
        """Whether it is a count or a sum."""
        return self.form.is_total


@frozen(eq=False)
class Denoising:
    """A denoiser that fits a release, checked before there are values.

    Parameters
    ----------
    method
        A name in `METHODS`, or "auto".
    options
        Options of the method.
    columns
        Positions of the released counts and sums to denoise.
    means
        Positions of the released means to denoise.
    edges
        Pairs of positions of neighbors; `None`: not given.
    across
        Whether the rows of a column, or the columns of a row, are denoised together.
    """

    method: str
    options: Mapping[str, Any]
    columns: tuple[int, ...]
    means: tuple[int, ...]
    edges: np.ndarray | None
    across: Across


def describe(columns: Sequence[ColumnPart], names: pd.Index) -> list[Described]:
    """Describe released columns from their certificate."""
    return [
        Described(name, column.form, column.std_error, column.weights is not None)
        for name, column in zip(names, columns, strict=False)
    ]


def check_denoising(
    method: object,
    index: pd.Index,
    released: Sequence[Described],
    *,
    columns: Hashable | Sequence[Hashable] | None = None,
    graph: object = None,
    across: Across | None = None,
    options: Mapping[str, Any] | None = None,
    called: str = "method",
) -> Denoising:
    """Check that a denoiser fits the public shape of a release; see `denoise`.

    Parameters
    ----------
    method, columns, graph, across, options
        As for `denoise`.
    index
        The index of the release.
    released
        Its columns.
    called
        What the method is called in the call.

    Raises
    ------
    QueryError
        If it does not.
    """
    if not isinstance(method, str) or method not in {"auto", *METHODS}:
        raise QueryError.about(called, f"must be 'auto' or one of {list(METHODS)}", method)
    if not is_one_of(across, (None, "rows", "columns")):
        raise QueryError.about("across", "must be 'rows' or 'columns'", across)
    settings = dict(options or {})
    if method == "auto" and settings and settings.keys() <= METHODS["posterior"].options:
        method = "posterior"
    chosen, means = _positions(released, columns, method, index.names)
    across = across or ("rows" if len(index) > 1 or len(chosen) <= 1 else "columns")
    if across == "columns":
        means = () if columns is None else means
        _check_no_means(chosen, means)
        chosen = _most_alike(released, chosen) if columns is None else chosen
        _check_same_noise([released[position] for position in chosen])
        index = pd.Index([released[position].name for position in chosen], tupleize_cols=False)
    _check_options(method, settings)
    for name, value in settings.items():
        if is_data(value) and name not in (_BY_ROW, _BY_VALUE):
            raise QueryError.about(name, "must be one value for all rows", value)
        if name == _BY_ROW and isinstance(value, pd.Series) and not value.index.equals(index):
            rule = f"{name} must have a value for each row, in the order of the release"
            way_out = f"Use {name}=series.reindex(released.index)."
            raise QueryError(f"{rule}. {way_out}", parameter=name)
    edges = _edges(method, index, graph)
    return Denoising(method, settings, chosen, means, edges, across)


def _positions(
    released: Sequence[Described],
    columns: Hashable | Sequence[Hashable] | None,
    method: str,
    levels: Iterable[Hashable],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Find the counts and sums, and the means, to denoise; the names of levels are taken."""
    names = [column.name for column in released]
    if columns is None:
        labels_chosen = [
            col.name for col in released if col.is_total or (method == "auto" and col.is_mean)
        ]
    else:
        labels_chosen = list(columns) if isinstance(columns, list) else [columns]
    unknown = [name for name in labels_chosen if not is_one_of(name, names)]
    if unknown:
        raise QueryError.about("columns", f"must be among {quote(names)}", unknown[0])
    chosen = tuple(dict.fromkeys(names.index(name) for name in labels_chosen))
    means = tuple(position for position in chosen if released[position].is_mean)
    apart = [names[at] for at in chosen if not (released[at].is_mean or released[at].is_total)]
    if apart:
        rule = f"must name {_DENOISED}"
        raise QueryError.about("columns", rule, apart[0], "Leave it out.")
    if method == "auto" and not chosen:
        raise QueryError.about("method", f"is for {_DENOISED}, and there are none", method)
    if not chosen or (means and method != "auto"):
        rule = "is for counts and sums, and there are none in columns, or means beside them"
        way_out = 'Means without weights are denoised by "auto" alone.'
        raise QueryError.about("method", rule, method, way_out)
    labels = [*levels, *names, *(label_of(names[position]) for position in chosen)]
    taken = [name for name in labels if labels.count(name) > 1]
    if taken:
        raise names_taken(taken[0])
    return tuple(position for position in chosen if position not in means), means


def names_taken(label: Hashable) -> QueryError:
    """Make the error about a denoised column that would be called as another."""
    rule = f"the denoised columns would have names that are taken: {label!r}"
    return QueryError(f"{rule}. Release the columns under other names.", label=label)


def label_of(name: Hashable) -> str:
    """Return the label of the denoised column beside a released one."""
    return f"{name}_denoised"


def _most_alike(released: Sequence[Described], chosen: tuple[int, ...]) -> tuple[int, ...]:
    """Return the largest set of columns whose noise is of the same size."""
    errors = np.array([released[position].std_error or 0.0 for position in chosen])
    same = np.isclose(errors[:, None], errors, rtol=_SAME, atol=0)
    kept = same[same.sum(axis=1).argmax()]
    return tuple(position for position, keep in zip(chosen, kept, strict=True) if keep)


def _check_no_means(chosen: Sequence[int], means: Sequence[int]) -> None:
    if means or not chosen:
        rule = "is for counts and sums: means are denoised beside those of other rows"
        way_out = 'Leave them out, or use across="rows".'
        raise QueryError.about("across", rule, "columns", way_out)


def _check_same_noise(released: Sequence[Described]) -> None:
    errors = [column.std_error or 0.0 for column in released]
    if max(errors) - min(errors) > _SAME * max(errors):
        rule = "columns of a row are denoised together where their noise is of the same size"
        sizes = f"the standard errors are {errors[:5]!r}. Name those that are alike"
        raise QueryError(f"{rule}; {sizes}: columns=[...].", parameter="columns")


def _check_options(method: str, options: Mapping[str, Any]) -> None:
    denoiser = METHODS.get(method)  # none of "auto"
    allowed = denoiser.options if denoiser else frozenset()
    required = denoiser.required if denoiser else frozenset()
    unknown = sorted(options.keys() - allowed)
    if unknown:
        if nearest(unknown[0], _KEYWORDS):
            raise no_such_keyword("denoise", unknown[0], _KEYWORDS)
        rule = f"{quote(unknown[0])} is not an option of method={quote(method)}"
        raise QueryError(f"{rule}, which takes {sorted(allowed)!r}.", parameter=unknown[0])
    missing = sorted(required - options.keys())
    if missing:
        raise QueryError(f"method={quote(method)} needs {missing[0]}=.", parameter=missing[0])


def _edges(method: str, index: pd.Index, graph: object) -> np.ndarray | None:
    if graph is None and method == "auto" and is_ordered(index):
        graph = "ordered"
    needed = method != "auto" and METHODS[method].needs_graph
    if graph is None and needed:
        rule = f"method={quote(method)} needs to know which rows are neighbors"
        way_out = 'give graph=, for instance "ordered" where the keys follow each other'
        raise QueryError(f"{rule}: {way_out}.", parameter="graph")
    if graph is not None and method != "auto" and not needed:
        rule = f"method={quote(method)} takes no graph. Leave it out, or use 'auto'."
        raise QueryError(rule, parameter="graph")
    return None if graph is None else edges_of(graph, index)

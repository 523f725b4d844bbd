"""The engine of Dask collections: totals are made where the partitions are, and then added up.

Without privacy units a partition is totaled by itself. With them, rows are split into buckets
first, all rows of a unit into one, because caps need them together. Workers of a cluster exchange
them, by a shuffle where partitions are many; elsewhere they pass through this process. Graphs have
a few tasks for each partition, and are computed by the scheduler of the user's choice.
"""

import os
import pickle
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from itertools import chain
from operator import add
from typing import Any, TypeAlias

import cloudpickle
import dask.dataframe
import dask.local
import dask.threaded
import numpy as np
import pandas as pd
from dask.base import get_scheduler
from dask.dataframe.dask_expr._concat import Concat
from dask.dataframe.utils import has_known_categories
from dask.delayed import delayed
from dask.system import CPU_COUNT

from dpframe.columns import filters, pa, values
from dpframe.columns.buckets import unit_buckets
from dpframe.columns.identity import silence_thread, silent
from dpframe.context import Context
from dpframe.engines.base import Engine, Frame, check_gathered, check_labels
from dpframe.engines.capping import order_rows
from dpframe.engines.labels import LabelCounts, label_counts
from dpframe.engines.pandas import group_by_unit, labels_of, totals_of, types_of
from dpframe.errors import DeclarationError
from dpframe.frozen import frozen
from dpframe.provenance import is_marked
from dpframe.queries.tasks import LabelTask, Task
from dpframe.sources.manifest import Manifest, check_read_once, identify_file

_Adder: TypeAlias = Callable[[Iterable[pd.DataFrame], Any, Context, int | None], list[Any]]

# totals of partitions
_ADDED_AT_ONCE = 8
# pairs of a partition and a bucket, where rows pass through this process
_MOST_PIECES = 1 << 13
# of many partitions
_LEAST_BUCKETS = 8
# whose pieces are tasks: a shuffle takes less of these, and twice the time
_FEW_PARTITIONS = 16
# that workers of a cluster split a partition into
_MOST_BUCKETS = 512
# names of the expressions that declared collections stand for
_DECLARED: set[str] = set()


class DaskEngine(Engine):
    """Engine of `dask.dataframe.DataFrame`, where its partitions are frames of pandas."""

    def handles(self, frame: object) -> bool:
        """Tell whether the frame is a `dask.dataframe.DataFrame` of frames of pandas."""
        return isinstance(frame, dask.dataframe.DataFrame) and isinstance(frame._meta, pd.DataFrame)

    def check(self, frame: Frame, columns: Iterable[Hashable]) -> None:
        """Check that every label names exactly one column; nothing is computed."""
        check_labels(self.columns(frame), columns, [frame.index.name])

    def manifest(self, frame: Frame) -> Manifest:
        """Name the types in the metadata, but for categories not known yet, and listed files."""
        meta, types = frame._meta, types_of(frame._meta)
        for place, label in enumerate(meta.columns):
            column = meta.iloc[:, place]
            if isinstance(column.dtype, pd.CategoricalDtype) and not has_known_categories(column):
                types[label] = None
        listed = [check_read_once(map(identify_file, paths)) for paths in _listed_files(frame)]
        files = tuple(dict.fromkeys(chain(*listed))) or None
        return Manifest("dask", types, files, opaque=True)

    def mark(self, frame: Frame) -> None:
        """Note the name of the expression that the collection stands for."""
        _DECLARED.update(_expressions(frame)[:1])

    def is_derived(self, frame: Frame) -> bool:
        """Tell whether the collection is made of a marked one, or of a marked frame of pandas."""
        return is_marked(frame._meta.attrs) or not _DECLARED.isdisjoint(_expressions(frame))

    def attrs(self, frame: Frame) -> Mapping[Any, Any]:
        """Return the `attrs` of the collection's metadata."""
        return dict(frame._meta.attrs)

    @silent
    def gather(self, frame: Frame, labels: Sequence[Hashable]) -> pd.DataFrame:
        """Compute all partitions, in the columns asked for, and stack them here."""
        self.check(frame, labels)
        parts = _project(frame, labels).to_delayed()
        check_gathered(sum(_compute_graphs([delayed(len)(part) for part in parts])))
        labels = labels or list(frame.columns[:1])
        return _stack_frames([_dense(part, labels) for part in _compute_graphs(parts)])

    @silent
    def totals(self, frame: Frame, tasks: Sequence[Task], context: Context) -> list[np.ndarray]:
        """Add up all terms of the tasks in every cell: int64 of shape (terms, cells) per task.

        Errors of the collection's own graph pass through to `release`, which shows nothing of
        them; its warnings are not shown, because private values may be what it warns of.
        """
        self.check(frame, labels_of(tasks))
        grouped = group_by_unit(tasks)
        computed = _added_up(frame, list(grouped.values()), totals_of, context)
        totals = dict(zip(grouped, map(iter, computed), strict=True))
        return [next(totals[task.unit]) for task in tasks]

    @silent
    def labels(self, frame: Frame, task: LabelTask, context: Context) -> LabelCounts:
        """Count units by label; errors and warnings as for totals."""
        self.check(frame, task.columns)
        counts: LabelCounts = _added_up(frame, [[task]], label_counts, context)[0][0]
        return counts


def _listed_files(frame: Frame) -> Iterator[list[str]]:
    """Give each list of files on this machine whose rows Dask puts together."""
    for node in frame.expr.walk():
        yield from _paths_of(node)
        if isinstance(node, Concat) and node.axis == 0:
            parts = ([chain(*_paths_of(inner)) for inner in part.walk()] for part in node._frames)
            yield [path for part in parts for path in dict.fromkeys(chain(*part))]


def _paths_of(node: Any) -> Iterator[list[str]]:
    """Give the list of paths that a node reads as Parquet, if it does."""
    paths = node.operand("path") if "path" in node._parameters else None
    if isinstance(paths, list) and all(os.path.isfile(path) for path in paths):
        yield paths


def _expressions(frame: Frame) -> list[str]:
    """Name the expressions that a collection is made of, its own first."""
    try:
        return [node._name for node in frame.expr.walk()]
    except Exception:  # its message may hold values
        raise DeclarationError(
            "Dask cannot name this collection, since it is made of objects in memory that have no "
            "hash. Make it with dask.dataframe.from_map, of a function that reads them."
        ) from None


def _compute_graphs(graphs: Sequence[Any]) -> Any:
    """Compute graphs, in silence where the threads are Dask's: the user's functions run there."""
    delayed_ones = [
        graph for some in graphs for graph in (some if isinstance(some, list) else [some])
    ]
    threaded = get_scheduler(collections=delayed_ones) is dask.threaded.get
    if not threaded or dask.config.get("pool", None) is not None:
        return dask.compute(*graphs)
    threads = dask.config.get("num_workers", None) or CPU_COUNT
    with ThreadPoolExecutor(threads, initializer=silence_thread) as pool:
        return dask.compute(*graphs, pool=pool)


@frozen(eq=False)
class _Job:
    """What every partition is asked for. It stands in a graph once, however large it is.

    Parameters
    ----------
    tasks
        Tasks with one privacy unit, or none.
    add
        Adds them up over frames; what it returns can be added up in turn.
    context
        Where random words come from, by which caps choose rows.
    buckets
        How many buckets rows are split into.
    packed
        Whether pieces of frames are bytes on their way, as between processes: they are pickled
        where they are made, and unpickled where they are needed.
    """

    tasks: tuple[Any, ...]
    add: _Adder
    context: Context
    buckets: int
    packed: bool

    @property
    def unit(self) -> list[Hashable]:
        """Columns of the privacy unit; none where every row is one."""
        return list(self.tasks[0].unit)

    def unit_columns(self, frame: pd.DataFrame) -> list[pd.Series]:
        """Take the columns of the privacy unit from a frame."""
        return [frame[label] for label in self.unit]


def _added_up(
    frame: Frame, groups: Sequence[Sequence[Any]], add: _Adder, context: Context
) -> list[list[Any]]:
    """Add up groups of tasks, of which each has one privacy unit, or none."""
    get = get_scheduler(collections=[frame])
    clustered = _is_of_cluster(get)
    in_process = get in (dask.threaded.get, dask.local.get_sync)
    packed = not in_process and not (clustered and frame.npartitions <= _FEW_PARTITIONS)
    most = _MOST_BUCKETS if clustered else max(_MOST_PIECES // frame.npartitions, _LEAST_BUCKETS)
    buckets = min(frame.npartitions, most)
    jobs = [_Job(tuple(tasks), add, context, buckets, packed) for tasks in groups]
    graphs = [_delay_first(frame, job, clustered) for job in jobs]
    results = list(_compute_graphs(graphs))
    split = [place for place, graph in enumerate(graphs) if isinstance(graph, list)]
    if split:
        pieces = [_delay_pieces(jobs[place], results[place]) for place in split]
        for place, totals in zip(split, _compute_graphs(pieces), strict=True):
            results[place] = totals
    return results


def _is_of_cluster(get: Any) -> bool:
    """Whether a scheduler is that of a client of `distributed`."""
    distributed = sys.modules.get("distributed")
    owner = getattr(get, "__self__", None)
    return distributed is not None and isinstance(owner, distributed.Client)


def _delay_first(frame: Frame, job: _Job, clustered: bool) -> Any:
    """Build the graph that reads the partitions.

    Returns
    -------
    Delayed or list of Delayed
        The totals; or, where rows have to pass through this process, the pieces of each partition.
    """
    # pure=False: no key is ever used twice, for what a cap keeps is drawn anew
    lazy = delayed(job, pure=False, traverse=False)
    needed = _project(frame, labels_of(job.tasks))
    split = bool(job.unit) and frame.npartitions > 1
    first: Callable[..., object] = _split_part if split else _total_part
    if split and clustered and frame.npartitions <= _FEW_PARTITIONS:
        splits = [delayed(_split_part, pure=False)(part, lazy) for part in needed.to_delayed()]
        total = delayed(_total_together, pure=False)
        return _add_up(
            [total([pieces[at] for pieces in splits], lazy) for at in range(job.buckets)]
        )
    if split and clustered:
        parts = needed.map_partitions(_pack_part, lazy, meta=_pack([]), enforce_metadata=False)
        # whoever reads the plan of the shuffle sees two columns: values stay as they are in bytes
        needed = parts.shuffle("bucket", npartitions=job.buckets, shuffle_method="p2p")
        first = _total_packed
    parts = needed.map_partitions(first, lazy, meta=(None, object), enforce_metadata=False)
    parts = parts.to_delayed()
    return list(parts) if split and not clustered else _add_up(list(parts))


def _delay_pieces(job: _Job, splits: Sequence[list[Any]]) -> Any:
    """Build the graph that totals the pieces of split partitions, bucket by bucket."""
    lazy = delayed(job, pure=False, traverse=False)
    # Dask looks for keys in arguments, and in no partial function
    totals = [partial(_total_together, pieces) for pieces in zip(*splits, strict=True)]
    return _add_up([delayed(total, pure=False, traverse=False)(lazy) for total in totals])


def _add_up(parts: list[Any]) -> Any:
    """Add up totals, few at once."""
    add_parts = delayed(_add_parts, pure=False)
    while len(parts) > _ADDED_AT_ONCE:
        starts = range(0, len(parts), _ADDED_AT_ONCE)
        parts = [add_parts(parts[at : at + _ADDED_AT_ONCE]) for at in starts]
    return add_parts(parts)


def _project(frame: Frame, labels: Sequence[Hashable]) -> Frame:
    """Drop columns that are not needed, where Dask can do so as it reads them."""
    # rows of no columns may get lost
    labels = labels or list(frame.columns[:1])
    # booleans would be taken for a mask; other labels may mean something to pandas, too
    return frame[list(labels)] if all(isinstance(label, str) for label in labels) else frame


def _add_parts(parts: Iterable[Sequence[Any]]) -> list[Any]:
    """Add up the totals of parts, modulo 2**64, or their counts of units by label."""
    return [reduce(add, of_task) for of_task in zip(*parts, strict=True)]


@silent
def _total_part(part: pd.DataFrame, job: _Job) -> list[Any]:
    """Total a partition in which every row is a unit, in one thread: Dask has its own."""
    return job.add([part], job.tasks, job.context, 1)


@silent
def _total_together(pieces: Sequence[Any], job: _Job) -> list[Any]:
    """Total pieces, or their bytes, that together hold all rows of their units."""
    frames = [
        pickle.loads(piece) if isinstance(piece, bytes) else piece  # noqa: S301, made here
        for piece in pieces
        if piece is not None
    ]
    return job.add([_stack_frames(frames)] if frames else [], job.tasks, job.context, 1)


@silent
def _split_part(part: pd.DataFrame, job: _Job) -> list[Any]:
    """Split the rows of a partition that can matter, in their needed columns, into buckets.

    A bucket without any has no piece, but `None`.
    """
    needed = _dense(part, labels_of(job.tasks))
    rows = np.flatnonzero(_usable(needed, job))
    places = unit_buckets([column.iloc[rows] for column in job.unit_columns(needed)], job.buckets)
    order, bounds, _ = order_rows(places.astype(np.min_scalar_type(job.buckets)), job.buckets)
    pieces: list[Any] = [None] * job.buckets
    for place in np.flatnonzero(np.diff(bounds)).tolist():
        piece = needed.take(rows[order[bounds[place] : bounds[place + 1]]])
        piece.index = pd.RangeIndex(len(piece))
        pieces[place] = cloudpickle.dumps(piece) if job.packed else piece
    return pieces


def _pack_part(part: pd.DataFrame, job: _Job) -> pd.DataFrame:
    """Split a partition for a shuffle: a row holds the bytes of all that is in one bucket."""
    return _pack(_split_part(part, job))


def _pack(pieces: Sequence[Any]) -> pd.DataFrame:
    """Put pieces in a frame that can be shuffled by their buckets."""
    held = [place for place, piece in enumerate(pieces) if piece is not None]
    rows = pa.array([pieces[place] for place in held], pa.large_binary())
    stored = pd.arrays.ArrowExtensionArray(rows)
    return pd.DataFrame({"bucket": np.array(held, np.int64), "rows": stored})


def _total_packed(packed: pd.DataFrame, job: _Job) -> list[Any]:
    """Total a partition of a shuffle, one bucket after the other."""
    together = packed["rows"].groupby(packed["bucket"].to_numpy())
    totals = [_total_together(rows.tolist(), job) for _, rows in together]
    return _add_parts(totals) if totals else _total_together([], job)


def _dense(part: pd.DataFrame, labels: Sequence[Hashable]) -> pd.DataFrame:
    """Take some columns of a partition, with the default values of sparse ones."""
    places = values.places_of(part)
    # pandas 2.3 takes rows of sparse times wrongly
    columns = (values.dense(part.iloc[:, places[label]]) for label in labels)
    dense = [column.reset_index(drop=True) for column in columns]
    needed = pd.DataFrame(dict(enumerate(dense)), copy=False)
    needed.columns = pd.Index(labels, tupleize_cols=False)
    return needed


def _usable(frame: pd.DataFrame, job: _Job) -> np.ndarray:
    """Mask of the rows that have a unit and pass the condition of some task."""
    usable = np.ones(len(frame), bool)
    for column in job.unit_columns(frame):
        usable &= ~values.missing(column)
    conditions = {task.where for task in job.tasks}
    if None not in conditions:
        passes = [filters.keep(where, frame) for where in conditions if where is not None]
        usable &= np.logical_or.reduce(passes)
    return usable


def _stack_frames(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put frames with the same columns on top of each other, every value as it is.

    The dtypes of partitions may differ with what they hold. A common dtype would change values:
    in a column of floats some integers are rounded, and two units become one.
    """
    frames = [frame for frame in frames if len(frame)] or frames[:1]
    if len(frames) == 1:
        return frames[0]
    places = range(frames[0].shape[1])
    columns = [_join_columns([frame.iloc[:, at] for frame in frames]) for at in places]
    stacked = pd.DataFrame(dict(enumerate(columns)), copy=False)
    stacked.columns = frames[0].columns
    return stacked


def _join_columns(columns: Sequence[pd.Series]) -> pd.Series:
    """Join columns, as objects where their dtypes differ."""
    if any(column.dtype != columns[0].dtype for column in columns):
        columns = [pd.Series(values.objects(column), dtype=object) for column in columns]
    return pd.concat(columns, ignore_index=True)

"""The certificate of a planned table, before its values are known, and what its rows leave out."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias, assert_never

import numpy as np
import pandas as pd

from dpframe.cells.record import ATTRIBUTE
from dpframe.cells.verify import look
from dpframe.certificates import mechanism_parts, parts
from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import (
    ColumnPart,
    FeaturePart,
    NoisePart,
    ValuesPart,
    WeightsPart,
    values_part,
)
from dpframe.certificates.json_records import Packed, pack
from dpframe.declaration.facts import Declaration
from dpframe.errors import CertificateError
from dpframe.plan.columns import OutputColumn
from dpframe.plan.designs import NoisyDesign
from dpframe.plan.plan import Plan
from dpframe.plan.tables import Table, name_of
from dpframe.privacy.noise_sum import Value
from dpframe.provenance import is_found
from dpframe.queries.edges import Grid
from dpframe.queries.query import Query
from dpframe.queries.tasks import Axis, BinAxis, KeyAxis, LabelAxis
from dpframe.queries.where import Condition
from dpframe.strategies import MECHANISMS
from dpframe.strategies.base import Estimate, Layers, Prediction, Workload
from dpframe.strategies.domain import MarginStructure, TreeStructure

_COVARIANCE = (
    "Cells are uncorrelated, except for common blocks. In a cell, two columns have as covariance "
    "the sum over measured blocks of the products of their loadings. Blocks that are drawn "
    "together are not independent, and neither are cells in which they are."
)
_STRUCTURED = (
    "Cells were measured together and are correlated, with those of tables released with them, "
    "too: the structure of the mechanism, or the loadings of the blocks that all cells share, say "
    "how. In a cell, two columns have as covariance the sum over measured blocks of the products "
    "of their loadings."
)
UNWANTED = "combination of keys is not wanted"
NO_OPTIONS = parts.OptionsPart(max_true=None, n_weight=0.0, objective="total", n=None)


Describe: TypeAlias = Callable[[Estimate], ColumnPart]
"""From what was estimated to what is said about a column."""


def record_of(
    name: Hashable, table: Table, plan: Plan, declaration: Declaration, facts: dict[str, Any]
) -> tuple[Release, tuple[Describe, ...]]:
    """Write what is promised about one table, all but ledger and columns, and how to say these.

    The facts are those of all tables that are released together.
    """
    noisy = plan.of(table)
    release = Release(
        **facts,
        query=_query(name, table, declaration),
        columns=(),
        mechanism=mechanism_of(noisy, table),
        covariance=_STRUCTURED if noisy.is_over_cells else _COVARIANCE,
    )
    pairs = zip(table.outputs, plan.predictions(table), strict=True)
    return release, tuple(_column(column, prediction, noisy) for column, prediction in pairs)


def _query(name: Hashable, table: Table, declaration: Declaration) -> parts.QueryPart:
    """Say what was asked."""
    query_name = name_of(name)
    return parts.QueryPart(
        name=None if query_name is None else str(query_name),
        words=table.asked.words,
        by=tuple(
            # sizes of units are named in the call
            grouping_of(axis, table.asked, declaration, called=table.sizes is not None)
            for axis in table.cells.axes
        ),
        cells=table.cells.size,
        outputs=len(table.outputs),
        where=text_of(table.rows_counted),
        left_out=rules_of(table),
        options=_options(table.workload),
    )


def _options(work: Workload) -> parts.OptionsPart:
    """Say what shapes the noise."""
    rows = work.known_rows
    n = None if rows is None else parts.KnownRowsPart(pack(rows.rows), rows.variance)
    return parts.OptionsPart(work.most, work.rows_weight, "worst" if work.worst else "total", n)


def mechanism_of(measured: NoisyDesign, table: Table) -> mechanism_parts.NoiseRecord:
    """Say where the noise comes from: that of blocks that the table reads, or drawn with them."""
    if measured.design.layers is not None:
        return _layers(_named(measured), table.place, measured.scales, measured.design.layers)
    predictions = measured.predictions[table.own]
    read = {block for output in predictions for block in output.loadings if block >= 0}
    if len(measured.design.common) == len(measured.scales):
        return mechanism_parts.SignsPart(
            "signs",
            *_named(measured),
            scales={str(block): measured.scales[block] for block in sorted(read)},
            groups=tuple(tuple(str(k) for k in group if k in read) for group in measured.shared),
            members=tuple(map(len, measured.shared)),
        )
    group_of = measured.group_of
    groups = sorted({group_of[block] for block in read if block in group_of})
    alone = frozenset(block for block in read if block not in group_of)
    return _block_noise(measured, tuple(groups), alone)


@lru_cache(maxsize=1)  # of many tables with noise that is drawn together, all say the same
def _block_noise(
    measured: NoisyDesign, groups: tuple[int, ...], alone: frozenset[int]
) -> mechanism_parts.BlockNoisePart:
    """Say where noise comes from that is drawn for some groups of blocks, and some others."""
    together = [measured.shared[place] for place in groups]
    blocks = sorted(alone.union(*together))
    return mechanism_parts.BlockNoisePart(
        "noise",
        *_named(measured),
        scales={str(block): measured.scales[block] for block in blocks},
        groups=tuple(tuple(map(str, group)) for group in together),
        joined=measured.design.joined and measured.design.groups[0] in together,
        common_blocks=tuple(str(block) for block in sorted(measured.design.common)),
    )


def _named(measured: NoisyDesign) -> tuple[str, str, str]:
    """Return the name of a mechanism, its title, and the law of its noise."""
    return measured.mechanism, MECHANISMS[measured.mechanism].title, measured.law.name


def _layers(
    named: tuple[str, str, str], place: int, scales: Sequence[float], layers: Layers
) -> mechanism_parts.MarginsPart | mechanism_parts.TreePart | mechanism_parts.SumsPart:
    """Say how the cells of a table were measured together."""
    blocks = {str(block): layers.describe(place, scale) for block, scale in enumerate(scales)}
    tau = {block: described.tau for block, described in blocks.items()}
    match blocks["0"]:
        case TreeStructure() as tree:
            described = tree.weights, tree.window
            return mechanism_parts.TreePart("tree", *named, tree.sizes, tau, *described)
        case MarginStructure() as one:
            shared = *named, one.sizes, tau, one.layers, one.rounding
            if one.kind == "margins":
                return mechanism_parts.MarginsPart("margins", *shared)
            return mechanism_parts.SumsPart("sums", *shared, one.cells, one.table)
        case structure:
            assert_never(structure)


def noise_of_column(
    column: OutputColumn, prediction: Prediction, noisy: NoisyDesign
) -> NoisePart | None:
    """Describe the noise of a column that is a measured block."""
    block = prediction.block
    if block is None:
        return None
    return NoisePart(noisy.scales[block], column.step, noisy.members[block])


def grouping_of(
    axis: Axis, query: Query, declaration: Declaration, *, called: bool
) -> parts.GroupingPart:
    """Describe a level: where its keys were given, and which is that of all other rows."""
    source = "call" if called else _source_of(axis.column, query, declaration)
    key_of_rest = str(axis.keys[-1]) if axis.rest else None
    return parts.GroupingPart(str(axis.column), len(axis), source, key_of_rest)


def _source_of(label: Hashable, query: Query, declaration: Declaration) -> str:
    """Say where the keys of a grouping column were given."""
    if label in query.binned or any(axis.column == label for axis in query.bin_axes):
        return "call"
    keys = query.keys.get(label) if isinstance(query.keys, Mapping) else query.keys
    if keys is None:
        return declaration.column(label).source
    return "found" if _were_found(keys) else "call"


def _were_found(keys: object) -> bool:
    """Whether `discover` found groups: they are its release, or the index of that."""
    if not isinstance(keys, pd.DataFrame) or ATTRIBUTE not in keys.attrs:
        return is_found(keys)
    try:
        release = look(keys).opened.releases[0]
    except CertificateError:
        return False
    return bool(mechanism_parts.kinds_of_groups(release.mechanism))


def text_of(where: Condition | None) -> str | None:
    """Write a condition, if there is one."""
    return None if where is None else where.text


def _column(column: OutputColumn, prediction: Prediction, noisy: NoisyDesign) -> Describe:
    """Describe one released column and its noise."""
    is_total = column.form.is_total
    error = prediction.std_error * column.step
    make = partial(
        ColumnPart,
        kind=column.statistic,
        name=str(column.name),
        columns=values_of(column),
        condition=text_of(column.condition),
        where=text_of(column.where),
        weights=_weights(column),
        integer=column.integer,
        noise=noise_of_column(column, prediction, noisy),
        std_error=error if is_total and not prediction.per_row else None,
    )
    return lambda estimate: make(features=_features(column, estimate))


def values_of(column: OutputColumn) -> tuple[ValuesPart, ...]:
    """Describe the private columns that a column is about."""
    return tuple(values_part(label, bounds, grid.bounds) for label, grid, bounds in column.values)


def _features(column: OutputColumn, estimate: Estimate) -> dict[str, FeaturePart]:
    """Say what a column was read off, and what the noise of the blocks does to that."""
    totals = estimate.totals
    if totals is None:
        loadings = _by_block(estimate.loadings, column.unit)
        return {feature: FeaturePart(None, loadings) for feature in column.form.family}
    return {
        feature: FeaturePart(pack(total), _by_block(totals.loadings[feature]))
        for feature, total in totals.values.items()
    }


def _by_block(loadings: Mapping[int, Value], step: float = 1.0) -> dict[str, float | Packed]:
    """Write what the noise of the blocks does to something counted in steps, in its units."""
    return {str(block): pack(np.multiply(loading, step)) for block, loading in loadings.items()}


def _weights(column: OutputColumn) -> WeightsPart | None:
    """Say what rows count for."""
    weights = column.row_weights
    if weights is None:
        return None
    return WeightsPart(str(weights.column), weights.bounds, weights.grid.step)


def rules_of(table: Table) -> tuple[str, ...]:
    """Say where rows are left out of a table, beside its condition and its caps."""
    rules = list(rules_of_groups(table.unit, table.groups.axes))
    if table.measured.groups.chosen is not None:
        rules.append(UNWANTED)
    of_outputs: dict[str, list[str]] = {}
    for out in table.outputs:
        for rule in _rules_of_output(out):
            of_outputs.setdefault(rule, []).append(str(out.name))
    rules += [f"{rule}, of {', '.join(names)}" for rule, names in of_outputs.items()]
    return tuple(dict.fromkeys(rules))


def rules_of_groups(
    unit: tuple[Hashable, ...], axes: Iterable[Axis | LabelAxis]
) -> tuple[str, ...]:
    """Say where rows have no unit or no group."""
    rules = [f"{label} is missing" for label in unit]
    for axis in axes:
        if not (isinstance(axis, KeyAxis) and axis.rest):
            rules.append(f"{axis.column} is missing or {outside_of(axis)}")
    return tuple(rules)


def outside_of(axis: Axis | LabelAxis) -> str:
    """Say what values of a column are that are present, and in none of its groups."""
    match axis:
        case KeyAxis():
            return "not a declared key"
        case BinAxis(clipped=True):
            return "of another kind than the bins"
        case BinAxis():
            return "in no bin"
        case LabelAxis(kind=kind):
            return f"no label of kind {kind}"
        case _:
            assert_never(axis)


def unlike(grid: Grid) -> str:
    """Say what values of a bounded column are that are of another kind."""
    if grid.ticks is None:
        return "not a number"
    if not grid.ticks.points:
        return "not a duration"
    return f"not a point in time with{'out' if grid.ticks.zone is None else ''} a time zone"


def _rules_of_output(out: OutputColumn) -> Iterator[str]:
    """Say where rows do not count in an output, and may in others."""
    if out.where is not None:
        yield f"{out.where.text} is not met"
    if out.condition is not None and out.condition.columns and not out.blanks_fail:
        yield f"{', '.join(out.condition.columns)} is missing"
    for column, grid, _ in out.values:
        if grid.fill is None:
            yield f"{column} is missing or {unlike(grid)}"

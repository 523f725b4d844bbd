"""From a released frame to one with denoised columns, or with margins that add up.

What is known of the noise is read from the certificate, and what was done is written into it. The
released columns stay as they are. Cannot reach private data.
"""

import hashlib
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.arguments import is_one_of
from dpframe.cells.verify import Shown, look, whole_release
from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import ColumnPart
from dpframe.certificates.definitions import DenoiseDefinition, GraphPart, Setting
from dpframe.certificates.mechanism_parts import SumsPart
from dpframe.denoising.consistent import MOST_WAYS, consistent_tables, whole_tables
from dpframe.denoising.means import MOST_LAPLACE, NoisyRatio, shrunken_means
from dpframe.denoising.methods import (
    Choice,
    DenoiserName,
    Facts,
    choose,
    denoise_array,
    posterior_choice,
)
from dpframe.denoising.projection import Denoised
from dpframe.errors import QueryError, a_type
from dpframe.inference.intervals import check_not_selected
from dpframe.inference.joint_errors import TOGETHER, check_apart, of_one_query
from dpframe.privacy.law import Law
from dpframe.privacy.laws import LAPLACE
from dpframe.public import public_call
from dpframe.queries.edges import in_seconds, seconds, times_like
from dpframe.statistics.form import ROWS, Y
from dpframe.steps.denoise_checks import (
    Across,
    Denoising,
    Described,
    check_denoising,
    describe,
    label_of,
    names_taken,
)

MEANS = "shrunken_means"
"""What "auto" does to means."""

_Made: TypeAlias = tuple[np.ndarray | ExtensionArray, DenoiseDefinition]


@public_call
def denoise(
    released: pd.DataFrame,
    method: DenoiserName = "auto",
    *,
    columns: Hashable | Sequence[Hashable] | None = None,
    graph: object = None,
    across: Across | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Add a denoised column `<column>_denoised` beside every released column.

    It uses only the release and the known law of its noise, so it costs no privacy (Balle and Wang
    2018, section 4). It is biased and has no standard error; released columns keep theirs.

    Parameters
    ----------
    released
        A released frame.
    method
        "auto": the posterior median of counts and sums, an average of methods by estimated risk
        where rows have neighbors, and for means `dpframe.denoising.means.shrunken_means`; nothing
        where nothing clearly helps. Or a name in `dpframe.denoising.methods.METHODS`: "posterior",
        "james_stein", "soft_threshold", "tree_wavelets", "trend_filter", and the projections
        "nonnegative", "monotone", "consistent" and "whole".
    columns
        The released columns to denoise; by default all counts and sums, and with "auto" all means.
    graph
        Which rows are neighbors: a scipy sparse adjacency matrix in the order of the rows, a
        networkx graph of keys, a frame whose first two columns hold the keys that an edge joins,
        "ordered" or "grid". By default bins are "ordered" for "auto".
    across
        "rows": the rows of a column are denoised together; "columns": the columns of a row, which
        must have noise of the same size. By default rows, if there are several; else the largest
        set of columns that are alike.
    **options
        Options of the method, such as `order=1` for "trend_filter". Those of "posterior", `prior=`,
        `total=` and `loss=`, go without its name.

    Returns
    -------
    DataFrame
        The released columns, then the denoised ones. The certificate lists the step, and its
        `denoising` what was tried.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If method, columns, graph or options do not fit the release.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=list("ABCDEFGH")), epsilon=0.1)
    >>> list(denoise(released, "nonnegative").columns)
    ['count', 'count_denoised']
    """
    shown = look(released)
    release, released = whole_release(shown, "denoise"), shown.frame
    check_not_selected(release, "denoising")
    _ = release.noise  # quantiles that were selected have none
    check_apart(release, "denoise", TOGETHER)
    facts = describe(release.columns, released.columns)
    plan = check_denoising(
        method, released.index, facts, columns=columns, graph=graph, across=across, options=options
    )
    return apply_denoising(shown, plan)


def apply_denoising(shown: Shown, plan: Denoising) -> pd.DataFrame:
    """Add the denoised columns to a table, with how they were computed."""
    released, release = shown.frame, shown.certificate.release
    denoised = _of_totals(released, release, plan)
    for at in plan.means:
        law = release.noise.distribution
        denoised[at] = _of_means(released.iloc[:, at], release.columns[at], law, plan)
    places = sorted(denoised)
    labels = [label_of(released.columns[at]) for at in places]
    columns = pd.DataFrame(
        {label: denoised[at][0] for label, at in zip(labels, places, strict=True)},
        index=released.index,
    )
    definitions = [
        replace(denoised[at][1], column=release.columns[at].name, into=label)
        for label, at in zip(labels, places, strict=True)
    ]
    return shown.add(columns, definitions, [shown.labels[at] for at in places])


def _of_totals(released: pd.DataFrame, release: Release, plan: Denoising) -> dict[int, _Made]:
    """Denoise counts and sums, by position."""
    if not plan.columns:
        return {}
    columns = [release.columns[at] for at in plan.columns]
    places = zip(plan.columns, columns, strict=True)
    values = [in_seconds(released.iloc[:, at], column.origin) for at, column in places]
    table, steps = _along(np.stack(values, axis=1), _facts(release, columns, plan), plan)
    shown = [
        numbers if column.times is None else seconds(numbers)
        for column, numbers in zip(columns, table.T, strict=True)
    ]
    return dict(zip(plan.columns, zip(shown, steps, strict=True), strict=True))


def _of_means(released: pd.Series, column: ColumnPart, law: Law, plan: Denoising) -> _Made:
    """Denoise a column of means."""
    values = np.broadcast_to(column.statistic.estimate(column.totals)[0], len(released))
    denoised, raw_risk = Denoised(values, math.nan, {}), math.nan
    if column.form.is_mean and np.isfinite(values).all():
        denoised, raw_risk = shrunken_means(values, _noisy_ratio(column, law, len(values)))
    same = denoised.values == values  # where nothing is known, cells are missing
    shown = np.where(same, in_seconds(released, column.origin), denoised.values)
    denoised = denoised._replace(values=shown)
    tried = {MEANS: denoised} if denoised.chosen else {}
    moved = denoised.chosen.get("moved", 0) > 0
    kept = Choice((), Denoised(values, raw_risk, {}), tried)
    choice = Choice((MEANS,), denoised, tried) if moved else kept
    step = _step([choice], raw_risk, replace(plan, edges=None))
    if column.origin is None:
        return denoised.values, step
    return (times_like(released, denoised.values, column.origin) if moved else released.array), step


def _noisy_ratio(column: ColumnPart, law: Law, rows: int) -> NoisyRatio:
    """Read from the certificate what means were read off, and the noise in it."""
    totals, half = column.totals, column.statistic.unit
    of_sum, of_rows = (
        {block: float(np.max(of)) for block, of in totals.loadings[feature].items()}
        for feature in (Y, ROWS)
    )
    scales = [abs(of) for of in of_rows.values() if of]
    alike = law is LAPLACE and len(scales) <= MOST_LAPLACE and len(set(scales)) == 1
    with np.errstate(over="ignore"):  # bounds can be near the largest float
        moved = {block: half * of for block, of in of_sum.items()}
        return NoisyRatio(
            centered=np.broadcast_to(half * totals.values[Y], rows),
            rows=np.broadcast_to(totals.values[ROWS], rows),
            centered_variance=sum(np.square(of) for of in moved.values()),
            rows_variance=sum(np.square(of) for of in of_rows.values()),
            covariance=sum(of * of_rows.get(block, 0.0) for block, of in moved.items()),
            bounds=column.span,
            laplace=len(scales) if alike else 0,
        )


def _along(
    table: np.ndarray, facts: Sequence[Facts], plan: Denoising
) -> tuple[np.ndarray, list[DenoiseDefinition]]:
    """Denoise a table line by line, along the axis asked for; return also a step by column."""
    if plan.across == "columns":
        results = [_denoise(row, facts[0], plan) for row in table]
        steps = [_step(results, facts[0].variance, plan)] * len(facts)
        return _stack_results(results, table.shape), steps
    results = [_denoise(column, fact, plan) for column, fact in zip(table.T, facts, strict=True)]
    pairs = zip(results, facts, strict=True)
    steps = [_step([result], fact.variance, plan) for result, fact in pairs]
    return _stack_results(results, table.T.shape).T, steps


def _stack_results(results: Sequence[Choice], shape: tuple[int, ...]) -> np.ndarray:
    return np.array([result.denoised.values for result in results]).reshape(shape)


def _denoise(values: np.ndarray, facts: Facts, plan: Denoising) -> Choice:
    # bounds near the largest float, or totals that are public and have no noise
    if not (np.isfinite(values).all() and 0 < facts.sigma < math.inf):
        return Choice((), Denoised(values, facts.variance, {}), {})
    if plan.method == "auto":
        return choose(values, facts)
    if plan.method == "posterior":
        return posterior_choice(values, facts, plan.options)
    return Choice((plan.method,), denoise_array(values, plan.method, facts, plan.options), {})


def _facts(release: Release, columns: Sequence[ColumnPart], plan: Denoising) -> list[Facts]:
    """Read from the certificate what is known of the noise in what is denoised together."""
    sizes = [_sizes(column) for column in columns]
    common = set(release.noise.shared_blocks) if plan.across == "rows" else _shared_blocks(sizes)
    law = release.noise.distribution
    groups = release.noise.drawn_together(release.query.cells)
    members = {block: len(group) for group in groups for block in group}
    return [
        Facts(
            law.of_sum(len(moved), max(members.get(block, 1) for block in moved)),
            math.hypot(*(size for block, size in moved.items() if block not in common)),
            math.hypot(*(size for block, size in moved.items() if block in common)),
            nonnegative=column.span[0] >= 0,
            integer=column.integer and column.times is None,
            edges=plan.edges,
        )
        for column, moved in zip(columns, sizes, strict=True)
    ]


def _sizes(column: ColumnPart) -> dict[str, float]:
    """Return what the noise of the blocks does to a value, the same in all rows."""
    moved = column.deviations.items()
    return {block: float(np.max(np.abs(by), initial=0.0)) for block, by in moved}


def _shared_blocks(sizes: Sequence[Mapping[str, float]]) -> set[str]:
    """Return the blocks whose noise moves all of several columns alike."""
    first, *others = sizes
    return {
        block
        for block, size in first.items()
        if others and all(math.isclose(other.get(block, 0), size) for other in others)
    }


def _step(results: Sequence[Choice], noise: float, plan: Denoising) -> DenoiseDefinition:
    """Describe what was done, except for where it was written."""
    members = {name for result in results for name in result.methods or ("none",)}
    chosen = _choices_of(results[0]) if len(results) == 1 else {}
    return DenoiseDefinition(
        call="denoise",
        column="",
        into="",
        method="; ".join(sorted({result.name for result in results})) or "none",
        members=tuple(sorted(members)) or ("none",),
        asked=plan.method,
        options={name: _setting(value) for name, value in plan.options.items()},
        across=plan.across,
        graph=None if plan.edges is None else _graph(plan.edges),
        noise_variance=_number(noise),
        chosen={name: _number(value) for name, value in chosen.items()},
        tried=_gains(results, lambda denoised: _squared_gain(denoised, noise)),
        tried_absolute=_gains(results, lambda denoised: denoised.gain),
    )


def _gains(results: Sequence[Choice], gain: Callable[[Denoised], float]) -> dict[str, float | None]:
    """Return by method what part of the noise it is expected to remove, an average of lines."""
    gains: dict[str, list[float]] = {}
    for result in results:
        # an average stands beside its members
        for name, denoised in {**result.tried, result.name: result.denoised}.items():
            gains.setdefault(name, []).append(gain(denoised))
    return {name: _number(float(np.mean(gain))) for name, gain in gains.items()}


def _squared_gain(denoised: Denoised, noise: float) -> float:
    # an estimated risk can be negative, but no more than all noise can be removed
    return 1 - max(denoised.risk, 0.0) / noise if noise else 0.0


def _choices_of(result: Choice) -> dict[str, float]:
    """Return what the methods that were taken chose by looking at the values."""
    if len(result.methods) == 1:
        return result.denoised.chosen
    return result.denoised.chosen | {
        f"{method}: {name}": value
        for method in result.methods
        for name, value in result.tried[method].chosen.items()
    }


def _graph(edges: np.ndarray) -> GraphPart:
    """Say which graph was used: its number of edges, and a digest of their positions."""
    positions = np.ascontiguousarray(edges, "<i8")
    return GraphPart(len(edges), f"sha256:{hashlib.sha256(positions.tobytes()).hexdigest()}")


def _setting(value: object) -> Setting:
    """Write an option as JSON."""
    if isinstance(value, float):
        return _number(value)
    return value if isinstance(value, str | int | None) else "given"


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


TablesByColumns: TypeAlias = Mapping[tuple[Hashable, ...], pd.DataFrame]
"""Tables of one query by their columns, as `release` returns them."""

_LARGEST = 2.0**61  # whole numbers of 64 bits, with room for their sums
_METHOD = "consistent"


@public_call
def consistent(tables: TablesByColumns) -> dict[tuple[Hashable, ...], pd.DataFrame]:
    """Add counts without negative cells, whole and still adding up, to margins.

    From the top down: the total is kept, tables by one column are the nearest ones with that total,
    and tables by two columns the nearest ones with these as their sums (in squared distance); then
    all are rounded up or down, so that they agree to the last bit. Tables by three columns or more
    have no such form: two-way tables that agree may come from no three-way table.

    Parameters
    ----------
    tables
        What a release of `dpframe.margins` returned: tables by at most two columns.

    Returns
    -------
    dict of DataFrame
        The released columns, then `<column>_denoised` for every count. These have no standard
        error; the released columns keep theirs.

    Raises
    ------
    CertificateError
        If a table is not what was released.
    QueryError
        If they are not margins of one query, or have more than two columns, or no counts.

    Examples
    --------
    >>> import dpframe as dpf
    >>> people = pd.DataFrame({"sex": ["f", "m", "f"], "vote": ["no", "no", "yes"]})
    >>> dpf.declare(people, keys={"sex": ["f", "m"], "vote": ["no", "yes"]})
    >>> made = consistent(people.dp.margins(["sex", "vote"], ways=2, epsilon=1))
    >>> both, sex = made["sex", "vote"]["count_denoised"], made["sex",]["count_denoised"]
    >>> bool((both.groupby("sex").sum() == sex).all()), bool((both >= 0).all())
    (True, True)
    """
    if not isinstance(tables, Mapping) or not tables:
        rule = f"tables must be the dict of margins that a release returned, got {a_type(tables)}."
        raise QueryError(rule, parameter="tables")
    shown = {columns: look(table) for columns, table in tables.items()}
    releases = {columns: whole_release(table, "consistent") for columns, table in shown.items()}
    first = next(iter(releases.values()))
    if any(not of_one_query(margin, first) for margin in releases.values()):
        rule = "tables must be margins of one query, as a release of dpframe.margins returned them."
        raise QueryError(rule, parameter="tables")
    names = next(iter(shown.values())).frame.columns
    sets = [_columns(margin) for margin in releases.values()]
    check_margins(
        sets, describe(first.columns, names), all_cells=not isinstance(first.mechanism, SumsPart)
    )
    return _add_columns(shown)


def check_margins(
    sets: Sequence[tuple[Hashable, ...]], columns: Sequence[Described], *, all_cells: bool
) -> None:
    """Check that margins can be made whole numbers that add up, before there are values.

    Parameters
    ----------
    sets
        The columns of the tables.
    columns
        What is released in each of them.
    all_cells
        Whether all combinations of groups can hold rows.

    Raises
    ------
    QueryError
        If they cannot.
    """
    if not all_cells:
        rule = "is not for margins whose keys= name combinations of groups"
        way_out = "Give keys={column: [...]}, or leave it out."
        raise QueryError.about("denoise", rule, _METHOD, way_out)
    largest = max(sets, key=len)
    if len(largest) > MOST_WAYS:
        rule = f"is for margins of at most two columns, not {list(largest)!r}"
        way_out = "Release with ways=2, or leave it out."
        raise QueryError.about("denoise", rule, _METHOD, way_out)
    counts = [column.name for column in columns if column.counts_rows]
    if not counts:
        way_out = "Add count=dpf.count(), or leave it out."
        rule = "is for counts without weights, and there are none"
        raise QueryError.about("denoise", rule, _METHOD, way_out)
    taken = {column.name for column in columns} | {label for labels in sets for label in labels}
    again = [label_of(name) for name in counts if is_one_of(label_of(name), list(taken))]
    if again:
        raise names_taken(again[0])


def made_consistent(tables: TablesByColumns) -> dict[tuple[Hashable, ...], pd.DataFrame]:
    """Add the columns to tables that were just released, with how they were computed."""
    return _add_columns({columns: look(table) for columns, table in tables.items()})


def _add_columns(
    tables: Mapping[tuple[Hashable, ...], Shown],
) -> dict[tuple[Hashable, ...], pd.DataFrame]:
    """Add the columns, with how they were computed."""
    first = next(iter(tables.values()))
    counts = [at for at, column in enumerate(first.certificate.columns) if column.counts_rows]
    numbers = [_whole(tables, at) for at in counts]
    labels = [label_of(first.frame.columns[at]) for at in counts]
    denoised = {}
    for name, shown in tables.items():
        columns = {label: by_table[name] for label, by_table in zip(labels, numbers, strict=True)}
        denoised[name] = shown.add(
            pd.DataFrame(columns, index=shown.frame.index),
            [
                _definition(shown.certificate.release, at, label)
                for at, label in zip(counts, labels, strict=True)
            ],
            [shown.labels[at] for at in counts],
        )
    return denoised


def _whole(
    tables: Mapping[tuple[Hashable, ...], Shown], at: int
) -> dict[tuple[Hashable, ...], np.ndarray]:
    """Return the whole numbers of one released column, by table."""
    releases = {name: table.certificate.release for name, table in tables.items()}
    columns = dict.fromkeys(label for table in releases.values() for label in _columns(table))
    places = {column: at for at, column in enumerate(columns)}
    axes = {name: [places[label] for label in _columns(table)] for name, table in releases.items()}
    estimates = {
        tuple(sorted(axes[name])): _cells(table.frame.iloc[:, at], releases[name], axes[name])
        for name, table in tables.items()
    }
    largest = max(float(np.abs(cells).max()) for cells in estimates.values())
    if largest > _LARGEST:  # so that all of them are whole numbers of 64 bits
        estimates = {
            places_of: cells * (_LARGEST / largest) for places_of, cells in estimates.items()
        }
    whole_cells = whole_tables(consistent_tables(estimates, estimates))
    arrays = {
        name: whole_cells[tuple(sorted(places_of))].transpose(np.argsort(np.argsort(places_of)))
        for name, places_of in axes.items()
    }
    return {name: cells.astype(np.int64).ravel() for name, cells in arrays.items()}


def _cells(column: pd.Series, release: Release, axes: Sequence[int]) -> np.ndarray:
    """View the cells of a table along its axes, in the order of all columns."""
    sizes = [grouping.groups for grouping in release.query.by]
    cells: np.ndarray = column.to_numpy(np.float64).reshape(sizes)
    return cells.transpose(np.argsort(axes))


def _columns(release: Release) -> tuple[str, ...]:
    """Return the columns of a table."""
    return tuple(grouping.column for grouping in release.query.by)


def _definition(release: Release, at: int, into: str) -> DenoiseDefinition:
    """Say how a column was computed."""
    column = release.columns[at]
    error = column.std_error if column.form.is_whole else None
    return DenoiseDefinition(
        call="denoise",
        column=column.name,
        into=into,
        method=_METHOD,
        members=(_METHOD,),
        asked=_METHOD,
        options={},
        across="rows",
        graph=None,
        noise_variance=None if error is None else error**2,
        chosen={},
        tried={},
        tried_absolute={},
    )

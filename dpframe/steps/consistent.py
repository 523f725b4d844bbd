"""Margins made whole numbers that add up: post-processing of tables that were released together."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.cells.verify import Shown, look, whole_release
from dpframe.certificates.certificate import Release
from dpframe.certificates.definitions import DenoiseDefinition
from dpframe.certificates.mechanism_parts import SumsPart
from dpframe.denoising.consistent import can_be_consistent, consistent_tables, whole_tables
from dpframe.errors import QueryError, a_type
from dpframe.inference.joint_errors import of_one_query
from dpframe.public import public_call
from dpframe.steps.denoise_checks import Described, describe, label_of, names_taken

TablesByColumns: TypeAlias = Mapping[tuple[Hashable, ...], pd.DataFrame]
"""Tables of one query by their columns, as `release` returns them."""

_LARGEST = 2.0**61
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
    releases = {columns: whole_release(one, "consistent") for columns, one in shown.items()}
    first = next(iter(releases.values()))
    if any(not of_one_query(one, first) for one in releases.values()):
        rule = "tables must be margins of one query, as a release of dpframe.margins returned them."
        raise QueryError(rule, parameter="tables")
    names = next(iter(shown.values())).frame.columns
    sets = [_columns(one) for one in releases.values()]
    check_margins(
        sets, describe(first.columns, names), whole=not isinstance(first.mechanism, SumsPart)
    )
    return _add_columns(shown)


def check_margins(
    sets: Sequence[tuple[Hashable, ...]], columns: Sequence[Described], *, whole: bool
) -> None:
    """Check that margins can be made whole numbers that add up, before there are values.

    Parameters
    ----------
    sets
        The columns of the tables.
    columns
        What is released in each of them.
    whole
        Whether all combinations of groups can hold rows.

    Raises
    ------
    QueryError
        If they cannot.
    """
    if not whole:
        rule = "is not for margins whose keys= name combinations of groups"
        way_out = "Give keys={column: [...]}, or leave it out."
        raise QueryError.about("denoise", rule, _METHOD, way_out)
    if not can_be_consistent([tuple(range(len(columns))) for columns in sets]):
        largest = max(sets, key=len)
        rule = f"is for margins of at most two columns, not {list(largest)!r}"
        way_out = "Release with ways=2, or leave it out."
        raise QueryError.about("denoise", rule, _METHOD, way_out)
    counts = [column.name for column in columns if column.counts_rows]
    if not counts:
        way_out = "Add count=dpf.count(), or leave it out."
        rule = "is for counts without weights, and there are none"
        raise QueryError.about("denoise", rule, _METHOD, way_out)
    taken = {column.name for column in columns} | {label for one in sets for label in one}
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
    counts = [at for at, one in enumerate(first.certificate.columns) if one.counts_rows]
    whole = [_whole(tables, at) for at in counts]
    labels = [label_of(first.frame.columns[at]) for at in counts]
    made = {}
    for name, shown in tables.items():
        columns = {label: own[name] for label, own in zip(labels, whole, strict=True)}
        made[name] = shown.add(
            pd.DataFrame(columns, index=shown.frame.index),
            [
                _definition(shown.certificate.release, at, label)
                for at, label in zip(counts, labels, strict=True)
            ],
            [shown.labels[at] for at in counts],
        )
    return made


def _whole(
    tables: Mapping[tuple[Hashable, ...], Shown], at: int
) -> dict[tuple[Hashable, ...], np.ndarray]:
    """Return the whole numbers of one released column, by table."""
    releases = {name: one.certificate.release for name, one in tables.items()}
    columns = dict.fromkeys(label for one in releases.values() for label in _columns(one))
    places = {column: at for at, column in enumerate(columns)}
    axes = {name: [places[label] for label in _columns(one)] for name, one in releases.items()}
    estimates = {
        tuple(sorted(axes[name])): _cells(one.frame.iloc[:, at], releases[name], axes[name])
        for name, one in tables.items()
    }
    largest = max(float(np.abs(cells).max()) for cells in estimates.values())
    if largest > _LARGEST:  # so that all of them are whole numbers of 64 bits
        estimates = {own: cells * (_LARGEST / largest) for own, cells in estimates.items()}
    found = whole_tables(consistent_tables(estimates, estimates))
    whole = {
        name: found[tuple(sorted(own))].transpose(np.argsort(np.argsort(own)))
        for name, own in axes.items()
    }
    return {name: cells.astype(np.int64).ravel() for name, cells in whole.items()}


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

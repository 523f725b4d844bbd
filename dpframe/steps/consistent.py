"""Margins made whole numbers that add up: post-processing of tables that were released together."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pandas as pd

from dpframe.accuracy.joint_errors import of_one_query
from dpframe.arguments import is_one_of
from dpframe.certificates.certificate import Certificate, check_before
from dpframe.certificates.steps import DenoiseStep
from dpframe.certificates.verify import attach, certificate_of, verify
from dpframe.denoising.consistent import can_be_consistent, consistent_tables, whole_tables
from dpframe.errors import QueryError, a_type
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
    certificates = {columns: _as_released(verify(table)) for columns, table in tables.items()}
    first = next(iter(certificates.values()))
    if any(not of_one_query(one.release, first.release) for one in certificates.values()):
        rule = "tables must be margins of one query, as a release of dpframe.margins returned them."
        raise QueryError(rule, parameter="tables")
    names = next(iter(tables.values())).columns
    sets = [_columns(one) for one in certificates.values()]
    check_margins(sets, describe(first.columns, names))
    return _add_columns(tables, certificates)


def check_margins(sets: Sequence[tuple[Hashable, ...]], columns: Sequence[Described]) -> None:
    """Check that margins can be made whole numbers that add up, before there are values.

    Parameters
    ----------
    sets
        The columns of the tables.
    columns
        What is released in each of them.

    Raises
    ------
    QueryError
        If they cannot.
    """
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
    """Add the columns to tables that were just released, and the steps to their certificates."""
    certificates = {name: _as_released(certificate_of(one)) for name, one in tables.items()}
    return _add_columns(tables, certificates)


def _add_columns(
    tables: TablesByColumns, certificates: Mapping[tuple[Hashable, ...], Certificate]
) -> dict[tuple[Hashable, ...], pd.DataFrame]:
    """Add the columns and the steps."""
    made = {columns: table.copy() for columns, table in tables.items()}
    steps: dict[tuple[Hashable, ...], dict[str, DenoiseStep]] = {name: {} for name in tables}
    first, labels = next(iter(certificates.values())), next(iter(tables.values())).columns
    counts = (at for at, column in enumerate(first.columns) if column.counts_rows)
    for at in counts:
        label = label_of(labels[at])
        for name, numbers in _whole(tables, certificates, at).items():
            made[name][label] = numbers
            steps[name][label] = _step(certificates[name], at, label)
    for name, table in made.items():
        table.attrs = {}
        attach(table, replace(certificates[name], steps=tuple(steps[name].values())))
    return made


def _whole(
    tables: TablesByColumns, certificates: Mapping[tuple[Hashable, ...], Certificate], at: int
) -> dict[tuple[Hashable, ...], np.ndarray]:
    """Return the whole numbers of one released column, by table."""
    columns = dict.fromkeys(label for one in certificates.values() for label in _columns(one))
    places = {column: at for at, column in enumerate(columns)}
    axes = {name: [places[label] for label in _columns(one)] for name, one in certificates.items()}
    estimates = {
        tuple(sorted(axes[name])): _cells(table.iloc[:, at], certificates[name], axes[name])
        for name, table in tables.items()
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


def _cells(column: pd.Series, certificate: Certificate, axes: Sequence[int]) -> np.ndarray:
    """View the cells of a table along its axes, in the order of all columns."""
    sizes = [grouping.groups for grouping in certificate.query.by]
    cells: np.ndarray = column.to_numpy(np.float64).reshape(sizes)
    return cells.transpose(np.argsort(axes))


def _as_released(certificate: Certificate) -> Certificate:
    """Return the certificate of a table as it was released, denoised or not."""
    check_before(certificate, "consistent", allowed={DenoiseStep})
    return certificate


def _columns(certificate: Certificate) -> tuple[str, ...]:
    """Return the columns of a table."""
    return tuple(grouping.column for grouping in certificate.query.by)


def _step(certificate: Certificate, at: int, into: str) -> DenoiseStep:
    """Say what was done with a column."""
    column = certificate.columns[at]
    error = column.std_error if column.form.is_whole else None
    before = [one for one in certificate.steps if isinstance(one, DenoiseStep)]
    return DenoiseStep(
        step="denoise",
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
        of=next((one.of for one in before), certificate.digest),
    )

"""A pandera schema of a released table, for programs that read it later."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pandas as pd

from dpframe.cells.verify import Shown, look
from dpframe.certificates.column_parts import ColumnPart
from dpframe.public import public_call

Holds: TypeAlias = Callable[[pd.DataFrame], bool]


@public_call
def schema(released: pd.DataFrame) -> Any:
    """Return a pandera schema that takes this release, and no table of another shape.

    A table fits if it has the released keys, each once and in any order, under the released names
    and dtypes; and the released columns, in order, with their dtypes, without missing values if
    none were suppressed, and with means within their bounds. It compares no values:
    `dpframe.verify` does. Use it without the release, to check a later table of the same query.

    `schema.to_yaml()` of pandera keeps a schema of one key with texts or numbers whole; for others
    pandera warns of the checks that it leaves out.

    Texts may come in any dtype for texts or as categories, and categories as what they are
    categories of, since files keep one or the other.

    Parameters
    ----------
    released
        A released frame, denoised or not.

    Returns
    -------
    pandera.pandas.DataFrameSchema
        It changes nothing: `strict`, `ordered`, and without coercion.

    Raises
    ------
    CertificateError
        If the frame is not what was released.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
    >>> fits = schema(released)
    >>> fits.validate(released).equals(released)
    True
    """
    shown = look(released)
    certificate = shown.certificate
    import pandera.pandas as pa  # slow to import, and not always needed

    described = _described(shown)
    return pa.DataFrameSchema(
        {
            label: _column(pa, released.iloc[:, at], described[at])
            for at, label in enumerate(released.columns)
        },
        index=_index(pa, released.index),
        checks=[
            pa.Check(holds, name=name, error=error)
            for name, (holds, error) in _beyond_levels(released.index).items()
        ],
        strict=True,
        ordered=True,
        coerce=False,
        unique_column_names=True,
        title=certificate.releases[0].query.words,
    )


def _described(shown: Shown) -> list[ColumnPart | None]:
    """Return what is said of each column; nothing of one that was computed, or rounded."""
    parts: list[ColumnPart | None] = [None] * shown.source.shape[1]
    if shown.layout.rows is not None and len(shown.certificate.releases) == 1:
        columns = dict(zip(shown.labels, shown.certificate.columns, strict=True))
        for cells in shown.layout.located:
            label = str(cells.label)
            parts[cells.column] = None if shown.units[label] else columns.get(label)
    return parts


def _column(pandera: Any, values: pd.Series, described: ColumnPart | None) -> Any:
    """Describe a column; one without a certificate of its own was computed from the others."""
    checks = []
    if described is not None and (described.form.is_mean or described.form.is_fine):
        possible = described.declared if described.form.is_mean else None
        checks.append(pandera.Check.in_range(*(possible or described.span)))
    return pandera.Column(values.dtype, checks, nullable=bool(values.isna().any()))


def _index(pandera: Any, index: pd.Index) -> Any:
    """Describe the levels of an index; `None` if pandera cannot tell them apart by name."""
    if index.nlevels == 1:
        return _level(pandera, index, index.name, alone=True)
    levels = [
        _level(pandera, index.get_level_values(level).unique(), name)
        for level, name in enumerate(index.names)
    ]
    # it takes a number for a position
    return pandera.MultiIndex(levels) if all(isinstance(n, str) for n in index.names) else None


def _level(pandera: Any, keys: pd.Index, name: object, *, alone: bool = False) -> Any:
    """Describe the keys of one level: texts and numbers by what pandera writes to files."""
    dtype, allowed = keys.dtype, list(keys)
    checks = [pandera.Check.isin(allowed)]
    if alone:  # all keys, each once
        checks.append(pandera.Check.unique_values_eq(allowed))
    several = isinstance(dtype, pd.CategoricalDtype) or _is_object(dtype)
    if several and not (_is_object(dtype) and all(isinstance(key, str) for key in keys)):
        error = f"keys are not {dtype!r}"
        kind = pandera.Check(lambda level: _fits(level.dtype, dtype), name="kind", error=error)
        checks.append(kind)
    return pandera.Index(None if several else dtype, checks, unique=alone, name=name)


def _fits(dtype: Any, released: Any) -> bool:
    """Whether a dtype is the released one, or one that a file makes of it."""
    if isinstance(released, pd.CategoricalDtype) and not isinstance(dtype, pd.CategoricalDtype):
        released = released.categories.dtype
    return bool(dtype == released) or (_is_object(dtype) and _is_object(released))


def _is_object(dtype: Any) -> bool:
    """Whether a dtype is for texts or other objects, which are kept in several ways."""
    return dtype.kind == "O" and not isinstance(
        dtype, pd.CategoricalDtype | pd.IntervalDtype | pd.PeriodDtype
    )


def _beyond_levels(index: pd.Index) -> dict[str, tuple[Holds, str]]:
    """Say what must hold of the index that its levels do not say, with what is wrong otherwise."""
    names, size, dtypes = list(index.names), len(index), _level_dtypes(index)

    def has_names(frame: pd.DataFrame) -> bool:
        return list(frame.index.names) == names

    def has_rows(frame: pd.DataFrame) -> bool:
        return len(frame) == size and frame.index.is_unique

    def has_keys(frame: pd.DataFrame) -> bool:
        return bool(frame.index.isin(index).all())

    def has_kinds(frame: pd.DataFrame) -> bool:
        return all(map(_fits, _level_dtypes(frame.index), dtypes))

    named: dict[str, tuple[Holds, str]]
    named = {"names": (has_names, f"the levels of the index are not {names!r}")}
    if index.nlevels == 1:
        return {} if isinstance(index.name, str) else named
    return {
        **named,
        "rows": (has_rows, f"not the {size} released rows, each once"),
        # each level has known keys, but not every combination need be one
        "keys": (has_keys, "keys that were not released together"),
        "kinds": (has_kinds, f"keys are not {dtypes!r}"),
    }


def _level_dtypes(index: pd.Index) -> list[Any]:
    return [index.get_level_values(level).dtype for level in range(index.nlevels)]

"""Views of one private column as numbers or texts, whatever its dtype and whatever it holds.

What a view says of a row depends on the value of that row alone: equal values give equal views in
a column of any dtype, beside any other rows. That is a privacy requirement: one added row can
change the dtype of a whole column, and must not change what the other rows add up to. No view
raises or warns because of a value.
"""

import math
from collections.abc import Callable, Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd

from dpframe.arguments import is_unicode
from dpframe.columns import pa
from dpframe.errors import STOPS

_Made = TypeVar("_Made")

_AS_NUMPY = {"double": "float64", "float": "float32", "halffloat": "float16"}


def public_type(dtype: Any) -> str | None:
    """Name the type of a column of pandas; `None` where one cell may have decided on it.

    NumPy's numbers and truths tell nothing: a missing cell makes integers floats and truths
    objects, floats are what a column without any value becomes, and objects hold anything. Texts,
    times and dtypes of extensions stay what they are beside missing cells, and take no others.

    Examples
    --------
    >>> public_type(pd.Int64Dtype()), public_type(pd.CategoricalDtype(pd.array(["A"], "string")))
    ('int64', 'string')
    >>> public_type(pd.Series([1, 2]).dtype) is None
    True
    """
    if isinstance(dtype, np.dtype):
        return str(dtype) if dtype.kind in "mM" else None
    if isinstance(dtype, pd.CategoricalDtype):
        return None if dtype.categories is None else public_type(dtype.categories.dtype)
    if isinstance(dtype, pd.SparseDtype):
        return public_type(dtype.subtype)
    if isinstance(dtype, pd.ArrowDtype):
        return arrow_type(dtype.pyarrow_dtype)
    if isinstance(dtype, pd.StringDtype | pd.DatetimeTZDtype | pd.PeriodDtype | pd.IntervalDtype):
        return str(dtype)
    # and truths, that can be missing
    numbers = getattr(dtype, "numpy_dtype", None)
    return None if numbers is None else str(numbers)


def arrow_type(kind: Any) -> str:
    """Name a type of Arrow as NumPy does; categories are what they hold."""
    if hasattr(kind, "index_type"):
        kind = kind.value_type
    return _AS_NUMPY.get(str(kind), str(kind))


def contain_errors(function: Callable[..., _Made], *arguments: Any, otherwise: _Made) -> _Made:
    """Call a function on a private value; where it raises, return what is to be used otherwise.

    Cells can raise anything, also what does not derive from `Exception`: the panic of a library
    written in Rust, or the `CancelledError` of asyncio. Only what stops a program passes.

    Examples
    --------
    >>> contain_errors(int, "7", otherwise=0), contain_errors(int, "seven", otherwise=0)
    (7, 0)
    """
    try:
        return function(*arguments)
    except STOPS:
        raise
    except BaseException:
        return otherwise


COMPLEX = (complex, np.complexfloating)
"""Classes of complex numbers."""

_REALS = (Decimal, Fraction, np.integer, np.floating, np.bool_)
# kinds that a kind holds
_FILLS = {"b": "b", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc"}
_MASKED = (pd.arrays.IntegerArray, pd.arrays.FloatingArray, pd.arrays.BooleanArray)
_TIMES = (pd.DatetimeTZDtype, pd.PeriodDtype, pd.IntervalDtype)


def numbers(column: pd.Series) -> np.ndarray:
    """View a column as numbers.

    Booleans are 0 and 1; integers, decimals and fractions are rounded to the nearest float, those
    beyond the range of floats to an infinity. A complex number without an imaginary part is its
    real part. A value that is not a real number (missing, text, date, list...) is NaN.

    Parameters
    ----------
    column
        Any series.

    Returns
    -------
    numpy.ndarray
        float64, one per row. It may share memory with the column: not to be written to.

    Examples
    --------
    >>> numbers(pd.Series([True, 2, "3", None], dtype=object))
    array([ 1.,  2., nan, nan])
    """
    return raw_numbers(column).astype(np.float64, copy=False)


def raw_numbers(column: pd.Series) -> np.ndarray:
    """View a column as numbers, leaving NumPy integers and booleans as they are.

    Parameters
    ----------
    column
        Any series.

    Returns
    -------
    numpy.ndarray
        Boolean, integer or float64, one per row: the values of `numbers`, not yet rounded.
        It may share memory with the column: not to be written to.
    """
    parts = split_categories(column)
    if parts is not None:
        return spread(numbers(parts.values), parts.codes, np.nan)
    column = dense(column)
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biufc":
        with np.errstate(all="ignore"):
            return _float64(column.to_numpy())
    if isinstance(column.array, _MASKED):
        return np.asarray(column.array.to_numpy(dtype=np.float64, na_value=np.nan))
    if isinstance(dtype, pd.ArrowDtype) and dtype.kind in "biuf":
        return np.asarray(column.array.__arrow_array__().cast("double", safe=False).to_numpy())
    if _needs_objects(column) and not isinstance(dtype, pd.StringDtype):
        with np.errstate(all="ignore"):
            return np.fromiter(map(_number, objects(column)), np.float64, len(column))
    return np.full(len(column), np.nan)


def texts(column: pd.Series) -> np.ndarray:
    """View a column as texts.

    Parameters
    ----------
    column
        Any series.

    Returns
    -------
    numpy.ndarray
        Objects, one per row: a `str` where the value is one, else `None`.

    Examples
    --------
    >>> texts(pd.Series(["a", 2, None], dtype=object))
    array(['a', None, None], dtype=object)
    """
    parts = split_categories(column)
    if parts is not None:
        return spread(texts(parts.values), parts.codes, None)
    column = dense(column)
    cells = np.full(len(column), None, dtype=object)
    if _needs_objects(column):
        cells[:] = [cell if type(cell) is str else _text(cell) for cell in objects(column)]
    return cells


def missing(column: pd.Series) -> np.ndarray:
    """Tell where a column holds no value: None, NaN, NaT or NA.

    Parameters
    ----------
    column
        Any series.

    Returns
    -------
    numpy.ndarray
        Boolean, one per row.
    """
    parts = split_categories(column)
    if parts is not None:
        return spread(missing(parts.values), parts.codes, absent=True)
    column = dense(column)
    dtype = column.dtype
    # numbers that mark their missing values beside them
    if dtype.kind == "f" and isinstance(column.array, (*_MASKED, pd.arrays.ArrowExtensionArray)):
        return np.asarray(np.isnan(numbers(column)))
    # for pandas, infinities may be missing
    if isinstance(dtype, np.dtype) and dtype.kind in "fc":
        return np.asarray(np.isnan(column.to_numpy()))
    if holds_objects(column):
        return np.fromiter(map(is_absent, objects(column)), bool, len(column))
    return np.asarray(column.array.isna(), dtype=bool)


class Coded(NamedTuple):
    """A column as positions among fewer values.

    Parameters
    ----------
    values
        The values, some of which may be equal; no more than the column has rows.
    codes
        int64 positions of the rows' values, -1 where there is none.
    """

    values: pd.Series
    codes: np.ndarray


def split_categories(column: pd.Series) -> Coded | None:
    """Split a categorical or dictionary-encoded column into values and codes.

    Parameters
    ----------
    column
        Any series.

    Returns
    -------
    Coded or None
        `None` for a column of any other dtype.
    """
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = pd.Series(dtype.categories.array, dtype=dtype.categories.dtype)
        return _compact(categories, np.asarray(column.array.codes, dtype=np.int64))
    return split_dictionary(column) if is_dictionary(dtype) else None


def is_dictionary(dtype: object) -> bool:
    """Whether a column is made of Arrow dictionaries."""
    return isinstance(dtype, pd.ArrowDtype) and bool(pa.types.is_dictionary(dtype.pyarrow_dtype))


def split_dictionary(column: pd.Series) -> Coded:
    """Split a dictionary-encoded column.

    The dictionaries of its chunks are put in a row: a common one may need more codes than the
    dtype has.

    Parameters
    ----------
    column
        A series of Arrow dictionaries.
    """
    dtype = cast(pd.ArrowDtype, column.dtype)
    chunks = column.array.__arrow_array__().chunks
    codes = np.empty(len(column), np.int64)
    start = before = 0
    for chunk in chunks:
        indices = chunk.indices
        if indices.null_count or pa.types.is_unsigned_integer(indices.type):
            indices = indices.cast("int64").fill_null(-1)
        part = codes[start : start + len(chunk)]
        np.maximum(indices.to_numpy(zero_copy_only=False), -1, out=part)
        if before:
            part[part >= 0] += before
        start += len(chunk)
        before += len(chunk.dictionary)
    kind = dtype.pyarrow_dtype.value_type
    together = pa.chunked_array([chunk.dictionary for chunk in chunks], kind)
    decoded = pd.Series(pd.arrays.ArrowExtensionArray(together))
    return _compact(decoded, codes)


def _compact(values: pd.Series, codes: np.ndarray) -> Coded:
    """Keep only values in use if they outnumber the rows: a slice must not cost a whole frame."""
    if len(values) <= len(codes):
        return Coded(values, codes)
    used = np.unique(codes[codes >= 0])
    return Coded(values.take(used), np.where(codes < 0, -1, np.searchsorted(used, codes)))


def spread(view: np.ndarray, codes: np.ndarray, absent: object) -> np.ndarray:
    """Give every row the view of its distinct value, and `absent` where its code is -1."""
    extended = np.append(view, np.array([absent], dtype=view.dtype))
    return np.asarray(extended[codes])


def places_of(frame: pd.DataFrame) -> dict[Hashable, int]:
    """Return the position of every column; of labels that several bear, the last one."""
    return {label: place for place, label in enumerate(frame.columns)}


def dense(column: pd.Series) -> pd.Series:
    """Fill in the default values of a sparse column; leave any other as it is.

    The dtype that comes out depends on the one that went in, not on whether there are gaps.
    """
    if not isinstance(column.dtype, pd.SparseDtype):
        return column
    kept, fill = column.dtype.subtype, cast(Any, column.dtype.fill_value)
    if kept.kind in "mM":
        fill = np.array("NaT" if pd.isna(fill) else fill, kept)
    elif np.asarray(fill).dtype.kind not in _FILLS.get(kept.kind, ""):
        kept = np.dtype(object)
    filled = np.full(len(column), fill, kept)
    filled[column.array.sp_index.to_int_index().indices] = column.array.sp_values
    return pd.Series(filled, dtype=kept)


def holds_objects(column: pd.Series) -> bool:
    """Whether a column is of dtype object."""
    return isinstance(column.dtype, np.dtype) and column.dtype.kind == "O"


def objects(column: pd.Series) -> np.ndarray:
    """View a column as Python objects, None where a value cannot be read."""
    values = contain_errors(lambda: column.array.to_numpy(dtype=object), otherwise=None)
    if values is not None and values.shape == (len(column),):
        return np.asarray(values)
    read = (
        contain_errors(column.array.__getitem__, row, otherwise=None) for row in range(len(column))
    )
    return np.fromiter(read, object, len(column))


def _needs_objects(column: pd.Series) -> bool:
    """Whether values must be looked at one by one: objects, texts, and dtypes not known here."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        return holds_objects(column)
    known_to_arrow = isinstance(dtype, pd.ArrowDtype) and dtype.kind in "biufmM"
    return not (known_to_arrow or isinstance(dtype, _TIMES) or isinstance(column.array, _MASKED))


def _float64(values: np.ndarray) -> np.ndarray:
    """Widen or narrow floats: of float32 and float64, only one computes like a Python float."""
    if values.dtype.kind == "c":
        values = np.where(values.imag == 0, values.real, np.nan)
    return values.astype(np.float64, copy=False) if values.dtype.kind == "f" else values


# Methods of built-in types are called on the type: a subclass may override them, to raise or lie.


def _number(value: object) -> float:
    """Return a real number as float, anything else as NaN."""
    kind = type(value)
    if kind is str or value is None:
        return math.nan
    try:
        if issubclass(kind, float):
            return float.__float__(value)  # type: ignore[arg-type]
        if issubclass(kind, int):
            return nearest_float(int.__index__(value))  # type: ignore[arg-type]
        if issubclass(kind, _REALS) and not issubclass(kind, np.timedelta64):
            return nearest_float(value)  # type: ignore[arg-type]
        return nearest_float(real_part(value)) if issubclass(kind, COMPLEX) else math.nan
    except STOPS:
        raise
    except BaseException:  # as `contain_errors` does, without one more call per value
        return math.nan


def nearest_float(value: int | Decimal | Fraction) -> float:
    """Round to the nearest float; beyond the range of floats lies infinity."""
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf


def _text(value: object) -> str | None:
    """Return a text as plain str, anything else as None."""
    return str.__str__(value) if issubclass(type(value), str) else None


def is_plain(text: str) -> bool:
    """Whether UTF-8 can hold a text, and no NUL cuts it off: pandas may mix up others."""
    return "\0" not in text and (text.isascii() or is_unicode(text))


def is_absent(value: object) -> bool:
    """Whether a value is None, NaN, NaT or NA."""
    if type(value) is str:
        return False
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return contain_errors(_is_nan, value, otherwise=False)


def _is_nan(value: object) -> bool:
    """Whether a value is a number or a time that is none."""
    kind = type(value)
    if issubclass(kind, (float, np.floating, Decimal)):
        return math.isnan(_number(value))
    if issubclass(kind, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))  # type: ignore[call-overload]
    return issubclass(kind, COMPLEX) and any(map(np.isnan, complex_parts(value)))


def complex_parts(value: Any) -> tuple[Any, Any]:
    """Split a complex number into its real and its imaginary part."""
    plain = complex.__complex__(value) if issubclass(type(value), complex) else value
    return plain.real, plain.imag


def real_part(value: Any) -> Any:
    """Return a complex number as its real part, NaN if it has an imaginary one; others as is."""
    if not issubclass(type(value), COMPLEX):
        return value
    real, imaginary = complex_parts(value)
    return real if imaginary == 0 else math.nan

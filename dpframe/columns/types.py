"""The type of a column, where it is public: no cell that is missing or odd can change it."""

from typing import Any

import pandas as pd
from pandas.api.extensions import ExtensionDtype

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
    if isinstance(dtype, pd.CategoricalDtype):
        return None if dtype.categories is None else public_type(dtype.categories.dtype)
    if isinstance(dtype, pd.SparseDtype):
        return public_type(dtype.subtype)
    if isinstance(dtype, pd.ArrowDtype):
        return arrow_type(dtype.pyarrow_dtype)
    if isinstance(dtype, pd.StringDtype | pd.DatetimeTZDtype):
        return str(dtype)
    if isinstance(dtype, ExtensionDtype):  # numbers and truths that can be missing, or others
        numbers = getattr(dtype, "numpy_dtype", None)
        return None if numbers is None else str(numbers)
    return str(dtype) if dtype.kind == "M" else None


def arrow_type(kind: Any) -> str:
    """Name a type of Arrow as NumPy does; categories are what they hold."""
    name = str(getattr(kind, "value_type", kind) if hasattr(kind, "index_type") else kind)
    return _AS_NUMPY.get(name, name)

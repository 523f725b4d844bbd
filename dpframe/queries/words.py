"""Queries in words."""

from dpframe.queries.kinds import Aggregate, Count, Histogram, Query, Sum

__all__ = ["in_words"]


def in_words(query: Query) -> str:
    """Say a query in words.

    Examples
    --------
    >>> import dpframe as dpf
    >>> in_words(dpf.sum(["fare", "tip"], by="zone", where="fare > 0"))
    'sum of fare, tip by zone where fare > 0'
    """
    words = _what(query)
    if query.by:
        words += " by " + ", ".join(str(label) for label in query.by)
    words += _options_in_words(query)
    if query.where is not None:
        words += f" where {query.where.text}"
    return words


def _options_in_words(query: Query) -> str:
    """Say what of a query's options changes what is measured."""
    if not isinstance(query, Sum):
        return ""
    words = "" if query.max_true is None else f", at most {query.max_true} true in a row"
    if query.n is not None:
        estimated = isinstance(query.n, tuple)
        words += (
            ", given an estimate of the rows" if estimated else ", given the rows of each group"
        )
    return words


def _what(query: Query) -> str:
    if isinstance(query, Count):
        return "count"
    if isinstance(query, Histogram):
        return f"histogram of {query.column}"
    if isinstance(query, Aggregate):
        return ", ".join(f"{name}: {in_words(part)}" for name, part in query.queries.items())
    kind = "sum" if isinstance(query, Sum) else "mean"
    return f"{kind} of " + ", ".join(str(label) for label in query.columns)

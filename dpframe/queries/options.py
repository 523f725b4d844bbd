"""Options for several outputs at once, checked."""

import math
from typing import get_args

from dpframe.errors import QueryError, shown
from dpframe.privacy.exact import WRITTEN, as_number
from dpframe.queries.outputs import KnownRows, Objective, QueryOptions

_MOST_WEIGHT = 1e100  # its products with squared errors stay finite


def read_options(
    max_true: object, n: KnownRows, n_weight: object, objective: object
) -> QueryOptions:
    """Check options of a sum or an aggregate; the plan checks n, which it alone can match."""
    options = QueryOptions(_max_true(max_true), n, _n_weight(n_weight), _objective(objective))
    _check_options(options)
    return options


def _check_options(options: QueryOptions) -> None:
    """Refuse options that have no meaning together."""
    others = [name for name in options.given if name != "max_true"]
    if options.max_true is not None and others:
        raise QueryError(f"max_true= has its own best noise: it cannot go with {others[0]}=.")
    if options.n is not None and options.n_weight:
        raise QueryError(
            "n= says that the number of rows is public: n_weight= has no meaning then."
        )


def _max_true(value: object) -> int | None:
    if value is None:
        return None
    try:
        number = as_number(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(number, int) and 1 <= number < WRITTEN:
        return number
    raise QueryError(f"max_true must be a whole number >= 1, got max_true={shown(value)}.")


def _n_weight(value: object) -> float:
    try:
        number = float(as_number(value))
    except (TypeError, OverflowError):
        number = math.nan
    if 0 <= number <= _MOST_WEIGHT:
        return number
    raise QueryError(
        f"n_weight must be a number >= 0, and at most {_MOST_WEIGHT:g}, got "
        f"n_weight={shown(value)}. "
        "1 makes the number of rows as important as a column."
    )


def _objective(value: object) -> Objective:
    for name in get_args(Objective):
        if isinstance(value, str) and value == name:
            return name  # type: ignore[no-any-return]
    raise QueryError(f'objective must be "total" or "worst", got objective={shown(value)}.')

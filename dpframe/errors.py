"""The exception tree.

Every error names a public parameter, its rule, the value given and the way out. No message ever
contains a value taken from a private frame: `quote` alone shows what was given.
"""

import datetime
import json
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np

_EXACT = (bool, int, float, complex, type(None), Fraction, Decimal, range)
_MOMENTS = (datetime.date, datetime.time, datetime.timedelta)
_PLAIN = (np.bool_, np.number, np.datetime64, np.timedelta64, *_MOMENTS)
_CONTAINERS: dict[type, str] = {
    list: "[{}]",
    tuple: "({})",
    dict: "{{{}}}",
    set: "{{{}}}",
    frozenset: "frozenset({{{}}})",
}
_OF_PANDAS = {"Interval", "NAType", "Period"}  # scalars, of a library that errors do not import
_MOST_LETTERS, _MOST_ITEMS, _DEEPEST = 200, 10, 3  # of a value in an error
_OF_DATA = ("__array__", "__arrow_c_array__", "__arrow_c_stream__", "__dataframe__")


class PrivacyTestError(BaseException):
    """A pipeline broke a rule of `dpframe.testing`, or used a testing block as it must not be.

    It is no `Exception`, so that a pipeline that catches errors does not hide it.

    Parameters
    ----------
    message
        The unit, the rule, the draw and what to change.
    rule
        The rule that was broken: "invariance", "charge", "additivity", "repetition", "empty frame",
        "failure", "no effect", "outside" or "engine"; empty where a block was used wrongly.
    unit
        The privacy unit that it was broken for; `None`: any.
    draw
        Number of the draw, from 0 on; `None`: none.
    """

    def __init__(
        self, message: str = "", *, rule: str = "", unit: object = None, draw: int | None = None
    ) -> None:
        super().__init__(message)
        self.rule = rule
        self.unit = unit
        self.draw = draw


STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit, PrivacyTestError)
"""What stops a program and says nothing of a value; never contained."""


class DPFrameError(Exception):
    """Base of all errors raised by dpframe.

    Parameters
    ----------
    message
        The whole text: the parameter, its rule, what was given, and the way out.
    parameter
        The argument that it is about, as the call names it: "epsilon", "keys"; `None`: no single
        one.
    label
        The column, output or level that it is about.
    value
        What was given there, if that is public; arrays and tables are not kept.

    Attributes
    ----------
    query
        Of several queries, the name of the one that it is about.
    places
        Where it passed through the package, as text: tracebacks of public calls leave that out.
    """

    def __init__(
        self,
        message: str = "",
        *,
        parameter: str | None = None,
        label: Hashable = None,
        value: object = None,
    ) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.label = label
        self.value = None if is_data(value) else value
        self.query: Hashable = None
        self.places: tuple[str, ...] = ()

    @classmethod
    def about(
        cls, parameter: str, rule: str, value: object, way_out: str = "", *, label: Hashable = None
    ) -> Self:
        """Make the usual error about an argument.

        Parameters
        ----------
        parameter, value, label
            As for the error.
        rule
            What holds of the parameter: "must be > 0".
        way_out
            What to do, in sentences.

        Examples
        --------
        >>> print(CalibrationError.about("mu", "must be > 0", 0))
        mu must be > 0, got mu=0.
        >>> print(DeclarationError.about("bounds", "must be two numbers", 3, label="fare"))
        bounds of 'fare' must be two numbers, got bounds=3.
        """
        of = "" if label is None else f" of {quote(label)}"
        text = f"{parameter}{of} {rule}, got {parameter}={quote(value)}. {way_out}".rstrip()
        return cls(text, parameter=parameter, label=label, value=value)


@contextmanager
def of_query(name: Hashable) -> Iterator[None]:
    """Let errors that are raised inside say which of several queries they are about."""
    try:
        yield
    except DPFrameError as error:
        error.query = name
        raise


class DPFrameWarning(UserWarning):
    """A release protects people less, or a step does less, than it seems to, by public facts."""


class CallError(DPFrameError, TypeError):
    """A call has an argument that the function or method does not have, or lacks one it needs.

    It names the keyword that was meant. A frame given to a function that describes a query, such as
    `dpf.count`, is a `CallError`, too.
    """


class NoSuchNameError(DPFrameError, AttributeError):
    """An accessor has nothing of this name.

    It names the right call. `.dp` of a `Series` is one, too.
    """

    def __init__(self, message: str = "", **fields: Any) -> None:
        super().__init__(message, **fields)
        # it holds no frame, and Python adds no advice of its own
        AttributeError.__init__(self, message, name=None, obj=None)


class DeclarationError(DPFrameError, ValueError):
    """A declared fact is missing, contradictory or not usable.

    Also: the frame was derived from a declared one, or was released.
    """


class QueryError(DPFrameError, ValueError):
    """A query, a condition or a set of keys or bins is not usable.

    Also: a level is not in (0, 1), or two columns have the label named.
    """


class UnknownColumnError(QueryError, KeyError):
    """A column named in a query or a declaration is not in the frame."""

    def __str__(self) -> str:
        """Show the message as it is: `KeyError` would show its `repr`."""
        return str(self.args[0]) if self.args else ""


class CalibrationError(DPFrameError, ValueError):
    """A privacy parameter is out of range, or no noise of this mechanism can honor it."""


class BudgetExceededError(DPFrameError, ValueError):
    """A spend does not fit in what is left of the budget; nothing was drawn or charged."""


class ReleaseError(DPFrameError, RuntimeError):
    """A release failed after its amount was charged; nothing was released.

    For instance memory ran out, a file changed or a worker was lost. The amount stays charged. The
    cause is not shown, since it may quote private values.
    """


class AlreadyReleasedError(DPFrameError, ValueError):
    """The ledger has a release of this name, or identifier, already; nothing was charged."""


class TemporaryError(DPFrameError):
    """A resource cannot be used now; nothing was drawn or charged. Try again."""


class LedgerError(DPFrameError, ValueError):
    """A ledger's file cannot be used, or is not as it was left; nothing was drawn.

    It is missing, foreign, altered, busy or not writable, has a second name, or is there already.
    """


class LedgerAlteredError(LedgerError):
    """A ledger's file is damaged, or was changed by other means than a charge."""


class LedgerBusyError(LedgerError, TemporaryError):
    """Another process kept a ledger locked for a minute, or its server does not answer."""


class LedgerDiskError(LedgerError, TemporaryError):
    """The disk of a ledger has no room, or fails, or nobody can tell what is on it."""


class PlanCheckError(DPFrameError, AssertionError):
    """A plan would have lost more than it charges: a fault of dpframe, to be reported.

    Nothing was charged or released.
    """

    @classmethod
    def of(cls, reason: str) -> Self:
        """Say what is wrong with a plan, and that it is a fault of this package."""
        wrong = f"dpframe refused its own plan: {reason}."
        remedy = "Nothing was charged or released. This is a fault of dpframe: please report it."
        return cls(f"{wrong} {remedy}")


class PlanFileError(DPFrameError, ValueError):
    """A plan file, or a file it names, is not usable; nothing was drawn or charged.

    It says line, key and the way out.
    """


class CertificateError(DPFrameError, ValueError):
    """A frame carries no certificate, or its values no longer match the one it carries."""


class UnreadableCertificateError(CertificateError):
    """A certificate is malformed, or of a format that this version does not read."""


def a_type(value: object) -> str:
    """Name the type of an argument in an error, with its article."""
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in {*"aeio"} else f"a {name}"


def is_data(value: object) -> bool:
    """Whether something may hold a column of a frame, of whatever library: all arrays and tables.

    Examples
    --------
    >>> [is_data(value) for value in (np.ones(2), np.float64(1), "a", [1], None)]
    [True, False, False, False, False]
    """
    if isinstance(value, np.generic):
        return isinstance(value, np.void)  # a row of several cells
    if isinstance(value, tuple):
        return any(map(is_data, value))
    return is_column(type(value))  # type: ignore[arg-type]  # mypy: types have a hash


@lru_cache(maxsize=256)
def is_column(kind: type) -> bool:
    """Whether a type is one of arrays or tables, by the methods that libraries agreed on."""
    return any(hasattr(kind, name) for name in _OF_DATA)


def quote(value: object) -> str:
    """Show an argument in an error: short and plain as it is, all else by its type alone.

    Examples
    --------
    >>> quote((0.5, "a")), quote([1, np.ones(3)]), quote([0] * 1000)
    ("(0.5, 'a')", '[1, a ndarray]', 'a list of 1,000')
    """
    return _quote_nested(value, _DEEPEST)


def _quote_nested(value: object, depth: int) -> str:
    kind = type(value)
    if kind in _CONTAINERS:
        return _shown_items(value, depth)
    if isinstance(value, str | bytes | type):  # not as its own class would show it
        (base,) = (
            kind_of_text for kind_of_text in (str, bytes, type) if isinstance(value, kind_of_text)
        )
        text = base.__repr__(value)
    elif kind in _EXACT or isinstance(value, _PLAIN) or _is_of_pandas(kind):
        text = _representation(value)
    else:
        return a_type(value)
    return text if len(text) <= _MOST_LETTERS else f"{a_type(value)} of many characters"


def _is_of_pandas(kind: type) -> bool:
    return kind.__name__ in _OF_PANDAS and kind.__module__.startswith("pandas")


def _representation(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # a number of more digits than Python writes
        return a_type(value)


def _shown_items(value: Any, depth: int) -> str:
    """Show a short container; of a long or deep one, how long it is."""
    if len(value) <= _MOST_ITEMS and depth:
        items = [_quote_nested(item, depth - 1) for item in value]
        if isinstance(value, dict):
            values = (_quote_nested(item, depth - 1) for item in value.values())
            items = [f"{key}: {item}" for key, item in zip(items, values, strict=True)]
        text = ", ".join(items) + "," * (isinstance(value, tuple) and len(value) == 1)
        if len(text) <= _MOST_LETTERS:
            return _CONTAINERS[type(value)].format(text) if value else repr(value)
    return f"{a_type(value)} of {len(value):,}"


def pip_install(extra: str) -> str:
    """Say how to install an extra: by name, or in the folder that dpframe was installed from."""
    from importlib.metadata import PackageNotFoundError, distribution  # slow, and rarely needed

    try:
        origin = distribution("dpframe").read_text("direct_url.json")
    except PackageNotFoundError:  # a source tree that is not installed
        origin = '{"dir_info": {}}'
    from_folder = origin is not None and "dir_info" in json.loads(origin)
    return f"pip install '{'.' if from_folder else 'dpframe'}[{extra}]'"

"""From untrusted JSON to typed records and back: the one place that reads what others wrote.

A record is a frozen dataclass that derives from `Part`. Its docstring describes its fields, for
readers of the code and in the JSON Schema.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, TypeVar

from dpframe.certificates.excess import ExcessError, check_excess, is_large
from dpframe.certificates.pieces import FieldPath, check_pieces
from dpframe.errors import UnreadableCertificateError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

P = TypeVar("P", bound="Part")
CoreSchema = dict[str, Any]


class Part:
    """A record, or a part of one, that is written as a JSON object."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True, "allow_inf_nan": False}


class Limits:
    """What a value must satisfy in addition to its type; stands after the type in `Annotated`.

    Parameters
    ----------
    limits
        Any of `ge`, `gt`, `lt`, `min_length`, `max_length` and `pattern`.
    """

    def __init__(self, **limits: float | str) -> None:
        self.limits = limits

    def __get_pydantic_core_schema__(
        self, source: object, handler: Callable[[object], CoreSchema]
    ) -> CoreSchema:
        return {**handler(source), **self.limits}


class OneOf:
    """The only texts allowed; stands after `str` in `Annotated`."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        return {"type": "literal", "expected": self._names}


NotNegative: TypeAlias = Annotated[float, Limits(ge=0)]
Text: TypeAlias = Annotated[str, Limits(min_length=1)]
Digest: TypeAlias = Annotated[str, Limits(pattern="^sha256:[0-9a-f]{64}$")]
Identifier: TypeAlias = Annotated[str, Limits(pattern="^[0-9a-f]{32}$")]


_LONGEST_PLACE = 100  # names of fields may come from a file
_PLAIN = frozenset({str, int, float, bool})


def require(holds: bool, rule: str) -> None:
    """Refuse fields that do not go together."""
    if not holds:
        raise ValueError(rule)


def plain(value: Any) -> Any:
    """Write a record as plain JSON."""
    if value is None or type(value) in _PLAIN:  # most are
        return value
    if isinstance(value, Part):
        return {name: plain(field) for name, field in vars(value).items()}
    if isinstance(value, Mapping):
        return {key: plain(field) for key, field in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def read(kind: type[P], found: object, what: str) -> P:
    """Read a record that anybody may have written.

    Parameters
    ----------
    kind
        The type of the record.
    found
        What should be its plain JSON.
    what
        What it is called in an error.

    Raises
    ------
    UnreadableCertificateError
        If it is not such a record.
    """
    try:
        if is_large(found):
            check_excess(found)
            check_pieces(kind, found, _validated)
        record: P = _validated(kind, found, ())
    except (TypeError, ValueError, RecursionError) as error:
        raise UnreadableCertificateError(
            f"{what} cannot be read: {_fault(error)}. Go back to what was released."
        ) from None
    return record


def _validated(hint: Any, found: Any, place: FieldPath, start: int = 0) -> Any:
    """Read a value; where that is wrong, name the first field, and its rule."""
    from pydantic import ValidationError  # as slow as what is needed anyway

    text = json.dumps(found, allow_nan=False)
    try:
        return _adapter_of(hint).validate_json(text)
    except ValidationError as error:
        first = _first(error.errors(include_url=False, include_context=False, include_input=False))
        inside = [one + start if isinstance(one, int) else one for one in first["loc"][:1]]
        raise _FaultError([*place, *inside, *first["loc"][1:]], first["msg"]) from None


class _FaultError(ValueError):
    """A field is wrong."""

    def __init__(self, place: Iterable[str | int], rule: str) -> None:
        where = ".".join(map(str, place))[:_LONGEST_PLACE]
        super().__init__(f"{where}: {rule}" if where else rule[:1].lower() + rule[1:])


def _fault(error: Exception) -> str:
    """Say what is wrong."""
    if isinstance(error, _FaultError | ExcessError):
        return str(error)
    return (
        "it is nested too deeply" if isinstance(error, RecursionError) else "it is not plain JSON"
    )


def _first(errors: Sequence[Any]) -> Any:
    """Return the first error, but not of a kind of step that it is not."""
    others = [
        found["loc"][:-1]
        for found in errors
        if found["type"] == "literal_error" and found["loc"][-1:] == ("step",)
    ]
    own = [found for found in errors if not any(found["loc"][: len(at)] == at for at in others)]
    return (own or errors)[0]


_adapters: dict[Any, "TypeAdapter[Any]"] = {}


def _adapter_of(hint: Any) -> "TypeAdapter[Any]":
    """Return what reads a type of record, or of a field, made when it is first needed."""
    if hint not in _adapters:
        from pydantic import TypeAdapter  # slow to import, and rarely needed

        _adapters[hint] = TypeAdapter(hint)
    return _adapters[hint]


def schema_of_record(kind: type[Part]) -> dict[str, Any]:
    """Return the JSON Schema of a type of record, with the descriptions of its docstrings."""
    schema = _adapter_of(kind).json_schema()
    parts = {part.__name__: part for part in Part.__subclasses__()}
    for name, described in {**schema.get("$defs", {}), kind.__name__: schema}.items():
        about, fields = _described(parts[name])
        described.pop("title", None)
        described["description"] = about
        for field, rules in described["properties"].items():
            rules.pop("title", None)
            rules["description"] = fields[field]
            for form in (rules, *rules.get("anyOf", ())):
                if "patternProperties" in form:
                    form["additionalProperties"] = False
    return schema


def _described(kind: type[Part]) -> tuple[str, dict[str, str]]:
    """Return what a docstring says about a record, and about each of its fields."""
    about, _, parameters = cleandoc(kind.__doc__ or "").partition("\nParameters\n----------\n")
    found = re.split(r"^(\S+)\n(?= {4})", parameters.partition("\n\n")[0], flags=re.MULTILINE)[1:]
    fields = dict(zip(found[::2], map(_joined, found[1::2]), strict=True))
    return _joined(about), fields


def _joined(text: str) -> str:
    return " ".join(text.split())

"""From untrusted JSON to typed records and back: the one place that reads what others wrote.

A record derives from `Record`. Its docstring describes its fields, for readers of the code and in
the JSON Schema.
"""

import base64
import dataclasses
import json
import re
import string
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from inspect import cleandoc
from itertools import islice
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np

from dpframe.context import MAKING
from dpframe.errors import UnreadableCertificateError
from dpframe.frozen import frozen

FieldPath: TypeAlias = tuple[str | int, ...]
Check: TypeAlias = Callable[[Any, Any, FieldPath, int], object]
"""Takes the type of a piece, the piece, its place, and the number of its first item."""

_Item = TypeVar("_Item")

_AT_ONCE = 20  # items, each of which is small or was checked


def check_pieces(hint: Any, value: Any, check: Check, place: FieldPath = ()) -> None:
    """Check what is large within a value: long lists and objects, their items first.

    Parameters
    ----------
    hint
        The type of the value.
    value
        The value, as plain JSON.
    check
        Raises an error where a piece is not of a type.
    place
        Where the value is.

    Raises
    ------
    ExcessError
        If something large is of no type that is large.
    """
    if not is_large(value):
        return
    forms = _forms(hint)
    if not isinstance(value, dict):
        (inner, *_) = _items_of(forms, tuple)
        for start, some in enumerate(_batches(value)):
            for at, item in enumerate(some, start * _AT_ONCE):
                check_pieces(inner, item, check, (*place, at))
            check(hint, some, place, start * _AT_ONCE)
        return
    record = next((form for form in forms if _hints(form).keys() == value.keys()), None)
    if record is not None:
        for name, inner in _hints(record).items():
            check_pieces(inner, value[name], check, (*place, name))
        return
    _check_names(forms, value, place)
    (_, inner) = _items_of(forms, Mapping)
    for some in _batches(value.items()):
        for name, item in some:
            check_pieces(inner, item, check, (*place, name))
        check(hint, dict(some), place, 0)


def _forms(hint: Any) -> list[Any]:
    """Return the types that a value may have, without what else is said of them."""
    if typing.get_origin(hint) is Annotated:
        return _forms(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, UnionType):
        return [form for inner in typing.get_args(hint) for form in _forms(inner)]
    return [hint]


@lru_cache
def _hints(form: Any) -> Mapping[str, Any]:
    """Return the types of the fields of a record."""
    if not dataclasses.is_dataclass(form):
        return {}
    return {field.name: field.type for field in dataclasses.fields(form)}


def _check_names(forms: Sequence[Any], value: Mapping[Any, Any], place: FieldPath) -> None:
    """Say which field is missing, or is none, where there is one type of record."""
    records = [hints for form in forms if (hints := _hints(form))]
    if len(records) == 1:
        (fields,) = records
        absent = [name for name in fields if name not in value]
        wrong, *_ = absent or [name for name in value if name not in fields]
        where = ".".join(map(str, (*place, wrong)))
        raise ExcessError(f"{where:.100}: {'Field required' if absent else 'no field'}")


def _items_of(forms: Sequence[Any], kind: type[Any]) -> tuple[Any, ...]:
    """Return the types of items of a list, or of an object."""
    for form in forms:
        if typing.get_origin(form) is kind:
            return typing.get_args(form)
    raise ExcessError("something in it holds more than it may")


def _batches(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    iterator = iter(items)
    while some := list(islice(iterator, _AT_ONCE)):
        yield some


_MOST_VALUES = 2_000_000  # of a record: about 1 GB of objects
_DEEPEST = 50  # certificates have ten levels
_LONGEST = 1 << 22  # characters of a text, but for numbers of rows
_NUMBERS = ({"float64"}, {"zlib"})  # fields of `Packed` and `Zipped`
_SCALARS = frozenset({str, int, float, bool, type(None)})
_MANY = f"it holds more than {_MOST_VALUES:,} values"
_BASE_64 = (string.ascii_letters + string.digits + "+/").encode()
_MOST_SIGNS = 2  # "=" at the end of base64
_LARGE = 400  # values; a certificate of one column has a third of it


class ExcessError(ValueError):
    """JSON holds more than it may."""


def check_excess(json_value: object) -> None:
    """Refuse plain JSON with more in it than certificates hold, however it is made.

    Raises
    ------
    ExcessError
        If it has too many values or levels, or too long a text.
    """
    count, level = 0, [json_value]
    for _ in range(_DEEPEST):
        count += len(level)
        if count > _MOST_VALUES:
            raise ExcessError(_MANY)
        if _is_long(level):
            raise ExcessError(f"a text in it has more than {_LONGEST:,} characters")
        # one too many is enough to refuse it
        level = list(islice(_below(level), _MOST_VALUES + 1))
    if level:
        raise ExcessError("it is nested too deeply")


def check_json(text: str) -> None:
    """Refuse JSON that would take much memory, before it is parsed.

    Raises
    ------
    ExcessError
        If it has too many values.
    """
    short = len(text) <= 2 * _MOST_VALUES  # a value and what parts it from the next are two
    if not short and sum(map(text.count, ",[{")) > _MOST_VALUES:  # in texts, too
        raise ExcessError(_MANY)


def parse_json(text: str) -> Any:
    """Parse JSON that anybody may have written.

    Raises
    ------
    ValueError
        If it is no JSON, has too many values or levels, or says something twice: readers of JSON
        differ in which they take.
    """
    check_json(text)
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON in which each name comes once") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name comes twice")
    return members


def is_large(json_value: object) -> bool:
    """Whether plain JSON holds so much that its faults would be very many."""
    count, level = 0, [json_value]
    while level:
        count += len(level)
        if count > _LARGE or _is_long(level):
            return True
        level = list(islice(_below(level), _LARGE + 1))
    return False


def _is_long(level: Iterable[object]) -> bool:
    return any(type(value) is str and len(value) > _LONGEST for value in level)


def _below(level: Iterable[object]) -> Iterator[object]:
    """Go through what values hold, but for numbers of rows: these are read at once."""
    for value in level:
        if type(value) in _SCALARS:
            continue
        if isinstance(value, list | tuple):
            yield from value
        elif isinstance(value, dict) and not (
            value.keys() in _NUMBERS and all(isinstance(text, str) for text in value.values())
        ):
            yield from value
            yield from value.values()


P = TypeVar("P", bound="Record")
CoreSchema = dict[str, Any]


@typing.dataclass_transform(frozen_default=True)
class Record:
    """A record, or a part of one, that is written as a JSON object: each is a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True, "allow_inf_nan": False}

    def __init_subclass__(cls) -> None:
        frozen(cls)


class Limits:
    """What a value must satisfy in addition to its type; stands after the type in `Annotated`.

    Parameters
    ----------
    limits
        Any of `ge`, `gt`, `lt`, `min_length` and `pattern`.
    """

    def __init__(self, **limits: float | str | list[str]) -> None:
        self.limits = limits

    def __get_pydantic_core_schema__(
        self, source: object, handler: Callable[[object], CoreSchema]
    ) -> CoreSchema:
        return {**handler(source), **self.limits}


class Encoded(Limits):
    """Bytes in base64; stands after `str` in `Annotated`. Python decodes faster than it matches."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: Callable[[object], CoreSchema]
    ) -> CoreSchema:
        check = {"type": "no-info", "function": _check_encoded}
        return {"type": "function-after", "function": check, "schema": handler(source)}

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: Callable[[CoreSchema], dict[str, Any]]
    ) -> dict[str, Any]:
        return {**handler(schema), **self.limits}


def _check_encoded(text: str) -> str:
    digits = text.encode("ascii").rstrip(b"=")
    signs = len(text) - len(digits)
    # decoding would skip other characters, and takes longer
    if len(text) % 4 or signs > _MOST_SIGNS or digits.translate(None, _BASE_64):
        raise ValueError("it is not base64")
    return text


class OneOf(Limits):
    """The only texts allowed; stands after `str` in `Annotated`."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(type="literal", expected=[*names])


class TaggedBy:
    """The field that says which of several records it is; stands after their union."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __get_pydantic_core_schema__(
        self, source: Any, handler: Callable[[object], CoreSchema]
    ) -> CoreSchema:
        records = typing.get_args(source)
        tags = (typing.get_args(typing.get_type_hints(record)[self._field]) for record in records)
        schemas = (handler(record) for record in records)
        choices = {tag: record for some, record in zip(tags, schemas, strict=True) for tag in some}
        return {"type": "tagged-union", "discriminator": self._field, "choices": choices}


NotNegative: TypeAlias = Annotated[float, Limits(ge=0)]
AtLeastOne: TypeAlias = Annotated[int, Limits(ge=1)]
AtLeastNone: TypeAlias = Annotated[int, Limits(ge=0)]
Text: TypeAlias = Annotated[str, Limits(min_length=1)]
BlockName: TypeAlias = Annotated[str, Limits(pattern="^-?[0-9]+$")]
Base64: TypeAlias = Annotated[
    str, Encoded(pattern="^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")
]
Digest: TypeAlias = Annotated[str, Limits(pattern="^sha256:[0-9a-f]{64}$")]
Identifier: TypeAlias = Annotated[str, Limits(pattern="^[0-9a-f]{32}$")]
Some: TypeAlias = Annotated[tuple[_Item, ...], Limits(min_length=1)]
ByBlock: TypeAlias = Mapping[BlockName, _Item]
SomeByBlock: TypeAlias = Annotated[ByBlock[_Item], Limits(min_length=1)]


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
    if isinstance(value, Held):
        return value.written()
    if isinstance(value, Record):
        return {name: plain(field) for name, field in vars(value).items()}
    if isinstance(value, Mapping):
        return {key: plain(field) for key, field in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def read(kind: type[P], value: object, noun: str, text: str | None = None) -> P:
    """Read a record that anybody may have written.

    Parameters
    ----------
    kind
        The type of the record.
    value
        What should be its plain JSON.
    noun
        What it is called in an error.
    text
        The JSON itself, if it is at hand.

    Raises
    ------
    UnreadableCertificateError
        If it is not such a record.
    """
    try:
        if is_large(value):
            check_excess(value)
            check_pieces(kind, value, _validate)
        record: P = _validate(kind, value, (), text=text)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnreadableCertificateError(
            f"{noun} cannot be read: {_fault(error)}. Go back to what was released."
        ) from None
    return record


def _validate(
    hint: Any, value: Any, place: FieldPath, start: int = 0, text: str | None = None
) -> Any:
    """Read a value; where that is wrong, name the first field, and its rule."""
    from pydantic import ValidationError  # as slow as what is needed anyway

    if text is None:
        text = json.dumps(value, allow_nan=False)
    try:
        return _adapter_of(hint).validate_json(text)
    except ValidationError as error:
        first, *_ = error.errors(include_url=False, include_context=False, include_input=False)
        inside = [step + start if isinstance(step, int) else step for step in first["loc"][:1]]
        unknown = first["type"] == "union_tag_invalid"
        rule = "it says of itself what no certificate holds" if unknown else first["msg"]
        raise _FaultError([*place, *inside, *first["loc"][1:]], rule) from None


class _FaultError(ValueError):
    """A field is wrong."""

    def __init__(self, place: Iterable[str | int], rule: str) -> None:
        where = ".".join(map(str, place))[:_LONGEST_PLACE]
        super().__init__(f"{where}: {rule}" if where else rule[:1].lower() + rule[1:])


def _fault(error: Exception) -> str:
    """Say what is wrong."""
    if isinstance(error, _FaultError | ExcessError):
        return str(error)
    nested = isinstance(error, RecursionError)
    return "it is nested too deeply" if nested else "it is not plain JSON"


_adapters: dict[Any, Any] = {}


def _adapter_of(hint: Any) -> Any:
    """Return what reads a type of record, or of a field, made when it is first needed."""
    if hint not in _adapters:
        from pydantic import TypeAdapter  # slow to import, and rarely needed

        with MAKING:
            _adapters[hint] = TypeAdapter(hint)
    return _adapters[hint]


def schema_of_record(kind: type[Record]) -> dict[str, Any]:
    """Return the JSON Schema of a type of record, with the descriptions of its docstrings."""
    schema: dict[str, Any] = _adapter_of(kind).json_schema()
    parts = {part.__name__: part for part in _records(Record)}
    for name, described in {**schema.get("$defs", {}), kind.__name__: schema}.items():
        summary, fields = _describe_fields(parts[name])
        described.pop("title", None)
        described["description"] = summary
        for field, rules in described["properties"].items():
            rules.pop("title", None)
            rules["description"] = fields[field]
            for form in (rules, *rules.get("anyOf", ())):
                if "patternProperties" in form:
                    form["additionalProperties"] = False
    return schema


def _records(kind: type[Record]) -> Iterator[type[Record]]:
    for part in kind.__subclasses__():
        yield part
        yield from _records(part)


def _describe_fields(kind: type[Record]) -> tuple[str, dict[str, str]]:
    """Return what a docstring says about a record, and about each of its fields."""
    summary, _, parameters = cleandoc(kind.__doc__ or "").partition("\nParameters\n----------\n")
    text = parameters.partition("\n\n")[0]
    _, *paragraphs = re.split(r"^(\S+)\n(?= {4})", text, flags=re.MULTILINE)
    described = dict(zip(paragraphs[::2], map(_join_lines, paragraphs[1::2]), strict=True))
    bases = (_describe_fields(base)[1] for base in kind.__bases__ if base is not Record)
    fields = {name: line for part in (*bases, described) for name, line in part.items()}
    return _join_lines(summary), fields


def _join_lines(text: str) -> str:
    return " ".join(text.split())


_MOST_PLACES = 2**53  # beyond, floats do not tell whole numbers apart


class Held(Record):
    """What is large, as an object and as a text: each is made of the other when it is needed."""

    def __repr__(self) -> str:
        return object.__repr__(self)

    @classmethod
    def holding(cls, **content: Any) -> Self:
        """Keep an object without its text."""
        record = cls.__new__(cls)
        vars(record).update(content)
        return record

    def __getattr__(self, name: str) -> Any:
        """Write the text, the only field."""
        if name not in type(self).__dataclass_fields__ or "_content" not in vars(self):
            raise AttributeError(name)
        return vars(self).setdefault(name, self._write(vars(self)["_content"]))

    def _write(self, content: Any) -> str:
        raise NotImplementedError

    def written(self) -> dict[str, str]:
        """Return it as plain JSON."""
        return {name: getattr(self, name) for name in type(self).__dataclass_fields__}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text alone."""
        return type(self), tuple(self.written().values())


def owned(values: Any, dtype: str) -> np.ndarray:
    """Copy numbers, so that nobody changes them."""
    copied = np.array(values, dtype)
    copied.flags.writeable = False
    return copied


class Packed(Held):
    """One number for each row.

    Parameters
    ----------
    float64
        The numbers in base64: 64-bit floats, little-endian.
    """

    float64: Base64

    @classmethod
    def of(cls, values: Any) -> "Packed":
        """Keep an array."""
        return cls.holding(_content=owned(values, "<f8"))

    def _write(self, content: np.ndarray) -> str:
        return base64.b64encode(content.tobytes()).decode("ascii")

    @property
    def numbers(self) -> np.ndarray:
        """The numbers."""
        kept = vars(self)
        if "_content" not in kept:
            kept["_content"] = np.frombuffer(base64.b64decode(self.float64), "<f8")
        content: np.ndarray = kept["_content"]
        return content


def pack(values: np.ndarray | float) -> float | Packed:
    """Write a number as it is, and an array as text that `attrs` carries at no cost."""
    return float(values) if np.ndim(values) == 0 else Packed.of(values)


def unpack(packed: float | Packed) -> float | np.ndarray:
    """Read a number, or an array written by `pack`."""
    return packed.numbers if isinstance(packed, Packed) else packed


def places_of(packed: Packed) -> np.ndarray:
    """Read positions: whole numbers from 0, no two the same.

    Raises
    ------
    ValueError
        If they are something else; they may come from a file.
    """
    numbers = np.asarray(unpack(packed))
    integers = bool((numbers == np.floor(numbers)).all())
    differ = len(np.unique(numbers)) == len(numbers)
    inside = 0 <= numbers.min(initial=0) <= numbers.max(initial=0) <= _MOST_PLACES
    if not (integers and differ and inside):
        raise ValueError("positions are whole numbers from 0, each once")
    return numbers.astype(np.intp)

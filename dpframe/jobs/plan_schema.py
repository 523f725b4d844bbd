"""The JSON Schema of plan files, by which editors complete and check them.

Keys are read off what reads plans and off the functions that plans call. What values mean together
is for `dpframe preview` to say.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from dpframe.denoising.methods import DenoiserName
from dpframe.jobs import job
from dpframe.jobs.data import DATA
from dpframe.jobs.stores import FILESYSTEMS
from dpframe.privacy.amounts import AMOUNTS
from dpframe.privacy.neighbors import Neighboring
from dpframe.queries.tasks import LabelKind
from dpframe.sources.cells import KINDS
from dpframe.sources.text import TYPES
from dpframe.strategies import MechanismName

_TEXT: dict[str, Any] = {"type": "string"}
_FLAG: dict[str, Any] = {"type": "boolean"}
_NUMBER: dict[str, Any] = {"type": "number"}
_WHOLE: dict[str, Any] = {"type": "integer"}
_LIST: dict[str, Any] = {"type": "array"}
_AMOUNT: dict[str, Any] = {"type": ["number", "string"]}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT, "minItems": 1}
_TEXT_OR_TEXTS = {"anyOf": [_TEXT, _TEXTS]}
_CHARACTER = {"type": "string", "minLength": 1, "maxLength": 1}
_PAIR = {"type": "array", "minItems": 2, "maxItems": 2}


def _one_of(names: Iterable[object]) -> dict[str, Any]:
    return {"enum": list(names)}


def _by_column(value: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": value}


def _table(
    properties: Mapping[str, Any], required: Iterable[str] = (), **more: Any
) -> dict[str, Any]:
    needed = list(required)
    table = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**table, **({"required": needed} if needed else {}), **more}


_RANGE = {"type": "array", "items": _WHOLE, "minItems": 2, "maxItems": 3}
_GROUPS = {
    "anyOf": [
        _LIST,
        _table({"range": _RANGE}, ["range"]),
        _table({"file": _TEXT, "type": _one_of(KINDS)}, ["file"]),
    ]
}
_EDGES = {
    "anyOf": [
        _LIST,
        _table({"from": _NUMBER, "to": _NUMBER, "bins": _WHOLE}, ["from", "to", "bins"]),
    ]
}
_WEIGHT = _table({"table": _LIST, "weight": _AMOUNT}, ["table", "weight"])
_DTYPE = _one_of(get_args(LabelKind))
_OUTPUT = {"$ref": "#/$defs/output"}
_COLUMNS = {"anyOf": [_TEXT, _LIST]}
_FORMS: dict[str, Mapping[str, Any]] = {
    **dict.fromkeys(("where", "condition", "column", "x", "y", "objective"), _TEXT),
    **dict.fromkeys(("by", "columns"), _COLUMNS),
    "keys": {"anyOf": [_GROUPS, _by_column(_GROUPS)]},
    "bounds": {"anyOf": [_PAIR, _by_column(_PAIR)]},
    "bins": {"anyOf": [_WHOLE, _EDGES, _by_column(_EDGES)]},
    "weights": {"anyOf": [_TEXT, {"type": "array", "items": _WEIGHT}]},
    "candidates": _LIST,
    "other": {"type": ["string", "integer", "object"]},
    "n": {"anyOf": [_NUMBER, _PAIR]},
    "q": {"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER}]},
    **dict.fromkeys(("level", "n_weight"), _NUMBER),
    **dict.fromkeys(("simultaneous", "sampling", "counts"), _FLAG),
    "missing": {"const": False},
    **dict.fromkeys((*job.CAPS, "max_true", "ways", "max_length"), _WHOLE),
    "dtype": {"anyOf": [_DTYPE, _by_column(_DTYPE)]},
    "discovery": _AMOUNT,
    "outputs": _by_column(_OUTPUT),
    "files": _TEXT_OR_TEXTS,
}
"""What each argument of a query may be."""

_OF_DATA = {
    "path": _TEXT_OR_TEXTS,
    "filesystem": {
        "type": "object",
        "properties": {"type": _one_of(FILESYSTEMS)},
        "required": ["type"],
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    },
    "spill_folder": _TEXT,
    "types": _by_column(_one_of(TYPES)),
    "encoding": _TEXT,
    **dict.fromkeys(("separator", "thousands", "decimal"), _CHARACTER),
    **dict.fromkeys(("na_values", "true", "false", "dates"), _TEXT_OR_TEXTS),
    **dict.fromkeys(("percent", "newlines"), _FLAG),
}
_OF_DECLARATION = {
    "schema": _TEXT,
    "each_row": _FLAG,
    "privacy_unit": _TEXT_OR_TEXTS,
    "unit": _TEXT,
    **dict.fromkeys(job.CAPS, _WHOLE),
    "neighboring": _one_of(get_args(Neighboring)),
    "keys": _by_column(_GROUPS),
    "bounds": {"anyOf": [_PAIR, _by_column(_PAIR)]},
    "missing": {"type": "object"},
    "name": _TEXT,
}
_OF_RELEASE = {
    **dict.fromkeys(AMOUNTS, _AMOUNT),
    "mechanism": _one_of(get_args(MechanismName)),
    "denoise": _one_of(get_args(DenoiserName)),
    **dict.fromkeys(("name", "note"), _TEXT),
    "part": _AMOUNT,
    "files": _TEXT_OR_TEXTS,
}


def _query(kind: str, make: Callable[..., object], *, is_output: bool) -> dict[str, Any]:
    """Describe a query of one kind, by the arguments of the function of that name."""
    extra = () if is_output else ("files",)
    properties = {key: _FORMS[key] for key in (*job.arguments_of(kind, make), *extra)}
    return _table({"kind": {"const": kind}, **properties}, ["kind", *job.needed_by(make)])


def _queries(kinds: Mapping[str, Callable[..., object]], *, is_output: bool) -> dict[str, Any]:
    """Describe a query of any kind; which one is said first, so that an editor names what fails."""
    branches = [
        {
            "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
            "then": _query(kind, make, is_output=is_output),
        }
        for kind, make in kinds.items()
    ]
    first = {"type": "object", "properties": {"kind": _one_of(kinds)}, "required": ["kind"]}
    return {**first, "allOf": branches}


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of plan files."""
    queries = {**job.QUERIES, **job.SEARCHES}
    named = {
        "data": _table({key: _OF_DATA[key] for key in DATA}, ["path"]),
        "declare": _table({key: _OF_DECLARATION[key] for key in job.DECLARE}),
        "queries": _by_column({"$ref": "#/$defs/query"}) | {"minProperties": 1},
        "release": _table({key: _OF_RELEASE[key] for key in job.RELEASE}),
        "ledger": _table(
            {
                "path": _TEXT,
                "budget": _table(dict.fromkeys(job.BUDGET, _AMOUNT), ["epsilon"]),
                "part": _TEXT,
                "runs_folder": _TEXT,
            },
            ["path"],
        ),
        "values": _by_column({"type": ["string", "integer"]}),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:dpframe:plan",
        "title": "dpframe plan",
        **_table({one: named[one] for one in job.TABLES}, ["declare", "queries", "ledger"]),
        "$defs": {
            "query": _queries(queries, is_output=False),
            "output": _queries(job.QUERIES, is_output=True),
        },
    }

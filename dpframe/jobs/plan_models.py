"""Plan files as models: which keys there are, and of which types; editors complete plans by them.

Arguments of queries are read off the functions that plans call. What values mean together is for
what reads them to say.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from inspect import signature
from typing import Annotated, Any, Literal, Union, get_args

import pydantic
from pydantic import ConfigDict, Field, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticCustomError

from dpframe.denoising.methods import DenoiserName
from dpframe.errors import PlanFileError
from dpframe.jobs import job
from dpframe.jobs.data import FILESYSTEMS
from dpframe.jobs.plan_toml import Section, values_within
from dpframe.options import Usefulness
from dpframe.privacy.amounts import AMOUNTS
from dpframe.privacy.neighbors import Neighboring
from dpframe.queries.tasks import LabelKind
from dpframe.sources.cells import KINDS
from dpframe.sources.text import TYPES
from dpframe.strategies import MechanismName

_WORDS = {
    "string_type": "a text",
    "string_pattern_mismatch": "a path",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a table"),
    "form": "a list or a table",
}
"""What each error of pydantic says that a value must be."""

_SEVERAL = ("aggregate", "margins")
_KINDS = (*job.QUERIES, *job.SEARCHES)
_PARTS = [kind for kind in job.QUERIES if kind not in _SEVERAL]
_LEAST_KINDS = ("count", "sum")  # a choice needs two
_OF_QUERY = ["within", "mechanism", "publish", "files"]
_NUMBERED_BINS = ("histogram", "ranges", "quantile")  # between the bounds of their column


class PlanTable(pydantic.BaseModel):
    """A table of a plan, which has no keys but those that are known."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _know_keys(cls, values: Any) -> Any:
        """Refuse keys that mean nothing here, and name the nearest, or the table to put it into."""
        names = [field.alias or name for name, field in cls.model_fields.items()]
        title = str(cls.model_config.get("title"))
        for key in values if isinstance(values, dict) else ():
            if key in names:
                continue
            close = get_close_matches(key, names, n=1)
            hint = f"Did you mean {close[0]!r}? " if close else ""
            for inner, (table, keys) in _AROUND.items():
                if title.startswith(inner) and key in keys:
                    hint = f"Put it into [{table}]. "
            rule = f"no key of {title}. {hint}It has: {', '.join(names)}."
            raise PydanticCustomError("key", "no key", {"key": key, "rule": rule})
        return values


def _table(
    name: str, keys: Mapping[str, Any], needed: Iterable[str] = (), title: str = ""
) -> type[PlanTable]:
    """Make the model of a table; keys that are not needed have no default."""
    needed = set(needed)
    fields: Any = {  # models have attributes of some names
        f"{key}_": (kind, Field(... if key in needed else None, alias=key))
        for key, kind in keys.items()
    }
    base = type(name, (PlanTable,), {"model_config": ConfigDict(title=title or name)})
    return pydantic.create_model(name, __base__=base, **fields)


def _by_column(kind: Any) -> Any:
    return dict[str, kind]


def _one_of(names: Iterable[str]) -> Any:
    return Literal[*names]


def _names(listed: Iterable[object]) -> Any:
    """Return the type of a text that is looked up later, with a hint of its own."""
    return Annotated[str, WithJsonSchema({"enum": list(listed)})]


def _later(**schema: Any) -> Any:
    """Return the type of what is checked where it is read, by its schema for editors."""
    return Annotated[Any, WithJsonSchema(schema)]


def _forms(tell: Callable[[Any], str] = job.form_of, /, **forms: Any) -> Any:
    """Return the type of a value with several forms."""
    tagged = tuple(Annotated[kind, pydantic.Tag(form)] for form, kind in forms.items())
    by_form = pydantic.Discriminator(tell, custom_error_type="form", custom_error_message="form")
    return Annotated[Union[tagged], by_form]  # noqa: UP007


_TEXTS = str | list[str]
_PATH = Annotated[str, Field(pattern="^[^\0]+$")]
_PATHS = _PATH | Annotated[list[_PATH], Field(min_length=1)]
_AMOUNT = float | str  # a text such as "1/12" is read by whoever spends it
_PAIR = Annotated[list[Any], WithJsonSchema({"type": "array", "minItems": 2, "maxItems": 2})]
_GROUPS = {
    "list": list[Any],
    "table": _table("groups", {"range": list[Any], "file": str, "type": _one_of(KINDS)}),
}
_COMBINATIONS = _table(
    "combinations",
    {"columns": list[str], "rows": list[list[Any]], "file": str, "type": _one_of(KINDS)},
    ["columns"],
)
_LEVEL = _forms(job.form_of_groups, **_GROUPS)
_ENDS = {"from": float, "to": float, "bins": int}
_EDGES = {"list": list[Any], "table": _table("bins", _ENDS, _ENDS, "bins of equal widths")}
_BINS = {**_EDGES, "columns": _by_column(_forms(**_EDGES))}
_BOUNDS = _forms(list=_PAIR, columns=_by_column(_PAIR))
_WEIGHT: Any = _table("weights", {"table": list[str], "weight": _AMOUNT}, ["table", "weight"])
_WEIGHTS: Any = list[_WEIGHT]
_DTYPE = _names(get_args(LabelKind))
_CUT = _table(
    "cut",
    {"cut": str, "edges": _forms(**_EDGES), "right": bool, "labels": list[str]},
    ["cut", "edges"],
    "a cut",
)
_MOMENT = _later(type="string")
_PERIOD = _table(
    "period",
    {"period": str, "freq": str, "first": _MOMENT, "last": _MOMENT},
    ["period", "freq", "first", "last"],
    "a period",
)
_GROUP = {"str": str, "cut": _CUT, "period": _PERIOD}
_ONE_GROUP: Any = _forms(job.form_of_group, **_GROUP)
_GROUPS_BY = _forms(job.form_of_group, **_GROUP, list=list[_ONE_GROUP])
_ARGUMENTS: dict[str, Any] = {
    **dict.fromkeys(("where", "condition", "column", "x", "y", "objective"), str),
    "by": _GROUPS_BY,
    "columns": _TEXTS,
    "keys": _forms(
        job.form_of_groups, **_GROUPS, combinations=_COMBINATIONS, columns=_by_column(_LEVEL)
    ),
    "bounds": _BOUNDS,
    "bins": _forms(**_BINS),
    "weights": str,
    "window": _forms(int=int, str=_one_of(["expanding"])),
    "candidates": list[Any],
    "other": str | int | dict[str, Any],
    "n": float | list[float],
    "q": float | list[float],
    **dict.fromkeys(("level", "n_weight", "weight"), float),
    "within": _by_column(float),
    "mechanism": _names(get_args(MechanismName)),
    **dict.fromkeys(("simultaneous", "sampling", "counts", "missing"), bool),
    **dict.fromkeys((*job.CAPS, "max_true", "ways", "max_length"), int),
    "dtype": _DTYPE | _by_column(_DTYPE),
    "discovery": _AMOUNT,
    "publish": _table(
        "publish",
        {
            "suppress": _table("suppress", {"below": float, "relative_error": float, "by": str}),
            "interval": float,
            "round": int | _by_column(int),
        },
    ),
    "files": _PATHS,
}
"""What each argument of a query may be."""


_FILESYSTEM = pydantic.create_model(
    "filesystem",
    __config__=ConfigDict(extra="allow", strict=True),  # the rest is for the class of pyarrow
    type=(_one_of(FILESYSTEMS), ...),
)
_DATA = {
    "path": _PATHS,
    "filesystem": _FILESYSTEM,
    "spill_folder": str,
    "types": _by_column(_one_of(TYPES)),
    "encoding": _later(type="string"),
    **dict.fromkeys(
        ("separator", "thousands", "decimal"), _later(type="string", minLength=1, maxLength=1)
    ),
    **dict.fromkeys(("na_values", "true", "false", "dates"), _later(type=["string", "array"])),
    **dict.fromkeys(("percent", "newlines"), _later(type="boolean")),
}
_DECLARE = {
    "schema": str,
    "each_row": bool,
    "privacy_unit": _TEXTS,
    "unit": str,
    **dict.fromkeys(job.CAPS, int),
    "neighboring": _names(get_args(Neighboring)),
    "keys": _by_column(_LEVEL),
    "bounds": _BOUNDS,
    "missing": dict[str, Any],
    "name": str,
}
_RELEASE = {
    **dict.fromkeys(AMOUNTS, _AMOUNT),
    "mechanism": _ARGUMENTS["mechanism"],
    "denoise": _names(get_args(DenoiserName)),
    **dict.fromkeys(("name", "note"), str),
    "part": _AMOUNT,
    "rows": float,
    "useful": _names(get_args(Usefulness)),
    "files": _PATHS,
}
_BUDGET = _table("budget", dict.fromkeys(job.BUDGET, _AMOUNT), ["epsilon"], "a budget")
_LEDGER = {"path": _PATH, "budget": _BUDGET, "part": str, "runs_folder": _PATH}
_AROUND = {"a query": ("release", _RELEASE), "a budget": ("ledger", _LEDGER)}
"""Tables whose keys are mistaken for keys of others, by the titles of these."""


def _query(kind: str, used: Sequence[str], *, is_output: bool) -> type[PlanTable]:
    """Make the model of a query of one kind, by the arguments of the function of that name."""
    make = {**job.QUERIES, **job.SEARCHES}[kind]
    forms = {**_ARGUMENTS, "kind": _one_of([kind])}
    if kind in _NUMBERED_BINS:
        forms["bins"] = _forms(int=int, **_BINS)
    if kind == "regression":
        forms["x"] = _TEXTS
    if kind == "margins":
        forms |= {"weights": _WEIGHTS, "columns": _GROUPS_BY}
    parameters = signature(make).parameters.values()
    # what catches the rest are outputs, which have a table of their own
    arguments = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    keys = ["kind", *(p.name for p in arguments)]
    needed = ["kind", *(p.name for p in arguments if p.default is p.empty)]
    if kind not in job.SEARCHES:
        keys += [cap for cap in job.CAPS if cap not in keys]
    if kind in _SEVERAL:
        keys.append("outputs")
        parts = [part for part in used if part in _PARTS]
        forms["outputs"] = _by_column(_queries(parts, is_output=True))
    if kind in job.SEARCHES:
        keys.append("files")
    elif not is_output:
        keys += _OF_QUERY
    name = f"{kind}_output" if is_output else kind
    return _table(name, {key: forms[key] for key in keys}, needed, f'a query of kind "{kind}"')


def _queries(used: Sequence[str], *, is_output: bool) -> Any:
    """Return the type of a query of some kinds, told apart by the key `kind`."""
    models = tuple(_query(kind, used, is_output=is_output) for kind in used)
    return Annotated[Union[models], Field(discriminator="kind_")]  # noqa: UP007


@cache
def _plan(used: tuple[str, ...]) -> type[PlanTable]:
    """Make the model of a plan with some kinds of queries: that of all takes half a second."""
    queries = _by_column(_queries(used, is_output=False))
    tables: dict[str, Any] = {
        "queries": Annotated[queries, Field(min_length=1)],
        "data": _table("data", _DATA),
        "declare": _table("declare", _DECLARE),
        "release": _table("release", _RELEASE),
        "ledger": _table("ledger", _LEDGER, ["path"]),
        "values": dict[str, str | int],
    }
    return _table("plan", tables, ["declare", "queries", "ledger"], "a plan")


def check_plan(plan: Section) -> None:
    """Check keys and types of a plan.

    Raises
    ------
    PlanFileError
        If there is a key that means nothing, one is missing, or a value is of another type.
    """
    tables = {name: {} for name in ("queries", "declare", "ledger")} | dict(plan.table)
    words = {word for _, word in values_within(plan.table) if isinstance(word, str)}
    used = [kind for kind in _KINDS if kind in words or kind in _LEAST_KINDS]
    try:
        _plan(tuple(used)).model_validate(tables)
    except pydantic.ValidationError as error:
        raise _refusal(plan, error.errors(include_url=False)) from None


def _refusal(plan: Section, faults: Sequence[Any]) -> PlanFileError:
    """Say in words of a plan what pydantic found first."""
    kind, value, context = (faults[0].get(part) for part in ("type", "input", "ctx"))
    keys = _keys_of(plan.table, faults[0]["loc"])
    if kind == "key":
        return plan.error(context["rule"], *keys, context["key"])
    if kind == "too_short":
        example = '[queries.by_zone] with kind = "count" and by = "zone"'
        return plan.error(f"there is no query; for instance {example}.")
    if kind in ("missing", "union_tag_not_found"):
        name = faults[0]["loc"][-1] if kind == "missing" else "kind"
        example = Section(plan.source, keys, {}).such(name)
        where = keys or tuple(faults[0]["loc"][:1])
        return plan.error(f"{name} is missing{example}.", *where)
    if kind in ("union_tag_invalid", "literal_error"):
        choices = str(context.get("expected")).replace("'", "").replace(" or ", ", ")
        if "tag" in context:
            choices = ", ".join(_PARTS if "outputs" in keys else _KINDS)
            keys, value = (*keys, "kind"), context["tag"]
        rule = f"one of {choices}"
    else:
        alike = [fault for fault in faults if _keys_of(plan.table, fault["loc"]) == keys]
        words = dict.fromkeys(_WORDS.get(fault["type"], fault["msg"]) for fault in alike)
        rule = " or ".join(words)
    *above, key = keys
    example = Section(plan.source, tuple(above), {}).such(key)
    return plan.error(f"must be {rule}, got {value!r:.200}{example}.", *keys)


def _keys_of(table: Any, place: Iterable[object]) -> tuple[str, ...]:
    """Return the keys that lead to a place, without the names of forms and places in lists."""
    keys = []
    for part in place:
        if isinstance(table, dict) and isinstance(part, str) and part in table:
            keys.append(part)
            table = table[part]
    return tuple(keys)


class _Schema(GenerateJsonSchema):
    """Schemas without titles and defaults of keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        return {"anyOf": super().tagged_union_schema(schema)["oneOf"]}  # forms may overlap


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of plan files."""
    schema = _plan(_KINDS).model_json_schema(schema_generator=_Schema)
    head = {"$schema": _Schema.schema_dialect, "$id": "urn:dpframe:plan"}
    return {**head, **schema, "title": "dpframe plan"}

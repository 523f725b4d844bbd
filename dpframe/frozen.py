"""Frozen dataclasses that cost little to import.

`dataclasses.dataclass` compiles six functions for each class, which took half of the import. Here
classes share five of them, and the sixth is compiled for the first object.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

_Class = TypeVar("_Class", bound=type)


@overload
def frozen(cls: _Class, /) -> _Class: ...
@overload
def frozen(
    *, eq: bool = True, slots: bool = False, kw_only: bool = False
) -> Callable[[_Class], _Class]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(
    cls: Any = None, /, *, eq: bool = True, slots: bool = False, kw_only: bool = False
) -> Any:
    """Make a class with annotated fields a frozen dataclass; methods that it has stay.

    `fields`, `replace` and `asdict` of `dataclasses` know it.

    Parameters
    ----------
    eq
        Whether objects with equal fields are equal, else only the same object is.
    slots
        Whether objects hold nothing but fields.
    kw_only
        Whether all fields are given by keyword.

    Examples
    --------
    >>> @frozen
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> dataclasses.replace(Point(1.0), x=2.0)
    Point(x=2.0, y=0.0)
    """
    if cls is None:
        return lambda cls: _made(cls, eq=eq, slots=slots, kw_only=kw_only)
    return _made(cls, eq=eq, slots=slots, kw_only=kw_only)


def _made(cls: Any, *, eq: bool, slots: bool, kw_only: bool) -> Any:
    as_dataclass = dataclasses.dataclass(
        init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
    )
    built: Any = as_dataclass(cls)
    for name, method in (_FROZEN | _SLOTTED if slots else _FROZEN).items():
        if getattr(built, name, None) is getattr(object, name, None):
            setattr(built, name, method)
    namespace = vars(cls)
    for name, method in (_comparisons(built) if eq else {}).items():
        if namespace.get(name) is None:  # Python sets `__hash__` to `None` beside `__eq__`
            setattr(built, name, method)
    if "__init__" not in namespace:
        built.__init__ = _Init(built)
    return built


def _comparisons(cls: Any) -> dict[str, Any]:
    """Return methods that compare fields."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    values = attrgetter("__class__", *names)

    def __eq__(self: Any, other: object) -> bool:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(values(self) == values(other))

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


class _Frozen:
    """Methods that do not depend on the class."""

    def __repr__(self) -> str:
        names = (field.name for field in dataclasses.fields(self) if field.repr)  # type: ignore[arg-type]
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


class _Slotted:
    """Methods for pickles of objects without `__dict__`."""

    def __getstate__(self) -> list[Any]:
        return [getattr(self, field.name) for field in dataclasses.fields(self)]  # type: ignore[arg-type]

    def __setstate__(self, state: list[Any]) -> None:
        for field, value in zip(dataclasses.fields(self), state, strict=True):  # type: ignore[arg-type]
            object.__setattr__(self, field.name, value)


_FROZEN = {name: vars(_Frozen)[name] for name in ("__repr__", "__setattr__", "__delattr__")}
_SLOTTED = {name: vars(_Slotted)[name] for name in ("__getstate__", "__setstate__")}


class _Init:
    """Stands for `__init__` of a class until that is asked for."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> Any:
        """Compile the method, which takes the place of this one."""
        compiled = _compile_init(self._cls)
        self._cls.__init__ = compiled
        return compiled.__get__(instance, owner)


def _compile_init(cls: Any) -> Any:
    fields = [field for field in dataclasses.fields(cls) if field.init]
    fields.sort(key=lambda field: bool(field.kw_only))
    slotted = any(vars(base).get("__slots__") for base in cls.__mro__)
    namespace: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": dataclasses.MISSING}
    parameters = ["self"]
    lines = [] if slotted else ["_fields = self.__dict__"]  # `__setattr__` refuses
    for field in fields:
        name, value = field.name, field.name
        if field.kw_only and "*" not in parameters:
            parameters.append("*")
        if field.default_factory is not dataclasses.MISSING:
            namespace[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _MISSING else {name}"
            parameters.append(f"{name}=_MISSING")
        elif field.default is not dataclasses.MISSING:
            namespace[f"_default_{name}"] = field.default
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        setting = f"_set(self, {name!r}, {value})" if slotted else f"_fields[{name!r}] = {value}"
        lines.append(setting)
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    code = "\n    ".join([f"def __init__({', '.join(parameters)}):", *lines, "return"])
    exec(code, namespace)  # noqa: S102
    init = namespace["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    init.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    return init

"""Frozen classes behave as those of `dataclasses` do, and are compiled for the first object."""

import dataclasses
import inspect
from typing import Any

import pytest

from dpframe.frozen import frozen

VARIANTS = [{}, {"eq": False}, {"slots": True}, {"kw_only": True}, {"slots": True, "eq": False}]


def two_of(options: dict[str, Any]) -> tuple[type[Any], type[Any]]:
    """The same class by both decorators."""

    def cell() -> type[Any]:
        class Cell:
            """A cell."""

            row: int
            column: int = 7
            notes: list[str] = dataclasses.field(default_factory=list, compare=False, repr=False)

            def __post_init__(self) -> None:
                if self.row < 0:
                    raise ValueError("no such row")

        return Cell

    return frozen(**options)(cell()), dataclasses.dataclass(frozen=True, **options)(cell())


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_objects_are_made_shown_and_compared_as_dataclasses_are(options):
    ours, theirs = two_of(options)
    assert inspect.signature(ours).parameters.keys() == inspect.signature(theirs).parameters.keys()
    for cls in (ours, theirs):
        one, other = cls(row=3), cls(row=3, notes=["late"])
        assert (one == other) == (options.get("eq", True))
        assert len({one, other}) == 2 - (one == other)
        assert one != cls(row=4)
        assert one.notes is not cls(row=3).notes
        assert repr(other).endswith("Cell(row=3, column=7)")
        assert dataclasses.asdict(other) == {"row": 3, "column": 7, "notes": ["late"]}
        assert dataclasses.replace(other, row=5).column == 7
        assert cls.__match_args__ == (() if "kw_only" in options else ("row", "column", "notes"))
        assert hasattr(one, "__dict__") is ("slots" not in options)
        with pytest.raises(ValueError, match="no such row"):
            cls(row=-1)
        with pytest.raises(TypeError, match=r"Cell\.__init__\(\) got an unexpected keyword"):
            cls(row=1, rows=2)
        if "kw_only" in options:
            with pytest.raises(TypeError, match="positional"):
                cls(3)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_nothing_changes_an_object(options):
    ours, _ = two_of(options)
    one = ours(row=3)
    with pytest.raises(dataclasses.FrozenInstanceError, match="assign to field 'row'"):
        one.row = 4
    with pytest.raises(dataclasses.FrozenInstanceError, match="delete field 'row'"):
        del one.row
    assert one.row == 3

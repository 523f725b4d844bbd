"""Whom a ledger protects: one privacy unit, under one neighboring relation, for all its frames."""

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dpframe.arguments import is_unicode
from dpframe.errors import DeclarationError
from dpframe.privacy.neighbors import Neighboring, check_neighboring

_KEY = "protected"  # tells its row from those of entries


@dataclass(frozen=True, slots=True)
class Protected:
    """Whom all releases charged to one ledger protect, together.

    Losses add up for one unit and one relation only: a count of rows is free where neighbors have
    equally many, and is the private fact itself where they do not.

    Parameters
    ----------
    unit
        Name of the privacy unit; `None`: each row is a unit.
    neighboring
        The neighboring relation.
    """

    unit: str | None
    neighboring: Neighboring

    @classmethod
    def of(
        cls, unit_columns: Sequence[Hashable], neighboring: Neighboring, unit: str | None
    ) -> "Protected":
        """Name the unit of a frame after its columns, unless it has a name.

        Several columns are "aircraft in one week": a unit is one of these.

        Raises
        ------
        DeclarationError
            If the name is not usable.
        """
        if unit is None:
            named = " in one ".join(map(str, unit_columns)) if unit_columns else None
            return cls(named, neighboring)
        if not isinstance(unit, str) or not unit or not is_unicode(unit):
            rule = "must be a text, the name of the privacy unit"
            raise DeclarationError.about("unit", rule, unit, 'For instance, unit="patient".')
        if not unit_columns:
            way = "Name its column with privacy_unit=."
            raise DeclarationError.about(
                "unit", "names a privacy unit, and none is declared", unit, way
            )
        return cls(unit, neighboring)

    @classmethod
    def in_row(cls, read: Any) -> "Protected | None":
        """Read a row's body; `None` for a row of another kind.

        Raises
        ------
        DeclarationError, KeyError, TypeError
            If it is of no form that was ever written.
        """
        if not isinstance(read, dict) or _KEY not in read:
            return None
        unit, neighboring = read[_KEY]["unit"], read[_KEY]["neighboring"]
        if not isinstance(unit, str | None):
            raise TypeError
        return cls(unit, check_neighboring(neighboring))

    def row(self) -> dict[str, Any]:
        """Write it as the body of a row."""
        return {_KEY: asdict(self)}

    def __str__(self) -> str:
        """Say it in the words of a declaration."""
        who = "each row" if self.unit is None else f"the unit {self.unit!r}"
        return f"{who} under neighboring={self.neighboring!r}"

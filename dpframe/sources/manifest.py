"""What comes in from a source, the same from every door: its files, its types, how text is read.

It is made before a charge, and no row is read. What is public of it has a hash, which ledger and
certificate keep; files are private.
"""

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType

from dpframe.declaration import kinds
from dpframe.declaration.facts import Declaration
from dpframe.ledger.log import SourceFacts
from dpframe.sources.listing import FileId
from dpframe.sources.match import known_of

_IN_MEMORY = ("pandas", "dask")
_GUESSED = ("datetime64", "timedelta64", "period", "interval")  # of Python objects, by pandas


@dataclass(frozen=True, eq=False)
class Manifest:
    """What is known of a source before any of its rows is read.

    Parameters
    ----------
    door
        What reads it.
    types
        The public types of its columns by label; `None` where one cell may have decided on it.
    files
        The files that it reads; `None`: rows in memory, or nobody can tell.
    opaque
        Whether nobody can tell what it reads.
    text
        How cells of text are read; `None`: it holds values.
    """

    door: str
    types: Mapping[Hashable, str | None] = field(default_factory=lambda: MappingProxyType({}))
    files: tuple[FileId, ...] | None = None
    opaque: bool = False
    text: str | None = None

    def source(self, declaration: Declaration) -> SourceFacts:
        """Say what a ledger keeps of it: a hash of what is public, and the kinds of some columns.

        Where nothing says what the column of parts holds, parts are numbers.
        """
        ledger = declaration.ledger
        part = None if ledger is None else ledger.part
        kind = None if part is None else self._kind(part, self.types.get(part), declaration)
        if declaration.part is not None:
            kind = kind or "numbers"
        unit = declaration.unit_columns
        named = tuple((repr(label), self._certain(kind)) for label, kind in self.types.items())
        return SourceFacts(
            manifest=_hash(self.door, named, tuple(map(repr, unit)), part, self.text),
            door=self.door if self.opaque else None,
            unit=tuple(
                self._kind(label, self._certain(self.types.get(label)), declaration)
                for label in unit
            ),
            part=kind,
        )

    def _certain(self, kind: str | None) -> str | None:
        """Return a type, unless pandas may have guessed it: then one cell may have changed it.

        A release may be refused for such a type, and tells it then; what is published does not.
        """
        if self.door not in _IN_MEMORY or kind is None:
            return kind
        return None if kind == "str" or kind.startswith(_GUESSED) else kind

    def _kind(self, label: Hashable, type_name: str | None, declaration: Declaration) -> str | None:
        """Say of which kinds the values of a column are, as far as that is public.

        Bytes and texts are one kind: a plan reads ids as bytes that a frame holds as texts.
        """
        known = known_of(type_name, declaration.column(label))
        if known.kinds is None or kinds.OTHER in known.kinds:
            return None
        held = {kinds.TEXT if kind == kinds.BYTES else kind for kind in known.kinds}
        return " and ".join(sorted(held))


@lru_cache(256)
def _hash(*facts: Hashable) -> str:
    """Hash what is public of a source; the same facts are those of every release."""
    return sha256(json.dumps(facts).encode()).hexdigest()

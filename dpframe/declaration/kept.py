"""Where a declaration is kept, and what was warned of: on the frame object itself."""

from dpframe.declaration.facts import Declaration

_ATTRIBUTE = "_dpframe_declaration"
_WARNINGS = "_dpframe_warnings"


def keep_declaration(frame: object, declaration: Declaration) -> None:
    """Keep a declaration on the frame object itself.

    It survives edits in place, and is not carried to copies, filters and merges: a derived frame
    may mix rows, so it must be declared again. Engines mark frames to tell such ones apart.
    """
    object.__setattr__(frame, _ATTRIBUTE, declaration)


def kept_declaration(frame: object) -> Declaration | None:
    """Return the declaration kept on a frame object, if any."""
    declaration = getattr(frame, "__dict__", {}).get(_ATTRIBUTE)
    return declaration if isinstance(declaration, Declaration) else None


def kept_warnings(frame: object) -> set[str]:
    """Return the set of what was warned of about a frame object, to be added to."""
    known = getattr(frame, "__dict__", {}).get(_WARNINGS)
    if isinstance(known, set):
        return known
    found: set[str] = set()
    object.__setattr__(frame, _WARNINGS, found)
    return found

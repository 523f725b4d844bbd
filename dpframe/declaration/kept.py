"""Where a declaration is kept: on the frame object itself."""

from dpframe.declaration.facts import Declaration
from dpframe.errors import DeclarationError

__all__ = ["declaration_of", "keep_declaration", "kept_declaration"]

_ATTRIBUTE = "_dpframe_declaration"
_MARK = "dpframe_declared"
_DECLARED: set[str] = set()  # names of the expressions that declared collections of Dask stand for


def keep_declaration(frame: object, declaration: Declaration) -> None:
    """Keep a declaration on the frame object itself.

    It survives edits in place, and is not carried to copies, filters and merges: a derived frame
    may mix rows, so it must be declared again. A mark in `attrs` tells such a frame apart. pandas
    carries it along, but not when frames with and without it are merged or concatenated: what
    comes out is as if nothing had ever been declared.
    """
    object.__setattr__(frame, _ATTRIBUTE, declaration)
    attrs = getattr(frame, "attrs", None)
    if isinstance(attrs, dict):  # only frames of pandas have any
        attrs[_MARK] = True
    _DECLARED.update(_expressions(frame)[:1])


def kept_declaration(frame: object) -> Declaration | None:
    """Return the declaration kept on a frame object, if any."""
    declaration = getattr(frame, "__dict__", {}).get(_ATTRIBUTE)
    return declaration if isinstance(declaration, Declaration) else None


def declaration_of(frame: object) -> Declaration:
    """Return the declaration of a frame, an empty one where nothing was declared.

    Raises
    ------
    DeclarationError
        If the frame was derived from a declared one.
    """
    declaration = kept_declaration(frame)
    if declaration is not None:
        return declaration
    if _is_derived(frame):
        raise DeclarationError(
            "this frame was derived from a declared frame (a filter, a copy, a new column list, "
            "what was written to files; with Dask, also what is read anew), and its rows may no "
            "longer be what was declared. To use only some rows, query the declared frame with "
            "where='...'; or declare this frame anew with .dp.declare(...), passing ledger= of the "
            "first one to share its budget."
        )
    return Declaration()


def _is_derived(frame: object) -> bool:
    """Whether a frame shows that it was made of a declared one."""
    for one in (frame, getattr(frame, "_meta", None)):  # the latter of Dask
        attrs = getattr(one, "attrs", None)
        if isinstance(attrs, dict) and attrs.get(_MARK):
            return True
    return not _DECLARED.isdisjoint(_expressions(frame))


def _expressions(frame: object) -> list[str]:
    """Name the expressions that a collection of Dask is made of, its own first; none for others."""
    if not hasattr(type(frame), "expr"):
        return []
    try:
        return [node._name for node in frame.expr.walk()]  # type: ignore[attr-defined]
    except Exception:  # its message may hold values
        raise DeclarationError(
            "Dask cannot name this collection, for it is made of objects in memory that have no "
            "hash. Make it with dask.dataframe.from_map, of a function that reads them."
        ) from None

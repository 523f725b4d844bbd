"""What is declared about a private frame of any kind, as its engine knows the frame."""

from dpframe.declaration.facts import Declaration
from dpframe.declaration.kept import kept_declaration
from dpframe.engines import Frame, engine_for
from dpframe.errors import DeclarationError

__all__ = ["declaration_of"]


def declaration_of(frame: Frame) -> Declaration:
    """Return the declaration of a frame, an empty one where nothing was declared.

    Raises
    ------
    DeclarationError
        If the frame was derived from a declared one, or no engine can read it.
    """
    engine = engine_for(frame)
    declaration = kept_declaration(frame)
    if declaration is not None:
        return declaration
    if engine.is_derived(frame):
        raise DeclarationError(
            "this frame was derived from a declared frame (a filter, a copy, a new column list, "
            "what was written to files; with Dask, also what is read anew), and its rows may no "
            "longer be what was declared. To use only some rows, query the declared frame with "
            "where='...'; or declare this frame anew with .dp.declare(...), passing ledger= of the "
            "first one to share its budget."
        )
    return Declaration()

"""What is declared about a private frame of any kind, as its engine knows the frame."""

from dpframe.certificates.verify import ATTRIBUTE
from dpframe.declaration.facts import Declaration
from dpframe.declaration.kept import kept_declaration
from dpframe.engines import Frame, engine_for
from dpframe.errors import DeclarationError
from dpframe.provenance import is_private


def check_private(frame: Frame) -> None:
    """Check that a frame was not released, and is no diagnosis.

    Raises
    ------
    DeclarationError
        If it carries a certificate or the mark of a diagnosis, or no engine can read it.
    """
    attrs = engine_for(frame).attrs(frame)
    if is_private(attrs):
        raise DeclarationError(
            "this frame is a diagnosis, or was made of one: exact numbers about a private frame, "
            "in which no row is a person any more. Declare and release the private frame itself."
        )
    if ATTRIBUTE not in attrs:
        return
    raise DeclarationError(
        "this frame carries a certificate, so it was released by dpframe: it holds noisy answers "
        "and no private rows, and more noise would protect nobody. Work on it with .dp.interval, "
        ".dp.combine and .dp.denoise, or with .dp.select, .dp.sort_values, .dp.round and other "
        "steps that keep its certificate; all of these cost nothing. pandas also carries attrs "
        "along, so that a private frame may have got the certificate of a released one that it "
        f"was made with: then remove it, del frame.attrs[{ATTRIBUTE!r}], and declare the frame."
    )


def declaration_of(frame: Frame) -> Declaration:
    """Return the declaration of a frame, an empty one where nothing was declared.

    Raises
    ------
    DeclarationError
        If the frame was released, or derived from a declared one, or no engine can read it.
    """
    check_private(frame)
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

"""What calls need of a table: one release, and all that its cells were read off."""

from dpframe.cells.verify import Shown
from dpframe.certificates.certificate import Release, has_rows
from dpframe.errors import QueryError


def whole_release(shown: Shown, what: str) -> Release:
    """Return the only release of a table, of which all cells that are shown are known.

    Raises
    ------
    QueryError
        If there are several or no numbers, or a published table left cells out or rounded them.
    """
    shown.certificate.require_numbers()
    check_whole(shown, what)
    return shown.certificate.release


def check_whole(shown: Shown, what: str) -> None:
    """Refuse what needs all cells as released, of a published table that has not.

    Raises
    ------
    QueryError
        If it left some out, or rounded them.
    """
    check_parts(shown, what)
    published = shown.opened.table.published
    if published is None:
        return
    for label in shown.labels:
        cells, released = published.cells[label]
        if cells < released or published.units.get(label):
            rule = f"{what} needs all cells as released"
            why = f"and this published table has {cells:,} of {released:,}, or rounded ones"
            raise QueryError(f"{rule}, {why}. Call it on the release.")


def check_parts(shown: Shown, what: str) -> None:
    """Refuse what needs the parts of means where a published table has left them out.

    Raises
    ------
    QueryError
        If they were.
    """
    for release in shown.certificate.releases:
        for column in release.columns:
            if not has_rows(column):
                rule = f"{what} needs what column {column.name!r} was read off"
                way_out = "which a published table leaves out: call it on the release"
                raise QueryError(f"{rule}, {way_out}.", label=column.name)

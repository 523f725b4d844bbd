"""Where files go: what is filled into their paths leads to no other folder than the plan says."""

from pathlib import Path

from dpframe.jobs.plan_text import Section, leads_elsewhere, placeholders

_NAMES = ("name", "query")  # the first may be given in the call; tables have names made for files


def place_of(section: Section, text: str, names: dict[str, str]) -> Path:
    """Fill the placeholders of a path of a plan, under the key `files`.

    Parameters
    ----------
    section
        The table that has the key.
    text
        The path as the plan has it.
    names
        What the placeholders stand for that are no values: `name`, `query` and `table`.

    Raises
    ------
    PlanFileError
        If a name leads elsewhere, or all that is filled in does so together.
    """
    filled = section.filled("files", text, **names)
    used = [one for one in _NAMES if one in names and one in placeholders(text)]
    for one in used:
        if leads_elsewhere(names[one]):
            raise section.error(
                f"{{{one}}} is {names[one]!r:.200}: a name in a path must have no '/', '\\' or "
                "'..', which would lead it elsewhere. Give another name, or leave it out of files.",
                "files",
            )
    # only the plan itself has values with folders; of any other, a name could stand there
    values = {**section.source.values, **names}
    plain = {one: value if leads_elsewhere(value) else "x" for one, value in values.items()}
    if "\0" in filled or _shape(filled) != _shape(section.filled("files", text, **plain)):
        raise section.error(
            f"{filled!r:.200} leads elsewhere: no value may be empty or dots alone.", "files"
        )
    return section.source.folder / filled


def _shape(text: str) -> tuple[str, int]:
    """Give what a path starts from, and how often it leads to the folder above."""
    path = Path(text)
    return path.anchor, path.parts.count("..")

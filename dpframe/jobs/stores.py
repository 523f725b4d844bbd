"""Stores of files that a plan names, such as S3: how they are opened, and what is in them.

Their file systems are those of pyarrow, which is imported where it is used: it is optional.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from dpframe.jobs.plan_toml import Section

FILESYSTEMS = {
    "s3": "S3FileSystem",
    "gcs": "GcsFileSystem",
    "azure": "AzureFileSystem",
    "hdfs": "HadoopFileSystem",
}
"""Classes of `pyarrow.fs`, by what a plan calls them."""

_WILDCARD = re.compile(r"[*?\[]")
_SECRET = re.compile(r"key|secret|token|password|credential", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{[A-Za-z_]\w*\}")


def read_store(section: Section) -> Mapping[str, Any]:
    """Read the table `filesystem`: the type, and arguments of the class of pyarrow."""
    table = section.section("filesystem")
    found: dict[str, Any] = {}
    for key, given in table.table.items():
        value = given
        if isinstance(value, str):
            if _SECRET.search(key) and not _VARIABLE.fullmatch(value):
                way = "write ${NAME}, which stands for a variable of the environment"
                raise table.error(f"must not stand in a plan: {way}.", key)
            value = table.fill_text(key, value, environment=True)
        found[key] = value
    return found


def open_store(section: Section, options: Mapping[str, Any]) -> Any:
    """Make the file system; which arguments it has depends on pyarrow.

    Raises
    ------
    PlanFileError
        If this pyarrow has no such file system, or not with these arguments.
    """
    from pyarrow import fs  # slow to import, and not always needed

    more = {key: value for key, value in options.items() if key != "type"}
    name = FILESYSTEMS[options["type"]]
    kind = getattr(fs, name, None)
    if kind is None:
        raise section.error(f"this pyarrow has no {name}.", "filesystem", "type")
    try:
        return kind(**more)
    except (TypeError, ValueError):
        named = ", ".join(more) or "nothing"
        why = f"pyarrow.fs.{name} cannot be made with {named}: see its arguments."
        raise section.error(why, "filesystem") from None


def stored_matches(pattern: str, store: Any) -> list[str]:
    """List the files in a store that a pattern stands for, if it has wildcards; none match a /.

    What follows a ? in an address, such as `s3://bucket/a?region=eu-west-1`, says how it is opened.
    """
    head, mark, options = pattern.partition("?") if store is None else (pattern, "", "")
    wildcard = _WILDCARD.search(head)
    if wildcard is None:
        return [pattern]
    from pyarrow import fs  # slow to import, and not always needed

    folder = head[: wildcard.start()].rpartition("/")[0]
    base = folder
    if store is None:
        store, base = fs.FileSystem.from_uri(f"{folder}{mark}{options}")
    infos = store.get_file_info(fs.FileSelector(base, recursive=True))
    inside = sorted(info.path.removeprefix(base.rstrip("/")) for info in infos)
    wanted = head.removeprefix(folder).split("/")
    return [f"{folder}{one}{mark}{options}" for one in inside if _is_like(one.split("/"), wanted)]


def _is_like(parts: list[str], wanted: list[str]) -> bool:
    """Whether a path is what a pattern says, folder by folder; ** is any number of folders."""
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return any(_is_like(parts[n:], wanted[1:]) for n in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _is_like(parts[1:], wanted[1:])

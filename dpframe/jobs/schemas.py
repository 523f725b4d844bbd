"""The pandera schema that a plan names: in a YAML file, or in a module, which is code."""

import importlib
import io
from pathlib import Path
from typing import Any

from dpframe.errors import a_type
from dpframe.jobs.plan_text import Section

_YAML = (".yaml", ".yml")


def schema_at(section: Section, *, allow_imports: bool) -> Any:
    """Read what the key `schema` names; `None` where it is not given.

    A YAML file is data. A module is code that runs when it is imported, which whoever starts the
    job must have allowed.
    """
    named = section.get("schema", str)
    if named is None:
        return None
    if named.lower().endswith(_YAML):
        return _from_yaml(section, section.source.folder / named)
    module, colon, name = named.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module.split("."), name]):
        raise section.error(
            f'must be a YAML file, "trips.yaml", or "module:Name", got {named!r:.200}.', "schema"
        )
    if not allow_imports:
        raise section.error(
            f"{named!r} imports a module, which runs its code: if you trust the plan and the "
            "module, give --allow-imports. A YAML file runs none.",
            "schema",
        )
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # the module may raise anything
        why = f"{type(error).__name__}: {error}"
        raise section.error(f"{named!r} cannot be imported: {why:.300}.", "schema") from None


def _from_yaml(section: Section, path: Path) -> Any:
    """Read a schema that pandera wrote."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise section.error(f"{path} cannot be read: {why}.", "schema") from None
    try:
        import yaml  # comes with an extra of pandera  # noqa: F401
        from pandera.io.pandas_io import from_yaml  # slow to import, and not always needed
    except ImportError:
        raise section.error(
            "reading a schema from YAML needs PyYAML: pip install 'pandera[io]'.", "schema"
        ) from None
    read: Any = from_yaml
    try:
        return read(io.StringIO(text))
    except Exception as error:  # whatever the file makes of pandera
        raise section.error(
            f"{path} is no schema that pandera wrote with to_yaml ({a_type(error)}).", "schema"
        ) from None

"""A fake of what Windows refuses: to remove or to replace a file that this process has open."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from unittest import mock

_REMOVING = ("unlink", "remove", "rename", "replace")


def _is_open(path: object, folder: int | None) -> bool:
    """Whether a file is open in this process, by the list of Linux."""
    try:
        named = os.stat(path, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    for handle in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/self/fd/{handle}"), named):
                return True
    return False


@contextmanager
def rules_of_windows() -> Iterator[list[str]]:
    """Refuse to remove or replace open files; note each refusal."""
    refused: list[str] = []

    def guarded(name: str):
        act = getattr(os, name)

        def ask(path, *others, **options):
            folder = options.get("dir_fd")
            for place in (path, *others[:1]):
                if _is_open(place, folder):
                    refused.append(f"{name} {place}")
                    raise PermissionError(13, "The process cannot access the file", str(place))
            return act(path, *others, **options)

        return ask

    with mock.patch.multiple(os, **{name: guarded(name) for name in _REMOVING}):
        yield refused

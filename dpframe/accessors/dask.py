"""The `.dp` accessor of Dask collections, there as soon as `dask.dataframe` is imported."""

import importlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from dpframe.accessors.frames import PrivateAccessor

__all__ = ["register_dask_accessor"]

_MODULE = "dask.dataframe"
_NAME = "dp"


def register_dask_accessor() -> None:
    """Register `.dp` on `dask.dataframe.DataFrame`, now or when it is imported.

    Dask itself is not imported, need not be installed, and may be imported before or after.
    """
    if _MODULE in sys.modules:
        _register()
    elif not any(isinstance(finder, _Hook) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Hook())


def _register() -> None:
    """Register the accessor, unless it is there; Dask would warn of a second time."""
    # what is wrong with Dask, or its warning about an accessor of another library that has the same
    # name, is no reason for an import to fail
    with suppress(ImportError, AttributeError, UserWarning):
        kind = importlib.import_module(_MODULE).DataFrame
        if getattr(kind, _NAME, None) is not PrivateAccessor:
            extensions = importlib.import_module(f"{_MODULE}.extensions")
            extensions.register_dataframe_accessor(_NAME)(PrivateAccessor)


class _Hook(MetaPathFinder):
    """Registers the accessor right after the module is loaded, and finds no module itself."""

    def __init__(self) -> None:
        self._asking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders find, with a loader that also registers."""
        if name != _MODULE or self._asking:  # other hooks may ask all finders, as this one does
            return None
        self._asking = True
        try:
            found = (finder.find_spec(name, path, target) for finder in sys.meta_path)
            spec = next((one for one in found if one is not None), None)
        finally:
            self._asking = False
        if spec is not None and spec.loader is not None:
            self._extend(spec.loader)
        return spec

    def _extend(self, loader: Loader) -> None:
        """Let a loader register the accessor once, after it has loaded the module."""
        load = loader.exec_module

        def load_and_register(module: ModuleType) -> None:
            load(module)  # its errors are for whoever imports
            if module.__name__ == _MODULE:  # a loader may be that of other modules, too
                loader.exec_module = load  # type: ignore[method-assign]
                with suppress(ValueError):
                    sys.meta_path.remove(self)
                _register()

        with suppress(AttributeError):  # a loader that cannot be extended loads as always
            loader.exec_module = load_and_register  # type: ignore[method-assign]

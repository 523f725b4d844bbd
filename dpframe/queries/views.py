"""Mappings that cannot be written to, and can be copied and pickled."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

_Key = TypeVar("_Key")
_Value_co = TypeVar("_Value_co", covariant=True)


class View(Mapping[_Key, _Value_co]):
    """A mapping that cannot be written to; `types.MappingProxyType` cannot be pickled.

    Parameters
    ----------
    of
        What is in it.

    Examples
    --------
    >>> import copy
    >>> copy.deepcopy(View({"a": 1}))
    {'a': 1}
    """

    def __init__(self, of: Mapping[_Key, _Value_co]) -> None:
        self._of = dict(of)

    def __getitem__(self, key: _Key) -> _Value_co:
        return self._of[key]

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def __repr__(self) -> str:
        return repr(self._of)

"""Numbers in certificates, one for each row or one for all."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np

from dpframe.certificates.json_records import Limits, Part

_MOST_PLACES = 2**53  # beyond, floats do not tell whole numbers apart
BlockName: TypeAlias = Annotated[str, Limits(pattern="^-?[0-9]+$")]
Base64: TypeAlias = Annotated[
    str, Limits(pattern="^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")
]


@dataclass(frozen=True)
class Packed(Part):
    """One number for each row.

    Parameters
    ----------
    float64
        The numbers in base64: 64-bit floats, little-endian.
    """

    float64: Base64

    @classmethod
    def of(cls, values: np.ndarray) -> "Packed":
        """Write an array."""
        return cls(base64.b64encode(np.asarray(values, "<f8").tobytes()).decode("ascii"))


def pack(values: np.ndarray | float) -> float | Packed:
    """Write a number as it is, and an array as text that `attrs` carries at no cost."""
    if np.ndim(values) == 0:
        return float(values)
    return Packed.of(np.asarray(values))


def unpack(packed: float | Packed) -> float | np.ndarray:
    """Read a number, or an array written by `pack`."""
    if isinstance(packed, Packed):
        return np.frombuffer(base64.b64decode(packed.float64), "<f8")
    return packed


def places_of(packed: Packed) -> np.ndarray:
    """Read positions: whole numbers from 0, no two the same.

    Raises
    ------
    ValueError
        If they are something else; they may come from a file.
    """
    numbers = np.asarray(unpack(packed))
    whole = bool((numbers == np.floor(numbers)).all()) and len(np.unique(numbers)) == len(numbers)
    if not whole or numbers.min(initial=0) < 0 or numbers.max(initial=0) > _MOST_PLACES:
        raise ValueError("positions are whole numbers from 0, each once")
    return numbers.astype(np.intp)


def packed_loadings(
    loadings: Mapping[int, float | np.ndarray], step: float
) -> dict[str, float | Packed]:
    """Write what the noise of the blocks does to something counted in steps, in its units."""
    return {str(block): pack(np.multiply(loading, step)) for block, loading in loadings.items()}

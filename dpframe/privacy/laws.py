"""The laws of noise, by name: a new law is a file, and a row here.

No other module asks for a law by its name: ledgers and certificates write the name, and `law_named`
reads it.
"""

from collections.abc import Mapping
from types import MappingProxyType

from dpframe.errors import CalibrationError
from dpframe.privacy.box import BOX
from dpframe.privacy.gaussian import GAUSSIAN
from dpframe.privacy.laplace import LAPLACE
from dpframe.privacy.law import Law
from dpframe.privacy.staircase import STAIRCASE

LAWS: Mapping[str, Law] = MappingProxyType(
    {law.name: law for law in (GAUSSIAN, LAPLACE, BOX, STAIRCASE)}
)
"""Every law by its name."""


def law_named(name: object) -> Law:
    """Return a law by the name that ledgers and certificates write.

    Raises
    ------
    CalibrationError
        If there is no such law.

    Examples
    --------
    >>> law_named("laplace") is LAPLACE
    True
    """
    if isinstance(name, str) and name in LAWS:
        return LAWS[name]
    names = ", ".join(f'"{law}"' for law in LAWS)
    way_out = "A newer version of dpframe may know it."
    raise CalibrationError.about("law", f"must be one of {names}", name, way_out)


__all__ = ["BOX", "GAUSSIAN", "LAPLACE", "LAWS", "STAIRCASE", "law_named"]

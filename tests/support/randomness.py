"""Where the package takes random bits from outside of a testing block."""

from dpframe.context import SYSTEM

__all__ = ["SYSTEM"]

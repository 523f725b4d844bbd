"""Warnings of careless calls, judged on public facts; of amounts, before anything is charged."""

import sys
import warnings
from fractions import Fraction
from pathlib import Path

from dpframe.context import Context
from dpframe.declaration.facts import Declaration, kept_warnings
from dpframe.errors import DPFrameWarning
from dpframe.privacy.amounts import Budget, Spend, exact

MOST = {"epsilon": 10, "mu": 2, "rho": 2}
"""Amounts above these warn; mu=2 is rho=2, and (11, 1e-6)-DP."""

LEAST_DELTA = Fraction(1, 1000)
"""A delta from here on warns."""

_PACKAGE = str(Path(__file__).resolve().parents[1])
_NO_UNIT = (
    "no privacy unit is declared for this frame, so each row is taken for a person of its own: "
    "somebody with ten rows is protected ten times less. Declare privacy_unit=, the column that "
    "says whom a row belongs to, or say privacy_unit=dpf.EACH_ROW if that is what is meant."
)

_IN_MEMORY = (
    "budget= alone is kept in memory, and forgotten when Python ends: whoever runs this again "
    "spends it again. Give ledger='visits.ledger' beside it, a file that remembers; or, on "
    "purpose, ledger=dpf.Ledger(budget=...) in its place."
)


def warn_of_memory(frame: object, context: Context) -> None:
    """Warn that a budget is kept in memory, once per frame; a test keeps none anywhere.

    Raises
    ------
    DPFrameWarning
        If Python's filters turn it into an error.
    """
    if not context.is_test:
        _warn(frame, {"ledger": _IN_MEMORY}, context)


def warn_of_budget(frame: object, budget: object, context: Context) -> None:
    """Warn of a budget that protects nobody, once per frame and amount.

    What is no budget is left to those who refuse it.

    Raises
    ------
    DPFrameWarning
        If Python's filters turn it into an error.
    """
    if isinstance(budget, Budget):
        spend = Spend.of(epsilon=budget.epsilon, delta=budget.delta)
        _warn(frame, _of_amounts(spend, "budget: "), context)


def warn_of_release(
    frame: object, declaration: Declaration, spend: Spend, context: Context
) -> None:
    """Warn of an amount that protects nobody, and of a unit that was never declared.

    Raises
    ------
    DPFrameWarning
        If Python's filters turn it into an error.
    """
    subjects = _of_amounts(spend, "")
    if declaration.privacy_unit is None:
        subjects["privacy_unit"] = _NO_UNIT
    if subjects:
        _warn(frame, subjects, context)


def _of_amounts(spend: Spend, where: str) -> dict[str, str]:
    """Say what is wrong with an amount, by the name of its parameter."""
    subjects: dict[str, str] = {}
    most = MOST.get(spend.kind)
    if most is not None and spend.amount > most:
        subjects[spend.kind] = (
            f"{where}{spend.kind}={float(spend.amount):g} is too large to protect anybody. Choose "
            f"{spend.kind} <= {most}; common choices of epsilon lie between 0.01 and 10."
        )
    if spend.delta is not None and exact(spend.delta) >= LEAST_DELTA:
        subjects["delta"] = (
            f"{where}delta={spend.delta:g} is too large: with it, one person in "
            f"{int(1 / exact(spend.delta)):,} may be published as they are. Choose delta far below "
            "one over the number of people, 1e-6 for instance."
        )
    return subjects


def _warn(frame: object, subjects: dict[str, str], context: Context) -> None:
    """Warn of what was not warned of yet; what a filter makes an error is to be warned of again."""
    warned = kept_warnings(frame, context)
    for name, message in subjects.items():
        if name not in warned:
            warn(message)
            warned.add(name)


def warn(message: str) -> None:
    """Warn at the line that called the package.

    Raises
    ------
    DPFrameWarning
        If Python's filters turn it into an error.
    """
    warnings.warn(message, DPFrameWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """Count how far up the line is that called the package."""
    level, frame = 0, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level

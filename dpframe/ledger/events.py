"""Losses as events of dp_accounting, which is imported when they are asked for."""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from dpframe.errors import AlreadyReleasedError, BudgetExceededError, DPFrameError
from dpframe.ledger.chain import Chain
from dpframe.ledger.log import Entry
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.rounding import round_up


def refuse_repeated(name: str | None, seen: Chain) -> None:
    """Refuse a name that an earlier release has."""
    first = None if name is None else seen.log.with_name(name)
    if first is not None:
        raise AlreadyReleasedError(
            f"name={name!r} was released already, at {first.released_at}, as {first.release_id}: "
            "nothing was charged. If this is another release, give it another name."
        )


def refuse_recorded(release_id: str, seen: Chain) -> None:
    """Refuse the identifier of an earlier release: certificates are looked up by it."""
    first = seen.log.with_id(release_id)
    if first is not None:
        raise AlreadyReleasedError(
            f"release_id={release_id!r} was charged already, at {first.released_at}: nothing was "
            "charged. Give each release an identifier of its own, uuid.uuid4().hex for instance."
        )


def refuse_outdated(entry: Entry, share: PrivacyLoss) -> None:
    """Refuse a share that others made smaller after it was planned."""
    if entry.loss.epsilon > share.epsilon or entry.loss.mu_squared > share.mu_squared:
        raise BudgetExceededError(
            f"what share={float(entry.spend.amount):.6g} stands for became less while this release "
            "was planned, for another one was charged: nothing was charged. Ask again."
        )


def dp_event(losses: Iterable[PrivacyLoss]) -> Any:
    """Describe losses to the accountants of dp_accounting.

    A Gaussian loss of mu becomes `GaussianDpEvent(1 / mu)`, its noise multiplier rounded down. A
    pure epsilon becomes `DiscreteLaplaceDpEvent(epsilon, 1)`, rounded up: its loss is epsilon or
    -epsilon, as that of randomized response, which dominates every epsilon-DP mechanism (Kairouz,
    Oh and Viswanath 2015). `LaplaceDpEvent` would be that of continuous noise, which loses less.
    An extra delta becomes `EpsilonDeltaDpEvent(0, delta)` where the installed dp_accounting
    knows it, and else `UnsupportedDpEvent()`, at which its accountants refuse rather than forget
    the delta. Equal losses are grouped.

    Returns
    -------
    dp_accounting.DpEvent
        The composed event; `NoOpDpEvent()` where nothing was spent.

    Raises
    ------
    DPFrameError
        If dp_accounting is not installed.
    """
    module = _events()
    events = [
        module.SelfComposedDpEvent(event, count) if count > 1 else event
        for loss, count in Counter(losses).items()
        for event in _of_one(loss, module)
    ]
    return module.ComposedDpEvent(events) if events else module.NoOpDpEvent()


def _of_one(loss: PrivacyLoss, module: Any) -> list[Any]:
    events = []
    if loss.mu_squared:
        events.append(module.GaussianDpEvent(_float_below(1 / Fraction(loss.mu))))
    if loss.epsilon:
        events.append(module.DiscreteLaplaceDpEvent(_float_above(loss.epsilon), 1))
    if loss.delta:
        plain = getattr(module, "EpsilonDeltaDpEvent", None)
        events.append(plain(0.0, float(loss.delta)) if plain else module.UnsupportedDpEvent())
    return events


def _float_above(value: Fraction) -> float:
    """Round up to a float, taken as the binary number that it is to others."""
    return round_up(float(value), lambda number: Fraction(number) >= value)


def _float_below(value: Fraction) -> float:
    number = float(value)
    while Fraction(number) > value:
        number = math.nextafter(number, 0.0)
    return number


def _events() -> Any:
    try:
        from dp_accounting import dp_event  # optional, and slow to import
    except ImportError as error:
        raise DPFrameError(
            "events need dp_accounting, which is not installed: pip install 'dpframe[accounting]'."
        ) from error
    return dp_event

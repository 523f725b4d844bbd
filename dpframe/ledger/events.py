"""What was charged, as events for the accountants of dp_accounting."""

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from dpframe import errors
from dpframe.privacy.amounts import PrivacyLoss, float_above, float_below


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
    try:
        from dp_accounting import dp_event as module  # optional, and slow to import
    except ImportError as error:
        raise errors.DPFrameError(
            "events need dp_accounting, which is not installed: "
            f"{errors.pip_install('accounting')}."
        ) from error
    events = [
        module.SelfComposedDpEvent(event, count) if count > 1 else event
        for loss, count in Counter(losses).items()
        for event in _of_one(loss, module)
    ]
    return module.ComposedDpEvent(events) if events else module.NoOpDpEvent()


def _of_one(loss: PrivacyLoss, module: Any) -> Iterator[Any]:
    """Describe one loss; floats are taken as the binary numbers that they are to others."""
    if loss.mu_squared:
        yield module.GaussianDpEvent(float_below(1 / Fraction(loss.mu)))
    if loss.epsilon:
        yield module.DiscreteLaplaceDpEvent(float_above(loss.epsilon), 1)
    if loss.delta:
        plain = getattr(module, "EpsilonDeltaDpEvent", None)
        above = float_above(loss.delta)
        yield plain(0.0, above) if plain else module.UnsupportedDpEvent()

"""Print what many small releases, and other orders of releases, get of a ledger.

    python benchmarks/ledger_orders.py

Of equal pure releases, the epsilon of each is compared with that of the best filter known, chosen
for their number: one Renyi order with all of delta, or the sum of epsilons. Other orders of
releases are compared with the pots that hold after any other first charge: amounts of all releases
are scaled together. Every amount is found by bisection of what a ledger decides. Nothing is drawn.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dpframe.privacy.amounts import Budget, PrivacyLoss, exact
from dpframe.privacy.pots import Pots, settle_pots
from dpframe.privacy.renyi import pure_of_divergence, renyi_limit

BUDGETS = [Budget(*both) for both in itertools.product((0.3, 1, 3), (1e-4, 1e-6, 1e-9))]
NUMBERS = (1, 2, 5, 10, 15, 20, 50, 200, 1000)
ORDERS = [1 + Fraction(k * k, 400) for k in range(9, 600, 2)]
HALVINGS = 24

Order = list[tuple[str, float, int]]
"""Kinds of losses, parts of epsilon or of mu, and how often each is charged in a row."""
History = list[tuple[PrivacyLoss, int]]
"""Losses, each with how often it is charged in a row."""


def is_held(pots: Pots, history: History) -> bool:
    """Tell whether a pot is within its limit after all."""
    begun = pots.begun_with(history[0][0])
    return any(True for _ in begun.filled([(begun.price(loss), n) for loss, n in history]).live)


def largest(pots: Pots, budget: Budget, order: Order) -> float:
    """Find the largest scale at which an order of releases is held."""
    low, high = Fraction(0), Fraction(8)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if is_held(pots, scaled(budget, order, middle)) else (low, middle)
        )
    return float(low)


def best_known(budget: Budget, number: int) -> float:
    """Return the epsilon of each of some equal pure releases under the best filter."""
    epsilon, delta = exact(budget.epsilon), budget.delta
    limits = [(order, renyi_limit(budget.epsilon, delta, order)) for order in ORDERS]
    by_order = (pure_of_divergence(limit / number, order) for order, limit in limits if limit > 0)
    return float(max(epsilon / number, *by_order))


def orders(budget: Budget) -> Iterator[tuple[str, Order]]:
    """Give orders of releases."""
    yield "gaussian alone", [("gaussian", 1, 1)]
    for part, number in itertools.product((0.2, 0.4, 0.6, 0.8), (1, 10, 100)):
        small = (1 - part) / number
        yield f"pure {part}, {number} pure", [("pure", part, 1), ("pure", small, number)]
        yield f"gaussian {part}, {number} pure", [("gaussian", part, 1), ("pure", small, number)]
    for number in (2, 10, 100):
        each = ("pure", 0.5 / number, number), ("gaussian", 0.7 / number**0.5, number)
        yield f"{number} of each in turn, gaussian first", list(each[::-1])
        yield f"{number} of each in turn, pure first", list(each)
    for first, part in itertools.product((0.07, 0.05, 0.02, 0.005), (0.2, 0.4, 0.6, 0.8)):
        for large in ("pure", "gaussian"):
            start = [("pure", first, 1), (large, part, 1)]
            yield f"pure {first}, {large} {part}, gaussian", [*start, ("gaussian", 1 - part, 1)]
            yield f"pure {first}, {large} {part}, 10 pure", [*start, ("pure", 0.1 * (1 - part), 10)]


def scaled(budget: Budget, order: Order, scale: Fraction) -> History:
    """Give the losses of an order of releases."""
    whole = settle_pots(budget).whole
    return [
        (PrivacyLoss(epsilon=scale * exact(budget.epsilon) * exact(part)), number)
        if kind == "pure"
        else (PrivacyLoss(mu_squared=scale**2 * whole * exact(part) ** 2), number)
        for kind, part, number in order
    ]


def main() -> None:
    """Print a line for every budget and number, and the order of releases that loses most."""
    for budget in BUDGETS:
        now = settle_pots(budget)
        before = replace(now, many=(), small=Fraction(0))
        print(budget)
        for number in NUMBERS:
            order, best = [("pure", 1.0, number)], best_known(budget, number) / budget.epsilon
            reached = [largest(pots, budget, order) / best for pots in (now, before)]
            print("  n = {:<5}{:.3f} of the best known, {:.3f} before".format(number, *reached))
        ratios = {}
        for name, order in orders(budget):
            new, old = (largest(pots, budget, order) for pots in (now, before))
            ratios[name] = new / old
        for name in sorted(ratios, key=ratios.__getitem__)[:3]:
            print(f"  {name}: {ratios[name]:.4f} of before")


if __name__ == "__main__":
    main()

"""The part about ledgers of the page of audits: what the best adaptive adversary reaches."""

from support.adversary import (
    BUDGETS,
    AfterASmallOne,
    AfterTheFirst,
    AnySplit,
    DeltaOnTheFly,
    FullDelta,
    MoreForMany,
    Reviving,
    even_steps,
    mixed_steps,
    worst_delta,
)

SECTION = """
## Spending that depends on answers

A dynamic program plays an adversary who looks at each answer before choosing the next amount and
mechanism. It plays against the real decisions of the
[ledger](../../docs/privacy-promise.md#how-spending-is-added-up): pots, prices and limits. It knows
its privacy loss so far, and stops, takes a step, or jumps with all that is left.

The table shows the delta that it reaches, for everything together at the budget's epsilon, **in
parts of the budget's delta: above 1 would refute the promise**. Grids are off by less than 0.3 %,
upwards.

{table}

| column | the adversary plays |
|---|---|
| *40 steps* | Gaussian steps of 1/40 of the budget, and jumps |
| *both kinds* | Gaussian steps of 1/12 and 1/3 of mu^2, Laplace ones of 1/16 and 1/4, jumps |
| *after a small one* | the same, with the pots that a small first charge of pure noise settles |

With 120 steps it is 0.87 at the first budget and 0.88 at the last, on a coarser grid. A first
release that takes the whole budget at once reaches 1.00.

The other columns are rules that look right and are not, against 40 steps (*more for many*: both
kinds, after a small one):

| column | the broken rule |
|---|---|
| *any split* | any split of the losses that fits counts, chosen in hindsight |
| *delta on the fly* | extra deltas are taken from what Gaussian losses leave |
| *all of delta each* | each pot has all of delta |
| *reviving pots* | a pot skips a loss that does not fit, and goes on |
| *more for many* | the order for many small releases has all of delta, as well |
"""

HEADER = (
    "| budget | 40 steps | both kinds | after a small one | any split | delta on the fly | "
    "all of delta each | reviving pots | more for many |"
)


def ledger_lines() -> list[str]:
    """Play against the ledger and against the broken rules: lines of the table."""
    lines = []
    for budget in BUDGETS:
        steps = even_steps(budget, 40)
        reached = [
            worst_delta(AfterTheFirst(budget), steps),
            worst_delta(AfterTheFirst(budget), *mixed_steps(budget)),
            worst_delta(AfterASmallOne(budget), *mixed_steps(budget)),
            *(
                worst_delta(rule(budget), steps)
                for rule in (AnySplit, DeltaOnTheFly, FullDelta, Reviving)
            ),
            worst_delta(MoreForMany(budget), *mixed_steps(budget)),
        ]
        cells = [f"{value:.3f}" if value < 100 else f"{value:,.0f}" for value in reached]
        lines.append(f"| ({budget.epsilon:g}, {budget.delta:g}) | {' | '.join(cells)} |")
    return lines

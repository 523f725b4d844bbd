"""Faults that are planted in the real code, and the rules that catch them."""

from typing import NamedTuple

import pytest
from support.checking import let_all_charges_pass
from support.designing import keep_no_plans
from support.replay_frames import BOUNDS, DAYS, NOON, ZONES, Pair, Row, in_memory
from support.replay_rules import Finding, faults_of_noise, replay

import dpframe as dpf
from dpframe.errors import PrivacyTestError

CAPPED = {"max_rows": 4, "max_groups": 2}


def row(who, zone="A", fare=1.0, **cells):
    """Make a row of a unit; all cells are plain but those given."""
    plain = Row(who, zone, 0, fare, 1, True, False, NOON)
    return plain._replace(**cells)


OTHERS = [row(who, zone) for who, zone in enumerate("AABBCCA", start=10)]
"""Units of one row each, an odd number of them."""


def asking(
    method, *given, relation="add_remove", caps=None, inferred=False, twice=False, **options
):
    """Return what releases one call, from rows; with `caps=None`, every row is a unit."""
    unit = {"privacy_unit": dpf.EACH_ROW} if caps is None else {"privacy_unit": "who", **caps}
    spend = {"delta": 1e-3} if options.get("mechanism") in ("gaussian", "correlated") else {}
    options = {"epsilon": 1, **spend, **options}

    def ask(rows):
        frame = in_memory(rows, inferred=inferred)
        frame.dp.declare(
            keys={"zone": ZONES, "day": DAYS},
            bounds=BOUNDS,
            neighboring=relation,
            budget=dpf.Budget(epsilon=9, delta=0.2, discovery=0.1),
            **unit,
        )
        made = [getattr(frame.dp, method)(*given, **options) for _ in range(1 + twice)]
        return made if twice else made[0]

    return ask


def pair(mine, theirs=(), others=OTHERS):
    """Make a pair of neighbors."""
    return Pair("of one unit", list(others), list(mine), list(theirs))


class Fault(NamedTuple):
    """Something wrong, planted in the code, and a pair on which a rule shows it.

    Parameters
    ----------
    name
        What is wrong.
    plant
        Plants it, given pytest's `MonkeyPatch`.
    ask
        From rows to a release.
    pair
        Neighbors.
    rule
        The rule that it breaks.
    """

    name: str
    plant: object
    ask: object
    pair: Pair
    rule: str

    def found(self, *, planted):
        """Replay it, planted or not, and return what breaks a rule."""
        with pytest.MonkeyPatch.context() as patch:
            keep_no_plans(patch)
            let_all_charges_pass(patch)
            if planted:
                self.plant(patch)
            return list(_found(self.ask, self.pair))


def _found(ask, pair):
    yield from replay(ask, pair).found
    for rows in (pair.whole, pair.theirs):
        try:
            yield from (Finding("noise", one) for one in faults_of_noise(ask, rows))
        except PrivacyTestError as fault:
            yield Finding(fault.rule, str(fault))
        except dpf.errors.DPFrameError:  # that a release fails, another rule says
            pass

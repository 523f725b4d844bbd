"""Rows for cases of features: a frame like any other, and units that do the most harm."""

import itertools
import math
from functools import cache

import numpy as np
import pandas as pd
from support.feature_tables import CAPS, FLAGS, KEYS

COLUMNS = ("u", "w", "g", "h", "x", "y", "wt", *FLAGS)
DTYPES = dict.fromkeys("uwh", np.int64) | dict.fromkeys(("x", "y", "wt"), float)
DTYPES |= {"g": object} | dict.fromkeys(FLAGS, bool)
_GROUPS = KEYS["g"]
_BEYOND = 12  # rows, more than any caps allow
_OTHERS = 12  # units of two rows
_MINE = {"row": (1, 1), "one column": (1, 1), "two columns": (30, 1)}
"""Columns of the unit that is tried; of another unit, one of the two columns is the same."""

_LOW, _HIGH, _BETWEEN = -3.0, 6.0, 0.5
_BINS = (-2.0, 1.5, 5.0)
_VALUES = (
    # x, y, which flags are true
    (_HIGH, 4.0, "two"),
    (_LOW, 4.0, "none"),
    (_HIGH, 0.0, "all"),
    (_LOW, 0.0, "all"),
    (1.0, 4.0, "others"),
    (math.nan, 4.0, "none"),
    (9.0, math.nan, "two"),
    (2.0, 2.5, "none"),
    (_BETWEEN, 4.0, "all"),
)
_TRUE = {
    "all": (True, True, True, True),
    "none": (False, False, False, False),
    "two": (True, True, False, False),
    "others": (False, False, True, True),
}
_ANY_X = (-9.0, -3.0, -2.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.25, 2.5, 5.0, 6.0, 9.0, math.nan)
_ANY_Y = (-1.0, 0.0, 1.0, 1.5, 2.0, 2.5, 4.0, math.nan)
_ANYWHERE = 0.3  # how often a random unit is in any cells
_FEW = 2  # of the values above, with placements that matter less


def others():
    """Rows of other people: two each, in one cell and one bin, with weights and missing values."""
    rows = [_other(unit, half) for unit in range(_OTHERS) for half in range(2)]
    half = (30, 2, "a", 0, 1.0, 2.0, 1.0, True, False, False, False)  # of one column of mine
    return [*rows, half, half]


def _other(unit, half):
    """One of two rows of another unit; at most two flags are true."""
    row = 2 * unit + half
    x = math.nan if unit == 5 else unit * 5 % 8 - 1.75 + half / 4
    flags = [at in (row % 4, unit % 3) for at in range(len(FLAGS))]
    return 10 + unit, 1, _GROUPS[unit % 8], unit % 2, x, row * 3 % 4 + 0.5, row % 3 + 1.0, *flags


def frame_of(rows, *, alone=False):
    """Make a frame of some rows, beside those of others if they are not alone."""
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    own = {
        name: np.array(values, DTYPES[name]) for name, values in zip(COLUMNS, columns, strict=True)
    }
    if not alone:
        own = {name: np.concatenate([kept, own[name]]) for name, kept in _kept().items()}
    return pd.DataFrame(own, copy=False)


@cache
def _kept():
    """Columns of others."""
    columns = zip(*others(), strict=True)
    return {name: np.array(own, DTYPES[name]) for name, own in zip(COLUMNS, columns, strict=True)}


def _unit(case, cells, *values, weight=3.0):
    """One unit with a row in each of some cells, of one value, or of several in turn."""
    who = _MINE[case["unit"]]
    rows = zip(cells, itertools.cycle(values), strict=False)
    return [
        (*who, _GROUPS[cell], cell % 2, x, y, weight, *_TRUE[flags]) for cell, (x, y, flags) in rows
    ]


def _filled(case):
    """Cells of a unit that fills its caps: as many rows in each as there may be."""
    caps = CAPS[case["caps"]]
    rows = caps.get("max_rows", _BEYOND)
    each = min(caps.get("max_rows_per_group", rows), rows)
    cells = [cell for cell in range(caps.get("max_groups", len(_GROUPS))) for _ in range(each)]
    return cells[:rows]


def _spread(case):
    """Cells of a unit in as many of them as caps allow."""
    caps = CAPS[case["caps"]]
    rows = caps.get("max_rows", _BEYOND)
    return list(range(min(rows, caps.get("max_groups", len(_GROUPS)))))


def adversaries(case):
    """Units chosen for the caps of a case: what one unit may be, the absent one left out."""
    if case["unit"] == "row":
        places, few = [[0], [7]], []
    else:
        last = len(_GROUPS) - 1
        filled, spread = _filled(case), _spread(case)
        places = [filled, [last - cell for cell in filled]]
        few = [spread, [last - cell for cell in spread], [0] * _BEYOND]
        few += [[cell % 8 for cell in range(_BEYOND)]]
    if case["relation"] == "add_remove":
        places, few = places[:1], few[::2] + few[3:]
    units = [_unit(case, *chosen) for chosen in itertools.product(places, _VALUES)]
    if case["unit"] != "row":
        mixed = [(x, *_VALUES[0][1:]) for x in _BINS]
        units += [_unit(case, cells, *mixed) for cells in (places[0], few[0])]
    weighty = itertools.product(few, _VALUES[:_FEW])  # beyond the largest weight
    return [*units, *(_unit(case, *chosen, weight=7.0) for chosen in weighty)]


def random_unit(case, dice):
    """Any unit: in one cell, in some in turn, or in any, with rows of one kind or of several."""
    rows = 1 if case["unit"] == "row" else dice.randint(1, _BEYOND)
    groups = dice.randint(1, len(_GROUPS))
    cells = [cell % groups for cell in range(rows)]
    if dice.random() < _ANYWHERE:
        cells = dice.choices(range(len(_GROUPS)), k=rows)
    kinds = [
        (dice.choice(_ANY_X), dice.choice(_ANY_Y), dice.choice([*_TRUE]))
        for _ in range(dice.choice((1, 2, rows)))
    ]
    return _unit(case, cells, *kinds, weight=dice.choice((0.0, 1.3, 3.0)))


def beyond(case):
    """One unit with more rows, in more groups, than any caps allow."""
    rows = 1 if case["unit"] == "row" else _BEYOND
    return _unit(case, [cell % len(_GROUPS) for cell in range(rows)], _VALUES[0])


def beside(case):
    """Units that move nothing: of another part, or in no declared group."""
    rows = _unit(case, [0], _VALUES[0])
    elsewhere = [(*row[:1], 2, *row[2:]) for row in rows] if case["part"] == "yes" else []
    nowhere = [(*row[:2], "none", 9, *row[4:]) for row in rows]
    return nowhere, elsewhere

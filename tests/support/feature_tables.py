"""What cases of features ask: declarations, queries, amounts; and what is true of a frame."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pandera.pandas as pa
from support.features import OF_MARGINS

import dpframe as dpf

FLAGS = ("b0", "b1", "b2", "b3")
PAIRS = pd.DataFrame(
    [(g, h) for g in "abcdegh" for h in (0, 1) if h == 0 or g in "bcg"], columns=["g", "h"]
)
"""Groups that rows can have; `f` is none of them."""
KEYS = {"g": list("abcdefgh"), "h": [0, 1], **{flag: [False, True] for flag in FLAGS}}
SCHEMA = pa.DataFrameSchema({flag: pa.Column(bool) for flag in FLAGS})
FILL, HEAVIEST, MOST_TRUE, ROWS_KNOWN = 6.0, 3, 2, 5
BOUNDS = {"around 0": (-3, 6), "above 0": (2, 6)}
EDGES = [-3, 0, 2, 6]
EXCLUSIVE = ("x < 1", "x == 1", "x > 1")
OVERLAPPING = ("x < 2.5", "x > -1", "y > 1")
ONE = "y > 1"

CAPS = {
    "rows": {"max_rows": 4},
    "rows and groups": {"max_rows": 4, "max_groups": 2},
    "groups of some rows": {"max_groups": 2, "max_rows_per_group": 2},
    "all": {"max_rows": 5, "max_groups": 3, "max_rows_per_group": 2},
    "none": {},
}
OTHER_CAPS = {"max_rows": 2, "max_groups": 1, "max_rows_per_group": 2}
UNIT = {"row": dpf.EACH_ROW, "one column": "u", "two columns": ["u", "w"]}
BY = {"nothing": (), "one": ("g",), "two": ("g", "h")}
_FORMS = {
    "histogram": dpf.histogram,
    "ranges": dpf.ranges,
    "regression": dpf.regression,
    "units": dpf.units,
    "count": dpf.count,
    "sum": dpf.sum,
}
_OF_COLUMNS = {"variance": dpf.var, "mean": dpf.mean, "sum": dpf.sum}


@dataclass(frozen=True)
class Asked:
    """A table, as data.

    Parameters
    ----------
    form
        The function that asks for it.
    by
        Its grouping columns.
    outputs
        By name, what is computed of which column, of rows that meet which condition.
    where
        Which rows count at all.
    options
        Other arguments.
    """

    form: str
    by: tuple[str, ...]
    outputs: dict[str, tuple[str, str | None, str | None]]
    where: str | None = None
    options: dict[str, object] | None = None
    weights: str | None = None

    @property
    def query(self):
        """The query that asks for it."""
        options = self.options or {}
        if self.form == "margins":
            caps = {"max_rows": options["max_rows"]} if "max_rows" in options else {}
            columns, ways = ["g", "h"], options["ways"]
            keys = PAIRS if self.is_possible else None
            parts = self._parts()
            return dpf.margins(columns, ways, where=self.where, keys=keys, **caps, **parts)
        arguments = {"by": list(self.by) or None, "where": self.where, **options}
        if self.form == "aggregate":
            return dpf.aggregate(**arguments, **self._parts())
        if self.weights is not None:
            arguments["weights"] = self.weights
        return _FORMS[self.form](*self._first_arguments(), **arguments)

    @property
    def is_possible(self):
        """Whether some cells alone can hold rows."""
        return bool((self.options or {}).get("possible"))

    def _first_arguments(self):
        match self.form:
            case "histogram" | "ranges":
                return "x", EDGES
            case "regression":
                return "y", ["x"]
            case "sum":
                return ([column for _, column, _ in self.outputs.values()],)
        return ()

    def _parts(self):
        return {name: _part(*asked, self.weights) for name, asked in self.outputs.items()}


def _part(kind, column, where, weights):
    """One output of an aggregate."""
    weighted = {} if weights is None else {"weights": weights}
    match kind:
        case "count":
            return dpf.count(where=where, **weighted)
        case "rate":
            return dpf.rate(column, where=where, **weighted)
        case "covariance":
            return dpf.cov("x", "y", where=where)
        case "variance":
            return dpf.var(column, where=where)
    return _OF_COLUMNS[kind](column, where=where, **weighted)


def tables_of(case):
    """The tables that a case asks for, by name."""
    first = _table(case, BY[case["by"]])
    other_sizes = _table(case, ("h",) if case["by"] == "nothing" else ())
    if case["kind"] == "across":
        return _across(case)
    others = {
        "one": {},
        "joined": {"b": replace(_plain(case, first.by), where=first.where)},
        "alike": {"b": replace(first, where=None if case["where"] == "one" else ONE)},
        "of other sizes": {"b": other_sizes},
        "of other caps": {"b": replace(first, options=(first.options or {}) | _caps(first))},
        "three": {"b": other_sizes, "c": _plain(case, ())},
    }
    tables = {"a": first, **others[case["tables"]]}
    # what moves less comes first: a plan that took it for the others would charge too little
    others_less = case["by"] != "nothing" and case["kind"] not in OF_MARGINS
    reverse = others_less or case["tables"] == "of other caps"
    return dict(reversed(tables.items())) if reverse else tables


def _caps(table):
    """Caps other than those declared; rows in a group change nothing for units."""
    return {"max_groups": 1} if table.form == "units" else OTHER_CAPS


def _plain(case, by):
    """A count, weighted if the case is."""
    return Asked("count", by, {"count": ("count", None, None)}, weights=_weights(case))


def _across(case):
    """Counts by different columns."""
    several = {"exclusive": EXCLUSIVE, "overlapping": OVERLAPPING, "one": (ONE,) * 3}
    conditions = several.get(case["where"], (None,) * 3)
    by = {"nothing": ((), ("g",), ("h",)), "one": (("g",), ("h",), ("b0",))}
    sets = by.get(case["by"], (("g", "h"), ("h", "b0"), ("b1",)))
    outputs = {"count": ("count", None, None)}
    return {
        name: Asked("count", own, outputs, where)
        for name, own, where in zip("abc", sets, conditions, strict=True)
    }


def _weights(case):
    return "wt" if case["weights"] == "yes" else None


def _table(case, by):
    """The table of a kind."""
    kind, where = case["kind"], ONE if case["where"] == "one" else None
    weights = _weights(case)
    options = {"n": ROWS_KNOWN} if case["known"] == "yes" else {}
    match kind:
        case "histogram" | "ranges" | "units" | "regression":
            outputs = {kind: (kind, None, None)}
            return Asked(kind, by, outputs, where, options, weights)
        case "few true":
            outputs = {flag: ("sum", flag, None) for flag in FLAGS}
            return Asked("sum", by, outputs, where, {"max_true": MOST_TRUE, **options})
    several = {"exclusive": EXCLUSIVE, "overlapping": OVERLAPPING}.get(case["where"])
    outputs = _outputs(kind, several, own=where)
    if kind in OF_MARGINS:
        ways = {"ways": 1 if case["by"] == "one" else 2, "possible": kind == "possible"}
        return Asked("margins", by, outputs, where, ways, weights)
    if options and several is None:
        return Asked("sum", by, outputs, where, options, weights)
    if kind == "count" and several is None:
        return Asked("count", by, {"count": ("count", None, None)}, where, None, weights)
    if kind == "several":
        where = None
    return Asked("aggregate", by, outputs, where, None, weights)


_OF_ONE_CONDITION = {
    "count": {"n": ("count", None)},
    "across": {"n": ("count", None)},
    "sum": {"s": ("sum", "x")},
    "sums": {"s": ("sum", "x"), "t": ("sum", "y")},
    "mean": {"m": ("mean", "x")},
    "several": {"m": ("mean", "x")},
    "variance": {"v": ("variance", "x")},
    "covariance": {"c": ("covariance", "x")},
    "rates": {"r": ("rate", "y > 2")},
    "margins": {"n": ("count", None)},
    "possible": {"n": ("count", None)},
}
_BESIDE = {
    "several": {"n": ("count", None), "t": ("sum", "y")},
    "variance": {"w": ("mean", "x")},
    "rates": {"q": ("rate", "x > 0")},
    "margins": {"s": ("sum", "x")},
    "possible": {"s": ("sum", "x")},
}


def _outputs(kind, several, own):
    """Outputs of every condition; of a single one, with others beside them."""
    one = _OF_ONE_CONDITION[kind]
    if several is None:
        where = own if kind == "several" else None
        named = {name: (*asked, where) for name, asked in one.items()}
        return named | {name: (*asked, None) for name, asked in _BESIDE.get(kind, {}).items()}
    found = {
        f"{name}{at}": (*asked, where)
        for at, where in enumerate(several)
        for name, asked in one.items()
    }
    return found | ({"t": ("sum", "y", None)} if kind == "several" else {})


def request_of(case):
    """What a case asks: a query, or several by name."""
    tables = tables_of(case)
    if len(tables) == 1:
        return next(iter(tables.values())).query
    return {name: table.query for name, table in tables.items()}


def facts_of(case):
    """What a case declares, but for a budget."""
    missing = {"keep": {}, "fill": {"x": FILL}, "drop": {"x": "drop"}}[case["missing"]]
    return {
        "keys": KEYS,
        "bounds": {"x": BOUNDS[case["bounds"]], "y": (0, 4), "wt": (0, HEAVIEST)},
        "missing": missing,
        "neighboring": case["relation"],
        "privacy_unit": UNIT[case["unit"]],
        **CAPS[case["caps"]],
    }


def options_of(case):
    """How much a case spends, and on which mechanism."""
    kind, amount = case["amount"].split()
    spend = {kind: float(amount)}
    gaussian = case["law"] in ("gaussian", "correlated") or case["amount"] == "epsilon 1"
    if kind == "epsilon" and gaussian:
        spend["delta"] = 1e-6
    return spend | {"mechanism": case["law"]} | ({"part": 1} if case["part"] == "yes" else {})


def declared(case, frame):
    """Declare what is public about a frame."""
    facts = facts_of(case)
    if case["part"] == "yes":
        facts["ledger"] = dpf.Ledger(budget=dpf.Budget(epsilon=90, delta=1e-5), part="w")
    frame.dp.declare(SCHEMA, **facts)
    return frame


def true_tables(table, frame, case):
    """What is true of a frame, from pandas alone: outputs by cell, for every set of columns.

    Values are on the grid, and every unit has fewer rows than caps allow.
    """
    rows = frame[frame["w"] == 1] if case["part"] == "yes" else frame
    values = rows["x"].clip(*BOUNDS[case["bounds"]])
    read = any("x" in (kind, column) for kind, column, _ in table.outputs.values())
    if case["missing"] == "fill":
        values = values.fillna(FILL)
    rows = rows.assign(clipped=values, counts=1 if table.weights is None else rows["wt"])
    if case["missing"] == "drop" and read:
        rows = rows[rows["clipped"].notna()]
    if table.where is not None:
        rows = rows.query(table.where)
    sets = [table.by]
    if table.form == "margins":
        ways = (table.options or {})["ways"]
        sets = [(), ("g",), ("h",), ("g", "h")][: 3 if ways == 1 else 4]
        if table.is_possible:
            rows = rows.merge(PAIRS)
    return {by: _true_table(table, rows, by, case) for by in sets}


def _true_table(table, rows, by, case):
    """One column for each output, one row for each cell, in the order of the keys."""
    columns = {}
    for name, (kind, column, where) in table.outputs.items():
        own = rows if where is None else rows.query(where)
        keys = list(by)
        if kind in ("histogram", "ranges"):
            own = own.assign(bin=pd.cut(own["x"], EDGES, labels=False))
            keys = [*keys, "bin"]
        axes = [range(len(EDGES) - 1) if key == "bin" else KEYS[key] for key in keys]
        cells = pd.MultiIndex.from_product(axes) if axes else pd.Index([0])
        if table.is_possible and axes:
            cells = pd.MultiIndex.from_frame(PAIRS[keys].drop_duplicates())
        groups = dict(iter(own.groupby(keys))) if keys else {0: own}
        named = {_cell(key): part for key, part in groups.items()}
        nothing = own.iloc[:0]
        columns[name] = [
            _true_value(kind, column, named.get(_cell(cell), nothing), case) for cell in cells
        ]
    return pd.DataFrame(columns)


def _cell(key):
    return key if isinstance(key, tuple) else (key,)


def _true_value(kind, column, rows, case):
    """The value of an output in one cell; NaN where noise decides on it, too."""
    weights = rows["counts"]
    match kind:
        case "count" | "histogram" | "ranges":
            return weights.sum()
        case "units":
            unit = UNIT[case["unit"]]
            return (
                len(rows)
                if unit is dpf.EACH_ROW
                else len(rows.drop_duplicates(list(np.ravel(unit))))
            )
        case "sum":
            values = rows["clipped" if column == "x" else column].astype(float)
            return (values * weights).sum()
    return np.nan  # means are pulled to the center where noise would hide them

"""Features of a release that are combined with each other, and what of them cannot be."""

import itertools
from dataclasses import dataclass

FEATURES = {
    "caps": ("rows", "rows and groups", "groups of some rows", "all", "none"),
    "kind": (
        "count",
        "sum",
        "sums",
        "mean",
        "several",
        "variance",
        "covariance",
        "regression",
        "rates",
        "histogram",
        "units",
        "margins",
        "possible",
        "ranges",
        "few true",
        "across",
    ),
    "by": ("nothing", "one", "two"),
    "where": ("none", "one", "exclusive", "overlapping"),
    "relation": ("add_remove", "replace"),
    "unit": ("row", "one column", "two columns"),
    "law": ("auto", "laplace", "gaussian", "box", "staircase", "correlated"),
    "tables": ("one", "joined", "alike", "of other sizes", "of other caps", "three"),
    "weights": ("no", "yes"),
    "missing": ("keep", "fill", "drop"),
    "bounds": ("around 0", "above 0"),
    "part": ("no", "yes"),
    "known": ("no", "yes"),
    "amount": ("epsilon 1", "epsilon 12", "epsilon 4.1", "epsilon 0.01", "mu 1", "rho 0.5"),
    "engine": ("pandas", "dask", "files"),
}
"""Their values. A case is a dict with one of each."""

NAMES = tuple(FEATURES)

SUMS = ("sum", "sums", "few true")
OF_MARGINS = ("margins", "possible")
OVER_CELLS = (*OF_MARGINS, "ranges", "across")
ONE_CONDITION = ("histogram", "units", "ranges", "few true", "regression")
UNWEIGHTED = ("variance", "covariance", "regression", "units", "ranges", "few true", "across")
UNITS = ("one column", "two columns")


@dataclass(frozen=True)
class Rule:
    """What cannot be asked: cases with one of the values of each feature named.

    Parameters
    ----------
    why
        The reason; where the case could be written, it is said in the refusal.
    values
        By feature, its values.
    is_said
        Whether the case can be written, and is refused.
    """

    why: str
    values: dict[str, tuple[str, ...]]
    is_said: bool

    def forbids(self, part):
        """Whether it forbids a case, or part of one, all of whose features it knows."""
        return all(part.get(name) in values for name, values in self.values.items())


def _unwritten(why, **values):
    """A rule about what no query of these tests says."""
    return Rule(why, _named(values), is_said=False)


def _refused(why, **values):
    """A rule about what is refused, in these words."""
    return Rule(why, _named(values), is_said=True)


def _named(values):
    return {name: (own,) if isinstance(own, str) else own for name, own in values.items()}


def _but(name, *left_out):
    """All values of a feature but some."""
    return tuple(value for value in FEATURES[name] if value not in left_out)


_UNFIT = "does not apply to these queries"
_LINEAR = (
    "several", "rates", "variance", "covariance", "regression", "few true", "mean", "sums",
    *OVER_CELLS,
)  # fmt: skip

RULES = (
    _unwritten("a row is one row", unit="row", caps=_but("caps", "none")),
    _unwritten("caps in a query are of a unit", unit="row", tables="of other caps"),
    _unwritten("caps in a query are of a unit", caps="none", tables="of other caps"),
    _unwritten("one condition fits", kind=ONE_CONDITION, where=("exclusive", "overlapping")),
    _unwritten("across is of three tables", kind="across", tables=_but("tables", "three")),
    _unwritten("others have no weights", kind=UNWEIGHTED, weights="yes"),
    _unwritten("a number of rows is of sums", kind=_but("kind", *SUMS), known="yes"),
    _unwritten("sums of n= have one condition", known="yes", where=("exclusive", "overlapping")),
    _unwritten("margins have columns", kind=OF_MARGINS, by="nothing"),
    _refused("needs a cap on its rows", unit=UNITS, caps="none"),
    _refused("part", unit="one column", part="yes"),
    _refused("max_true cannot go with n=", kind="few true", known="yes"),
    _refused("weights cannot go with n=", weights="yes", known="yes"),
    _refused(
        "margins count a row in one cell of every table",
        kind=OF_MARGINS,
        caps=_but("caps", "rows", "none"),
    ),
    _refused("staircase noise needs an epsilon", law="staircase", amount="epsilon 0.01"),
    _refused(_UNFIT, law="staircase", kind=_LINEAR),
    _refused(_UNFIT, law="staircase", where=("exclusive", "overlapping")),
    _refused(_UNFIT, law="staircase", kind="units", tables=_but("tables", "joined", "three")),
    _refused(
        _UNFIT, law="staircase", kind=("count", "histogram", "units"), unit="row", weights="no"
    ),
    _refused(_UNFIT, law="correlated", kind=("histogram", *OVER_CELLS)),
    _refused(_UNFIT, law="box", kind=("ranges", "possible")),
)
"""What cannot be."""

_BY_NAME = {name: [rule for rule in RULES if name in rule.values] for name in FEATURES}


def possible(part, name=None):
    """Whether no rule forbids part of a case; with a name, those about that feature."""
    rules = RULES if name is None else _BY_NAME[name]
    return not any(rule.forbids(part) for rule in rules)


def completed(part, names=NAMES):
    """The first case with a part that no rule forbids; `None`: there is none."""
    if not names:
        return part
    name, *others = names
    if name in part:
        return completed(part, others)
    for value in FEATURES[name]:
        more = part | {name: value}
        found = completed(more, others) if possible(more, name) else None
        if found is not None:
            return found
    return None


def sets_of_features(names=NAMES, *, triples=False, fours=False):
    """All pairs of features; all triples with caps; and caps, law, relation and tables."""
    sets = [*itertools.combinations(names, 2)]
    if triples:
        others = [name for name in names if name != "caps"]
        sets += [("caps", *pair) for pair in itertools.combinations(others, 2)]
    if fours:
        sets.append(("caps", "law", "relation", "tables"))
    return sets


ONE_CELL = {"unit": "row", "relation": "replace", "by": "nothing", "part": "no"}
"""Rows that are always there, unless something leaves them out: a number of them may be public."""


_LEAVING_OUT = ("kind", "missing", "where", "weights", "bounds", "tables")
_SETS_OF_ONE_CELL = [*sets_of_features(_LEAVING_OUT), ("kind", "missing", "where")]

_ABOUT_STAIRS = ("caps", "kind", "by", "relation", "tables", "amount")
_SETS_OF_STAIRS = [*sets_of_features(_ABOUT_STAIRS), ("caps", "kind", "tables")]
STAIRS = {"law": "staircase"}
"""Stairs are no convex cost: which cells a unit is in counts, beside how many rows it has."""

ARRAYS = {
    "pairs": (sets_of_features(), {}),
    "triples": (sets_of_features(triples=True, fours=True), {}),
    "one cell": (_SETS_OF_ONE_CELL, ONE_CELL),
    "stairs": (_SETS_OF_STAIRS, STAIRS),
}
"""What is covered: sets of features, and features that have the same value in all cases."""


def random_case(dice):
    """Draw a case that no rule forbids."""
    while True:
        case = {name: dice.choice(values) for name, values in FEATURES.items()}
        if possible(case):
            return case

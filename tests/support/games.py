"""Games that an audit plays: neighboring frames, and releases that tell them apart best."""

import numpy as np
import pandas as pd
import pandera.pandas as pa
from support.auditing import Game

import dpframe as dpf

ADD, REPLACE = "add_remove", "replace"
RELATIONS = (ADD, REPLACE)
ONE, TWO, FOUR, EIGHT = ({"epsilon": epsilon, "delta": 1e-6} for epsilon in (1, 2, 4, 8))
HUGE = 1e6  # clipped to the bounds
FEW = {"copies": 20_000, "draws": 200_000}
MANY_ROWS = {"copies": 10_000, "draws": 100_000}
ALONE = {"zones": 0, "copies": 1}  # one game in a release


def rows(**columns):
    return pd.DataFrame(columns)


def games(name, mechanisms, others, unit, instead=None, *, query, spend, loose=(), **more):
    """Make a game for each mechanism; the unit leaves, or is replaced by another.

    `loose` names the mechanisms that the two frames, or the outputs, do not show at their worst.
    """
    declared = dict(more.pop("declared", {}))
    relation = ADD if instead is None else REPLACE
    declared["neighboring"] = relation
    return {
        (name, relation, mechanism): Game(
            others,
            unit,
            ({"query": query, "mechanism": mechanism, **spend},),
            instead,
            declared,
            tight=mechanism not in loose,
            **more,
        )
        for mechanism in mechanisms
    }


def counts():
    query, others = dpf.count("zone"), rows(zone=[1, 1])
    unit, elsewhere = rows(zone=[0]), rows(zone=[1])
    plain = ("laplace", "gaussian")
    more = {"query": query, "zones": 2}
    yield games("count", plain, others, unit, spend=ONE, **more)
    yield games("count", plain, others, unit, elsewhere, spend=ONE, **more)
    # more noise than needed
    more |= {"spend": {"epsilon": 0.9, "delta": 1e-6}, "loose": ("classical",)}
    yield games("count", ("classical",), others, unit, **more)
    yield games("count", ("classical",), others, unit, elsewhere, **more)


def sums():
    others = rows(zone=[0, 0, 1], x=[1.0, 2.5, -9.0])
    more = {"query": dpf.sum("x", "zone"), "declared": {"bounds": {"x": (-3, 5)}}, "zones": 2}
    unit, far, moved = rows(zone=[0], x=[HUGE]), rows(zone=[0], x=[-HUGE]), rows(zone=[1], x=[HUGE])
    yield games("sum", ("laplace", "gaussian"), others, unit, spend=ONE, **more)
    yield games("sum", ("staircase",), others, unit, spend=TWO, **more)
    yield games("sum", ("staircase",), others, unit, moved, spend=TWO, **more)
    # Laplace noise of both groups is the same when the unit moves; Gaussian noise when it stays
    yield games("sum", ("laplace",), others, unit, moved, spend=ONE, **more)
    yield games("sum", ("gaussian",), others, unit, far, spend=ONE, **more)


def filled_sums():
    declared = {"bounds": {"x": (0, 1)}, "missing": {"x": 100}}
    more = {"query": dpf.sum("x", "zone"), "declared": declared, "spend": ONE}
    others, unit = rows(zone=[0], x=[0.25]), rows(zone=[0], x=[np.nan])
    yield games("sum with a replacement beyond the bounds", ("laplace",), others, unit, **more)


def means():
    # with all others at one bound, what the new value does to the sum and to the count agree
    others = rows(zone=np.arange(80) % 2, x=0.0)
    more = {"query": dpf.mean("x", "zone"), "declared": {"bounds": {"x": (0, 10)}}, "zones": 2}
    unit, moved = rows(zone=[0], x=[HUGE]), rows(zone=[1], x=[HUGE])
    more |= MANY_ROWS | {"spend": FOUR, "loose": ("laplace", "gaussian")}
    yield games("mean", ("laplace", "gaussian"), others, unit, **more)
    yield games("mean", ("laplace", "gaussian"), others, unit, moved, **more)


def histograms():
    query = dpf.histogram("x", bins=[0, 1, 2, 3, 4], by="zone")
    others = rows(zone=[0, 0], x=[1.5, 7.0])
    unit, elsewhere = rows(zone=[0], x=[0.5]), rows(zone=[0], x=[2.5])
    more = {"query": query, "copies": 20_000, "draws": 400_000}
    for mechanism, spend in {"laplace": ONE, "gaussian": TWO}.items():
        yield games("histogram", (mechanism,), others, unit, spend=spend, **more)
        yield games("histogram", (mechanism,), others, unit, elsewhere, spend=spend, **more)


def mean_to_sum(outputs):
    """Multiply means by the number of rows, both published: n, a, b are repeated in every zone."""
    tables = outputs.reshape(len(outputs), -1, 3).copy()
    tables[:, :, 2] *= np.maximum(tables[:, :, 0], 1)
    return tables.reshape(len(outputs), -1)


def tables():
    query = dpf.aggregate("zone", n=dpf.count(), a=dpf.sum("a"), b=dpf.mean("b"))
    others = rows(zone=np.arange(80) % 2, a=1.0, b=2.0)
    declared = {"bounds": {"a": (0, 10), "b": (-3, 5)}, "missing": {"a": 0, "b": 0}}
    more = {"query": query, "declared": declared, "zones": 2, "features": mean_to_sum}
    # independent noise measures the rows of the mean once more, and does not publish that number
    more |= MANY_ROWS | {"spend": FOUR, "loose": ("gaussian",)}
    unit, moved = rows(zone=[0], a=[HUGE], b=[HUGE]), rows(zone=[1], a=[HUGE], b=[HUGE])
    name, both = "count, sum and mean", ("correlated", "gaussian")
    yield games(name, both, others, unit, **more)
    yield games(name, both, others, unit, moved, **more)


def moment_of_two(outputs):
    """Multiply covariances by the number of rows, both published in turn in every zone."""
    tables = outputs.reshape(len(outputs), -1, 2).copy()
    tables[:, :, 1] *= np.maximum(tables[:, :, 0], 1)
    return tables.reshape(len(outputs), -1)


def pairs():
    others = rows(zone=np.arange(80) % 2, a=0.0, b=0.0)
    query = dpf.aggregate("zone", n=dpf.count(), c=dpf.cov("a", "b"))
    declared = {"bounds": {"a": (0, 10), "b": (-3, 5)}, "missing": {"a": 0, "b": 0}}
    more = {"query": query, "declared": declared, "zones": 2, "features": moment_of_two}
    # what is published adds up the noise of nine numbers
    both = ("laplace", "gaussian")
    more |= MANY_ROWS | {"spend": FOUR, "loose": both}
    unit, moved = rows(zone=[0], a=[HUGE], b=[HUGE]), rows(zone=[1], a=[HUGE], b=[HUGE])
    yield games("covariance", both, others, unit, **more)
    yield games("covariance", both, others, unit, moved, **more)


WIDE = [f"q{position}" for position in range(6)]


def wide_sums():
    others = rows(zone=[0, 1], **dict.fromkeys(WIDE, 1.0))
    unit, moved = (rows(zone=[zone], **dict.fromkeys(WIDE, 1.0)) for zone in (0, 1))
    more = {"declared": {"bounds": dict.fromkeys(WIDE, (0, 1))}, "zones": 2, "spend": FOUR, **FEW}
    every, name, query = ("correlated", "gaussian", "laplace"), "six sums", dpf.sum(WIDE, "zone")
    yield games(name, every, others, unit, query=query, loose=every[2:], **more)
    yield games(name, every, others, unit, moved, query=query, loose=every[2:], **more)
    alone = ("correlated",)
    worst = dpf.sum(WIDE, "zone", objective="worst", n_weight=2)
    yield games("six sums, the worst", alone, others, unit, query=worst, **more)
    yield games("six sums, the worst", alone, others, unit, moved, query=worst, **more)
    known = dpf.sum(WIDE, "zone", n=1)
    yield games("six sums, n known", alone, others, unit, query=known, **more)


def few_true():
    schema = pa.DataFrameSchema({name: pa.Column(bool) for name in WIDE}, strict=False)
    more = {"query": dpf.sum(WIDE, "zone", max_true=2), "declared": {"schema": schema}}
    more |= FEW | {"spend": FOUR}
    others = rows(zone=[0], **dict.fromkeys(WIDE, False))
    every, name = ("correlated", "gaussian", "laplace"), "six sums, two true"
    two = rows(zone=[0], **{name: name in WIDE[:2] for name in WIDE})
    yield games(name, every, others, two, loose=every[2:], **more)
    six = rows(zone=[0], **dict.fromkeys(WIDE, True))
    yield games("six sums, two of six true", every[:1], others, six, loose=every, **more)


def units():
    others = rows(zone=[0, 1, 1], who=[1, 2, 2])
    caps = {"privacy_unit": "who", "max_rows": 7, "max_groups": 5, "max_rows_per_group": 2}
    more = {"query": dpf.count("zone"), "declared": caps, "zones": 8, "spend": TWO, **FEW}
    unit = rows(zone=[0, 0, 1, 1, 2, 2, 3], who=0)
    instead = rows(zone=[4, 4, 5, 5, 6, 6, 7], who=0)
    name, plain = "count, units of seven rows", ("laplace", "gaussian")
    yield games(name, plain, others, unit, loose=plain[:1], **more)
    yield games(name, plain, others, unit, instead, loose=plain[:1], **more)
    more["declared"] = {"privacy_unit": "who", "max_rows": 2}
    unit, instead = rows(zone=[0] * 6, who=0), rows(zone=[7] * 6, who=0)
    name = "count, units of six rows, two of which count"
    yield games(name, plain, others, unit, **more)
    yield games(name, plain, others, unit, instead, **more)
    more["declared"] = {"privacy_unit": "who", "max_groups": 1, "max_rows_per_group": 1}
    unit = rows(zone=range(8), who=0)
    name = "count, units in eight groups, one of which counts"
    yield games(name, plain, others, unit, loose=plain, **more)


def capped_sums():
    others = rows(zone=[0], who=1, **dict.fromkeys(WIDE, 1.0))
    unit = rows(zone=[0, 0, 0], who=0, **dict.fromkeys(WIDE, 1.0))
    declared = {"bounds": dict.fromkeys(WIDE, (0, 1)), "privacy_unit": "who", "max_rows": 2}
    more = {"query": dpf.sum(WIDE, "zone"), "declared": declared, "spend": FOUR, **FEW}
    yield games("six sums, two rows of three count", ("correlated",), others, unit, **more)


def weighted():
    declared = {"bounds": {"x": (0, 10), "w": (0, 2.5)}, "missing": {"x": 0}}
    others = rows(zone=[0, 0, 1], x=[1.0, 9.0, 3.0], w=[0.7, 2.0, 9.0])
    unit, moved = rows(zone=[0], x=[HUGE], w=[HUGE]), rows(zone=[1], x=[HUGE], w=[HUGE])
    more = {"declared": declared, "zones": 2, "spend": ONE}
    total = dpf.count("zone", weights="w")
    yield games("weighted total", ("laplace", "gaussian"), others, unit, query=total, **more)
    yield games("weighted total", ("gaussian",), others, unit, moved, query=total, **more)
    both = dpf.aggregate("zone", n=dpf.count(weights="w"), x=dpf.sum("x", weights="w"))
    yield games("weighted total and sum", ("laplace",), others, unit, query=both, **more)


def whole_frames():
    others, unit, far = rows(x=[1.0, 2.0], who=1), rows(x=[HUGE], who=[0]), rows(x=[-HUGE], who=[0])
    more = {"query": dpf.sum("x"), "declared": {"bounds": {"x": (-3, 5)}}, **ALONE}
    yield games("sum of all rows", ("laplace",), others, unit, spend=TWO, draws=20_000, **more)
    more["draws"] = 10_000
    yield games("sum of all rows", ("gaussian",), others, unit, far, spend=EIGHT, **more)
    caps = {"privacy_unit": "who", "max_groups": 3, "max_rows_per_group": 1}
    more |= {"query": dpf.count("x"), "declared": {**caps, "keys": {"x": range(10)}}}
    unit = rows(x=[3.0, 4.0, 9.0], who=0)
    alone, more["draws"] = ("correlated",), 5_000
    yield games("bins of units", alone, others, unit, spend=EIGHT, loose=alone, **more)


def several():
    """Releases that share an allowance or a budget."""
    others, unit = rows(zone=[0, 0], x=[0.5, 2.0]), rows(zone=[0], x=[HUGE])
    declared = {"bounds": {"x": (0, 10)}, "neighboring": ADD}
    one = {"one": dpf.count("zone"), "two": dpf.sum("x", "zone")}
    joint = one | {"two": dpf.sum("x", "zone", objective="worst")}  # so it is measured on its own
    more = {"query": joint, "declared": declared, "spend": FOUR, **FEW}
    name, both = "count and sum, jointly", ("laplace", "gaussian")
    yield games(name, both, others, unit, loose=both[:1], **more)
    laws = {"one": "laplace", "two": "gaussian"}
    release = {"query": joint, "mechanism": laws, **FOUR}
    game = Game(others, unit, (release,), None, declared, tight=False, **FEW)
    yield {("count and sum, two laws", ADD, "both"): game}
    more["query"], every = one, (*both, "correlated", "box")
    yield games("count and sum, measured as one", every, others, unit, loose=every, **more)
    budget = dpf.Budget(epsilon=4, delta=1e-6)
    for mechanism in both:
        shares = zip([*joint.values(), dpf.count("zone")], [0.25, 0.25, 0.5], strict=True)
        releases = tuple(
            {"query": query, "share": share, "mechanism": mechanism} for query, share in shares
        )
        tight = mechanism == "gaussian"
        game = Game(others, unit, releases, None, declared, tight=tight, budget=budget, **FEW)
        yield {("three releases of one budget", ADD, mechanism): game}


KINDS = (
    counts,
    sums,
    filled_sums,
    means,
    histograms,
    tables,
    pairs,
    wide_sums,
    few_true,
    units,
    capped_sums,
    weighted,
    whole_frames,
    several,
)
GAMES = {key: game for kind in KINDS for found in kind() for key, game in found.items()}

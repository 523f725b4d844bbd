"""Queries of one release: each errs no more than in a call of its own at its part."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.engines.declared import check_queries
from dpframe.errors import CalibrationError
from dpframe.plan.plan import plan_release
from dpframe.plan.tables import name_of
from dpframe.privacy.amounts import Spend
from dpframe.privacy.gaussian import gaussian_mu

QUERIES = {
    "n": dpf.count("w"),
    "all": dpf.count(),
    "mean": dpf.mean("x", "w"),
    "sum of both signs": dpf.sum("z", "w"),
    "rate": dpf.rate("y", "w"),
    "variance": dpf.var("x", "w"),
    "quartiles": dpf.quantile("x", [0.25, 0.5, 0.75]),
    "histogram": dpf.histogram("l", bins=range(31)),
    "correlation": dpf.corr("x", "z"),
    "margins": dpf.margins(["w", "g", "h"], ways=2),
    "sum": dpf.sum("x"),
    "ranges": dpf.ranges("l", bins=64),
}
AMOUNTS = [(1.0, 1e-6), (0.3, 1e-6), (3.0, 1e-6), (1.0, 1e-9)]
LAWS = {"pure": ("auto",), "gaussian": ("gaussian", "correlated")}


def declared(cap):
    frame = pd.DataFrame({name: [1] for name in "pwxlyzgh"})
    unit = {"privacy_unit": dpf.EACH_ROW} if cap == 1 else {"privacy_unit": "p", "max_rows": cap}
    keys = {"w": list("abcdef"), "g": range(12), "h": range(20)}
    frame.dp.declare(keys=keys, bounds={"x": (0, 30), "z": (-5, 5), "l": (0, 30)}, **unit)
    return frame


def errors(plan):
    """Relative errors by query."""
    found = {}
    for key, table in plan.tables.items():
        pairs = zip(plan.predictions(table), table.workload.outputs, strict=False)
        own = [one.std_error / table.workload.width(output) for one, output in pairs]
        found.setdefault(name_of(key), []).extend(own)
    return found


def variance(plan):
    return sum(one.variance for one in plan.designs.values())


def alone(declaration, query, law, *, epsilon, delta, part):
    """Plan a query in a call of its own, with the best mechanism of a law."""
    if law == "pure":
        spend = Spend.of(epsilon=Fraction(epsilon) * part)
    else:
        spend = Spend.of(rho=Fraction(gaussian_mu(Fraction(epsilon), delta)) ** 2 * part / 2)
    plans = []
    for mechanism in LAWS[law]:
        try:
            plans.append(plan_release(declaration, {None: query}, spend, mechanism))
        except CalibrationError:  # it does not apply
            continue
    return min(plans, key=variance)


@pytest.mark.parametrize(
    "seed", [*range(20), *(pytest.param(k, marks=pytest.mark.full) for k in range(20, 200))]
)
def test_no_query_errs_more_than_in_a_call_of_its_own(seed):
    """Once, the worst of a dict erred up to 3.8 times as much."""
    dice = np.random.default_rng(seed)
    names = dice.choice(list(QUERIES), size=dice.integers(2, 7), replace=False).tolist()
    frame = declared(int(dice.choice([1, 1, 3, 12])))
    epsilon, delta = AMOUNTS[seed % 4]
    _, queries = check_queries(frame, {name: QUERIES[name] for name in names})
    declaration = frame.dp.declaration
    plan = plan_release(declaration, queries, Spend.of(epsilon=epsilon, delta=delta))
    assert sum(plan.parts.values()) == 1
    by_law = {
        law: {
            name: alone(declaration, queries[name], law, epsilon=epsilon, delta=delta, part=part)
            for name, part in plan.parts.items()
        }
        for law in LAWS
    }
    best = min(
        by_law.values(), key=lambda own: sum(math.log(variance(one)) for one in own.values())
    )
    found = errors(plan)
    for name, one in best.items():
        pairs = zip(found[name], errors(one)[None], strict=True)
        assert max(mine / theirs for mine, theirs in pairs) <= 1.002


def test_a_correlation_with_its_mirror_costs_one():
    frame = pd.DataFrame({"x": [0.1], "y": [0.2]})
    frame.dp.declare(bounds={"x": (-1, 1), "y": (-1, 3)}, privacy_unit=dpf.EACH_ROW)
    for make in (dpf.corr, dpf.cov):
        one = frame.dp.plan(make("x", "y"), epsilon=1, rows=1000).table["std_error"].item()
        both = {"a": make("x", "y"), "b": make("y", "x")}
        shown = frame.dp.plan(both, epsilon=1, rows=1000).table["std_error"]
        assert shown.tolist() == pytest.approx([one, one])


@pytest.mark.parametrize("missing", ["drop", 0.5])
def test_a_correlation_with_its_mirror_and_all_moments_cost_one(missing):
    frame = pd.DataFrame({"x": [0.5], "y": [0.1]})
    lacking = {"x": missing, "y": missing}
    bounds = {"x": (-1, 1), "y": (-1, 1)}
    frame.dp.declare(bounds=bounds, missing=lacking, privacy_unit=dpf.EACH_ROW)
    pair = dpf.corr("x", "y"), dpf.corr("y", "x")

    def errors(queries):
        shown = frame.dp.plan(queries, epsilon=1, useful="any").table
        return shown["std_error"].to_numpy(float)

    alone = errors(pair[0])
    assert errors(dict(enumerate(pair))) == pytest.approx([*alone, *alone])
    moments = {"a": dpf.mean("x"), "b": dpf.mean("y"), "v": dpf.var("x"), "n": dpf.count()}
    found = errors(dpf.aggregate(r=pair[0], m=pair[1], **moments))
    assert found[:2] == pytest.approx([*alone, *alone])
    assert found[-1] == pytest.approx(3 * 2**0.5, rel=5e-3)

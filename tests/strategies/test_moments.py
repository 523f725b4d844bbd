"""Moments of several columns in a box: what they cost, and how little coefficients err."""

import math

import numpy as np
import pytest
from support.designing import EVERYONE, deviations, workload

from dpframe.context import Context
from dpframe.engines.blocks import powers
from dpframe.privacy.laws import BOX, GAUSSIAN, LAPLACE
from dpframe.queries.edges import Grid
from dpframe.statistics.moments import moments
from dpframe.strategies import box, independent
from dpframe.strategies.base import Output, Source

WIDE = 1 << 20
PLANS = {"box": (box.runs, BOX), "laplace": (independent.design, LAPLACE)}
PLANS |= {"gaussian": (independent.design, GAUSSIAN)}


def planned(name, covariates, *, optional=False, **options):
    planner, law = PLANS[name]
    several = Source(-WIDE, WIDE, optional, ((-WIDE, WIDE),) * covariates)
    kinds = ["intercept", *(f"coefficient {at + 1}" for at in range(covariates)), "r_squared"]
    outputs = tuple(Output(kind, 1) for kind in kinds)
    return planner(workload((EVERYONE, several), outputs, **options), law), law


def measured_of(design, values):
    """The integers that rows of values in [-1, 1] add, by block: one line of them a row."""
    grid = Grid(0, -WIDE, WIDE)
    split = [powers(np.rint(WIDE * column).astype(np.int64), grid) for column in values.T]
    by_name = moments(len(split), 2)
    columns = []
    for block in design.blocks:
        chosen = (0,) * len(split) if block.part is None else by_name[block.part]
        each = (own[power] for own, power in zip(split, chosen, strict=True))
        columns.append(math.prod(each))
    return np.array(columns).T


def frame_of(rows=10_000):
    """Three covariates that go together, and a response with a residual deviation of .2."""
    rng = np.random.default_rng(21)
    together = np.linalg.cholesky(0.3 * np.ones((3, 3)) + 0.7 * np.eye(3)).T
    covariates = np.clip(rng.normal(size=(rows, 3)) @ together * 0.3, -1, 1)
    response = covariates @ [0.6, -0.3, 0.5] + rng.normal(0, 0.2, rows)
    return np.c_[covariates, np.clip(response, -1, 1)]


def test_coefficients_of_three_covariates_err_little():
    values, cells = frame_of(), 4_000
    design, law = planned("box", 3)
    exact = measured_of(design, values).sum(axis=0)
    scales = deviations(design, law=law)
    context = Context()
    noise, errs = {}, {}
    for group in design.groups:
        drawn = law.draw([scales[k] for k in group], cells, context)
        noise |= dict(zip(group, drawn, strict=True))
        errs |= {k: law.deviation_among(scales[k], len(group)) for k in group}
    measured = [total + noise[k] for k, total in enumerate(exact)]
    found = design.decode(measured, [errs[k] for k in range(len(scales))])
    known = np.c_[np.ones(len(values)), values[:, :3]]
    truth, *_ = np.linalg.lstsq(known, values[:, 3])
    errors = np.array([out.values for out in found[1:4]]) - truth[1:, None]
    median = np.median(np.sqrt((errors**2).mean(axis=0)))
    # .0125 is expected, with a standard error of .0001
    assert 0.0115 < median <= 0.0145
    foreseen = np.sqrt(sum(np.square(part).mean() for part in found[1].loadings.values()))
    assert errors[0].std() == pytest.approx(foreseen, rel=0.1)

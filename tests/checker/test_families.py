"""The check accepts what each way of planning plans, and nothing with one scale 1 % smaller."""

import itertools
from dataclasses import replace
from functools import partial

import pandas as pd
import pandera.pandas as pa
import pytest
from support.designing import keep_no_plans

import dpframe as dpf
from dpframe.errors import PlanCheckError
from dpframe.plan import designs
from dpframe.plan import plan as plans
from dpframe.strategies import (
    MECHANISMS,
    box,
    characters,
    correlated,
    independent,
    margins,
    pair,
    sparse,
    staircase,
    tree,
)
from dpframe.strategies.independent import WeightedDesign
from dpframe.strategies.margins import ContrastLayers, TableLayers
from dpframe.strategies.possible import SumLayers
from dpframe.strategies.tree import MatrixTree, NodeTree

RELATIONS = ("add_remove", "replace")
FLAGS = ["b0", "b1", "b2", "b3"]
PAIRS = pd.DataFrame({"g": ["a", "a", "b", "c"], "h": [0, 1, 0, 1]})
SUMS = dpf.aggregate("g", a=dpf.sum("x"), b=dpf.sum("y"))
APART = dpf.aggregate("g", a=dpf.sum("x", where="x > 0"), b=dpf.sum("y", where="x <= 0"))
SQUARES = dpf.var("x", "g")
MOMENTS = dpf.aggregate("g", m=dpf.mean("x"), r=dpf.corr("x", "y"), n=dpf.count())
IN_MARGINS = partial(dpf.margins, ["g", "h"], 2)
BY_SIGN = IN_MARGINS(up=dpf.count(where="x > 0"), down=dpf.count(where="x <= 0"))
OF_SEVERAL = [MOMENTS, dpf.regression("y", ["x", "wt"], "g")]
MIDDLE_PARTS = (1, 3, 4, 5, 7)
"""No row is in a middle part of a pair alone, though Gaussian plans allow for it."""

ASKED = {
    independent.design: [
        *(dpf.count("g"), SUMS, SQUARES, dpf.sum(FLAGS, "g", max_true=2)),
        *OF_SEVERAL,
    ],
    pair.design: [dpf.mean("x", "g"), dpf.mean("x", "g", weights="wt")],
    pair.plan_bernstein: [dpf.var("x", "g")],
    independent.plan_parts: [MOMENTS],
    correlated.design: [dpf.sum(FLAGS, "g"), SUMS, APART],
    margins.apart: [
        *(IN_MARGINS(), IN_MARGINS(m=dpf.mean("x")), IN_MARGINS(keys=PAIRS), BY_SIGN),
        *(IN_MARGINS(weights={(): 9, ("g",): 0.1}), IN_MARGINS(n=dpf.count(), s=dpf.sum("y"))),
    ],
    margins.plan_paired: [IN_MARGINS(m=dpf.mean("x")), IN_MARGINS(keys=PAIRS, m=dpf.mean("x"))],
    tree.design: [
        dpf.ranges("x", [-5, -1, 0, 2, 5], "h"),
        *(dpf.ranges("x", 52, window=window) for window in (None, "expanding", 13)),
        dpf.ranges("x", 60, "g", window=7),
    ],
    sparse.design: [dpf.sum(FLAGS, "g", max_true=2)],
    sparse.plan_bins: [dpf.count("g"), dpf.histogram("x", [-5, 0, 2, 5], "h")],
    box.runs: [SUMS, dpf.sum(FLAGS, "g", max_true=2), *OF_SEVERAL],
    box.runs_lifted: [SUMS, dpf.sum(FLAGS, "g", max_true=2)],
    box.plan_over_cells: [dpf.count("g"), SUMS],
    box.joined_lifted: [SUMS, dpf.mean("x", "g")],
    characters.design: [IN_MARGINS(), IN_MARGINS(s=dpf.sum("x"))],
    staircase.design: [dpf.count("g"), dpf.sum("x", "g", n=5)],
    staircase.design_beside: [dpf.units("g")],
}
"""What every way of planning can plan."""

LONG = [dpf.ranges("x", 1024, window=window) for window in (None, "expanding")]
"""Long ranges, planned by one mechanism of each kind of noise."""

ONE_WAY = {sparse.design: "add_remove", sparse.plan_bins: "add_remove"}
"""Ways that are of one relation alone."""

FAMILIES = {
    f"{name} {planner.__module__.rpartition('.')[2]}.{planner.__name__}": (name, planner)
    for name, mechanism in MECHANISMS.items()
    for planner in dict.fromkeys(
        [
            *mechanism.designs,
            *mechanism.plain,
            *mechanism.layered,
            *mechanism.layered_plain,
            independent.plan_parts,
        ]
    )
}
NOT_PLANNED = {
    "box tree.design",
    "staircase independent.plan_parts",
    "staircase independent.design",
}
"""Ways that a mechanism names, and that have no noise of it."""


def declared(relation, planner):
    columns = {"u": 1, "g": "a", "h": 0, "x": 1.0, "y": 2.0, "wt": 1.0}
    frame = pd.DataFrame({**columns, **dict.fromkeys(FLAGS, True)}, index=[0])
    on_groups = planner not in (margins.apart, margins.plan_paired, characters.design)
    frame.dp.declare(
        pa.DataFrameSchema({flag: pa.Column(bool) for flag in FLAGS}),
        keys={"g": ["a", "b", "c"], "h": [0, 1]},
        bounds={"x": (-5, 5), "y": (0, 4), "wt": (0, 3)},
        missing={"x": "drop", "y": "drop", "wt": "drop"},
        privacy_unit="u",
        max_rows=4,
        neighboring=relation,
        **({"max_groups": 3, "max_rows_per_group": 2} if on_groups else {}),
    )
    return frame


def plan_by(patch, planner):
    """Leave every mechanism one way to plan."""

    def fitting(mechanism, work, **how):
        known = MECHANISMS[mechanism]
        is_way = planner in (*known.planners(work), *known.plain_planners(work))
        made = planner(work, known.law) if is_way else None
        if made is None:
            return []
        return [made if work.weight == 1 else WeightedDesign(made, work.weight)]

    patch.setattr(designs, "fitting", fitting)
    patch.setattr(plans, "fitting", fitting)


def shrink(patch, at, scales):
    """Make the scale of one block 1 % smaller, or none; of a staircase, that of its ratio."""
    scale_design = designs.scale_design

    def scaled(design, law, *given, **how):
        scales[:] = scale_design(design, law, *given, **how)
        period = int(scales[at or 0]) if law.shape == "stairs" else 0
        if at is not None:
            scales[at] -= 0.01 * (scales[at] - period)
        return tuple(scales)

    patch.setattr(designs, "scale_design", scaled)


def shrink_layer(patch, layers, at):
    """Make the noise of one integer of some layers 1 % smaller, whatever was charged for."""
    profile = layers.profile.func

    def smaller(own):
        found = profile(own).copy()
        found[at] *= 0.99
        return found

    patch.setattr(layers, "profile", property(smaller))


def planned(frame, query, name, planner, *breaks):
    """Plan anew with what is broken; the last known scales of all blocks."""
    gaussian = MECHANISMS[name].law.needs_delta
    spend = {"epsilon": 0.9, "delta": 1e-6} if gaussian else {"epsilon": 3}
    scales = []
    with pytest.MonkeyPatch.context() as patch:
        keep_no_plans(patch)
        plan_by(patch, planner)
        at, *others = breaks or [None]
        shrink(patch, at, scales)
        for layers, row in others:
            shrink_layer(patch, layers, row)
        frame.dp.plan(query, mechanism=name, **spend)
    return scales


def test_the_check_refuses_each_plan_with_one_scale_1_percent_smaller():
    families = map(FAMILIES.get, sorted({*FAMILIES} - NOT_PLANNED))
    for (name, planner), relation in itertools.product(families, RELATIONS):
        if relation == ONE_WAY.get(planner, relation):
            check_family(name, planner, relation)


def check_family(name, planner, relation):
    """Plan all that a way can plan, whole and with each scale 1 % smaller."""
    frame = declared(relation, planner)
    long = LONG if planner is tree.design and name in ("gaussian", "laplace") else []
    for query in [*ASKED[planner], *long]:
        scales = planned(frame, query, name, planner)
        loose = loose_blocks(name, planner, query, relation)
        for at in range(len(scales)):
            if scales[at] and at not in loose:
                with pytest.raises(PlanCheckError, match="report it"):
                    planned(frame, query, name, planner, at)


def loose_blocks(name, planner, query, relation):
    """Blocks that a plan allows to move farther than any row moves them."""
    if MECHANISMS[name].law.norm == 2 and planner is independent.plan_parts:
        return MIDDLE_PARTS
    if query is SQUARES and MECHANISMS[name].law.norm == 2 and relation == "replace":
        return range(3)
    if query in OF_SEVERAL and planner is independent.design and relation == "replace":
        return range(10)
    return ()


LAYERS = {
    "contrasts": (ContrastLayers, margins.apart, "gaussian", IN_MARGINS()),
    "tables": (TableLayers, margins.apart, "laplace", IN_MARGINS()),
    "sums, gaussian": (SumLayers, margins.apart, "gaussian", IN_MARGINS(keys=PAIRS)),
    "sums, laplace": (SumLayers, margins.apart, "laplace", IN_MARGINS(keys=PAIRS)),
    "integers of a tree": (MatrixTree, tree.design, "gaussian", ASKED[tree.design][0]),
    "nodes of a tree": (NodeTree, tree.design, "laplace", ASKED[tree.design][0]),
}


def test_the_check_refuses_layers_with_one_integer_s_scale_1_percent_smaller():
    for (layers, planner, name, query), relation in itertools.product(LAYERS.values(), RELATIONS):
        frame = declared(relation, planner)
        # the sum over all cells stays as it is where a row is replaced by one in another cell
        for row in range(relation == "replace", 6):
            with pytest.raises(PlanCheckError, match="report it"):
                planned(frame, query, name, planner, None, (layers, row))


MIXED = {"n": dpf.count("g"), "s": SUMS, "m": IN_MARGINS(), "v": dpf.mean("x", "g")}
LAWS = {
    "laplace and gaussian": ["laplace", "gaussian", "gaussian", "laplace"],
    "box and correlated": ["box", "correlated", "box", "gaussian"],
    "staircase and gaussian": ["staircase", "gaussian", "laplace", "gaussian"],
}


def plan_two_laws(frame, names, spoil=lambda noisy, made: made):
    """Plan two laws in one charge with noise that is spoiled after it was settled."""
    settle = plans.calibrate
    found = []

    def calibrated(noisy, allowed):
        made = spoil(len(found), settle(noisy, allowed))
        found.append(made)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "calibrate", calibrated)
        mechanisms = dict(zip(MIXED, names, strict=True))
        frame.dp.plan(MIXED, epsilon=3, delta=1e-6, mechanism=mechanisms)
    return found


def with_scales(noisy, factor, block=None):
    scales = [
        int(scale) + (scale - int(scale)) * factor
        if noisy.law.shape == "stairs"
        else scale * factor
        for scale in noisy.scales
    ]
    kept = [scales[k] if block in (None, k) else own for k, own in enumerate(noisy.scales)]
    return replace(noisy, scales=tuple(kept))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("names", LAWS.values(), ids=LAWS)
def test_the_check_refuses_two_laws_with_a_smaller_scale_or_another_split(names, relation):
    frame = declared(relation, margins.apart)
    known = plan_two_laws(frame, names)
    assert {one.law.norm for one in known} == {1, 2}
    for at, one in enumerate(known):
        for block in (k for k, scale in enumerate(one.scales) if scale):

            def smaller(number, made, at=at, block=block):
                return with_scales(made, 0.99, block) if number == at else made

            with pytest.raises(PlanCheckError, match="report it"):
                plan_two_laws(frame, names, smaller)
    for more in (1, 2):

        def moved(_, made, more=more):
            return with_scales(made, 0.99 if made.law.norm == more else 1.01)

        with pytest.raises(PlanCheckError, match=["epsilon", "mu squared"][more - 1]):
            plan_two_laws(frame, names, moved)

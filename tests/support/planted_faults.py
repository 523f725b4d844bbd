"""Faults between two features, planted in the real code, that a covering array must find.

Each is right for either feature alone, or nearly, and charges too little, counts what was not asked
or reads the wrong number where both meet. The list was written before the array, and only grows.
"""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from support.designing import keep_no_plans

from dpframe import Query
from dpframe.engines.scans import ScanEngine
from dpframe.operations import planning
from dpframe.plan import designs, tables
from dpframe.privacy.laws import BOX, LAPLACE, STAIRCASE
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.privacy.sensitivity import Footprint, Sparse, movement
from dpframe.strategies import layered
from dpframe.strategies.domain import Domain
from dpframe.strategies.independent import WeightedDesign
from dpframe.strategies.linear import LinearDesign


def exclusive_parts_leave_margins(patch):
    shared = layered.movement

    def without(parts, *given, kernel):
        kept = [part for part in parts if isinstance(part, Footprint)]
        return shared(kept, *given, kernel=kernel)

    patch.setattr(layered, "movement", without)


def one_staircase_for_tables_of_any_size(patch):
    _share_designs(patch, _in_one_cell)


def _in_one_cell(work):
    """What designs were once shared by: it forgets how many cells rows alone can touch."""
    reach = work.reach
    alone = reach.full + (reach.rest > 0) <= 1 and work.neighboring == "add_remove"
    if work.known_rows is not None:
        return id(work)
    if work.is_layered or not alone:
        return work
    return replace(work, domain=Domain(), reach=replace(reach, cells=1))


def _share_designs(patch, key):
    """Give workloads of one key the designs of the first of them."""
    fitting, known = designs.fitting, {}

    def shared(mechanism, work, **how):
        made = fitting(mechanism, work, **how)
        return known.setdefault((mechanism, key(work)), made)

    patch.setattr(designs, "fitting", shared)


def one_design_for_tables_of_other_caps(patch):
    def without_caps(work):
        if work.known_rows is not None:
            return id(work)
        return replace(work, reach=replace(work.reach, full=1, rows=1, rest=0, groups=None))

    _share_designs(patch, without_caps)


def _narrower(patch, law, where):
    """Make noise of a law a hundredth too narrow where workloads and what is allowed say so."""
    scale_design = designs.scale_design

    def scaled(design, own, allowed, **how):
        found = scale_design(design, own, allowed, **how)
        work = design.design.workload if isinstance(design, WeightedDesign) else design.workload
        narrow = own is law and where(work, allowed)
        return tuple(0.99 * scale for scale in found) if narrow else found

    patch.setattr(designs, "scale_design", scaled)


def laplace_noise_of_replaced_units_too_narrow(patch):
    _narrower(patch, LAPLACE, lambda work, allowed: work.neighboring == "replace")


def noise_in_boxes_of_large_amounts_too_narrow(patch):
    _narrower(patch, BOX, lambda work, allowed: allowed > 4)


def _lighter(patch, where):
    """Take weights for half as large where a workload says so."""
    measured = WeightedDesign.movement

    def less(design, scales, law):
        if where(design.design.workload):
            design = replace(design, weight=(design.weight + 1) // 2)
        return measured(design, scales, law)

    patch.setattr(WeightedDesign, "movement", less)


def weights_of_units_with_many_rows_count_half(patch):
    _lighter(patch, lambda work: work.reach.total > 1)


def weights_in_layers_count_half(patch):
    _lighter(patch, lambda work: work.is_layered)


def dropped_rows_meet_every_condition(patch):
    source = tables._source

    def there(terms):
        found, rows = source(terms), terms[0]
        drops = rows.grid is not None and rows.grid.drop and rows.where is not None
        return replace(found, optional=False) if drops else found

    patch.setattr(tables, "_source", there)


def dropped_rows_are_always_there(patch):
    patch.setattr(
        tables,
        "_always_counts",
        lambda where, outputs: where is None and not any(out.row_weights for out in outputs),
    )


def _other_caps(patch, change):
    reach_of = tables.reach_of

    def changed(caps, cells, *, always=False):
        return reach_of(change(caps), cells, always=always)

    patch.setattr(tables, "reach_of", changed)


def rows_are_spread_over_capped_groups(patch):
    def spread(caps):
        if caps.rows is None or caps.groups is None or caps.rows_per_group is not None:
            return caps
        return replace(caps, rows_per_group=-(-caps.rows // caps.groups))

    _other_caps(patch, spread)


def what_rests_beside_full_groups_is_forgotten(patch):
    reach_of = tables.reach_of

    def without_rest(caps, cells, *, always=False):
        found = reach_of(caps, cells, always=always)
        capped = caps.groups is not None and found is not None
        return replace(found, rest=0) if capped else found

    patch.setattr(tables, "reach_of", without_rest)


def units_of_two_columns_have_one_row(patch):
    reach_in = tables.reach_in

    def of_rows(declaration, query, cells, caps, *, always):
        two = len(declaration.unit_columns) > 1
        return reach_in(declaration, query, cells, ROW_CAPS if two else caps, always=always)

    patch.setattr(tables, "reach_in", of_rows)


def units_of_two_columns_are_capped_by_the_first(patch):
    task = tables.Table.task

    def by_first(table, needs):
        found = task(table, needs)
        return replace(found, unit=found.unit[:1])

    patch.setattr(tables.Table, "task", by_first)


def conditions_of_queries_replace_that_of_the_part(patch):
    among = planning._among

    def own_or_part(condition, asked):
        if isinstance(asked, Query) and asked.where is not None:
            return asked
        return among(condition, asked)

    patch.setattr(planning, "_among", own_or_part)


def units_of_known_rows_are_always_there(patch):
    table_of = tables.table_of

    def always(*given):
        found = table_of(*given)
        work = found.workload
        if work.known_rows is None:
            return found
        return replace(found, workload=replace(work, reach=replace(work.reach, always=True)))

    patch.setattr(tables, "table_of", always)


def rows_of_capped_units_are_always_there(patch):
    reach_in = tables.reach_in

    def always_in_one_cell(declaration, query, cells, caps, *, always):
        found = reach_in(declaration, query, cells, caps, always=always)
        return replace(found, always=found.always or (always and not cells.axes))

    patch.setattr(tables, "reach_in", always_in_one_cell)


def overlapping_conditions_count_once(patch):
    def all_of(conditions):
        some = tuple(at for at, one in enumerate(conditions) if one is not None)
        return (some,) if len(some) > 1 else ()

    patch.setattr(tables, "exclusive_sets", all_of)


def boxes_are_drawn_apart_and_charged_together(patch):
    grouped = LinearDesign.groups.func

    def moved(design, scales, law):
        work = design.workload
        how = law.norm, work.reach, work.neighboring
        groups = grouped(design) if law.inside == "max" else None
        parts = design.footprints
        return movement(parts, scales, *how, groups=groups, joined=design.joined)

    def apart(design):
        return tuple((k,) for k in range(len(design.blocks)))

    patch.setattr(LinearDesign, "movement", moved)
    patch.setattr(LinearDesign, "groups", property(apart))


def true_values_of_replaced_units_count_one_fewer(patch):
    footprints = LinearDesign.footprints.func

    def fewer(design):
        if design.workload.neighboring == "add_remove":
            return footprints(design)
        return tuple(_fewer(part) for part in footprints(design))

    patch.setattr(LinearDesign, "footprints", property(fewer))


def _fewer(part):
    few = isinstance(part, Sparse) and part.most > 1
    return replace(part, most=part.most - 1) if few else part


def joined_tables_read_the_outputs_of_the_first(patch):
    patch.setattr(tables.Table, "own", property(lambda table: slice(0, len(table.outputs))))


def steep_stairs_count_half(patch):
    settle = type(STAIRCASE).settle

    def steeper(law, wide, reach):
        scale = settle(law, wide, reach)
        rest = scale - int(scale)
        return int(scale) + rest**2 if 0 < rest < 1 / 32 else scale

    patch.setattr(type(STAIRCASE), "settle", steeper)


def groups_of_ranges_are_one(patch):
    def with_one_group(shared):
        def moved(parts, scales, norm, reach, neighboring, *, kernel):
            one = replace(reach, full=1, rest=0)
            return shared(parts, scales, norm, one, neighboring, kernel=kernel)

        return moved

    patch.setattr(layered, "movement", with_one_group(layered.movement))


def files_are_read_without_the_cap_on_groups(patch):
    totals = ScanEngine.totals

    def uncapped(engine, frame, tasks, context):
        tasks = [
            replace(task, caps=Caps(task.caps.rows, None, task.caps.rows_per_group))
            for task in tasks
        ]
        return totals(engine, frame, tasks, context)

    patch.setattr(ScanEngine, "totals", uncapped)


@dataclass(frozen=True)
class PlantedFault:
    """A fault that lies between features.

    Parameters
    ----------
    plant
        Plants it, given pytest's `MonkeyPatch`.
    shows
        By feature, the values with which it can show; all others are right.
    """

    plant: Callable[[pytest.MonkeyPatch], None]
    shows: dict[str, tuple[str, ...]]

    @property
    def name(self):
        return self.plant.__name__.replace("_", " ")

    def may_show(self, case):
        """Whether a case has one of the values of each feature."""
        return all(case[name] in values for name, values in self.shows.items())

    @contextmanager
    def planted(self):
        """Break the code within a block; no plan made before is used there, and none is left."""
        with pytest.MonkeyPatch.context() as patch:
            keep_no_plans(patch)
            self.plant(patch)
            yield


UNITS, GROUPS = ("one column", "two columns"), ("rows and groups", "groups of some rows", "all")
OTHER_TABLES = ("alike", "of other sizes", "three")


def _fault(plant, **shows):
    named = {name: (own,) if isinstance(own, str) else own for name, own in shows.items()}
    return PlantedFault(plant, named)


FOUND_BEFORE = (
    _fault(exclusive_parts_leave_margins, kind="margins", where="exclusive"),
    _fault(
        one_staircase_for_tables_of_any_size,
        caps="rows",
        relation="add_remove",
        law=("staircase", "auto"),
        tables=OTHER_TABLES,
    ),
)
"""Two that were in the code once: features together overspent, and every test passed."""

PLANTED = (
    _fault(one_design_for_tables_of_other_caps, tables="of other caps", kind="count"),
    _fault(laplace_noise_of_replaced_units_too_narrow, relation="replace", law=("laplace", "auto")),
    _fault(
        noise_in_boxes_of_large_amounts_too_narrow,
        amount=("epsilon 4.1", "epsilon 12"),
        law=("box", "auto"),
    ),
    _fault(weights_of_units_with_many_rows_count_half, weights="yes", unit=UNITS),
    _fault(weights_in_layers_count_half, weights="yes", kind="margins"),
    _fault(
        dropped_rows_meet_every_condition,
        missing="drop",
        where=("overlapping", "one"),
        relation="replace",
    ),
    _fault(dropped_rows_are_always_there, missing="drop", relation="replace", unit="row"),
    _fault(rows_are_spread_over_capped_groups, caps="rows and groups"),
    _fault(what_rests_beside_full_groups_is_forgotten, caps="all"),
    _fault(units_of_two_columns_have_one_row, unit="two columns"),
    _fault(units_of_two_columns_are_capped_by_the_first, unit="two columns"),
    _fault(conditions_of_queries_replace_that_of_the_part, part="yes", where="one"),
    _fault(units_of_known_rows_are_always_there, known="yes", relation="replace"),
    _fault(rows_of_capped_units_are_always_there, unit=UNITS, relation="replace"),
    _fault(overlapping_conditions_count_once, where="overlapping"),
    _fault(boxes_are_drawn_apart_and_charged_together, law=("box", "auto")),
    _fault(true_values_of_replaced_units_count_one_fewer, kind="few true", relation="replace"),
    _fault(joined_tables_read_the_outputs_of_the_first, tables=("joined", "alike")),
    _fault(
        steep_stairs_count_half, amount=("epsilon 4.1", "epsilon 12"), law=("staircase", "auto")
    ),
    _fault(groups_of_ranges_are_one, kind="ranges", unit=UNITS, caps=GROUPS),
    _fault(files_are_read_without_the_cap_on_groups, engine="files", unit=UNITS, caps=GROUPS),
)
"""What else the array must find."""

"""The certificate of a planned release, before its values are known."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple, TypeAlias, TypedDict, assert_never, cast

import pandas as pd

from dpframe.cells.record import ATTRIBUTE
from dpframe.cells.verify import look
from dpframe.certificates import column_parts, mechanism_parts, parts
from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import packed_loadings
from dpframe.certificates.json_records import pack
from dpframe.certificates.witness_parts import WitnessPart
from dpframe.declaration.checks import Bounds
from dpframe.declaration.facts import Declaration
from dpframe.errors import CertificateError
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry
from dpframe.plan.columns import OutputColumn
from dpframe.plan.discovery import DiscoveryPlan
from dpframe.plan.measurement import TablePlan
from dpframe.plan.plan import Plan
from dpframe.plan.rules import rules_of, rules_of_groups
from dpframe.plan.selection import SelectionPlan
from dpframe.plan.tables import name_of
from dpframe.privacy import seam
from dpframe.privacy.amounts import PrivacyLoss, below, float_above
from dpframe.privacy.calibration import gaussian_epsilon, mu_of_pure
from dpframe.privacy.neighbors import Caps
from dpframe.privacy.pots import Pots
from dpframe.privacy.selection import GEOMETRIC, SELECT
from dpframe.privacy.threshold import ROUND_PARTS
from dpframe.provenance import is_found
from dpframe.queries.grid import Ticks
from dpframe.queries.quantiles import LEVEL
from dpframe.queries.query import Query
from dpframe.queries.tasks import Axis, BinAxis, KeyAxis
from dpframe.queries.timescale import Moment, microseconds
from dpframe.queries.where import Condition
from dpframe.strategies.base import Estimate, Layers, Prediction, Workload

try:  # once, at import: nothing may fail between charge and release
    VERSION = version("dpframe")
    LIBRARY = f"dpframe {VERSION}"
except PackageNotFoundError:  # a source tree that is not installed
    VERSION, LIBRARY = "0+unknown", "dpframe"

_COVARIANCE = (
    "Cells are uncorrelated, except for common blocks. In a cell, two columns have as covariance "
    "the sum over measured blocks of the products of their loadings. Blocks that are drawn "
    "together are not independent, and neither are cells in which they are."
)
_STRUCTURED = (
    "Cells were measured together and are correlated, with those of tables released with them, "
    "too: the structure of the mechanism, or the loadings of the blocks that all cells share, say "
    "how. In a cell, two columns have as covariance the sum over measured blocks of the products "
    "of their loadings."
)
_PUBLISHED = "Rows are independent, given that they were published."
_NO_NUMBERS = "There are no numbers: the labels alone were published."
_SELECTED = (
    "No noise was added: values were selected, independently in different groups, and one after "
    "the other in a group."
)
_BLOCK = "0"
_NO_OPTIONS = parts.OptionsPart(max_true=None, n_weight=0.0, objective="total", n=None)


AnyPlan: TypeAlias = Plan | DiscoveryPlan | SelectionPlan
"""A plan of any kind: what is asked, how it is hidden, what it costs and what it reads."""


Describe: TypeAlias = Callable[[Estimate], column_parts.ReleasedColumn]
"""From what was estimated to what is said about a column."""


class Charged(NamedTuple):
    """What a ledger is charged with, and the worst units that this was compared with."""

    entry: Entry
    witness: tuple[WitnessPart, ...]


class Cost(TypedDict):
    """What a release costs; epsilon and delta are `None` if unknown."""

    mu: float
    epsilon: float | None
    delta: float | None


def cost(plan: AnyPlan, declaration: Declaration) -> Cost:
    """Return what a whole release costs: mu, epsilon and delta, the latter two `None` if unknown.

    Gaussian noise of mu is (epsilon, delta)-DP for every delta > 0; the one spent with, or the
    budget's, is shown. An extra delta is included; one that was given in the call is for noise and
    threshold together.
    """
    noise, extra = _cost_of_noise(plan, declaration), plan.loss.delta
    together = plan.loss.mu_squared and plan.spend.delta is not None
    if not extra or noise["delta"] is None or together:
        return noise
    total = Fraction(noise["delta"]) + extra
    return {**noise, "delta": min(float_above(total), math.nextafter(1, 0))}


def _cost_of_noise(plan: AnyPlan, declaration: Declaration) -> Cost:
    loss, spend = plan.loss, plan.spend
    if not loss.mu_squared:
        return {"mu": _mu_of(loss.epsilon), "epsilon": float(loss.epsilon), "delta": 0.0}
    budget = None if declaration.ledger is None else declaration.ledger.budget
    delta = spend.delta if spend.delta is not None or budget is None else below(budget.noise_delta)
    if not delta:
        return {"mu": loss.mu, "epsilon": None, "delta": None}
    # what was asked for as an epsilon is what was honored: the way back from mu may end an ulp
    # above it
    asked = float(spend.amount) if spend.kind == "epsilon" else gaussian_epsilon(delta, loss.mu)
    return {"mu": loss.mu, "epsilon": asked, "delta": delta}


@lru_cache(maxsize=64)
def _mu_of(epsilon: Fraction) -> float:
    return mu_of_pure(epsilon)


def outlook(plan: AnyPlan, declaration: Declaration) -> dict[str, Any]:
    """Return what a whole release costs, whether it fits, and what a budget has left after it."""
    fits = {"fits": declaration.allows(plan.loss)}
    return {**cost(plan, declaration), **fits, **left_after(plan, declaration)}


def left_after(plan: AnyPlan, declaration: Declaration) -> dict[str, float]:
    """Return what a budget, if there is one, has left of both kinds of noise after a release."""
    if declaration.ledger is None:
        return {}
    status = declaration.ledger.last_status()
    after = replace(status, pots=_pots_after(status.pots, plan.loss))
    return {"remaining_epsilon": after.remaining_epsilon, "remaining_mu": after.remaining_mu}


@lru_cache(maxsize=64)  # what is left takes as long to find as a plan
def _pots_after(pots: Pots, loss: PrivacyLoss) -> Pots:
    return pots.plus(loss)


def record_of(
    name: Hashable, planned: TablePlan, plan: Plan, declaration: Declaration, charged: Charged
) -> tuple[Release, tuple[Describe, ...]]:
    """Write what is promised about one table, all but ledger and columns, and how to say these.

    It answers what NIST SP 800-226 asks of a claim: the unit and the neighboring relation, the
    parameters of the guarantee, the mechanism and its noise, what is public, and what was spent
    before.
    """
    structured = planned.measurement.is_over_cells
    about = plan, declaration, planned.table.caps, charged
    release = _release(
        *about,
        query=_query(name, planned, declaration),
        columns=(),
        mechanism=mechanism_of(plan, planned),
        covariance=_STRUCTURED if structured else _COVARIANCE,
    )
    pairs = zip(planned.outputs, planned.predictions(), strict=True)
    return release, tuple(_column(column, prediction, planned) for column, prediction in pairs)


def _release(
    plan: AnyPlan, declaration: Declaration, caps: Caps, charged: Charged, **own: Any
) -> Release:
    """Say which release it is, whose data are protected and at what cost; add what is its own."""
    entry, unit = charged.entry, tuple(map(str, declaration.unit_columns))
    limits = parts.CapsPart(caps.rows, caps.groups, caps.rows_per_group)
    return Release(
        library=LIBRARY,
        release_id=entry.release_id,
        released_at=entry.released_at,
        testing=seam.seen() is not None,
        privacy_unit=parts.UnitPart(unit, limits),
        neighboring=declaration.neighboring,
        privacy_loss=parts.LossPart(
            **cost(plan, declaration),
            rho=plan.spend.rho_of(plan.loss),
            extra_delta=float(plan.loss.delta),
            joint=_is_joint(plan),
        ),
        manifest=None if entry.source is None else entry.source.manifest,
        witness=charged.witness,
        ledger=None,
        rows=None,
        **own,
    )


def _query(name: Hashable, planned: TablePlan, declaration: Declaration) -> parts.QueryPart:
    """Say what was asked."""
    table = planned.table
    asked = name_of(name)
    return parts.QueryPart(
        name=None if asked is None else str(asked),
        words=table.asked.words,
        by=tuple(
            # sizes of units are named in the call
            _grouping(axis, table.asked, declaration, called=table.sizes is not None)
            for axis in table.cells.axes
        ),
        cells=table.cells.size,
        outputs=len(planned.outputs),
        where=_text(table.rows_counted),
        left_out=rules_of(table),
        options=_options(table.workload),
    )


def _options(work: Workload) -> parts.OptionsPart:
    """Say what shapes the noise."""
    known = work.known_rows
    n = None if known is None else parts.KnownRowsPart(pack(known.rows), known.variance)
    return parts.OptionsPart(work.most, work.rows_weight, "worst" if work.worst else "total", n)


def mechanism_of(plan: Plan, planned: TablePlan) -> mechanism_parts.NoiseRecord:
    """Say where the noise comes from: that of blocks that the table reads, or drawn with them."""
    measured = planned.measurement
    named = plan.mechanism, plan.how.title, plan.how.law.name
    if measured.design.layers is not None:
        return _layers(named, planned, measured.design.layers)
    read = {block for output in planned.predictions() for block in output.loadings if block >= 0}
    together = [group for group in measured.shared if not read.isdisjoint(group)]
    if len(measured.design.common) == len(measured.scales):
        return mechanism_parts.SignsPart(
            "signs",
            *named,
            scales={str(block): measured.scales[block] for block in sorted(read)},
            groups=tuple(tuple(str(k) for k in group if k in read) for group in measured.shared),
            members=tuple(map(len, measured.shared)),
        )
    blocks = sorted(read.union(*together))
    return mechanism_parts.BlockNoisePart(
        "noise",
        *named,
        scales={str(block): measured.scales[block] for block in blocks},
        groups=tuple(tuple(map(str, group)) for group in together),
        joined=measured.design.joined and measured.design.groups[0] in together,
        common_blocks=tuple(str(block) for block in sorted(measured.design.common)),
    )


def _layers(
    named: tuple[str, str, str], planned: TablePlan, layers: Layers
) -> mechanism_parts.MarginsPart | mechanism_parts.TreePart:
    """Say how the cells of a table were measured together."""
    measured = planned.measurement
    blocks = {
        str(block): layers.describe(planned.place, scale)
        for block, scale in enumerate(measured.scales)
    }
    one = blocks["0"]
    tau = {block: described.tau for block, described in blocks.items()}
    made: Mapping[str, Callable[..., mechanism_parts.MarginsPart | mechanism_parts.TreePart]]
    made = {"margins": mechanism_parts.MarginsPart, "tree": mechanism_parts.TreePart}
    return made[one.kind](one.kind, *named, one.sizes, one.layers, tau, one.rounding)


def _is_joint(plan: AnyPlan) -> bool:
    """Whether a plan is for several tables, which share its cost."""
    match plan:
        case Plan():
            return len(plan.tables) > 1
        case DiscoveryPlan() | SelectionPlan():
            return False
        case _:
            assert_never(plan)


def noise_of_column(
    column: OutputColumn, prediction: Prediction, planned: TablePlan
) -> column_parts.NoisePart | None:
    """Describe the noise of a column that is a measured block."""
    block = prediction.block
    if block is None:
        return None
    members = planned.measurement.members(planned.table.cells.size)[block]
    return column_parts.NoisePart(planned.measurement.scales[block], column.step, members)


def _grouping(
    axis: Axis, query: Query, declaration: Declaration, *, called: bool
) -> parts.GroupingPart:
    """Describe a level: where its keys were given, and which is that of all other rows."""
    source = "call" if called else _source_of(axis.column, query, declaration)
    return parts.GroupingPart(str(axis.column), len(axis), source, _rest_of(axis))


def _rest_of(axis: Axis) -> str | None:
    """Name the group of all rows that are in none of the others."""
    match axis:
        case KeyAxis():
            return str(axis.keys[-1]) if axis.rest else None
        case BinAxis():
            return None
        case _:
            assert_never(axis)


def _source_of(label: Hashable, query: Query, declaration: Declaration) -> str:
    """Say where the keys of a grouping column were given."""
    if label in query.binned or any(axis.column == label for axis in query.bin_axes):
        return "call"
    given = query.keys.get(label) if isinstance(query.keys, Mapping) else query.keys
    if given is None:
        return declaration.column(label).source
    return "found" if _were_found(given) else "call"


def _were_found(keys: object) -> bool:
    """Whether `discover` found groups: they are its release, or the index of that."""
    if not isinstance(keys, pd.DataFrame) or ATTRIBUTE not in keys.attrs:
        return is_found(keys)
    try:
        release = look(keys).opened.certificate.releases[0]
    except CertificateError:
        return False
    return bool(mechanism_parts.kinds_of_groups(release.mechanism))


def _text(where: Condition | None) -> str | None:
    return None if where is None else where.text


def _column(column: OutputColumn, prediction: Prediction, planned: TablePlan) -> Describe:
    """Describe one released column and its noise."""
    shared: dict[str, Any] = {
        "kind": column.kind,
        "name": str(column.name),
        "where": _text(column.where),
        "weights": _weights(column),
    }
    if column.other_bounds is not None and column.bounds is not None:
        shared["pair"] = (str(column.column), str(column.other))
        shared["bounds"] = tuple(_bounds(None, own) for own in (column.bounds, column.other_bounds))
    elif column.grid is not None and column.bounds is not None:  # a label may be None
        shared["column"] = str(column.column)
        shared["bounds"] = _bounds(column.ticks, column.bounds)
    if column.kind in ("count", "sum"):
        shared["integer"] = column.integer
        shared["noise"] = noise_of_column(column, prediction, planned)
        shared["std_error"] = None if prediction.per_row else prediction.std_error * column.step
    if column.kind == "mean":
        shared["moments"] = None
    if column.kind == "rate":
        shared["condition"] = _text(column.condition)
    part = column_parts.PARTS[column.kind]

    def describe(estimate: Estimate) -> column_parts.ReleasedColumn:
        own: dict[str, Any] = {"loadings": packed_loadings(estimate.loadings, column.unit)}
        if estimate.ratio is not None:
            own["ratio"] = column_parts.ratio_part(estimate.ratio, column.step)
        if estimate.moments is not None:
            own["moments"] = column_parts.moments_part(estimate.moments, column.step)
        if estimate.joint is not None and column.other_grid is not None:
            steps = column.step, column.other_grid.step
            own["joint"] = column_parts.joint_part(estimate.joint, steps)
        return part(**{**shared, **own})

    return describe


def _weights(column: OutputColumn) -> column_parts.WeightsPart | None:
    """Say what rows count for."""
    own = column.weights
    if own is None:
        return None
    return column_parts.WeightsPart(str(own.column), own.bounds, own.grid.step)


def _bounds(
    ticks: Ticks | None, bounds: Bounds
) -> column_parts.WrittenBounds | column_parts.TimesPart:
    """Write bounds; of times, say what the numbers of a column stand for."""
    if ticks is None:
        return cast(column_parts.WrittenBounds, bounds)
    lower, upper = cast(tuple[Moment, Moment], bounds)
    return column_parts.TimesPart(
        written=(str(lower), str(upper)),
        counted="from the lower bound, in seconds" if ticks.points else "in seconds",
        origin=ticks.origin,
        bounds=(microseconds(lower), microseconds(upper)),
        zone=None if ticks.zone is None else str(ticks.zone),
    )


def record_of_discovery(plan: DiscoveryPlan, declaration: Declaration, charged: Charged) -> Release:
    """Write what is promised about labels to be found, all but their number and ledger."""
    axes, counts = plan.wanted.axes, plan.wanted.counts
    about = plan, declaration, plan.caps, charged
    return _release(
        *about,
        query=parts.QueryPart(
            name=None,
            words=plan.words,
            by=tuple(
                parts.GroupingPart(str(axis.column), 0, "discovered", rest=None) for axis in axes
            ),
            cells=0,
            outputs=1,
            where=_text(plan.wanted.where),
            left_out=rules_of_groups(plan.task.unit, axes),
            options=_NO_OPTIONS,
        ),
        columns=(_column_of_units(plan),) if counts else (),
        mechanism=_threshold(plan) if counts else _set(plan),
        covariance=_PUBLISHED if counts else _NO_NUMBERS,
    )


def _threshold(plan: DiscoveryPlan) -> mechanism_parts.ThresholdPart:
    """Describe noise and threshold of numbers of units."""
    threshold, axes = plan.threshold, plan.wanted.axes
    return mechanism_parts.ThresholdPart(
        "threshold",
        plan.mechanism,
        plan.how.title,
        plan.how.law.name,
        scales={_BLOCK: threshold.scale},
        threshold=threshold.least,
        max_labels=threshold.labels,
        dtypes=tuple(axis.kind for axis in axes),
        max_length=axes[0].longest,
    )


def _set(plan: DiscoveryPlan) -> mechanism_parts.SetPart:
    """Describe the rounds in which a set was found."""
    axes = plan.wanted.axes
    return mechanism_parts.SetPart(
        "set",
        plan.mechanism,
        plan.how.title,
        plan.how.law.name,
        scales=tuple(one.scale for one in plan.threshold.rounds),
        thresholds=tuple(one.least for one in plan.threshold.rounds),
        parts=tuple(map(float, ROUND_PARTS)),
        weights=plan.threshold.weights,
        dtypes=tuple(axis.kind for axis in axes),
        max_length=axes[0].longest,
    )


def _column_of_units(plan: DiscoveryPlan) -> column_parts.CountPart:
    """Describe the noisy numbers of units."""
    deviation = plan.threshold.law.standard_deviation(plan.threshold.scale)
    return column_parts.CountPart(
        kind="count",
        name="units",
        where=None,
        weights=None,
        integer=True,
        noise=column_parts.NoisePart(plan.threshold.scale, 1.0, 1),
        std_error=deviation,
        loadings={_BLOCK: deviation},
    )


def record_of_selection(plan: SelectionPlan, declaration: Declaration, charged: Charged) -> Release:
    """Write what is promised about quantiles to be selected, all but the ledger."""
    query, column = plan.query, plan.column
    bounds = _bounds(None, column.bounds or (0, 1))
    about = plan, declaration, plan.caps, charged
    return _release(
        *about,
        query=parts.QueryPart(
            name=None,
            words=query.words,
            by=tuple(
                _grouping(axis, query, declaration, called=axis.column == LEVEL)
                for axis in plan.cells.axes
            ),
            cells=plan.cells.size,
            outputs=1,
            where=_text(query.where),
            left_out=rules_of_groups(plan.unit, plan.task.cells.axes),
            options=_NO_OPTIONS,
        ),
        columns=(
            column_parts.QuantilePart(
                "quantile", str(column.name), None, None, str(column.column), bounds
            ),
        ),
        mechanism=_selection(plan),
        covariance=_SELECTED,
    )


def _selection(plan: SelectionPlan) -> mechanism_parts.SelectionPart:
    """Say how quantiles are selected."""
    chosen = plan.selection
    rows = {one.at: scale / one.b for one, scale in zip(chosen.steps, chosen.scales, strict=True)}
    return mechanism_parts.SelectionPart(
        kind="selection",
        name=SELECT,
        title="permute-and-flip selection",
        law=GEOMETRIC,
        quantiles=tuple(map(float, plan.query.quantiles)),
        bins=len(plan.bins.axis),
        rounds=chosen.levels,
        scales=tuple(rows[at] for at in sorted(rows)),
    )


def ledger_of(ledger: Ledger | None, entry: Entry) -> parts.LedgerPart | None:
    """Say what a charge took of the budget, right after it."""
    if ledger is None:
        return None
    # without a look at a file: nothing may fail between charge and release
    part, used = ledger.last_status().part_and_used(entry.loss)
    own = ledger.budget
    budget = parts.BudgetPart(own.epsilon, own.delta, own.discovery)
    of_part = None if entry.part is None else f"{ledger.part}={entry.part!r}"
    return parts.LedgerPart(ledger.ledger_id, budget, part, used, of_part)

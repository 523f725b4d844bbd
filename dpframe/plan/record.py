"""The certificate of a planned release, before its values are known."""

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import Literal, TypeAlias, TypedDict

import pandas as pd

from dpframe.certificates import noise_parts, parts
from dpframe.certificates.certificate import FORMAT, UNSEALED, Certificate
from dpframe.certificates.changes import NOTHING, ContentPart
from dpframe.declaration.checks import Bounds
from dpframe.declaration.facts import Declaration
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry
from dpframe.plan.columns import OutputColumn
from dpframe.plan.discovery import DiscoveryPlan
from dpframe.plan.measurement import TablePlan
from dpframe.plan.plan import Plan
from dpframe.plan.selection import SelectionPlan
from dpframe.plan.tables import Table, name_of
from dpframe.privacy.amounts import below, round_up
from dpframe.privacy.calibration import gaussian_epsilon, mu_of_pure
from dpframe.privacy.neighbors import Caps, Neighboring
from dpframe.privacy.selection import GEOMETRIC, SELECT
from dpframe.queries.grid import Ticks
from dpframe.queries.quantiles import LEVEL
from dpframe.queries.query import Query
from dpframe.queries.tasks import Axis, KeyAxis
from dpframe.queries.timescale import Moment, microseconds
from dpframe.queries.where import Condition
from dpframe.strategies import Prediction, Workload

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
    "too: the structure of the mechanism says how. In a cell, two columns have as covariance the "
    "sum over measured blocks of the products of their loadings."
)
_PUBLISHED = "Rows are independent, given that they were published."
_SELECTED = (
    "No noise was added: values were selected, independently in different groups, and one after "
    "the other in a group."
)
_BLOCK = "0"
_NOT_IN_COUNTS = "column where condition bounds times ratio moments rounded".split()


AnyPlan: TypeAlias = Plan | DiscoveryPlan | SelectionPlan
"""A plan of any kind: what is asked, how it is hidden, what it costs and what it reads."""


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
    delta = round_up(float(total), lambda number: Fraction(number) >= total)
    return {**noise, "delta": min(delta, math.nextafter(1, 0))}


def _cost_of_noise(plan: AnyPlan, declaration: Declaration) -> Cost:
    loss, spend = plan.loss, plan.spend
    if not loss.mu_squared:
        return {"mu": mu_of_pure(loss.epsilon), "epsilon": float(loss.epsilon), "delta": 0.0}
    budget = None if declaration.ledger is None else declaration.ledger.budget
    delta = spend.delta if spend.delta is not None or budget is None else below(budget.noise_delta)
    if not delta:
        return {"mu": loss.mu, "epsilon": None, "delta": None}
    # what was asked for as an epsilon is what was honored: the way back from mu may end an ulp
    # above it
    asked = float(spend.amount) if spend.kind == "epsilon" else gaussian_epsilon(delta, loss.mu)
    return {"mu": loss.mu, "epsilon": asked, "delta": delta}


def record_of(
    name: Hashable, planned: TablePlan, plan: Plan, declaration: Declaration, entry: Entry
) -> Certificate:
    """Write the certificate of one table, all but ledger, loadings, ratios and digest.

    It answers what NIST SP 800-226 asks of a claim: the unit and the neighboring relation, the
    parameters of the guarantee, the mechanism and its noise, what is public, and what was spent
    before.
    """
    design, joint = planned.measurement.design, len(plan.tables) > 1
    return Certificate(
        **before_values(declaration, planned.table.caps, entry),
        query=_query(name, planned, declaration),
        columns=tuple(
            _column(column, prediction, planned)
            for column, prediction in zip(planned.outputs, planned.predictions(), strict=True)
        ),
        mechanism=mechanism_of(plan, planned),
        common_blocks=tuple(str(block) for block in sorted(design.common)),
        covariance=_COVARIANCE if design.layers is None else _STRUCTURED,
        privacy_loss=parts.LossPart(
            **cost(plan, declaration), rho=plan.loss.rho, extra_delta=0.0, joint=joint
        ),
        discovery=None,
        selection=None,
    )


class BeforeValues(TypedDict):
    """What certificates of all kinds say alike before there are values."""

    format: Literal[4]
    library: str
    release_id: str
    released_at: str
    privacy_unit: parts.UnitPart
    neighboring: Neighboring
    ledger: None
    steps: tuple[()]
    unstacked: None
    content: ContentPart
    digest: str


def before_values(declaration: Declaration, caps: Caps, entry: Entry) -> BeforeValues:
    """Say which release it is and whose data are protected; the rest is not known yet."""
    limits = parts.CapsPart(caps.rows, caps.groups, caps.rows_per_group)
    unit = declaration.unit_column
    return {
        "format": FORMAT,
        "library": LIBRARY,
        "release_id": entry.release_id,
        "released_at": entry.released_at,
        "privacy_unit": parts.UnitPart(None if unit is None else str(unit), limits),
        "neighboring": declaration.neighboring,
        "ledger": None,
        "steps": (),
        "unstacked": None,
        "content": NOTHING,
        "digest": UNSEALED,
    }


def _query(name: Hashable, planned: TablePlan, declaration: Declaration) -> parts.QueryPart:
    """Say what was asked."""
    table = planned.table
    asked = name_of(name)
    return parts.QueryPart(
        name=None if asked is None else str(asked),
        words=table.asked.words,
        by=tuple(_grouping(axis, table, declaration) for axis in table.cells.axes),
        cells=table.cells.size,
        outputs=len(planned.outputs),
        where=_text(table.where),
        options=_options(table.workload),
    )


def _options(work: Workload) -> parts.OptionsPart:
    """Say what shapes the noise."""
    known = work.known_rows
    n = None if known is None else parts.KnownRowsPart(noise_parts.pack(known[0]), known[1])
    return parts.OptionsPart(work.most, work.rows_weight, "worst" if work.worst else "total", n)


def mechanism_of(plan: Plan, planned: TablePlan) -> noise_parts.MechanismPart:
    """Say where the noise comes from: that of blocks that the table reads, or drawn with them."""
    measured, structure = planned.measurement, _structure(planned)
    read = {block for output in planned.predictions() for block in output.loadings if block >= 0}
    together = [group for group in measured.shared if not read.isdisjoint(group)]
    blocks = sorted(read.union(*together))
    return noise_parts.MechanismPart(
        plan.mechanism,
        plan.how.title,
        plan.how.law.name,
        scales={} if structure else {str(block): measured.scales[block] for block in blocks},
        groups=tuple(tuple(map(str, group)) for group in together),
        joined=measured.design.joined and measured.design.groups[0] in together,
        structure=structure,
    )


def _structure(planned: TablePlan) -> noise_parts.StructurePart | None:
    """Say how the cells of a table were measured together, if they were."""
    layers = planned.measurement.design.layers
    if layers is None:
        return None
    blocks = {
        str(block): layers.describe(planned.place, scale)
        for block, scale in enumerate(planned.measurement.scales)
    }
    one = blocks["0"]
    tau = {block: described.tau for block, described in blocks.items()}
    return noise_parts.StructurePart(one.kind, one.sizes, one.layers, tau, one.rounding)


def noise_of_column(
    column: OutputColumn, prediction: Prediction, planned: TablePlan
) -> noise_parts.NoisePart | None:
    """Describe the noise of a column that is a measured block."""
    block = prediction.block
    if block is None:
        return None
    members = planned.measurement.members(planned.table.cells.size)[block]
    return noise_parts.NoisePart(planned.measurement.scales[block], column.step, members)


def _grouping(axis: Axis, table: Table, declaration: Declaration) -> parts.GroupingPart:
    """Describe a level: where its keys were given, and which is that of all other rows."""
    label = axis.column
    # sizes of units are named in the call
    source = "call" if table.sizes is not None else source_of(label, table.asked, declaration)
    rest = str(axis.keys[-1]) if isinstance(axis, KeyAxis) and axis.rest else None
    return parts.GroupingPart(str(label), len(axis), source, rest)


def source_of(label: Hashable, query: Query, declaration: Declaration) -> str:
    """Say where the keys of a grouping column were given."""
    made = label in query.binned or any(axis.column == label for axis in query.bin_axes)
    given = label in query.keys if isinstance(query.keys, Mapping) else query.keys is not None
    return "call" if made or given else declaration.column(label).source


def _text(where: Condition | None) -> str | None:
    return None if where is None else where.text


def _column(
    column: OutputColumn, prediction: Prediction, planned: TablePlan
) -> noise_parts.ColumnPart:
    """Describe one released column and its noise."""
    bounds = column.bounds
    ticks = column.ticks
    return noise_parts.ColumnPart(
        name=str(column.name),
        kind=column.kind,
        column=str(column.column) if column.grid is not None else None,  # a label may be None
        where=_text(column.where),
        condition=_text(column.condition),
        bounds=None if bounds is None else (_bound(bounds[0]), _bound(bounds[1])),
        times=None if ticks is None or bounds is None else _times(ticks, bounds),
        integer=column.integer,
        noise=noise_of_column(column, prediction, planned),
        std_error=None if prediction.per_row else prediction.std_error * column.step,
        loadings={},
        ratio=None,
        moments=None,
        rounded=None,
    )


def _bound(bound: float | Moment) -> float | str:
    """Write a bound as JSON."""
    return str(bound) if isinstance(bound, pd.Timestamp | pd.Timedelta) else bound


def _times(ticks: Ticks, bounds: Bounds) -> noise_parts.TimesPart:
    """Say what the numbers of a column of times stand for; those below are microseconds."""
    lower, upper = map(microseconds, bounds)
    return noise_parts.TimesPart(
        counted="from the lower bound, in seconds" if ticks.points else "in seconds",
        origin=ticks.origin,
        bounds=(lower, upper),
        zone=None if ticks.zone is None else str(ticks.zone),
    )


def record_of_discovery(plan: DiscoveryPlan, declaration: Declaration, entry: Entry) -> Certificate:
    """Write the certificate of labels to be found, all but their number, ledger and digest."""
    threshold = plan.threshold
    axes, how = plan.wanted.axes, plan.how
    noise = plan.mechanism, how.title, how.law.name, {_BLOCK: threshold.scale}
    return Certificate(
        **before_values(declaration, plan.caps, entry),
        query=parts.QueryPart(
            name=None,
            words=plan.words,
            by=tuple(
                parts.GroupingPart(str(axis.column), 0, "discovered", rest=None) for axis in axes
            ),
            cells=0,
            outputs=1,
            where=None if plan.wanted.where is None else plan.wanted.where.text,
            options=parts.OptionsPart(max_true=None, n_weight=0.0, objective="total", n=None),
        ),
        columns=(_column_of_units(plan),),
        mechanism=noise_parts.MechanismPart(*noise, (), joined=False, structure=None),
        common_blocks=(),
        covariance=_PUBLISHED,
        privacy_loss=parts.LossPart(
            **cost(plan, declaration),
            rho=plan.loss.rho,
            extra_delta=float(plan.loss.delta),
            joint=False,
        ),
        discovery=parts.DiscoveryPart(
            threshold.least, threshold.labels, tuple(axis.kind for axis in axes), axes[0].longest
        ),
        selection=None,
    )


def _column_of_units(plan: DiscoveryPlan) -> noise_parts.ColumnPart:
    """Describe the noisy numbers of units."""
    deviation = plan.threshold.law.standard_deviation(plan.threshold.scale)
    return noise_parts.ColumnPart(
        name="units",
        kind="count",
        integer=True,
        noise=noise_parts.NoisePart(plan.threshold.scale, 1.0, 1),
        std_error=deviation,
        loadings={_BLOCK: deviation},
        **dict.fromkeys(_NOT_IN_COUNTS),
    )


def record_of_selection(plan: SelectionPlan, declaration: Declaration, entry: Entry) -> Certificate:
    """Write the certificate of quantiles to be selected, all but ledger and digest."""
    query, column = plan.query, plan.column
    described = str(column.name), str(column.column), column.bounds or (0, 1)
    return Certificate(
        **before_values(declaration, plan.caps, entry),
        query=parts.QueryPart(
            name=None,
            words=query.words,
            by=tuple(_grouping_of_quantiles(axis, plan, declaration) for axis in plan.cells.axes),
            cells=plan.cells.size,
            outputs=1,
            where=None if query.where is None else query.where.text,
            options=parts.OptionsPart(max_true=None, n_weight=0.0, objective="total", n=None),
        ),
        columns=(noise_parts.ColumnPart.of_quantiles(*described),),
        mechanism=noise_parts.MechanismPart(
            SELECT, "permute-and-flip selection", GEOMETRIC, {}, (), joined=False, structure=None
        ),
        common_blocks=(),
        covariance=_SELECTED,
        privacy_loss=parts.LossPart(
            **cost(plan, declaration), rho=plan.loss.rho, extra_delta=0.0, joint=False
        ),
        discovery=None,
        selection=_selection(plan),
    )


def _grouping_of_quantiles(
    axis: Axis, plan: SelectionPlan, declaration: Declaration
) -> parts.GroupingPart:
    """Say where the keys of a level were given."""
    label = axis.column
    source = "call" if label == LEVEL else source_of(label, plan.query, declaration)
    return parts.GroupingPart(str(label), len(axis), source, rest=None)


def _selection(plan: SelectionPlan) -> parts.SelectionPart:
    """Say how quantiles are selected."""
    chosen = plan.selection
    rows = {one.at: scale / one.b for one, scale in zip(chosen.steps, chosen.scales, strict=True)}
    return parts.SelectionPart(
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
    return parts.LedgerPart(id=ledger.ledger_id, budget=budget, part=part, used=used)

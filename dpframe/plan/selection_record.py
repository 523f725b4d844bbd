"""The certificate of quantiles to be selected, before they are known."""

from dpframe.certificates.certificate import Certificate
from dpframe.certificates.noise_parts import ColumnPart, MechanismPart
from dpframe.certificates.parts import GroupingPart, LossPart, OptionsPart, QueryPart, SelectionPart
from dpframe.declaration.facts import Declaration
from dpframe.ledger.log import Entry
from dpframe.plan.record import before_values, cost, source_of
from dpframe.plan.selection import SelectionPlan
from dpframe.privacy.selection import GEOMETRIC, SELECT
from dpframe.queries.quantiles import LEVEL
from dpframe.queries.tasks import Axis

_COVARIANCE = (
    "No noise was added: values were selected, independently in different groups, and one after "
    "the other in a group."
)


def record_of_selection(
    plan: SelectionPlan, declaration: Declaration, entry: Entry, name: str | None = None
) -> Certificate:
    """Write the certificate of quantiles to be selected, all but ledger and digest."""
    query = plan.query
    return Certificate(
        **before_values(declaration, plan.caps, entry),
        query=QueryPart(
            name=name,
            words=query.words,
            by=tuple(_grouping(axis, plan, declaration) for axis in plan.cells.axes),
            cells=plan.cells.size,
            outputs=1,
            where=None if query.where is None else query.where.text,
            options=OptionsPart(max_true=None, n_weight=0.0, objective="total", n=None),
        ),
        columns=(_column(plan),),
        mechanism=MechanismPart(
            SELECT,
            "permute-and-flip selection",
            GEOMETRIC,
            scales={},
            groups=(),
            joined=False,
            structure=None,
        ),
        common_blocks=(),
        covariance=_COVARIANCE,
        privacy_loss=LossPart(
            **cost(plan, declaration), rho=plan.loss.rho, extra_delta=0.0, joint=False
        ),
        discovery=None,
        selection=_selection(plan),
    )


def _grouping(axis: Axis, plan: SelectionPlan, declaration: Declaration) -> GroupingPart:
    """Say where the keys of a level were given."""
    label = axis.column
    source = "call" if label == LEVEL else source_of(label, plan.query, declaration)
    return GroupingPart(str(label), len(axis), source, rest=None)


def _selection(plan: SelectionPlan) -> SelectionPart:
    """Say how quantiles are selected."""
    chosen = plan.selection
    rows = {
        step.at: scale / step.b for step, scale in zip(chosen.steps, chosen.scales, strict=True)
    }
    return SelectionPart(
        quantiles=tuple(map(float, plan.query.quantiles)),
        bins=len(plan.bins.axis),
        rounds=chosen.levels,
        scales=tuple(rows[at] for at in sorted(rows)),
    )


def _column(plan: SelectionPlan) -> ColumnPart:
    """Describe the column of quantiles, which has no noise."""
    column = plan.column
    return ColumnPart.of_quantiles(str(column.name), str(column.column), column.bounds or (0, 1))

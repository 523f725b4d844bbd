"""Parts of a certificate in words, for a terminal, and as tables, for a notebook."""

from collections.abc import Iterable, Mapping

from dpframe.html import bounds_text, grid, unit_lines
from dpframe.results.record import CapsPart, DiscoveryPart, LedgerPart, LossPart, UnitPart
from dpframe.results.record_noise import ColumnPart, StepPart, SuggestionPart

__all__ = [
    "SOURCES",
    "about_column",
    "about_discovery",
    "about_kind",
    "about_ledger",
    "about_loss",
    "about_step",
    "columns_table",
    "discovery_rows",
    "ledger_lines",
    "loss_lines",
    "steps_table",
    "unit_in_lines",
]

SOURCES = {
    "call": "written down in the call",
    "declared": "declared by keyword",
    "schema": "declared in a schema",
    "discovered": "found under this guarantee",
}
"""Where groups were written down, in words."""


def unit_in_lines(unit: UnitPart) -> list[str]:
    """Say whose data are protected, and the caps."""
    return unit_lines(unit.column, _caps(unit.caps))


def _caps(caps: CapsPart) -> Mapping[str, int | None]:
    return vars(caps)


def about_loss(loss: LossPart) -> str:
    """Say what a release costs."""
    known = "any delta > 0"
    if loss.epsilon is not None:
        known = f"({loss.epsilon:.6g}, {loss.delta:g})-DP"
    joint = ", shared by all queries released together" if loss.joint else ""
    return f"{known}, mu={loss.mu:.6g}{_beside(loss)}{joint}"


def _beside(loss: LossPart) -> str:
    """Say what goes with mu."""
    return f" beside an extra delta of {loss.extra_delta:.6g}" if loss.extra_delta else ""


def about_discovery(found: DiscoveryPart) -> str:
    """Say how groups were found."""
    labels = "label" if found.max_labels == 1 else "labels"
    return (
        f"discovered: those with a noisy number of units of {found.threshold} or more, one unit "
        f"counting for {found.max_labels:,} {labels} at most"
    )


def discovery_rows(found: DiscoveryPart | None) -> list[tuple[str, str]]:
    """Say how groups were found in a row of a table, if any were."""
    return [] if found is None else [("groups", about_discovery(found))]


def loss_lines(loss: LossPart) -> list[str]:
    """Say what a release costs, line by line."""
    lines = [f"mu={loss.mu:.6g}{_beside(loss)}"]
    if loss.epsilon is not None:
        lines.insert(0, f"({loss.epsilon:.6g}, {loss.delta:g})-differentially private")
    if loss.joint:
        lines.append("shared by all queries released together")
    return lines


def about_ledger(ledger: LedgerPart) -> str:
    """Say what a release took of a budget."""
    budget = ledger.budget
    return (
        f"{ledger.id}: {ledger.part:.3g} of the budget, epsilon={budget.epsilon:g} at "
        f"delta={budget.delta:g}; {ledger.used:.3g} used by then"
    )


def ledger_lines(ledger: LedgerPart | None) -> list[str]:
    """Say what a release took of a budget, line by line."""
    if ledger is None:
        return ["none: no budget was declared"]
    budget = ledger.budget
    return [
        f"{ledger.part:.1%} of epsilon={budget.epsilon:g}, delta={budget.delta:g}",
        f"{ledger.used:.1%} used by then",
        ledger.id,
    ]


def about_column(column: ColumnPart) -> str:
    """Say what a released column is, and its error."""
    error = column.std_error
    unit = "" if column.times is None else " s"
    shown = "one for each row" if error is None else f"{error:.6g}{unit}"
    bounds = "" if column.bounds is None else f", bounds {list(column.bounds)}"
    return f"{column.name}: {about_kind(column)}{bounds}, standard error {shown}"


def about_kind(column: ColumnPart) -> str:
    """Say what a released column is."""
    about = column.column if column.condition is None else column.condition
    return column.kind if about is None else f"{column.kind} of {about}"


def columns_table(columns: Iterable[ColumnPart]) -> str:
    """Show the released columns."""
    header = ["column", "what", "where", "bounds", "standard error"]
    rows = [
        [
            column.name,
            about_kind(column),
            column.where or "",
            bounds_text(column.bounds),
            "one for each row" if column.std_error is None else f"{column.std_error:.6g}",
        ]
        for column in columns
    ]
    return grid(header, rows)


def about_step(step: StepPart | SuggestionPart) -> str:
    """Say how a column was computed."""
    if isinstance(step, SuggestionPart):
        return f"{step.into}: {_predicted(step)}; best {_named(step)}"
    if step.method == "none":
        return f"{step.into}: no denoiser is expected to help, values as released"
    gain = step.tried.get(step.method)
    expected = "" if gain is None else f", expected to remove {gain:.0%} of the squared error"
    members = ", ".join(step.members)
    method = f"the average of {members}" if len(step.members) > 1 else members
    raised = "; totals come out too high" if "nonnegative" in step.members else ""
    return f"{step.into}: {step.column} denoised by {method}{_how(step)}{expected}{raised}"


def _how(step: StepPart) -> str:
    return " (chosen automatically)" if step.asked == "auto" else ""


def _predicted(step: SuggestionPart) -> str:
    """Say whose errors are predicted."""
    planned = ", ".join(f"{name}={amount:g}" for name, amount in step.planned.items())
    return f"predicted from {step.column} for {step.query} with {planned}"


def _named(step: SuggestionPart) -> str:
    """Say what is suggested."""
    return ", ".join(f"{name}={found}" for name, found in step.best.items())


def steps_table(steps: Iterable[StepPart | SuggestionPart]) -> str:
    """Show what was computed after the release."""
    header = ["added afterwards", "from", "denoised by", "expected to remove"]
    rows: list[list[str | list[str]]] = []
    for step in steps:
        if isinstance(step, SuggestionPart):
            rows.append([step.into, step.column, _predicted(step), f"best {_named(step)}"])
            continue
        gain = step.tried.get(step.method)
        several = list(step.members) if len(step.members) > 1 else []
        removed = "not estimated" if gain is None else f"{gain:.0%} of the squared error"
        rows.append([step.into, step.column, several or f"{step.method}{_how(step)}", removed])
    return grid(header, rows)

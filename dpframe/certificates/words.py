"""Parts of a certificate in words, for a terminal, and as tables, for a notebook."""

import json
from collections.abc import Iterable
from typing import Any, assert_never

from dpframe.certificates import definitions, parts
from dpframe.certificates.column_parts import ColumnPart
from dpframe.certificates.definitions import CutPart
from dpframe.certificates.mechanism_parts import (
    BlockNoisePart,
    MarginsPart,
    MechanismRecord,
    SelectionPart,
    SetPart,
    SignsPart,
    ThresholdPart,
    TreePart,
)
from dpframe.certificates.table_parts import PublishedPart, TablePart
from dpframe.certificates.witness_parts import WitnessPart
from dpframe.checker.witness import cost_words
from dpframe.html import bounds_text, grid, unit_lines

SOURCES = {
    "call": "written down in the call",
    "declared": "declared by keyword",
    "schema": "declared in a schema",
    "discovered": "found under this guarantee",
    "found": "found by discover, in a release of its own",
}
"""Where groups were written down, in words."""


def unit_in_lines(unit: parts.UnitPart) -> list[str]:
    """Say whose data are protected, and the caps."""
    return unit_lines(unit.columns, vars(unit.caps))


def rows_lines(query: parts.QueryPart) -> list[str]:
    """Say which rows were looked at, if the query does not: missing values may be dropped."""
    where = query.where
    said = where is None or query.words.endswith(f" where {where}")
    return [] if said else [f"those with {where}"]


def about_loss(loss: parts.LossPart) -> str:
    """Say what a release costs."""
    epsilon = loss.epsilon
    known = "any delta > 0" if epsilon is None else f"({epsilon:.6g}, {loss.delta:g})-DP"
    joint = ", shared by all queries released together" if loss.joint else ""
    return f"{known}, mu={loss.mu:.6g}{_beside(loss)}{joint}"


def _beside(loss: parts.LossPart) -> str:
    """Say what goes with mu."""
    return f" beside an extra delta of {loss.extra_delta:.6g}" if loss.extra_delta else ""


def _about_threshold(found: ThresholdPart) -> str:
    """Say how groups were found."""
    labels = "label" if found.max_labels == 1 else "labels"
    return (
        f"discovered: those with a noisy number of units of {found.threshold} or more, one unit "
        f"counting for {found.max_labels:,} {labels} at most"
    )


def _about_set(found: SetPart) -> str:
    """Say how groups were found that have no numbers."""
    one = found.weights[0]
    rounds = ", ".join(f"{threshold / one:.4g}" for threshold in found.thresholds)
    labels = "label" if len(found.weights) == 1 else "labels"
    return (
        f"discovered, without numbers, in {len(found.thresholds)} rounds: those with a noisy "
        f"weight of {rounds} or more. One unit counts for {len(found.weights):,} {labels} at "
        "most in a round, and adds at most 1 to the weight of each"
    )


def about_mechanism(mechanism: MechanismRecord) -> str:
    """Say what was done to exact numbers."""
    noise = "" if mechanism.kind == "selection" else " noise"
    return f"{mechanism.title}{noise} on exact integers"


_SHAPES = {
    "staircase": ": its chances fall in flat steps, which at a large epsilon makes errors smaller"
}


def has_noise(release: Any) -> bool:
    """Say whether noise was added to a number that is published.

    Parameters
    ----------
    release
        A `dpframe.certificates.certificate.Release`.
    """
    mechanism: MechanismRecord = release.mechanism
    match mechanism:
        case SelectionPart() | SetPart():
            return False
        case BlockNoisePart() | SignsPart() | ThresholdPart() | MarginsPart() | TreePart():
            return not all(map(_is_exact, release.columns))
        case _:
            assert_never(mechanism)


def _is_exact(column: ColumnPart) -> bool:
    return column.std_error == 0


def about_noise(release: Any) -> str:
    """Say which noise hides the numbers of a release, if any does.

    Parameters
    ----------
    release
        A `dpframe.certificates.certificate.Release`.
    """
    mechanism: MechanismRecord = release.mechanism
    match mechanism:
        case SelectionPart():
            return "Selected values, without error bars: no noise was added to them."
        case SetPart():
            return f"Labels without numbers: {mechanism.title} noise decided which are published."
        case BlockNoisePart() | SignsPart() | ThresholdPart() | MarginsPart() | TreePart():
            if has_noise(release):
                return f"Noise: {mechanism.title}{_SHAPES.get(mechanism.name, '')}."
            return "Exact, without noise: replacing a unit does not change these numbers."
        case _:
            assert_never(mechanism)


def _about_selection(selected: SelectionPart) -> str:
    """Say how quantiles were selected."""
    rounds = "1 round" if selected.rounds == 1 else f"{selected.rounds} rounds"
    return f"among {selected.bins:,} bins in {rounds}, without error bars"


def groups_lines(mechanism: MechanismRecord) -> list[str]:
    """Say how groups were found, if they were."""
    match mechanism:
        case SetPart():
            return [_about_set(mechanism)]
        case ThresholdPart():
            return [_about_threshold(mechanism)]
        case BlockNoisePart() | SignsPart() | MarginsPart() | TreePart() | SelectionPart():
            return []
        case _:
            assert_never(mechanism)


def mechanism_rows(mechanism: MechanismRecord) -> list[tuple[str, str]]:
    """Say how groups were found, or quantiles selected, in a row of a table."""
    if isinstance(mechanism, SelectionPart):
        return [("selected", _about_selection(mechanism))]
    return [("groups", line) for line in groups_lines(mechanism)]


def loss_lines(loss: parts.LossPart) -> list[str]:
    """Say what a release costs, line by line."""
    lines = [f"mu={loss.mu:.6g}{_beside(loss)}"]
    if loss.epsilon is not None:
        lines.insert(0, f"({loss.epsilon:.6g}, {loss.delta:g})-differentially private")
    if loss.joint:
        lines.append("shared by all queries released together")
    return lines


def witness_lines(witness: Iterable[WitnessPart]) -> list[str]:
    """Say which units lose the most, and how much: mu squared of Gaussian noise, or epsilon."""
    lines = []
    for part in witness:
        loss = part.loss
        squared = f"mu squared {cost_words(loss.mu_squared)}"
        lost = squared if loss.mu_squared else f"epsilon {cost_words(loss.epsilon)}"
        times = f", in each of {part.alike:,} measurements" if part.alike > 1 else ""
        sampled = ", among those tried" if part.sampled else ""
        lines.append(f"{part.unit}: {lost}{times}{sampled}")
    return lines


def about_ledger(ledger: parts.LedgerPart) -> str:
    """Say what a release took of a budget."""
    budget = ledger.budget
    return (
        f"{ledger.id}: {ledger.part:.3g} of the budget{_of_part(ledger)}, "
        f"epsilon={budget.epsilon:g} at delta={budget.delta:g}; {ledger.used:.3g} used by then"
    )


def _of_part(ledger: parts.LedgerPart) -> str:
    return "" if ledger.of_part is None else f" for {ledger.of_part}"


def ledger_lines(ledger: parts.LedgerPart | None) -> list[str]:
    """Say what a release took of a budget, line by line."""
    if ledger is None:
        return ["none: no budget was declared"]
    budget = ledger.budget
    return [
        f"{ledger.part:.1%} of epsilon={budget.epsilon:g}, "
        f"delta={budget.delta:g}{_of_part(ledger)}",
        f"{ledger.used:.1%} used by then",
        ledger.id,
    ]


def about_column(column: ColumnPart) -> str:
    """Say what a released column is, and its error."""
    bounds = "" if column.declared is None else f", bounds {list(column.declared)}"
    if column.weights is not None:
        bounds += f", weights {column.weights.column}, bounds {list(column.weights.bounds)}"
    unit = "" if column.times is None else " s"
    return f"{column.name}: {about_kind(column)}{bounds}, standard error {_error(column, unit)}"


def _error(column: ColumnPart, unit: str = "") -> str:
    """Say how large the standard error of a column is."""
    error = column.std_error
    if not column.features:
        return "not known"
    return "one for each group" if error is None else f"{error:.6g}{unit}"


def about_kind(column: ColumnPart) -> str:
    """Say what a released column is."""
    if column.weights is not None:
        kind = "total" if column.form.is_whole else column.kind
        return f"weighted {kind}{'' if column.about is None else f' of {column.about}'}"
    return column.kind if column.about is None else f"{column.kind} of {column.about}"


def columns_table(columns: Iterable[ColumnPart]) -> str:
    """Show the released columns."""
    header = ["column", "what", "where", "bounds", "standard error"]
    rows = [
        [one.name, about_kind(one), one.where or "", bounds_text(one.declared), _error(one)]
        for one in columns
    ]
    return grid(header, rows)


def lines_afterwards(table: TablePart) -> list[str]:
    """Say what was done after the release, a line for each call."""
    lines = [about_definition(one) for one in table.definitions]
    lines += [_about_cut(cut) for cut in table.cuts]
    names = {**table.alias.levels, **table.alias.columns}
    if names:
        pairs = (f"{_text(old)} to {_text(new)}" for new, old in names.items())
        lines.append(f"renamed {', '.join(pairs)}")
    if table.joined is not None:
        joined = table.joined
        lines.append(f"tables in one by {joined.name}: {', '.join(joined.keys)}")
    if table.published is not None:
        lines += _about_published(table.published)
    return list(dict.fromkeys(lines))


def _text(token: str) -> str:
    """Show a label that was written as JSON."""
    label = json.loads(token)
    return label if isinstance(label, str) else token


def _about_published(published: PublishedPart) -> list[str]:
    lines = []
    for label, (shown, cells) in published.cells.items():
        unit = published.units.get(label, 0)
        rounded = f", rounded to {unit:g}" * (unit > 0)
        lines.append(f"published {_text(label)}: {shown:,} of {cells:,} cells{rounded}")
    return [*lines, *([] if published.note is None else [published.note])]


def _about_cut(cut: CutPart) -> str:
    """Say which cells were chosen by their values."""
    if cut.call != "suppress":
        return (
            f"the {'largest' if cut.call == 'nlargest' else 'smallest'} of {_text(str(cut.column))}"
        )
    below = "" if cut.at is None else f"below {cut.at:g}"
    error = cut.relative_error
    wide = "" if error is None else f"with a standard error above {error:.3g} of the value"
    what = "cells" if cut.column is None else f"rows, judged by {_text(cut.column)},"
    return f"suppressed {what} {' or '.join(filter(None, [below, wide]))}"


def about_definition(definition: definitions.Definition) -> str:
    """Say how a column was computed; the same for columns of one call."""
    match definition:
        case definitions.IntervalDefinition():
            return _about_intervals(definition)
        case definitions.DerivedDefinition():
            return _about_derived(definition)
        case definitions.QuantileDefinition():
            return _about_quantiles(definition)
        case definitions.DenoiseDefinition():
            return _about_denoising(definition)
        case definitions.SuggestDefinition():
            return _about_suggestion(definition)
        case _:
            assert_never(definition)


_SAMPLED = ", with the error of sampled rows"


def _about_intervals(definition: definitions.IntervalDefinition) -> str:
    at_once = " for all cells at once" if definition.simultaneous else ""
    chosen = "" if definition.cells is None else f" for {definition.cells:,} cells that were chosen"
    chosen += ", given their cut" * bool(definition.given)
    sampled = _SAMPLED * definition.sampling
    return f"intervals at {definition.level:g}{at_once}{chosen} beside their columns{sampled}"


def _about_quantiles(definition: definitions.QuantileDefinition) -> str:
    at_once = " for all at once" if definition.simultaneous else ""
    listed = ", ".join(f"{q:g}" for q in definition.quantiles)
    within = f"with intervals at {definition.level:g}{at_once}"
    return f"quantiles {listed} of {definition.column} read off, {within}"


def _about_derived(definition: definitions.DerivedDefinition) -> str:
    chain = ", then ".join(map(_about_link, definition.chain))
    within = f"with intervals at {definition.level:g}{_SAMPLED * definition.sampling}"
    return f"{chain}, of {definition.column}, {within}"


def _about_link(link: definitions.Link) -> str:  # noqa: PLR0911  # a function a line
    """Say what was computed."""
    match link:
        case definitions.TotalLink():
            joined = " of joined keys" * bool(link.mapping)
            margins = " and of all" * (link.margins is not None)
            return f"totals{joined} by {', '.join(link.by) or 'nothing'}{margins}"
        case definitions.ChangeLink():
            unit = " in percent" * link.percent
            return f"changes{unit} along {link.along}, {link.lag} apart"
        case definitions.PercentLink():
            within = f" by {', '.join(link.by)}" * bool(link.by)
            match link.of:
                case None:
                    return f"percentages of the total{within}"
                case str():
                    return f"percentages of release {link.of}"
                case number:
                    return f"percentages of {number:g}"
        case definitions.PerLink():
            return f"numbers per {link.unit:g} of a public population"
        case definitions.StandardizeLink():
            return f"rates per {link.unit:g}, standardized over {link.over}"
        case definitions.RelativeLink():
            return f"quotients by the row of {link.along} {_text(link.to)}"
        case definitions.RatioLink():
            return f"quotients by {link.to}"
        case _:
            assert_never(link)


def _about_suggestion(definition: definitions.SuggestDefinition) -> str:
    """Say whose errors are predicted, and what is suggested."""
    planned = ", ".join(f"{name}={amount:g}" for name, amount in definition.planned.items())
    best = ", ".join(f"{name}={found}" for name, found in definition.best.items())
    said = f"predicted from {definition.column} for {definition.query} with {planned}"
    return f"{definition.into}: {said}; best {best}"


def _about_denoising(definition: definitions.DenoiseDefinition) -> str:
    """Say how a column was denoised."""
    if definition.method == "none":
        return f"{definition.into}: no denoiser is expected to help, values as released"
    removed = _expected(definition)
    expected = f", expected to remove {removed}" if removed else ""
    members = ", ".join(definition.members)
    method = f"the average of {members}" if len(definition.members) > 1 else members
    raised = "; totals come out too high" if "nonnegative" in definition.members else ""
    said = f"{definition.column} denoised by {method}{_how(definition)}"
    return f"{definition.into}: {said}{expected}{raised}"


def _expected(definition: definitions.DenoiseDefinition) -> str:
    """Say which parts of the errors were expected to go; nothing where that is not estimated."""
    gains = {"squared": definition.tried, "absolute": definition.tried_absolute}
    parts = {name: tried.get(definition.method) for name, tried in gains.items()}
    return " and ".join(
        f"{part:.0%} of the {name} error" for name, part in parts.items() if part is not None
    )


def _how(definition: definitions.DenoiseDefinition) -> str:
    return " (chosen automatically)" if definition.asked == "auto" else ""


def tables_afterwards(table: TablePart) -> list[str]:
    """Show what was denoised, and what else was done after the release."""
    denoised = definitions.denoised_of(table.definitions)
    said = {*map(about_definition, denoised)}
    words = [[line] for line in lines_afterwards(table) if line not in said]
    shown = [_denoised_table(denoised)] if denoised else []
    return [*shown, grid(["done afterwards"], words)] if words else shown


def _denoised_table(taken: Iterable[definitions.DenoiseDefinition]) -> str:
    """Show which columns were denoised."""
    header = ["added afterwards", "from", "denoised by", "expected to remove"]
    rows: list[list[str | list[str]]] = []
    for definition in taken:
        several = list(definition.members) if len(definition.members) > 1 else []
        rows.append(
            [
                definition.into,
                definition.column,
                several or f"{definition.method}{_how(definition)}",
                _expected(definition) or "not estimated",
            ]
        )
    return grid(header, rows)

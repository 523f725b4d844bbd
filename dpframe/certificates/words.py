"""Parts of a certificate in words: lines that a terminal, a notebook and a report show."""

import json
from collections.abc import Iterable
from typing import Any, assert_never

from dpframe.certificates import definitions, parts
from dpframe.certificates.column_parts import ColumnPart
from dpframe.certificates.definitions import CutPart
from dpframe.certificates.mechanism_parts import (
    MechanismRecord,
    NoisyMechanismPart,
    SelectionPart,
    SetPart,
    ThresholdPart,
)
from dpframe.certificates.parts import PublishedPart, TablePart, WitnessPart
from dpframe.checker.witness import cost_words
from dpframe.html import bounds_text, percent, unit_lines

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


def _about_threshold(mechanism: ThresholdPart) -> str:
    """Say how groups were found."""
    labels = "label" if mechanism.max_labels == 1 else "labels"
    least = f"a noisy number of units of {mechanism.threshold:g} or more"
    most = f"{mechanism.max_labels:,} {labels} at most"
    return f"discovered: those with {least}, one unit counting for {most}"


def _about_set(mechanism: SetPart) -> str:
    """Say how groups were found that have no numbers."""
    unit = mechanism.weights[0]
    rounds = ", ".join(f"{threshold / unit:.4g}" for threshold in mechanism.thresholds)
    labels = "label" if len(mechanism.weights) == 1 else "labels"
    return (
        f"discovered, without numbers, in {len(mechanism.thresholds)} rounds: those with a noisy "
        f"weight of {rounds} or more. One unit counts for {len(mechanism.weights):,} {labels} at "
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
    noisy = isinstance(release.mechanism, NoisyMechanismPart)
    return noisy and any(column.std_error != 0 for column in release.columns)


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
        case NoisyMechanismPart():
            if has_noise(release):
                return f"Noise: {mechanism.title}{_SHAPES.get(mechanism.name, '')}."
            return "Exact, without noise: replacing a unit does not change these numbers."
        case _:
            assert_never(mechanism)


def mechanism_lines(mechanism: MechanismRecord) -> list[str]:
    """Say how groups were found, or quantiles selected, if they were."""
    match mechanism:
        case SetPart():
            return [_about_set(mechanism)]
        case ThresholdPart():
            return [_about_threshold(mechanism)]
        case SelectionPart():
            rounds = "1 round" if mechanism.rounds == 1 else f"{mechanism.rounds} rounds"
            among = f"selected among {mechanism.bins:,} bins in {rounds}"
            return [f"{among}, without error bars"]
        case NoisyMechanismPart():
            return []
        case _:
            assert_never(mechanism)


def loss_lines(loss: parts.LossPart, witness: Iterable[WitnessPart] = ()) -> list[str]:
    """Say what a release costs, line by line, and if noise of two laws does so together."""
    beside = f" beside an extra delta of {loss.extra_delta:.6g}" if loss.extra_delta else ""
    lines = [f"mu={loss.mu:.6g}{beside}"]
    if loss.epsilon is not None:
        lines.insert(0, f"({loss.epsilon:.6g}, {loss.delta:g})-differentially private")
    if loss.joint:
        lines.append("shared by all queries released together")
    lost = parts.recomputed_loss(witness)
    if lost.is_of_two_laws:
        both = (
            f"pure noise of epsilon={float(lost.epsilon):.6g}, Gaussian noise of mu={lost.mu:.6g}"
        )
        lines.append(f"two laws in one charge: {both}")
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


def ledger_lines(ledger: parts.LedgerPart | None) -> list[str]:
    """Say what a release took of a budget, line by line."""
    if ledger is None:
        return ["none: no budget was declared"]
    budget = ledger.budget
    of_part = "" if ledger.of_part is None else f" for {ledger.of_part}"
    share, by_then = ("a share of ", "in shares") if ledger.in_shares else ("", "used")
    total = f"epsilon={budget.epsilon:g}, delta={budget.delta:g}{of_part}"
    return [
        f"{share}{percent(ledger.part)} of {total}",
        f"{percent(ledger.used)} {by_then} by then",
        ledger.id,
    ]


COLUMN_FACTS = ("column", "what", "where", "bounds", "standard error")
"""What is said of each released column."""


def column_facts(column: ColumnPart) -> list[str]:
    """Say what a released column is, and its error, under the names of `COLUMN_FACTS`."""
    bounds = [bounds_text(column.declared)] if column.declared else []
    if column.weights is not None:
        bounds.append(f"{column.weights.column} {bounds_text(column.weights.bounds)}")
    bounded = "; ".join(bounds)
    return [column.name, about_kind(column), column.where or "", bounded, _error(column)]


def about_column(column: ColumnPart) -> str:
    """Say the same in a line."""
    name, kind, *facts = column_facts(column)
    named = zip(COLUMN_FACTS[2:], facts, strict=True)
    return f"{name}: {', '.join([kind, *(f'{fact} {said}' for fact, said in named if said)])}"


def _error(column: ColumnPart) -> str:
    """Say how large the standard error of a column is."""
    error, unit = column.std_error, "" if column.times is None else " s"
    if not column.features:
        return "not known"
    return "one for each group" if error is None else f"{error:.6g}{unit}"


def about_kind(column: ColumnPart) -> str:
    """Say what a released column is."""
    if column.weights is not None:
        kind = "total" if column.form.is_whole else column.form.name
        return f"weighted {kind}{'' if column.about is None else f' of {column.about}'}"
    kind = column.form.name
    return kind if column.about is None else f"{kind} of {column.about}"


def lines_afterwards(table: TablePart) -> list[str]:
    """Say what was done after the release, a line for each call."""
    lines = [about_definition(definition) for definition in table.definitions]
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
    noun = "cells" if cut.column is None else f"rows, judged by {_text(cut.column)},"
    return f"suppressed {noun} {' or '.join(filter(None, [below, wide]))}"


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
    best = ", ".join(f"{name}={value}" for name, value in definition.best.items())
    said = f"predicted from {definition.column} for {definition.query} with {planned}"
    verdict = f"best {best}" if definition.seen >= definition.needed else "too few people to tell"
    return f"{definition.into}: {said}; {verdict}"


def _about_denoising(definition: definitions.DenoiseDefinition) -> str:
    """Say how a column was denoised."""
    if definition.method == "none":
        return f"{definition.into}: no denoiser is expected to help, values as released"
    removed = _expected(definition)
    expected = f", expected to remove {removed}" if removed else ""
    members = ", ".join(definition.members)
    method = f"the average of {members}" if len(definition.members) > 1 else members
    raised = "; totals come out too high" if "nonnegative" in definition.members else ""
    chosen = " (chosen automatically)" * (definition.asked == "auto")
    said = f"{definition.column} denoised by {method}{chosen}"
    return f"{definition.into}: {said}{expected}{raised}"


def _expected(definition: definitions.DenoiseDefinition) -> str:
    """Say which parts of the errors were expected to go; nothing where that is not estimated."""
    gains = {"squared": definition.tried, "absolute": definition.tried_absolute}
    parts = {name: tried.get(definition.method) for name, tried in gains.items()}
    return " and ".join(
        f"{part:.0%} of the {name} error" for name, part in parts.items() if part is not None
    )

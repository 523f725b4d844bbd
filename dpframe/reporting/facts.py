"""What a report says was declared about a release, and done with it."""

from dpframe.certificates import words
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.parts import GroupingPart
from dpframe.html import bounds_text


def facts_of(certificate: Certificate) -> list[tuple[str, list[str]]]:
    """Say what was declared, and what it leaves out of the numbers."""
    query, caps = certificate.query, certificate.privacy_unit.caps
    named, inner = _split(certificate)
    groups = [
        f"{grouping.column}: {grouping.groups:,} groups, {words.SOURCES[grouping.source]}"
        f"{_about_rest(grouping.rest)}"
        for grouping in named
    ]
    if inner is not None:
        groups.append(_about_inner(certificate, inner))
    limits = [
        (caps.max_rows, "row", " in all"),
        (caps.max_groups, "group", ""),
        (caps.max_rows_per_group, "row", " in each group"),
    ]
    capped = [
        f"{most:,} {what}{'' if most == 1 else 's'}{where}"
        for most, what, where in limits
        if most is not None
    ]
    facts = [("question", [query.words]), ("groups", groups)]
    if query.where is not None:
        facts.append(("rows looked at", [f"those with {query.where}"]))
    if certificate.privacy_unit.column is not None:
        cut = f"at most {', '.join(capped)}; which rows stay is chosen at random"
        facts.append(("rows of one unit", [cut]))
    clipped = [
        f"{part.column}: what lies outside of {bounds_text(part.bounds)} counts as the nearer end"
        for part in certificate.columns
        if part.bounds is not None
    ]
    facts.append(("clipped values", list(dict.fromkeys(clipped))))
    if certificate.discovery is not None:
        facts.append(("groups found", [words.about_discovery(certificate.discovery)]))
    left_out = [
        f"{grouping.column} is none of the groups" for grouping in named if grouping.rest is None
    ]
    if inner is not None:
        selects = certificate.mechanism.selects
        binned = certificate.columns[0].column if selects else inner.column
        left_out.append(f"{binned} is missing")
    if certificate.privacy_unit.column is not None:
        left_out.append(f"{certificate.privacy_unit.column} is missing")
    facts.append(("rows left out where", left_out))
    afterwards = [words.about_step(step) for step in certificate.steps]
    facts.append(("computed afterwards", afterwards))
    return [(name, lines) for name, lines in facts if lines]


def _split(
    certificate: Certificate,
) -> tuple[tuple[GroupingPart, ...], GroupingPart | None]:
    """Tell groups from what is inside of each: bins of ranges, or quantiles that were selected."""
    by, structure = certificate.query.by, certificate.mechanism.structure
    in_bins = structure is not None and structure.kind == "tree"
    if certificate.mechanism.selects or in_bins:
        return by[:-1], by[-1]
    return by, None


def _about_inner(certificate: Certificate, inner: GroupingPart) -> str:
    """Say what is inside of each group."""
    if certificate.mechanism.selects:
        return f"{inner.column}: {inner.groups:,} in each group, as asked for"
    return f"{inner.column}: {inner.groups:,} bins; what lies beyond is in the first and the last"


def _about_rest(rest: str | None) -> str:
    """Say which group holds the rows that are none of the others."""
    return "" if rest is None else f"; {rest!r} also holds all that is none of them, or missing"

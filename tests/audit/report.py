"""Play all games, as they are and broken, and write what was found to `docs/audit.md`.

Run as `python tests/audit/report.py`; `--output` names another file. The exit code is 1 if a bound
is above a claim or a broken variant is not caught.
"""

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.auditing import FALSE_ALARM, LEAST_RATIO, Finding, Game, audit  # noqa: E402
from support.games import GAMES  # noqa: E402
from support.ledger_page import HEADER, SECTION, ledger_lines  # noqa: E402
from support.variants import VARIANTS  # noqa: E402

PAGE = ROOT / "docs" / "audit.md"
RELATIONS = {"add_remove": "add/remove", "replace": "replace"}

INTRODUCTION = """\
# Audit: what releases really lose

The [promise](privacy-promise.md) is proved. Here it is tested from outside: releases are made
through `df.dp` as any user makes them, and from the published numbers alone a lower bound on the
privacy that was lost is computed. A bound above the claim would refute it. A bound near the claim
shows that the noise is not larger than needed, and that the audit is sharp enough to find noise
that is too small. All figures on this page are measured, and the page is written, by `python
tests/audit/report.py`; its figures differ a little from run to run.

## How

**Games.** A game is two neighboring frames D and D', chosen so that the measured totals are as
far apart as the declaration allows: values far beyond their bounds, units that fill their caps,
rows that move to another group. Many releases are made from either. They are the same query with
the same amount; only D and D' differ.

**Copies.** Most games are played thousands of times in one release, in groups and with units of
their own. Whoever sees the groups of one copy sees a part of the release, so what is claimed for
the release holds for each copy; and as each copy has its own rows and its own noise, copies are
independent. Games named *all rows* and *bins of units* do without that argument: they have one
copy in a release, and make each release anew.

Such a game, in brief:

```python
import numpy as np
import pandas as pd
import dpframe as dpf

groups = np.arange(50_000)


def released(rows):
    frame = pd.DataFrame({{"group": groups.repeat(rows)}})
    frame.dp.declare(keys={{"group": groups}}, privacy_unit=dpf.EACH_ROW)
    return frame.dp.count("group", epsilon=1, mechanism="laplace")["count"]


p, q = (released(3) > 3).mean(), (released(2) > 3).mean()
print(np.log(p / q))  # near 1, which is what is claimed
```

**Statistics.** Three numbers are made of the outputs of a copy: their projection on the direction
of the likelihood ratio of Gaussian noise, the log-likelihood ratio of Laplace noise, and the
lowest bit that is set. Direction, medians and scales are learned from the first quarter of the
copies, which also chooses the statistic, the threshold t and the event: score > t or score <= t.

**Bounds.** The other three quarters count how often the event happens under D and under D'.
One-sided Clopper-Pearson bounds of confidence 1 - {alpha:g} each give p from below where the
event is likely, and q from above where it is not. Then

- epsilon is at least ln((p - delta) / q), whatever the mechanism is: the column *events alone*;
- mu is at least Phi^-1(p) - Phi^-1(q), since mu-GDP, which is what Gaussian releases claim,
  allows no event more. At the claimed delta this is an epsilon, by the same curve that calibrates
  the noise (Nasr et al., "Tight auditing of differentially private machine learning", 2023). With
  a delta of 1e-6, events alone cannot come near the claim: those that show it happen once in a
  million releases.

The *certified epsilon* is the larger of the two for Gaussian noise, and that of events alone for
Laplace noise. **If a claim is true, its line is above it with a probability of at most
{false_alarm:g}**, and any of the {games} lines with at most {together:.1g}.
"""

FOUND = """
## What was found

Largest share of a claim that was certified: {most:.1%}. Smallest share among the lines without a
star: {least:.1%}; the tests ask for {asked:.0%}. *n* is the number of copies drawn from either
frame.

{table}

\\* The game cannot show all of the claim. Classical noise is larger than its claim needs; caps
that choose at random mix several laws; means and bins of units hide a number of rows or units that
is measured beside them; and with Laplace noise on several outputs, the events that show the whole
claim are those where the noise of every output happens to point one way.

## Broken on purpose

Each variant changes one thing in the real code, and is audited by the same games. It is caught
when the certified epsilon is above the one that its own certificate, or budget, claims.

{variants}

Where *events alone* is as high as the number of copies allows, about 8 to 10, something could be
seen that noise of the right law never shows. Run with Python {python}, numpy {numpy}, pandas
{pandas}, dpframe {dpframe}.
"""


def table(header: str, lines: list[str]) -> str:
    """Write a table."""
    rule = "|---" * (header.count("|") - 1) + "|"
    return "\n".join([header, rule, *lines])


def claimed(finding: Finding) -> str:
    """Write the claim and what was certified of it."""
    mu = "" if finding.mu is None else f"{finding.mu:.3f}"
    of_mu = "" if finding.mu is None else f"{finding.bounds.mu:.3f}"
    claim = f"{finding.epsilon:g} | {finding.delta:g}"
    certified = f"{finding.certified:.3f} | {finding.ratio:.1%}"
    return f"{claim} | {certified} | {mu} | {of_mu} | {finding.bounds.epsilon:.3f}"


def play() -> tuple[list[str], list[Finding], list[Finding]]:
    """Audit the code as it is: lines of the table, all findings, and those of tight games."""
    lines, findings, tight = [], [], []
    for (name, relation, mechanism), game in GAMES.items():
        finding = audit(game)
        findings.append(finding)
        tight += [finding] if game.tight else []
        star = "" if game.tight else "\\*"
        lines.append(
            f"| {name}{star} | {RELATIONS[relation]} | {mechanism} | {thousands(game)} | "
            f"{claimed(finding)} |"
        )
    return lines, findings, tight


def play_broken() -> tuple[list[str], list[bool]]:
    """Audit the broken variants: lines of the table, and which were caught."""
    lines, caught = [], []
    for variant in VARIANTS:
        with pytest.MonkeyPatch.context() as patch:
            variant.plant(patch)
            finding = audit(variant.game)
        caught.append(finding.certified > finding.epsilon)
        verdict = "caught" if caught[-1] else "**missed**"
        lines.append(
            f"| {variant.name} | {thousands(variant.game)} | {finding.epsilon:g} | "
            f"{finding.certified:.3f} | {finding.bounds.epsilon:.3f} | {verdict} |"
        )
    return lines, caught


def thousands(game: Game) -> str:
    """Write how many copies are drawn."""
    return f"{game.draws:,}"


def main() -> int:
    """Write the page; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=PAGE)
    output = parser.parse_args().output
    lines, findings, tight = play()
    broken, caught = play_broken()
    header = (
        "| release | neighbors | noise | n | epsilon claimed | delta | epsilon certified | share "
    )
    header += "| mu claimed | mu certified | events alone |"
    page = INTRODUCTION.format(
        alpha=FALSE_ALARM / 4,
        false_alarm=FALSE_ALARM,
        games=len(GAMES),
        together=len(GAMES) * FALSE_ALARM,
    ) + FOUND.format(
        most=max(finding.ratio for finding in findings),
        least=min(finding.ratio for finding in tight),
        asked=LEAST_RATIO,
        table=table(header, lines),
        variants=table(
            "| variant | n | epsilon claimed | epsilon certified | events alone | verdict |", broken
        ),
        python=platform.python_version(),
        numpy=np.__version__,
        pandas=pd.__version__,
        dpframe=version("dpframe"),
    )
    page += SECTION.format(table=table(HEADER, ledger_lines()))
    output.write_text(page, encoding="utf-8")
    return int(not all(caught) or any(one.certified > one.epsilon for one in findings))


if __name__ == "__main__":
    sys.exit(main())

"""Play all games, as they are and broken, and write `benchmarks/results/audit.md`.

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

PAGE = ROOT / "benchmarks" / "results" / "audit.md"
RELATIONS = {"add_remove": "add/remove", "replace": "replace"}

INTRODUCTION = """\
# Audit: what releases really lose

The [promise](../../docs/privacy-promise.md) is proved. This audit tests it from outside. It makes
releases through `df.dp` like any user, and computes a lower bound on the privacy lost from the
published numbers alone.

- A bound above the claim would refute the claim.
- A bound near the claim shows that the noise is no larger than needed, and that the audit would
  find noise that is too small.

`python tests/audit/report.py` measures all figures and writes this page. Figures differ a little
from run to run.

## How

**Games.** A game is two neighboring frames D and D', as far apart as the declaration allows:
values far beyond their bounds, units that fill their caps, rows that move to another group. Many
releases are made from each, with the same query and amount.

**Copies.** Most games are played thousands of times in one release, in groups and with units of
their own. One copy is a part of the release, so the claim holds for it, too. Copies have their own
rows and noise, so they are independent. The games *all rows* and *bins of units* make a new release
for every copy.

A game in brief:

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
print(np.log(p / q))  # near 1, the claim
```

**Statistics.** Each copy gives three numbers: the projection on the direction of the Gaussian
likelihood ratio, the Laplace log-likelihood ratio, and the lowest bit that is set. The first
quarter of the copies chooses the statistic, the threshold t, and the event: score > t or
score <= t.

**Bounds.** The other copies count the event under D and under D'. One-sided Clopper-Pearson bounds
of confidence 1 - {alpha:g} give p from below, where the event is likely, and q from above, where it
is not. Then

- epsilon is at least ln((p - delta) / q), for any mechanism: the column *events alone*;
- mu is at least Phi^-1(p) - Phi^-1(q), which Gaussian releases claim to keep. At the claimed delta
  this is an epsilon (Nasr et al., "Tight auditing of differentially private machine learning",
  2023). With a delta of 1e-6 events alone cannot come near the claim: those that show it happen
  once in a million releases.

The *certified epsilon* is the larger of the two for Gaussian noise, and *events alone* for Laplace
noise. **If a claim is true, the certified epsilon exceeds it with a probability of at most
{false_alarm:g}**. In all {games} lines together, this probability is at most {together:.2g}.
"""

FOUND = """
## What was found

Largest share of a claim that was certified: {most:.1%}. Smallest share among the lines without a
star: {least:.1%}; the tests ask for {asked:.0%}. *n* is the number of copies of each frame.

{table}

\\* The game cannot show all of the claim: classical noise is larger than its claim needs, random
caps mix several laws, and means and bins of units hide a number that is measured beside them. With
Laplace noise on several outputs, only rare events show the whole claim: those where the noise of
every output points one way.

## Broken on purpose

Each variant changes one thing in the real code. The same games audit it. It is caught when the
certified epsilon exceeds the claim of its certificate, or budget.

{variants}

Where *events alone* reaches about 8 to 10, the most that the number of copies allows, noise of the
right law would never show what was seen. Run with Python {python}, numpy {numpy}, pandas {pandas},
dpframe {dpframe}.
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

"""Errors of the automatic denoising of counts and of means on real tables, and what to write."""

import textwrap
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from real_tables import Means, counts, other_means, tuned_means

from dpframe.denoising.means import NoisyRatio, shrunken_means
from dpframe.denoising.methods import Facts, choose
from dpframe.privacy.laws import GAUSSIAN, LAPLACE, Law

SIGMAS = (1, 5, 25, 100)
# scale of the noise in sums, in half widths, and in numbers of rows, if both cost the same
SPENDS: dict[str, tuple[Law, float]] = {
    "epsilon 10": (LAPLACE, 2 / 10),
    "epsilon 3": (LAPLACE, 2 / 3),
    "epsilon 1": (LAPLACE, 2.0),
    "epsilon .1": (LAPLACE, 20.0),
    "mu .24": (GAUSSIAN, 2**0.5 / 0.2367),
    "mu .028": (GAUSSIAN, 2**0.5 / 0.0275),
}
STEPS = 2**20  # of the grid, in a half width
CLOSE = 1.10


def measure_counts(data: Path, repeats: int) -> pd.DataFrame:
    """Return the relative errors of "auto", of all that it tries, and of doing nothing."""
    rows = []
    for name, truth in counts(data):
        for law in (GAUSSIAN, LAPLACE):
            for sigma in SIGMAS:
                made = [_counts_error(truth, law, sigma) for _ in range(repeats)]
                key = {"table": name, "groups": len(truth), "law": law.name, "sigma": sigma}
                rows.append({**key, **pd.DataFrame(made).mean()})
        print(pd.DataFrame(rows[-2 * len(SIGMAS) :]).round(3).to_string(), flush=True)
    return pd.DataFrame(rows)


def _counts_error(truth: np.ndarray, law: Law, sigma: float) -> dict[str, float]:
    scale = sigma if law is GAUSSIAN else sigma / np.sqrt(2)
    values = truth + law.draw([scale], len(truth))[0]
    facts = Facts(law, law.standard_deviation(scale), lower=0.0, integer=True)
    found = choose(values, facts)

    def relative(estimate: np.ndarray) -> float:
        return float(np.mean((estimate - truth) ** 2)) / facts.variance

    tried = {name: relative(made.values) for name, made in found.tried.items()}
    expected = found.denoised.risk / facts.variance
    return {
        "nothing": relative(values),
        "auto": relative(found.denoised.values),
        "expected": expected,
        **tried,
    }


def counts_section(table: pd.DataFrame, repeats: int) -> list[str]:
    """Write the section about counts."""
    methods = [name for name in table.columns[4:] if name not in ("auto", "expected")]
    best = table[methods].min(axis=1)
    close = table["auto"] <= CLOSE * best
    worst = float((table["auto"] / table["nothing"]).max())
    by_law = close.groupby(table["law"]).mean()
    shown = table.assign(best=best, which=table[methods].idxmin(axis=1))
    text = (
        f"On {table['table'].nunique()} real tables on which no constant was chosen, without "
        f"neighbors, `auto` was within 10 % of the best method in {close.mean():.0%} of "
        f"{len(table)} settings ({by_law['gaussian']:.0%} with Gaussian noise, "
        f"{by_law['laplace']:.0%} with Laplace noise), and at worst {worst - 1:+.1%} against not "
        f"denoising. Means of {repeats} releases each, in variances of the noise; expected is what "
        "`auto` says of itself. Where it misses, groups are few or sigma is 1, or nearly all noise "
        "goes and what is left is a small part of it."
    )
    lines = [
        *_wrapped(text),
        "",
        "| table | groups | noise | sigma | nothing | auto | expected | best | which |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in shown.itertuples():
        numbers = [f"{x:.3f}" for x in (row.nothing, row.auto, row.expected, row.best)]
        cells = [row.table, row.groups, row.law, row.sigma, *numbers, row.which]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def measure_means(data: Path, repeats: int) -> pd.DataFrame:
    """Return the squared error of denoised means as a multiple of that of released ones."""
    rows = []
    for tuned, tables in ((True, tuned_means(data)), (False, other_means(data))):
        for name, table in tables:
            key = {"table": name, "tuned": tuned, "groups": len(table.rows)}
            rows.append({**key, **_means_ratios(table, repeats)})
            print(pd.DataFrame(rows[-1:]).round(3).to_string(header=False), flush=True)
    return pd.DataFrame(rows)


def _means_ratios(table: Means, repeats: int) -> dict[str, float]:
    truth = table.sums / table.rows
    found = {}
    for spend, (law, scale) in SPENDS.items():
        errors = np.zeros(2)
        for _ in range(repeats):
            noisy = _measured(table, law, scale)
            raw = np.clip(noisy.centered / np.maximum(noisy.rows, 1), -1, 1)
            made = shrunken_means(raw, noisy).denoised.values
            errors += [np.mean((raw - truth) ** 2), np.mean((made - truth) ** 2)]
        found[spend] = errors[1] / errors[0]
    return found


def _measured(table: Means, law: Law, scale: float) -> NoisyRatio:
    """Add noise to sums and rows as a release of means does."""
    sums = np.rint(table.sums * STEPS) + law.draw([scale * STEPS], len(table.rows))[0]
    rows = table.rows + law.draw([scale], len(table.rows))[0]
    of_sums = law.standard_deviation(scale * STEPS) / STEPS
    of_rows = law.standard_deviation(scale)
    return NoisyRatio(sums / STEPS, rows, of_sums**2, of_rows**2, 0.0, (-1.0, 1.0))


def means_section(table: pd.DataFrame, repeats: int) -> list[str]:
    """Write the section about means."""
    spends = list(SPENDS)
    tuned, other = table[table["tuned"]], table[~table["tuned"]]
    saved = ", ".join(f"{1 - ratio:.0%}" for ratio in tuned["epsilon 1"])
    worst = other[spends].max(axis=1)
    hurt = other[worst > 1.02]
    named = "; ".join(
        f"{row['table']}: {row[spends].max():.2f} at {row[spends].astype(float).idxmax()}"
        for _, row in hurt.iterrows()
    )
    text = (
        f"Squared error of denoised means over that of released ones, {repeats} releases each. "
        "Sum and number of rows have half of the spend each. The limits were chosen on the first "
        f"{len(tuned)} tables, where it saves {saved} at epsilon 1, and "
        f"{tuned[spends].to_numpy().max() - 1:+.1%} is the worst up to epsilon 10. On the other "
        f"{len(other)} it saves {1 - other['epsilon 1'].median():.0%} in the middle at epsilon 1, "
        f"and it **hurts** in {len(hurt)} of them at some spend ({named}): where small groups are "
        "not as the others are, all at a bound for instance, they are moved to the wrong place."
    )
    return [
        *_wrapped(text),
        "",
        "| table | groups | " + " | ".join(spends) + " |",
        "|---" * (len(spends) + 2) + "|",
        *_rows(tuned, spends),
        *_rows(other, spends),
    ]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 100)


def _rows(table: pd.DataFrame, spends: Iterable[str]) -> list[str]:
    return [
        f"| {row['table']}{' (chosen on)' if row['tuned'] else ''} | {row['groups']} | "
        + " | ".join(f"{row[spend]:.2f}" for spend in spends)
        + " |"
        for _, row in table.iterrows()
    ]

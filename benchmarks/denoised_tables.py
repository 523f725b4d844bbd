"""Errors of the automatic denoising of counts and of means on real tables, and what to write."""

import textwrap
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from real_tables import COUNTS_LOOKED_AT, LOOKED_AT, Means, counts, other_means, packaged_means

from dpframe.context import SYSTEM
from dpframe.denoising.means import NoisyRatio, shrunken_means
from dpframe.denoising.methods import Facts, choose
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN, LAPLACE

SIGMAS = (1, 5, 14, 50)
# scale of the noise in each of the two halves that a release of means measures, in rows
SPENDS: dict[str, tuple[Law, float]] = {
    "epsilon 10": (LAPLACE, 1 / 10),
    "epsilon 3": (LAPLACE, 1 / 3),
    "epsilon 1": (LAPLACE, 1.0),
    "epsilon .1": (LAPLACE, 10.0),
}
STEPS = 2**20  # of the grid, in a half width
SMALL_GAIN = 0.05  # what is expected and what is real are as good as nothing
CLOSE_TO = 0.7, 1.4  # of an expected ratio to a real one


def measure_counts(data: Path, repeats: int) -> pd.DataFrame:
    """Return mean absolute and squared errors of posterior medians, by those of released counts."""
    rows = []
    for name, truth in counts(data):
        for law in (GAUSSIAN, LAPLACE):
            for sigma in SIGMAS:
                made = pd.DataFrame([_counts_errors(truth, law, sigma) for _ in range(repeats)])
                key = {"table": name, "groups": len(truth), "law": law.name, "sigma": sigma}
                rows.append({**key, **made.mean()})
        print(pd.DataFrame(rows[-2 * len(SIGMAS) :]).round(3).to_string(), flush=True)
    table = pd.DataFrame(rows)
    for order in ("L1", "L2"):
        table[order] = table[f"{order} denoised"] / table[f"{order} released"]
    return table


def _counts_errors(truth: np.ndarray, law: Law, sigma: float) -> dict[str, float]:
    scale = sigma if law is GAUSSIAN else sigma / np.sqrt(2)
    values = truth + law.draw([scale], len(truth), SYSTEM)[0]
    facts = Facts(law, law.standard_deviation(scale), nonnegative=True, integer=True)
    made = choose(values, facts).denoised
    errors = {
        f"L{order} {name}": float(np.mean(np.abs(found - truth) ** order))
        for name, found in (("released", values), ("denoised", made.values))
        for order in (1, 2)
    }
    expected = {"L1 expected": 1 - made.gain, "L2 expected": made.risk / facts.variance}
    return errors | expected


def counts_section(table: pd.DataFrame, repeats: int) -> list[str]:
    """Write the section about counts."""
    unseen = table[~table["table"].isin(COUNTS_LOOKED_AT)]
    near = {}
    for order in ("L1", "L2"):
        gains = (1 - unseen[f"{order} expected"]) / (1 - unseen[order])
        small = unseen[[order, f"{order} expected"]].min(axis=1) > 1 - SMALL_GAIN
        near[order] = float(np.mean(small | gains.between(*CLOSE_TO)))
    text = (
        f"Mean absolute (L1) and squared errors (L2) of posterior medians over those of released "
        f"counts, and in brackets the ratio that is expected; {repeats} releases each, without "
        f"neighbors. Constants were chosen on {len(COUNTS_LOOKED_AT)} tables. On the other "
        f"{unseen['table'].nunique()}, L1 is {unseen['L1'].mean():.2f} and L2 "
        f"{unseen['L2'].mean():.2f} on average, at worst {unseen['L1'].max():.2f} and "
        f"{unseen['L2'].max():.2f}. Gains that are expected are between {CLOSE_TO[0]} and "
        f"{CLOSE_TO[1]} times the real ones, or both below {SMALL_GAIN:.0%}, in {near['L1']:.0%} "
        f"of {len(unseen)} settings for L1, and in {near['L2']:.0%} for L2."
    )
    lines = [
        *_wrapped(text),
        "",
        "| table | groups | noise | sigma | L1 | L2 |",
        "|---|---|---|---|---|---|",
    ]
    for _, row in table.iterrows():
        chosen_on = " (chosen on)" * (row["table"] in COUNTS_LOOKED_AT)
        cells = [f"{row[order]:.2f} ({row[f'{order} expected']:.2f})" for order in ("L1", "L2")]
        where = f"{row['table']}{chosen_on} | {row['groups']} | {row['law']} | {row['sigma']}"
        lines.append(f"| {where} | {' | '.join(cells)} |")
    return lines


def measure_means(data: Path | None, repeats: int) -> pd.DataFrame:
    """Return the squared error of denoised means as a multiple of that of released ones."""
    rows = []
    others = () if data is None else other_means(data)
    for seen, tables in (
        (True, packaged_means(True)),
        (False, packaged_means(False)),
        (False, others),
    ):
        for name, table in tables:
            key = {"table": name, "seen": seen or name in LOOKED_AT, "groups": len(table.rows)}
            rows.append({**key, **_means_ratios(table, repeats)})
            print(pd.DataFrame(rows[-1:]).round(3).to_string(header=False), flush=True)
    return pd.DataFrame(rows)


def _means_ratios(table: Means, repeats: int) -> dict[str, float]:
    """Return by spend the ratio of squared errors, and the one that is expected."""
    truth = table.sums / table.rows
    found = {}
    for spend, (law, scale) in SPENDS.items():
        errors = np.zeros(4)
        for _ in range(repeats):
            noisy = _measured(table, law, scale)
            raw = np.clip(noisy.centered / np.maximum(noisy.rows, 1), -1, 1)
            made = shrunken_means(raw, noisy)
            values = made.denoised.values
            errors += [np.mean((raw - truth) ** 2), np.mean((values - truth) ** 2), 0, 0]
            errors += [0, 0, made.raw_risk, made.denoised.risk]
        found[spend] = errors[1] / errors[0]
        found[f"{spend}, expected"] = errors[3] / errors[2]
    return found


def _measured(table: Means, law: Law, scale: float) -> NoisyRatio:
    """Add noise to sums and rows as a release of means does."""
    halves = [np.rint((table.rows + sign * table.sums) * (STEPS / 2)) for sign in (1, -1)]
    high, low = (half + law.draw([scale * STEPS], len(half), SYSTEM)[0] for half in halves)
    variance = 2 * (law.standard_deviation(scale * STEPS) / STEPS) ** 2
    noisy = (high - low) / STEPS, (high + low) / STEPS
    return NoisyRatio(*noisy, variance, variance, 0.0, (-1.0, 1.0), 2 if law is LAPLACE else 0)


def means_section(table: pd.DataFrame, repeats: int) -> list[str]:
    """Write the section about means."""
    spends = list(SPENDS)
    seen, other = table[table["seen"]], table[~table["seen"]]
    worst = {name: float(part[spends].max(axis=None)) for name, part in [("s", seen), ("o", other)]}
    ratios = np.concatenate([other[f"{spend}, expected"] / other[spend] for spend in spends])
    near = float(np.mean((ratios >= CLOSE_TO[0]) & (ratios <= CLOSE_TO[1])))
    text = (
        "Squared error of denoised means over that of released ones, and in brackets the ratio "
        f"that is expected; {repeats} releases each. Laplace noise is added to the distances from "
        "both bounds, added up, as a release of means does. "
        f"Rules and constants were chosen on the first {len(seen)} tables, where "
        f"{worst['s']:.2f} is the worst. On the other {len(other)} the worst is {worst['o']:.2f}, "
        "the median saved at "
        f"epsilon 1 is {1 - other['epsilon 1'].median():.0%}, and the expected ratio is between "
        f"{CLOSE_TO[0]} and {CLOSE_TO[1]} times the real one in {near:.0%} of all settings."
    )
    return [
        *_wrapped(text),
        "",
        "| table | groups | " + " | ".join(spends) + " |",
        "|---" * (len(spends) + 2) + "|",
        *_rows(seen, spends),
        *_rows(other, spends),
    ]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 100)


def _rows(table: pd.DataFrame, spends: Iterable[str]) -> list[str]:
    return [
        f"| {row['table']}{' (chosen on)' if row['seen'] else ''} | {row['groups']} | "
        + " | ".join(f"{row[spend]:.2f} ({row[f'{spend}, expected']:.2f})" for spend in spends)
        + " |"
        for _, row in table.iterrows()
    ]

"""Measure every denoiser, and write the parts of `benchmarks/results/denoising.md`.

Run with `python benchmarks/bench_denoising.py`, and `--data DIR` for Manhattan beside the
synthetic city (`examples/papers/city.py` says which files DIR holds). `--part counts` and `--part
means` measure real tables instead of maps (`real_tables.py` says what they need in DIR), and
`--speed` times the denoisers. Every part leaves the others as they are in the page. Errors are mean
squared errors in units of the variance of the noise: 1 is not denoising at all.
"""

import argparse
import re
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from dpframe.context import SYSTEM
from dpframe.denoising.methods import Facts, choose, denoise_array
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN, LAWS
from dpframe.steps.denoise_checks import edges_of

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "benchmarks" / "results" / "denoising.md"
sys.path.insert(0, str(ROOT / "examples"))

from denoised_tables import counts_section, means_section, measure_counts, measure_means  # noqa: E402  # a script, no package
from papers.city import City, manhattan, synthetic_city  # noqa: E402  # a script, no package

SIGMAS = (1, 5, 25, 100)
METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "nonnegative": ("nonnegative", {}),
    "James-Stein to zero": ("james_stein", {"toward": "zero"}),
    "James-Stein to the mean": ("james_stein", {"toward": "mean"}),
    "soft threshold, universal": ("soft_threshold", {"threshold": "universal"}),
    "soft threshold, SURE": ("soft_threshold", {"threshold": "sure"}),
    "posterior median": ("posterior", {}),
    "posterior mean": ("posterior", {"loss": "squared"}),
    "tree wavelets, universal": ("tree_wavelets", {"threshold": "universal"}),
    "tree wavelets, SURE": ("tree_wavelets", {}),
    "trend filtering, k=0": ("trend_filter", {"order": 0}),
    "trend filtering, k=1": ("trend_filter", {"order": 1}),
}
CLOSE, SAFE = 1.10, 1.02
TITLES = {"maps": "Maps", "counts": "Real tables of counts", "means": "Real tables of means"}
INTRODUCTION = """# Denoisers, measured

Written by `benchmarks/bench_denoising.py`. [Denoising](../../docs/denoising.md) has the methods.\
"""


def cases(data: Path | None) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """List the maps: name, counts, edges."""
    towns: list[tuple[str, City]] = [("synthetic", synthetic_city())]
    if data is not None:
        towns.insert(0, ("Manhattan", manhattan(data)))
    return [
        (f"{place}: {name}", counts.to_numpy(np.float64), edges_of(town.roads, town.nodes.index))
        for place, town in towns
        for name, counts in town.counts.items()
    ]


def errors(truth: np.ndarray, edges: np.ndarray, sigma: float, law: Law) -> dict[str, object]:
    """Add noise once and return the relative error of every method."""
    scale = sigma if law is GAUSSIAN else sigma / np.sqrt(2)
    values = truth + law.draw([scale], len(truth), SYSTEM)[0]
    facts = Facts(law, law.standard_deviation(scale), nonnegative=True, integer=True, edges=edges)

    def relative(estimate: np.ndarray) -> float:
        return float(np.mean((estimate - truth) ** 2)) / facts.sigma**2

    chosen = choose(values, facts)
    found: dict[str, object] = {"nothing": relative(values)}
    for name, (method, options) in METHODS.items():
        words = " ".join([method, *(f"{key}={value}" for key, value in options.items())])
        made = chosen.tried.get(words) or denoise_array(values, method, facts, options)
        found[name] = relative(made.values)
    found["auto"] = relative(chosen.denoised.values)
    found["auto took"] = ", ".join(chosen.methods) or "none"
    return found


def measure(data: Path | None, repeats: int, laws: list[Law]) -> pd.DataFrame:
    """Measure all maps, laws and scales."""
    rows = []
    for name, truth, edges in cases(data):
        for law in laws:
            for sigma in SIGMAS:
                for repeat in range(repeats):
                    key = {"map": name, "law": law.name, "sigma": sigma, "repeat": repeat}
                    rows.append({**key, **errors(truth, edges, sigma, law)})
                print(pd.DataFrame(rows[-repeats:]).drop(columns="map").to_string(), flush=True)
    return pd.DataFrame(rows)


def verdict(table: pd.DataFrame) -> tuple[float, float, pd.DataFrame]:
    """Compare the automatic choice with the best method and with doing nothing, case by case."""
    names = ["nothing", *METHODS, "auto"]
    table = table.groupby(["map", "law", "sigma"], sort=False)[names].mean()
    best = table[["nothing", *METHODS]].min(axis=1)
    close = table["auto"] <= CLOSE * best
    return float(close.mean()), float((table["auto"] / table["nothing"]).max()), table[~close]


def maps_section(table: pd.DataFrame, repeats: int) -> list[str]:
    """Write the section about maps."""
    close, worst, _ = verdict(table)
    cases = len(table) // repeats
    names = ["nothing", *METHODS, "auto"]
    parts = [
        "Mean squared error of every method, as a multiple of the variance of the noise (less is",
        f"better, 1 is not denoising), over {repeats} releases each. The best of a row is bold.",
        "",
        f"`auto` was within 10 % of the best method in {close:.0%} of the {cases} rows, and at",
        f"worst {worst - 1:+.1%} against not denoising.",
        "",
        "Counts of Manhattan are taxi rides that begin or end at each of 3,874 junctions on New",
        "Year's night 2013 and Uber rides of a day in April 2014; the synthetic city has about as",
        "many junctions. Neighbors are joined by roads. The methods know that counts are whole and",
        "not negative. The same for any array, with `edges=` for neighbors:",
        "",
        "```python",
        "from dpframe.denoising.methods import choose",
        "from dpframe.denoising.methods import Facts",
        "from dpframe.privacy.laws import GAUSSIAN",
        "",
        "facts = Facts(GAUSSIAN, 5.0, nonnegative=True, integer=True)",
        "chosen = choose([3, -4, 12, 0, 7, -2, 90, 1, 5, 2], facts)",
        "chosen.methods, chosen.denoised.values",
        "```",
    ]
    for law, part in table.groupby("law"):
        parts += ["", f"### {str(law).capitalize()} noise", ""]
        parts += ["| map | sigma | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
        for (place, sigma), rows in part.groupby(["map", "sigma"], sort=False):
            means = rows[names].mean()
            least = means[["nothing", *METHODS]].min()
            shown = [f"**{m:.3f}**" if m == least else f"{m:.3f}" for m in means]
            parts.append(f"| {place} | {sigma} | " + " | ".join(shown) + " |")
    return parts


def rewrite(page: Path, part: str, section: list[str]) -> None:
    """Put a section in the page, in the place of the one with its title."""
    sections = dict.fromkeys(TITLES.values(), "")
    for found in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, _, text = found.partition("\n")
        sections[title] = text.strip()
    sections[TITLES[part]] = "\n".join(section)
    parts = [INTRODUCTION, *(f"## {title}\n\n{text}" for title, text in sections.items() if text)]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def milliseconds(call: object, rounds: int = 5) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def speed() -> None:
    """Print medians for a city and for a million cells."""
    town = synthetic_city()
    truth = town.counts["rough and heavy-tailed"].to_numpy(np.float64)
    edges = edges_of(town.roads, town.nodes.index)
    facts = Facts(GAUSSIAN, 5.0, nonnegative=True, integer=True, edges=edges)
    values = truth + GAUSSIAN.draw([5.0], len(truth), SYSTEM)[0]
    for name, (method, options) in METHODS.items():
        spent = milliseconds(
            lambda m=method, o=options: denoise_array(values, m, facts, o), rounds=3
        )
        print(f"{len(truth)} cells, {len(edges)} edges  {name:<28} {spent:10.1f} ms")
    many = np.resize(truth, 1_000_000) + GAUSSIAN.draw([5.0], 1_000_000, SYSTEM)[0]
    for name, (method, options) in METHODS.items():
        if "tree" not in method and "trend" not in method:
            spent = milliseconds(
                lambda m=method, o=options: denoise_array(many, m, facts, o), rounds=3
            )
            print(f"1,000,000 cells  {name:<28} {spent:10.1f} ms")


def main() -> None:
    """Measure and write the page, or print times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--laws", nargs="+", default=[GAUSSIAN.name], choices=LAWS)
    parser.add_argument("--output", type=Path, default=MEASURED)
    parser.add_argument("--part", default="maps", choices=TITLES)
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    if options.speed:
        speed()
        return
    if options.part == "counts":
        section = counts_section(measure_counts(options.data, options.repeats), options.repeats)
        rewrite(options.output, "counts", section)
        return
    if options.part == "means":
        section = means_section(measure_means(options.data, options.repeats), options.repeats)
        rewrite(options.output, "means", section)
        return
    table = measure(options.data, options.repeats, [LAWS[name] for name in options.laws])
    close, worst, missed = verdict(table)
    print(f"within 10 % of the best: {close:.1%}; worst against nothing: {worst:.4f}")
    print(missed.to_string())
    rewrite(options.output, "maps", maps_section(table, options.repeats))
    if close < 0.9 or worst > SAFE:
        raise SystemExit("the automatic choice is not as good as it should be")


if __name__ == "__main__":
    main()

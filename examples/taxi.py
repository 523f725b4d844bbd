"""Publish how many taxi rides began at each junction of a city, protecting every driver.

A driver is the privacy unit, with at most 5 rides in the table that is published. The true counts
are drawn beside the release because this table is public; a real script must not touch them.

Run it with `python examples/taxi.py --output taxi-release`, and `--data DIR` for real rides in
Manhattan in place of made-up ones; `papers/city.py` says which files DIR holds.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from papers.city import city, rides

import dpframe as dpf

mpl.use("Agg")

HOUR = "minute >= 45 and minute < 105"


def main() -> None:
    """Declare, plan, release, denoise, compare and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--output", type=Path, default=Path("taxi-release"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    town = city(options.data)
    table = rides(options.data, town)

    table.dp.declare(
        keys={"junction": town.nodes.index},
        bounds={"minute": (0, 1440)},
        privacy_unit="driver",
        max_rows=5,
        ledger=dpf.Ledger(budget=dpf.Budget(epsilon=1, delta=1e-6)),  # an example is forgotten
    )
    print(table.dp.plan(dpf.count(by="junction", where=HOUR), epsilon=1).table.T.to_string())

    counts = table.dp.release(
        dpf.count(by="junction", where=HOUR), epsilon=1, denoise="auto", graph=town.roads
    )
    print(counts.dp.certificate.denoising.round(3).to_string(), f"\n\n{counts.dp.certificate}\n")

    truth = table[table["minute"].between(45, 104)].value_counts("junction")
    errors = counts.sub(truth.reindex(counts.index, fill_value=0), axis=0)
    print("root mean squared error:", np.sqrt((errors**2).mean()).round(2).to_dict())
    print("total:", int(truth.sum()), "released:", counts.sum().round().to_dict())

    counts.to_parquet(options.output / "rides.parquet")
    panels = counts.dp.plot_map(town.nodes, edges=town.roads)
    panels[0].figure.savefig(options.output / "rides.png", dpi=150)


if __name__ == "__main__":
    main()

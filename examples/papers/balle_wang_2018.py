"""Figures 1 to 6 of Balle and Wang (2018): calibrated noise, and what denoising gains.

Borja Balle and Yu-Xiang Wang, "Improving the Gaussian Mechanism for Differential Privacy:
Analytical Calibration and Optimal Denoising", arXiv 1805.06530.

- Figure 1: sigma of the classical (cGM) and the analytic (aGM) Gaussian mechanism.
- Figure 2: maps of the traffic in a city: true, released, denoised.
- Figure 3: means of vectors. Figure 4: sparse histograms. Both with the James-Stein estimator (JS),
  with soft thresholds (TH; universal as in the paper, and chosen by SURE), and Laplace noise.
- Figures 5 and 6: traffic in a busy and in a quiet hour, with wavelets (W) and trend filtering (TF)
  besides.

delta is 1e-6. The classical mechanism exists for epsilon below 1 only; at 1 it is taken just below.
Data are made up but for the traffic, which `--data` reads from files (see `city.py`).

A check that fails makes the exit code 1. Realized errors of plain noise must be within 6 standard
errors of what is predicted; of denoisers, only what holds by far is checked. Where a claim of the
paper is not borne out, a line says "differs:".

Run it with `python examples/papers/balle_wang_2018.py --output figures`, or with `--quick`.
"""

import argparse
from pathlib import Path

from bw18_arrays import figure_1, figure_3, figure_4
from bw18_city import figure_2, figure_5, figure_6
from bw18_common import Settings
from checks import Checks

FIGURES = {
    1: ("calibration", figure_1),
    2: ("maps", figure_2),
    3: ("means", figure_3),
    4: ("sparse-histograms", figure_4),
    5: ("busy-hour", figure_5),
    6: ("quiet-hour", figure_6),
}


def main() -> None:
    """Print and check the numbers of the figures, and save the pictures if wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--figure", type=int, action="append", choices=FIGURES, help="repeat it for several"
    )
    parser.add_argument("--data", type=Path, help="folder with the traffic of Manhattan")
    parser.add_argument("--output", type=Path, help="folder for the pictures")
    parser.add_argument("--quick", action="store_true", help="fewer settings and repetitions")
    options = parser.parse_args()

    checks, settings = Checks(), Settings(options.quick, options.data)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
    for number in sorted(set(options.figure or FIGURES)):
        name, make = FIGURES[number]
        figure = make(checks, settings)
        if options.output:
            path = options.output / f"balle-wang-{number}-{name}.png"
            figure.savefig(path, dpi=110)
            print(f"saved {path}")
    checks.finish()


if __name__ == "__main__":
    main()

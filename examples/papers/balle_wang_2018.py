"""Figures 1 to 6 of Balle and Wang (2018): calibrated noise, and what denoising gains.

Borja Balle and Yu-Xiang Wang, "Improving the Gaussian Mechanism for Differential Privacy:
Analytical Calibration and Optimal Denoising", arXiv 1805.06530.

- Figure 1: sigma of the classical (cGM) and the analytic (aGM) Gaussian mechanism, and the gain in
  variance, over epsilon; also the gain over delta.
- Figures 2 and 5: maps of the traffic in a city at midnight and at noon: true, released, denoised
  by wavelets (W) and by trend filtering (TF).
- Figure 3: means of 500 vectors around x_0 ~ N(0, I), sensitivity sqrt(d) / n, delta 1e-4.
  Figure 4: normalized sparse histograms of 500 records, delta 1e-4, with a panel of many bins. Both
  with the James-Stein estimator (JS), with soft thresholds (TH) and with Laplace noise, of which
  Appendix B.1 says that it is better for histograms at epsilon 1, with denoising and without.
- Figure 6: mean squared error over epsilon, of the traffic in both hours, delta 1e-6.

The classical mechanism exists for epsilon below 1 only; at 1 it is taken just below. Data are made
up, as in the paper, but for the traffic: there `--data` reads files (see `city.py`), whose hours
stand in for those of the paper, and without them the city is made up. Sizes d, the epsilons of the
curves and that of the maps are chosen here. What goes beyond the paper is named in the modules of
the figures.

A check that fails makes the exit code 1. Realized errors of plain noise must be within 6 standard
errors of what is predicted; of denoisers, only what holds by far is checked. Where a claim of the
paper is not borne out, a line says "differs:". Bars are two standard errors long on each side.

Run it with `python examples/papers/balle_wang_2018.py --output figures`: 100 repetitions of Figures
3 and 4, a few minutes, and 5 of Figure 6, about twenty. `--quick` takes less of everything.
"""

import argparse
from pathlib import Path

from bw18_arrays import figure_3, figure_4
from bw18_calibration import figure_1
from bw18_city import figure_2, figure_5, figure_6
from bw18_common import Settings, plt
from checks import Checks

FIGURES = {
    1: ("calibration", figure_1),
    2: ("midnight", figure_2),
    3: ("means", figure_3),
    4: ("sparse-histograms", figure_4),
    5: ("noon", figure_5),
    6: ("traffic", figure_6),
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
        plt.close(figure)
    checks.finish()


if __name__ == "__main__":
    main()

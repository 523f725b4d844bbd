"""Time of exact noise beside numpy's `Generator.normal`, and beside OpenDP where it is installed.

Noise in a box is timed beside the discrete Laplace.

Both sides run in turn in one process; medians are compared.
Run: `python benchmarks/bench_noise.py`.
"""

import importlib.util
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from dpframe.context import SYSTEM
from dpframe.privacy import noise
from dpframe.privacy.box import box_noise
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN, LAPLACE

SCALES = [0.05, 0.3, 1.0, 4.2, 1000.0, 2.0**20, 2.0**40, 2.0**50]
MILLION = 10**6
SIZES = [10_000, 30_000, 100_000, 300_000, MILLION]
MEMBERS = [2, 4, 10]
OPENDP_DRAWS = 20_000


def medians(calls: list[Callable[[], object]], repeats: int) -> list[float]:
    """Median seconds of each call; they take turns."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, row in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            row.append(time.perf_counter() - start)
    return [statistics.median(row) for row in seconds]


def beside_numpy(law: Law, scale: float) -> str:
    """One row of the table."""
    generator = np.random.default_rng()
    ours, normal = medians(
        [
            lambda: noise.integer_noise(law.curve, scale, MILLION, SYSTEM),
            lambda: generator.normal(0.0, scale, MILLION),
        ],
        repeats=11,
    )
    (thousand,) = medians(
        [lambda: noise.integer_noise(law.curve, scale, 1000, SYSTEM)], repeats=201
    )
    (one,) = medians([lambda: noise.integer_noise(law.curve, scale, 1, SYSTEM)], repeats=201)
    return (
        f"{law!s:>9} {scale:>9.3g} {ours * 1e3:>9.2f} {normal * 1e3:>9.2f} {ours / normal:>6.2f} "
        f"{thousand * 1e6:>9.0f} {one * 1e6:>6.0f}"
    )


def ratios_by_size(law: Law, scale: float) -> str:
    """A row of times per draw, over those of numpy, of calls for more and more draws."""
    normal, cells = np.random.default_rng().normal, []
    for size in SIZES:
        ours, theirs = medians(
            [
                partial(noise.integer_noise, law.curve, scale, size),
                partial(normal, 0.0, scale, size),
            ],
            repeats=max(11, 2 * MILLION // size),
        )
        cells.append(f"{ours / theirs:>9.2f}")
    return f"{law!s:>9} {scale:>9.3g} {' '.join(cells)}"


def one_scale_per_draw(law: Law) -> str:
    """A row for a million draws of as many scales."""
    generator = np.random.default_rng()
    scales = generator.uniform(0.5, 1e4, MILLION)
    ours, normal = medians(
        [
            lambda: noise.integer_noise(law.curve, scales, MILLION, SYSTEM),
            lambda: generator.normal(0.0, scales),
        ],
        repeats=11,
    )
    return (
        f"{law!s:>9} {'one each':>9} {ours * 1e3:>9.2f} {normal * 1e3:>9.2f} {ours / normal:>6.2f}"
    )


def box_beside_laplace(members: int, scale: float) -> str:
    """Time per coordinate of noise in a box, and of the discrete Laplace."""
    cells = MILLION // members
    ours, laplace = medians(
        [
            lambda: box_noise([scale] * members, cells, SYSTEM),
            lambda: noise.integer_noise(LAPLACE.curve, scale, members * cells, SYSTEM),
        ],
        repeats=21,
    )
    draws = members * cells
    return (
        f"box of {members:>2} coordinates, scale {scale:>9.3g}: {ours / draws * 1e9:5.1f} ns each, "
        f"Laplace {laplace / draws * 1e9:5.1f} ns: {ours / laplace:.2f} times"
    )


def beside_opendp(scale: float) -> str:
    """Time per draw of OpenDP's discrete Gaussian and of ours."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    measurement = dp.m.make_gaussian(*space, scale=scale)
    zeros = [0] * OPENDP_DRAWS
    theirs, ours = medians(
        [
            lambda: measurement(zeros),
            lambda: noise.integer_noise(GAUSSIAN.curve, scale, MILLION, SYSTEM),
        ],
        repeats=5,
    )
    theirs, ours = theirs / OPENDP_DRAWS, ours / MILLION
    return (
        f"OpenDP discrete Gaussian, scale {scale:g}: {theirs * 1e9:.0f} ns per draw, "
        f"dpframe {ours * 1e9:.1f} ns: {theirs / ours:.0f} times"
    )


def main() -> None:
    """Print the tables."""
    print("median times; a million draws in ms, of dpframe and of numpy's normal; 1000 and 1 in us")
    print(f"{'law':>9} {'scale':>9} {'dpframe':>9} {'numpy':>9} {'ratio':>6} {'1000':>9} {'1':>6}")
    for law in (GAUSSIAN, LAPLACE):
        for scale in SCALES:
            print(beside_numpy(law, scale))
        print(one_scale_per_draw(law))
    print("times over those of numpy's normal, by the number of draws")
    print(f"{'law':>9} {'scale':>9} {' '.join(f'{size:>9,}' for size in SIZES)}")
    for law in (GAUSSIAN, LAPLACE):
        for scale in (30.0, 2.0**20, 2.0**45):
            print(ratios_by_size(law, scale))
    for members in MEMBERS:
        for scale in (1000.0, 2.0**33):
            print(box_beside_laplace(members, scale))
    if importlib.util.find_spec("opendp") is not None:
        for scale in (1.0, 4.2, 1000.0):
            print(beside_opendp(scale))


if __name__ == "__main__":
    main()

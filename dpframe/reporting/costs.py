"""What releases cost: the arithmetic of a witness, and what adds up over parts of the data."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from dpframe.certificates.certificate import Release
from dpframe.certificates.parts import WitnessPart
from dpframe.ledger.log import Entry
from dpframe.privacy.amounts import float_above
from dpframe.privacy.gaussian import mu_of_pure
from dpframe.privacy.interpretation import Guarantee
from dpframe.privacy.laws import GAUSSIAN, LAWS, STAIRCASE

_MOST_TERMS = 12  # of a release that are shown
_CURVE = "delta = \u03a6(mu/2 - epsilon/mu) - exp(epsilon) \u03a6(-mu/2 - epsilon/mu)"


def cost_lines(release: Release) -> list[str]:
    """Say what the worst units move, over the scales of the noise, and what that adds up to."""
    terms: list[str] = []
    mu_squared = epsilon = 0.0
    for part in release.witness:
        terms += _terms(part)
        mu_squared += part.alike * float(part.loss.mu_squared)
        epsilon += part.alike * float(part.loss.epsilon)
    hidden = len(terms) - _MOST_TERMS
    lines = terms[:_MOST_TERMS]
    if hidden > 0:
        lines.append(f"and {hidden:,} more, as in the certificate")
    if epsilon:
        lines.append(f"added up: epsilon = {epsilon:.6g}")
    if mu_squared:
        mu = math.sqrt(mu_squared)
        lines.append(f"added up: mu squared = {mu_squared:.6g}, mu = {mu:.6g}")
    loss = release.privacy_loss
    if mu_squared and loss.epsilon is not None and loss.delta:
        lines.append(
            f"at delta = {loss.delta:g}: epsilon = {loss.epsilon:.6g}, which solves {_CURVE}"
        )
    return lines


def _terms(part: WitnessPart) -> Iterator[str]:
    """Write what a unit moves in cells, one line for each integer that is measured."""
    measured = f"{part.alike:,} measurements, each " if part.alike > 1 else ""
    for cells in part.cells:
        a, b = cells.rows
        many = "1 cell" if cells.times == 1 else f"{cells.times:,} cells"
        for block, (x, y) in cells.moves.items():
            for u, v, factor in cells.shared:
                moved = abs(u * a * x - v * b * y)
                if moved:
                    cost = _cost(part.law, moved, part.scales[block])
                    times = "" if factor == 1 else f", times {factor:.12g}"
                    yield f"{measured}{many}: {cost}{times}"


def _cost(law: str, moved: int, scale: float) -> str:
    """Write the cost of a move, as a formula."""
    known = LAWS.get(law)
    if known is GAUSSIAN:
        return f"({moved:,} / {scale:.12g})\N{SUPERSCRIPT TWO}"
    if known is STAIRCASE:
        width = int(scale)
        return f"{-(-moved // width):,} log(1 / {scale - width:.12g})"
    return f"{moved:,} / {scale:.12g}"


def loss_of_parts(entries: Sequence[Entry], times: int) -> Guarantee | None:
    """Bound what somebody loses who is a unit in each of so many parts of the data.

    Of a release of one part, one unit moves: mu squared and epsilons add up. Of a release over all
    parts, all units of that person move: mu and epsilon are `times` as large (Dong, Roth and Su
    2022, on groups). Amounts must not depend on answers.

    Returns
    -------
    Guarantee or None
        `None` where labels were searched over all parts: the extra delta of several units at once
        is not known.

    References
    ----------
    J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B 84(1), 2022.
    """
    epsilon, mu_squared, delta = Fraction(0), Fraction(0), Fraction(0)
    in_squares = Fraction(0)  # epsilons, as mu squared of the Gaussian noise that is no better
    for entry in entries:
        moved = times if entry.part is None else 1
        if entry.loss.delta and moved > 1:
            return None
        pure = moved * entry.loss.epsilon
        epsilon += pure
        mu_squared += moved**2 * entry.loss.mu_squared
        delta += entry.loss.delta
        in_squares += Fraction(mu_of_pure(pure)) ** 2 if pure else 0
    if not mu_squared:
        return Guarantee(epsilon=float_above(epsilon), delta=float_above(delta))
    root = math.sqrt(float_above(mu_squared + in_squares))
    mu = math.nextafter(root, math.inf)
    return Guarantee(mu=mu, extra_delta=float_above(delta))

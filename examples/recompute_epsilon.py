"""Recompute what a release costs from its certificate alone, with no code of dpframe.

    python examples/recompute_epsilon.py counts.csv.certificate.json

A certificate names the worst unit of each measurement. In a cell, a rows of that unit stand in
place of b rows of another. Each of them adds x, or y, to a measured integer, which moves by
|a x - b y|. Noise of scale s hides that at a cost of

    Gaussian                  (moved / s)^2                   added up: mu squared
    Laplace, box, geometric   moved / s                       added up: epsilon
    staircase                 ceil(moved / D) log(1 / b)      added up: epsilon, with s = D + b

Integers measured over many cells have triples (u, v, f): f times the cost of |u a x - v b y|,
added up. Epsilon of Gaussian noise follows from mu and delta (Balle and Wang 2018, Theorem 8).
"""

import argparse
import json
from pathlib import Path

from mpmath import mp, mpf

mp.dps = 40
NEAR = 1 + mpf(2) ** -40  # amounts of certificates are floats


def cost_of_move(law, moved, scale):
    """Return what it costs that a measured integer moves."""
    if law == "gaussian":
        return (moved / mpf(scale)) ** 2
    if law == "staircase":
        width = int(scale)
        return -(-moved // width) * mp.log(1 / (mpf(scale) - width))
    return moved / mpf(scale)


def cost_of_unit(part):
    """Return what the worst unit of one measurement costs."""
    total = mpf(0)
    for cells in part["cells"]:
        a, b = cells["rows"]
        for block, (x, y) in cells["moves"].items():
            for u, v, factor in cells["shared"]:
                moved = abs(u * a * x - v * b * y)
                cost = cost_of_move(part["law"], moved, part["scales"][block])
                total += cells["times"] * mpf(factor) * cost
    return total


def chance_shown(part):
    """Return the chance that noise shows a group that one unit alone has."""
    lone, scale = part["lone"], mpf(part["scales"]["0"])
    least = lone["threshold"] - lone["weight"]
    if part["law"] == "gaussian":  # rounded to an integer
        tail = mp.erfc((least - mpf(1) / 2) / scale / mp.sqrt(2)) / 2
    else:
        ratio = mp.exp(-1 / scale)
        tail = ratio**least / (1 + ratio) if least >= 1 else 1 - ratio ** (1 - least) / (1 + ratio)
    return 1 - (1 - tail) ** lone["labels"]


def delta_of_groups(part, epsilon, replaced):
    """Return the delta of numbers and groups together at an epsilon, of Gaussian noise."""
    labels, scale = part["lone"]["labels"], mpf(part["scales"]["0"]) / part["lone"]["weight"]
    kept = (1 - chance_shown(part)) ** (mpf(1) / labels)
    moved = (2 if replaced else 1) * labels
    worst = mpf(0)
    for alone in range(moved + 1):
        hidden = min(alone, labels)
        left, mu = epsilon + hidden * mp.log(kept), mp.sqrt(moved - alone) / scale
        noise = delta_of(mu, left) if mu else max(mpf(0), 1 - mp.exp(left))
        worst = max(worst, 1 - kept**hidden + noise)
    return worst


def delta_of(mu, epsilon, pure=0):
    """Return the delta of Gaussian noise at an epsilon, beside pure noise: randomized response."""
    left = epsilon - pure, epsilon + pure
    near, far = (mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu) for e in left)
    return (near + mp.exp(-pure) * far) / (1 + mp.exp(-pure))


def epsilon_of(curve, delta):
    """Return the least epsilon at a delta, by bisection."""
    low, high = mpf(0), mpf(10) ** 6
    for _ in range(140):
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) > delta else (low, middle)
    return high


def most_rows(release):
    """Tell whether the rows of the units named obey the caps; of stairs, only those in a cell."""
    caps = release["privacy_unit"]["caps"]
    total, group = caps["max_rows"], caps["max_rows_per_group"]
    each = min((cap for cap in (total, group) if cap is not None), default=mp.inf)
    for part in release["witness"]:
        rows = sum(cells["times"] * sum(cells["rows"]) for cells in part["cells"])
        most = max((row for cells in part["cells"] for row in cells["rows"]), default=0)
        counted = total is not None and part["law"] != "staircase"
        if most > each or (counted and rows > total * (1 + (release["neighboring"] == "replace"))):
            return False
    return True


def recompute(release):
    """Return mu, epsilon and the extra delta of a release, computed anew."""
    parts, delta = release["witness"], release["privacy_loss"]["delta"]
    costs = [(part["law"], part["alike"] * cost_of_unit(part)) for part in parts]
    mu = mp.sqrt(sum((cost for law, cost in costs if law == "gaussian"), mpf(0)))
    pure = epsilon = sum((cost for law, cost in costs if law != "gaussian"), mpf(0))
    extra = sum((part["alike"] * chance_shown(part) for part in parts if part["lone"]), mpf(0))
    if mu and delta and parts[0]["lone"] and len(parts) == 1:
        replaced = release["neighboring"] == "replace"
        epsilon = epsilon_of(lambda e: delta_of_groups(parts[0], e, replaced), mpf(delta))
    elif mu and delta:
        epsilon = epsilon_of(lambda e: delta_of(mu, e, pure), mpf(delta) - extra)
    of_pure = 8 * mp.erfinv(mp.tanh(pure / 2)) ** 2  # the mu squared of randomized response
    return mp.sqrt(mu**2 + of_pure) if mu else mu, epsilon, extra


def compare(release):
    """Return lines that compare what was recomputed with what is promised."""
    mu, epsilon, extra = recompute(release)
    loss = release["privacy_loss"]
    pairs = [("extra delta", extra, loss["extra_delta"])]
    pairs += [("epsilon", epsilon, loss["epsilon"])] if loss["delta"] is not None else []
    pairs += [("mu", mu, loss["mu"])] if mu else []
    lines = [release["query"]["words"]]
    for name, cost, promised in pairs:
        said = "at most" if cost <= promised * NEAR else "MORE THAN"
        lines.append(f"  {name} {mp.nstr(cost, 12)}: {said} the {promised:.12g} promised")
    for part in release["witness"]:
        lines.append(f"  {part['unit']}{', among those tried' if part['sampled'] else ''}")
    if not most_rows(release):
        lines.append("  MORE ROWS than caps allow")
    return lines


def main():
    """Read a certificate and print its releases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("certificate", type=Path, help="JSON of a certificate")
    found = json.loads(parser.parse_args().certificate.read_text(encoding="utf-8"))
    for release in found.get("certificate", found)["releases"]:
        print("\n".join(compare(release)))


if __name__ == "__main__":
    main()

"""Errors of plans, and of releases that are drawn, beside goals and lower bounds."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import dpframe as dpf

ONE = {"epsilon": 1, "delta": 1e-6}
WIDE = 1e-3  # an amount with noise so wide that rounding does not show; errors are times it


class Row(NamedTuple):
    """A figure with the most that it should be, and what else is known of it."""

    words: str
    value: float
    goal: float | None
    note: str = ""


def declared(sizes: dict[str, int] | None = None, **facts: Any) -> Any:
    """A frame of one row, whose columns have so many keys, or bounds."""
    keys = {name: range(size) for name, size in (sizes or {}).items()}
    frame = pd.DataFrame({name: [0] for name in [*keys, *facts.get("bounds", ())]} or {"a": [0]})
    frame.dp.declare(keys=keys, privacy_unit=dpf.EACH_ROW, **facts)
    return frame


def errors_of(frame: Any, query: Any, **spent: Any) -> np.ndarray:
    """Standard errors of a plan."""
    shown = frame.dp.plan(query, useful="any", **spent).table
    return shown["std_error"].to_numpy(float)


def shared() -> Iterator[Row]:
    """Several queries beside calls of their own at their parts, by the dicts of the tests."""
    from plan import test_sharing as sharing

    ratios = []
    for seed in range(200):
        dice = np.random.default_rng(seed)
        number = dice.integers(2, 7)
        names = dice.choice(list(sharing.QUERIES), size=number, replace=False).tolist()
        frame = sharing.declared(int(dice.choice([1, 1, 3, 12])))
        amount = dict(zip(("epsilon", "delta"), sharing.AMOUNTS[seed % 4], strict=True))
        asked = {name: sharing.QUERIES[name] for name in names}
        queries = sharing.check_queries(frame, asked)[1]
        declaration = frame.dp.declaration
        plan = sharing.plan_release(declaration, queries, sharing.Spend.of(**amount))
        apart = [
            {
                name: sharing.alone(declaration, queries[name], law, part=part, **amount)
                for name, part in plan.parts.items()
            }
            for law in sharing.LAWS
        ]
        losses = [sum(map(math.log, map(sharing.variance, own.values()))) for own in apart]
        best = apart[int(np.argmin(losses))]
        together = sharing.errors(plan)
        for name, own in best.items():
            pairs = zip(together[name], sharing.errors(own)[None], strict=True)
            ratios.append(max(mine / theirs for mine, theirs in pairs))
    words = f"200 dicts, {len(ratios)} queries: worst error beside its own call"
    yield Row(words, max(ratios), 1.002, f"{max(ratios) - 1:.3%} more")
    keys, bounds = {"ward": 6}, {"cost": (0, 20_000), "stay": (0, 40)}
    frame = declared(keys, bounds=bounds)
    wards = dpf.aggregate("ward", n=dpf.count(), cost=dpf.mean("cost"))
    both = {"wards": wards, "median": dpf.quantile("stay", 0.5)}
    beside = errors_of(frame, both, epsilon=1, rows=60)
    halves = [errors_of(frame, query, epsilon=0.5, rows=60) for query in both.values()]
    worst = (beside / np.concatenate(halves)).max()
    yield Row("count and mean of wards beside one median, the same", worst, 1.002)
    frame = declared(bounds={"x": (-1, 1), "y": (-1, 1)})
    mirrored = {"a": dpf.corr("x", "y"), "b": dpf.corr("y", "x")}
    alone = errors_of(frame, mirrored["a"], epsilon=1, rows=1000)
    ratio = errors_of(frame, mirrored, epsilon=1, rows=1000).max() / alone.item()
    yield Row("a correlation with its mirror, beside the correlation", ratio, 1)
    frame = declared(bounds={"x": (0, 1)}, budget=dpf.Budget(**ONE))
    both = {"query": {"n": dpf.count(), "t": dpf.sum("x")}}
    both["mechanism"] = {"n": "laplace", "t": "gaussian"}
    exact, pots = (
        frame.dp.plan(**both, **spent).table["part"].sum() for spent in (ONE, {"share": 1})
    )
    words = "two laws in one charge of (1, 1e-6), half each: part of what one law may spend"
    yield Row(words, exact, None, f"a share of all: {pots:.3g}")


def pair_of(rows: int) -> np.ndarray:
    """Values in [-1, 1] of standard deviation .3 and correlation .6, to the last digit."""
    dice = np.random.default_rng(0)
    while True:
        normal = dice.standard_normal((rows, 2))
        normal -= normal.mean(0)
        normal @= np.linalg.inv(np.linalg.cholesky(np.cov(normal.T, bias=True))).T
        values = 0.3 * normal @ [[1, 0.6], [0, 0.8]]
        if np.abs(values).max() < 1:
            return values


def in_groups(values: np.ndarray, names: list[str], groups: int, **facts: Any) -> Any:
    """The same rows in each of many groups, so that one release draws many times."""
    frame = pd.DataFrame(np.tile(values, (groups, 1)), columns=names)
    frame["group"] = np.repeat(np.arange(groups), len(values))
    bounds, keys = dict.fromkeys(names, (-1, 1)), {"group": range(groups)}
    frame.dp.declare(bounds=bounds, keys=keys, privacy_unit=dpf.EACH_ROW, **facts)
    return frame


ASKED = {"r": dpf.corr("x", "y"), "mx": dpf.mean("x"), "my": dpf.mean("y")}
ASKED |= {"vx": dpf.var("x"), "vy": dpf.var("y"), "n": dpf.count()}
FILLED = {"missing": {"x": 0.0, "y": 0.0}}


def moments(*, filled: bool) -> Iterator[Row]:
    """Errors of a correlation, two means, two variances and a count in drawn releases."""
    frame = in_groups(pair_of(1000), ["x", "y"], 2000, **(FILLED if filled else {}))
    query, times = dpf.aggregate("group", **ASKED), 50
    exact = {"r": 0.6, "mx": 0, "my": 0, "vx": 0.09, "vy": 0.09, "n": 1000}
    releases = [dpf.release(frame, query, epsilon=1, useful="any") for _ in range(times)]
    goals = {"corr": ("r", 0.038), "mean": ("mx my", 0.0036), "var": ("vx vy", 0.0044)}
    for name, (columns, goal) in {**goals, "n": ("n", 4.3)}.items():
        squares = [
            np.mean([np.square(table[c] - exact[c]).mean() for c in columns.split()])
            for table in releases
        ]
        rms = math.sqrt(np.mean(squares))
        off = np.std(squares, ddof=1) / math.sqrt(len(squares)) / (2 * rms)
        given = "" if filled else ", no `missing=`"
        words = f"{name} of corr, 2 means, 2 variances, n{given}, {2000 * times:,} draws: rms"
        # of so few draws, the correlation is too close to its goal to tell: see `by_law`
        is_told = filled and name != "corr"
        yield Row(words, rms, goal if is_told else None, f"± {off:.2g}")


def by_law(draws: int = 2_000_000) -> Row:
    """The error of that correlation, as it differs in draws from its error to first order."""
    values = pair_of(1000)
    frame = in_groups(values, ["x", "y"], 1, **FILLED)
    released = dpf.release(frame, dpf.aggregate("group", **ASKED), epsilon=1, useful="any")
    column = next(one for one in released.dp.certificate.columns if one.name == "r")
    loadings = column.totals.loadings
    exact = {
        name: np.prod(values ** np.array([*map(int, name.split()[1:])]), axis=1).sum(keepdims=True)
        for name in loadings
    }
    _, moved = column.statistic.estimate(type(column.totals)(exact, loadings))
    first_order = sum(np.square(part).item() for part in moved.values())
    dice, beyond = np.random.default_rng(7), []
    for _ in range(draws // 100_000):
        noise = {block: dice.laplace(size=100_000) / math.sqrt(2) for block in moved}
        totals = {
            name: exact[name] + sum(part * noise[block] for block, part in of.items())
            for name, of in loadings.items()
        }
        drawn, _ = column.statistic.estimate(type(column.totals)(totals, loadings))
        linear = sum(part * noise[block] for block, part in moved.items())
        beyond.append(np.mean(np.square(drawn - 0.6) - np.square(linear)))
    rms = math.sqrt(first_order + np.mean(beyond))
    off = np.std(beyond, ddof=1) / math.sqrt(len(beyond)) / (2 * rms)
    words = f"the same correlation, {draws:,} draws of its law beside its error to first order: rms"
    return Row(words, rms, 0.038, f"± {off:.2g}; to first order {math.sqrt(first_order):.4g}")


def regression() -> Iterator[Row]:
    """The median error of the coefficients of three covariates in drawn releases."""
    dice, turns = np.random.default_rng(21), 40
    root = np.linalg.cholesky(0.3 * np.ones((3, 3)) + 0.7 * np.eye(3))
    known = (0.3 * dice.normal(size=(10_000, 3)) @ root.T).clip(-1, 1)
    y = (known @ [0.6, -0.3, 0.5] + dice.normal(0, 0.2, len(known))).clip(-1, 1)
    exact = np.linalg.lstsq(np.c_[np.ones(len(known)), known], y, rcond=None)[0][1:]
    names = ["a", "b", "c"]
    frame = in_groups(np.c_[known, y], [*names, "y"], 50)
    released = [frame.dp.regression("y", names, by="group", epsilon=1) for _ in range(turns)]
    off = pd.concat(released)[names].to_numpy() - exact
    rms = np.sqrt(np.square(off).mean(1))
    medians = np.median(rms.reshape(turns, -1), axis=1)
    spread = np.std(medians, ddof=1) / math.sqrt(turns)
    words = "coefficients of 3 covariates, 2,000 draws: median rms"
    yield Row(words, float(np.median(rms)), 0.0145, f"± {spread:.2g}")


def drawn() -> Iterator[Row]:
    """Moments of pairs of columns, with missing values filled and not, and a regression."""
    yield from moments(filled=True)
    yield by_law()
    yield from moments(filled=False)
    yield from regression()


def tables() -> Iterator[Row]:
    """Margins: pure plans that others dominate, nested keys, possible cells."""
    from strategies import test_margins as margins

    for sizes, ways in margins.SHAPES:
        sets = margins.subsets_of(range(len(sizes)))
        sets = [table for table in sets if len(table) <= ways]
        frame = declared({f"k{k}": size for k, size in enumerate(sizes)})
        pure = errors_of(frame, dpf.margins([[f"k{k}" for k in t] for t in sets]), epsilon=WIDE)
        axes = tuple(margins.Dimension(size, ordered=False) for size in sizes)
        domain = margins.Domain(axes, None, tuple(sets))
        usual = np.log(margins.table_layers(domain, margins.LAPLACE).shares)
        cells = np.array([domain.size_of(table) for table in sets])
        dice = np.random.default_rng(5)
        starts = [usual, 0 * usual, 3.0 * (cells == cells.max())]
        starts += [np.log(cells) / 3, -np.log(cells) / 3]
        starts += [usual + dice.normal(0, 1.5, len(sets)) for _ in range(4)]
        most = 2 * np.log(pure * WIDE)
        fall = max(margins.lowered(sizes, sets, most, start) for start in starts) / 2
        words = f"margins of {' x '.join(map(str, sizes))}, to {ways} ways: geometric mean falls by"
        yield Row(words, fall, 0.01, f"largest table {pure[-1] * WIDE:.3g}")
    places = np.arange(100)
    keys = pd.DataFrame({"country": places // 10, "region": places})
    nested = dpf.margins([[], ["country"], ["country", "region"]], keys=keys)
    frame = declared({"country": 10, "region": 100})
    yield Row("1, 10, 100 nested, mu 1: worst", errors_of(frame, nested, mu=1).max(), 1.65)
    yield Row("the same, epsilon 1", errors_of(frame, nested, epsilon=1).max(), 4.2)
    dice = np.random.default_rng(31)
    there = dice.random((11, 9)) < 0.33
    there[:, 4] = True
    cells = np.flatnonzero(np.repeat(there.ravel(), 7))
    places = np.array(np.unravel_index(cells, (11, 9, 7))).T
    possible = pd.DataFrame(places, columns=list("abc"))
    frame = declared({"a": 11, "b": 9, "c": 7})
    errors = errors_of(frame, dpf.margins(list("abc"), 3, keys=possible), epsilon=1)
    words = f"{len(cells)} possible cells of 11 x 9 x 7, epsilon 1"
    yield Row(f"{words}: base", errors[-1], 1.8)
    yield Row(f"{words}: total", errors[0], 8.2)


def thresholds() -> Iterator[Row]:
    """How many people a group has that `discover` publishes in every second release."""
    for groups, goal in {3: 38, 5: 49, 10: 71, 100: 239}.items():
        frame = pd.DataFrame({"person": [0], "zone": [0]})
        frame.dp.declare(privacy_unit="person", max_groups=groups, max_rows=1000)
        shown = frame.dp.plan(dpf.discover("zone"), **ONE).table.loc["gaussian"]
        words = f"Gaussian threshold, {groups} groups of a person, (1, 1e-6): published from"
        yield Row(words, math.ceil(shown["threshold"]), goal, f"threshold {shown['threshold']:g}")


def wanted(bins: int, window: int | str | None) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last edge of all sums that matter."""
    if window is None:
        return np.triu_indices(bins + 1, 1)
    last = np.arange(1 if window == "expanding" else window, bins + 1)
    return np.zeros_like(last) if window == "expanding" else last - window, last


def least_error(low: np.ndarray, high: np.ndarray, bins: int, rounds: int) -> float:
    """No matrix with columns of length 1 errs less: a bound by the nuclear norm, weighted.

    All weights of bins bound it; with many rounds they are the best ones, and it is the optimum.
    """
    edges = np.zeros((bins + 1, bins + 1))
    for first, second, sign in ((low, low, 1), (high, high, 1), (low, high, -1), (high, low, -1)):
        np.add.at(edges, (first, second), sign / len(low))
    above = edges[::-1, ::-1].cumsum(0).cumsum(1)[::-1, ::-1]  # a bin counts below higher edges
    products, weights = above[1:, 1:], np.ones(bins)
    for _ in range(rounds):
        root = np.sqrt(weights)
        values, vectors = np.linalg.eigh(root[:, None] * products * root)
        moved = np.square(vectors) @ np.sqrt(values.clip(0))
        weights *= (moved / weights) ** 1.5
        weights /= weights.max()
    root = np.sqrt(weights)
    values = np.linalg.eigvalsh(root[:, None] * products * root)
    return float(np.sqrt(values.clip(0)).sum() / math.sqrt(weights.sum()))


def ranges() -> Iterator[Row]:
    """Root mean square errors of sums over bins, with Gaussian noise, beside lower bounds."""
    cases: list[tuple[int, Any, float]] = [(64, None, 1.06), (1024, None, 1.06)]
    cases += [(64, "expanding", 1.04), (1024, "expanding", 1.08)]
    cases += [(52, weeks, 1.05) for weeks in (4, 13, 26)]
    for bins, window, goal in cases:
        frame = declared(bounds={"x": (0, bins)})
        plan = frame.dp.plan(dpf.ranges("x", bins, window=window), mu=WIDE, useful="any")
        noise = plan.release().dp.certificate.mechanism.by_block["0"]
        low, high = wanted(bins, window)
        pairs = (low, low), (high, high), (low, high)
        first, second, both = (noise.edge_covariances(*pair) for pair in pairs)
        error = WIDE * math.sqrt((first + second - 2 * both).mean())
        is_window = isinstance(window, int)
        bound = least_error(low, high, bins, rounds=60 if is_window else 0)
        named = {None: "all ranges of", "expanding": "prefix sums of"}
        words = named.get(window, f"windows of {window} of")
        beside = "optimum" if is_window else "nuclear-norm bound"
        note = f"rms {error:.4g}, {beside} {bound:.4g}, at mu 1"
        yield Row(f"{words} {bins} bins, Gaussian, beside the {beside}", error / bound, goal, note)

"""Errors of the same question in other forms, and intervals, beside what is known to be possible.

Closed forms and exact laws are computed here, by other routes than in the library.
"""

import math

ANSWERS = [f"q{number}" for number in range(10)]
EVERYONE = 1_000  # rows of the means
HIGH = 0.99  # nearly the worst mean, and never cut off


def of_box(members):
    """Return the variance of each coordinate of a box that moves by 1, at epsilon 1."""
    return (members + 1) * (members + 2) / 3


MOST = 20  # rows of a unit
STAIRS = {
    "a sum on its own, epsilon 3": (3, 200),  # as for real numbers: the sum moves by 200 steps
    "a sum on its own, epsilon 5": (5, 200),
    f"a count of units of up to {MOST} rows, epsilon 3": (3, MOST),
}
"""Epsilon, and the integers that a unit moves a total by."""


def of_stairs(epsilon, moved):
    """Return the least deviation of staircase noise, by adding up the law of every width."""
    ratio = math.exp(-epsilon)
    squares, below = [], []  # of stairs 0, 1, ... and of numbers on one up to each width
    for stair in range(math.ceil(40 / epsilon) + 1):
        first = stair * moved
        sums = [0]
        for place in range(moved):
            sums.append(sums[-1] + (first + place) ** 2)
        squares.append(ratio**stair)
        below.append(sums)
    found = []
    for width in range(1, moved + 1):
        mass = sum(w * (width + ratio * (moved - width)) for w in squares)
        parts = zip(squares, below, strict=True)
        second = sum(w * (own[width] + ratio * (own[moved] - own[width])) for w, own in parts)
        found.append(math.sqrt(2 * second / (2 * mass - 1)))
    return min(found)


GEOMETRIC = math.sqrt(2 * math.exp(-1)) / (1 - math.exp(-1))
TABLES = {0: 1, 1: 20, 2: 180}  # cells of all tables of at most two of ten columns, by columns
LEAST = {
    "ten tables of yes and no, rows may lack an answer": math.sqrt(of_box(21) * 3 / 8),
    "ten tables of yes and no, each row has all answers": math.sqrt(of_box(11) / 2),
    "all tables of at most two of ten columns of yes and no": math.sqrt(
        of_box(56) * sum(cells / 2**ways for ways, cells in TABLES.items()) / sum(TABLES.values())
    ),
    "two conditions that exclude each other": GEOMETRIC,
    "count with sum and mean, a missing value drops the row": 2.0,
    "sum with count and mean, a missing value drops the row": math.sqrt(2),
    "mean with count and sum, a missing value drops the row": math.sqrt(2),
    **{
        form: of_stairs(*stairs) * (1 / 200 if "sum" in form else 1)
        for form, stairs in STAIRS.items()
    },
}
"""Standard errors: of one box on characters, of geometric noise, of two ends, of stairs.

Epsilon is 1, where a form names no other.
"""

PAIRS = TABLES[2] + TABLES[1] * 2 / 9 + TABLES[0] * 4 / 45  # smaller ones are means over pairs
APART = {
    "ten tables of yes and no, rows may lack an answer": ("histogram", 10, 1.0),
    "ten tables of yes and no, each row has all answers": ("histogram", 10, 1.0),
    "all tables of at most two of ten columns of yes and no": (
        "histogram",
        45,
        math.sqrt(PAIRS / sum(TABLES.values())),
    ),
    "two conditions that exclude each other": ("count", 2, 1.0),
    "count with sum and mean, a missing value drops the row": ("count", 2, 1.0),
    "sum with count and mean, a missing value drops the row": ("sum", 2, 1 / 50),
    **{
        form: ("sum", 1, 1 / 50 / epsilon)
        for form, (epsilon, _) in STAIRS.items()
        if "sum" in form  # noise of whole numbers is not in proportion to 1 / epsilon
    },
}
"""What peers are asked for: a statistic, how many of them, and what its error is multiplied by."""

WIDTHS = {
    "a sum of 24 counts, epsilon 1": 0.95,
    "a sum of 24 counts, epsilon 5": 0.95,
    "a difference of two of ten columns in a box, epsilon 1": 0.8,
    "a ratio of two counts of 50 rows, epsilon 2": 0.95,
    "a share of one of 12 groups of 10 rows in percent, epsilon 5": 0.95,
}
"""Intervals, and their levels."""


def asked(form):
    """Return a query with the declaration that it is asked under, and its column."""
    import dpframe as dpf

    tables = {name: dpf.count(by=name) for name in ANSWERS}
    if form in STAIRS:
        unit = {} if "sum" in form else {"privacy_unit": "who", "max_rows": MOST}
        return (dpf.count(), unit, "count") if unit else (dpf.sum("x"), unit, "x")
    of_x = dpf.aggregate(count=dpf.count(), sum=dpf.sum("x"), mean=dpf.mean("x"))
    apart = {"high": dpf.count(where="x > 0.5"), "low": dpf.count(where="not x > 0.5")}
    if form.startswith("ten tables"):
        return (tables if "lack" in form else dpf.margins(ANSWERS, ways=1)), {}, "count"
    if form.startswith("all tables"):
        return dpf.margins(ANSWERS, ways=2), {}, "count"
    if form.startswith("two conditions"):
        return apart, {}, "count"
    return of_x, {"missing": {"x": "drop"}}, form.split()[0]


def declared(facts):
    """Return rows with a high x and no answer but no."""
    import pandas as pd

    import dpframe as dpf

    frame = pd.DataFrame({name: [False] * EVERYONE for name in ANSWERS})
    frame["x"] = HIGH
    keys = {name: [False, True] for name in ANSWERS}
    bounds = dict.fromkeys(frame, (0, 1))
    frame["who"] = [row // MOST for row in range(EVERYONE)]
    frame.dp.declare(bounds=bounds, keys=keys, **{"privacy_unit": dpf.EACH_ROW, **facts})
    return frame


def spent(form):
    """Return epsilon."""
    return STAIRS.get(form, (1, 0))[0]


def law(form):
    """Return the standard error that is predicted, the root mean square over all cells."""
    query, facts, column = asked(form)
    frame = declared(facts)
    shown = frame.dp.plan(query, epsilon=spent(form)).table["std_error"]
    if form.startswith("all tables"):
        squares = sum(2 ** len(table) * error**2 for (table, _), error in shown.items())
        return math.sqrt(squares / sum(TABLES.values()))
    if form.startswith("ten tables"):
        return float(shown.iloc[-1])  # the number of all rows comes first, if it does
    return float(shown.loc[column] if column in shown.index else shown.iloc[0])


def true_cell(key, column):
    """Return what a cell would be without noise."""
    if column != "count":
        return EVERYONE * HIGH
    keys = key if isinstance(key, tuple) else (key,)
    return 0 if any(one is True or one == "low" for one in keys) else EVERYONE


def drawn(form, samples):
    """Return the root mean square error of releases, and its relative standard error."""
    import numpy as np

    query, facts, column = asked(form)
    frame = declared(facts)
    squares = []
    for _ in range(samples):
        made = frame.dp.release(query, epsilon=spent(form))
        tables = made if isinstance(made, dict) else {None: made}
        off = []
        for name, table in tables.items():
            if form.startswith("ten tables") and name == ():
                continue
            scale = EVERYONE if column == "mean" else 1
            for key, value in zip(table.index, table[column], strict=True):
                true = true_cell(name if form.startswith("two") else key, column)
                off.append(scale * value - true)
        squares.append(float(np.mean(np.square(off))))
    mean = np.mean(squares)
    return {
        "drawn": math.sqrt(mean),
        "samples": samples,
        "relative": float(np.std(squares) / mean / 2 / math.sqrt(samples)),
    }


def geometric(scale, most):
    """Return values of a discrete Laplace law, and their chances."""
    import numpy as np

    values = np.arange(-most, most + 1)
    ratio = math.exp(-1 / scale)
    return values, (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)


def added_up(terms, scale, most):
    """Return the law of a sum of so many such noises, from -most to most."""
    import numpy as np

    _, one = geometric(scale, most)
    total = np.ones(1)
    for _ in range(terms):
        total = np.convolve(total, one)
        cut = max((len(total) - 2 * most - 1) // 2, 0)
        total = total[cut : len(total) - cut]
    return total


def least_distance(off, chances, level):
    """Return the least distance that a noise is beyond no more often than a level allows."""
    import numpy as np

    order = np.argsort(off)
    return off[order][np.searchsorted(np.cumsum(chances[order]), level)]


def least_sum(epsilon, level):
    """Return the half-width for a sum of 24 counts, by adding up their laws."""
    import numpy as np

    most = 400
    return least_distance(
        np.abs(np.arange(-most, most + 1)), added_up(24, 1 / epsilon, most), level
    )


def least_of_box(level):
    """Return the half-width for the difference of two of ten columns, by an integral.

    Columns are halves of coordinates and of the number of rows, eleven of scale 1 in all. Half the
    difference of two uniform variables on [-1, 1] is within t of 0 with a chance of `2 t - t^2`.
    """
    from scipy.integrate import quad
    from scipy.optimize import brentq
    from scipy.stats import gamma

    radius = gamma(len(ANSWERS) + 2)

    def beyond(width):
        return quad(lambda r: radius.pdf(r) * (1 - width / r) ** 2, width, 100)[0]

    return brentq(lambda width: beyond(width) - (1 - level), 1, 60)


def exact_ends(tops, bottoms, noises, weights, level):
    """Return the ends of all places of a grid where `a x - b y` is no further off than noise is.

    Parameters
    ----------
    tops, bottoms
        The x and y that were released.
    noises
        Values of the noises of both, and how likely each pair is.
    weights
        Pairs (a, b), one for each place of the grid.
    level
        Confidence level.
    """
    import numpy as np

    (one, other), chances = noises
    holds = np.empty((len(weights), len(tops)), bool)
    for at, (a, b) in enumerate(weights):
        off = np.abs(a * one[:, None] - b * other).ravel()
        least = least_distance(off.round(9), chances.ravel(), level) + 1e-9
        holds[at] = np.abs(a * tops - b * bottoms) <= least
    low, high = holds.argmax(axis=0), len(weights) - 1 - holds[::-1].argmax(axis=0)
    none = ~holds.any(axis=0)
    return np.where(none, 0, low), np.where(none, len(weights) - 1, high)


def half_widths(ends, true):
    """Return the mean half-width of intervals that end, and how often they hold a truth."""
    import numpy as np

    low, high = ends
    finite = np.isfinite(high)
    covered = np.mean((low <= true + 1e-9) & (true - 1e-9 <= high))
    return float(np.mean((high - low)[finite]) / 2), float(covered)


def ratios(samples, level):
    """Compare intervals of ratios of two counts, in groups of 50 and 50 rows."""
    import numpy as np
    import pandas as pd

    import dpframe as dpf

    rows = pd.DataFrame({"g": np.repeat(np.arange(samples), 100)})
    rows["yes"] = np.arange(len(rows)) % 2 == 0
    rows.dp.declare(keys={"g": range(samples)}, privacy_unit=dpf.EACH_ROW)
    counts = {"yes": dpf.count(where="yes"), "no": dpf.count(where="not yes")}
    made = rows.dp.aggregate("g", **counts, epsilon=2, mechanism="laplace")
    scale = float(next(iter(made.dp.certificate.mechanism.scales.values())))
    bars = made.dp.ratio("yes", "no", level).iloc[:, -3:]
    bars.columns = ["estimate", "low", "high"]
    places = np.linspace(0.5, 2, 3001)
    values, chances = geometric(scale, 40)
    low, high = exact_ends(
        *(made[name].to_numpy() for name in counts),
        ((values, values), np.multiply.outer(chances, chances)),
        [(1, place) for place in places],
        level,
    )
    ours = half_widths((bars["low"].to_numpy(), bars["high"].to_numpy()), 1.0)
    return half_widths((places[low], places[high]), 1.0), ours


def shares(samples, level):
    """Compare intervals of shares of 12 groups of 10 rows."""
    import numpy as np
    import pandas as pd

    import dpframe as dpf

    rows = pd.DataFrame({"zone": np.repeat(np.arange(samples), 120)})
    rows["g"] = np.arange(len(rows)) // 10 % 12
    rows.dp.declare(keys={"zone": range(samples), "g": range(12)}, privacy_unit=dpf.EACH_ROW)
    made = rows.dp.count(["zone", "g"], epsilon=5)
    bars = made.dp.percent(level=level, by="zone").iloc[:, -3:]
    bars.columns = ["estimate", "low", "high"]
    cells = made["count"].to_numpy().reshape(-1, 12)
    places = np.linspace(0.05, 0.12, 5601)
    values, chances = geometric(0.2, 8)
    most = 24
    both = (values, np.arange(-most, most + 1)), np.multiply.outer(chances, added_up(11, 0.2, most))
    low, high = exact_ends(
        cells.ravel(),
        (cells.sum(axis=1, keepdims=True) - cells).ravel(),
        both,
        [(1 - place, place) for place in places],
        level,
    )
    ours = half_widths((bars["low"].to_numpy(), bars["high"].to_numpy()), 100 / 12)
    return half_widths((100 * places[low], 100 * places[high]), 100 / 12), ours


def sums(epsilon, samples, level):
    """Compare intervals of sums of 24 counts."""
    import numpy as np
    import pandas as pd

    import dpframe as dpf

    rows = pd.DataFrame({"g": np.arange(240) % 24})
    rows.dp.declare(keys={"g": range(24)}, privacy_unit=dpf.EACH_ROW)
    return combined(
        lambda: rows.dp.count("g", epsilon=epsilon),
        dict.fromkeys(range(24), 1),
        240,
        samples,
        level,
    )


def columns(samples, level):
    """Compare intervals of differences of two of ten columns."""
    import pandas as pd

    frame = declared({})
    weights = pd.DataFrame({ANSWERS[0]: 1, ANSWERS[1]: -1}, index=[0])
    return combined(
        lambda: frame.dp.sum(ANSWERS, epsilon=1, mechanism="box"), weights, 0, samples, level
    )


def combined(release, weights, true, samples, level):
    """Return the half-width of a combination, and how often it holds."""
    import numpy as np

    bars = [release().dp.combine(weights, level).iloc[0] for _ in range(samples)]
    ends = np.array([[row["low"], row["high"]] for row in bars]).T
    return half_widths(ends, true)


def interval(name, samples):
    """Compare the half-width of an interval with the least one, and count how often it holds."""
    level = WIDTHS[name]
    if name.startswith("a ratio"):
        (least, _), (width, covered) = ratios(samples, level)
    elif name.startswith("a share"):
        (least, _), (width, covered) = shares(samples, level)
    elif name.startswith("a difference"):
        least, (width, covered) = least_of_box(level), columns(samples, level)
    else:
        epsilon = int(name[-1])
        least, (width, covered) = least_sum(epsilon, level), sums(epsilon, samples, level)
    return {"least": float(least), "width": width, "covered": covered, "level": level}


def run(case):
    form, samples = case["statistic"], case["samples"]
    if form in WIDTHS:
        return {**interval(form, samples), "samples": samples}
    return {"least": LEAST[form], "error": law(form), **drawn(form, samples)}


if __name__ == "__main__":
    from measuring import main

    main(run)

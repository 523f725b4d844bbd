"""Write the page of how cost grows: every number in it comes from the results."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slopes_axes import AXES, Axis

Result = dict[str, Any]
Points = list[tuple[int, float]]
LEAST_MB = 1.0  # less is not told from chance
FLAT, LINEAR = 0.1, 1.15  # slopes up to these are called flat, and not above proportion

OPENING = """\
# How cost grows

Time and memory of releases, from small data to the largest that a machine holds.
`python benchmarks/slopes.py` writes this page. [Benchmarks](../../docs/benchmarks.md) compares
dpframe with other libraries.
"""

METHOD = """

The release measured, at an epsilon of 1 and a delta of 1e-6:

```python
import numpy as np
import pandas as pd
import dpframe as dpf

rng = np.random.default_rng(1)
rows = 10_000
frame = pd.DataFrame(
    {
        "key": rng.integers(0, 100, rows),
        "unit": rng.integers(0, rows // 10, rows),
        "value": rng.exponential(20, rows),
    }
)
frame.dp.declare(
    bounds={"value": (0, 50)},
    keys={"key": range(100)},
    privacy_unit="unit",
    max_groups=5,
    max_rows_per_group=2,
)
ask = {"n": dpf.count(), "total": dpf.sum("value"), "epsilon": 1, "delta": 1e-6}
assert len(frame.dp.aggregate("key", **ask)) == 100
```

- Each number comes from a process of its own. Times are medians of seven runs up to 0.3 seconds, of
  three up to five seconds, and else one run. They include declaring; they leave out imports, making
  the data and a first release of ten rows.
- Memory is the peak above the start, with the data loaded. Less than 1 MB is within chance.
- Plain pandas clips and groups, without noise, units and caps.
- Slopes are those of log time, or log memory, against log size, by least squares over the upper
  half of the sizes: 0 is flat, 1 is proportional, 2 is quadratic.
- Dotted lines in the pictures are proportional to size.
"""

SUMMARY = """\
What ten times the size takes, by the slopes below. "(more)" marks time that grows faster than the
size:
"""


def slope(points: Points) -> float | None:
    """Fit log y against log x by least squares over the upper half of the points.

    Parameters
    ----------
    points
        Sizes in rising order, and what was measured there.

    Returns
    -------
    float or None
        `sum((u - mean u)(v - mean v)) / sum((u - mean u)^2)`; none of fewer than two points.
    """
    upper = points[len(points) // 2 :]
    if len(upper) < 2:
        return None
    sizes = [math.log(size) for size, _ in upper]
    found = [math.log(value) for _, value in upper]
    middle, mean = sum(sizes) / len(sizes), sum(found) / len(found)
    both = zip(sizes, found, strict=True)
    away = sum((size - middle) ** 2 for size in sizes)
    return sum((size - middle) * (value - mean) for size, value in both) / away


def megabytes(result: Result) -> float:
    """Return the highest memory above the start."""
    return max(result["peak_mb"] - result["before_mb"], 0.0)


def points_of(results: Sequence[Result], axis: str, line: str) -> tuple[Points, Points]:
    """Return the times and the memory of a line, as far as they were measured."""
    found = sorted(
        (r["size"], r["seconds"], megabytes(r))
        for r in results
        if r["axis"] == axis and r["line"] == line and "seconds" in r
    )
    return [(size, time) for size, time, _ in found], [(size, used) for size, _, used in found]


def memory_slope(points: Points) -> float | None:
    """Fit memory, unless the upper half is too little to be told from chance."""
    return slope(points) if all(mb >= LEAST_MB for _, mb in points[len(points) // 2 :]) else None


def time_text(seconds: float) -> str:
    """Write a time with two or three digits."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{significant(seconds / unit)} {name}"
    return f"{significant(seconds * 1e6)} µs"


def significant(value: float) -> str:
    """Write two digits, and no fewer than there are before the point."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def cell(results: Sequence[Result], axis: str, line: str, size: int) -> str:
    """Write time and memory at one size, or why there is none."""
    for r in results:
        if (r["axis"], r["line"], r["size"]) == (axis, line, size):
            if "seconds" not in r:
                return str(r["failed"]) if "more than" in r["failed"] else "failed"
            used = megabytes(r)
            memory = "below 1 MB" if used < LEAST_MB else f"{used:,.0f} MB"
            return f"{time_text(r['seconds'])}, {memory}"
    return ""


def slope_text(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".replace("-0.00", "0.00")


def table(results: Sequence[Result], name: str, axis: Axis) -> list[str]:
    """Write one row for each size, and the slopes below."""
    sizes = sorted({r["size"] for r in results if r["axis"] == name})
    rows = [[f"{n:,}", *(cell(results, name, line, n) for line in axis.lines)] for n in sizes]
    found = [points_of(results, name, line) for line in axis.lines]
    rows.append(["slope of time", *(slope_text(slope(times)) for times, _ in found)])
    rows.append(["slope of memory", *(slope_text(memory_slope(used)) for _, used in found)])
    head = [axis.noun, *axis.lines.values()]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def factor(value: float) -> str:
    """Say how much more ten times as much takes."""
    return f"{significant(10**value)} times"


def growth(value: float | None) -> str:
    """Say what ten times as much takes."""
    if value is None:
        return ""
    return "the same" if abs(value) <= FLAT else factor(value)


def summary(results: Sequence[Result]) -> list[str]:
    """Write one row for each line of each axis: what ten times the size takes."""
    rows = []
    for name, axis in AXES.items():
        for line, title in axis.lines.items():
            times, used = points_of(results, name, line)
            if slope(times) is not None:
                time = growth(slope(times)) + (" (more)" if (slope(times) or 0) > LINEAR else "")
                rows.append([axis.title, title, time, growth(memory_slope(used))])
    head = ["ten times as many", "in", "time", "memory"]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def longest(results: Sequence[Result], name: str, axis: Axis) -> list[str]:
    """Say which sizes take longer than there is time for."""
    lines = [
        f"- {axis.lines[line]}: more than {most:,} {axis.noun} take too long."
        for line, most in axis.most.items()
    ]
    return lines + [
        f"- {axis.lines[r['line']]}, {r['size']:,} {axis.noun}: left out, as its process took "
        f"{r['failed']}, making the data included."
        for r in results
        if r["axis"] == name and "more than" in r.get("failed", "")
    ]


def section(results: Sequence[Result], name: str) -> list[str]:
    """Write words, picture and table."""
    axis = AXES[name]
    lines = [f"## {axis.title}", "", axis.words, ""]
    lines += [f"![Time and memory over {axis.noun}](images/scaling-{name}.png)", ""]
    lines += [*table(results, name, axis), ""]
    left_out = longest(results, name, axis)
    return [*lines, *left_out, *([""] if left_out else [])]


def page(results: Sequence[Result]) -> str:
    """Return the page of what was measured."""
    made = sorted({r["machine"] for r in results})
    measured = [f"Measured {made[0]}.", *(f"Parts were measured {one}." for one in made[1:])]
    lines = [OPENING, *measured, "", SUMMARY, *summary(results), METHOD]
    for name in AXES:
        if any(r["axis"] == name for r in results):
            lines += section(results, name)
    return "\n".join(lines).rstrip() + "\n"


def write(results: Sequence[Result], path: Path) -> None:
    """Write page and pictures."""
    from slopes_picture import draw

    images = path.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    for name, axis in AXES.items():
        found = {line: points_of(results, name, line) for line in axis.lines}
        if any(times for times, _ in found.values()):
            draw(axis, found, images / f"scaling-{name}.png")
    path.write_text(page(results), encoding="utf-8")
    print(f"wrote {path}")

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

Time and memory of releases over rows, keys, units, queries and entries of the ledger, each from
small to the largest that a machine holds. Made by `python tests/benchmarks/slopes.py` in the
environment for development. How dpframe does beside other libraries is on the page of
[benchmarks](benchmarks.md).
"""

METHOD = """
What is released is what one would ask for, at an epsilon of 1 and a delta of 1e-6:

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

- Each size of each line is measured in a process of its own. Time is the median of seven runs if
  the first takes up to 0.3 seconds, of three if it takes up to five, and else that one run.
  Declaring is timed; imports, making the data and a first release of ten rows are not.
- Memory is the highest moment above the start, when the data are there already. Memory that is
  free inside the process is given back before; below 1 MB it is not told from chance.
- Plain pandas clips and groups, without noise, units and caps.
- A slope is that of the logarithm of time (or memory) against the logarithm of size, by least
  squares over the upper half of the sizes. 1 is proportional, 0 is flat, 2 is quadratic. Small
  sizes have a price of their own that does not grow, which is why they are left out.
- In the pictures, the dotted line is in proportion to size.
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


def sentence(axis: Axis, line: str, times: Points, used: Points) -> str:
    """Say in words what the slopes mean."""
    steepness, memory = slope(times), memory_slope(used)
    if steepness is None:
        return ""
    if abs(steepness) <= FLAT:
        text = f"time does not depend on the {axis.noun}"
    elif steepness < 0:
        text = f"ten times as many {axis.noun} take less time, {factor(steepness)}"
    else:
        text = f"ten times as many {axis.noun} take {factor(steepness)} as long"
    if steepness > LINEAR:
        text = f"{text}, **more than in proportion**"
    if memory is not None and abs(memory) <= FLAT:
        text = f"{text}; memory stays as it is"
    elif memory is not None:
        text = f"{text}, and {factor(memory)} the memory"
    return f"- {axis.lines[line]}: {text}."


def longest(results: Sequence[Result], name: str, axis: Axis) -> list[str]:
    """Say which sizes take longer than there is time for."""
    lines = [
        f"- {axis.lines[line]}: more than {most:,} {axis.noun} take long and are left out."
        for line, most in axis.most.items()
    ]
    return lines + [
        f"- {axis.lines[r['line']]}, {r['size']:,} {axis.noun}: left out, as its process took "
        f"{r['failed']}, making the data included."
        for r in results
        if r["axis"] == name and "more than" in r.get("failed", "")
    ]


def section(results: Sequence[Result], name: str) -> list[str]:
    """Write words, picture, table and what they mean."""
    axis = AXES[name]
    lines = [f"## {axis.title}", "", axis.words, ""]
    lines += [f"![Time and memory over {axis.noun}](images/scaling-{name}.png)", ""]
    lines += [*table(results, name, axis), ""]
    for line in axis.lines:
        lines += filter(None, [sentence(axis, line, *points_of(results, name, line))])
    return [*lines, *longest(results, name, axis), ""]


def page(results: Sequence[Result]) -> str:
    """Return the page of what was measured."""
    made = sorted({r["machine"] for r in results})
    measured = [f"Measured {made[0]}.", *(f"Parts were measured {one}." for one in made[1:])]
    lines = [OPENING, *measured, METHOD]
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

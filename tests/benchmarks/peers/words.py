"""What the page of results says beside its numbers."""

OPENING = """\
# Benchmarks

dpframe beside plain pandas and other libraries of differential privacy: time, memory and error.
Made by `python tests/benchmarks/compare.py` in the environment for development, which installs
every library, makes the data, measures and writes this page. How time and memory grow with rows,
keys, units, queries and entries of the ledger is [on another page](scaling.md).
""".splitlines()

MACHINES = """
Times beside other work are too long, and what is "more than" may be less; errors do not depend on
that.
""".splitlines()

METHOD = """
What is timed is a count and a clipped sum of each of K known groups, in one joint release:

```python
import numpy as np
import pandas as pd
import dpframe as dpf

rng = np.random.default_rng(1)
trips = pd.DataFrame(
    {
        "key": rng.integers(0, 10, 1_000),
        "unit": rng.integers(0, 100, 1_000),
        "value": rng.exponential(20, 1_000),
    }
)
public = {"bounds": {"value": (0, 50)}, "keys": {"key": range(10)}}
ask = {"by": "key", "n": dpf.count(), "total": dpf.sum("value"), "epsilon": 1, "delta": 1e-6}

trips.dp.declare(**public, privacy_unit=dpf.EACH_ROW)
by_rows = trips.dp.aggregate(**ask)

trips.dp.declare(**public, privacy_unit="unit", max_groups=5, max_rows_per_group=2)
by_units = trips.dp.aggregate(**ask)  # units, with caps
assert len(by_rows) == len(by_units) == 10
```

- Keys are uniform, values exponential with mean 20, and a unit has 10 rows on average. The data
  are the same for all, from a fixed seed.
- Each library runs in an environment and a process of its own, and all libraries of a setting
  run one after another; what an earlier sitting measured is kept with `--continue`. An empty
  place was not measured. Imports are not timed. A time is the median of seven runs if the first
  takes up to a second, of three if it takes up to ten, and else that one run. There is no
  warm-up.
- Plain pandas is `frame["value"].clip(0, 50)`, and then
  `groupby("key", observed=False)["value"].agg(["size", "sum"])`. It has no noise, no units and no
  caps, also where it stands beside a task that has them.
- "more than" means that the process was ended at that limit of time (loading included) or
  memory.
""".splitlines()

IN_MEMORY = """\
Seconds for data that are in memory, integer keys. In parentheses: ratio to dpframe, so that
above 1 dpframe is faster.
""".splitlines()

AGAINST_PANDAS = """\
dpframe over plain pandas, by the kind of key. Every run declares the frame anew, and so prepares
the keys again: with 100,000 texts that is most of the time of a million rows, which later releases
of a declared frame do not take.
""".splitlines()

MEMORY = """\
Megabytes at the highest moment above what the process used before the first run, and in
parentheses all of the process. Memory that loading left free is used again, so that the first
number can be too small; the second includes the interpreter, the modules and the data.
""".splitlines()

FILES = """\
The same from 10 Parquet files, row groups of at most 131,072 rows; reading is timed. "One
thread" is the synchronous scheduler of Dask, "2 workers" a local cluster of two processes with
one thread each.
""".splitlines()

FILE_MEMORY = """\
Megabytes at the highest moment above the start, and in parentheses in all. For a cluster the
highest numbers of its processes are added up.
""".splitlines()

GROWTH = """\
Slope of the logarithm of time against that of rows, from the fewest rows to the most (1 is
proportional), and the time per row at the most:
""".splitlines()

ACCURACY = """\
Columns of 10,000 values in [0, 50], each row its own unit, one row added or removed. The whole
budget is epsilon 1 with delta 1e-6 or delta 0, shared by 1, 20 or 100 queries of that kind, each
of them about a column of its own: a count is one of the rows where the column is high, a histogram
has 10 bins, and its error is that of one bin; "ranges" are 1,024 bins, and their error is the root
mean square over all ranges of bins. The number of rows is private. Errors are the
standard deviations of the laws that the noise is drawn from, by the scales that a library settles
on, and not of draws; for a mean to the first order in 1 / rows, at the true mean. Counts of dpframe
are whole, which adds 1/12 to the variance of Gaussian noise (a 10,000th of the error of 20
histograms). L is Laplace noise (or its discrete form), G Gaussian noise, B noise in a box, C
correlated Gaussian noise. In parentheses: ratio to dpframe, so that above 1 dpframe is more
accurate. An empty place is not offered, or was not measured. Each library uses the best composition
that it documents:

- dpframe: one release of all the queries.
- OpenDP: pure composition of Laplace noise, or zCDP composition of Gaussian noise converted to
  (epsilon, delta), whichever has the smaller noise. A mean is a sum over a count.
- PipelineDP: Laplace noise with its naive accountant, or Gaussian noise with its accountant of
  privacy loss distributions, which it calls experimental, whichever has the smaller noise. A
  mean is its own.
- diffprivlib: its budget accountant, with all of delta as slack. A mean is a sum over a count,
  because its own mean takes the number of rows as public.
- SmartNoise SQL: Laplace noise, with the epsilon at which its odometer reaches the budget; with
  delta 0, equal parts. A mean is its `AVG`. Its counts are cut off to whole numbers.
- Tumult Analytics: pure noise in equal parts, or zCDP, converted to (epsilon, delta), whichever has
  the smaller noise. Means and variances are its own; a variance is E(x^2) - (E x)^2, so that values
  far from zero cost more.

With dpframe and OpenDP, ranges are read off a tree of noisy counts that are made to agree; with the
others they are sums of bins. diffprivlib cuts bins off at zero, so that sums of small ones are far
too large; that is in its error. SmartNoise SQL shows only the bins that have rows.

A rate is the share of values above 25, here 29 %. dpframe measures two disjoint counts (`rate`);
with OpenDP and diffprivlib it is a count over a count, with the others the mean of a column of 0
and 1. A variance is dpframe's `var`, and PipelineDP's own, which splits epsilon
and delta in three and has no other accountant; OpenDP and diffprivlib read it off the sums of
(x - 25)^2 and x - 25 and a count, a third of the budget each. By group it is the same: a row is in
one group alone.

The variances of OpenDP and diffprivlib themselves take the number of rows as public, and protect
one row that is replaced by another. "variance, replaced" is their promise, and dpframe with
`neighboring="replace"`. dpframe measures the number of rows and the mean as well, and releases them
at no further cost; its error depends on the data, theirs hardly. Here the mean is 0.26 half widths
below the middle. **For one variance of a known number of rows, values that lie close together and
far off the middle are measured better by them**: by OpenDP from a mean half way to a bound on, up
to 1.9 times at the bound; by diffprivlib from five sixths of the way on, up to 1.2 times. By group,
theirs take the number of rows of each group as public.
""".splitlines()

DRAWN = """\
Draws check the laws: the root mean square of released minus true values, over the error stated.
Numbers of one release of dpframe share noise, and ranges of one release overlap, so that as many of
them say less.

""".splitlines()

FORMS = """\
Pure epsilon, 1 where a row names no other; each row its own unit, or units of up to 20 rows; one
unit added or removed. Sums are of values in [0, 1], and errors of means are multiplied by the
number of rows. Ten tables and all tables of two columns: the root mean square over their cells. The
closed form is the least error that is known without knowing the data: of noise in one box of equal
scales on sums of signs (Hardt and Talwar 2010), of geometric noise (Ghosh, Roughgarden and
Sundararajan 2009), of Laplace noise on the distances from both bounds, of staircase noise (Geng and
Viswanath 2016; the optimum for one number). `auto` may take other scales than equal ones: tables of
two columns and the number of rows then have less error, and the tables by one column slightly more.
The root mean square of draws stands beside the law, with its standard error.

Peers ask for each table, count or sum with an equal part of epsilon; of two columns, for the 45
tables of pairs, whose means are the smaller tables. For two conditions that exclude each other, a
histogram is the better question to them, too. Their means depend on the data, and stand above. An
empty place was not measured.

What a look costs, and what real data decide, have tables of their own:
[after a first look](#after-a-first-look), and
[caps from a look, and denoised means](#caps-from-a-look-and-denoised-means).
""".splitlines()

WIDTHS = """\
Mean half-widths of intervals, beside the least ones that the exact law of the noise allows:
symmetric tests on its lattice, inverted. "Held" is how often intervals of draws hold the truth:
more than the level where the lattice is coarse. No peer has such intervals.

""".splitlines()

LOOKS = """\
Errors after a look that spent a share of 0.05 or 0.1, over those of the same later share without a
look, by budget; the larger of both looks, and of a later share of 0.45 and of all that is left.
Units have at most 40 rows. `suggest_caps`, `suggest_bounds` and `units` draw pure noise, which
hardly costs later noise of either kind. `discover` keeps Gaussian noise, which finds smaller groups
and costs later pure noise more. At epsilon = 8 the standard error of a total is far below 1, and a
larger ratio is one of small numbers: 0.03 and 0.06, or 0.04 and 0.08 of a row. Where caps let a
unit into many bins, `suggest_bounds` keeps Gaussian noise, too.
""".splitlines()

PREDICTIONS = """\
Caps that `suggest_caps` finds, for counts at epsilon 1, a part of which is spent on asking. Numbers
are ratios: the mean absolute error of a group over that with the best fixed cap, which has the
whole epsilon. Ten real tables, [one by one](caps-and-bounds.md#how-good-it-is), 40 suggestions
each. The optimum known is a range. Its lower end is a rule that is told each table but for its last
bins, which are one of up to 49 variants, all as likely: the tail ends earlier, has half or twice as
many people, or larger sizes. Its upper end is what no rule can be below on the worst variant: the
ratio of the best answer to a prior that is unfavorable to all rules.

| asking | optimum known, median | median | worst | real error at most `error_high` |
|---|---|---|---|---|
| 10 % | 1.11 to 1.28 | 1.22 | 1.58 | 98 % (78 % on one table) |
| 5 % | 1.08 to 1.51 | 1.24 | 2.37 | 99 % |

On made-up tables, asking 10 %, of 500 to 50,000 people, whose numbers of rows come from one family
with unknown parameters; the optimum is the best rule that knows the family. 12 tables each:

| rows of a person | optimum known, median (mean) | median (mean) |
|---|---|---|
| geometric | 1.11 (1.12) | 1.11 (1.14) |
| lognormal | 1.11 (1.11) | 1.11 (1.13) |
| Weibull | 1.10 (1.16) | 1.34 (1.97) |
| power law that ends | 1.37 (1.47) | 1.42 (1.84) |
| all | 1.11 (1.21) | 1.12 (1.52) |

Squared errors of denoised means over those of released ones, and what the certificate expects, on
22 real tables, [one by one](denoising-measured.md#real-tables-of-means), 8 releases each:

| epsilon | median | worst | expected over real, middle half | least | largest |
|---|---|---|---|---|---|
| 10 | 1.00 | 1.00 | 1.00 to 1.00 | 1.00 | 1.06 |
| 3 | 0.98 | 1.05 | 0.91 to 1.00 | 0.41 | 1.23 |
| 1 | 0.68 | 1.00 | 0.88 to 1.01 | 0.33 | 1.23 |
| .1 | 0.24 | 1.00 | 0.93 to 1.37 | 0.39 | 4.33 |
""".splitlines()

UNKNOWN = """\
Keys and noisy numbers of units at once, at (1, 1e-6), with one unit in 1, 2, 3 or 10 groups: how
many units a group needs to be published with probability 50 % and 95 %, and the standard error of
its number of units, before it is known to be published. By the laws of the noise and the exact
thresholds; the law with the smaller threshold is taken. In parentheses: ratio to dpframe.
Without a delta no group can be found.

- dpframe: `discover`. Noise and threshold T are whole numbers, so that **a group needs one unit
  more** than with OpenDP and PipelineDP for 2 labels, and than with PipelineDP for 3: noise of real
  numbers has a threshold of 28.6 for 2 labels, and with whole ones T = 29 would need a delta of
  1.04e-6. In exchange, no float is released, and counts have less error.
- OpenDP: `make_laplace_threshold` and `make_gaussian_threshold` of counts as floats, the latter
  through zCDP with the best of 19 parts of delta. For whole numbers, its 0.16.0 publishes what is
  at the threshold and counts what is above it. Its delta is then too small, and that is not
  compared: at scale 1 and threshold 5 it states 0.0049, and publishes one key of a unit in 0.0137
  of 400,000 trials.
- PipelineDP: thresholding of the number of privacy units after aggregation, by its naive
  accountant. "Keys alone" is its truncated geometric selection, without any count: the optimum
  for one label of a unit. It finds smaller groups for up to 3 labels; their counts need a part of
  epsilon besides. With one label, `discover(..., counts=False)` of dpframe needs 18: it is for
  units with several, below.
""".splitlines()

FOUND_ALONE = """\
Labels alone, `counts=False`, in three rounds by weights: labels found at (1, 1e-6) in tables of
12,000 units (means of 10, `tests/benchmarks/found_sets.py`). A unit has m of 1 to 84 labels with a
probability proportional to 1/m, each drawn from 2,000 with one proportional to `1 / l^1.5`. The
optimum is not known.

| cap on the labels of a unit | 1 | 3 | 10 | 30 | 84 |
|---|---|---|---|---|---|
| with counts | 67 | 64 | 80 | 70 | 49 |
| labels alone | 111 | 134 | 147 | 144 | 140 |
""".splitlines()

FOUND_DRAWN = """\
Draws check the laws: the share published of groups of the size that is published half of the time
was at most
""".splitlines()

DIFFERENCES = """\
No two libraries do exactly the same; each was asked for the nearest thing that it has.

- dpframe: what is described above. Rows beyond the caps are dropped at random.
- OpenDP: explicit keys and Laplace noise. Missing values are filled first, because a sum refuses
  them, and a public upper bound on the number of rows is given. With units, 2 rows of each group
  are kept at random, but the groups kept are those with the 5 smallest keys: keeping groups at
  random ends in an error of duplicate names.
- PipelineDP: its local backend, over Python tuples. Making the tuples is not in its times, but
  they are in its memory. Each row its own unit: bounds are taken as enforced already, Laplace
  noise. With units: the same caps, at random, and Gaussian noise.
- diffprivlib: one histogram for all counts, then one sum after another, each with half of
  epsilon. Our script sorts the rows by group with NumPy, within the time. Nothing bounds units:
  the calls are the same with a tenth of epsilon, which is valid only where the data keep the
  caps already.
- SmartNoise SQL: a query with `GROUP BY`, half of epsilon for each column. The groups found in
  the data are printed. With units: at most 10 rows of a unit in all, no cap on groups.
- Tumult Analytics: Spark with two threads, the rows in its memory, Laplace noise, half of epsilon
  for each of two queries. With units: the same caps, at random.
- Plain pandas: no privacy at all.
""".splitlines()

BETTER = """\
Read off the numbers below, with all their digits; in parentheses, the ratio to dpframe. Libraries
do not do the same everywhere: [what differs](#what-differs). Plain pandas has a table of its own.

""".splitlines()

"""What the page of results says beside its numbers."""

OPENING = """\
# Benchmarks in detail

Every number behind the [benchmarks](../../docs/benchmarks.md). `python benchmarks/compare.py`
installs each library, makes the data, measures and writes this page. [How cost
grows](../../docs/scaling.md) has rows, keys, units, queries and ledgers.
""".splitlines()

MACHINES = """
Other work makes times too long, and "more than" may be less. It does not change errors.
""".splitlines()

METHOD = """
Each library releases a count and a clipped sum for each of K known groups:

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

- Keys are uniform, values exponential with mean 20. A unit has 10 rows on average. All libraries
  get the same data, from a fixed seed.
- Each library has an environment and a process of its own. All libraries of a setting run one
  after another; `--continue` keeps earlier results. Empty places were not measured.
- A time is the median of seven runs up to a second, of three up to ten seconds, and else one run.
  Imports are left out. There is no warm-up.
- Plain pandas is `frame["value"].clip(0, 50)`, then
  `groupby("key", observed=False)["value"].agg(["size", "sum"])`: no noise, no units, no caps.
- "more than" marks a process that was ended at that limit of time (loading included) or memory.
""".splitlines()

IN_MEMORY = """\
Seconds for data in memory, with integer keys. In parentheses: ratio to dpframe, above 1 where
dpframe is faster.
""".splitlines()

AGAINST_PANDAS = """\
dpframe over plain pandas, by kind of key. Every run declares the frame anew and prepares the keys
again. With 100,000 texts, that takes most of the time of a million rows. Later releases of a
declared frame skip it.
""".splitlines()

MEMORY = """\
Peak megabytes above what the process used before the first run, and in parentheses of the whole
process. The first number can be too small, since memory that loading freed is used again. The
second includes the interpreter, the modules and the data.
""".splitlines()

FILES = """\
The same from 10 Parquet files with row groups of at most 131,072 rows, reading included. "One
thread" is Dask's synchronous scheduler; "2 workers" is a local cluster of two processes with one
thread each.
""".splitlines()

FILE_MEMORY = """\
Peak megabytes above the start, and in parentheses in all. For a cluster, the peaks of its
processes are added up.
""".splitlines()

GROWTH = """\
Slope of log time against log rows, from the fewest rows to the most (1 is proportional), and the
time per row at the most:
""".splitlines()

ACCURACY = """\
Columns of 10,000 values in [0, 50], each row its own unit, one row added or removed, number of
rows private. The budget is epsilon 1 with delta 1e-6 or 0. It is shared by 1, 20 or 100 queries of
one kind, each about its own column.

- **Queries.** A count has a condition. A histogram has 10 bins; its error is that of one bin.
  "Ranges" have 1,024 bins; their error is the root mean square over all ranges of bins. A rate is
  the share of values above 25, here 29 %.
- **Errors** are standard deviations of the exact laws of the noise, at the scales that a library
  chooses. For means, they are first-order in 1 / rows, at the true mean. Counts of dpframe are
  whole, which adds 1/12 to the variance of Gaussian noise (a 10,000th of the error of 20
  histograms).
- **Letters.** L is Laplace noise or its discrete form, G Gaussian noise, B noise in a box, C
  correlated Gaussian noise.
- **In parentheses**: ratio to dpframe, above 1 where dpframe is more accurate. Empty places are
  not offered, or were not measured.

Each library uses the best composition that it documents:

- dpframe: one release of all queries.
- OpenDP: pure composition of Laplace noise, or zCDP composition of Gaussian noise converted to
  (epsilon, delta), whichever has less noise. A mean is a sum over a count.
- PipelineDP: Laplace noise with its naive accountant, or Gaussian noise with its accountant of
  privacy loss distributions (which it calls experimental), whichever has less noise. Its own mean.
- diffprivlib: its budget accountant, with all of delta as slack. A mean is a sum over a count,
  since its own mean takes the number of rows as public.
- SmartNoise SQL: Laplace noise, at the epsilon where its odometer reaches the budget; with delta
  0, equal parts. A mean is its `AVG`. Its counts are cut off to whole numbers.
- Tumult Analytics: pure noise in equal parts, or zCDP converted to (epsilon, delta), whichever has
  less noise. Its own means and variances; a variance is E(x^2) - (E x)^2, so values far from zero
  cost more.

dpframe and OpenDP read ranges off a tree of noisy counts made to agree. The others add up bins.
diffprivlib cuts bins off at zero, so sums of small bins are far too large; its error includes
that. SmartNoise SQL shows only bins that have rows.

For rates, dpframe measures two disjoint counts. OpenDP and diffprivlib use a count over a count,
the others the mean of a column of 0 and 1. For variances, dpframe has `var`. PipelineDP has its
own, which splits epsilon and delta in three and has no other accountant. OpenDP and diffprivlib
use the sums of (x - 25)^2 and x - 25 and a count, each with a third of the budget. By group the
result is the same: a row is in one group.

OpenDP and diffprivlib have variances that take the number of rows as public and protect one
replaced row. "variance, replaced" compares these with dpframe at `neighboring="replace"`. dpframe
also measures the number of rows and the mean, and releases them at no further cost. Its error
depends on the data, theirs hardly. Here, the mean is 0.26 half widths below the middle. **For one
variance of a known number of rows, they are better where values lie close together and far off the
middle**: OpenDP from a mean half way to a bound, up to 1.9 times at the bound; diffprivlib from
five sixths of the way, up to 1.2 times. By group, they take the number of rows of each group as
public.
""".splitlines()

DRAWN = """\
Draws check the laws: the root mean square of released minus true values, over the stated error.
One release of dpframe shares noise among its numbers, and ranges of one release overlap, so these
draws say less than as many independent ones.

""".splitlines()

FORMS = """\
Pure epsilon, 1 unless a row names another; each row its own unit, or units of up to 20 rows; one
unit added or removed. Values of sums are in [0, 1]. Errors of means are multiplied by the number
of rows. Ten tables, and all tables of two columns, have the root mean square over their cells.

The closed form is the least error known without the data: noise in one box of equal scales on sums
of signs (Hardt and Talwar 2010), geometric noise (Ghosh, Roughgarden and Sundararajan 2009),
Laplace noise on the distances from both bounds, and staircase noise (Geng and Viswanath 2016; the
optimum for one number). `auto` may choose unequal scales: tables of two columns and the number of
rows then have less error, and tables of one column slightly more. Draws stand beside the law, with
their standard error.

Peers give each table, count or sum an equal part of epsilon. For two columns, they release the 45
tables of pairs and average them for the smaller tables. For two conditions that exclude each
other, peers, too, would better ask for a histogram. Their means depend on the data, and stand
above. Empty places were not measured.
""".splitlines()

WIDTHS = """\
Mean half-widths of intervals, beside the least that the exact law of the noise allows (symmetric
tests on its lattice, inverted). "Held" is the share of drawn intervals that hold the truth: more
than the level where the lattice is coarse. No peer has such intervals.

""".splitlines()

LOOKS = """\
Error of a later release after a look that spent a share of 0.05 or 0.1, over its error without the
look, by budget. The table has the larger ratio of both looks, and of a later share of 0.45 or of
all that is left. Units have at most 40 rows.

`suggest_caps`, `suggest_bounds` and `units` draw pure noise, which hardly costs later noise of
either kind. `discover` keeps Gaussian noise, which finds smaller groups and costs later pure noise
more. So does `suggest_bounds` where caps let a unit into many bins. At epsilon 8, large ratios
compare small numbers: errors of 0.03 and 0.06, or 0.04 and 0.08 of a row.
""".splitlines()

PREDICTIONS = """\
Caps found by `suggest_caps`, for counts at epsilon 1, part of which the search spends. Numbers are
ratios: the mean absolute error of a group over its error with the best fixed cap and the whole
epsilon. Ten real tables ([one by one](suggestions.md)), 40
suggestions each.

The known optimum is a range. Its lower end is a rule that knows each table except its last bins;
they are one of up to 49 equally likely variants: the tail ends earlier, has half or twice as many
people, or larger sizes. Its upper end is a bound for every rule on the worst variant: the ratio of
the best answer to a prior that is unfavorable to all rules.

| asking | optimum known, median | median | worst |
|---|---|---|---|
| 10 % | 1.11 to 1.28 | 1.22 | 1.58 |
| 5 % | 1.08 to 1.51 | 1.24 | 2.37 |

Made-up tables of 500 to 50,000 people, asking 10 %. The numbers of rows come from one family with
unknown parameters; the optimum is the best rule that knows the family. 12 tables each:

| rows of a person | optimum known, median (mean) | median (mean) |
|---|---|---|
| geometric | 1.11 (1.12) | 1.11 (1.14) |
| lognormal | 1.11 (1.11) | 1.11 (1.13) |
| Weibull | 1.10 (1.16) | 1.34 (1.97) |
| power law that ends | 1.37 (1.47) | 1.42 (1.84) |
| all | 1.11 (1.21) | 1.12 (1.52) |

Squared errors of denoised means over those of released means, and the ratio that the certificate
expects, on 22 real tables ([one by one](denoising.md#real-tables-of-means)), 8 releases
each:

| epsilon | median | worst | expected over real, middle half | least | largest |
|---|---|---|---|---|---|
| 10 | 1.00 | 1.00 | 1.00 to 1.00 | 1.00 | 1.06 |
| 3 | 0.98 | 1.05 | 0.91 to 1.00 | 0.41 | 1.23 |
| 1 | 0.68 | 1.00 | 0.88 to 1.01 | 0.33 | 1.23 |
| .1 | 0.24 | 1.00 | 0.93 to 1.37 | 0.39 | 4.33 |
""".splitlines()

UNKNOWN = """\
Keys with noisy numbers of units, at (1, 1e-6), with one unit in 1, 2, 3 or 10 groups. The table
says how many units a group needs to be published with probability 50 % and 95 %, and the standard
error of its count before publication is known. Numbers follow the laws of the noise and the exact
thresholds; the law with the smaller threshold is taken. In parentheses: ratio to dpframe. Without
a delta, no group can be found.

- dpframe: `discover`. Noise and threshold T are whole, so **a group needs one unit more** than
  with OpenDP and PipelineDP for 2 labels, and than with PipelineDP for 3. Real noise has a
  threshold of 28.6 for 2 labels; whole noise at T = 29 would need a delta of 1.04e-6. In exchange,
  dpframe releases no float and counts have less error.
- OpenDP: `make_laplace_threshold` and `make_gaussian_threshold` of counts as floats, the latter
  through zCDP with the best of 19 parts of delta. Its thresholds of whole numbers are not
  compared: version 0.16.0 publishes groups at the threshold and counts only those above, so its
  delta is too small. At scale 1 and threshold 5 it states 0.0049, and publishes one key of a unit
  in 0.0137 of 400,000 trials.
- PipelineDP: thresholding of the number of privacy units after aggregation, with its naive
  accountant. "Keys alone" is its truncated geometric selection without counts, the optimum for one
  label. It finds smaller groups for up to 3 labels; counts then need a further part of epsilon.
  With one label, `discover(..., counts=False)` of dpframe needs 18: it is for units with several
  labels, below.
""".splitlines()

FOUND_ALONE = """\
Labels found with `counts=False`, in three rounds by weights, at (1, 1e-6) in tables of 12,000
units (means of 10, `benchmarks/found_sets.py`). A unit has m of 1 to 84 labels with
probability proportional to 1/m, each drawn from 2,000 with probability proportional to `1 /
l^1.5`. The optimum is not known. Beside it, means of 5: PipelineDP's selection of keys, and policy
Gaussian (Gopi and others 2020), which weighs labels one unit after another, written down by us.

| cap on the labels of a unit | 1 | 3 | 10 | 30 | 84 |
|---|---|---|---|---|---|
| with counts | 67 | 64 | 80 | 70 | 49 |
| labels alone | 111 | 134 | 147 | 144 | 140 |
| policy Gaussian, alone | 49 | 85 | 128 | 141 | 143 |
| PipelineDP, truncated geometric, alone | 69 | 63 | 53 | 33 | 16 |
| PipelineDP, Gaussian, alone | 48 | 66 | 80 | 72 | 50 |
""".splitlines()

LEDGER = """\
Epsilon of each of n equal pure releases that a budget of (1, 1e-6) admits, where each may depend
on the answers before. The optimum known is the best filter chosen for n: one Renyi order with all
of delta, or the sum of epsilons. OpenDP, too, adds up epsilons or, through zCDP, their squares,
whichever the user decided beforehand; the better one is shown. The ledger of dpframe decides
nothing beforehand and admits Gaussian releases besides. **From 200 releases on OpenDP admits 3 to
4 % more.** "Settled beforehand" is for n fixed before the first answer (dp-accounting 0.6.0), which
no filter reaches. By law: a ledger draws nothing; [the audit](../../docs/audit.md) plays an
adversary against it (`benchmarks/ledger_orders.py`).

| n | 20 | 50 | 200 | 1,000 |
|---|---|---|---|---|
| settled beforehand | 0.0569 | 0.0344 | 0.0168 | 0.00749 |
| optimum known | 0.0554 | 0.0325 | 0.0158 | 0.00699 |
| dpframe | 0.0530 | 0.0313 | 0.0151 | 0.00668 |
| OpenDP | 0.0500 (1.06x) | 0.0312 (1.00x) | 0.0156 (0.97x) | 0.00698 (0.96x) |
""".splitlines()

ROUND_VALUES = """\
Where people write round values, candidates say so. 10,000 incomes, lognormal with `mu = 10.7` and
`sigma = 0.7`, rounded to 1,000 and at most 500,000; bounds 0 to 500,000, pure epsilon 1, 50
releases. The optimum is 0: the nearest row at the quantile.

| mean distance in rank | median | nine deciles |
|---|---|---|
| dpframe, tree | 63.0 +- 0.00 | 30.0 +- 0.264 |
| dpframe, `select`, 16,384 bins | 72.0 +- 0.00 | 40.7 +- 1.61 |
| dpframe, `select`, `candidates` of 1,000 | 0.00 +- 0.00 | 0.700 +- 0.0993 |
| dpframe, `select`, `bins` around these | 0.00 +- 0.00 | 0.700 +- 0.125 |
| OpenDP, candidates of 1,000 | 0.00 +- 0.00 | 5.12 +- 0.363 |
| OpenDP, 16,385 candidates | 63.0 +- 0.00 | 30.1 +- 0.278 |
""".splitlines()

FOUND_DRAWN = """\
Draws check the laws: for groups that are published half of the time, the share published was at
most
""".splitlines()

DIFFERENCES = """\
No two libraries do exactly the same. Each was asked for its nearest offer.

- dpframe: as described above. Rows beyond the caps are dropped at random.
- OpenDP: explicit keys and Laplace noise. Missing values are filled first, because a sum refuses
  them. A public upper bound on the number of rows is given. With units, it keeps 2 random rows of
  each group, but the groups with the 5 smallest keys: keeping random groups fails with duplicate
  names.
- PipelineDP: its local backend, on Python tuples. Making the tuples counts in memory, not in time.
  Each row its own unit: bounds are taken as enforced, Laplace noise. With units: the same caps, at
  random, and Gaussian noise.
- diffprivlib: one histogram for all counts, then one sum after another, with half of epsilon each.
  Our script sorts the rows by group with NumPy, within the time. Nothing bounds units: the same
  calls use a tenth of epsilon, which is valid only if the data keep the caps already.
- SmartNoise SQL: a query with `GROUP BY`, half of epsilon for each column. It prints the groups
  found in the data. With units: at most 10 rows of a unit in all, no cap on groups.
- Tumult Analytics: Spark with two threads, rows in its memory, Laplace noise, half of epsilon for
  each of two queries. With units: the same caps, at random.
- Plain pandas: no privacy.
""".splitlines()

BETTER = """\
Read off all digits of the numbers below; in parentheses, the ratio to dpframe. Libraries do not do
the same everywhere: [what differs](#what-differs). Plain pandas has a table of its own.

""".splitlines()

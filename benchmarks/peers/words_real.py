"""What the page says beside the margins and quantiles of real columns."""

MARGINS = """\
All tables of at most two of eleven attributes of UCI Adult: 48,842 rows, 2 to 42 values each, 67
tables with the number of rows N. Each row is its own unit, one row added or removed, at epsilon 1
with delta 1e-6 or 0. Root mean square error of a cell, every table with the same weight, by the
law of the noise, or by draws ("~") where no law is known; time of one release. OpenDP's
`contingency_table` has Gaussian noise through zCDP with delta 1e-6, and Laplace noise without
delta:

- "all pairs, no model" measures all two-way tables (`Fixed`) and stops. Smaller tables are means
  of what the pairs add up to, by their variances. Its tables do not agree.
- "with its model" fits a graphical model to these tables. With all pairs, the model has a cell for
  each combination of all attributes, here 6.7 billion: 51 GB by its own estimate.
- MST measures a tree of two-way tables that it selects. AIM selects tables round by round, within
  the stated memory of the model.
""".splitlines()

MARGINS_SAY = """\
OpenDP's smaller tables have these errors if a user adds up its pairs in the best way. **With
delta, OpenDP is 3 % better at one-way tables**, and dpframe 23 % better at pairs. **With delta 0,
OpenDP is better at the number of rows.** Before a model is fitted, OpenDP's tables do not agree.

Model-based fits (MST, AIM) rely on sparse data: cells are not negative, and a table that follows
from others is not measured. Where that holds, they can beat any unbiased estimate, and they make
synthetic rows. They know no standard error for tables that they did not select, and what they
leave out is biased.
""".splitlines()

QUANTILES = """\
10,000 values of each of three columns, each row its own unit, epsilon 1 with delta 1e-6 or 0: the
nine deciles, or the median alone. The error is the mean absolute distance in rank, in rows,
between the released value and the quantile, with its standard error over releases. A value that
rows share is right if one of these rows is. In parentheses: time of a release.

Bounds are 0 to 1,000,000 for the sampling weight of a person, 0 to 500 dollars for the amount of a
purchase, and 0 to 20 km for the length of a ride.

- dpframe: a tree of noisy counts, with error bars; or `select`, 16,384 bins, without them.
- OpenDP, candidates: `make_private_quantile` with 16,385 candidates, one quantile at a time.
  OpenDP, tree: noisy counts of the nodes above 1,024 bins, with the branching that it proposes for
  10,000 rows, made consistent. Laplace noise, which is better with delta, too.
- PipelineDP: its tree of four levels of 16 children, with Laplace noise, or with Gaussian noise by
  its accountant of privacy loss distributions, whichever has the smaller error.
- diffprivlib: an exponential mechanism between the values of the data, one quantile at a time.
""".splitlines()

QUANTILES_SAY = """\
Which value is nearest in rank also depends on where candidates and bins lie: **a median of
OpenDP's candidates is better if a candidate happens to lie at it**, and worse otherwise. **Where
many rows share values, as amounts do, OpenDP's candidates and diffprivlib have better medians**
than `select` (22 and 23 rows against 39), and the candidates have better deciles by some percent:
the middle of a bin is not the price that many rows share.

With delta, dpframe takes Laplace noise here, too, since it is better. Mechanisms of pure epsilon
ignore delta: they were measured once, and their rows are shown twice.
""".splitlines()

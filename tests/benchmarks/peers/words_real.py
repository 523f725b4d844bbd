"""What the page says beside the margins and quantiles of real columns."""

MARGINS = """\
All tables of at most two of eleven attributes of UCI Adult (48,842 rows; 2 to 42 values each, 67
tables with the number of rows N), each row its own unit, one row added or removed, epsilon 1 with
delta 1e-6 or 0. Root mean square error of a cell, over releases, every table with the same weight;
time of one release. OpenDP's `contingency_table` has Gaussian noise through zCDP with delta 1e-6,
and Laplace noise without it:

- "all pairs, no model" measures all two-way tables (`Fixed`) and stops: smaller tables are means of
  what they add up to, by their variances. Its tables do not agree.
- "with its model" fits a graphical model to these tables. Where all pairs are measured the model
  has a cell for each combination of all attributes, here 6.7 billion.
- MST measures a tree of two-way tables that it selects. AIM selects tables round by round, as long
  as the model takes no more memory than is said.
""".splitlines()

MARGINS_SAY = """\
**A model-based fit is better where the data are sparse or nearly independent**: its cells are not
negative, and cells that hold nobody cost it little. It is the one to take for synthetic rows.
What dpframe measures is unbiased for every table asked for, with a standard error that is known; a
model has neither for tables that it did not select.
""".splitlines()

QUANTILES = """\
10,000 values of each of three columns, each row its own unit, epsilon 1 with delta 1e-6 or 0: the
nine deciles, or the median alone. Mean absolute distance in rank, in rows, between the value that
was released and the quantile, over releases, with its standard error; a value that rows share is
right if one of these rows is. In parentheses: time of a release.

Bounds are 0 to 1,000,000 for the sampling weight of a person, 0 to 500 dollars for the amount of a
purchase and 0 to 20 km for the length of a ride.

- dpframe: read off a tree of noisy counts, with error bars; or `select`, 16,384 bins, without them.
- OpenDP, candidates: `make_private_quantile` with 16,385 candidates, one quantile at a time.
  OpenDP, tree: noisy counts of the nodes above 1,024 bins, with the branching that it proposes for
  10,000 rows, made consistent; Laplace noise, which is the better one with delta, too.
- PipelineDP: its tree of four levels of 16 children, Laplace noise, or Gaussian noise by its
  accountant of privacy loss distributions, whichever has the smaller error.
- diffprivlib: an exponential mechanism between the values of the data, one quantile at a time.
""".splitlines()

QUANTILES_SAY: list[str] = []

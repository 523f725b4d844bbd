"""Whether two groupings of a released table of counts are independent, noise in the test."""

from collections.abc import Hashable

import numpy as np
import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.cells.verify import look, whole_release
from dpframe.certificates.certificate import Release
from dpframe.certificates.diagnosis import mark_diagnosis
from dpframe.context import cached_property
from dpframe.errors import QueryError, quote
from dpframe.frozen import frozen
from dpframe.inference.intervals import check_not_selected
from dpframe.inference.joint_errors import check_apart
from dpframe.inference.sums import known_numbers
from dpframe.privacy.half_widths import check_level
from dpframe.privacy.law import Law
from dpframe.public import public_call

_DRAWS = 999  # made-up tables for a p-value
_FEWER = 499  # and for each step towards an end of an interval
_STEPS = 12  # of a bisection: an end is good to 1 / 4,096 of where it is looked for
_HALF = 0.5  # the median
_LEAST = 0.5  # rows of a key, at least: sums of noisy counts can be negative
_NODES = 1 << 16  # integers at which the law of noise is added up
_OUTSIDE = 1e-12  # of noise that is not drawn
_ALONE = 'Release the counts alone: dpf.count(by=[...]), with mechanism="laplace" or "gaussian".'


@frozen(eq=False)
class CellNoise:
    """Made-up noise of cells, by its law: it protects nobody, and is the same in every run."""

    law: Law
    scale: float

    @cached_property
    def variance(self) -> float:
        """The variance of the noise of one cell."""
        return self.law.standard_deviation(self.scale) ** 2

    @cached_property
    def _values(self) -> tuple[np.ndarray, np.ndarray]:
        """Integers, all of them if they are few, with the chance of less than each."""
        if not self.scale:
            return np.zeros(1, np.int64), np.zeros(1)
        far = self.law.half_width(self.scale, 1 - _OUTSIDE)
        steps = np.unique(np.rint(np.linspace(-far, far, min(2 * far + 1, _NODES))))
        integers: np.ndarray = steps.astype(np.int64)
        return integers, 1 - self.law.at_least(self.scale, integers)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Make up the noise of some cells."""
        integers, below = self._values
        return np.asarray(integers[np.searchsorted(below, rng.random(shape), "right") - 1])


@frozen(eq=False)
class NoisyTable:
    """One table of noisy counts."""

    counts: np.ndarray
    noise: CellNoise

    def p_value(self, draws: int = _DRAWS) -> float:
        """Return in how many made-up tables of independent groupings X is as large."""
        rows, columns = (np.maximum(self.counts.sum(axis), _LEAST) for axis in (1, 0))
        made_up = self._make_up(np.outer(rows / rows.sum(), columns / columns.sum()), draws)
        return (1 + int(np.count_nonzero(made_up >= self.statistic))) / (draws + 1)

    def association(self, level: float) -> tuple[float, float, float]:
        """Return Cramer's V with the ends of its interval.

        Let P_1 be the noisy table without negative cells, and P_0 that of independent groupings
        with the same sums. Of the tables `P_t = P_0 + t (P_1 - P_0)`, those are in the interval
        where X is neither among the largest `(1 - level) / 2` of made-up tables nor among the
        smallest. The estimate is where X is in the middle of these. These tables end where a cell
        is empty: if X is not too small even there, V may be 1, which takes other sums.
        """
        tail = (1 - level) / 2
        middle, low, high = (self._v_where(part) for part in (_HALF, 1 - tail, tail))
        return middle, low, high

    @cached_property
    def statistic(self) -> float:
        """The statistic X."""
        return float(self._statistics(self.counts))

    def _statistics(self, tables: np.ndarray) -> np.ndarray:
        rows = np.maximum(tables.sum(-1, keepdims=True), _LEAST)
        columns = np.maximum(tables.sum(-2, keepdims=True), _LEAST)
        totals = np.maximum(tables.sum((-2, -1), keepdims=True), 1.0)
        expected = rows * columns / totals
        parts = (tables - expected) ** 2 / (expected + self.noise.variance)
        return np.asarray(parts.sum((-2, -1)))

    def _make_up(self, shares: np.ndarray, draws: int) -> np.ndarray:
        """Return X of noisy tables that are made up, of so many rows in cells of these shares."""
        rng = np.random.default_rng(0)  # no noise that protects: the same in every run
        n = max(round(float(self.counts.sum())), 1)
        tables = rng.multinomial(n, shares.ravel(), draws).reshape(draws, *shares.shape)
        return self._statistics(tables + self.noise.draw(tables.shape, rng))

    def _v_where(self, part: float) -> float:
        """Return V of the table of which that part of made-up ones has a smaller X."""
        shares = np.maximum(self.counts, 0.0) / max(float(np.maximum(self.counts, 0).sum()), 1.0)
        middle = np.outer(shares.sum(1), shares.sum(0))
        v = cramers_v(shares)
        if not v:  # nothing says in which cells an association would show
            return 0.0 if part >= _HALF else 1.0

        def moved(t: float) -> np.ndarray:
            table = np.maximum(middle + t * (shares - middle), 0)
            return np.asarray(table / table.sum())

        start, end = 0.0, 1 / v
        for _ in range(_STEPS):
            t = (start + end) / 2
            smaller = np.count_nonzero(self._make_up(moved(t), _FEWER) < self.statistic)
            start, end = (t, end) if smaller >= part * _FEWER else (start, t)
        if end == 1 / v and part < _HALF:
            return 1.0
        return min(cramers_v(moved(end)), 1.0) if start else 0.0


def cramers_v(probabilities: np.ndarray) -> float:
    """Return `sqrt(sum (p_ij - p_i p_j)^2 / (p_i p_j) / (k - 1))`, k the fewer of rows and columns.

    Examples
    --------
    >>> round(cramers_v(np.array([[0.4, 0.1], [0.1, 0.4]])), 6)
    0.6
    """
    expected = np.outer(probabilities.sum(1), probabilities.sum(0))
    squares = (probabilities - expected) ** 2
    parts = np.divide(squares, expected, out=np.zeros_like(squares), where=expected > 0)
    return float(np.sqrt(parts.sum() / (min(probabilities.shape) - 1)))


@public_call
def independence(
    released: pd.DataFrame, column: Hashable | None = None, level: float = 0.95
) -> pd.DataFrame:
    """Test whether the last two groupings of released counts are independent.

    With t_ij the noisy counts, r_i, c_j and n their sums, `e_ij = r_i c_j / n` and v the variance
    of the noise of a cell, the statistic is `X = sum_ij (t_ij - e_ij)^2 / (e_ij + v)`. The p-value
    is the part of 1,000 tables with an X as large: this one, and 999 made-up ones of n rows in
    cells of probability `r_i c_j / n^2`, with noise of the law in the certificate. The usual test
    takes noise for association; this one does not. It costs no privacy.

    The rows are taken for an independent sample. A small p-value says that the groupings are
    associated where the sample was taken, not how strongly, nor why. A large one does not show
    independence. Made-up tables are the same in every run.

    Parameters
    ----------
    released
        A released frame of counts by two columns or more: one test for each combination of keys of
        the levels before the last two.
    column
        The column of counts; not needed if there is one.
    level
        Confidence level of the interval of Cramer's V.

    Returns
    -------
    DataFrame
        One row per table, with `statistic` X, `p_value`, and `cramers_v`, from 0 for independent
        groupings to 1, with its interval `low` and `high` for noise and sample.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If it is no table of counts by two columns with two keys each, cells are missing, their
        noise is not independent, a unit may count more than once, or the level is not in (0, 1).

    References
    ----------
    M. Gaboardi, H. Lim, R. Rogers, S. Vadhan, "Differentially Private Chi-Squared Hypothesis
    Testing", ICML 2016.

    Examples
    --------
    >>> import dpframe as dpf
    >>> answers = pd.DataFrame({"tea": ["yes", "no"] * 200, "milk": ["yes", "no"] * 200})
    >>> keys = {"tea": ["yes", "no"], "milk": ["yes", "no"]}
    >>> released = dpf.release(answers, dpf.count(by=["tea", "milk"], keys=keys), epsilon=1)
    >>> independence(released)["p_value"].tolist()
    [0.001]
    """
    level = check_level(level)
    shown = look(released)
    release, released = whole_release(shown, "independence"), shown.frame
    labels = list(released.columns)
    column = labels[0] if column is None and len(labels) == 1 else column
    if not is_one_of(column, labels):
        rule = f"must be the label of one of the columns released, {labels!r}"
        raise QueryError.about("column", rule, column)
    place = [label == column for label in labels].index(True)
    noise = _noise_of(release, place)
    counts, index = _tables_of(known_numbers(released.iloc[:, place]), released.index)
    tables = [NoisyTable(table, noise) for table in counts]
    rows = [(table.statistic, table.p_value(), *table.association(level)) for table in tables]
    results = pd.DataFrame(rows, index, ["statistic", "p_value", "cramers_v", "low", "high"])
    return mark_diagnosis(results, [release], "independence")


def _noise_of(release: Release, place: int) -> CellNoise:
    check_not_selected(release, "independence")
    check_apart(release, "independence", _ALONE)
    column = release.columns[place]
    if not column.counts_rows:
        if column.form.is_whole:
            rule = f"independence takes each row to count 1, and {quote(column.name)} is weighted"
            way_out = "Release dpf.count(by=[...]) without weights."
            raise QueryError(f"{rule}. {way_out}", parameter="released")
        way_out = "Release dpf.count(by=[...]) by two columns."
        raise QueryError.about("column", "must be one of counts", column.name, way_out)
    if not release.privacy_unit.caps.single_row:
        rule = "independence takes rows for independent, and a unit may have several here"
        raise QueryError(f"{rule}. Release the table with max_rows=1.", parameter="released")
    noise = column.noise
    if noise is None or noise.members > 1 or release.noise.shared_blocks:
        rule = "independence takes each cell to have noise of its own"
        raise QueryError(f"{rule}. {_ALONE}", parameter="released")
    return CellNoise(release.noise.distribution, noise.scale)


def _tables_of(counts: np.ndarray, index: pd.Index) -> tuple[np.ndarray, pd.Index]:
    """Return tables by the last two levels, and what the other levels are for each."""
    rule = "independence takes counts by two columns, with two keys each or more, and all their"
    wrong = QueryError(
        f"{rule} combinations, as released. Release dpf.count(by=[...]).", parameter="released"
    )
    if not isinstance(index, pd.MultiIndex):
        raise wrong
    (rows, n), (columns, m) = (_places(index.get_level_values(at)) for at in (-2, -1))
    tables, names = np.zeros(len(index), np.intp), pd.Index([0])
    if index.nlevels > 2:  # noqa: PLR2004 - those of a table
        outer = index.droplevel([-2, -1])
        names = outer.unique()
        tables = names.get_indexer(outer)
    if min(n, m) < 2 or len(index) != len(names) * n * m:  # noqa: PLR2004
        raise wrong
    counts_by_table = np.zeros((len(names), n, m), counts.dtype)
    counts_by_table[tables, rows, columns] = counts
    return counts_by_table, names


def _places(keys: pd.Index) -> tuple[np.ndarray, int]:
    """Return places of keys in the order of their texts, whatever the rows are sorted by."""
    codes, unique = keys.factorize()
    rank = np.argsort(np.argsort([str(key) for key in unique], kind="stable"))
    return rank[codes], len(unique)

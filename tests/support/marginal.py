"""Workloads of margins, and what their layers do as plain matrices over all cells."""

import itertools
from fractions import Fraction

import numpy as np
from support.randomness import SYSTEM

from dpframe.privacy.neighbors import Caps
from dpframe.privacy.sensitivity import reach_of
from dpframe.strategies.base import Output, Source, Workload
from dpframe.strategies.domain import Dimension, Domain, largest_sets

EVERYONE = Source(0, 0, optional=False)
COUNT = Output("count", 0)


def up_to(axes, ways):
    """All sets of at most so many of the first axes."""
    return [one for k in range(ways + 1) for one in itertools.combinations(range(axes), k)]


def domain_of(sizes, tables, weights=()):
    """Tables over axes of these sizes."""
    axes = tuple(Dimension(n, ordered=False) for n in sizes)
    return Domain(axes, None, tuple(tables), tuple(weights))


def marginal(
    sizes,
    tables,
    *,
    weights=(),
    sources=(EVERYONE,),
    outputs=(COUNT,),
    rows=1,
    neighboring="add_remove",
):
    """Counts by some sets of axes, unless other outputs are given."""
    domain = domain_of(sizes, tables, weights)
    reach = reach_of(Caps(rows), 1, always=False)
    return Workload(sources, outputs, domain, reach, neighboring, has_units=rows > 1)


def table_of(cells, axes):
    """Sum an array over all axes but some."""
    return cells.sum(axis=tuple(k for k in range(cells.ndim) if k not in axes))


def counted(cells, domain):
    """The largest tables of an array of all cells, one after the other."""
    return np.concatenate([table_of(cells, axes).ravel() for axes in largest_sets(domain.margins)])


def each_cell(sizes):
    """Yield one array of all cells for each, with a 1 in it."""
    for place in itertools.product(*map(range, sizes)):
        cells = np.zeros(sizes, np.int64)
        cells[place] = 1
        yield cells


def measuring(layers, domain):
    """The integer matrix of what is measured, one column per cell of the product."""
    return np.stack(
        [layers.encode(counted(cells, domain)) for cells in each_cell(domain.sizes)], axis=1
    )


def decoding(layers, scale=1.0):
    """The matrix from what is measured to the cells of all tables, by table."""
    size = len(layers.profile)
    columns = [layers.decode(one, scale) for one in np.eye(size, dtype=np.int64) * 2**20]
    return [np.stack(parts, axis=1) / 2**20 for parts in zip(*columns, strict=True)]


def sigmas(layers, scale):
    """The noise scales that are drawn with, as fractions."""
    return [Fraction(float(one)) for one in scale * layers.profile]


def shared_covariance(layers, tables, squares, rounding):
    """Covariance of all cells of all tables, in closed form from `tau^2` of the layers.

    Of cells a and b of tables by A and B it is `sum_S tau_S^2 prod_S (1[a_i = b_i] - 1 / n_i) /
    prod_{A - S} n_i / prod_{B - S} n_i`, over all S in both; and what rounding adds.
    """
    sizes = layers.lattice.domain.sizes
    found = np.zeros((sum(map(layers.lattice.domain.size_of, tables)),) * 2)
    at = np.cumsum([0, *map(layers.lattice.domain.size_of, tables)])
    for one, first in zip(tables, at, strict=False):
        for other, second in zip(tables, at, strict=False):
            block = sum(
                _kron(one, other, layer, sizes, tau=tau)
                + rounding * _kron(one, other, layer, sizes, tau=None)
                for layer, tau in squares.items()
                if {*layer} <= {*one} & {*other}
            )
            found[first : first + len(block), second : second + block.shape[1]] = block
    return found


def _kron(one, other, layer, sizes, *, tau):
    """Parts of a covariance, axis by axis: those of a projection, or of rounded contrasts."""
    found = np.full((1, 1), 1.0 if tau is None else tau)
    for axis in sorted({*one} | {*other}):
        n = sizes[axis]
        if axis in layer:
            j = np.arange(1, n)
            rows = np.tri(n - 1, n) - np.eye(n - 1, n, 1) * j[:, None]
            power = 2 if tau is None else 1
            part = rows.T @ (rows / (j * (j + 1.0))[:, None] ** power)
        else:
            part = np.full((n if axis in one else 1, n if axis in other else 1), 1.0)
            part /= n ** ((axis in one) + (axis in other))
        found = np.kron(found, part)
    return found


def drawn(layers, law, scale, draws):
    """Errors of all cells of all tables in so many draws of the noise, one row for each cell."""
    noise = law.draw_each(np.repeat(scale * layers.profile, draws), SYSTEM)
    return np.concatenate(decoding(layers)) @ noise.reshape(-1, draws)


def check_covariance(found, expected, tolerance):
    """Compare covariances, relative to the products of standard deviations."""
    deviations = np.sqrt(np.diag(expected))
    apart = np.abs(found - expected) / np.outer(deviations, deviations)
    assert apart.max() < tolerance

"""Margins of OpenDP's `contingency_table`: raw from all pairs, or read off a fitted model."""

import itertools
import re
import time

from measuring import EPSILON, discrete_laplace, main
from real import adult, by_order, margins_of, root_mean, root_of_orders

SMALL = 1.0  # megabytes for the model, in place of 80
SPARED = 5e-6  # of rho: MST goes over the whole of it by the last bit of a float, and fails


def budget(delta):
    """Return the loss of a context."""
    import opendp.prelude as dp

    if not delta:
        return dp.loss_of(epsilon=EPSILON)
    from quantiles_opendp import zcdp_of

    return dp.loss_of(rho=zcdp_of(delta) * (1 - SPARED))


def unfitted(domain, measurements, *, potentials=None):
    """Stand in for the fit where only what was measured is wanted."""
    import mbi

    total = mbi.estimation.minimum_variance_unbiased_total(measurements)
    flat = mbi.CliqueVector.zeros(domain, [(name,) for name in domain])
    return mbi.MarkovRandomField(potentials=flat, marginals=flat, total=total)


def algorithm(variant, names):
    import opendp.prelude as dp

    pairs = [dp.mbi.Count(pair) for pair in itertools.combinations(names, 2)]
    return {
        "all pairs": lambda: dp.mbi.Fixed(queries=pairs, estimator=unfitted),
        "all pairs, fitted": lambda: dp.mbi.Fixed(queries=pairs),
        "AIM": lambda: dp.mbi.AIM(queries=2),
        "AIM, 1 MB": lambda: dp.mbi.AIM(queries=2, max_size=SMALL),
        "MST": dp.mbi.MST,
    }[variant]()


def private(codes):
    """Return the frame: the value 0 is the missing one, because each attribute must have it."""
    import polars as pl

    names = [f"a{k}" for k in range(codes.shape[1])]
    frame = pl.DataFrame(codes.astype("int64"), schema=names)
    return frame.with_columns(pl.when(pl.col(n) != 0).then(pl.col(n)) for n in names).lazy()


def release(frame, names, sizes, case):
    """Release one table, in which the missing value is the last of each attribute."""
    import opendp.prelude as dp

    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=budget(case["delta"]),
        split_evenly_over=1,
    )
    keys = {name: [*range(1, size), None] for name, size in zip(names, sizes, strict=True)}
    query = context.query().select(*names)
    chosen = algorithm(case["variant"], names)
    return query.contingency_table(keys=keys, algorithm=chosen).release()


def in_order(cells):
    """Put the missing value first."""
    import numpy as np

    return np.roll(np.asarray(cells, float), 1, axis=tuple(range(np.ndim(cells))))


def measured_cells(table, names, sizes):
    """Return all pairs as measured; other tables are the means of what the pairs add up to."""
    import numpy as np

    place = {name: k for k, name in enumerate(names)}
    found = {(): []}
    for one in table.marginals.flatten():
        pair = tuple(place[name] for name in one.clique)
        cells = in_order(np.asarray(one.noisy_measurement).reshape([sizes[k] for k in pair]))
        sides = {pair: cells, pair[:1]: cells.sum(1), pair[1:]: cells.sum(0), (): cells.sum()}
        for margin, values in sides.items():
            of_side = cells.size / np.size(values)  # the variance, in that of a cell
            found.setdefault(margin, []).append((values, 1 / of_side))
    return {
        margin: sum(v * w for v, w in parts) / sum(w for _, w in parts)
        for margin, parts in found.items()
    }


def laws(sizes, delta):
    """Return the errors of tables that are read off all pairs, by the noise of each.

    All pairs have the same scale, which their composition leaves; smaller tables are the means of
    what the pairs add up to, by their variances.
    """
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    if delta:
        from quantiles_opendp import zcdp_of

        variance = len(pairs) / (2 * zcdp_of(delta) * (1 - SPARED))
    else:
        variance = discrete_laplace(len(pairs) / EPSILON) ** 2
    precisions = {(): 0.0} | {(k,): 0.0 for k in range(len(sizes))}
    for one, other in pairs:
        precisions[one,] += 1 / sizes[other]
        precisions[other,] += 1 / sizes[one]
        precisions[()] += 1 / sizes[one] / sizes[other]
    smaller = {table: variance / precision for table, precision in precisions.items()}
    return root_of_orders(smaller | dict.fromkeys(pairs, variance))


def fitted_cells(table, names, true):
    """Read the model."""
    import numpy as np

    found = {m: in_order(table.project(tuple(names[k] for k in m))) for m in true if m}
    found[()] = np.array(float(table.model.total))
    return found


def run(case):
    """Measure; of nested errors, raise the innermost."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    try:
        return measured(case)
    except dp.OpenDPException as error:
        raise RuntimeError(re.findall(r'\w+\(".*?"\)|\w+Error: .*', str(error))[-1]) from error


def measured(case):
    """Release again and again."""
    codes, sizes = adult(case["folder"])
    true, frame = margins_of(codes, sizes), private(codes)
    names = frame.collect_schema().names()
    errors, spent = [], []
    for _ in range(case["samples"]):
        start = time.perf_counter()
        table = release(frame, names, sizes, case)
        raw = case["variant"] == "all pairs"
        cells = measured_cells(table, names, sizes) if raw else fitted_cells(table, names, true)
        spent.append(time.perf_counter() - start)
        errors.append(by_order(cells, true))
    tables = len({one.clique for one in table.marginals.flatten()})
    found = {
        "errors": root_mean(errors),
        "seconds": sorted(spent)[len(spent) // 2],
        "tables": tables,
    }
    return {**found, "laws": laws(sizes, case["delta"])} if raw else found


if __name__ == "__main__":
    main(run)

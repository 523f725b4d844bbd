"""Margins of dpframe: one release, as measured and made consistent."""

import time

from measuring import EPSILON, main
from real import adult, by_order, margins_of, root_mean, root_of_orders

COLUMNS = {"raw": "count", "consistent": "count_denoised"}


def cells(published, names, sizes, column):
    """Return arrays of all tables; rows of a table are in the order of the keys."""
    place = {name: k for k, name in enumerate(names)}
    return {
        margin: frame[column].to_numpy(float).reshape([sizes[k] for k in margin])
        for margin, frame in (
            (tuple(place[name] for name in columns), one) for columns, one in published.items()
        )
    }


def laws(published, names):
    """Return the errors that certificates state; made consistent, cells are cut off at zero."""
    place = {name: k for k, name in enumerate(names)}
    return root_of_orders(
        {
            tuple(place[name] for name in columns): one.dp.certificate.columns[0].std_error ** 2
            for columns, one in published.items()
        }
    )


def run(case):
    import pandas as pd

    import dpframe as dpf

    codes, sizes = adult(case["folder"])
    true = margins_of(codes, sizes)
    names = [f"a{k}" for k in range(len(sizes))]
    frame = pd.DataFrame(codes.astype("int64"), columns=names)
    keys = {name: range(size) for name, size in zip(names, sizes, strict=True)}
    frame.dp.declare(keys=keys, privacy_unit=dpf.EACH_ROW)
    denoise = {"denoise": "consistent"} if case["variant"] == "consistent" else {}
    errors, spent = [], []
    for _ in range(case["samples"]):
        start = time.perf_counter()
        released = frame.dp.margins(names, 2, epsilon=EPSILON, delta=case["delta"], **denoise)
        spent.append(time.perf_counter() - start)
        found = cells(released, names, sizes, COLUMNS[case["variant"]])
        errors.append(by_order(found, true))
    median = sorted(spent)[len(spent) // 2]
    found = {"errors": root_mean(errors), "seconds": median, "tables": len(released)}
    return found if denoise else {**found, "laws": laws(released, names)}


if __name__ == "__main__":
    main(run)

"""Errors of dpframe: all queries in one release."""

from measuring import BOUNDS, DELTA, EDGES, EPSILON, example_values, main, spread, truth


def draws(frame, query, releases, true):
    import dpframe as dpf

    queries = {str(number): query for number in range(releases)}
    while True:
        released = dpf.release(frame, queries, epsilon=EPSILON, delta=DELTA)
        for one in released.values():
            yield from zip(one.iloc[:, 0], true, strict=True)


def run(case):
    import pandas as pd

    import dpframe as dpf

    statistic, releases = case["statistic"], case["releases"]
    frame = pd.DataFrame({"value": example_values()})
    frame.dp.declare(bounds={"value": BOUNDS})
    query = {
        "count": dpf.count(),
        "sum": dpf.sum("value"),
        "mean": dpf.mean("value"),
        "histogram": dpf.histogram("value", bins=EDGES),
    }[statistic]
    queries = {str(number): query for number in range(releases)}
    one = dpf.release(frame, queries, epsilon=EPSILON, delta=DELTA)["0"]
    found = spread(draws(frame, query, releases, truth(statistic)), case["samples"])
    return {**found, "mechanism": one.dp.certificate.mechanism.name}


if __name__ == "__main__":
    main(run)

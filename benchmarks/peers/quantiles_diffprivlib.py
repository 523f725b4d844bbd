"""Quantiles of diffprivlib: an exponential mechanism between the values of the data, for each."""

from measuring import EPSILON, main
from real import ASKED, BOUNDS, column, ranked


def run(case):
    from diffprivlib.tools import quantile

    ordered = column(case["folder"], case["table"])
    levels = ASKED[case["statistic"]]
    settings = {"epsilon": EPSILON / len(levels), "bounds": BOUNDS[case["table"]]}
    return ranked(case, lambda: [quantile(ordered, q, **settings) for q in levels], ordered)


if __name__ == "__main__":
    main(run)

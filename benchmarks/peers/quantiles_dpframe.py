"""Quantiles of dpframe: read off a tree of counts, or selected."""

from measuring import EPSILON, main
from real import ASKED, BOUNDS, column, ranked

SELECT_BINS = 16_384


def run(case):
    import pandas as pd

    import dpframe as dpf

    ordered = column(case["folder"], case["table"])
    frame = pd.DataFrame({"value": ordered})
    frame.dp.declare(bounds={"value": BOUNDS[case["table"]]}, privacy_unit=dpf.EACH_ROW)
    asked = {"epsilon": EPSILON, "delta": case["delta"]}
    if case["variant"] == "select":
        asked |= {"mechanism": "select", "bins": SELECT_BINS}
    levels = list(ASKED[case["statistic"]])

    def release():
        return frame.dp.quantile("value", levels, **asked)["value"].tolist()

    return ranked(case, release, ordered)


if __name__ == "__main__":
    main(run)

"""How much larger errors are after a first look than the same share has without one."""

from itertools import product

SHARES = (0.05, 0.1)  # of a look
COLUMNS = [f"q{number}" for number in range(30)]


def looks():
    """List first looks."""
    import dpframe as dpf

    return {
        "suggest_caps": dpf.suggest_caps("zone"),
        "suggest_bounds": dpf.suggest_bounds("fare", query="sum"),
        "units": dpf.units(),
        "discover": dpf.discover("place", max_groups=3),
    }


def later():
    """List what follows."""
    import dpframe as dpf

    return {
        "a total": dpf.count(max_rows=1),
        "groups, a cap of 40": dpf.count("zone", max_groups=40, max_rows_per_group=1),
        "thirty sums": dpf.sum(COLUMNS, max_rows=1),
    }


def rides(budget):
    """Declare a frame of one row: errors and costs do not depend on data."""
    import pandas as pd

    import dpframe as dpf

    epsilon, delta = budget
    frame = pd.DataFrame({"who": [1], "zone": [0], "place": ["a"], "fare": [1.0]})
    frame[COLUMNS] = 1.0
    frame.dp.declare(
        budget=dpf.Budget(epsilon, delta, discovery=delta / 10),
        privacy_unit="who",
        max_rows=40,
        keys={"zone": range(100)},
        bounds=dict.fromkeys(["fare", *COLUMNS], (0, 1)),
    )
    return frame


def ratio(budget, look, query, first, second):
    """Divide the error of a later share by that without a look."""
    looked = rides(budget)
    looked.dp.release(look, share=first)
    errors = [
        frame.dp.plan(query, share=second).table["std_error"].max()
        for frame in (looked, rides(budget))
    ]
    return float(errors[0] / errors[1])


def run(case):
    """Find the largest ratio: looks of 5 and 10 %, then a share of 0.45 or all that is left."""
    budget = case["epsilon"], case["delta"]
    return {
        "ratios": {
            f"{look}, then {name}": max(
                ratio(budget, asked, query, first, second)
                for first in SHARES
                for second in (0.45, 1 - first)
            )
            for (look, asked), (name, query) in product(looks().items(), later().items())
        }
    }


if __name__ == "__main__":
    from measuring import main

    main(run)

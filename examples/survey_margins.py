"""Publish all two-way tables of a survey, so that they agree, protecting every woman who answered.

The survey is that of Fair (1978): 6,366 married women, asked about their marriage, religion,
education and work. Twenty-nine tables share one set of measurements; released one by one, they
would contradict each other and have larger errors.

Run it with `python examples/survey_margins.py --output survey-release`, and `--data FILE` for a
file of your own in place of the one that the package `statsmodels` ships.
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd

import dpframe as dpf

WORK = ["student", "manual", "office", "teaching, nursing", "managing", "profession"]
KEYS = {
    "marriage": ["very poor", "poor", "fair", "good", "very good"],
    "religious": ["not", "mildly", "fairly", "strongly"],
    "education": ["grade school", "high school", "some college", "college", "graduate", "degree"],
    "occupation": WORK,
    "occupation_husb": WORK,
}
BINS = {"age": [0, 20, 25, 30, 35, 40, 120], "children": [-1, 0, 1, 2, 3, 20]}
CUTS = {column: dpf.cut(column, edges) for column, edges in BINS.items()}
COLUMNS = [*KEYS, *BINS]


def file_of_package() -> Path:
    """Find the table in the package that ships it, which need not be imported for it."""
    spec = importlib.util.find_spec("statsmodels")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This example needs its data: pip install '.[examples]'")
    return Path(spec.submodule_search_locations[0]) / "datasets" / "fair" / "fair.csv"


def read_survey(file: Path) -> pd.DataFrame:
    """Read the table: one row per woman, with words for the codes of answers."""
    table = pd.read_csv(file).rename(columns={"rate_marriage": "marriage", "educ": "education"})
    years = dict(zip((9, 12, 14, 16, 17, 20), KEYS["education"], strict=True))
    words = {name: dict(enumerate(keys, start=1)) for name, keys in KEYS.items()}
    words["education"] = years
    return table.assign(**{name: table[name].map(words[name]) for name in KEYS})


def main() -> None:
    """Declare, plan, release and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--output", type=Path, default=Path("survey-release"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)

    survey = read_survey(options.data or file_of_package())
    survey.dp.declare(
        keys=KEYS,
        privacy_unit=dpf.EACH_ROW,
        ledger=dpf.Ledger(budget=dpf.Budget(epsilon=2, delta=1e-6)),  # an example is forgotten
    )
    query = dpf.margins([CUTS.get(column, column) for column in COLUMNS], ways=2)

    print("Standard errors of a cell, before anything is spent:")
    shown = survey.dp.plan(query, share=0.5).table
    print(shown["std_error"].unstack().round(1).to_string())
    one_by_one = {
        str(table): dpf.margins([[CUTS.get(column, column) for column in table]])
        for table in query.tables
        if table
    }
    apart = survey.dp.plan(one_by_one, share=0.5).table["std_error"]
    print(f"one by one, the same tables have {apart.median():.1f}")

    tables = survey.dp.release(query, share=0.5)
    by_both = tables["marriage", "religious"]
    print("\nMarriages by religion:")
    print(by_both["count"].unstack().round(0).to_string())
    summed = by_both.groupby("religious", sort=False).sum()
    assert np.allclose(summed, tables["religious",])
    for table, released in tables.items():
        released.dp.write_csv(options.output / f"{'-'.join(table) or 'all'}.csv")

    happy = {("very good", religious): 1 for religious in KEYS["religious"]}
    print("\nVery good marriages of all, with the error of the sum:")
    print(by_both.dp.combine(happy).round(1).to_string())

    # a real script must not touch the truth: it is here because this table is public
    errors = [
        (released["count"] - exact(survey, table, released)).abs().mean()
        for table, released in tables.items()
    ]
    print(f"\nMean error of a cell, over {len(tables)} tables: {np.mean(errors):.1f} women")
    print(f"\n{survey.dp.budget}")


def exact(survey: pd.DataFrame, table: tuple[str, ...], released: pd.DataFrame) -> pd.Series:
    """Count without noise, to compare with."""
    if not table:
        return pd.Series(len(survey), index=released.index)
    binned = {
        name: pd.cut(survey[name], BINS[name], include_lowest=True, labels=list(own.labels))
        for name, own in CUTS.items()
    }
    counted = survey.assign(**binned).groupby(list(table), observed=False).size()
    return counted.reindex(released.index)


if __name__ == "__main__":
    main()

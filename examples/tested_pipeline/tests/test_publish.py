"""What is published lets out no more than is charged, and has its shape on any data."""

from pathlib import Path

import pandas as pd
import pytest
from rides.publish import publish
from rides.schemas import ZONES

import dpframe as dpf
import dpframe.testing as dpt


@pytest.mark.parametrize("rows", ["rides", "nasty_rides"])
def test_publishing_keeps_its_promise(
    rows: str, ledger: dpf.Ledger, request: pytest.FixtureRequest
) -> None:
    """Try it with and without some riders."""
    frame = request.getfixturevalue(rows)
    dpt.check(lambda rides: publish(rides, ledger, "March"), frame, unit="rider", units=20)


def test_tables_are_as_they_will_be(
    rides: pd.DataFrame, ledger: dpf.Ledger, tmp_path: Path
) -> None:
    """Look at tables whose noise comes from a seed, and at the page to decide by."""
    with dpt.seeded_noise(7, folder=tmp_path):
        tables = publish(rides, ledger, "March")
        assert tables["by_zone"].index.tolist() == ZONES
        assert len(tables["by_hour"]) == 24
        assert tables["minutes"]["minutes"].between(0, 120).all()
        dpf.write_csv(tables["by_zone"], tmp_path / "by_zone.csv")
        dpf.report(tables, ledger=ledger, path=tmp_path / "page.html")
    assert "TEST" in (tmp_path / "page.test.html").read_text(encoding="utf-8")


def test_noise_of_tests_is_refused_elsewhere(rides: pd.DataFrame, ledger: dpf.Ledger) -> None:
    """Nothing that is made in a test can be published by accident."""
    with dpt.seeded_noise(7):
        tables = publish(rides, ledger, "March")
    with pytest.raises(dpf.errors.CertificateError):
        dpf.write_csv(tables["by_zone"], "by_zone.csv")
    assert ledger.status().used == 0

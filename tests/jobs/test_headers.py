"""First lines of CSV files: a private row that stands there is not told."""

import pytest
from support.planning import Overrides, planned, preview_job, read_plan
from support.raising import raises
from support.terminal import UNREADABLE, main

from dpframe.errors import PlanFileError

MARCH = Overrides({"month": "2024-03"})
ROWS = "zones,secret,4711\nzones,other,4712\n"


@pytest.mark.parametrize("command", ["preview", "release"])
@pytest.mark.parametrize("query", [None, "zones", "secrets"])
def test_a_file_without_header_is_not_quoted(tmp_path, capsys, command, query):
    changes = [] if query is None else [('by = "zone"', f'by = "{query}y"')]
    plan = planned(tmp_path, *changes)
    (tmp_path / "trips-2024-03.csv").write_text(ROWS)
    assert main([command, str(plan), "--set", "month=2024-03"]) == UNREADABLE
    out, err = capsys.readouterr()
    assert "is it the header" in err
    assert "has 3 cells" in err
    assert not any(f"{cell!r}" in out + err for cell in ("zones", "secret", "other", "4711"))


def test_of_a_header_the_nearest_name_is_told(tmp_path):
    plan = planned(tmp_path, ('by = "zone"', 'by = "zne"'))
    with raises(PlanFileError, "'zone'", parameter="queries.by_zone.by"):
        preview_job(read_plan(plan, MARCH))


def test_columns_that_are_declared_alone_are_looked_for(tmp_path):
    plan = planned(tmp_path, ("bounds.fare", "keys.airline = ['X']\nbounds.fare"))
    with raises(PlanFileError, "'airline'", parameter="declare.keys.airline"):
        preview_job(read_plan(plan, MARCH))


def test_an_empty_file_is_called_so(tmp_path):
    plan = planned(tmp_path)
    (tmp_path / "trips-2024-03.csv").write_text("\n\n")
    with raises(PlanFileError, "trips-2024-03.csv", parameter="data.path"):
        preview_job(read_plan(plan, MARCH))


def test_a_file_of_others_is_called_so(tmp_path, monkeypatch):
    plan = planned(tmp_path)
    may = type(tmp_path).open

    def denied(self, *mode, **options):
        if self.name == "trips-2024-03.csv":
            raise PermissionError(13, "Permission denied", str(self))
        return may(self, *mode, **options)

    monkeypatch.setattr(type(tmp_path), "open", denied)
    with raises(PlanFileError, "permission denied", parameter="data.path"):
        preview_job(read_plan(plan, MARCH))

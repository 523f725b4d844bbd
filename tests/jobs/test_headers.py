"""First lines of CSV files: a private row that stands there is not told."""

import pytest
from support.planning import planned

from dpframe.errors import PlanFileError
from dpframe.jobs.commands import main
from dpframe.jobs.plan_file import Overrides, read_plan
from dpframe.jobs.running import preview_job
from dpframe.jobs.terminal import UNREADABLE

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
    with pytest.raises(PlanFileError, match=r"queries.by_zone: .*'zne'. Did you mean 'zone'"):
        preview_job(read_plan(plan, MARCH))


def test_columns_that_are_declared_alone_are_looked_for(tmp_path):
    plan = planned(tmp_path, ("bounds.fare", "keys.airline = ['X']\nbounds.fare"))
    with pytest.raises(
        PlanFileError, match=r"declare: the data have no column 'airline'. The first line has 3"
    ):
        preview_job(read_plan(plan, MARCH))

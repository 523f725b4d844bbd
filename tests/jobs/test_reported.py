"""The page about released files, from a terminal."""

import json

import pandas as pd
import pytest
from support.planning import planned
from support.terminal import ALTERED, SOUND, UNREADABLE, main

import dpframe as dpf

pytest.importorskip("jinja2")


@pytest.fixture
def made(tmp_path, capsys):
    """The files of a release."""
    plan = planned(tmp_path, ("{query}-{month}.csv", "{query}-{month}.parquet"))
    assert main(["release", str(plan), "--set", "month=2024-03", "--quiet"]) == SOUND
    return sorted(map(str, tmp_path.glob("*.parquet")))


def test_a_page_is_written_about_several_files(made, tmp_path, capsys):
    page, ledger = tmp_path / "page.html", tmp_path / "trips.ledger"
    asked = ["report", *made, "--ledger", str(ledger), "--output", str(page), "--title", "March"]
    assert main(asked) == SOUND
    assert capsys.readouterr().out == f"{page}: written\n"
    text = page.read_text(encoding="utf-8")
    assert "<h1>March</h1>" in text
    assert all(path in text for path in made)
    assert main(asked) == UNREADABLE
    assert "--overwrite" in capsys.readouterr().err
    assert main([*asked, "--overwrite", "--percent", "--level", "0.9", "--json"]) == SOUND
    assert json.loads(capsys.readouterr().out)["sound"]


@pytest.mark.filterwarnings("default")  # in a terminal, warnings are printed
def test_what_is_wrong_is_one_line_and_an_exit_code(made, tmp_path, capsys, recwarn):
    other = dpf.Ledger.create(tmp_path / "other.ledger", budget=dpf.Budget(1))
    page = tmp_path / "page.html"
    asked = ["report", *made, "--output", str(page), "--overwrite"]
    assert main([*asked, "--ledger", str(other.path)]) == ALTERED
    assert len(capsys.readouterr().err.splitlines()) == 2
    changed = pd.read_parquet(made[0])
    changed.iloc[0, 0] += 1000
    changed.to_parquet(made[0])
    assert main(asked) == ALTERED
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{page}: {made[0]}: this frame is not what" in line
    assert not recwarn.list


def test_a_page_does_not_replace_what_it_is_about(made, tmp_path, capsys):
    before = dpf.verify(pd.read_parquet(made[0]))
    assert main(["report", *made, "--output", made[0], "--overwrite"]) == UNREADABLE
    assert "another file" in capsys.readouterr().err
    assert dpf.verify(pd.read_parquet(made[0])) == before


@pytest.mark.parametrize("name", ["none.parquet", "trips.toml", "trips.ledger"])
def test_files_that_cannot_be_read_are_named(made, tmp_path, capsys, name):
    path, page = tmp_path / name, tmp_path / "page.html"
    assert main(["report", *made, str(path), "--output", str(page)]) == UNREADABLE
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line
    assert not page.exists()


def test_levels_are_levels(made, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["report", *made, "--output", str(page), "--level", "2"]) == UNREADABLE
    assert "level" in capsys.readouterr().err

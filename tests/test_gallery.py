"""The notebooks of the gallery keep its form; the site runs them when it is built."""

import ast
import re
import struct
from pathlib import Path

import pytest

GALLERY = Path(__file__).resolve().parents[1] / "docs" / "gallery"
NOTEBOOKS = sorted({page.stem for page in GALLERY.glob("*.md")} - {"index"})
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOWNLOADS = {"requests", "urllib", "urllib3", "httpx", "pooch", "seaborn", "geodatasets"}


def text_of(name):
    return (GALLERY / f"{name}.md").read_text(encoding="utf-8")


def cells(name):
    return [ast.parse(cell) for cell in CELL.findall(text_of(name))]


def found(name, kind):
    return [node for cell in cells(name) for node in ast.walk(cell) if isinstance(node, kind)]


def imported(name):
    """Return the packages that a notebook imports."""
    names = [alias.name for node in found(name, ast.Import) for alias in node.names]
    names += [node.module for node in found(name, ast.ImportFrom)]
    return {module.split(".")[0] for module in names}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_short_and_says_what_readers_must_know(name):
    text = text_of(name)
    assert text.startswith("---\njupytext:\n") and "\n  name: python3\n" in text
    assert 8 <= len(cells(name)) <= 15
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles[-1] == "Try next" and "](../" in text.split("## Try next")[1]
    assert any("leaves out" in title for title in titles)
    assert "budget=dpf.Budget(" in text and ("dp.budget" in text or "ledger.status()" in text)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_downloads_nothing_and_draws_no_noise_of_its_own(name):
    assert not imported(name) & DOWNLOADS
    attributes = {node.attr for node in found(name, ast.Attribute)}
    assert not attributes & {"random", "default_rng", "seed", "sample"}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_a_notebook_asserts_of_noise_fails_at_most_once_in_a_million_builds(name):
    text = text_of(name)
    levels = re.findall(r"level=([^,)]+)|interval\(([^,)]+), simultaneous=True", text)
    strict = [one or other for one, other in levels if "1e-9" in (one or other)]
    assert strict == ["1 - 1e-9"] * len(strict) and strict
    assert "but for a chance of 1e-9" in text
    bounds = {node.id for one in found(name, ast.Assert) for node in ast.walk(one.test)
              if isinstance(node, ast.Name)}  # fmt: skip
    assert "wide" in bounds


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_notebook_has_a_card_with_a_small_picture(name):
    index = text_of("index")
    assert f":link: {name}\n" in index
    assert f":img-top: ../images/gallery-{name}.png" in index
    assert f"\n{name}\n" in index.split("```{toctree}")[1]
    head = (GALLERY.parent / "images" / f"gallery-{name}.png").read_bytes()
    assert struct.unpack(">II", head[16:24]) == (480, 300) and len(head) < 60_000
    alt = index.split(f"gallery-{name}.png\n")[1].splitlines()[0]
    assert re.fullmatch(r":img-alt: \S.+", alt)

"""Mistakes as lines of code: each is answered briefly, with a way out, or shown.

They are a table, `mistakes.toml`, which says of each what the answer must have.
"""

import re
from pathlib import Path

import pandas as pd
import pytest
from support.mistakes import answered, complaints_of, names_in_a_cell

from dpframe.errors import DPFrameError

ROWS = answered(Path(__file__).parent / "mistakes.toml")

SILENT = {  # an error would depend on private cells, which dtypes are guessed from
    """df.dp.diagnose(dpf.count(where="person == '1'"))""": "no row satisfies it",
    """df.dp.diagnose(dpf.count(where="day == '2034-01-01'"))""": "no row satisfies it",
    'df.dp.diagnose(dpf.count("person", keys=["1"]))': "no row can match",
    'df.dp.diagnose(dpf.count("ward", keys=["a", "b", "c"]))': "most often 'A'",
    "(df.dp.count(epsilon=1), df.dp.count(epsilon=1), df.dp.budget)[-1]": "20% of the budget: ",
}


@pytest.mark.parametrize("code", SILENT)
def test_a_mistake_without_an_error_is_shown_where_one_may_look(code, tmp_path):
    answer = eval(code, names_in_a_cell(tmp_path))  # noqa: S307  # it is one of ours
    text = answer.to_string() if isinstance(answer, pd.DataFrame) else str(answer)
    assert SILENT[code] in text


def test_errors_that_the_page_of_troubleshooting_shows_are_raised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[1] / "docs" / "how-to" / "troubleshooting.md"
    text = page.read_text(encoding="utf-8")
    names = {}
    exec(re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1], names)  # noqa: S102
    shown = re.findall(r"^```\n((?:(?!```).*\n)+)```\n\n> `(.*)`$", text, re.MULTILINE)
    assert len(shown) == 12
    for code, answer in shown:
        with pytest.raises(DPFrameError) as raised:
            exec(code, names)  # noqa: S102
        assert f"{raised.type.__name__}: {raised.value}".startswith(answer)
    assert len(names["df"].dp.ledger.entries) == 1  # errors cost nothing


def test_mistakes_are_each_there_once():
    assert len({row.code for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_a_mistake_is_answered(row, tmp_path):
    assert complaints_of(row, tmp_path) == []

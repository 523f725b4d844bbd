"""Tables for notebooks: well-formed, escaped, and with the numbers that they are about."""

import re
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

import dpframe as dpf
from dpframe import html
from dpframe.declaration.facts import kept_declaration
from dpframe.html import budget_html, declaration_html, unit_lines

HOUR = pd.Timedelta("1h")
HOSTILE = "<script>alert(\"1\")</script> & 'x' $a_b$ </td>"


def read(made):
    """Parse what was made and return its texts, in order."""
    return [text for text in ET.fromstring(made).itertext() if text]  # noqa: S314


def tables(made):
    """Return the texts of the cells of each table."""
    root = ET.fromstring(made)  # noqa: S314
    return [
        [["\n".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
        for table in root.iter("table")
    ]


def pairs(made):
    """Return names and values of the first table; a name that is missing is the one above."""
    found, name = {}, ""
    for above, value in tables(made)[0]:
        name = above or name
        found[name] = f"{found[name]}\n{value}" if name in found else value
    return found


def trips(label="zone", **declared):
    frame = pd.DataFrame({label: ["A", "B", "A"], "fare": [1.0, 2.5, 7.0], "who": [1, 1, 2]})
    frame.dp.declare(keys={label: ["A", "B", "C"]}, bounds={"fare": (0.5, 30)}, **declared)
    return frame


def status(**given):
    """Return a status as a ledger would, for a budget that is partly spent."""
    numbers = {
        "used": 0.123451,
        "used_words": "12.3% of the budget",
        "remaining_mu": 0.319999,
        "remaining_epsilon": 0.876549,
        "remaining_share": float(Fraction(1, 3)),
        "largest_share": float(Fraction(2, 3)),
        "remaining_delta": 7.42399e-8,
    }
    releases = pd.DataFrame(
        {
            "released_at": "2026-01-02",
            "what": "count by zone",
            "mechanism": "gaussian",
            "share": float("nan"),
            "part": 0.123451,
            "epsilon": float("nan"),
            "mu": 0.04321098,
            "delta": float("nan"),
            "name": None,
            "note": "not shown",
        },
        index=pd.Index(["abc"], name="release_id"),
    )
    return SimpleNamespace(
        **{"budget": dpf.Budget(1, 1e-6), "releases": releases, **numbers, **given}
    )


def table_html(title, rows):
    return html.section(html.title_html(title), html.pairs(rows))


def test_texts_are_escaped():
    made = table_html(HOSTILE, [(HOSTILE, HOSTILE), ("lines", [HOSTILE])])
    assert "<script" not in made
    assert '"1"' not in made
    assert read(made) == [HOSTILE, HOSTILE, HOSTILE, "lines", HOSTILE]


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\x0c", "\ud800", "\uffff"])
def test_characters_that_are_no_text_are_replaced(character):
    assert read(table_html("t", [("name", f"a{character}b")]))[-1] == "a\ufffdb"
    table_html("t", [("name", f"a{character}b")]).encode()


def test_formulas_are_not_typeset():
    made = table_html("t", [("cost", "$a_b$")])
    assert re.match(r'<div class="[^"]*\bmathjax_ignore\b', made)


def test_a_certificate_is_shown_with_its_numbers():
    frame = trips(privacy_unit="who", max_rows=2, budget=dpf.Budget(2, 1e-6))
    query = dpf.aggregate("zone", n=dpf.count(), fare=dpf.mean("fare", where="fare > 1"))
    certificate = frame.dp.release(query, epsilon=0.5).dp.certificate
    made = certificate._repr_html_()
    found = pairs(made)
    assert found["query"] == "n: count, fare: mean of fare where fare > 1 by zone"
    assert found["privacy unit"] == "all rows of one 'who'\nmax_rows=2"
    assert found["neighbors"] == "add_remove"
    assert found["mechanism"] == f"{certificate.mechanism.title} noise on exact integers"
    assert found["privacy loss"].startswith("(0.5, ")
    assert f"mu={certificate.privacy_loss.mu:.6g}" in found["privacy loss"]
    part = f"{100 * certificate.ledger.part:.3g}%"
    assert found["ledger"].startswith(f"{part} of epsilon=2, delta=1e-06\n{part} used")
    assert certificate.release_id in found["released"]
    assert found["digest"].startswith(certificate.digest)
    error = f"{certificate.columns[0].std_error:.6g}"
    assert tables(made)[1][1:] == [
        ["n", "count", "", "", error],
        ["fare", "mean of fare", "fare > 1", "0.5 to 30", "one for each group"],
    ]


def test_certificates_of_all_kinds_are_shown():
    one = pairs(trips().dp.release(dpf.count(), mu=0.25).dp.certificate._repr_html_())
    assert one["privacy unit"] == "one row"
    assert one["privacy loss"] == "mu=0.25"
    assert one["ledger"] == "none: no budget was declared"
    both = trips().dp.release({"a": dpf.count("zone"), "b": dpf.count()}, epsilon=1, delta=0)
    shown = pairs(both["a"].dp.certificate._repr_html_())["privacy loss"]
    assert shown.splitlines()[0] == "(1, 0)-differentially private"
    assert shown.splitlines()[-1] == "shared by all queries released together"


def defined(certificate, definition):
    """Return a certificate in which the last column was computed so."""
    *columns, last = certificate.table.columns
    columns = (*columns, replace(last, definition=definition))
    return replace(certificate, table=replace(certificate.table, columns=columns))


def test_denoised_columns_are_shown():
    certificate = dpf.denoise(trips().dp.count("zone", epsilon=1), "whole").dp.certificate
    said = "count_denoised: count denoised by whole"
    for gain, words in [(0.256, ", expected to remove 26% of the squared error"), (None, "")]:
        part = certificate.table.definitions[0]
        step = replace(part, tried={"whole": gain}, tried_absolute={})
        made = defined(certificate, step)
        assert tables(made._repr_html_())[2][1:] == [[said + words]]
        assert said + words in repr(made).splitlines()[-2]


def test_a_declaration_is_shown():
    frame = trips(
        privacy_unit="who",
        max_groups=2,
        max_rows_per_group=3,
        neighboring="replace",
        missing={"fare": 2.5},
        budget=dpf.Budget(2, 1e-6),
    )
    declaration = kept_declaration(frame)
    made = declaration._repr_html_()
    assert made == declaration_html(declaration)
    assert pairs(made) == {
        "privacy unit": "all rows of one 'who'\nmax_groups=2\nmax_rows_per_group=3",
        "neighbors": "replace",
        "budget": "epsilon=2, delta=1e-06",
    }
    assert {row[0]: row[1:] for row in tables(made)[1]} == {
        "column": ["bounds", "keys", "whole numbers", "missing values", "from"],
        "zone": ["", "3", "", "left out", "declared"],
        "fare": ["0.5 to 30", "", "", "taken as 2.5", "declared"],
    }


def test_times_are_shown():
    day = pd.Timestamp("2020-01-01", tz="Asia/Tokyo")
    frame = pd.DataFrame({"when": [day], "took": [HOUR]})
    bounds = {"when": (day, day + pd.Timedelta("1D")), "took": (0 * HOUR, 2 * HOUR)}
    frame.dp.declare(bounds=bounds, missing={"took": pd.Timedelta("1min")})
    declared = tables(kept_declaration(frame)._repr_html_())[1]
    shown = "2020-01-01 00:00:00+09:00 to 2020-01-02 00:00:00+09:00"
    assert [row[:2] for row in declared[1:]] == [
        ["when", shown],
        ["took", "0 days 00:00:00 to 0 days 02:00:00"],
    ]
    assert declared[2][4] == "taken as 0 days 00:01:00"
    certificate = frame.dp.mean(["when", "took"], epsilon=1).dp.certificate
    assert [row[3] for row in tables(certificate._repr_html_())[1][1:]] == [
        row[1] for row in declared[1:]
    ]


def test_a_unit_stands_on_one_line_whatever_its_columns_are_called():
    assert unit_lines(["a; b"], {"max_rows": 3}) == ["all rows of one 'a; b'", "max_rows=3"]
    several = "a person in k such units is protected as k units"
    assert unit_lines(["a; b", "c"], {}) == ["all rows of one 'a; b' in one 'c'", several]


def test_a_budget_is_shown_on_the_safe_side():
    found = pairs(budget_html(status(), ""))
    assert found == {
        "budget": "epsilon=1, delta=1e-06",
        "used": "12.3% of the budget",
        "left": "33.33%\nepsilon=0.8765 of Laplace noise\nor mu=0.3199 of Gaussian noise\n"
        "share=0.6666 takes nearly all of it",
    }
    even = pairs(budget_html(status(remaining_mu=0.1, budget=dpf.Budget(1, 1e-6, 1e-7)), ""))
    assert even["budget"] == "epsilon=1, delta=1e-06 (1e-07 of it to find groups with)"
    assert "mu=0.1 of" in even["left"]
    assert even["left"].endswith("delta=7.423e-08 to find groups with")


def test_a_budget_lists_the_latest_releases():
    header, only = tables(budget_html(status(), ""))[1]
    assert header == [
        "what",
        "mechanism",
        "part",
        "mu",
        "released",
    ]  # nothing has a name or epsilon
    assert only == ["count by zone", "gaussian", "12.3%", "0.043211", "2026-01-02\nabc"]
    many = pd.concat([status().releases] * 60).set_axis([f"r{i}" for i in range(60)])
    many.loc["r3", ["name", "epsilon"]] = ["first", 0.5]
    rows = tables(budget_html(status(releases=many), ""))[1]
    assert rows[0] == ["what", "name", "mechanism", "part", "epsilon", "mu", "released"]
    assert [row[-1] for row in rows[1:51]] == [f"2026-01-02\nr{i}" for i in range(59, 9, -1)]
    assert rows[51:] == [["and 10 more"]]


def test_hostile_labels_stay_texts():
    frame = trips(HOSTILE)
    released = frame.dp.count(HOSTILE, epsilon=1)
    released = dpf.denoise(released, "nonnegative")
    for made in (
        released.dp.certificate._repr_html_(),
        kept_declaration(frame)._repr_html_(),
        budget_html(status(releases=status().releases.assign(what=HOSTILE)), ""),
    ):
        assert "<script" not in made
        assert HOSTILE in "".join(read(made))
    record = released.dp.certificate
    (denoised,) = record.table.definitions
    denoised = replace(denoised, into=HOSTILE, members=(HOSTILE, HOSTILE))
    for change in (
        {"neighboring": HOSTILE},
        {"mechanism": replace(record.mechanism, title=HOSTILE)},
        {"released_at": HOSTILE},
        {"digest": HOSTILE},
        {"columns": (replace(record.columns[0], name=HOSTILE, where=HOSTILE),)},
        {"table": defined(record, denoised).table},
        {"privacy_unit": replace(record.privacy_unit, columns=(HOSTILE,))},
    ):
        own = change.keys() <= vars(record).keys()
        within = {} if own else {"releases": (replace(record.release, **change),)}
        made = replace(record, **(within or change))._repr_html_()
        assert "<script" not in made
        assert HOSTILE in "".join(read(made))

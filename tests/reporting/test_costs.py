"""What a report says of costs: a reader can recompute them, and add them up over parts."""

import math
import re
from dataclasses import replace

import pandas as pd
import pytest
from support.charging import entry, gaussian, pure
from support.raising import raises

import dpframe as dpf
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.gaussian import mu_of_pure
from dpframe.reporting.tables import cost_lines, loss_of_parts

KEYS = {"ward": [*"abcd"]}
CHOSEN = {"laplace": {"epsilon": 0.7}, "gaussian": {"epsilon": 0.7, "delta": 1e-6}}


def visits(**facts):
    frame = pd.DataFrame({"who": [1, 2, 3], "ward": [*"abc"], "stay": [1.5, 2.0, 9.0]})
    frame.dp.declare(privacy_unit="who", max_rows=5, keys=KEYS, bounds={"stay": (1, 10)}, **facts)
    return frame


def cost_of(line):
    """Compute what a line says."""
    cells, formula = re.fullmatch(r"(\d+) cells?: (.*)", line).groups()
    python = formula.replace(",", "").replace("\u00b2", "**2").replace(" log(", " * math.log(")
    return int(cells) * eval(python, {"math": math})  # noqa: S307


@pytest.mark.parametrize("query", [dpf.count("ward"), dpf.sum("stay", "ward")], ids=["n", "sum"])
@pytest.mark.parametrize("mechanism", [*CHOSEN, "staircase"])
def test_the_terms_of_a_release_add_up_to_what_it_promises(mechanism, query):
    spend = CHOSEN.get(mechanism, {"epsilon": 3})
    released = visits(max_rows_per_group=2).dp.release(query, mechanism=mechanism, **spend)
    (release,) = released.dp.certificate.releases
    *terms, total = [line for line in cost_lines(release) if not line.startswith("at delta")]
    cost = sum(map(cost_of, terms))
    promised = release.privacy_loss
    named = promised.mu**2 if mechanism == "gaussian" else promised.epsilon
    # of a large scale D + b, few digits of b are left
    assert cost == pytest.approx(named, rel=1e-5 if mechanism == "staircase" else 1e-9)
    shown = float(re.search(r"= ([\d.e-]+)", total)[1])
    assert shown == pytest.approx(cost, rel=1e-5)


def test_a_page_says_how_to_recompute_what_it_promises():
    released = visits().dp.count("ward", epsilon=0.7, delta=1e-6, mechanism="gaussian")
    page = dpf.report(released)
    (release,) = released.dp.certificate.releases
    assert all(line in page for line in cost_lines(release))
    assert "examples/recompute_epsilon.py" in page
    assert f"epsilon = {release.privacy_loss.epsilon:.6g}, which solves delta" in page


def test_costs_add_up_over_parts_and_grow_with_parts_where_all_are_read():
    week = [replace(entry(gaussian(mu)), part=name) for mu, name in ((0.1, "1"), (0.2, "2"))]
    found = loss_of_parts([*week, entry(gaussian(0.05))], 2)
    assert found.mu == pytest.approx(math.sqrt(0.1**2 + 0.2**2 + (2 * 0.05) ** 2), rel=1e-12)
    days = [replace(entry(pure(0.25)), part="1"), entry(pure(0.125))]
    assert loss_of_parts(days, 3).epsilon == 0.25 + 3 * 0.125
    mixed = loss_of_parts([*days, *week], 3)
    squares = 0.1**2 + 0.2**2 + mu_of_pure(0.25) ** 2 + mu_of_pure(0.375) ** 2
    assert mixed.mu == pytest.approx(math.sqrt(squares), rel=1e-12)
    searched = entry(PrivacyLoss(epsilon=pure(1).epsilon, delta=pure(1e-9).epsilon))
    assert loss_of_parts([searched], 2) is None
    assert loss_of_parts([replace(searched, part="1")], 2).delta == pytest.approx(1e-9)


def test_a_year_of_parts_is_a_line_of_its_own():
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=1), part="week")
    frame = pd.DataFrame({"who": [1, 1], "week": [1, 2], "ward": [*"ab"]})
    frame.dp.declare(privacy_unit=["who", "week"], max_rows=2, keys=KEYS, ledger=ledger)
    tables = [frame.dp.count("ward", part=week, epsilon=0.25) for week in (1, 2)]
    page = dpf.report([*tables, frame.dp.count("ward", epsilon=0.125)], ledger=ledger)
    said = page.split("for somebody in all 2 of their parts by week")[1]
    assert "(0.75, 0)-differentially private" in said
    assert "settled before the first answer" in said
    one = dpf.report(tables[0], ledger=ledger)
    assert "(0.75, 0)-differentially private" in one  # the ledger counts, not the page


def test_a_table_of_noise_alone_is_said_to_be_hardly_worth_publishing():
    query = dpf.count("who", keys=range(60))
    few = dpf.release(visits(), query, epsilon=1e-6)
    said = re.search(r"Hardly worth publishing.*?(\d+) of the 60 counts and sums", dpf.report(few))
    assert int(said[1]) > 30  # each is, with 95 %: a false alarm in less than one of 1e20 runs
    many = pd.DataFrame({"ward": [*"abcd"] * 5000})
    good = dpf.release(
        many, dpf.count("ward", keys=[*"abcd"]), epsilon=1, privacy_unit=dpf.EACH_ROW
    )
    assert "Hardly worth publishing" not in dpf.report(good)


def test_bars_of_a_mean_start_at_the_bound_next_to_zero():
    rows = pd.DataFrame({"ward": [*"ab"] * 20_000, "score": [4, 8] * 20_000})
    facts = {"keys": [*"ab"], "privacy_unit": dpf.EACH_ROW}
    for bounds, share in (((1, 10), 3 / 7), ((0, 10), 4 / 8)):
        query = dpf.mean("score", "ward", bounds=bounds, keys=[*"ab"])
        released = dpf.release(rows, query, epsilon=1000, privacy_unit=facts["privacy_unit"])
        widths = re.findall(r'<rect x="[^"]*" y="2" width="([\d.]+)"', dpf.report(released))
        first, second = map(float, widths)
        assert first / second == pytest.approx(share, abs=1e-3)


def test_a_ledger_named_by_its_path_is_to_be_opened():
    with raises(dpf.errors.DeclarationError, "Open it", parameter="ledger"):
        dpf.report(visits().dp.count("ward", epsilon=1), ledger="x.ledger")

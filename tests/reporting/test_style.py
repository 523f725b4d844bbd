"""Tables for readers: each number with its interval, whatever the layout, and texts escaped."""

import sys

import numpy as np
import pandas as pd
import pytest
from support.publishing import KINDS, ZONES
from support.publishing import released as of_kind
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CertificateError, DPFrameError, QueryError

pytest.importorskip("jinja2")


def texts(table, **options):
    return table.dp.style(escape=None, **options).data


def test_counts_stand_with_their_intervals():
    table = of_kind("two keys")
    bars = table.dp.interval(0.9)
    shown = texts(table, level=0.9)["count"]
    rows = zip(table["count"], bars["count_low"], bars["count_high"], strict=True)
    assert shown.tolist() == [f"{count:,} [{low:,}, {high:,}]" for count, low, high in rows]
    joined = table.dp.interval(0.9, join=True)
    assert texts(joined).equals(shown.to_frame())
    wide, means = texts(joined.unstack("day")), of_kind("mean")
    assert wide[("count", "1")].tolist() == shown.xs("1", level="day").tolist()
    assert means.dp.style().caption == "[95 % intervals] one row: (2, 0)-differentially private"


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("kind", KINDS)
def test_releases_of_all_kinds_have_a_style(kind):
    table = of_kind(kind)
    shown = texts(table)
    assert shown.shape == table.shape
    numbers = shown.stack().str.extract(r"^(-?[\d.,]+)")[0].str.replace(",", "")
    if kind != "times":
        close = np.abs(numbers.astype(float).to_numpy() - table.to_numpy(float).ravel())
        assert (close <= 0.06 * np.abs(table.to_numpy(float).ravel()) + 0.5).all()
    page = table.dp.style().to_html()
    assert page.count("<td") == table.size


def test_durations_have_a_unit():
    table = of_kind("times")
    (first, *_) = texts(table)["wait"]
    number, unit, *_ = first.split()
    length = pd.Timedelta(float(number), {"days": "D", "h": "h", "min": "min"}[unit])
    assert abs(length - table["wait"].iloc[0]) < pd.Timedelta("10min")
    assert first.count(unit) == 3


def test_hidden_cells_stay_hidden_and_rounded_ones_rounded():
    table = of_kind("several").dp.suppress(below=1_000, by="flights").dp.round({"total": -3})
    shown = texts(table)
    for zone in table.index[table["flights"].isna()]:
        assert not shown.loc[zone].str.contains(r"\d").any()
    known = shown.loc[table["flights"].notna(), "total"]
    assert len(known) and known.str.fullmatch(r"[\d,]+000 \[[\d,]+000, [\d,]+000\]").all()
    assert "total: 1 of 4 cells, rounded to 1000" in table.dp.style().caption


def test_labels_are_escaped():
    hostile = "<b>&_%$#{}~^\\"
    frame = pd.DataFrame({"zone_": [hostile]})
    query = dpf.aggregate("zone_", keys=[hostile], **{"n<_": dpf.count()})
    table = dpf.release(frame, query, epsilon=1)
    page = table.dp.style().to_html()
    assert "<b>" not in page and "n<_" not in page and "&lt;b&gt;&amp;_%" in page
    latex = table.dp.style(escape="latex").to_latex()
    assert r"<b>\&\_\%\$\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}" in latex
    assert r"zone\_ &" in latex and r"n<\_" in latex
    assert texts(table).index[0] == hostile


def test_a_style_is_of_what_was_released(monkeypatch):
    table = of_kind("one key")
    for level in (0, 1, "a"):
        with raises(QueryError, parameter="level"):
            table.dp.style(level)
    with raises(QueryError, parameter="escape"):
        table.dp.style(escape="rtf")
    with pytest.raises(CertificateError):
        (table + 1).dp.style()
    assert list(texts(table.reset_index())["zone"]) == ZONES
    assert texts(table.iloc[:0]).shape == (0, 1)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for name in [name for name in sys.modules if name.startswith("pandas.io.formats.style")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(DPFrameError, match=r"pip install '(dpframe|\.)\[report\]'"):
        table.dp.style()

"""The report: what it says is so, what is wrong is said, and texts from a file stay texts."""

import html.parser
import json
import re
from datetime import UTC, datetime
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from support import publishing
from support.quotients import changes, quotients_of
from support.raising import raises
from support.terminal import SOUND, main

import dpframe as dpf
from dpframe.errors import CertificateError, DeclarationError, DPFrameWarning, QueryError
from dpframe.privacy.gaussian import gaussian_epsilon
from dpframe.privacy.interpretation import Guarantee
from dpframe.reporting import tables as report_tables

HOSTILE = "<script>alert(1)</script>"
TURNED = "\u202eturned"
NOW = datetime(2024, 3, 1, tzinfo=UTC)


class Page(html.parser.HTMLParser):
    """What a browser would find on a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.records, self._open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._open.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if self._open and self._open[-1] == ("pre", {"class": "certificate", "tabindex": "0"}):
            self.records.append(json.loads(data))
        elif self._open and self._open[-1][0] != "style":
            self.texts.append(" ".join(data.split()))

    @property
    def text(self):
        return " ".join(self.texts)


@pytest.fixture
def visits():
    rows = np.arange(600)
    return pd.DataFrame(
        {
            "person": rows % 200,
            "ward": np.array(["north", HOSTILE, TURNED])[rows % 3],
            "stay": rows % 30 / 2,
            "taken": pd.to_timedelta(rows % 60, "min"),
        }
    )


@pytest.fixture
def declared(visits, tmp_path):
    ledger = dpf.Ledger.create(tmp_path / "visits.ledger", budget=dpf.Budget(epsilon=8, delta=1e-6))
    hour = pd.Timedelta("1h")
    visits.dp.declare(
        keys={"ward": ["north", HOSTILE, TURNED, "nobody"]},
        bounds={"stay": (0, 15), "taken": (0 * hour, hour)},
        privacy_unit="person",
        max_rows=2,
        ledger=ledger,
    )
    return visits, ledger


def test_numbers_are_those_of_the_release_and_its_intervals(declared):
    visits, _ = declared
    released = visits.dp.aggregate(
        by="ward", epsilon=4, visits=dpf.count(), stay=dpf.mean("stay"), taken=dpf.sum("taken")
    )
    found = Page(dpf.report(released, percent=True)).texts
    bars, shares = released.dp.interval(), quotients_of(released.dp.percent("visits"))
    durations = [text for text in found if re.fullmatch(r"-?[\d.]+ (days|h|min|s)", text)]
    lengths = pd.to_timedelta(durations)
    for ward in released.index:
        row = released.loc[ward]
        assert f"{row['visits']:,}" in found
        width = bars.loc[ward, "taken_high"] - bars.loc[ward, "taken_low"]
        assert min(abs(length - row["taken"]) for length in lengths) < width / 40
        assert f"{bars.loc[ward, 'visits_low']} to {bars.loc[ward, 'visits_high']}" in found
        share = shares.loc[ward]
        low, high = np.floor(share.low * 10) / 10, np.ceil(share.high * 10) / 10
        text = f"{share.estimate:.1f} % ({low:.1f} to {high:.1f})"
        assert ("unknown" if np.isnan(share.estimate) else text) in found
    half = (bars["stay_high"] - bars["stay_low"]).to_numpy() / 2
    shown = [
        "unknown" if np.isnan(value) else f"{value:,.{max(1 - int(np.floor(np.log10(w))), 0)}f}"
        for value, w in zip(released["stay"], half, strict=True)
    ]
    assert set(shown) <= set(found)


def test_what_is_in_the_table_is_shown_once():
    frame = publishing.released("two keys")
    table = (
        frame.dp.percent(by="zone", level=0.5)
        .dp.interval(0.8, join=True)
        .dp.round({"count": -1, "count_percent": 1})
        .dp.suppress(below=310)
        .dp.rename({"count": "trips"}, levels={"zone": "borough"})
    )
    page = Page(dpf.report(table, percent=True))
    for label in table.columns[1:]:
        assert label not in page.texts
    assert "of the total by borough" in page.texts and "with 50 % interval" in page.texts
    assert page.texts.count("80 % interval") == 1 and "95 % interval" not in page.texts
    assert "No percentages" not in page.text
    shown = table.dropna()
    assert 0 < len(shown) < len(table)
    for row in shown.itertuples(index=False):
        share, *ends = row[1:4]
        assert f"{share:.1f} % ({ends[0]:.1f} to {ends[1]:.1f})" in page.texts
        assert f"{row[4]:,.0f} to {row[5]:,.0f}" in page.texts
    assert "nan" not in page.text


def test_percentages_that_are_not_there_are_said_not_to_be():
    published = publishing.released("one key").dp.round(-1).dp.publish()
    page = Page(dpf.report(published, percent=True)).text
    assert "No percentages of count: percent needs all cells as released" in page
    alone = publishing.released("one key").dp.interval(join=True)[["count", "count_low"]]
    texts = Page(dpf.report(alone)).texts
    assert {"count_low", "95 % interval", "computed from the release"} <= {*texts}


def test_a_number_that_may_be_all_noise_is_marked(visits):
    keys = {"ward": ["north", "nobody"]}
    released = visits.dp.count(by="ward", keys=keys, privacy_unit=dpf.EACH_ROW, epsilon=1)
    low = released.dp.interval()
    drowned = low["count_high"] - released["count"] >= released["count"].abs()
    assert not drowned["north"]  # nobody's count is inside its interval but 1 time in 37
    assert Page(dpf.report(released)).texts.count("≈ noise") == drowned.sum()


def test_it_says_what_a_guarantee_means(declared):
    visits, ledger = declared
    released = visits.dp.count(by="ward", epsilon=0.5)
    page = Page(dpf.report(released, ledger=ledger)).text
    alone = Guarantee(0.5)
    assert f"{np.ceil(1000 * alone.belief(0.1)) / 10:.1f} %" in page
    assert f"at most {np.ceil(1000 * alone.power(0.05)) / 10:.1f} %" in page
    assert "everything charged to the ledger" in page
    assert "all rows with one value of 'person' together" in page
    assert "at most 2 rows in all" in page


def test_tables_of_one_release_share_one_guarantee(declared):
    visits, _ = declared
    found = visits.dp.release({"a": dpf.count(by="ward"), "b": dpf.units(by="ward")}, epsilon=1)
    page = Page(dpf.report(found))
    assert page.texts.count("a, b") == 2  # beliefs, and tests
    assert [record["releases"][0]["query"]["name"] for record in page.records] == ["a", "b"]


def test_certificates_are_embedded_for_machines(declared):
    visits, _ = declared
    released = visits.dp.count(by="ward", epsilon=1)
    assert Page(dpf.report(released)).records == [released.dp.certificate.to_dict()]


def test_the_digest_beside_a_table_is_that_of_its_file(declared, tmp_path, capsys):
    visits, _ = declared
    visits.dp.count("ward", epsilon=0.5).dp.write_csv(tmp_path / "visits.csv")
    assert main(["verify", str(tmp_path / "visits.csv")]) == SOUND
    (digest,) = re.findall(r"sha256:\w{64}", capsys.readouterr().out)
    page = dpf.report(dpf.read_csv(tmp_path / "visits.csv"))
    assert re.findall(r'<code class="digest">(.*?)</code>', page) == [digest]


def test_a_table_that_was_changed_shows_what_is_wrong_and_no_number(visits):
    visits["stay"] = 987_654
    released = dpf.release(visits, dpf.count(), epsilon=1, privacy_unit=dpf.EACH_ROW)
    released["exact"] = visits["stay"].max()
    with pytest.warns(DPFrameWarning, match="not to publish as it is"):
        page = Page(dpf.report(released)).text
    assert "Not to be published" in page
    assert "Wrong" in page
    assert "987" not in page
    # nor a promise, which the table may not keep
    assert "-differentially private" not in page
    assert "No promise can be read" in page
    sound = dpf.release(visits, dpf.count(), epsilon=0.25, privacy_unit=dpf.EACH_ROW)
    with pytest.warns(DPFrameWarning, match="not to publish as it is"):
        both = Page(dpf.report({"altered": released, "whole": sound})).texts
    assert [text for text in both if "-differentially" in text] == [
        "(0.25, 0)-differentially private"
    ]


def test_a_table_is_called_what_its_release_is_called_in_the_ledger(visits):
    visits.dp.declare(privacy_unit=dpf.EACH_ROW, budget=dpf.Budget(epsilon=1))
    table = visits.dp.count(epsilon=0.25, name="all visits")
    page = dpf.report(table, ledger=visits.dp.ledger)
    assert '<h3 id="table-1"><bdi>all visits</bdi></h3>' in page
    assert '<h3 id="table-1"><bdi>mine</bdi></h3>' in dpf.report(
        {"mine": table}, ledger=visits.dp.ledger
    )


def test_a_ledger_that_does_not_hold_the_release_is_wrong(declared, tmp_path):
    visits, ledger = declared
    released = visits.dp.count(by="ward", epsilon=1)
    other = dpf.Ledger.create(tmp_path / "other.ledger", budget=dpf.Budget(epsilon=1))
    with pytest.warns(DPFrameWarning, match="not to publish as it is"):
        assert "or not in the ledger" in Page(dpf.report(released, ledger=other)).text
    assert "Verified, but not against a ledger" in Page(dpf.report(released)).text
    sound = Page(dpf.report(released, ledger=ledger)).text
    assert "Not to be published" not in sound
    assert "was charged for it" in sound
    assert "not against a ledger" not in sound


def test_texts_from_a_file_stay_texts(declared):
    visits, ledger = declared
    released = visits.dp.count(by="ward", epsilon=1, name=HOSTILE)
    text = dpf.report({HOSTILE: released}, ledger=ledger, title=HOSTILE + TURNED)
    page = Page(text)
    assert not {"script", "img", "iframe", "link"} & set(page.tags)
    assert HOSTILE in page.texts
    assert "\u202e" not in text
    assert "default-src 'none'" in text


def test_what_a_release_kept_of_its_promise_to_leave_out_is_said(declared):
    visits, _ = declared
    released = visits.dp.sum("stay", by="ward", where="stay > 1", epsilon=1)
    page = Page(dpf.report(released)).text
    for said in (
        "those with stay > 1",
        "what lies outside of 0 to 15 counts as the nearer end",
        "ward: 4 groups, declared by keyword",
        "person is missing",
    ):
        assert said in page


def test_units_of_several_columns_are_said_to_be_combinations(visits):
    visits["day"] = visits["person"] % 7
    visits.dp.declare(privacy_unit=["person", "day"], max_rows=2, keys={"ward": ["north"]})
    page = Page(dpf.report(visits.dp.count("ward", epsilon=1))).text
    for said in (
        "all rows of one 'person' in one 'day'; a person in k such units is protected as k",
        "It is enough to protect one 'person' in one 'day'; a person in k such units is protected",
        "person is missing",
        "day is missing",
    ):
        assert said in page
    assert "Nobody has rows under more than one value" not in page


def test_budgets_by_part_are_shown_with_the_fullest_first(visits):
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=1), part="day")
    visits["day"] = visits["person"] % 7
    visits.dp.declare(
        privacy_unit=["person", "day"], max_rows=2, keys={"ward": ["north"]}, ledger=ledger
    )
    tables = [visits.dp.count("ward", part=day, epsilon=day / 10) for day in (3, 5)]
    page = Page(dpf.report(tables, ledger=ledger)).text
    assert "Every day has this budget" in page
    assert "(1, 0)-differentially private per day" in page
    assert "Whoever is in k of them is protected with at most k times its epsilon" in page
    assert 0 < page.index("50%", page.index("Every day")) < page.index("30%")
    assert "Part of the budget that was used after" not in page
    assert f"for day='{5}'" in str(tables[1].dp.certificate)
    assert tables[1].dp.certificate.ledger.of_part == "day='5'"
    assert dpf.verify(tables[1], ledger=ledger)


def test_percentages_that_cannot_be_given_are_said_to_be_missing(declared):
    visits, _ = declared
    released = visits.dp.count(by="ward", epsilon=4)
    few = released.head(2).dp.publish()
    text = Page(dpf.report(few, percent=True)).text
    assert "No percentages of count: percent needs all cells as released" in text
    assert "No percentages" not in Page(dpf.report(few)).text
    assert "No percentages" not in Page(dpf.report(released.head(2), percent=True)).text


def test_many_rows_are_drawn_in_part_and_all_there_as_text(visits):
    keys = range(5000)
    released = dpf.release(
        visits, dpf.count(by="person", keys=keys), epsilon=1, privacy_unit=dpf.EACH_ROW
    )
    text = dpf.report(released)
    assert "And 4,800 more rows" in Page(text).text
    assert len(text) < 500_000
    rows = text.split('<pre tabindex="0">')[1].split("</pre>")[0].splitlines()
    assert rows[0] == "person,count,count_low,count_high"
    bars = released.dp.interval()
    number, low, high = (int(end) for end in rows[-1].split(",")[1:])
    assert number == released["count"].iloc[-1]
    assert [low, high] == bars.iloc[-1].tolist()
    assert len(rows) == 5001


def test_what_was_denoised_and_discovered_is_shown(visits):
    visits.dp.declare(
        privacy_unit="person",
        max_groups=2,
        max_rows_per_group=3,
        budget=dpf.Budget(epsilon=9, delta=1e-3, discovery=1e-4),
    )
    found = visits.dp.discover("ward", epsilon=4)
    page = Page(dpf.report(found)).text
    assert "or more, one unit counting for" in page
    released = visits.dp.count(
        by="ward", keys=found.index, max_rows_per_group=2, epsilon=4, denoise="auto"
    )
    page = Page(dpf.report(released)).text
    assert "computed from the release" in page
    assert "post-processed" in page


@pytest.mark.parametrize("form", ["frame", "index", "dict", "select"])
def test_groups_that_were_found_are_said_to_be(visits, form):
    facts = {"privacy_unit": "person", "max_groups": 3, "max_rows": 9}
    visits.dp.declare(**facts)
    found = visits.dp.discover("ward", epsilon=50, delta=1e-6)
    keys = {
        "frame": found,
        "index": found.index,
        "dict": {"ward": found.index},
        "select": found.loc[[found.index[0]]],
    }[form]
    caps = {"max_groups": 3, "max_rows_per_group": 3, "max_rows": 9}
    known = visits.dp.count("ward", keys=keys, epsilon=1, **caps)
    page = Page(dpf.report(known)).text
    assert "groups, found by discover, in a release of its own" in page
    assert "The groups were known beforehand" not in page
    dpf.verify(known)
    listed = visits.dp.count("ward", keys=list(found.index), epsilon=1, **caps)
    assert "groups, written down in the call" in Page(dpf.report(listed)).text
    found.index = [f"{key}!" for key in found.index]
    other = visits.dp.count("ward", keys=[*found.index, "north"], epsilon=1, **caps)
    assert other.dp.certificate.releases[0].query.by[0].source == "call"


def test_frame_list_dict_and_accessor_make_the_same_page(declared, tmp_path, monkeypatch):
    visits, ledger = declared
    released = visits.dp.count(by="ward", epsilon=1)
    monkeypatch.setattr("dpframe.context.datetime", mock.Mock(now=lambda _: NOW))
    page = dpf.report(released, ledger=ledger, title="Visits", level=0.9, percent=True)
    assert dpf.report([released], ledger=ledger, title="Visits", level=0.9, percent=True) == page
    options = {"ledger": ledger, "title": "Visits", "level": 0.9, "percent": True}
    assert released.dp.report(tmp_path / "a.html", **options) == page
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page
    dpf.report(released, path=tmp_path / "a.html")  # written again
    assert (tmp_path / "a.html").read_text(encoding="utf-8") != page


@pytest.mark.parametrize("wrong", [None, [], {}, "abc", 3, [1], [pd.Series([1])]])
def test_what_is_no_release_is_refused(wrong):
    with raises(QueryError, parameter="released", value=wrong):
        dpf.report(wrong)


def test_frames_without_certificate_and_wrong_arguments_are_refused(declared, tmp_path):
    visits, _ = declared
    with pytest.raises(CertificateError, match="no certificate"):
        dpf.report(visits)
    released = visits.dp.count(by="ward", epsilon=1)
    for wrong in ({"level": 1.5}, {"title": 3}, {"percent": "yes"}):
        ((parameter, value),) = wrong.items()
        with raises(QueryError, parameter=parameter, value=value):
            dpf.report(released, path=tmp_path / "a.html", **wrong)
    with raises(DeclarationError, "dpf.Ledger('a.ledger')", parameter="ledger"):
        dpf.report(released, path=tmp_path / "a.html", ledger="a.ledger")
    assert not (tmp_path / "a.html").exists()


STEPS = {
    "rounded": lambda frame: frame.dp.round(
        {frame.columns[0]: -1 if len(frame.columns[0]) > 4 else 2}
    ),
    "cut": lambda frame: frame.sort_values(frame.columns[0]).head(2),
    "suppressed": lambda frame: frame.dp.suppress(below=1e9, by=frame.columns[0]),
    "renamed": lambda frame: frame.dp.rename({frame.columns[0]: "renamed"}),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", ["several", "two keys", "rate", "denoised"])
def test_tables_made_of_a_release_are_shown_as_they_are(kind, step):
    table = STEPS[step](publishing.released(kind))
    page = dpf.report(table, percent=True)
    assert "post-processed: the numbers are those of the certificate" in page
    assert Page(page).records == [table.dp.certificate.to_dict()]
    number = table.iloc[0, 0]
    assert pd.isna(number) or kind == "rate" or f"{number:,}" in page


def test_releases_of_one_table_stand_side_by_side_and_count_as_one():
    tables = {year: publishing.released("one key") for year in (2025, 2026)}
    both = dpf.concat(tables, name="year")
    page = Page(dpf.report(both))
    assert "The table is what the certificate says" in page.text
    assert "It holds 2 releases" in page.text and "Table 1" not in page.text
    assert page.text.count("By declaration") == 1
    bars = both.dp.interval()
    for key in both.index:
        low, high = (int(bars.loc[key, f"count_{end}"]) for end in ("low", "high"))
        assert f"{both.loc[key, 'count']:,}" in page.texts and f"{low:,} to {high:,}" in page.texts
    first, *_ = tables[2025].index
    row = page.texts[page.texts.index(str(first)) :]
    found = [f"{both.loc[(year, first), 'count']:,}" for year in (2025, 2026)]
    assert [row[1], row[3]] == found
    # beliefs, tests, what it costs, and the certificate
    assert sum(text.endswith(", year 2025") for text in page.texts) == 4
    three = Page(dpf.report([both, tables[2025]]))
    assert "The 2 tables are" in three.text and "Table 2:" in three.text
    wide = Page(dpf.report(both.unstack("year")))
    assert "It holds 2 releases" in wide.text and wide.text.count("By declaration") == 1


def test_releases_that_differ_stand_below_each_other(visits):
    facts = {"epsilon": 1, "privacy_unit": dpf.EACH_ROW}
    north = visits.dp.count("ward", keys=["north"], **facts)
    other = visits.dp.count("ward", keys=[TURNED], where="stay > 1", **facts)
    page = Page(dpf.report(dpf.concat([north, other])))
    assert "The table is what" in page.text and page.text.count("By declaration") == 2
    keyed = Page(dpf.report(dpf.concat([north, other], keys=["all", "long"], name="stays")))
    assert "not there" in keyed.text and keyed.text.count("By declaration") == 2


def test_what_is_promised_is_an_epsilon_and_a_delta(declared):
    visits, ledger = declared
    plain = visits.dp.release(dpf.count(by="ward"), mu=0.318072)
    pure = visits.dp.count(by="ward", epsilon=0.5)
    page = Page(dpf.report([plain, pure], ledger=ledger))
    shown = [text for text in page.texts if "-differentially private" in text]
    amounts = [float(text[1:].partition(",")[0]) for text in shown]
    exact = gaussian_epsilon(1e-6, 0.318072)
    assert exact <= amounts[0] < exact * 1.001 and amounts[1:] == [0.5, 8]
    assert "mu=" not in page.text


def test_quantiles_that_were_read_off_are_shown_once_with_their_own_intervals():
    fares = pd.DataFrame({"zone": ["A", "B"] * 50, "fare": np.arange(100.0)})
    how = {"epsilon": 1, "privacy_unit": dpf.EACH_ROW}
    asked = dpf.ranges("fare", 10, by="zone", keys=["A", "B"], bounds=(0, 100))
    found = dpf.release(fares, asked, **how).dp.quantile([0.25, 0.5], level=0.9)
    (view,) = report_tables.tables_of("", found, None, {}, 0.95, shares=False)
    assert [(column.name, column.intervals) for column in view.columns] == [("fare", "90 %")]
    (cell,) = view.rows[0].cells
    assert f"{found['fare_low'].iloc[0]:.3g}"[:3] in cell.interval


def test_ranges_and_selected_quantiles_are_described_as_such():
    fares = pd.DataFrame({"zone": ["A", "B"] * 50, "fare": np.arange(100.0)})
    how = {"epsilon": 1, "privacy_unit": dpf.EACH_ROW}
    given = {"by": "zone", "keys": ["A", "B"], "bounds": (0, 100)}
    ranges = dpf.release(fares, dpf.ranges("fare", 10, **given), **how)
    median = dpf.release(fares, dpf.quantile("fare", [0.5], **given), mechanism="select", **how)
    binned, selected, both = dpf.report(ranges), dpf.report(median), dpf.report([ranges, median])
    for page in (binned, selected):
        assert "zone: 2 groups, written down in the call" in page
        assert "zone is missing or not a declared key" in page
        assert "fare is missing" in page
        assert "fare is missing or not a declared key" not in page
        assert "quantile is missing or not a declared key" not in page
    assert "fare: 10 bins; what lies beyond is in the first and the last" in binned
    assert "quantile: 1 in each group, as asked for" in selected
    for words in ("Noise was added", "used with their intervals"):
        assert [words in page for page in (binned, selected, both)] == [True, False, True]
    for words in ("Quantiles were selected at random", "they have no intervals"):
        assert [words in page for page in (binned, selected, both)] == [False, True, True]


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "staircase"])
def test_the_noise_that_was_used_is_named_and_no_other(visits, mechanism):
    budget = dpf.Budget(epsilon=8, delta=1e-6)
    visits.dp.declare(privacy_unit="person", max_groups=2, max_rows_per_group=3, budget=budget)
    noisy = visits.dp.count("ward", keys=["north", HOSTILE], epsilon=3, mechanism=mechanism)
    page = Page(dpf.report(noisy)).text
    for other in ("laplace", "gaussian", "staircase"):
        assert (other in page.lower()) == (other == mechanism)
    assert ("fall in flat steps" in page) == (mechanism == "staircase")
    assert "Noise was added to exact totals" in page
    assert "no interval includes it" in page


def test_of_exact_numbers_and_labels_alone_no_noise_or_interval_is_claimed(visits):
    visits.dp.declare(
        privacy_unit=dpf.EACH_ROW, neighboring="replace", budget=dpf.Budget(epsilon=1, delta=1e-6)
    )
    exact = visits.dp.count(epsilon=0.1)
    page = Page(dpf.report(exact, ledger=visits.dp.ledger)).text
    assert exact["count"].tolist() == [600]
    assert "Exact, without noise" in page
    assert "does not have to hide are exact" in page
    visits = visits.copy()
    visits.dp.declare(privacy_unit="person", max_groups=2, max_rows_per_group=3)
    labels = visits.dp.discover("ward", counts=False, epsilon=8, delta=1e-3)
    listed = Page(dpf.report(labels)).text
    assert "Labels without numbers: " in listed
    for text in (page, listed):
        for words in (
            "Noise was added",
            "Noise: ",
            "used with their intervals",
            "interval includes",
        ):
            assert words not in text
    assert "gaussian" not in page.lower()
    assert "Intervals are about" not in page + listed


def yearly(visits, rows=None, **options):
    """Release the visits of some rows, each of them a unit."""
    frame = visits.head(rows) if rows else visits
    facts = {"keys": {"ward": ["north", HOSTILE, TURNED]}, "bounds": {"stay": (0, 15)}}
    query = dpf.aggregate("ward", visits=dpf.count(), stay=dpf.mean("stay"))
    frame = frame.copy()
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, **facts)
    return frame.dp.release(query, epsilon=1, **options)


def test_changes_are_shown_with_both_numbers_and_their_intervals(visits):
    before, now = yearly(visits, 300), yearly(visits)
    page = Page(dpf.report({"2024": before, "2025": now}, changes=True))
    assert "What changed" in page.text and "From 2024 to 2025" in page.text.replace("  ", " ")
    found = page.texts[page.texts.index("What changed") :]
    percents = now.dp.change(before, percent=True)
    differences = changes(now.dp.change(before))
    for ward in now.index:
        own = differences.loc[(ward, "visits")].astype(int)
        assert f"{own['estimate']} ({own['low']} to {own['high']})" in found
        assert (
            f"{before.loc[ward, 'visits']:,}" in found and f"{now.loc[ward, 'visits']:,}" in found
        )
        assert any(f"{percents.loc[ward, 'visits']:.0f} % (" in text for text in found)
    marks = sum((differences["low"] <= 0) & (differences["high"] >= 0))
    for table in (before, now):
        ends = table.dp.interval()
        half = (ends["visits_high"] - ends["visits_low"]) / 2
        marks += sum(half >= table["visits"].abs())
    assert found.count("\u2248 noise") == marks
    assert HOSTILE not in dpf.report([before, now], changes=True)


def test_tables_that_cannot_be_compared_say_why(visits):
    before, now = yearly(visits, 300), yearly(visits)
    some = now.loc[["north"]]
    page = Page(dpf.report({"a": before, "b": some, "c": now, "d": now.dp.round(-1)}, changes=True))
    assert "have cells of one release" in page.text
    assert "rounded to" in page.text
    assert "not there" in page.text  # rows of one table alone
    with pytest.warns(DPFrameWarning, match="not to publish"):
        altered = now * 2
        altered.attrs = now.attrs
        text = dpf.report([before, altered], changes=True)
    assert "change-1" not in text
    with raises(QueryError, "two tables or more", parameter="changes"):
        dpf.report(now, changes=True)
    with raises(QueryError, "True or False", parameter="changes"):
        dpf.report([before, now], changes=1)


def test_intervals_that_hold_the_error_of_a_sample_say_so(declared):
    visits, _ = declared
    counts = visits.dp.count("ward", max_rows=1, epsilon=1)
    table = counts.dp.interval(sampling=True, join=True).dp.percent(sampling=True)
    page, alone = dpf.report(table), dpf.report(counts.dp.interval(join=True))
    assert page.count("95 %, sample included, interval") == 2
    assert "about the sample" in page
    assert "sample included" not in alone
    assert "and the error of a sample" in alone


def test_intervals_with_the_error_of_a_sample_have_those_of_the_noise_inside(declared):
    visits, _ = declared
    counts = visits.dp.count("ward", max_rows=1, epsilon=1)
    page = dpf.report(counts.dp.interval(0.9, sampling=True, join=True))
    wide = counts.dp.interval(0.9, sampling=True).join(counts)
    least, largest = min(wide.min().min(), 0), wide.max().max()
    drawn = [
        [least + float(place) * (largest - least) / 100 for place in found]
        for found in re.findall(r'd="M([\d.]+) 6H([\d.]+)" stroke="#1b1f24" stroke-width="3"', page)
    ]
    assert np.array(drawn) == pytest.approx(
        counts.dp.interval(0.9).to_numpy(float), abs=(largest - least) / 9999
    )
    assert page.count('stroke-opacity="0.55"') == len(counts)
    for others in ({"simultaneous": True, "sampling": True}, {"sampling": False}):
        assert 'stroke-width="3"' not in dpf.report(counts.dp.interval(join=True, **others))


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_which_rows_a_unit_has_is_twice_the_loss_where_units_are_added(visits, relation):
    # two groups: under replace a change moves two counts, and noise is for both
    visits.dp.declare(
        keys={"ward": ["north", HOSTILE]}, privacy_unit=dpf.EACH_ROW, neighboring=relation
    )
    released = visits.dp.count("ward", epsilon=1, mechanism="laplace")
    page = Page(dpf.report(released)).text
    added = relation == "add_remove"
    assert ("is it in the data?" in page) == added
    assert ("Whether it is in the data" in page) == added
    assert page.count("does it have these rows, or others?") == 2
    assert ("11.9 % to 88.1 %" in page) == added
    assert "26.8 % to 73.2 %" in page


def test_the_row_of_the_ledger_is_about_its_own_relation(visits):
    foreign = visits.copy()
    foreign.dp.declare(privacy_unit=dpf.EACH_ROW, neighboring="replace")
    other = foreign.dp.count(where="stay > 1", epsilon=1)
    visits.dp.declare(privacy_unit=dpf.EACH_ROW, budget=dpf.Budget(epsilon=1))
    own = visits.dp.count(epsilon=0.25)
    with pytest.warns(DPFrameWarning, match="not to publish"):
        page = Page(dpf.report([other, own], ledger=visits.dp.ledger)).text
    assert "11.9 % to 88.1 %" in page


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_a_budget_by_part_hides_by_replacement_no_part(visits, relation):
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=1), part="day")
    visits["day"] = visits["person"] % 7
    visits.dp.declare(privacy_unit=dpf.EACH_ROW, ledger=ledger, neighboring=relation)
    tables = [visits.dp.count(part=day, epsilon=1) for day in (3, 5)]
    page = Page(dpf.report(tables, ledger=ledger)).text
    # a row that moves from one day to the other loses both budgets: 88.1 %, and not 73.2 %
    for said in (
        "does it have these rows, or others of the same day?",
        "for units of the same day, which is not hidden",
        "with any other of the same day in its place",
        "but not its day",
    ):
        assert (said in page) == (relation == "replace")
    of_ledger, of_year = page.split("for somebody in all 2 of their parts by day")[:2]
    assert ("88.1 %" in of_ledger) == (relation == "add_remove")
    assert "(2, 0)-differentially private" in of_year  # whoever is in both
    assert "11.9 % to 88.1 %" in of_year
    alone = Page(dpf.report(tables)).text  # each release by itself hides the day, too
    assert "of the same day" not in alone

"""Certificates: what they say, how they travel, and that they stick to what was released."""

import numpy as np
import pandas as pd
import pytest
from support.certifying import carry_text, record_of

import dpframe as dpf
from dpframe.certificates.certificate import FORMAT
from dpframe.errors import CertificateError, DeclarationError, UnreadableCertificateError
from dpframe.inference.intervals import std_error

LOTS = {"epsilon": 20}


def trips():
    rows = np.arange(60)
    return pd.DataFrame(
        {
            "zone": np.array(["A", "B"])[rows % 2],
            "day": rows % 3,
            "paid": rows % 4 == 0,
            "fare": rows * 0.5,
            "who": rows // 3,
        }
    )


DAYS, PAID = [0, 1, 2], [False, True]
BINS = [-np.inf, 0, 10, np.inf]
QUERIES = {
    "total": dpf.count(),
    "texts": dpf.count("zone", keys=["A", "B"]),
    "integers": dpf.count("day", keys=DAYS),
    "floats": dpf.count("day", keys=[0.5, 1.0]),
    "booleans": dpf.count("paid", keys=PAID),
    "categories": dpf.count("zone", keys=pd.Categorical(["B", "A"])),
    "ordered numbers": dpf.count("day", keys=pd.Categorical([2, 0, 1], ordered=True)),
    "times": dpf.count("day", keys=pd.date_range("2020", periods=2)),
    "zoned times": dpf.count("day", keys=pd.date_range("2020", periods=2, tz="Asia/Tokyo")),
    "intervals": dpf.histogram("fare", BINS),
    "whole intervals": dpf.histogram("fare", [0, 10, 20]),
    "nullable": dpf.count("day", keys=pd.array([0, 1], dtype="Int64")),
    "several": dpf.count(["zone", "day", "paid"], keys={"zone": ["A"], "day": DAYS, "paid": PAID}),
    "pairs": dpf.count(["zone", "paid"], keys=pd.DataFrame({"zone": ["B", "A"], "paid": PAID})),
    "several with intervals": dpf.histogram("fare", BINS, "paid", keys=PAID),
    "sums": dpf.sum(["fare", "day"], "zone", keys=["A", "B"], bounds=(0, 30)),
    "means": dpf.mean("fare", "zone", keys=["A", "B"], bounds=(0, 30)),
    "units": dpf.units("zone", keys=["A", "B"]),
    "variance": dpf.var("fare", "zone", keys=["A", "B"], bounds=(0, 30)),
    "deviation": dpf.std("fare", bounds=(0, 30)),
    "rate": dpf.rate("fare > 3", "zone", keys=["A", "B"]),
    "aggregate": dpf.aggregate(
        "zone", keys=["A"], n=dpf.count(where="paid"), m=dpf.mean("fare", bounds=(0, 9))
    ),
}


def released(name="aggregate", **spend):
    return dpf.release(trips(), QUERIES[name], **(spend or LOTS))


def test_groups_that_were_not_released_or_come_twice_are_refused():
    frame = released("pairs")
    pairs = pd.MultiIndex.from_tuples([("A", False), ("A", True)], names=frame.index.names)
    others = frame.set_axis(pairs)
    with pytest.raises(CertificateError, match="groups that were not released"):
        dpf.verify(others)
    twice = pd.concat([frame, frame.head(1)])
    twice.attrs = dict(frame.attrs)
    with pytest.raises(CertificateError, match="a cell twice"):
        dpf.verify(twice)


def from_parquet(frame, folder):
    frame.to_parquet(folder / "released.parquet")
    return pd.read_parquet(folder / "released.parquet")


def from_feather(frame, folder):
    frame.to_feather(folder / "released.feather")
    return pd.read_feather(folder / "released.feather")


def from_pickle(frame, folder):
    frame.to_pickle(folder / "released.pickle")
    return pd.read_pickle(folder / "released.pickle")  # noqa: S301


@pytest.mark.parametrize("travel", [from_parquet, from_feather, from_pickle])
@pytest.mark.parametrize("name", QUERIES)
def test_certificates_travel_in_files(name, travel, tmp_path):
    frame = released(name)
    back = travel(frame, tmp_path)
    assert dpf.verify(back) == frame.dp.certificate
    assert list(back.index) == list(frame.index)
    pd.testing.assert_frame_equal(
        back.dp.interval().reset_index(drop=True), frame.dp.interval().reset_index(drop=True)
    )


@pytest.mark.parametrize("lose", [lambda f: f.to_csv(), lambda f: f.to_json()])
def test_texts_lose_certificates_and_the_error_says_so(lose):
    import io

    read = pd.read_csv if lose(released()).startswith("zone") else pd.read_json
    with pytest.raises(CertificateError, match=r"pandas lost its attrs"):
        dpf.verify(read(io.StringIO(lose(released()))))


def spoiled(frame):
    frame.iloc[0, 0] += 1_003  # alone, a small change may be a rounding
    return frame


def swapped(frame):
    frame.iloc[[0, 1]] = frame.iloc[[1, 0]].to_numpy()
    return frame


def rewritten(frame, change):
    record = record_of(frame)
    change(record)
    return carry_text(frame, record)


ALTERED = {
    "a value changed": spoiled,
    "values swapped": swapped,
    "a row repeated": lambda f: f.iloc[[0, 0, 1]],
    "a column renamed": lambda f: f.rename(columns={"n": "trips"}),
    "a column added": lambda f: f.assign(raw=1),
    "a key renamed": lambda f: f.rename(index={"A": "a"}),
    "the index renamed": lambda f: f.rename_axis("city"),
    "clipped": lambda f: f.clip(lower=10**6),
    "raw data added": lambda f: f + trips().groupby("zone")["fare"].sum().iloc[0],
    "released to itself": lambda f: f + f,
    "a smaller epsilon": lambda f: rewritten(
        f, lambda r: r["releases"][0]["privacy_loss"].update(epsilon=0.1)
    ),
    "a smaller scale": lambda f: rewritten(
        f, lambda r: r["releases"][0]["columns"][0]["noise"].update(scale=0.1)
    ),
    "another digest": lambda f: rewritten(f, lambda r: r.update(digest="sha256:" + "0" * 64)),
}


@pytest.mark.parametrize("name", ALTERED)
def test_altered_frames_are_not_certified(name):
    query = dpf.aggregate("zone", keys=["A", "B"], n=dpf.count(), s=dpf.sum("fare", bounds=(0, 9)))
    frame = ALTERED[name](dpf.release(trips(), query, epsilon=1))
    for use in (dpf.verify, std_error, dpf.interval, dpf.plot):
        with pytest.raises(CertificateError, match="not what its certificate was given for"):
            use(frame)


@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        dpf.verify,
        lambda f: f.dp.interval(),
        lambda f: f.dp.round(),
        lambda f: f.dp.plot(),
        lambda f: f.dp.report("page.html"),
        lambda f: f.dp.write_csv("table.csv"),
        lambda f: f.dp.percent(),
        lambda f: f.dp.std_error,
    ],
)
def test_private_frames_are_to_be_released_first(call, derived, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = trips()
    frame.dp.declare(privacy_unit=dpf.EACH_ROW)
    with pytest.raises(CertificateError, match=r"is private.* Release first, for instance \.dp\.c"):
        call(frame.head(2) if derived else frame)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ask", [lambda f: f.dp.sum("count"), lambda f: f.dp.count(share=3)])
def test_releases_are_no_private_frames_whatever_is_to_be_spent(ask):
    with pytest.raises(DeclarationError, match=r"carries a certificate.*\.dp\.combine .* calls"):
        ask(released())


@pytest.mark.parametrize("version", [1, FORMAT + 1, 99])
def test_certificates_of_other_formats_are_refused(version):
    frame = released()
    carry_text(frame, {**record_of(frame), "format": version})
    with pytest.raises(UnreadableCertificateError, match=f"format {version}, .* reads {FORMAT}"):
        _ = frame.dp.certificate


def test_a_certificate_answers_what_was_promised():
    frame = trips()
    frame.dp.declare(
        keys={"zone": ["A", "B"]},
        bounds={"fare": (0, 30)},
        privacy_unit="who",
        max_rows=2,
        neighboring="replace",
        budget=dpf.Budget(2, 1e-6),
    )
    frame.dp.count(epsilon=0.5)
    made = frame.dp.sum("fare", "zone", where="fare > 1", share=0.25, mechanism="gaussian")
    (record,) = made.dp.certificate.to_dict()["releases"]
    entry = frame.dp.ledger.entries[1]
    assert (record["release_id"], record["released_at"]) == (entry.release_id, entry.released_at)
    caps = {"max_rows": 2, "max_groups": None, "max_rows_per_group": None}
    assert record["privacy_unit"] == {"columns": ["who"], "caps": caps}
    assert record["neighboring"] == "replace"
    assert record["query"]["words"] == "sum of fare by zone where fare > 1"
    (by,) = record["query"]["by"]
    assert by == {"column": "zone", "groups": 2, "source": "declared", "rest": None}
    assert record["mechanism"]["law"] == "gaussian"
    loss = record["privacy_loss"]
    assert loss["mu"] == entry.loss.mu
    assert loss["delta"] == 1e-6
    assert 0 < loss["epsilon"] < 2
    assert record["ledger"]["id"] == frame.dp.ledger.ledger_id
    assert record["ledger"]["part"] == record["ledger"]["used"] == 0.25
    assert record["ledger"]["in_shares"]
    (column,) = record["columns"]
    assert (column["kind"], column["columns"][0]["label"]) == ("sum", "fare")
    assert column["columns"][0]["bounds"] == [0, 30]


def test_a_certificate_reads_as_words():
    frame = trips()
    frame.dp.declare(privacy_unit="who", max_rows=2, budget=dpf.Budget(2, 1e-6))
    made = frame.dp.mean("fare", bounds=(0, 30), epsilon=0.5)
    text = repr(made.dp.certificate)
    for words in (
        "mean of fare",
        "all rows of one 'who', max_rows=2",
        "add_remove",
        "Laplace noise",
        "(0.5, 0)-differentially private",
        "bounds 0 to 30",
        "one for each group",
        "25% of epsilon=2, delta=1e-06, 25% used by then",
        made.dp.certificate.digest,
    ):
        assert words in text
    assert max(map(len, text.splitlines())) < 120
    assert "one row" in repr(released("total").dp.certificate)


def test_files_that_were_not_read_with_their_certificate_say_how(tmp_path):
    path = tmp_path / "counts.csv"
    frame = pd.DataFrame({"zone": ["A", "B"]})
    query = dpf.count("zone", keys=["A", "B"])
    dpf.write_csv(dpf.release(frame, query, epsilon=1, privacy_unit=dpf.EACH_ROW), path)
    with pytest.raises(CertificateError, match=r"dpf\.read_csv and dpf\.read_excel read it"):
        dpf.verify(pd.read_csv(path))
    for given in (path, str(path)):
        with pytest.raises(CertificateError, match=r"Read it with dpf\.read_csv"):
            dpf.verify(given)
    assert dpf.verify(dpf.read_csv(path)).state == "released"

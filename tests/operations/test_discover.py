"""Groups that are not known beforehand: found, charged, certified, and used as keys."""

import datetime
import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from support.certifying import carry_text, read_certificate
from support.dasking import split
from support.raising import raises
from support.searching import preview_of

import dpframe as dpf
from dpframe.errors import (
    AlreadyReleasedError,
    BudgetExceededError,
    CalibrationError,
    CertificateError,
    DeclarationError,
    QueryError,
    UnknownColumnError,
)
from dpframe.operations import discover as discovering
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN, LAWS
from dpframe.privacy.threshold import extra_delta, weights_of

SPEND = {"epsilon": 1, "delta": 1e-6}
ROWS = {**SPEND, "privacy_unit": dpf.EACH_ROW}
BEST = {1: 15, 2: 30, 3: 37.384, 5: 48.896, 10: 70.472, 100: 238.096}
DAY = datetime.date(2020, 2, 1)
VALUES = {
    "string": ["b", "a", "é"],
    "int64": [7, -2, 2**62],
    "bool": [True, False, True],
    "date": [DAY, datetime.date(1999, 1, 1), DAY],
    "datetime": [pd.Timestamp("2020-02-01 12:00"), pd.Timestamp(0), pd.Timestamp("1999-01-01")],
}


def quiet():
    """Draw no noise, so that what is published is decided by the threshold alone."""
    return mock.patch.object(Law, "draw", lambda law, scales, size, *_: [np.zeros(size, np.int64)])


def of_sizes(**sizes):
    return pd.DataFrame({"zone": [zone for zone, size in sizes.items() for _ in range(size)]})


def with_units(units_of, labels, **facts):
    """Every unit has some rows of each of its labels."""
    rows = [(unit, label) for unit in range(units_of) for label in labels]
    frame = pd.DataFrame(rows, columns=["u", "zone"])
    frame.dp.declare(privacy_unit="u", **facts)
    return frame


def test_function_and_accessor_find_groups_with_a_count_at_the_threshold_or_above():
    frame = of_sizes(C=15, A=40, B=14, D=1)
    with quiet():
        for found in (
            dpf.release(frame, dpf.discover("zone"), **ROWS),
            frame.dp.discover("zone", **ROWS),
        ):
            assert found.index.name == "zone" and found.index.tolist() == ["A", "C"]
            assert found["units"].tolist() == [40, 15] and found["units"].dtype == np.int64


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
def test_engines_find_the_same_groups(neighboring, tmp_path):
    frame = pd.DataFrame({"u": np.arange(60), "zone": ["A"] * 35 + ["B"] * 20 + ["C"] * 5})
    frame = pd.concat([frame, frame])
    frame.to_parquet(tmp_path / "zones.parquet")
    kinds = [frame, split(frame, 4), dpf.scan_parquet(tmp_path)]
    expected = {"A": 35, "B": 20} if neighboring == "add_remove" else {"A": 35}
    for kind in kinds:
        kind.dp.declare(privacy_unit="u", max_rows=2, max_groups=1, neighboring=neighboring)
        with quiet():
            assert kind.dp.discover("zone", **SPEND)["units"].to_dict() == expected


@pytest.mark.parametrize("dtype", VALUES)
def test_dtype_and_order_of_labels_are_public(dtype):
    values = VALUES[dtype]
    column = pd.Series([*values * 30, None, "x" * 300, b"?", 1.5, ("a",)], dtype=object)
    frame = pd.DataFrame({"zone": column})
    with quiet():
        found = frame.dp.discover("zone", dtype=dtype, **ROWS)
        again = frame.iloc[::-1].dp.discover("zone", dtype=dtype, **ROWS)
        none = frame.tail(4).dp.discover("zone", dtype=dtype, **ROWS)
    assert found.index.tolist() == sorted(set(values))
    pd.testing.assert_index_equal(found.index, again.index, exact=True)
    assert len(none) == 0 and none.index.dtype == found.index.dtype
    assert none["units"].dtype == np.int64


def test_equal_values_of_several_types_are_one_label():
    column = pd.Series([1, 1.0, True, np.int8(1), "1", 1.5] * 40, dtype=object)
    with quiet():
        found = pd.DataFrame({"n": column}).dp.discover("n", dtype="int64", **ROWS)
    assert found["units"].to_dict() == {1: 160}


def test_units_are_counted_not_rows():
    frame = with_units(10, ["A"] * 5, max_groups=1, max_rows=5)
    with quiet():
        assert len(frame.dp.discover("zone", **SPEND)) == 0


@pytest.mark.parametrize("facts", [{}, {"where": "u >= 0"}, {"max_groups": 2}])
def test_groups_found_are_keys(facts):
    frame = with_units(200, ["A", "B"], max_groups=2, max_rows=2)
    found = frame.dp.discover("zone", **SPEND, **facts)
    for keys in (found, found.index, list(found.index)):
        counts = frame.dp.count("zone", keys=keys, epsilon=1)
        assert counts.index.tolist() == ["A", "B"]
    pairs = frame.dp.discover(["zone", "u"], **SPEND)
    assert len(pairs) == 0
    both = frame.assign(n=1)
    both.dp.declare(privacy_unit="u", max_groups=2, max_rows=2)
    pairs = both.dp.discover(["zone", "n"], dtype={"zone": "string", "n": "int64"}, **SPEND)
    for keys in (pairs, pairs.index):
        assert both.dp.mean("u", ["zone", "n"], keys=keys, bounds=(0, 9), epsilon=1).shape == (2, 1)
        assert both.dp.count(["n", "zone"], keys=keys, epsilon=1).index[0] == (1, "A")
    with raises(QueryError, "of by=['n'], got ['units'], and ['zone'] in the index"):
        both.dp.count("n", keys=found, epsilon=1)
    with raises(DeclarationError, "Of a released table, give the index"):
        both.dp.count("zone", keys={"zone": found}, epsilon=1)


@pytest.mark.parametrize("by", [["zone"], ["zone", "day"]], ids=len)
@pytest.mark.parametrize("dtype", VALUES)
def test_groups_of_every_kind_are_keys_of_the_same_rows(dtype, by, tmp_path):
    column = pd.Series(VALUES[dtype] * 60, dtype=object)
    frame = pd.DataFrame({"zone": column, "day": column})
    with quiet():
        found = frame.dp.discover(by, dtype=dtype, **ROWS)
        for kind in (frame, frame.convert_dtypes() if dtype != "date" else frame):
            counts = kind.dp.count(by, keys=found, **ROWS)
            assert counts["count"].tolist() == found["units"].tolist()
    assert found["units"].sum() == 180
    found.to_parquet(tmp_path / "found.parquet")
    assert dpf.verify(pd.read_parquet(tmp_path / "found.parquet")) == found.dp.certificate


@pytest.mark.parametrize("most", BEST)
def test_thresholds_of_a_first_and_only_charge(most):
    frame = with_units(3, ["A"], max_groups=most, max_rows=1000)
    shown = preview_of(frame, dpf.discover, "zone", **SPEND)
    assert shown["threshold"].iloc[0] == BEST[most] == shown["threshold"].min()
    assert shown["found_50"].iloc[0] == math.ceil(BEST[most])
    assert (shown["found_5"] < shown["found_50"]).all()
    assert (shown["found_50"] < shown["found_95"]).all()
    pd.testing.assert_frame_equal(shown, frame.dp.plan(dpf.discover("zone"), **SPEND).table)


def test_a_threshold_between_whole_numbers_shows_those_above_it_as_they_are():
    units = range(49)
    rows = [(unit, zone) for unit in units for zone in ("A", "B") if unit < 48 or zone == "B"]
    frame = pd.DataFrame(rows, columns=["u", "zone"])
    frame.dp.declare(privacy_unit="u", max_groups=5, max_rows=5)
    with quiet():
        found = frame.dp.discover("zone", **SPEND)
    assert found["units"].to_dict() == {"B": 49}
    assert found.dp.certificate.mechanism.threshold == BEST[5]


def test_the_charge_is_the_noise_and_the_extra_delta():
    frame = with_units(400, ["A", "B"], max_groups=3, max_rows=9, budget=dpf.Budget(2, 1e-6, 1e-7))
    for mechanism in ("laplace", "gaussian"):
        found = frame.dp.discover("zone", epsilon=0.5, discovery=4e-8, mechanism=mechanism)
        entry = frame.dp.ledger.entries[-1]
        certificate = dpf.verify(found, ledger=frame.dp.ledger)
        discovery, law = certificate.mechanism, certificate.mechanism.distribution
        parts, scale = discovery.parts, discovery.scales["0"] * discovery.parts
        assert discovery.max_labels == 3 and discovery.dtypes == ("string",)
        least = round(discovery.threshold * parts)
        extra = extra_delta(law, scale, least, 3, (parts,))
        assert entry.loss.delta == extra <= Fraction("4e-8")
        assert certificate.privacy_loss.extra_delta == float(extra)
        loss = 3 * (parts / Fraction(scale)) ** law.norm
        assert float(entry.loss.epsilon + entry.loss.mu_squared) == pytest.approx(float(loss))
        assert extra_delta(law, scale, least - 1, 3, (parts,)) > Fraction("4e-8")
    losses = [entry.loss for entry in frame.dp.ledger.entries]
    assert losses[0].epsilon == Fraction(1, 2) and losses[0].mu_squared == 0
    assert losses[1].epsilon == 0 and losses[1].mu_squared > 0
    assert frame.dp.budget.remaining_delta == pytest.approx(
        1e-7 - float(sum(x.delta for x in losses))
    )


def test_the_certificate_says_what_was_promised():
    frame = with_units(99, ["A"], max_groups=3, max_rows=2, neighboring="replace")
    found = frame.dp.discover("zone", where="u > 2", **SPEND)
    said = found.dp.certificate
    assert said.query.words == "discover zone where u > 2" and said.query.cells == len(found)
    assert said.query.by[0].source == "discovered" and said.query.by[0].groups == len(found)
    assert said.privacy_unit.caps.max_groups == 2 == said.mechanism.max_labels
    assert (said.privacy_loss.epsilon, said.privacy_loss.delta) == (1, 1e-6)
    assert f"{said.mechanism.threshold:g} or more, one unit counting for 2 labels" in repr(said)
    assert f"{said.mechanism.threshold:g} or more" in said._repr_html_()
    row = pd.DataFrame({"zone": ["A"]}).dp.discover("zone", **ROWS).dp.certificate
    assert row.privacy_loss.epsilon == 1 and row.privacy_loss.delta == row.privacy_loss.extra_delta
    assert "one unit counting for 1 label at most" in repr(row)


def test_a_certificate_that_was_changed_is_noticed():
    found = of_sizes(A=90).dp.discover("zone", **ROWS)
    certificate = found.dp.certificate
    release = certificate.release
    lower = replace(release, mechanism=replace(release.mechanism, threshold=3))
    changed = replace(certificate, releases=(lower,))
    carry_text(found, changed.to_dict())
    with pytest.raises(CertificateError, match="was given for"):
        dpf.verify(found)
    record = certificate.to_dict()
    with raises(CertificateError, "discovered groups have a dtype each"):
        record["releases"][0]["mechanism"]["dtypes"] = []
        read_certificate(record)


@pytest.mark.parametrize("sizes", [{"A": 90, "B": 50}, {"A": 1}], ids=["found", "none"])
def test_files_schemas_and_plots(sizes, tmp_path):
    found = of_sizes(**sizes).dp.discover("zone", **ROWS)
    dpf.write_csv(found, tmp_path / "found.csv")
    pd.testing.assert_frame_equal(dpf.read_csv(tmp_path / "found.csv"), found)
    found.to_parquet(tmp_path / "found.parquet")
    assert dpf.verify(pd.read_parquet(tmp_path / "found.parquet")) == found.dp.certificate
    assert dpf.schema(found).validate(found).equals(found)
    assert len(found.dp.plot().patches) == len(found) == sum(size > 1 for size in sizes.values())
    assert found.dp.interval().shape == (len(found), 2)
    assert "units" in found._repr_html_()


@pytest.mark.parametrize("spend", [{"mu": 0.3}, {"rho": 0.05}, {"epsilon": 0.5}, {"share": 0.5}])
def test_every_way_to_spend(spend):
    frame = with_units(90, ["A"], max_groups=1, max_rows=1, budget=dpf.Budget(1, 1e-6, 1e-7))
    found = frame.dp.release(dpf.discover("zone"), **spend)
    assert found.index.tolist() == ["A"]
    used = frame.dp.ledger.entries[0].loss
    assert 0 < used.delta <= Fraction("1e-7")
    if "share" not in spend:
        alone = pd.DataFrame({"zone": ["A"] * 90})
        extra = {"delta": 1e-6} if "epsilon" in spend else {}
        found = alone.dp.release(dpf.discover("zone", discovery=1e-7), **spend, **extra)
        assert found.dp.certificate.privacy_loss.extra_delta <= 1e-7


def test_the_whole_budget_may_go_to_groups_and_no_more():
    frame = with_units(300, ["A"], max_groups=1, max_rows=1, budget=dpf.Budget(1, 1e-6, 1e-7))
    frame.dp.discover("zone", epsilon=0.5, name="zones")
    with pytest.raises(AlreadyReleasedError):
        frame.dp.discover("zone", epsilon=0.1, name="zones")
    with raises(BudgetExceededError, "epsilon=0.9"):
        frame.dp.discover("zone", epsilon=0.9, mechanism="laplace")
    with raises(BudgetExceededError, "Give at most discovery=", parameter="discovery"):
        frame.dp.discover("zone", epsilon=0.1, discovery=1e-7)
    assert len(frame.dp.ledger.entries) == 1


@pytest.mark.parametrize("budget", [dpf.Budget(1, 1e-6), dpf.Budget(1)], ids=str)
def test_a_budget_without_a_part_for_extra_deltas_is_refused(budget):
    frame = with_units(9, ["A"], max_groups=1, max_rows=1, budget=budget)
    for ask in (frame.dp.discover, partial(preview_of, frame, dpf.discover)):
        with raises(BudgetExceededError, "discovery=1e-06 / 10", parameter="discovery"):
            ask("zone", epsilon=0.5, delta=1e-7)
    assert not frame.dp.ledger.entries


def test_a_unit_without_a_cap_on_its_labels_is_refused():
    frame = with_units(9, ["A"], max_rows=3)
    with raises(
        DeclarationError, "max_groups must say for how many labels", parameter="max_groups"
    ):
        frame.dp.discover("zone", **SPEND)
    for groups, most in ((2, 2), (9, 3)):  # a unit has no more groups than rows
        shown = preview_of(frame, dpf.discover, "zone", max_groups=groups, **SPEND)
        assert shown["threshold"].iloc[0] == BEST[most]


WRONG = [
    ({"by": None}, QueryError, "by must name at least one column"),
    ({"by": "zones"}, UnknownColumnError, "zone"),
    ({"by": ["zone", "zone"]}, QueryError, "twice"),
    ({"dtype": "text"}, QueryError, 'dtype must be one of "string"'),
    ({"dtype": str}, QueryError, "dtype must be one of"),
    ({"dtype": {"zone": "bool", "x": "bool"}}, QueryError, "a dict with each column"),
    ({"max_length": 0}, QueryError, "max_length must be a whole number"),
    ({"max_length": 2.5}, QueryError, "max_length must be a whole number"),
    ({"max_groups": 0}, DeclarationError, "max_groups must be a whole number >= 1"),
    ({"max_groups": 2}, DeclarationError, "none is declared"),
    ({"where": "zone ="}, QueryError, "where"),
    ({"mechanism": "box"}, CalibrationError, 'must be "auto", "laplace" or "gaussian"'),
    ({"mechanism": "lap"}, CalibrationError, "mechanism must be one of"),
    ({"delta": None}, CalibrationError, "say how much delta"),
    ({"delta": 0}, CalibrationError, "must both be > 0"),
    ({"epsilon": 0, "mechanism": "laplace"}, CalibrationError, "must both be > 0"),
    ({"epsilon": None}, CalibrationError, "exactly one way"),
    ({"counts": 0}, QueryError, "counts must be True or False"),
    ({"discovery": 0}, CalibrationError, "discovery must be > 0"),
    ({"discovery": 1e-5}, CalibrationError, "discovery must be at most delta"),
    ({"discovery": 1}, CalibrationError, "must be > 0 and below 1"),
    ({"epsilon": 1e-300, "mechanism": "laplace"}, CalibrationError, "a smaller max_groups"),
    (
        {"epsilon": 1e-9, "mechanism": "laplace", "counts": False},
        CalibrationError,
        "above 1.1e+09 units. Spend more.",
    ),
    ({"note": "n"}, DeclarationError, "kept in a ledger"),
]


@pytest.mark.parametrize(("change", "error", "match"), WRONG, ids=lambda part: str(part)[:40])
def test_what_is_wrong_is_refused(change, error, match):
    frame = of_sizes(A=3)
    asked = {"by": "zone", **ROWS, **change}
    with raises(error, match):
        frame.dp.discover(**asked)


@pytest.mark.parametrize("counts", [True, False])
def test_what_is_too_small_for_laplace_noise_buys_gaussian_noise(counts):
    asked = {**ROWS, "epsilon": 1e-300}
    frame = of_sizes(A=3)
    shown = frame.dp.plan(dpf.discover("zone", counts=counts), **asked).table
    assert list(shown.index) == ["gaussian"]
    dpf.verify(frame.dp.discover("zone", **asked, counts=counts))


def test_released_frames_and_derived_ones_are_refused():
    found = of_sizes(A=90).dp.discover("zone", **ROWS)
    with pytest.raises(DeclarationError, match="carries a certificate"):
        found.reset_index().dp.discover("zone", **ROWS)


def test_keys_that_pandas_took_from_a_declared_frame_are_refused():
    frame = with_units(9, ["A", "B"], max_groups=2, max_rows=2)
    frame["n"] = 1
    taken = [
        frame["zone"].drop_duplicates(),
        {"zone": frame["zone"].drop_duplicates()},
        frame[["zone"]].drop_duplicates(),
    ]
    for keys in taken:
        with raises(DeclarationError, "taken from a declared frame"):
            frame.dp.count("zone", keys=keys, epsilon=1)
    assert len(frame.dp.count("zone", keys=["A", "B"], epsilon=1)) == 2


# Sets, without counts -----------------------------------------------------------------------------

SET = {**SPEND, "counts": False}
NO_NUMBERS = {
    "interval": lambda found: found.dp.interval(),
    "interval join": lambda found: found.dp.interval(join=True),
    "std_error": lambda found: found.dp.std_error,
    "covariance": lambda found: found.dp.covariance,
    "denoise": lambda found: found.dp.denoise(),
    "combine": lambda found: found.dp.combine([1] * len(found)),
    "ratio": lambda found: found.dp.ratio("a", "b"),
    "percent": lambda found: found.dp.percent(),
    "change": lambda found: found.dp.change(found),
    "independence": lambda found: found.dp.independence(),
    "quantile": lambda found: found.dp.quantile(0.5),
    "plot": lambda found: found.dp.plot(),
    "suppress": lambda found: found.dp.suppress(below=5),
}


def sets_of(frame, **options):
    return frame.dp.discover("zone", **{**SET, **options})


def test_function_and_accessor_find_sets_of_labels_without_numbers():
    frame = with_units(300, ["A", "B"], max_groups=2, max_rows=2)
    for found in (
        sets_of(frame),
        dpf.release(frame, dpf.discover("zone", counts=False), **SPEND),
        frame.dp.release(dpf.discover("zone", counts=False), **SPEND),
    ):
        assert found.index.tolist() == ["A", "B"] and found.shape == (2, 0)
        said = dpf.verify(found)
        assert said.query.words == "discover zone without counts" and said.columns == ()
        assert said.mechanism.kind == "set" and len(said.mechanism.thresholds) == 3
        assert said.query.by[0].source == "discovered" and said.query.cells == 2
        assert "in 3 rounds: those with a noisy weight of" in repr(said)
        assert "without numbers" in said._repr_html_()
        counts = frame.dp.count("zone", keys=found, epsilon=1)
        assert counts.index.tolist() == ["A", "B"]


def weights_by_round(frame, found_first):
    """Return what the rounds measure, where the first finds some labels and the second none."""
    asked = []

    def publish(counted, threshold, _):
        labels = dict(zip(counted.labels[0].tolist(), counted.units.tolist(), strict=True))
        asked.append(labels)
        some = [label in found_first and len(asked) == 1 for label in counted.labels[0]]
        return discovering._of_rows(counted, np.array(some, bool))

    with mock.patch.object(discovering, "_publish_labels", publish):
        found = sets_of(frame, mechanism="gaussian")
    assert found.index.tolist() == sorted(found_first)
    return asked


def test_labels_that_were_found_leave_room_for_others():
    frame = with_units(5, ["A", "B", "C"], max_groups=3, max_rows=9)
    first, second, third = weights_by_round(frame, {"A"})
    three, two = weights_of(GAUSSIAN, 3)[2], weights_of(GAUSSIAN, 3)[1]
    assert first == dict.fromkeys("ABC", 5 * three)
    assert second == third == dict.fromkeys("BC", 5 * two)


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
def test_engines_find_the_same_sets(neighboring, tmp_path):
    frame = pd.DataFrame({"u": np.arange(900), "zone": ["A"] * 800 + ["B"] * 90 + ["C"] * 10})
    frame = pd.concat([frame, frame])
    frame.to_parquet(tmp_path / "zones.parquet")
    for kind in [frame, split(frame, 4), dpf.scan_parquet(tmp_path)]:
        kind.dp.declare(privacy_unit="u", max_rows=2, max_groups=1, neighboring=neighboring)
        with quiet():
            assert sets_of(kind).index.tolist() == ["A", "B"]


def test_rounding_a_set_names_the_way_to_numbers():
    found = sets_of(with_units(300, ["A"], max_groups=1, max_rows=1))
    for decimals in (0, {}, {"units": 1}):
        with raises(QueryError, ".dp.count(by=..., keys=found)"):
            found.dp.round(decimals)


def test_the_label_of_a_set_is_renamed_as_a_level():
    found = sets_of(with_units(300, ["A"], max_groups=1, max_rows=1))
    with raises(QueryError, "levels={'zone': 'place'}"):
        found.dp.rename({"zone": "place"})
    assert found.dp.rename(levels={"zone": "place"}).index.name == "place"


def test_the_charge_of_a_set_is_that_of_all_rounds():
    budget = dpf.Budget(2, 1e-6, 1e-7)
    frame = with_units(40, ["A", "B"], max_groups=3, max_rows=9, budget=budget)
    for mechanism in ("laplace", "gaussian"):
        found = frame.dp.discover(
            "zone", counts=False, epsilon=0.5, discovery=4e-8, mechanism=mechanism
        )
        entry = frame.dp.ledger.entries[-1]
        said = dpf.verify(found, ledger=frame.dp.ledger).mechanism
        law = LAWS[said.law]
        assert said.parts == (0.05, 0.15, 0.8) and said.weights == weights_of(law, 3)
        scales, least = said.scales, said.thresholds
        extra = [
            extra_delta(law, s, t, 3, said.weights) for s, t in zip(scales, least, strict=True)
        ]
        assert entry.loss.delta == sum(extra) <= Fraction("4e-8")
        moved = sum((Fraction(2**20) / Fraction(scale)) ** law.norm for scale in scales)
        charged = entry.loss.epsilon + entry.loss.mu_squared
        assert charged * (1 - Fraction(1, 10**9)) < moved <= charged


def test_the_preview_of_a_set_says_with_how_many_units_labels_are_found():
    frame = with_units(3, ["A"], max_groups=3, max_rows=9)
    shown = preview_of(frame, dpf.discover, "zone", **SET)
    assert list(shown.index) == ["gaussian", "laplace"]
    assert shown.loc["gaussian", "found_50"] == 26 and shown.loc["gaussian", "found_50_full"] == 45
    assert (shown["found_5"] < shown["found_95"]).all()
    assert (shown["found_95"] < shown["found_95_full"]).all()
    one = preview_of(frame, dpf.discover, "zone", max_groups=1, **SET)
    assert one.index[0] == "laplace" and (one["found_50"] == one["found_50_full"]).all()


def test_weights_are_for_1000_labels_of_a_unit_at_most():
    frame = with_units(9, ["A"], max_groups=1001, max_rows=9999)
    with raises(DeclarationError, "at most 1,000", parameter="max_groups"):
        sets_of(frame)
    assert preview_of(frame, dpf.discover, "zone", max_groups=1000, **SET)["fits"].all()


@pytest.mark.parametrize("units", [300, 1], ids=["found", "none"])
def test_files_schemas_and_reports_of_sets(units, tmp_path):
    frame = with_units(units, ["A", "B"], max_groups=2, max_rows=2)
    found = sets_of(frame)
    assert len(found) == (2 if units > 1 else 0)
    dpf.write_csv(found, tmp_path / "found.csv")
    pd.testing.assert_frame_equal(dpf.read_csv(tmp_path / "found.csv"), found)
    found.to_parquet(tmp_path / "found.parquet")
    assert dpf.verify(pd.read_parquet(tmp_path / "found.parquet")) == found.dp.certificate
    assert dpf.schema(found).validate(found).equals(found)
    assert "without numbers" in dpf.report(found)
    assert dpf.verify(found.head(1)).state == "released"


@pytest.mark.parametrize("call", NO_NUMBERS)
def test_what_needs_numbers_is_refused_for_sets(call):
    found = sets_of(with_units(300, ["A", "B"], max_groups=2, max_rows=2))
    with raises(QueryError, ".dp.count(by=..., keys=found)"):
        NO_NUMBERS[call](found)

"""Selected quantiles: what is released, charged and certified, and what is refused."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.certifying import carry_text, record_of
from support.raising import raises
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.engines.pandas import PandasEngine
from dpframe.errors import (
    BudgetExceededError,
    CalibrationError,
    DeclarationError,
    QueryError,
    ReleaseError,
)
from dpframe.operations.select import plan_quantiles
from dpframe.privacy import selection
from dpframe.privacy.amounts import Spend
from dpframe.privacy.gaussian import pure_of_mu
from dpframe.privacy.laplace import pure_of_rho

SURE = {"epsilon": 10**7}  # hardly any noise
QUARTILES = [0.25, 0.5, 0.75]


def declared(frame, **facts):
    given = {"bounds": {"fare": (0, 100)}, "keys": {"zone": ["A", "B", "C"]}}
    given |= {"privacy_unit": dpf.EACH_ROW}
    dpf.declare(frame, **given | facts)
    return frame


@pytest.fixture
def trips():
    rng = np.random.default_rng(3)
    zones = rng.choice(["A", "B"], 3001, p=[0.7, 0.3])
    return declared(pd.DataFrame({"zone": zones, "fare": rng.exponential(20, 3001)}))


def plan_of(frame, query, **spend):
    return plan_quantiles(frame, frame.dp.declaration, query, Spend.of(**spend))


# ---------------------------------------------------------------- what is released


def test_quantiles_are_those_of_the_clipped_rows_by_group(trips):
    released = trips.dp.quantile("fare", QUARTILES, by="zone", mechanism="select", **SURE)
    assert released.index.names == ["zone", "quantile"]
    assert list(released.columns) == ["fare"]
    assert len(released) == 9
    for (zone, quantile), value in released["fare"].loc[["A", "B"]].items():
        rows = trips["fare"][trips["zone"] == zone]
        off = (rows < value).sum() - quantile * len(rows)
        assert abs(off) < 3  # rows of the median's bin all count on one side of it


def test_function_and_accessor_release_the_same(trips):
    query = dpf.quantile("fare", 0.5, by="zone", keys=["B"])
    one = dpf.release(trips, query, mechanism="select", **SURE)
    other = trips.dp.quantile("fare", 0.5, by="zone", keys=["B"], mechanism="select", **SURE)
    pd.testing.assert_frame_equal(one, other, atol=0.5)
    third = trips.dp.release(query, mechanism="select", **SURE)
    pd.testing.assert_frame_equal(one, third, atol=0.5)


def test_values_outside_count_at_the_ends_and_missing_ones_nowhere():
    values = [-50.0] * 9 + [-np.inf] + [120.0] * 9 + [np.nan] * 40 + [np.inf]
    frame = declared(pd.DataFrame({"fare": values}), keys={})
    released = frame.dp.quantile("fare", [0.3, 0.8], bins=100, mechanism="select", **SURE)
    assert released["fare"].tolist() == [0.5, 99.5]
    assert released.index.tolist() == [0.3, 0.8]
    assert released.index.name == "quantile"


def test_columns_of_integers_have_a_bin_for_each():
    schema = pytest.importorskip("pandera.pandas")
    shape = schema.DataFrameSchema({"age": schema.Column(int, schema.Check.in_range(18, 90))})
    ages = np.repeat([18, 30, 31, 77, 90], [1, 50, 40, 30, 60])
    frame = pd.DataFrame({"age": ages})
    dpf.declare(frame, shape, privacy_unit=dpf.EACH_ROW)
    released = frame.dp.quantile("age", [0.1, 0.4, 0.6, 0.9], mechanism="select", **SURE)
    assert released["age"].tolist() == [30, 31, 77, 90]
    assert released["age"].dtype == np.int64
    assert released.dp.certificate.mechanism.bins == 73
    coarse = frame.dp.quantile("age", 0.5, bins=10, mechanism="select", **SURE)
    assert coarse["age"].tolist() == [28]  # the middle of 25 to 31, which holds 31


@pytest.mark.parametrize(
    ("bounds", "bins"),
    [((1e12, 1e12 + 1), 8192), ((1e16, 1e16 + 2), 1), ((-3e9, 3e9), 16_384), ((0.1, 0.3), 16_384)],
)
def test_values_stay_between_the_bounds_where_floats_are_few(bounds, bins):
    low, high = bounds
    wanted = np.linspace(low, high, 2001)
    frame = declared(pd.DataFrame({"fare": wanted}), bounds={"fare": bounds}, keys={})
    released = frame.dp.quantile("fare", [0.1, 0.5, 0.9], mechanism="select", **SURE)
    assert released["fare"].between(low, high).all()
    assert released.dp.certificate.mechanism.bins == bins
    assert released["fare"].dtype == np.float64
    exact = np.quantile(wanted, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(
        released["fare"] - low, exact - low, atol=(high - low) / min(bins, 200)
    )


THOUSANDS = range(0, 200_001, 1000)


def test_candidates_are_what_is_released_where_values_repeat():
    incomes = np.repeat(
        [-5e9, 12_000, 12_499, 31_500, 31_501, 150_000, np.nan], [1, 9, 1, 8, 1, 9, 30]
    )
    frame = declared(pd.DataFrame({"income": incomes}), keys={}, bounds={"income": (0, 200_000)})
    asked = {"mechanism": "select", **SURE}
    found = frame.dp.quantile("income", [0.01, 0.2, 0.5, 0.9], candidates=THOUSANDS, **asked)
    # as far from both is the lower one: 31,500 counts at 31,000
    assert found["income"].tolist() == [0, 12_000, 31_000, 150_000]
    assert found["income"].dtype == np.float64
    assert found.dp.certificate.mechanism.bins == 201
    assert "among 201 values" in found.dp.certificate.query.words
    around = frame.dp.quantile("income", [0.2, 0.5], bins=np.arange(-500, 201_000, 1000), **asked)
    assert around["income"].tolist() == [12_000, 31_000]
    few = frame.dp.quantile("income", [0.01, 0.99], bins=[-9000, 9000, 180_000, 300_000], **asked)
    assert few["income"].tolist() == [0, 94_500]
    outside = frame.dp.quantile("income", 0.01, bins=[-9000, 1000, 200_000], **asked)
    assert outside["income"].tolist() == [0]  # the middle, -4,000, is below the bounds


def test_neighboring_floats_are_candidates_of_their_own():
    low, high = 1.0, np.nextafter(1.0, 2)
    frame = declared(
        pd.DataFrame({"fare": [low] * 3 + [high] * 7}), keys={}, bounds={"fare": (0, 2)}
    )
    asked = {"candidates": [low, high], "mechanism": "select", **SURE}
    assert frame.dp.quantile("fare", [0.2, 0.8], **asked)["fare"].tolist() == [low, high]


def test_candidates_and_bins_of_integers_are_whole():
    schema = pytest.importorskip("pandera.pandas")
    shape = schema.DataFrameSchema({"age": schema.Column(int, schema.Check.in_range(18, 90))})
    frame = pd.DataFrame({"age": np.repeat([18, 30, 31, 90], [5, 50, 40, 30])})
    dpf.declare(frame, shape, privacy_unit=dpf.EACH_ROW)
    asked = {"mechanism": "select", **SURE}
    for wanted in ({"candidates": [20, 30, 31, 33, 80]}, {"bins": [17, 25, 30, 31, 35, 90]}):
        released = frame.dp.quantile("age", [0.2, 0.6], **wanted, **asked)["age"]
        assert released.dtype == np.int64
        assert released.tolist() == ([30, 31] if "candidates" in wanted else [28, 31])
    left = pd.IntervalIndex.from_breaks([18, 30, 31, 91], closed="left")
    released = frame.dp.quantile("age", [0.2, 0.6], bins=left, **asked)["age"]
    assert released.tolist() == [30, 60]
    with raises(QueryError, "whole numbers", parameter="candidates"):
        frame.dp.quantile("age", 0.5, candidates=[20.5, 30], **asked)
    with raises(QueryError, "hold a whole number", parameter="bins"):
        frame.dp.quantile("age", 0.5, bins=[17.0, 20.2, 20.8, 90.0], **asked)


def test_candidates_without_selection_and_beyond_the_bounds_are_refused(trips):
    query = dpf.quantile("fare", 0.5, candidates=[0, 10, 20])
    for asked in (query, {"half": query}):
        with raises(QueryError, 'add mechanism="select"', parameter="candidates"):
            trips.dp.release(asked, epsilon=1)
    with raises(QueryError, "between the bounds", parameter="candidates"):
        trips.dp.quantile("fare", 0.5, candidates=[0, 101], mechanism="select", epsilon=1)
    with raises(QueryError, "from bound to bound", parameter="bins"):
        trips.dp.quantile("fare", 0.5, bins=[0, 10, 20], mechanism="select", epsilon=1)


def test_large_integers_have_a_bin_each():
    shape = pytest.importorskip("pandera.pandas")
    first = 2**40
    check = shape.Check.in_range(first, first + 10)
    frame = pd.DataFrame({"id": first + np.arange(11)})
    dpf.declare(
        frame, shape.DataFrameSchema({"id": shape.Column(int, check)}), privacy_unit=dpf.EACH_ROW
    )
    released = frame.dp.quantile("id", [0.05, 0.5, 0.95], mechanism="select", **SURE)
    assert released["id"].tolist() == [first, first + 5, first + 10]


def test_combinations_of_keys_keep_their_order(trips):
    keys = pd.DataFrame({"zone": ["B", "A"]})
    released = trips.dp.quantile(
        "fare", [0.1, 0.9], by="zone", keys=keys, mechanism="select", **SURE
    )
    assert released.index.tolist() == [("B", 0.1), ("B", 0.9), ("A", 0.1), ("A", 0.9)]


def test_rows_of_a_unit_are_capped_in_groups_not_in_bins():
    rows = pd.DataFrame({"who": [1] * 50, "zone": ["A"] * 50, "fare": np.linspace(1, 99, 50)})
    declared(rows, privacy_unit="who", max_groups=1, max_rows_per_group=20)
    plan = plan_of(rows, dpf.quantile("fare", 0.5, by="zone"), epsilon=1)
    (totals,) = PandasEngine().totals(rows, [plan.task], SYSTEM)
    assert totals.sum() == 20


# ---------------------------------------------------------------- what it costs


def test_what_is_charged_is_pure_epsilon(trips):
    budget = dpf.Budget(epsilon=2, delta=1e-6)
    declared(trips, budget=budget)
    released = trips.dp.quantile("fare", QUARTILES, mechanism="select", epsilon=0.5, name="fares")
    (entry,) = trips.dp.ledger.entries
    assert (entry.loss.epsilon, entry.loss.mu_squared, entry.loss.delta) == (Fraction(1, 2), 0, 0)
    assert (entry.mechanism, entry.name) == ("select", "fares")
    assert entry.columns == ("fare",)
    assert dpf.verify(released, ledger=trips.dp.ledger).state == "released"
    loss = released.dp.certificate.privacy_loss
    assert (loss.epsilon, loss.delta, loss.joint) == (0.5, 0.0, False)


def test_spends_are_those_of_pure_noise(trips):
    query = dpf.quantile("fare", 0.5)
    assert plan_of(trips, query, epsilon=1, delta=1e-6).loss.epsilon == 1
    assert float(plan_of(trips, query, mu=1).loss.epsilon) == pytest.approx(pure_of_mu(1), abs=1e-9)
    assert plan_of(trips, query, rho=0.5).loss.epsilon == Fraction(pure_of_rho(Fraction(1, 2)))
    declared(trips, budget=dpf.Budget(epsilon=2))
    assert plan_of(trips, query, share=0.25).loss.epsilon == Fraction(1, 2)


def test_after_a_share_was_selected_others_have_the_noise_that_is_best(trips):
    trips["who"] = np.arange(len(trips)) // 60
    caps = {"privacy_unit": "who", "max_rows_per_group": 1, "max_groups": 60}
    declared(trips, budget=dpf.Budget(epsilon=1, delta=1e-6), **caps)
    many = dpf.count(by="zone", keys=[str(k) for k in range(60)])
    trips.dp.quantile("fare", 0.5, mechanism="select", share=0.5)
    assert trips.dp.plan(many, share=0.5).mechanism == "correlated"


def test_nothing_is_charged_for_what_is_refused(trips):
    declared(trips, budget=dpf.Budget(epsilon=1))
    with raises(DeclarationError, "no public bounds", parameter="bounds", label="zone"):
        trips.dp.quantile("zone", 0.5, mechanism="select", epsilon=1)
    with raises(CalibrationError, "epsilon must be > 0", parameter="epsilon"):
        trips.dp.quantile("fare", 0.5, mechanism="select", epsilon=0, delta=1e-6)
    with raises(CalibrationError, "is for quantiles", parameter="mechanism"):
        trips.dp.count(epsilon=1, mechanism="select")
    with raises(QueryError, "is for noise", parameter="denoise"):
        trips.dp.quantile("fare", 0.5, mechanism="select", epsilon=1, denoise="auto")
    with raises(CalibrationError, "not in a dict or a plan", parameter="mechanism"):
        trips.dp.release({"a": dpf.quantile("fare", 0.5)}, epsilon=1, mechanism="select")
    with raises(CalibrationError, "Did you mean", parameter="mechanism"):
        trips.dp.quantile("fare", 0.5, epsilon=1, mechanism="selct")
    with raises(CalibrationError, "is for quantiles", parameter="mechanism"):
        both = {"a": dpf.quantile("fare", 0.5), "n": dpf.count()}
        trips.dp.release(both, epsilon=1, mechanism="select")
    with raises(QueryError, "fewer bins", parameter="bins"):
        trips.dp.quantile(
            "fare", 0.5, by="zone", keys=range(200), bins=2**20, mechanism="select", epsilon=1
        )
    with pytest.raises(BudgetExceededError):
        trips.dp.quantile("fare", 0.5, mechanism="select", epsilon=1.5)
    assert not trips.dp.ledger.entries


def test_times_and_units_without_caps_are_refused():
    frame = pd.DataFrame({"fare": pd.to_timedelta([1, 2], unit="h"), "who": [1, 2]})
    hours = pd.Timedelta(0), pd.Timedelta("1D")
    dpf.declare(frame, bounds={"fare": hours}, privacy_unit=dpf.EACH_ROW)
    with raises(QueryError, "quantile is of numbers", parameter="column", label="fare"):
        frame.dp.quantile("fare", 0.5, mechanism="select", epsilon=1)
    other = pd.DataFrame({"fare": [1.0], "zone": ["A"]})
    declared(other)
    with raises(DeclarationError, "caps in a query", parameter="privacy_unit"):
        other.dp.quantile("fare", 0.5, max_rows=2, mechanism="select", epsilon=1)


def test_what_fails_after_the_charge_stays_charged(trips, monkeypatch):
    declared(trips, budget=dpf.Budget(epsilon=1))

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(PandasEngine, "totals", fail)
    with raises(ReleaseError, "too little memory"):
        trips.dp.quantile("fare", 0.5, mechanism="select", epsilon=0.25)
    assert len(trips.dp.ledger.entries) == 1


# ---------------------------------------------------------------- what is said of it


def test_the_certificate_says_that_values_were_selected(trips):
    released = trips.dp.quantile("fare", [0.1, 0.5, 0.9], by="zone", mechanism="select", epsilon=1)
    certificate = dpf.verify(released)
    part = certificate.mechanism
    assert (part.quantiles, part.bins, part.rounds) == ((0.1, 0.5, 0.9), 16_384, 2)
    assert part.scales == (3.2, 2.0, 3.2)  # in rows: 2 D / b, twice for two rounds
    assert certificate.mechanism.law == "geometric"
    assert [one.column for one in certificate.query.by] == ["zone", "quantile"]
    text = repr(certificate)
    assert "permute-and-flip selection on exact integers" in text
    assert "among 16,384 bins in 2 rounds, without error bars" in text
    assert "standard error not known" in text
    assert "without error bars" in certificate._repr_html_()


ABOUT_NOISE = {
    "std_error": lambda one: one.dp.std_error,
    "interval": lambda one: one.dp.interval(),
    "covariance": lambda one: one.dp.covariance,
    "combine": lambda one: one.dp.combine({("A", 0.5): 1}),
    "denoise": lambda one: one.dp.denoise(),
    "ratio": lambda one: one.dp.ratio("fare", "fare"),
    "percent": lambda one: one.dp.percent(),
    "interval, joined": lambda one: one.dp.interval(join=True),
    "interval of samples": lambda one: one.dp.interval(sampling=True),
    "suppress": lambda one: one.dp.suppress(relative_error=0.5),
}


@pytest.mark.parametrize("what", ABOUT_NOISE)
def test_what_is_about_noise_is_refused_with_a_way_out(trips, what):
    released = trips.dp.quantile("fare", [0.5], by="zone", mechanism="select", epsilon=1)
    with raises(QueryError, "no error bars: no noise was added"):
        ABOUT_NOISE[what](released)


def test_what_is_not_about_noise_works(trips, tmp_path):
    released = trips.dp.quantile("fare", QUARTILES, by="zone", mechanism="select", epsilon=1)
    made = released.loc[["A", "B"]].sort_values("fare").dp.round(1)
    assert dpf.verify(made.unstack(), against=released).state == "released"
    made.dp.write_csv(tmp_path / "fares.csv")
    again = dpf.read_csv(tmp_path / "fares.csv")
    assert dpf.verify(again).mechanism == released.dp.certificate.mechanism
    released.dp.write_parquet(tmp_path / "fares.parquet")
    assert dpf.verify(pd.read_parquet(tmp_path / "fares.parquet")).state == "released"
    dpf.schema(released).validate(released)
    released.dp.report(tmp_path / "fares.html")
    page = (tmp_path / "fares.html").read_text(encoding="utf-8")
    assert "Selected values, without error bars" in page


def test_claims_that_contradict_themselves_cannot_be_read(trips):
    released = trips.dp.quantile("fare", 0.5, mechanism="select", epsilon=1)
    noisy = trips.dp.count(epsilon=1)
    (selected,), (count,) = (record_of(one)["releases"] for one in (released, noisy))
    for frame, wrong in (
        (released, {"mechanism": count["mechanism"]}),
        (noisy, {"mechanism": selected["mechanism"]}),
        (noisy, {"columns": selected["columns"]}),
        (noisy, {"columns": [count["columns"][0] | {"features": {}}]}),
    ):
        record = record_of(frame)
        record["releases"][0] |= wrong
        changed = carry_text(frame.copy(), record)
        with pytest.raises(dpf.errors.UnreadableCertificateError):
            dpf.verify(changed)


def test_preview_says_by_how_many_rows(trips):
    table = trips.dp.plan(
        dpf.quantile("fare", [0.1, 0.5, 0.9]), epsilon=1, mechanism="select"
    ).table
    assert table.index.tolist() == [0.1, 0.5, 0.9]
    assert table["mechanism"].unique().tolist() == ["select"]
    assert table["epsilon"].unique().tolist() == [1.0]
    # n parts of bins and noise s: s log(n / 0.05) rows; of the others it depends on shared values
    wanted = [np.nan, 2 * np.log((4 * 16_382 + 2 * 1024) / 0.05), np.nan]
    assert table["rank_error_95"].tolist() == pytest.approx(wanted, nan_ok=True)
    for wanted in ({"within": 1}, {"within": {"fare": 1}}, {"rows": 100}):
        with raises(CalibrationError, "rank_error_95"):
            trips.dp.plan(dpf.quantile("fare", 0.5), epsilon=1, mechanism="select", **wanted)
    found = trips.dp.plan(dpf.quantile("fare", 0.5), epsilon=1, mechanism="select").table
    assert not found["fits"].eq(False).any()


def incomes(rng, size):
    return rng.lognormal(10, 0.7, size).round(-3)


TIED = {
    "all equal": lambda rng, size: np.full(size, 25_000.0),
    "incomes in thousands": incomes,
    "two values": lambda rng, size: rng.choice([10_000.0, 60_000.0], size),
    "few rows share one": lambda rng, size: rng.uniform(0, 200_000, size),
}
GROUPS, SIZE = 100, 4_000
BINS = 16_384


def ranks_off(values, released, quantiles):
    """By how many rows the bins of released values miss the ranks of quantiles, by group."""
    edges = np.linspace(0, 200_000, BINS + 1)
    bins = np.searchsorted(edges, np.clip(values, 0, 200_000).reshape(GROUPS, SIZE))
    chosen = np.searchsorted(edges, released.reshape(GROUPS, -1))
    below = (bins[:, None, :] < chosen[:, :, None]).sum(axis=2)
    up_to = (bins[:, None, :] <= chosen[:, :, None]).sum(axis=2)
    wanted = np.multiply(quantiles, SIZE)
    return np.maximum(np.maximum(below - wanted, wanted - up_to), 0)


def too_many_beyond(off, bound):
    """Whether more are beyond a bound of 95 % than in one of 1,000,000 cases."""
    known = ~np.isnan(bound)
    beyond = (off > bound)[:, known].sum(axis=0)
    return bool((beyond > stats.binom.isf(1e-6 / known.sum(), GROUPS, 0.05)).any())


def released_ranks(tied, quantiles, monkeypatch=None, factor=1.0):
    """How far off released quantiles of tied values are, and what the preview says of it."""
    values = TIED[tied](np.random.default_rng(4), GROUPS * SIZE)
    frame = pd.DataFrame({"zone": np.repeat(np.arange(GROUPS), SIZE), "income": values})
    declared(frame, keys={"zone": range(GROUPS)}, bounds={"income": (0, 200_000)})
    query = dpf.quantile("income", quantiles, by="zone")
    bound = frame.dp.plan(query, epsilon=1, mechanism="select").table["rank_error_95"].to_numpy()
    if monkeypatch is not None:
        own = selection.geometric
        wider = lambda scale, *rest, **options: own(factor * scale, *rest, **options)  # noqa: E731
        monkeypatch.setattr(selection, "geometric", wider)
    released = dpf.release(frame, query, epsilon=1, mechanism="select")["income"].to_numpy()
    return ranks_off(values, released, quantiles), bound


@pytest.mark.sampled(every=5, full=3)
@pytest.mark.parametrize("tied", TIED)
@pytest.mark.parametrize("quantiles", [[0.5], [0.9], [0.25, 0.5, 0.75]])
def test_ranks_are_as_far_off_as_previewed_at_most(tied, quantiles):
    off, bound = released_ranks(tied, quantiles)
    assert np.isfinite(bound).sum() == 1
    assert not too_many_beyond(off, bound)


def test_too_wide_noise_is_beyond_what_is_previewed(monkeypatch):
    off, bound = released_ranks("few rows share one", [0.5], monkeypatch, factor=20.0)
    assert too_many_beyond(off, bound)


@pytest.mark.full
def test_distances_that_only_add_up_do_not_hold_where_rows_share_a_value():
    deciles = [k / 10 for k in range(1, 10)]
    off, bound = released_ranks("all equal", deciles)
    # as if each of the four rounds missed by no more rows than the first
    assert too_many_beyond(off, np.full(len(deciles), 4 * bound[4]))

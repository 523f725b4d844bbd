"""Released frames are denoised beside what was released, and the certificate says so."""

import numpy as np
import pandas as pd
import pytest
from support.certifying import recertified, recorded

import dpframe as dpf
from dpframe.denoising.methods import METHODS
from dpframe.errors import BudgetExceededError, CertificateError, QueryError
from dpframe.inference.intervals import covariance, std_error

ZONES = [f"z{i:02d}" for i in range(40)]
OPTIONS = {"consistent": {"parents": [-1] + [0] * 39}}
GRAPHS = {name: "ordered" for name, method in METHODS.items() if method.needs_graph}


def trips(n=400):
    rows = np.arange(n)
    zones = np.array(ZONES)[(rows * rows) % 37 % 40]
    return pd.DataFrame({"zone": zones, "fare": rows % 17 * 2.0, "tip": rows % 3 == 0})


def counts(**spend):
    return dpf.release(trips(), dpf.count("zone", keys=ZONES), **(spend or {"mu": 0.1}))


def both(**spend):
    query = dpf.aggregate(
        "zone",
        keys=ZONES,
        n=dpf.count(),
        fare=dpf.sum("fare", bounds=(0, 40)),
        m=dpf.mean("fare", bounds=(0, 40)),
    )
    return dpf.release(trips(), query, **(spend or {"mu": 0.1}))


@pytest.mark.parametrize("method", [*METHODS, "auto"])
def test_every_method_adds_a_column_and_a_step(method):
    released = counts()
    made = released.dp.denoise(method, graph=GRAPHS.get(method), **OPTIONS.get(method, {}))
    assert list(made.columns) == ["count", "count_denoised"]
    assert made["count_denoised"].dtype == np.float64
    assert made["count_denoised"].notna().all()
    pd.testing.assert_frame_equal(made[["count"]], released, check_flags=False)
    certificate = dpf.verify(made)
    (step,) = certificate.table.definitions
    assert step.column == "count"
    assert step.into == "count_denoised"
    assert step.asked == method
    assert "count_denoised" in repr(certificate)
    assert certificate.columns == released.dp.certificate.columns


@pytest.mark.parametrize("method", [*METHODS, "auto"])
def test_a_release_denoises_in_the_same_call(method):
    if OPTIONS.get(method):
        with pytest.raises(QueryError, match="needs"):
            dpf.release(trips(), dpf.count("zone", keys=ZONES), mu=1, denoise=method)
        return
    frame = trips()
    graph = GRAPHS.get(method)
    made = frame.dp.release(dpf.count("zone", keys=ZONES), mu=1, denoise=method, graph=graph)
    again = made[["count"]].copy()
    recorded(again, made.dp.certificate.releases)
    pd.testing.assert_frame_equal(again.dp.denoise(method, graph=graph), made, check_flags=False)


def test_means_are_left_out_of_methods_for_totals():
    made = dpf.denoise(both(), "nonnegative")
    assert list(made.columns) == ["n", "fare", "m", "n_denoised", "fare_denoised"]
    with pytest.raises(QueryError, match='denoised by "auto" alone'):
        dpf.denoise(both(), "nonnegative", columns="m")
    with pytest.raises(QueryError, match='denoised by "auto" alone'):
        trips().dp.release(
            dpf.mean("fare", "zone", keys=ZONES, bounds=(0, 40)), mu=1, denoise="posterior"
        )


def test_columns_can_be_chosen_and_denoised_again():
    once = dpf.denoise(both(), "nonnegative", columns="fare")
    assert list(once.columns) == ["n", "fare", "m", "fare_denoised"]
    twice = dpf.denoise(once, "whole", columns=["n"])
    assert list(twice.columns) == ["n", "fare", "m", "fare_denoised", "n_denoised"]
    thrice = dpf.denoise(twice, "james_stein", columns="fare")
    assert list(thrice.columns) == list(twice.columns)
    steps = {step.into: step.method for step in dpf.verify(thrice).table.definitions}
    assert steps == {"n_denoised": "whole", "fare_denoised": "james_stein"}
    assert not thrice["fare_denoised"].equals(once["fare_denoised"])


def test_errors_and_intervals_speak_of_the_released_columns():
    released = both()
    made = dpf.denoise(released, "nonnegative")
    for function in (std_error, dpf.interval, covariance):
        pd.testing.assert_frame_equal(function(made), function(released))
    with pytest.raises(QueryError, match="not in it"):
        dpf.combine(made, pd.DataFrame({"n_denoised": {"z00": 1}}))


def test_altered_denoised_columns_are_noticed():
    made = dpf.denoise(counts(), "nonnegative")
    made["count_denoised"] += 1
    with pytest.raises(CertificateError, match="not what its certificate"):
        dpf.verify(made)
    with pytest.raises(CertificateError, match="not what its certificate"):
        dpf.denoise(made, "whole")


def test_the_noise_is_read_from_the_certificate():
    for spend in ({"mu": 0.2}, {"epsilon": 0.1}):
        made = dpf.denoise(both(**spend), "james_stein", toward="mean")
        for step, name in zip(dpf.verify(made).table.definitions, ("n", "fare"), strict=True):
            error = made.dp.std_error[name].iloc[0]
            assert step.noise_variance == pytest.approx(error**2)
            values = made[name] - made[name].mean()
            shrunk = max(0, 1 - (40 - 3) * error**2 / (values @ values))
            expected = np.maximum(made[name].mean() + shrunk * values, 0)
            assert made[f"{name}_denoised"].to_numpy() == pytest.approx(expected.to_numpy())


def wide(mechanism):
    frame = pd.DataFrame({f"q{i}": np.arange(300) % (i + 2) == 0 for i in range(30)})
    query = dpf.sum(list(frame.columns), bounds=(0, 1))
    return dpf.release(frame, query, mu=0.05, mechanism=mechanism)


def test_a_single_row_is_denoised_across_its_columns():
    released = wide("gaussian")
    made = released.dp.denoise("james_stein", toward="mean")
    values = released.iloc[0].to_numpy(float)
    variance = released.dp.std_error.iloc[0, 0] ** 2
    centered = values - values.mean()
    shrunk = max(0, 1 - 27 * variance / (centered @ centered))
    expected = np.maximum(values.mean() + shrunk * centered, 0)
    assert made.iloc[0, 30:].to_numpy() == pytest.approx(expected)


def test_correlated_noise_counts_only_as_far_as_columns_differ():
    released = wide("correlated")
    made = released.dp.denoise("james_stein", columns=[f"q{i}" for i in range(30)], toward="mean")
    covariance = released.dp.covariance.to_numpy()[:30, :30]
    differing = (covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]) / 2
    assert differing < 0.95 * covariance[0, 0]
    values = released.iloc[0, :30].to_numpy(float)
    centered = values - values.mean()
    shrunk = max(0, 1 - 27 * differing / (centered @ centered))
    expected = np.maximum(values.mean() + shrunk * centered, 0)
    assert made.iloc[0, -30:].to_numpy() == pytest.approx(expected)


def test_columns_of_different_noise_cannot_be_denoised_together():
    frame = trips()
    query = dpf.sum(["fare", "tip"], bounds={"fare": (0, 40), "tip": (0, 1)})
    released = dpf.release(frame, query, mu=0.1, mechanism="gaussian")
    with pytest.raises(QueryError, match="noise is of the same size"):
        released.dp.denoise("james_stein", columns=["fare", "tip"])


def test_by_default_the_largest_set_of_like_columns_of_a_row_is_denoised():
    frame = trips().assign(a=lambda t: t["fare"] > 3, b=lambda t: t["fare"] > 9)
    query = dpf.aggregate(
        n=dpf.count(),
        fare=dpf.sum("fare", bounds=(0, 40)),
        **{name: dpf.sum(name, bounds=(0, 1)) for name in ("tip", "a", "b")},
        mean=dpf.mean("fare", bounds=(0, 40)),
    )
    made = frame.dp.release(query, mu=0.1, mechanism="laplace", denoise="auto")
    assert list(made.columns[6:]) == ["tip_denoised", "a_denoised", "b_denoised"]
    shared = wide("correlated").dp.denoise("james_stein", toward="mean")
    assert shared.shape == (1, 60)


def test_means_beside_other_tables_stay_as_they_are():
    bounds = {"bounds": (0, 40), "keys": ZONES}
    queries = {"n": dpf.count("zone", keys=ZONES), "m": dpf.mean("fare", "zone", **bounds)}
    made = dpf.release(trips(), queries, mu=1, denoise="nonnegative")
    assert list(made["n"].columns) == ["count", "count_denoised"]
    assert list(made["m"].columns) == ["fare"]


def test_the_counts_of_an_earlier_table_may_be_the_prior():
    made = counts()
    earlier = pd.Series([0, 0, 11, 10, 11, 12]).value_counts()
    found = made.dp.denoise(prior=earlier)
    assert found.equals(made.dp.denoise(prior=earlier.to_dict()))
    assert set(found["count_denoised"]) <= {0, 10, 11, 12}


def test_few_values_are_not_compared_and_counts_stay_above_zero():
    made = dpf.release(trips(), dpf.count("zone", keys=ZONES[:7]), mu=0.01, denoise="auto")
    assert made["count_denoised"].tolist() == made["count"].clip(lower=0).tolist()
    below = (made["count"] < 0).any()
    assert dpf.verify(made).table.definitions[0].method == ("nonnegative" if below else "none")
    assert ("totals come out too high" in repr(made.dp.certificate)) == below


def test_the_graph_is_named_by_its_digest():
    graphs = ["ordered", pd.DataFrame({"u": ZONES[1:], "v": ZONES[:-1]}), "ordered"]
    released = counts()
    steps = [
        dpf.verify(released.dp.denoise("tree_wavelets", graph=graph)).table.definitions[0].graph
        for graph in graphs
    ]
    assert steps[0] == steps[1] == steps[2]
    assert steps[0].edges == 39
    ring = pd.DataFrame({"u": ZONES, "v": [*ZONES[1:], ZONES[0]]})
    other = dpf.verify(released.dp.denoise("tree_wavelets", graph=ring)).table.definitions[0].graph
    assert other.digest != steps[0].digest
    assert dpf.verify(released.dp.denoise("whole")).table.definitions[0].graph is None


def test_a_series_of_parents_must_be_in_the_order_of_the_rows():
    parents = pd.Series([-1] + [0] * 39, index=ZONES)
    released = counts()
    assert released.dp.denoise("consistent", parents=parents).shape == (40, 2)
    with pytest.raises(QueryError, match=r"parents=series.reindex\(released.index\)"):
        released.dp.denoise("consistent", parents=parents[::-1])


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"method": "magic"}, "method must be 'auto' or one of"),
        ({"method": None}, "method must be 'auto' or one of"),
        ({"method": ["auto"]}, "method must be 'auto' or one of"),
        (
            {"method": "whole", "order": 1},
            r"'order' is not an option of method='whole'.*\['total'\]",
        ),
        ({"method": "auto", "order": 1}, "'order' is not an option of method='auto'"),
        ({"method": "consistent"}, "needs parents="),
        ({"method": "trend_filter"}, "give graph="),
        ({"method": "posterior", "graph": "ordered"}, "takes no graph"),
        ({"method": "auto", "graph": "round"}, "graph must be"),
        (
            {"method": "posterior", "columns": "zone"},
            r"columns must be among \['count'\], got columns='zone'",
        ),
        ({"method": "posterior", "columns": []}, "noise of a mean|columns"),
        ({"method": "posterior", "across": "cells"}, "across must be"),
        ({"method": "soft_threshold", "threshold": -1}, "threshold"),
        ({"method": "soft_threshold", "threshold": 10**400}, "threshold must be"),
        ({"prior": "poisson"}, "prior must be a frozen distribution"),
        ({"total": 10**400}, "total must be a finite number"),
        ({"loss": "huber"}, "loss must be"),
        ({"method": "james_stein", "positive_part": "no"}, "positive_part must be True or False"),
        ({"method": "trend_filter", "graph": "ordered", "order": 7}, "order"),
        ({"method": "tree_wavelets", "graph": "ordered", "trees": 0}, "trees"),
        ({"method": "consistent", "parents": [-1, 0]}, "parents"),
    ],
)
def test_what_does_not_fit_is_refused(keywords, said):
    with pytest.raises(QueryError, match=said):
        counts().dp.denoise(**keywords)


@pytest.mark.parametrize(
    ("denoise", "graph"), [("magic", None), ("trend_filter", None), (None, "ordered"), ("auto", 3)]
)
def test_releases_refuse_what_does_not_fit_before_they_charge(denoise, graph):
    frame = trips()
    frame.dp.declare(keys={"zone": ZONES}, budget=dpf.Budget(1, 1e-6))
    with pytest.raises(QueryError):
        frame.dp.release(dpf.count("zone"), epsilon=0.1, denoise=denoise, graph=graph)
    assert not frame.dp.ledger.entries
    with pytest.raises(BudgetExceededError):
        frame.dp.count("zone", epsilon=2, denoise="auto")


def test_names_that_are_taken_are_refused():
    query = dpf.aggregate("zone", keys=ZONES, n=dpf.count(), n_denoised=dpf.count(where="tip"))
    with pytest.raises(QueryError, match="names that are taken"):
        dpf.release(trips(), query, mu=1, denoise="auto")


def test_bins_are_neighbors_by_themselves():
    frame = pd.DataFrame({"x": np.arange(3000) % 100 + 0.5})
    made = frame.dp.release(dpf.histogram("x", range(101)), mu=0.05, denoise="auto")
    tried = made.dp.certificate.denoising.loc["count_denoised"].index
    assert "trend_filter order=0" in tried
    report = made.dp.certificate.denoising.loc["count_denoised"]
    members = list(report.index[report["chosen"] & (report.index != "average")])
    assert members == sorted(members, key=list(report.index).index)
    assert set(members) == set(dpf.verify(made).table.definitions[0].members)
    if len(members) > 1:
        assert (
            report.loc["average", "estimated_gain"] >= report.loc[members, "estimated_gain"].mean()
        )
    assert made.dp.certificate.denoising["estimated_gain"].max() > 0.5  # a flat histogram


def test_it_says_so_where_nothing_helps():
    spread = pd.Series(2 ** np.arange(12)).repeat(2 ** np.arange(12))
    frame = pd.DataFrame({"k": np.repeat(np.arange(12), 2 ** np.arange(12))})
    assert len(frame) == len(spread)
    made = frame.dp.count("k", keys=range(12), epsilon=5, denoise="auto")
    assert made["count_denoised"].equals(made["count"].astype(float))
    assert "no denoiser is expected to help" in repr(made.dp.certificate)
    report = made.dp.certificate.denoising.loc["count_denoised"]
    assert report.loc["none", "chosen"]
    assert report.loc["none", "estimated_gain"] == 0
    assert "posterior" in report.index


def test_several_rows_across_columns():
    frame = trips().assign(a=lambda t: t["fare"] > 3, b=lambda t: t["fare"] > 9, c=True, d=False)
    query = dpf.sum(list("abcd"), "zone", keys=ZONES, bounds=(0, 1))
    released = dpf.release(frame, query, mu=0.1, mechanism="gaussian")
    made = released.dp.denoise("james_stein", across="columns", toward="mean")
    assert made.shape == (40, 8)
    row = released.iloc[7].to_numpy(float)
    variance = released.dp.std_error.iloc[0, 0] ** 2
    centered = row - row.mean()
    shrunk = max(0, 1 - variance / (centered @ centered))
    assert made.iloc[7, 4:].to_numpy() == pytest.approx(
        np.maximum(row.mean() + shrunk * centered, 0)
    )


def test_values_that_left_the_range_of_floats_stay_as_they_are():
    frame = pd.DataFrame({"x": np.ones(40), "g": np.arange(40) % 4})
    released = dpf.release(frame, dpf.sum("x", "g", keys=range(4), bounds=(0, 1)), mu=1)
    made = dpf.denoise(recertified(released * np.inf, released), "nonnegative")
    assert np.isinf(made["x"]).any()
    assert made["x_denoised"].equals(made["x"])


@pytest.mark.parametrize("method", ["auto", "james_stein"])
def test_public_totals_have_no_noise_to_remove(method):
    frame = trips()
    frame.dp.declare(neighboring="replace")
    made = frame.dp.release(dpf.count(), mu=1, denoise=method)
    assert made.iloc[0].tolist() == [400, 400.0]
    assert dpf.verify(made).table.definitions[0].method == "none"

"""Rounded and suppressed releases: what they say, and that their intervals still hold."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from support.publishing import KINDS, STEPS, is_refused, made, released

import dpframe as dpf
from dpframe.errors import CertificateError, DPFrameWarning, QueryError

HOSTILE = "<script>'\u202e\n=1+1"


@pytest.mark.parametrize("decimals", [-2, -1, 0, 3])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "times"])
@pytest.mark.sampled(every=3)
def test_intervals_of_rounded_numbers_hold_those_of_the_release(kind, decimals):
    frame = released(kind)
    rounded = frame.dp.round(decimals)
    pd.testing.assert_frame_equal(rounded, frame.round(decimals))
    low, high = (rounded.dp.interval().iloc[:, side::2].to_numpy(float) for side in (0, 1))
    before = [frame.dp.interval().iloc[:, side::2].to_numpy(float) for side in (0, 1)]
    # between them are the values that may have been rounded to this one, each with its interval
    most = [
        0 if part.rounded is None else part.rounded.most for part in rounded.dp.certificate.columns
    ]
    assert (low <= before[0]).all() and (high >= before[1]).all()
    unit = 10.0**-decimals
    assert (low >= before[0] - 2 * np.array(most) - unit - 1e-9).all()
    assert (high <= before[1] + 2 * np.array(most) + unit + 1e-9).all()


def test_whole_numbers_stay_whole():
    frame = released("one key")
    assert frame.dp.round(1).equals(frame) and frame.dp.round(1).dp.interval().equals(
        frame.dp.interval()
    )
    tens = frame.dp.round(-1)
    assert (tens["count"] % 10 == 0).all() and str(tens["count"].dtype) == "int64"
    assert (tens.dp.interval() % 10 == 0).all(axis=None)


def test_what_is_rounded_twice_is_further_off():
    frame = released("mean").dp.round(2)
    twice = frame.dp.round(0)
    assert frame.dp.certificate.columns[0].rounded.most == 0.005
    assert twice.dp.certificate.columns[0].rounded.most == 0.505
    assert twice.dp.round(1).dp.certificate.columns == twice.dp.certificate.columns


def test_columns_are_rounded_each_by_itself():
    frame = released("several")
    rounded = frame.dp.round({"fare": 1, "flights": -2})
    assert rounded.equals(frame.round({"fare": 1, "flights": -2}))
    assert [part.rounded is None for part in rounded.dp.certificate.columns] == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("decimals", [1.5, True, "2", 16, {"fare": None}, {"fee": 1}, {}])
def test_decimals_are_whole_numbers(decimals):
    with pytest.raises(QueryError, match="decimals"):
        released("several").dp.round(decimals)


def test_times_are_not_rounded():
    with pytest.raises(QueryError, match="no column of numbers"):
        released("times").dp.round({"wait": 1})


def test_what_is_suppressed_is_missing_in_all_that_is_said():
    frame = released("several")
    limit = 1_000
    hidden = frame["flights"] < limit
    assert hidden.sum() == 3
    made = frame.dp.suppress(below=limit, by="flights")
    assert (made.isna().to_numpy() == hidden.to_numpy()[:, None]).all()
    assert list(map(str, made.dtypes)) == ["Int64", "Int64", "float64", "float64"]
    for table in (made.dp.interval(), made.dp.std_error):
        assert (table.isna().to_numpy() == hidden.to_numpy()[:, None]).all()
    there = ~hidden
    kept = frame.dp.interval()[there]
    assert (made.dp.interval()[there].astype(float) == kept.astype(float)).all(axis=None)
    assert made.dp.covariance.isna().any(axis=None)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "times"])
def test_numbers_that_were_suppressed_are_nowhere_in_the_certificate(kind):
    frame = released(kind)
    made = frame.dp.suppress(relative_error=1e-300, by=frame.columns[0])
    assert made.isna().all(axis=None)
    for column in made.dp.certificate.columns:
        assert all(
            np.ndim(part) == 0 or np.isnan(part).all() for part in column.deviations.values()
        )
        for total in column.totals.values.values():
            assert np.isnan(total).all()


def test_each_cell_decides_for_itself_or_one_for_all():
    frame = released("correlated")
    errors = frame.dp.std_error / frame.abs()
    limit = float(errors.median().median())
    assert (frame.dp.suppress(relative_error=limit).isna() == (errors > limit)).all(axis=None)
    by = frame.dp.suppress(relative_error=limit, by="n").isna()
    assert (by["fare"] == (errors["n"] > limit)).all() and (by["n"] == by["fare"]).all()


def test_denoised_values_go_with_those_released_and_may_decide():
    frame = released("denoised")
    made = frame.dp.suppress(below=1_000, by="count_denoised")
    assert (made["count"].isna() == made["count_denoised"].isna()).all()
    assert made["count"].isna().sum() == 3
    with pytest.raises(QueryError, match="has no standard error"):
        frame.dp.suppress(relative_error=0.1, by="count_denoised")


def test_suppressing_again_adds_to_what_is_missing():
    frame = released("several").dp.suppress(below=1e9, by="flights")
    assert frame.dp.suppress(below=0, by="paid").isna().all(axis=None)
    with pytest.warns(DPFrameWarning, match="no row is left"):
        assert frame.dp.select("flights < 1e9").empty
    assert frame.dp.sort_values("flights").equals(frame)


def test_a_relative_error_in_percent_is_warned_of():
    frame = released("one key")
    message = r"relative_error=20 is 2,000 % of the value, .*; 0\.2 is 20 %\."
    with pytest.warns(DPFrameWarning, match=message) as caught:
        assert frame.dp.suppress(relative_error=20).notna().all(axis=None)
    assert caught[0].filename == __file__
    frame.dp.suppress(relative_error=1)


@pytest.mark.parametrize(
    ("kind", "limits", "message"),
    [
        ("several", {}, "needs below= or relative_error="),
        ("several", {"below": 5}, "'fare' cannot say by its size"),
        ("several", {"below": 5, "by": "fee"}, "by must name columns"),
        ("one key", {"below": np.nan}, "below must be a finite number"),
        ("one key", {"below": True}, "below must be a finite number"),
        ("one key", {"relative_error": -1}, "relative_error must be above 0"),
        ("one key", {"relative_error": 0}, "relative_error must be above 0"),
        ("times", {"below": 5}, "cannot say by its size"),
        ("rate", {"below": 0.5}, "cannot say by its size"),
    ],
)
def test_limits_are_checked(kind, limits, message):
    with pytest.raises(QueryError, match=message):
        released(kind).dp.suppress(**limits)


def test_hostile_names_do_nothing():
    frame = made(dpf.aggregate("zone", keys=["A", HOSTILE], **{HOSTILE: dpf.count()}))()
    steps = frame.dp.sort_values(HOSTILE).dp.select(f"`{HOSTILE}` > -1e9", keys=[HOSTILE])
    renamed = steps.dp.round(-1).dp.rename({HOSTILE: HOSTILE + "!"})
    certificate = dpf.verify(renamed)
    assert "<script>" not in certificate._repr_html_()
    assert "\u202e" not in repr(certificate)
    assert dpf.replay(renamed, frame).equals(renamed)


@pytest.mark.parametrize("step", ["round", "suppress"])
def test_what_needs_the_released_cells_is_refused_after(step):
    changed = STEPS[step](released("several"))
    for call in (
        lambda: changed.dp.ratio("paid", "flights"),
        lambda: changed.dp.percent("flights"),
        lambda: changed.dp.combine(pd.DataFrame({"flights": {"A": 1}})),
        changed.dp.denoise,
    ):
        with pytest.raises(QueryError, match=f"takes the table as it was before {step}"):
            call()


def from_csv(frame, folder):
    frame.dp.write_csv(folder / "made.csv")
    return dpf.read_csv(folder / "made.csv")


def from_parquet(frame, folder):
    frame.to_parquet(folder / "made.parquet")
    return pd.read_parquet(folder / "made.parquet")


@pytest.mark.parametrize("travel", [from_csv, from_parquet])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", ["several", "two keys", "histogram", "denoised", "rate", "times"])
@pytest.mark.sampled(every=5, full=3)
def test_steps_travel_in_files(kind, step, travel, tmp_path):
    if is_refused(kind, step):
        return
    made = STEPS[step](released(kind))
    back = travel(made, tmp_path)
    assert dpf.verify(back) == made.dp.certificate
    pd.testing.assert_frame_equal(
        back.dp.interval().reset_index(drop=True), made.dp.interval().reset_index(drop=True)
    )
    assert dpf.verify(back.dp.head(1)).state == "post-processed"


@pytest.mark.parametrize("step", STEPS)
def test_what_is_changed_after_a_step_is_found(step):
    made = STEPS[step](released("several"))
    for change in (
        lambda f: f.iloc[:-1],
        lambda f: f.fillna(0) + 1,
        lambda f: f.rename_axis("key"),
    ):
        with pytest.raises(CertificateError, match="is not what its certificate was given for"):
            dpf.verify(change(made))
    made.attrs["dpframe"]["steps"].clear()
    with pytest.raises(CertificateError, match="the certificate itself was changed"):
        dpf.verify(made)


def test_maps_and_plots_leave_out_what_was_suppressed():
    frame = released("one key").dp.suppress(below=1_000)
    places = {key: (at, at % 2) for at, key in enumerate(frame.index)}
    drawn = frame.dp.plot_map(places, ax=Figure().add_subplot()).collections[0]
    assert list(np.ma.getmaskarray(drawn.get_array())) == list(frame["count"].isna())
    bars = frame.dp.plot(ax=Figure().add_subplot()).patches
    assert [np.isnan(bar.get_height()) for bar in bars] == list(frame["count"].isna())


@pytest.mark.parametrize("kind", ["one key", "two keys", "histogram by key", "denoised"])
def test_a_table_without_rows_is_drawn_as_one(kind):
    axes = released(kind).dp.head(0).dp.plot(ax=Figure().add_subplot())
    axes.figure.canvas.draw()
    assert "no groups" in [text.get_text() for text in axes.texts]


def test_no_map_is_drawn_of_nothing():
    frame = released("one key")
    hidden = frame.dp.suppress(below=1e9)
    with pytest.raises(QueryError, match="no cells to draw"):
        hidden.dp.plot_map(dict.fromkeys(frame.index, (0, 0)), ax=Figure().add_subplot())


@pytest.mark.parametrize("kind", ["auto", "bar", "barh", "points", "line"])
def test_suppressed_cells_are_not_drawn(kind):
    frame = released("several").dp.suppress(below=1_000, by="flights")
    axes = frame.dp.plot(column="flights", kind=kind, ax=Figure().add_subplot())
    axes.figure.canvas.draw()
    low, high = axes.get_ylim() if kind != "barh" else axes.get_xlim()
    assert np.isfinite([low, high]).all() and low <= frame["flights"].max() <= high

"""The error says what was changed in a frame, and shows nothing that may be private."""

import numpy as np
import pandas as pd
import pytest
from support.publishing import released
from support.raising import MOST_WORDS

import dpframe as dpf
from dpframe.errors import CertificateError

OTHER = pd.DataFrame({"zone": ["A", "A", "B"], "secret": [7001, 7002, 7003]})


def put(frame, row, column, value):
    frame = frame.copy()
    frame.iloc[row, column] = value
    return frame


def noted(frame):
    frame.attrs["note"] = "x"
    return frame


def rewritten(frame):
    frame.attrs["dpframe"]["releases"][0]["privacy_loss"]["mu"] = 0.1
    return frame


CHANGES = {
    "an added column": (lambda f: f.assign(rate=0.5), ["column 'rate' was added"]),
    "added columns": (
        lambda f: f.assign(**{f"x{i}": i for i in range(7)}),
        ["columns 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more were added"],
    ),
    "a dropped column": (lambda f: f.drop(columns="paid"), ["column 'paid' was dropped"]),
    "a changed value": (lambda f: put(f, 0, 0, 1), ["the values of column 'flights' were changed"]),
    "values swapped": (
        lambda f: f.assign(flights=f["flights"].to_numpy()[::-1]),
        ["the values of column 'flights' changed places"],
    ),
    "another order": (lambda f: f[::-1], ["the rows are in another order"]),
    "another order and a column": (
        lambda f: f.sort_values("fare", ascending=f["fare"].is_monotonic_decreasing).assign(rate=0),
        ["column 'rate' was added", "the rows are in another order"],
    ),
    "another dtype": (
        lambda f: f.astype({"flights": "float64"}),
        ["the dtype of column 'flights' is float64 in place of int64"],
    ),
    "lost rows": (lambda f: f.head(2), ["rows are missing"]),
    "a renamed column": (
        lambda f: f.rename(columns={"paid": "n_paid"}),
        ["column 'paid' is called 'n_paid'"],
    ),
    "a renamed level": (
        lambda f: f.rename_axis("borough"),
        [r"the levels of the index are called \['borough'\] in place of \['zone'\]"],
    ),
    "other keys": (lambda f: f.rename(index={"A": "Z"}), ["the keys of level 'zone' were changed"]),
    "columns in another order": (
        lambda f: f[f.columns[::-1]],
        ["the columns are in another order"],
    ),
    "labels of columns exchanged": (
        lambda f: f.rename(columns={"flights": "paid", "paid": "flights"}),
        ["columns 'paid', 'flights' have each other's labels"],
    ),
    "an index that was reset": (
        lambda f: f.reset_index(),
        ["level 'zone' of the index became a column"],
    ),
    "a merge": (
        lambda f: f.merge(OTHER, on="zone").set_index("zone"),
        ["column 'secret' was added", "rows are missing"],
    ),
    "rounding": (lambda f: f.round(0), ["the values of column 'total' were changed"]),
    "other attrs": (noted, ["attrs hold 'note', too"]),
    "another certificate": (rewritten, ["the certificate itself was changed"]),
    "a missing value": (
        lambda f: put(f, 1, 2, np.nan),
        ["the dtype of column 'total' is object in place of float64"],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_error_says_what_was_changed(name):
    change, said = CHANGES[name]
    frame = released("several")
    changed = change(frame)
    if "dpframe" not in changed.attrs:  # pandas may drop attrs, and may keep them
        changed.attrs = frame.attrs
    for part in said:
        with pytest.raises(CertificateError, match=part) as error:
            dpf.verify(changed)
    assert "700" not in str(error.value)
    assert "Go back to the released frame" in str(error.value)
    assert len(str(error.value).split()) <= MOST_WORDS


CALLS = {
    "another order": r"kept by \.dp\.sort_values\.$",
    "lost rows": r"kept by \.dp\.select, \.dp\.head and \.dp\.tail\.$",
    "a dropped column": r"kept by \.dp\.select\(columns=\.\.\.\)\.$",
    "a renamed column": r"kept by \.dp\.rename\.$",
    "a changed value": r"kept by \.dp\.round and \.dp\.suppress\.$",
    "labels of columns exchanged": r"the released frame\. Labels stay with what they name",
    "other keys": r"frame\. Keys stay as they were released: relabel the column before",
    "an added column": r"kept by steps of \.dp\.$",
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_names_the_call_that_keeps_the_certificate(name):
    with pytest.raises(CertificateError, match=CALLS[name]):
        dpf.verify(CHANGES[name][0](released("several")))


LEVELS = {
    "levels": (
        lambda f: f.swaplevel(),
        r"the levels of the index are in another order\. .* frame\. Levels stay in the order",
    ),
    "levels and rows": (
        lambda f: f.swaplevel().sort_index(),
        r"levels of the index are in another order; the rows are in another order.*\.sort_values\.",
    ),
    "names": (
        lambda f: f.rename_axis(["day", "zone"]),
        r"levels 'day', 'zone' have each other's labels\. .* frame\. Labels stay with",
    ),
}


@pytest.mark.parametrize("name", LEVELS)
def test_levels_that_change_places_are_not_to_be_renamed(name):
    change, message = LEVELS[name]
    frame = released("two keys")
    changed = change(frame)
    changed.attrs = frame.attrs
    with pytest.raises(CertificateError, match=message) as error:
        dpf.verify(changed)
    assert "kept by .dp.rename" not in str(error.value)


def test_frames_without_attrs_are_told_where_they_were_lost():
    frame = pd.DataFrame(released("several").to_dict())
    with pytest.raises(CertificateError, match="its attrs were lost on the way"):
        dpf.verify(frame)


def test_what_many_columns_have_in_common_is_said_of_some():
    zones = {f"z{i}": dpf.count(where=f"zone == 'z{i}'") for i in range(12)}
    frame = dpf.release(
        pd.DataFrame({"zone": ["z1"], "day": [1]}),
        dpf.aggregate("day", keys=range(9), **zones),
        epsilon=0.01,
        privacy_unit=dpf.EACH_ROW,
    )
    for changed, last in (
        (frame + 1, "the values of column 'z1' were changed"),
        (frame.rename(columns=str.upper), "column 'z1' is called 'Z1'"),
    ):
        changed.attrs = frame.attrs
        with pytest.raises(CertificateError, match=rf"{last}; and 10 more\. Go back") as error:
            dpf.verify(changed)
        assert "z2" not in str(error.value)
    page = dpf.report(frame.dp.round(-1), percent=True)
    assert page.count("No percentages of") == 1 and "and 7 more: percent takes" in page


def test_how_many_rows_there_are_is_not_said():
    """A frame with rows of a private one shows the certificate, too: its size is private."""
    frame = released("several")
    longer = pd.concat([frame, frame, frame])
    longer.attrs = frame.attrs
    with pytest.raises(CertificateError, match="rows were added") as error:
        dpf.verify(longer)
    assert "12" not in str(error.value)


def test_orders_of_equal_numbers_are_told_by_their_keys():
    frame = dpf.release(
        pd.DataFrame({"zone": []}),
        dpf.count("zone", keys=list("ABC")),
        epsilon=1e9,
        privacy_unit=dpf.EACH_ROW,
    )
    with pytest.raises(CertificateError, match="the rows are in another order"):
        dpf.verify(frame[::-1])


def test_cells_that_cannot_be_looked_at_are_other_values():
    class Hostile:
        def __repr__(self):
            raise ValueError("seen")

        __str__ = __repr__

    frame = released("one key").astype(object)
    frame.iloc[0, 0] = Hostile()
    with pytest.raises(CertificateError, match="it holds other values"):
        dpf.verify(frame)

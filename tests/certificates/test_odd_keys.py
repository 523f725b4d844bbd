"""Steps with keys of every kind that can be released."""

import pandas as pd
import pytest
from support.keys import KEYS
from support.publishing import STEPS, made

import dpframe as dpf


@pytest.fixture(params=KEYS)
def kind(request):
    return request.param


def release(kind):
    keys = pd.Index(KEYS[kind], tupleize_cols=False)
    return made(
        dpf.aggregate("zone", keys=keys, n=dpf.count(), m=dpf.mean("fare", bounds=(0, 9)))
    )()


@pytest.mark.full
@pytest.mark.parametrize("step", STEPS)
def test_steps_take_keys_of_every_kind(kind, step):
    frame = release(kind)
    steps = STEPS | {"round": lambda table: table.dp.round(2)}  # counts of no rows may be below 5
    table = steps[step](frame)
    assert dpf.verify(table) and table.dp.interval().shape[1] == 4
    assert dpf.verify(table, against=frame)
    assert repr(dpf.verify(table)).replace("\n", "").isprintable()


@pytest.mark.full
def test_keys_of_every_kind_are_sorted_or_refused(kind):
    frame = release(kind)
    if kind == "numbers and texts":
        with pytest.raises(TypeError):  # of pandas
            frame.sort_values("zone")
        return
    wanted = frame.sort_index(kind="stable")
    assert list(frame.sort_values("zone").index) == list(wanted.index)


@pytest.mark.full
def test_keys_of_every_kind_become_columns_or_are_refused(kind):
    keys = {"zone": pd.Index(KEYS[kind], tupleize_cols=False), "day": [0, 1]}
    frame = made(dpf.count(["zone", "day"], keys=keys))()
    wide = frame.unstack("zone")
    assert dpf.verify(wide, against=frame)
    ends = wide.dp.interval().to_numpy()
    before = frame.dp.interval()
    assert sorted(ends[:, ::2].ravel()) == sorted(before["count_low"])
    assert list(frame.unstack("day").index) == list(KEYS[kind])


@pytest.mark.full
def test_releases_with_keys_of_every_kind_are_put_together(kind):
    tables = {"one": release(kind), "other": release(kind)}
    both = dpf.concat(tables, name="year")
    bars = both.dp.interval()
    for key, table in tables.items():
        assert bars.loc[key].to_numpy().tolist() == table.dp.interval().to_numpy().tolist()

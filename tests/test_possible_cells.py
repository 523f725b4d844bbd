"""Margins of the groups that rows can have, from a table of pairs to released tables."""

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.errors import DeclarationError, QueryError

pytestmark = pytest.mark.filterwarnings("ignore:epsilon")
REGIONS = pd.DataFrame(
    {"country": ["fr", "fr", "fr", "de", "be", "be"], "region": list("uvwxyz")}, index=range(6)
)
LEVELS = [[], ["country"], ["country", "region"]]
NO_NOISE = {"epsilon": 1e9}


@pytest.fixture
def people():
    dice = np.random.default_rng(9)
    n = 3_000
    made = pd.DataFrame(
        {
            "region": dice.choice(list("uvwxyz?"), n),
            "age": dice.integers(0, 90, n),
            "house": dice.integers(0, 900, n),
        }
    )
    of_region = REGIONS.set_index("region")["country"]
    made["country"] = made["region"].map(of_region).fillna("fr")
    made.loc[:99, "country"] = dice.choice(["fr", "de", None], 100)
    made.dp.declare(privacy_unit=dpf.EACH_ROW, bounds={"age": (0, 99)})
    return made


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "auto"])
def test_tables_hold_the_rows_of_possible_pairs_and_add_up(people, mechanism):
    spend = {"epsilon": 1, "delta": 1e-6, "mechanism": mechanism}
    query = dpf.margins(LEVELS, keys=REGIONS, n=dpf.count(), age=dpf.sum("age"))
    exact = dpf.release(people, query, **(spend | NO_NOISE | {"delta": 1e-9}))
    rows = people.merge(REGIONS)
    truth = rows.groupby(["country", "region"])["age"].agg(["size", "sum"])
    own = exact["country", "region"]
    assert own.index.to_frame(index=False).equals(REGIONS)
    expected = truth.reindex(own.index).to_numpy(float)
    np.testing.assert_allclose(own.to_numpy(float), expected, rtol=1e-6)
    noisy = dpf.release(people, query, **spend)
    regions, countries = noisy["country", "region"], noisy["country",]
    assert countries.index.tolist() == ["fr", "de", "be"]
    added = regions.groupby("country", sort=False).sum()
    np.testing.assert_allclose(added, countries, rtol=1e-9)
    np.testing.assert_allclose(countries.sum(), noisy[()].iloc[0], rtol=1e-9)


def test_a_row_of_no_possible_pair_is_left_out_as_in_words_and_diagnosis(people):
    query = dpf.margins(LEVELS, keys=REGIONS)
    table = people.dp.release(query, epsilon=1)[()]
    alone = people.dp.count(["country", "region"], keys=REGIONS, epsilon=1)
    rules = [one.dp.certificate.releases[0].query.left_out for one in (table, alone)]
    assert rules[0][-1] == rules[1][-1]
    lines = people.dp.diagnose(query)
    beside = people.dp.diagnose(dpf.count(["country", "region"], keys=REGIONS))
    pd.testing.assert_frame_equal(lines, beside)


def test_pairs_come_as_an_index_too_and_all_pairs_are_those_of_keys_by_column(people):
    index = pd.MultiIndex.from_frame(REGIONS)
    by_index = people.dp.plan(dpf.margins(LEVELS, keys=index), epsilon=1)
    by_frame = people.dp.plan(dpf.margins(LEVELS, keys=REGIONS), epsilon=1)
    pd.testing.assert_frame_equal(by_index.table, by_frame.table)
    keys = {"country": ["fr", "de"], "region": ["u", "v"]}
    product = pd.MultiIndex.from_product(keys.values(), names=list(keys)).to_frame(index=False)
    whole = people.dp.plan(dpf.margins(LEVELS, keys=product), epsilon=1)
    pd.testing.assert_frame_equal(
        whole.table, people.dp.plan(dpf.margins(LEVELS, keys=keys), epsilon=1).table
    )


def test_possible_pairs_err_less_than_all_pairs(people):
    def errors(keys, **spend):
        return people.dp.plan(dpf.margins(LEVELS, keys=keys), **spend).table["std_error"]

    both = {column: list(dict.fromkeys(REGIONS[column])) for column in REGIONS}
    for spend in ({"epsilon": 1}, {"mu": 1}):
        few, every = errors(REGIONS, **spend), errors(both, **spend)
        assert (few**2).sum() < 0.9 * (every**2).sum()


def test_each_cell_has_the_error_of_its_own(people):
    """A country of one region is measured twice, and errs less."""
    tables = people.dp.release(dpf.margins(LEVELS, keys=REGIONS), mu=1)
    errors = tables["country", "region"].dp.std_error["count"]
    assert errors["de", "x"] < 0.95 * errors["fr", "u"]
    assert tables["country",].dp.std_error["count"]["de"] == pytest.approx(errors["de", "x"])


def test_errors_of_sums_over_tables_are_known_and_a_file_keeps_them(people, tmp_path):
    """Regions of a country less the country are 0, without any error."""
    tables = people.dp.release(dpf.margins(LEVELS, keys=REGIONS), mu=1)
    regions, countries = tables["country", "region"], tables["country",]
    difference = dpf.combine(
        {("country", "region"): regions, ("country",): countries},
        {
            ("country", "region"): {("fr", "u"): 1, ("fr", "v"): 1, ("fr", "w"): 1},
            ("country",): {"fr": -1},
        },
    )
    assert abs(difference["estimate"].item()) < 1e-6
    assert difference["std_error"].item() < 1e-6
    regions.dp.write_csv(tmp_path / "regions.csv")
    read = dpf.read_csv(tmp_path / "regions.csv")
    pd.testing.assert_frame_equal(read.dp.interval(), regions.dp.interval())


def test_regions_added_up_have_the_intervals_of_their_country(people):
    query = dpf.margins(LEVELS, keys=REGIONS, n=dpf.count(), age=dpf.sum("age"))
    tables = people.dp.release(query, mu=1)
    countries = tables["country",].dp.interval()
    added = tables["country", "region"].dp.total("country")
    for name in ("n", "age"):
        for end in ("low", "high"):
            own = added[f"{name}_{end}"].reindex(countries.index)
            np.testing.assert_allclose(own, countries[f"{name}_{end}"], rtol=1e-6)
    of_all = tables["country", "region"].dp.total("country", margins=True).loc["All"]
    np.testing.assert_allclose(of_all[["n", "age"]], tables[()].iloc[0], rtol=1e-9)


@pytest.mark.parametrize("sampling", [False, True])
def test_means_have_the_intervals_of_their_own_noise(people, sampling):
    """Times the number of rows, they are about as wide as the noise of cells is."""
    query = dpf.margins(LEVELS, keys=REGIONS, n=dpf.count(), m=dpf.mean("age", sampling=sampling))
    regions = people.dp.release(query, mu=1)["country", "region"]
    ends = regions.dp.interval()
    width = (ends["m_high"] - ends["m_low"]) * regions["n"]
    errors = regions.dp.std_error["n"]
    np.testing.assert_allclose(width / width.iloc[0], errors / errors.iloc[0], rtol=0.1)
    if sampling:
        wider = regions.dp.interval(sampling=True)
        assert (wider["m_low"] < ends["m_low"]).all()


def test_too_many_sums_and_other_keys_are_refused(people):
    with pytest.raises(QueryError, match="leave other"):
        people.dp.plan(dpf.margins(LEVELS, keys=REGIONS, other={"country": "x"}), epsilon=1)
    pairs = pd.DataFrame({"country": np.arange(5_000) // 4, "region": np.arange(5_000)})
    with pytest.raises(QueryError, match="1,024 sums"):
        people.dp.plan(dpf.margins(LEVELS, keys=pairs), epsilon=1)
    with pytest.raises(QueryError, match="combinations"):
        people.dp.release(dpf.margins(LEVELS, keys=REGIONS), epsilon=1, denoise="consistent")
    with pytest.raises(QueryError, match="combinations"):
        dpf.consistent(people.dp.release(dpf.margins(LEVELS, keys=REGIONS), epsilon=1))


@pytest.fixture
def declared(people):
    facts = {("country", "region"): REGIONS, "sex": ["f", "m"]}
    made = people.assign(sex=np.where(people["age"] % 3, "f", "m"))
    made.dp.declare(privacy_unit=dpf.EACH_ROW, bounds={"age": (0, 99)}, keys=facts)
    return made


def test_declared_pairs_are_the_cells_of_every_query(declared):
    pairs = list(REGIONS.itertuples(index=False, name=None))
    rows = declared.merge(REGIONS)
    for by in (["country", "region"], ["region", "country"], ["sex", "country", "region"]):
        table = declared.dp.count(by, **NO_NOISE)
        truth = rows.groupby(by).size()
        assert table["count"].round().astype(int).to_dict() == truth.to_dict()
    of_country = declared.dp.count("country", **NO_NOISE)
    assert of_country.index.tolist() == ["fr", "de", "be"]
    levels = declared.dp.release(dpf.margins(LEVELS), epsilon=1)
    assert set(levels["country", "region"].index) == set(pairs)
    asked = dpf.margins(LEVELS, keys=REGIONS)
    errors = [
        declared.dp.plan(query, epsilon=1).table["std_error"]
        for query in (asked, dpf.margins(LEVELS))
    ]
    pd.testing.assert_series_equal(*errors)


def test_keys_of_a_call_take_the_place_of_declared_pairs(declared):
    table = declared.dp.count(["country", "region"], keys={"country": ["fr", "de"]}, epsilon=1)
    assert len(table) == 12
    histogram = declared.dp.release(
        dpf.histogram("age", [0, 50, 99], ["country", "region"]), epsilon=1
    )
    assert len(histogram) == 12


@pytest.mark.parametrize(
    "keys",
    [
        {("country", "zone"): REGIONS},
        {"country": REGIONS},
        {("country", "region"): pd.concat([REGIONS, REGIONS])},
        {("country", "region"): REGIONS.assign(region=None)},
        {("country", "region"): REGIONS[:0]},
    ],
)
def test_pairs_that_are_none_are_refused_where_they_are_declared(people, keys):
    with pytest.raises(DeclarationError, match="keys"):
        people.dp.declare(privacy_unit=dpf.EACH_ROW, keys=keys)

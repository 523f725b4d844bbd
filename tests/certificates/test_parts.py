"""Types and JSON Schema of certificates: they take all that are made, and nothing else."""

import copy

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from jsonschema import Draft202012Validator
from support.certifying import read_certificate, record_of

import dpframe as dpf
from dpframe import certificate_schema
from dpframe.certificates.certificate import FORMAT
from dpframe.denoising.methods import METHODS
from dpframe.errors import UnreadableCertificateError
from dpframe.privacy.selection import SELECT
from dpframe.strategies import MECHANISMS

ZONES = ["A", "B", "C"]
TRUTHS = pa.DataFrameSchema({"red": pa.Column(bool), "blue": pa.Column(bool)})
BINS = [-np.inf, 0, 3, 9, np.inf]
BUDGET = dpf.Budget(3, 1e-6)
VALIDATOR = Draft202012Validator(
    certificate_schema(), format_checker=Draft202012Validator.FORMAT_CHECKER
)


def trips(**declared):
    rows = np.arange(36)
    frame = pd.DataFrame(
        {
            "zone": pd.Series(np.array(ZONES)[rows % 3], dtype=object),
            "fare": rows * 0.5,
            "red": rows % 4 == 0,
            "blue": rows % 5 == 0,
            "who": rows // 3,
        }
    )
    frame.dp.declare(TRUTHS, keys={"zone": ZONES}, bounds={"fare": (0, 9)}, **declared)
    return frame


def one_frame(query, **given):
    spend = {name: given.pop(name) for name in SPENDS if name in given} or {"epsilon": 1}
    return dpf.release(trips(**given), query, **spend)


SPENDS = ("epsilon", "delta", "mu", "rho", "share", "mechanism", "denoise", "graph")
SUMS = dpf.sum(["red", "blue"], "zone")
COUNT = dpf.count("zone")
KNOWN = pd.Series([12.0, 12.0, 12.0], index=ZONES)
DAYS = pd.date_range("2020-01-01", periods=2, tz="Asia/Tokyo")
UNIT = {"privacy_unit": "who", "max_rows_per_group": 1, "max_groups": 2}
MADE = {
    "a count": lambda: one_frame(dpf.count()),
    "a count by group": lambda: one_frame(COUNT),
    "a count with a condition": lambda: one_frame(dpf.count(where="fare > 1 and zone == 'A'")),
    "a sum": lambda: one_frame(dpf.sum("fare", "zone")),
    "a mean": lambda: one_frame(dpf.mean("fare", "zone")),
    "a histogram": lambda: one_frame(dpf.histogram("fare", BINS, "zone")),
    "units": lambda: one_frame(dpf.units("zone"), **UNIT),
    "a variance": lambda: one_frame(dpf.var("fare", "zone")),
    "a deviation": lambda: one_frame(dpf.std("fare")),
    "a rate": lambda: one_frame(dpf.rate("fare > 1", "zone")),
    "an aggregate": lambda: one_frame(
        dpf.aggregate(
            "zone", n=dpf.count(where="red"), total=dpf.sum("fare"), fare=dpf.mean("fare")
        )
    ),
    "keys of the call": lambda: one_frame(dpf.count("zone", keys=["A"])),
    "keys of a schema": lambda: one_frame(dpf.count("red")),
    "keys of times": lambda: dpf.release(
        pd.DataFrame({"t": DAYS}), dpf.count("t", keys=DAYS), epsilon=1
    ),
    "keys of intervals": lambda: dpf.release(
        pd.DataFrame({"age": pd.interval_range(0, 3)}),
        dpf.count("age", keys=pd.interval_range(0, 3)),
        epsilon=1,
    ),
    "an odd label": lambda: dpf.release(
        pd.DataFrame({("a", 1): [1.0]}), dpf.sum([("a", 1)], bounds=(0, 1)), epsilon=1
    ),
    "a label that is None": lambda: dpf.release(
        pd.DataFrame([[1.0]], columns=pd.Index([None], dtype=object)),
        dpf.sum([None], bounds=(0, 1)),
        epsilon=1,
    ),
    "bounds of times": lambda: dpf.release(
        pd.DataFrame({"t": DAYS}), dpf.mean("t", bounds=tuple(DAYS)), epsilon=1
    ),
    "bounds of several types": lambda: one_frame(
        dpf.sum("fare", bounds=(np.float32(0.1), np.int64(2)))
    ),
    "the largest bounds": lambda: one_frame(dpf.sum("fare", bounds=(0, 10**100))),
    **{
        name: lambda name=name: one_frame(SUMS, mechanism=name, epsilon=0.9, delta=1e-6)
        for name in MECHANISMS
        if name not in ("correlated", "staircase")
    },
    "staircase": lambda: one_frame(
        dpf.sum("fare", bounds=(0, 9)), mechanism="staircase", epsilon=2
    ),
    "correlated": lambda: one_frame(SUMS, mechanism="correlated", mu=0.5),
    "shared by all bins": lambda: one_frame(
        dpf.histogram("fare", BINS), mechanism="correlated", mu=0.5, **UNIT
    ),
    "at most so many true": lambda: one_frame(dpf.sum(["red", "blue"], "zone", max_true=1), mu=0.5),
    "known rows": lambda: one_frame(dpf.sum(["red", "blue"], "zone", n=KNOWN), mu=0.5),
    "estimated rows": lambda: one_frame(dpf.sum(["red", "blue"], "zone", n=(KNOWN, 2)), mu=0.5),
    "weight of the rows": lambda: one_frame(
        dpf.sum(["red", "blue"], "zone", n_weight=0.5, objective="worst"), mu=0.5
    ),
    "a relation by replacement": lambda: one_frame(COUNT, neighboring="replace"),
    "nothing to hide": lambda: one_frame(dpf.count(), neighboring="replace"),
    "rows of a unit": lambda: one_frame(COUNT, privacy_unit="who", max_rows=2),
    "groups of a unit": lambda: one_frame(COUNT, **UNIT),
    "a mu": lambda: one_frame(COUNT, mu=0.3),
    "a rho": lambda: one_frame(COUNT, rho=0.1),
    "a share of a ledger": lambda: one_frame(COUNT, share=0.5, budget=BUDGET),
    "an epsilon of a ledger": lambda: one_frame(COUNT, epsilon=0.1, budget=dpf.Budget(1)),
    "counts that share noise": lambda: one_frame(
        {"zone": dpf.count("zone"), "red": dpf.count("red"), "n": dpf.count(), "s": SUMS},
        mechanism="box",
        epsilon=1,
        privacy_unit=dpf.EACH_ROW,
    )["zone"],
    "margins by sums of signs": lambda: one_frame(
        dpf.margins(["zone", "red"]), mechanism="box", epsilon=1
    )["zone", "red"],
    **{
        f"sums over bins, {window}": lambda window=window: one_frame(
            dpf.ranges("fare", 6, bounds=(0, 9), window=window), mechanism="gaussian", mu=0.5
        )
        for window in (None, 4, "expanding")
    },
    "several at once": lambda: one_frame({"some": COUNT, "total": dpf.count()})["total"],
    "denoised at once": lambda: one_frame(
        dpf.histogram("fare", range(20)), epsilon=1, denoise="auto"
    ),
    "denoised across columns": lambda: dpf.denoise(
        one_frame(dpf.sum(["red", "blue"])), "soft_threshold", across="columns"
    ),
    "denoised twice": lambda: dpf.denoise(
        dpf.denoise(one_frame(SUMS), "nonnegative", columns="red"), "whole", columns="blue"
    ),
    "denoised without noise": lambda: dpf.denoise(MADE["nothing to hide"](), "nonnegative"),
    **{
        f"denoised by {name}": lambda name=name: dpf.denoise(
            one_frame(COUNT), name, **OPTIONS.get(name, {})
        )
        for name in ("auto", *METHODS)
    },
}
OPTIONS = {
    "consistent": {"parents": [-1, 0, 0]},
    "james_stein": {"toward": "zero", "positive_part": True},
    "posterior": {"total": np.float64(36.5), "prior": {1: 2, 9: 1}},
    "tree_wavelets": {"graph": "ordered", "seed": 3},
    "trend_filter": {"graph": "ordered", "order": 1},
}


def objects(value, path=()):
    """Give each object of a record, with the way to it."""
    if isinstance(value, dict):
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list):
            yield from objects(inner, (*path, key))


def at(record, path):
    for key in path:
        record = record[key]
    return record


def is_taken(record):
    """Whether schema and reader take a record; they must agree on its form."""
    try:
        read = read_certificate(record).to_dict() == record
    except UnreadableCertificateError:
        read = False
    assert VALIDATOR.is_valid(record) == read
    return read


def test_the_schema_is_one():
    Draft202012Validator.check_schema(certificate_schema())
    schema = certificate_schema()
    assert schema["properties"]["format"]["const"] == FORMAT
    assert schema["$id"].endswith(f":{FORMAT}")
    schema["properties"].clear()
    assert certificate_schema()["properties"]


def test_every_field_says_what_it_answers():
    fields = [
        (name, field)
        for _, inner in objects(certificate_schema())
        if inner.get("type") == "object"  # not a condition on fields described elsewhere
        for name, field in inner.get("properties", {}).items()
    ]
    assert len(fields) > 50
    for name, field in fields:
        words = field["description"]
        assert words.endswith("."), name
        assert "  " not in words


def test_names_of_the_schema_are_those_of_the_library():
    schema = certificate_schema()
    kinds = "BlockNoisePart", "ThresholdPart", "MarginsPart", "TreePart", "SetPart"
    for kind in kinds:
        assert schema["$defs"][kind]["properties"]["name"]["enum"] == [*MECHANISMS]
    assert schema["$defs"]["SelectionPart"]["properties"]["name"]["const"] == SELECT
    asked = schema["$defs"]["DenoiseDefinition"]["properties"]["asked"]["enum"]
    assert asked == ["auto", *METHODS]


@pytest.mark.parametrize(
    "change",
    [
        {"weights": [[1.0] * 5]},
        {"weights": [[1.0] * 5 + [1e300]]},
        {"weights": [[1.0] * 5 + [0.0]]},
        {"sizes": [385], "weights": [[1.0] * 385]},
        {"tau": {"0": [1.0, 1.0]}},
        {"window": 0},
    ],
    ids=["few", "huge", "zero", "many", "layers", "window"],
)
def test_weights_of_children_are_few_and_near_1(change):
    record = record_of(MADE["sums over bins, 4"]())
    one(record)["mechanism"].update(change)
    with pytest.raises(UnreadableCertificateError):
        read_certificate(record)


def one(record):
    """Give what is said about the only release."""
    (release,) = record["releases"]
    return release


def values(record):
    """Give what is said about the column that was summed."""
    return one(record)["columns"][0]["columns"][0]


def total(record):
    """Give what is said about its total."""
    return one(record)["columns"][0]["features"]["value"]


@pytest.fixture(scope="module")
def full():
    """Make a certificate with something in each of its parts."""
    frame = trips(budget=dpf.Budget(5, 1e-6), **UNIT)
    released = frame.dp.release(
        {"zones": dpf.sum(["red", "blue"], "zone", n=(KNOWN, 2)), "all": dpf.count()},
        share=0.5,
        mechanism="correlated",
    )["zones"]
    record = dpf.denoise(released, "posterior", columns="red", total=9).dp.certificate.to_dict()
    one(record)["columns"][0]["noise"] = {"scale": 2.0, "step": 1.0, "members": 1}
    one(record)["mechanism"]["groups"] = [["0", "1"]]
    assert is_taken(record)
    return record


def test_every_part_is_required_and_no_other_allowed(full):
    free = {
        "features",
        "loadings",
        "scales",
        "options",
        "chosen",
        "tried",
        "tried_absolute",
        "moves",
        "columns",
        "levels",
        "keys",
        "units",
    }  # names are not known beforehand
    tried = 0
    for path, inner in objects(full):
        if path and path[-1] in free and path[2:4] != ("query", "options"):
            continue
        for key in inner:
            spoiled = copy.deepcopy(full)
            del at(spoiled, path)[key]
            assert not is_taken(spoiled), f"without {key} in {path}"
            tried += 1
        spoiled = copy.deepcopy(full)
        at(spoiled, path)["more"] = 1
        assert not is_taken(spoiled), f"with more in {path}"
    assert tried > 60


def definition(record):
    """Give how the last column was computed."""
    return record["table"]["columns"][-1]["definition"]


SPOILED = {
    "another format": lambda r: r.update(format=FORMAT + 1),
    "another library": lambda r: one(r).update(library="other 1.0"),
    "an identifier too short": lambda r: one(r).update(release_id="12"),
    "a time of another zone": lambda r: one(r).update(released_at="2026-01-01T00:00:00+09:00"),
    "another relation": lambda r: one(r).update(neighboring="zero_out"),
    "a cap of none": lambda r: one(r)["privacy_unit"]["caps"].update(max_rows_per_group=0),
    "keys from the data": lambda r: one(r)["query"]["by"][0].update(source="data"),
    "a fraction of a cell": lambda r: one(r)["query"].update(cells=2.5),
    "another objective": lambda r: one(r)["query"]["options"].update(objective="best"),
    "a negative variance": lambda r: one(r)["query"]["options"]["n"].update(variance=-1),
    "another kind": lambda r: one(r)["columns"][0].update(kind="median"),
    "one bound": lambda r: values(r).update(bounds=[0]),
    "a bound that is missing": lambda r: values(r).update(bounds=[0, None]),
    "times without an origin": lambda r: values(r).update(bounds={"counted": "in seconds"}),
    "a sum without bounds": lambda r: values(r).update(bounds=None),
    "bounds of times without times": lambda r: values(r).update(bounds=["0 s", "1 s"]),
    "a negative error": lambda r: one(r)["columns"][0].update(std_error=-1.0),
    "an error that is text": lambda r: one(r)["columns"][0].update(std_error="1"),
    "a block with a name": lambda r: total(r).update(loadings={"first": 1.0}),
    "no loadings": lambda r: total(r).update(loadings={}),
    "a loading that is no base64": lambda r: total(r).update(loadings={"0": {"float64": "?"}}),
    "a negative scale": lambda r: one(r)["columns"][0]["noise"].update(scale=-1),
    "no step": lambda r: one(r)["columns"][0]["noise"].update(step=0),
    "another mechanism": lambda r: one(r)["mechanism"].update(name="geometric"),
    "a negative epsilon": lambda r: one(r)["privacy_loss"].update(epsilon=-0.1),
    "a delta of one": lambda r: one(r)["privacy_loss"].update(delta=1),
    "no mu": lambda r: one(r)["privacy_loss"].update(mu=None),
    "a truth that is a number": lambda r: one(r)["privacy_loss"].update(joint="no"),
    "a budget without bounds": lambda r: one(r)["ledger"]["budget"].update(epsilon=None),
    "nothing spent": lambda r: one(r)["ledger"].update(used=None),
    "another call": lambda r: definition(r).update(call="round"),
    "another method": lambda r: definition(r).update(asked="magic"),
    "no members": lambda r: definition(r).update(members=[]),
    "an option that is a list": lambda r: definition(r).update(options={"total": [1]}),
    "another dtype": lambda r: r["table"]["columns"][0].update(dtype="S99999999"),
    "a column of no text": lambda r: r["table"]["columns"][0].update(label=7),
    "another salt": lambda r: r["table"].update(salt="x"),
    "another digest": lambda r: r.update(digest="md5:0"),
}
TORN = {
    "no caps on a unit": lambda r: one(r)["privacy_unit"]["caps"].update(
        max_rows=None, max_rows_per_group=None
    ),
    "caps of a row": lambda r: one(r)["privacy_unit"].update(columns=[]),
    "another law": lambda r: one(r)["mechanism"].update(law="laplace"),
    "Laplace noise of another law": lambda r: one(r)["mechanism"].update(name="laplace"),
    "an epsilon without delta": lambda r: one(r)["privacy_loss"].update(delta=None),
    "a delta without epsilon": lambda r: one(r)["privacy_loss"].update(epsilon=None),
    "no columns": lambda r: one(r).update(columns=[]),
    "a count of a column": lambda r: one(r)["columns"][0].update(kind="count"),
    "a mean of a sum": lambda r: one(r)["columns"][0].update(kind="mean"),
    "a covariance of one column": lambda r: one(r)["columns"][0].update(kind="cov"),
    "a sum with a condition": lambda r: one(r)["columns"][0].update(condition="x > 3"),
    "a sum read off a total": lambda r: total(r).update(total=3.0),
    "a lower bound above": lambda r: values(r).update(clipped=[2.0, 1.0]),
    "bounds beyond all floats": lambda r: values(r).update(bounds=[0, 10**400]),
}


@pytest.mark.parametrize("name", SPOILED)
def test_spoiled_certificates_are_rejected(name, full):
    record = copy.deepcopy(full)
    SPOILED[name](record)
    assert record != full
    assert not is_taken(record)


@pytest.mark.parametrize("name", TORN)
def test_fields_that_do_not_go_together_are_rejected(name, full):
    record = copy.deepcopy(full)
    TORN[name](record)
    VALIDATOR.validate(record)  # each field for itself is well formed
    with pytest.raises(
        UnreadableCertificateError, match=r"columns\.0|columns but|mechanism|privacy_"
    ):
        read_certificate(record)

"""The language of `where=`: what it reads, what it refuses, and how it spells things."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.raising import raises

from dpframe.errors import QueryError
from dpframe.queries.where import (
    All,
    Any,
    Arithmetic,
    Compare,
    Condition,
    Constant,
    Membership,
    Name,
    Negative,
    Not,
)

FARE, ZONE = Name("fare"), Name("zone")
DEAR = Compare(">", FARE, Constant(10.0))
IN_A = Compare("==", ZONE, Constant("A"))

READ = {
    "fare > 10": DEAR,
    "fare": FARE,
    "10 < fare": Compare("<", Constant(10.0), FARE),
    "fare != 10": Not(Compare("==", FARE, Constant(10.0))),
    "0 < fare <= 10": All((Compare("<", Constant(0.0), FARE), Compare("<=", FARE, Constant(10.0)))),
    "fare > 10 and zone == 'A' or fare": Any((All((DEAR, IN_A)), FARE)),
    "(fare > 10) & (zone == 'A') | ~fare": Any((All((DEAR, IN_A)), Not(FARE))),
    "not fare > 10": Not(DEAR),
    "zone in ['A', 3, -1.5, True]": Membership(ZONE, ("A", 3.0, -1.5, 1.0)),
    "zone not in ('A',)": Not(Membership(ZONE, ("A",))),
    "zone in {'A'}": Membership(ZONE, ("A",)),
    "zone in []": Membership(ZONE, ()),
    "flag == True": Compare("==", Name("flag"), Constant(1.0)),
    "-fare + 2 > +1": Compare(">", Arithmetic("+", Negative(FARE), Constant(2.0)), Constant(1.0)),
    "fare % 2 == 1": Compare("==", Arithmetic("%", FARE, Constant(2.0)), Constant(1.0)),
    "`pick up` > 10": Compare(">", Name("pick up"), Constant(10.0)),
    "`class` == 'A`B`'": Compare("==", Name("class"), Constant("A`B`")),
    "`True` > 10": Compare(">", Name("True"), Constant(10.0)),
    "`it's` > `fare`": Compare(">", Name("it's"), FARE),
    "not`fare`": Not(FARE),
    "label0 > `a b`": Compare(">", Name("label0"), Name("a b")),
    "True": All(()),
    "False": Any(()),
    "fare > 10 and (zone == 'A' and fare)": All((DEAR, IN_A, FARE)),
    "\n  fare > 10  # it's dear\n  and zone == 'A'\n": All((DEAR, IN_A)),
    "zone == '''A''' '#`'": Compare("==", ZONE, Constant("A#`")),
}

REFUSED = {
    "fare.mean() > 3": "call",
    "abs(fare) > 3": "call",
    "df.fare > 3": "attribute",
    "fare[0] > 3": "subscript",
    "(lambda: 1) == fare": "function",
    "[x for x in fare] == 3": "comprehension",
    "fare in [x for x in zone]": "stands right of 'in'",
    "(fare := 3) > 2": "assignment",
    "f'{fare}' == 'A'": "f-string",
    "(3 if fare else 4) > 2": "choice",
    "fare = 3": "not a condition",
    "fare > @limit": "value into the text",
    "fare is None": "'is'",
    "fare == None": "a == a",
    "fare > ...": "not part",
    "fare > 1j": "not part",
    "zone == b'A'": "not part",
    "fare @ 2 > 1": "not part",
    "fare << 2 > 1": "not part",
    "fare ^ zone": "true nor false",
    "zone in 'ABC'": "list of constants",
    "zone in zones": "list of constants",
    "zone in [fare]": "constants there",
    "zone in [['A']]": "not part",
    "3 in [3]": "looked for",
    "zone + 'A' == 'BA'": "arithmetic",
    "-'A' == zone": "arithmetic",
    "'A' == 'B'": "not a column",
    "fare + 1 == 'A'": "not a column",
    "'A'": "true nor false",
    "3": "true nor false",
    "fare + 1": "true nor false",
    "fare > 0 & fare < 10": "parentheses",
    "~fare > 0": "parentheses",
    "(fare > 0) == True": "parentheses",
    "fare > 0 or": "not a condition",
    "`` > 0": "not a condition",
    "`fare > 0": "not a condition",
    "fare > 0; 1": "not a condition",
    "import os": "not a condition",
    "fare > 0\0": "not a condition",
    "*fare": "not a condition",
    "(yield fare)": "not part",
    "zone == '\\ud800'": "Unicode",
    "zone == '\ud800'": "not a condition",
    "fare > 1" + "0" * 400: "range of floats",
    "fare > 0x" + "f" * 300: "range of floats",
    "fare > 0x" + "f" * 9000: "range of floats",
    "fare.mean(0x" + "f" * 9000 + ")": "call",
    "fare > " + "9" * 5000: "not a condition",
    "": "empty",
    " \n": "empty",
    "fare > 0 and " * 800 + "fare > 0": "10000 characters",
}


@pytest.mark.parametrize("text", READ)
def test_reads(text):
    assert Condition.parse(text).root == READ[text]


@pytest.mark.parametrize("text", REFUSED)
def test_refuses_with_a_reason_and_no_noise(text):
    with pytest.raises(QueryError) as caught:
        Condition.parse(text)
    assert REFUSED[text] in str(caught.value)
    assert len(str(caught.value)) < 600
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("what", [None, 3, True, lambda row: row, ["fare > 0"]])
def test_refuses_anything_but_text(what):
    with raises(QueryError, "other rows", parameter="where"):
        Condition.parse(what)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 4000 + "fare" + ")" * 4000,
        "not " * 2000 + "fare",
        "-" * 9000 + "fare > 0",
        "fare" + " + fare" * 1000 + " > 0",
        "fare > 0" + " | (fare > 0)" * 500,
        "[" * 4000,
        "'''a\\" * 2000,
        "`" * 9999,
    ],
    ids=lambda text: text[:8],
)
def test_refuses_depth_without_exhausting_the_stack(text):
    with pytest.raises(QueryError):
        Condition.parse(text)


def test_does_not_fold_powers():
    power = Condition.parse("fare < 9**9**2").root.right
    assert power.left == Constant(9.0)
    assert power.operator == "**"
    assert power.right.operator == "**"


@pytest.mark.parametrize("text", READ)
def test_parses_its_own_spelling(text):
    condition = Condition.parse(text)
    assert Condition.parse(condition.text) == condition
    assert hash(Condition.parse(condition.text)) == hash(condition)
    assert pickle.loads(pickle.dumps(condition)) == condition  # noqa: S301


@given(st.text(alphabet=st.characters(exclude_characters="`"), min_size=1), st.text())
def test_any_label_in_backticks_and_any_text_survive(label, text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    condition = Condition.parse(f"`{label}` == {text!r}")
    assert condition.root == Compare("==", Name(label), Constant(text))
    assert condition.columns == (label,)
    assert Condition.parse(condition.text) == condition


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        condition = Condition.parse(text)
    except QueryError:
        return
    assert Condition.parse(condition.text) == condition


def test_spells_and_names_columns_in_order():
    condition = Condition.parse("(b>0)  &  (`a b`+b < `c`)")
    assert condition.text == "(b > 0) & (`a b` + b < c)"
    assert condition.columns == ("b", "a b", "c")


def test_all_of_joins():
    either, both = Condition.parse("b > 0 or c"), Condition.parse("a & (c > 1)")
    joined = Condition.all_of(None, either, both)
    assert joined.columns == ("b", "c", "a")
    assert joined.root == All((either.root, *both.root.parts))
    assert Condition.parse(joined.text) == joined

"""Mistakes in declarations, budgets and amounts: each is answered briefly, with a way out."""

import pytest
from support.mistakes import complaints_of, mistake

from dpframe.errors import (
    AlreadyReleasedError,
    BudgetExceededError,
    CalibrationError,
    CallError,
    DeclarationError,
    DPFrameWarning,
    LedgerError,
    QueryError,
    UnknownColumnError,
)

AMOUNTS = [
    mistake('df.dp.count("ward")', CalibrationError, "epsilon=, mu=, rho= or share="),
    mistake('df.dp.release(dpf.count("ward"))', CalibrationError, "epsilon=, mu=, rho= or share="),
    mistake("df.dp.release(dpf.count(), epsilon=1, mu=1)", CalibrationError, "exactly one way"),
    mistake("df.dp.count(epsilon=1, share=0.1)", CalibrationError, "exactly one way"),
    mistake("df.dp.count(delta=1e-6)", CalibrationError, "exactly one way"),
    mistake(
        "df.dp.release(dpf.count(), mu=1, delta=1e-6)",
        CalibrationError,
        "epsilon=",
        parameter="delta",
    ),
    mistake('df.dp.count(epsilon="a lot")', CalibrationError, "number", parameter="epsilon"),
    mistake('df.dp.count(epsilon="1,5")', CalibrationError, "number", parameter="epsilon"),
    mistake('df.dp.count(epsilon="50%")', CalibrationError, "number", parameter="epsilon"),
    mistake("df.dp.count(epsilon=[1])", CalibrationError, "number", parameter="epsilon"),
    mistake("df.dp.count(epsilon=True)", CalibrationError, "number", parameter="epsilon"),
    mistake("df.dp.count(epsilon=-1)", CalibrationError, ">= 0", parameter="epsilon", label=-1),
    mistake('df.dp.count(epsilon=float("nan"))', CalibrationError, "finite", parameter="epsilon"),
    mistake('df.dp.count(epsilon=float("inf"))', CalibrationError, "finite", parameter="epsilon"),
    mistake("df.dp.count(epsilon=0)", CalibrationError, "> 0", parameter="epsilon", label=0),
    mistake("df.dp.count(share=50)", CalibrationError, "0.5", parameter="share", label=50),
    mistake("df.dp.count(share=0)", CalibrationError, "(0, 1]", parameter="share", label=0),
    mistake('df.dp.count(share="1/0")', CalibrationError, "number", parameter="share"),
    mistake("df.dp.count(epsilon=1, delta=2)", CalibrationError, "1e-6", parameter="delta"),
    mistake("df.dp.count(epsilon=1, delta=-1e-6)", CalibrationError, "[0, 1)", parameter="delta"),
    mistake("df.dp.count(epsilon=50)", DPFrameWarning, "epsilon <= 10"),
    mistake(
        'df.dp.count(epsilon=1, mechanism="gausian")',
        CalibrationError,
        "'gaussian'",
        parameter="mechanism",
        label="gausian",
    ),
    mistake(
        'df.dp.count(epsilon=1, mechanism="Laplace")',
        CalibrationError,
        "'laplace'",
        parameter="mechanism",
    ),
    mistake(
        'df.dp.count(epsilon=1, mechanism="exponential")',
        CalibrationError,
        "one of",
        parameter="mechanism",
    ),
    mistake(
        'df.dp.count(epsilon=1, delta=0, mechanism="gaussian")',
        CalibrationError,
        '"laplace"',
        parameter="delta",
    ),
    mistake(
        'df.dp.count(epsilon=1, mechanism="select")',
        CalibrationError,
        ".dp.quantile(",
        parameter="mechanism",
    ),
    mistake('df.dp.count(epsilon=1, denoise="magic")', QueryError, "'auto'", parameter="denoise"),
    mistake(
        'df.dp.release(dpf.count(), epsilon=1, graph="grid")',
        QueryError,
        "denoise=",
        parameter="graph",
    ),
    mistake("df.dp.count(epsilon=1, name=7)", DeclarationError, "text", parameter="name", label=7),
    mistake('df.dp.count(epsilon=1, note=["a"])', DeclarationError, "text", parameter="note"),
    mistake(
        'df.dp.count(epsilon=1, privacy_unit="person")',
        DeclarationError,
        ".dp.declare(",
        parameter="privacy_unit",
    ),
    mistake(
        "df.dp.count(epsilon=1, privacy_unit=dpf.EACH_ROW)",
        DeclarationError,
        "Leave it out",
        parameter="privacy_unit",
    ),
    mistake(
        "raw.dp.count(share=0.1, privacy_unit=dpf.EACH_ROW)",
        CalibrationError,
        "budget=",
        parameter="share",
    ),
    mistake("dpf.Budget(epsilon=-1)", CalibrationError, ">= 0", parameter="epsilon"),
    mistake("dpf.Budget(epsilon=0)", CalibrationError, "Give one of them > 0", parameter="epsilon"),
    mistake("dpf.Budget(1, delta=2)", CalibrationError, "1e-6", parameter="delta"),
    mistake("dpf.Budget(delta=1e-6)", CallError, "needs epsilon", parameter="epsilon"),
    mistake("dpf.Budget(eps=1)", CallError, "'epsilon'", parameter="eps"),
    mistake(
        "dpf.Budget(1, 1e-6, discovery=1e-3)", CalibrationError, "delta", parameter="discovery"
    ),
]

BUDGETS = [
    mistake(
        "df.dp.count(epsilon=6); df.dp.count(epsilon=6)",
        BudgetExceededError,
        "twice",
        never=("larger budget",),
        parameter="epsilon",
    ),
    mistake(
        "df.dp.count(share=0.6); df.dp.count(share=0.6)",
        BudgetExceededError,
        "twice",
        never=("larger budget",),
        parameter="share",
    ),
    mistake(
        'df.dp.count(share=1); df.dp.mean("stay", epsilon=0.1)',
        BudgetExceededError,
        "Left",
        "Run twice?",
        never=("larger budget", "Spend less"),
        parameter="epsilon",
    ),
    mistake(
        "raw.dp.declare(budget=dpf.Budget(1), **facts); raw.dp.count(epsilon=2)",
        BudgetExceededError,
        "Left",
        never=("larger budget", "twice"),
        parameter="epsilon",
    ),
    mistake(
        "raw.dp.declare(budget=dpf.Budget(1, 1e-6), **facts); "
        'raw.dp.discover("ward", max_groups=1, epsilon=0.5)',
        BudgetExceededError,
        "discovery=",
        parameter="discovery",
    ),
    mistake(
        'df.dp.discover("ward", max_groups=1, discovery=1e-5, epsilon=1)',
        BudgetExceededError,
        "discovery=1e-07",
        parameter="discovery",
    ),
    mistake(
        'df.dp.count(epsilon=1, name="may"); df.dp.count(epsilon=1, name="may")',
        AlreadyReleasedError,
        "another name",
        parameter="name",
        label="may",
    ),
    mistake("raw.dp.budget", DeclarationError, "budget=", parameter="budget"),
    mistake("raw.dp.declare(budget=1)", DeclarationError, "dpf.Budget(", parameter="budget"),
    mistake('raw.dp.declare(budget={"epsilon": 1})', DeclarationError, "dpf.Budget("),
    mistake(
        'raw.dp.declare(ledger="a.ledger")', DeclarationError, "dpf.Ledger(", parameter="ledger"
    ),
    mistake(
        "raw.dp.declare(budget=dpf.Budget(1), ledger=df.dp.ledger)",
        DeclarationError,
        "not both",
        parameter="budget",
    ),
    mistake("dpf.Ledger()", DeclarationError, "dpf.Budget(", parameter="budget"),
    mistake("dpf.Ledger(7)", DeclarationError, "path", parameter="path"),
    mistake('dpf.Ledger(tmp / "a.ledger")', LedgerError, "dpf.Ledger.create(", parameter="path"),
    mistake(
        'dpf.Ledger.create(tmp / "no" / "a.ledger", budget=dpf.Budget(1))',
        LedgerError,
        "folder",
        parameter="path",
    ),
    mistake(
        'for _ in range(2): dpf.Ledger.create(tmp / "a.ledger", budget=dpf.Budget(1))',
        LedgerError,
        "dpf.Ledger(path)",
        parameter="path",
    ),
    mistake(
        'dpf.Ledger.create(tmp / "a.ledger", budget=dpf.Budget(1)); '
        'dpf.Ledger(tmp / "a.ledger", budget=dpf.Budget(5))',
        DeclarationError,
        "Leave budget= out",
        parameter="budget",
    ),
    mistake('dpf.Ledger.create(tmp / "a.ledger")', CallError, "budget=", parameter="budget"),
    mistake('raw.to_csv(tmp / "a.csv"); dpf.Ledger(tmp / "a.csv")', LedgerError, "not a ledger"),
    mistake("df.dp.ledger.charge(1)", DeclarationError, "by themselves", parameter="entry"),
]

DECLARATIONS = [
    mistake(
        'raw.dp.declare(privacy_unit="person")',
        DeclarationError,
        "max_rows=",
        parameter="privacy_unit",
    ),
    mistake(
        'raw.dp.declare(privacy_unit="persn", max_rows=2)',
        UnknownColumnError,
        "'person'",
        parameter="privacy_unit",
        label="persn",
    ),
    mistake("raw.dp.declare(max_rows=2)", DeclarationError, "privacy_unit=", parameter="max_rows"),
    *(
        mistake(
            f'raw.dp.declare(privacy_unit="person", max_rows={given!r})',
            DeclarationError,
            "whole number",
            parameter="max_rows",
            label=given,
        )
        for given in (0, "2", 2.5)
    ),
    mistake(
        'raw.dp.declare(privacy_unit=("person", "ward"), max_rows=2)',
        UnknownColumnError,
        "['person', 'ward']",
        parameter="privacy_unit",
        label=("person", "ward"),
    ),
    mistake(
        'raw.dp.declare(privacy_unit=["person", "person"], max_rows=2)',
        DeclarationError,
        "twice",
        parameter="privacy_unit",
    ),
    mistake(
        'raw.dp.declare(privacy_unit="person", max_rows=2, neighboring="swap")',
        DeclarationError,
        '"replace"',
        parameter="neighboring",
        label="swap",
    ),
    mistake('raw.dp.declare(unit="patient")', DeclarationError, "privacy_unit=", parameter="unit"),
    mistake(
        'raw.dp.declare(bounds={"stay": (10, 0)})',
        DeclarationError,
        "Swap",
        parameter="bounds",
        label="stay",
    ),
    *(
        mistake(
            f'raw.dp.declare(bounds={{"stay": {given}}})',
            DeclarationError,
            "finite",
            parameter="bounds",
            label="stay",
        )
        for given in ("10", "(0, None)", '("0", "10")', '(0, float("inf"))', "(0, 5, 10)")
    ),
    mistake("raw.dp.declare(bounds=(0, 10))", DeclarationError, "dict", parameter="bounds"),
    mistake(
        'raw.dp.declare(bounds={"saty": (0, 10)})',
        UnknownColumnError,
        "'stay'",
        parameter="bounds",
        label="saty",
    ),
    mistake(
        'raw.dp.declare(keys={"wrad": ["A"]})',
        UnknownColumnError,
        "'ward'",
        parameter="keys",
        label="wrad",
    ),
    *(
        mistake(
            f'raw.dp.declare(keys={{"ward": {given}}})',
            DeclarationError,
            word,
            parameter="keys",
            label="ward",
        )
        for given, word in {
            '["A", "A"]': "unique",
            '"ABC"': "list",
            "[]": "at least one",
            '["A", None]': "missing",
            '[["A"]]': "hashable",
            '{"A", "B"}': "sorted(",
        }.items()
    ),
    mistake('raw.dp.declare(keys=["A", "B"])', DeclarationError, "dict", parameter="keys"),
    mistake(
        'df.dp.declare(keys={"ward": df.ward}, privacy_unit="person", max_rows=2)',
        DeclarationError,
        ".dp.discover",
        parameter="keys",
    ),
    mistake('raw.dp.declare(key={"ward": ["A"]})', CallError, "'keys'", parameter="key"),
    mistake('raw.dp.declare(missing="drop")', DeclarationError, "dict", parameter="missing"),
    mistake(
        'raw.dp.declare(missing={"ward": "Z"})',
        DeclarationError,
        "number",
        parameter="missing",
        label="ward",
    ),
    mistake(
        'raw.dp.declare({"ward": ["A"]})', DeclarationError, "bounds=, keys=", parameter="schema"
    ),
    mistake("raw.dp.declare(validate=True)", DeclarationError, "schema", parameter="validate"),
    mistake(
        'df.dp.declare(bounds={"stay": (0, 9)})',
        DeclarationError,
        "repeat what still holds",
        parameter="privacy_unit",
    ),
    mistake(
        'raw.dp.count("ward", epsilon=1, privacy_unit=dpf.EACH_ROW)',
        DeclarationError,
        "keys=",
        parameter="keys",
        label="ward",
    ),
    mistake(
        'raw.dp.mean("stay", epsilon=1, privacy_unit=dpf.EACH_ROW)',
        DeclarationError,
        "bounds=",
        parameter="bounds",
        label="stay",
    ),
    mistake('raw.dp.count("ward", keys=["A"], epsilon=1)', DPFrameWarning, "dpf.EACH_ROW"),
    mistake("raw.dp.count(max_rows=2, epsilon=1)", DeclarationError, ".dp.declare(privacy_unit="),
    mistake("raw.dp.suggest_caps(epsilon=1)", DeclarationError, ".dp.declare(privacy_unit="),
    mistake('df.dp.discover("ward", epsilon=1)', DeclarationError, "max_groups="),
]

ROWS = [*AMOUNTS, *BUDGETS, *DECLARATIONS]


def test_mistakes_are_each_there_once():
    assert len({row.code for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_a_mistake_is_answered(row, tmp_path):
    assert complaints_of(row, tmp_path) == []

"""Mistakes that analysts and authors of scripts make: each is answered briefly, with a way out.

A mistake is a line of code, and what its answer must have: the class of the error, the parameter,
the column or value that it is about, and a telling word of the way out. Whatever is wrong, the
message has at most 50 words, and the traceback of plain Python at most 15 lines.
"""

import linecache
import re
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.planning import planned
from support.raising import MOST_WORDS

import dpframe as dpf
from dpframe.errors import (
    AlreadyReleasedError,
    BudgetExceededError,
    CalibrationError,
    CallError,
    CertificateError,
    DeclarationError,
    DPFrameError,
    DPFrameWarning,
    LedgerError,
    NoSuchNameError,
    QueryError,
    UnknownColumnError,
)
from dpframe.jobs.commands import main

MOST_LINES = 15
_ANY = object()
_QUERIES = ("queries", "query")  # as functions and as methods call it


@dataclass(frozen=True, repr=False)
class Mistake:
    """Code that is wrong, and what the answer must have."""

    code: str
    kind: type[BaseException]
    words: tuple[str, ...]
    never: tuple[str, ...] = ()  # what would be a wrong advice
    parameter: object = _ANY
    label: object = _ANY  # the column, output or level, alone or as the value of the parameter

    def __repr__(self):
        return self.code

    def complaints(self, error):
        """List what is wrong with an answer."""
        if error is None:
            return ["there is no error"]
        text, found = str(error), []
        if not isinstance(error, self.kind):
            found.append(f"{type(error).__name__} in place of {self.kind.__name__}")
        found += [f"nothing about {word!r}" for word in self.words if word not in text]
        found += [f"says {word!r}" for word in self.never if word in text]
        if len(text.split()) > MOST_WORDS:
            found.append(f"{len(text.split())} words")
        names = self.parameter if isinstance(self.parameter, tuple) else (self.parameter,)
        if self.parameter is not _ANY and (given := _field(error, "parameter")) not in names:
            found.append(f"parameter={given!r} in place of {self.parameter!r}")
        labels = [_field(error, name) for name in ("label", "value")]
        if self.label is not _ANY and not any(_equal(one, self.label) for one in labels):
            found.append(f"label={labels[0]!r}, value={labels[1]!r} in place of {self.label!r}")
        lines = "".join(traceback.format_exception(error)).splitlines()
        if isinstance(error, DPFrameError | FileNotFoundError) and len(lines) > MOST_LINES:
            found.append(f"a traceback of {len(lines)} lines")
        return found


def _field(error, name):
    return getattr(error, name, None)


def _equal(one, other):
    return type(one) is type(other) and one == other


def mistake(code, kind, *words, **fields):
    return Mistake(code, kind, words, **fields)


HABITS = [  # what pandas has
    mistake('df.groupby("ward").dp.count(epsilon=1)', AttributeError, "by="),
    mistake('df["stay"].dp.mean(epsilon=1)', NoSuchNameError, "df.dp.mean("),
    mistake('df.loc[df.ward == "A", "stay"].dp', NoSuchNameError, "where="),
    mistake('df.groupby("ward").size().dp', NoSuchNameError, "frame"),
    mistake('df.dp["ward"]', TypeError, ".dp."),
    mistake('df.dp.groupby("ward")', NoSuchNameError, "by="),
    mistake('df.dp.value_counts("ward")', NoSuchNameError, ".dp.count(by="),
    mistake("df.dp.size()", NoSuchNameError, ".dp.count("),
    mistake('df.dp.nunique("person")', NoSuchNameError, ".dp.units("),
    mistake('df.dp.agg({"stay": "mean"})', NoSuchNameError, ".dp.aggregate("),
    mistake("df.dp.describe()", NoSuchNameError, ".dp.aggregate("),
    mistake('df.dp.query("stay > 3")', NoSuchNameError, "where="),
    mistake('df.dp.loc[df.ward == "A"]', NoSuchNameError, "where="),
    mistake('df.dp.max("stay")', NoSuchNameError, "not released", ".dp.quantile("),
    mistake('df.dp.percentile("stay", 50)', NoSuchNameError, ".dp.quantile("),
    mistake('df.dp.pivot_table("stay", "ward")', NoSuchNameError, "by="),
    mistake('df.dp.proportion("stay > 3")', NoSuchNameError, ".dp.rate("),
    mistake("df.dp.cuont(epsilon=1)", NoSuchNameError, ".dp.count"),
    mistake("df.dp.remaining", NoSuchNameError, ".dp.budget"),
    mistake('df[df.ward == "A"].dp.count(epsilon=1)', DeclarationError, "where="),
    mistake('df.query("stay > 3").dp.count(epsilon=1)', DeclarationError, "where="),
    mistake("df.head(3).dp.count(epsilon=1)", DeclarationError, "ledger="),
    mistake("df.copy().dp.count(epsilon=1)", DeclarationError, ".dp.declare("),
    mistake("df.dropna().dp.count(epsilon=1)", DeclarationError, "ledger="),
    mistake('df.assign(long=1).dp.count("long", epsilon=1)', DeclarationError, ".dp.declare("),
    mistake('df.rename(columns={"stay": "nights"}).dp.mean("nights", epsilon=1)', DeclarationError),
    mistake('df.set_index("ward").dp.count("ward", epsilon=1)', DeclarationError, "derived"),
    mistake("df.sample(5).dp.count(epsilon=1)", DeclarationError, "derived"),
    mistake("pd.concat([df, df]).dp.count(epsilon=1)", DeclarationError, "derived"),
    mistake("raw.merge(raw).dp.count(epsilon=1)", DPFrameWarning, "privacy_unit="),
    mistake(
        'del df["sex"]; df.dp.count("sex", epsilon=1)',
        UnknownColumnError,
        "no column",
        parameter="by",
        label="sex",
    ),
    mistake('dpf.groupby("ward")', NoSuchNameError, "dpframe has no"),
    mistake("dpf.read_parquet('visits.parquet')", NoSuchNameError, "pandas.read_parquet"),
]

CALLS = [  # which function takes what
    mistake('dpf.count(df, "ward")', CallError, "frame.dp.count("),
    mistake('dpf.mean(df, "stay")', CallError, "frame.dp.mean("),
    mistake('dpf.histogram(df, "stay", [0, 5])', CallError, "frame.dp.histogram("),
    mistake('dpf.rate(df, "stay > 3")', CallError, "frame.dp.rate("),
    mistake('dpf.aggregate(df, "ward", n=dpf.count())', CallError, "frame.dp.aggregate("),
    mistake('dpf.count(by="ward", frame=df)', CallError, "frame.dp.count("),
    mistake('dpf.discover(df, "ward", max_groups=1)', CallError, "frame.dp.discover("),
    mistake('dpf.suggest_caps(df, "ward")', CallError, "frame.dp.suggest_caps("),
    mistake('dpf.suggest_bounds(df, "stay")', CallError, "frame.dp.suggest_bounds("),
    mistake(
        "dpf.release(dpf.count(), df, epsilon=1)",
        DeclarationError,
        "frame must be",
        parameter="frame",
    ),
    mistake(
        "dpf.release('visits.csv', dpf.count(), epsilon=1)", DeclarationError, parameter="frame"
    ),
    mistake("dpf.declare(raw.ward, keys={})", DeclarationError, "DataFrame", parameter="frame"),
    mistake('dpf.release(df, "count", epsilon=1)', QueryError, "dpf.count(", parameter=_QUERIES),
    mistake("dpf.release(df, dpf.count, epsilon=1)", QueryError, "dpf.count(", parameter=_QUERIES),
    mistake("dpf.release(df, [dpf.count()], epsilon=1)", QueryError, "dict", parameter=_QUERIES),
    mistake("df.dp.release({}, epsilon=1)", QueryError, "one query or more", parameter=_QUERIES),
    mistake('df.dp.release({"n": 1}, epsilon=1)', QueryError, "'n'", parameter=_QUERIES),
    mistake(
        'df.dp.release({"n": dpf.count(), "w": dpf.discover("ward", max_groups=1)}, epsilon=1)',
        QueryError,
        "'w'",
        parameter=_QUERIES,
    ),
    mistake('df.dp.release(dpf.count(), epsilon=1, by="ward")', CallError, "query", parameter="by"),
    mistake(
        'df.dp.release(dpf.count(), epsilon=1, where="stay > 3")',
        CallError,
        "query",
        never=("'share'",),
        parameter="where",
    ),
    mistake('df.dp.preview("ward", epsilon=1)', QueryError, "dpf.count(", parameter=_QUERIES),
    mistake('df.dp.preview(dpf.count("ward"))', CalibrationError, "epsilon=, mu=, rho= or share="),
    mistake(
        "df.dp.preview(dpf.count(), epsilon=1, std_error=3)",
        CalibrationError,
        "one of them",
        parameter="std_error",
    ),
    mistake(
        'df.dp.preview(dpf.mean("stay", "ward"), std_error=1)',
        QueryError,
        "rows=100",
        parameter="rows",
    ),
    mistake(
        "df.dp.preview(dpf.count(), half_width=-1)", QueryError, "above 0", parameter="half_width"
    ),
    mistake(
        'df.dp.preview(dpf.count(), std_error={"cuont": 3})',
        QueryError,
        "'count'",
        parameter="std_error",
    ),
    mistake("df.dp.preview(dpf.count(), epsilon=1, rows=-5)", QueryError, "rows", parameter="rows"),
    mistake('df.dp.count("ward", "year", epsilon=1)', CallError, "by=['ward', 'year']"),
    mistake('df.dp.mean("stay", "ward", "sex", epsilon=1)', CallError, "by=['ward', 'sex']"),
    mistake('df.dp.count("ward", epsilom=1)', CallError, "'epsilon'", parameter="epsilom"),
    mistake('df.dp.count("ward", eps=1)', CallError, "'epsilon'", parameter="eps"),
    mistake('df.dp.count(groupby="ward", epsilon=1)', CallError, "'by'", parameter="groupby"),
    mistake('df.dp.count(filter="stay > 3", epsilon=1)', CallError, "'where'", parameter="filter"),
    mistake('df.dp.count("ward", epsilon=1, seed=7)', CallError, "no keyword", parameter="seed"),
    mistake('df.dp.count("ward", by="sex", epsilon=1)', CallError, "once", parameter="by"),
    mistake("df.dp.mean(epsilon=1)", CallError, "mean(columns)", parameter="columns"),
    mistake("df.dp.rate(epsilon=1)", CallError, "rate(condition)", parameter="condition"),
    mistake(
        'df.dp.histogram("stay", epsilon=1)',
        CallError,
        "histogram(column, bins)",
        never=("histogram(bins)",),
        parameter="bins",
    ),
    mistake('df.dp.aggregate({"stay": "mean"}, epsilon=1)', QueryError, "dpf.mean("),
    mistake(
        'df.dp.aggregate("ward", stay="mean", epsilon=1)', QueryError, "dpf.mean", parameter="stay"
    ),
    mistake(
        'df.dp.aggregate("ward", m=("stay", "mean"), epsilon=1)',
        QueryError,
        "dpf.mean(",
        parameter="m",
    ),
    mistake('df.dp.aggregate("ward", m="mean")', QueryError, "dpf.mean(", parameter="m"),
    mistake('df.dp.aggregate("ward", m=np.mean)', QueryError, "dpf.mean(", parameter="m"),
    mistake('df.dp.aggregate("ward", epsilon=1)', QueryError, "dpf.count()"),
    mistake('dpf.aggregate("ward", n=dpf.count)', QueryError, "dpf.count()", parameter="n"),
    mistake('dpf.aggregate("ward", n=dpf.count(keys=["A"]))', QueryError, "once", parameter="n"),
    mistake('dpf.aggregate("ward", epsilon=1)', QueryError, "release", parameter="epsilon"),
    mistake('dpf.aggregate("ward", ward=dpf.count())', QueryError, "level", label="ward"),
    mistake(
        'dpf.aggregate("ward", m=dpf.mean(["stay", "year"]))',
        QueryError,
        "single column",
        parameter="m",
    ),
    mistake(
        'dpf.aggregate("ward", h=dpf.histogram("stay", [0, 9]))',
        QueryError,
        "release({...})",
        parameter="h",
    ),
    mistake('dpf.margins("ward", ways=2)', QueryError, "list", parameter="columns"),
    mistake('dpf.margins(["ward", "sex"], ways=3)', QueryError, "2", parameter="ways"),
    mistake(
        'dpf.margins(["ward", "sex"], weights={("day",): 2})',
        QueryError,
        "none of",
        parameter="weights",
        label=("day",),
    ),
    mistake('dpf.margins(["ward", "ward"])', QueryError, "twice", parameter="columns"),
    mistake(
        'dpf.margins(["ward", "sex"], keys=["A"])', QueryError, "dict by column", parameter="keys"
    ),
]

OLD_NAMES = [  # what other versions and libraries call it
    mistake("table.dp.with_intervals()", NoSuchNameError, ".dp.interval(level, join=True)"),
    mistake('table.dp.with_percent("n")', NoSuchNameError, ".dp.percent(", "join=True"),
    mistake("spread.dp.quantiles([0.5])", NoSuchNameError, ".dp.quantile("),
    mistake('df.dp.median("stay", epsilon=1)', NoSuchNameError, ".dp.quantile(", "0.5"),
    mistake('table.dp.write_excel("wards.xlsx")', NoSuchNameError, "join=True).to_excel(path)"),
    mistake('dpf.to_excel(table, "wards.xlsx")', NoSuchNameError, "join=True).to_excel(path)"),
    mistake(
        'dpf.aggregate(by="ward", med=dpf.quantile("stay", 0.5))',
        QueryError,
        "release({'med': dpf.quantile('column', 0.5, by=...)",
        parameter="med",
    ),
    mistake(
        "df.dp.preview(dpf.count(), max_rows=1, seed=7)",
        CallError,
        "'max_rows'",
        "Nor has it 'seed'.",
        parameter="max_rows",
    ),
    mistake(
        'df.dp.count("ward", keys=["A", None], epsilon=1)',
        DeclarationError,
        "do not take them from the data",
        parameter="keys",
    ),
    mistake("table.dp.denoised()", NoSuchNameError, ".dp.denoise"),
    mistake("table.dp.denoising", NoSuchNameError, "certificate.denoising"),
    mistake("table.dp.schema()", NoSuchNameError, "dpf.schema("),
    mistake("table.dp.replay(table)", NoSuchNameError, "dpf.replay("),
    mistake('df.dp.preview_suggest_caps("ward", epsilon=1)', NoSuchNameError, ".dp.preview("),
    mistake('df.dp.preview_discover("ward", epsilon=1)', NoSuchNameError, "dpf.discover("),
    mistake('dpf.preview_discover(df, "ward")', NoSuchNameError, "preview(dpf.discover("),
    mistake("dpf.with_intervals(table)", NoSuchNameError, "interval", "join=True"),
    mistake("dpf.quantiles(spread)", NoSuchNameError, "dpf.quantile"),
    mistake('dpf.median("stay")', NoSuchNameError, "dpf.quantile(column, 0.5)", never=(".median",)),
    mistake("dpf.denoised(table)", NoSuchNameError, "dpf.denoise"),
    mistake("dpf.denoising_report(table)", NoSuchNameError, "certificate.denoising"),
    mistake("dpf.schema_of(table)", NoSuchNameError, "dpf.schema"),
    mistake("dpf.std_error(table)", NoSuchNameError, ".dp.std_error"),
    mistake("dpf.best(table)", NoSuchNameError, ".dp.best"),
    mistake("dpf.Concatenation", NoSuchNameError, "dpf.concat"),
    mistake("table.dp.intervall()", NoSuchNameError, ".dp.interval"),
    mistake("table.dp.ci(0.95)", NoSuchNameError, ".dp.interval("),
    mistake("table.dp.nope", NoSuchNameError, "It has", "interval"),
    mistake('table.dp.drop(columns="n")', NoSuchNameError, ".dp.select("),
    mistake('table.dp.nlargest(3, "n")', NoSuchNameError, ".dp.head("),
    mistake("table.dp.merge(grid)", NoSuchNameError, "dpf.concat("),
    mistake('table.dp.to_csv("a.csv")', NoSuchNameError, ".dp.write_csv("),
]

AMOUNTS = [
    mistake('df.dp.count("ward")', CalibrationError, "epsilon=, mu=, rho= or share="),
    mistake('df.dp.release(dpf.count("ward"))', CalibrationError, "epsilon=, mu=, rho= or share="),
    mistake("df.dp.count(epsilon=1, mu=1)", CalibrationError, "exactly one way"),
    mistake("df.dp.count(epsilon=1, share=0.1)", CalibrationError, "exactly one way"),
    mistake("df.dp.count(delta=1e-6)", CalibrationError, "exactly one way"),
    mistake("df.dp.count(mu=1, delta=1e-6)", CalibrationError, "epsilon=", parameter="delta"),
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
    mistake('df.dp.count(epsilon=1, graph="grid")', QueryError, "denoise=", parameter="graph"),
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

COLUMNS = [
    *(
        mistake(f"df.dp.{call}", UnknownColumnError, word, parameter=parameter, label=label)
        for call, parameter, label, word in [
            ('count("wrad", epsilon=1)', "by", "wrad", "'ward'"),
            ('count("Ward", epsilon=1)', "by", "Ward", "'ward'"),
            ("count(3, epsilon=1)", "by", 3, "It has"),
            ('units("wrad", epsilon=1)', "by", "wrad", "'ward'"),
            ('mean("saty", epsilon=1)', "columns", "saty", "'stay'"),
            ('sum(["stay", "saty"], epsilon=1)', "columns", "saty", "'stay'"),
            ('histogram("saty", [0, 1], epsilon=1)', "column", "saty", "'stay'"),
            ('quantile("saty", 0.5, epsilon=1)', "column", "saty", "'stay'"),
            ('ranges("saty", 4, epsilon=1)', "column", "saty", "'stay'"),
            ('count(where="saty > 3", epsilon=1)', "where", "saty", "'stay'"),
            ('rate("saty > 3", epsilon=1)', "condition", "saty", "'stay'"),
            ('discover("wrad", max_groups=1, epsilon=1)', "by", "wrad", "'ward'"),
            ('margins(["ward", "sxe"], ways=1, epsilon=1)', "columns", "sxe", "'sex'"),
            ('suggest_caps("wrad", epsilon=1)', "by", "wrad", "'ward'"),
            ('suggest_bounds("saty", epsilon=1)', "column", "saty", "'stay'"),
            ('preview(dpf.count("wrad"), epsilon=1)', "by", "wrad", "'ward'"),
            ('diagnose(dpf.count("wrad"))', "by", "wrad", "'ward'"),
            ('release({"a": dpf.count("wrad")}, epsilon=1)', "by", "wrad", "'ward'"),
        ]
    ),
    mistake("df.dp.quantile(0.5, epsilon=1)", UnknownColumnError, parameter="column", label=0.5),
    mistake('df.dp.count(by={"ward": ["A"]}, epsilon=1)', QueryError, "keys=", parameter="by"),
    mistake('df.dp.count(by={"ward", "sex"}, epsilon=1)', QueryError, "list", parameter="by"),
    mistake('df.dp.count(by=["ward", "ward"], epsilon=1)', QueryError, "twice", parameter="by"),
    mistake("df.dp.count(by=df.ward, epsilon=1)", DeclarationError, "public", parameter="by"),
    mistake("df.dp.count(by=lambda row: row, epsilon=1)", QueryError, "label", parameter="by"),
    mistake('df.dp.count(pd.Grouper(key="day"), epsilon=1)', QueryError, "column", parameter="by"),
    mistake('df.dp.mean({"stay": "mean"}, epsilon=1)', QueryError, "label", parameter="columns"),
    mistake("df.dp.mean([], epsilon=1)", QueryError, "at least one", parameter="columns"),
    *(
        mistake(
            f"df.dp.{call}",
            DeclarationError,
            "bounds={'day': (lower, upper)}",
            parameter="bounds",
            label="day",
        )
        for call in (
            'quantile("day", 0.5, epsilon=1)',
            'quantile("day", 0.5, mechanism="select", epsilon=1)',
            'release({"middle": dpf.quantile("day", 0.5), "n": dpf.count()}, epsilon=1)',
            'preview(dpf.quantile("day", 0.5), epsilon=1)',
        )
    ),
    mistake(
        'df.dp.count("day", epsilon=1)', DeclarationError, "keys=", parameter="keys", label="day"
    ),
    mistake(
        'df.dp.mean("person", epsilon=1)',
        DeclarationError,
        "bounds=",
        parameter="bounds",
        label="person",
    ),
    mistake(
        'df.dp.count("ward", keys="A", epsilon=1)',
        DeclarationError,
        "list",
        parameter="keys",
        label="ward",
    ),
    mistake(
        'df.dp.count("ward", keys=["A", "A"], epsilon=1)',
        DeclarationError,
        "unique",
        parameter="keys",
        label="ward",
    ),
    mistake(
        'df.dp.count("day", keys=["2024-03-01"], epsilon=1)',
        QueryError,
        "pd.Timestamp",
        parameter="keys",
        label="day",
    ),
    mistake(
        'df.dp.count("year", keys={"ward": ["A"]}, epsilon=1)',
        QueryError,
        "group by",
        parameter="keys",
        label="ward",
    ),
    mistake('df.dp.count(keys=["A"], epsilon=1)', QueryError, "by=", parameter="keys"),
    mistake(
        'df.dp.count(["ward", "sex"], keys=["A"], epsilon=1)', QueryError, "dict", parameter="keys"
    ),
    mistake('df.dp.count("ward", keys=df.ward, epsilon=1)', DeclarationError, ".dp.discover"),
    mistake(
        'df.dp.mean("stay", bounds=(10, 0), epsilon=1)',
        DeclarationError,
        "Swap",
        parameter="bounds",
        label="stay",
    ),
    mistake(
        'df.dp.mean("stay", bounds={"year": (0, 1)}, epsilon=1)',
        QueryError,
        "columns=",
        parameter="bounds",
        label="year",
    ),
    mistake('df.dp.sum("stay", max_true=1.5, epsilon=1)', QueryError, parameter="max_true"),
    mistake('df.dp.sum("stay", objective="best", epsilon=1)', QueryError, parameter="objective"),
    mistake('df.dp.mean("stay", max_rows=-1, epsilon=1)', QueryError, ">= 1", parameter="max_rows"),
    mistake(
        'df.dp.units("ward", max_rows_per_group=1, epsilon=1)',
        QueryError,
        "Leave it out",
        parameter="max_rows_per_group",
    ),
    mistake(
        'df.dp.discover("ward", keys=["A"], max_groups=1, epsilon=1)',
        CallError,
        "no keyword",
        parameter="keys",
    ),
    mistake(
        'df.dp.discover("ward", dtype=str, max_groups=1, epsilon=1)',
        QueryError,
        '"string"',
        parameter="dtype",
    ),
    mistake('df.dp.suggest_caps(epsilon=1, cap="rows")', QueryError, "'max_rows'", parameter="cap"),
    mistake("df.dp.suggest_caps(epsilon=1, largest=0)", QueryError, "from 1", parameter="largest"),
    mistake(
        'df.dp.suggest_bounds("stay", epsilon=1, within=(5, 1))',
        QueryError,
        "below",
        parameter="within",
    ),
    mistake(
        'df.dp.suggest_bounds("stay", epsilon=1, query="median")',
        QueryError,
        '"mean"',
        parameter="query",
    ),
    mistake('df.dp.suggest_bounds("stay", epsilon=1, bins=0)', QueryError, parameter="bins"),
    mistake('df.dp.suggest_bounds("stay", epsilon=1, bins=9)', QueryError, "within="),
]

BINS = [
    *(
        mistake(
            f'df.dp.histogram("stay", bins={given}, epsilon=1)',
            QueryError,
            word,
            parameter="bins",
            label="stay",
        )
        for given, word in {
            "10": "linspace(",
            '"auto"': "edges",
            "[0, 5, 5, 10]": "above the one before",
            "[10, 0]": "above the one before",
            "[5]": "at least two",
            '["a", "b"]': "numbers",
            "pd.IntervalIndex.from_tuples([(0, 5), (3, 9)])": "overlap",
            '[0, float("nan")]': "edges",
            "{0, 5, 10}": "order",
        }.items()
    ),
    mistake("df.dp.histogram('stay', df.stay, epsilon=1)", DeclarationError, parameter="bins"),
    mistake(
        'df.dp.histogram("stay", [0, 1], by="stay", epsilon=1)', QueryError, "by=", label="stay"
    ),
    mistake('df.dp.ranges("stay", 0, epsilon=1)', QueryError, "from 1", parameter="bins", label=0),
    mistake('df.dp.ranges("person", 5, epsilon=1)', DeclarationError, "bins=[", label="person"),
    *(
        mistake(f'df.dp.quantile("stay", {q}, epsilon=1)', QueryError, "median", parameter="q")
        for q in ("1.5", "50", '"median"', "[]", "[0.5, 0.5]", "[0.9, 0.1]")
    ),
    mistake('df.dp.quantile("stay", 0.5, epsilon=1, level=95)', QueryError, "0.95"),
]

CONDITIONS = [
    *(
        mistake(f"df.dp.count(where={text!r}, epsilon=1)", QueryError, word, parameter="where")
        for text, word in {
            "ward = 'A'": "==",
            "stay > 3 & stay < 5": "parentheses",
            "stay > 3 && stay < 5": "and",
            "stay > 3 AND stay < 5": "and",
            "ward == 'A": "not a condition",
            "stay > @limit": "write its value",
            "ward.str.startswith('A')": "call",
            "stay > mean(stay)": "call",
            "ward like 'A%'": "'in'",
            "stay is None": "==",
            "stay <> 3": "!=",
            "ward in 'A'": "list",
            "stay + 1": "compare",
            "[a for a in stay if a > 3 and ward == 'A' and sex == 'f']": "comprehension",
            "stay > 3 or": "not a condition",
            "": "Without where=",
        }.items()
    ),
    mistake('df.dp.count(where="ward == A", epsilon=1)', UnknownColumnError, "'A'", label="A"),
    mistake("df.dp.count(where=df.stay > 3, epsilon=1)", DeclarationError, parameter="where"),
    mistake("df.dp.count(where=raw.stay > 3, epsilon=1)", QueryError, parameter="where"),
    mistake("df.dp.count(where=lambda row: True, epsilon=1)", QueryError, "'fare > 0'"),
    mistake('df.dp.count(where={"ward": "A"}, epsilon=1)', QueryError, "text", parameter="where"),
    mistake("df.dp.rate(\"ward = 'A'\", epsilon=1)", QueryError, "==", parameter="condition"),
    mistake("df.dp.rate(0.5, epsilon=1)", QueryError, "text", parameter="condition"),
    mistake("table.dp.select('n = 3')", QueryError, "==", parameter="where"),
    mistake("table.dp.select(lambda row: row.n > 3)", QueryError, "text", parameter="where"),
    mistake("table.dp.select(table.n > 3)", QueryError, parameter="where"),
    mistake('table.dp.select("visits > 3")', UnknownColumnError, "'n'", label="visits"),
]

ALTERED = [  # frames that are not what was released
    mistake("(table + 1).dp.interval()", CertificateError, "values"),
    mistake("(table - table).dp.plot()", CertificateError, "values"),
    mistake("table.round(-9).dp.interval()", CertificateError, ".dp.round"),
    mistake("table.clip(lower=10**9).dp.write_csv(tmp / 'a.csv')", CertificateError, "values"),
    mistake("table[table.n > 10**9].dp.interval()", CertificateError, ".dp.select"),
    mistake("table.head(1).dp.report(tmp / 'a.html')", DPFrameWarning, "not to publish"),
    mistake('table[["n"]].dp.interval()', CertificateError, ".dp.select(columns="),
    mistake("table.reset_index().dp.interval()", CertificateError, "'ward'"),
    mistake("table.T.dp.interval()", CertificateError, "columns"),
    mistake("table.iloc[::-1].dp.interval()", CertificateError, ".dp.sort_values"),
    mistake('table.rename(columns={"n": "visits"}).dp.plot()', CertificateError, ".dp.rename"),
    mistake("table.astype(float).dp.interval()", CertificateError, "dtype"),
    mistake("table.assign(x=1).dp.write_csv(tmp / 'a.csv')", CertificateError, "'x'"),
    mistake('table.loc["A", "n"] += 1; dpf.verify(table)', CertificateError, "'n'"),
    mistake("pd.concat([table, table]).dp.interval()", CertificateError, "dpf.concat"),
    mistake("table.merge(table, on='ward').dp.interval()", CertificateError, "certificate"),
    mistake(
        "grid.swaplevel().sort_index().assign(x=1).dp.plot()",
        CertificateError,
        "another order",
        "more",
    ),
    mistake(
        'table.rename({"A": "a"}).astype(float).assign(n_low=1).dp.interval()',
        CertificateError,
        "'n_low'",
        "Keys stay",
    ),
    mistake('grid["count"].unstack().dp.plot()', CertificateError, "certificate"),
    mistake('table["n"].dp.interval()', NoSuchNameError, "whole"),
    mistake('dpf.interval(table["n"])', CertificateError, "whole"),
    mistake('dpf.interval("table.csv")', CertificateError, "dpf.read_csv"),
    mistake("dpf.verify(table.to_dict())", CertificateError, "DataFrame"),
    mistake(
        "table.to_csv(tmp / 'a.csv'); pd.read_csv(tmp / 'a.csv').dp.interval()",
        CertificateError,
        "dpf.read_csv",
    ),
    mistake(
        "table.dp.write_csv(tmp / 'a.csv'); pd.read_csv(tmp / 'a.csv').dp.plot()",
        CertificateError,
        "dpf.read_csv",
    ),
    mistake(
        "table.to_csv(tmp / 'a.csv'); dpf.read_csv(tmp / 'a.csv')",
        CertificateError,
        "dpf.write_csv",
        parameter="path",
    ),
    mistake("dpf.read_csv(tmp / 'a.csv')", FileNotFoundError, "no such file"),
    mistake(
        "dpf.scan_parquet(tmp / 'a.parquet')",
        DeclarationError,
        "a.parquet",
        "no such file",
        parameter="path",
    ),
    mistake(
        "df.dp.diagnose(dpf.count('ward')).dp.interval()", CertificateError, "Release the query"
    ),
]

RELEASED = [  # private where released is meant, and the other way round
    mistake("table.dp.count(epsilon=1)", DeclarationError, "released"),
    mistake('table.dp.sum("n", epsilon=1)', DeclarationError, "released"),
    mistake("table.dp.preview(dpf.count(), epsilon=1)", DeclarationError, "released"),
    mistake('table.dp.declare(privacy_unit="n", max_rows=1)', DeclarationError, "released"),
    mistake("table.dp.budget", DeclarationError, "released"),
    mistake("df.dp.interval()", CertificateError, "Release first"),
    mistake("df.dp.plot()", CertificateError, "Release first"),
    mistake("df.dp.head()", CertificateError, "Release first"),
    mistake("df.dp.certificate", CertificateError, "Release first"),
    mistake('df.dp.write_csv(tmp / "a.csv")', CertificateError, "Release first"),
    mistake("dpf.round(df)", CertificateError, "Release first"),
    mistake("dpf.report([table, raw])", CertificateError, "no certificate"),
    mistake("dpf.verify(raw)", CertificateError, "no certificate"),
    mistake("dpf.schema(df)", CertificateError, "Release first"),
    *(
        mistake(f"table.dp.interval({level})", QueryError, "0.95", parameter="level")
        for level in ("95", "0", '"95%"')
    ),
    mistake("table.dp.interval(alpha=0.05)", CallError, "'level'", parameter="alpha"),
    mistake('table.dp.interval(join="yes")', QueryError, "True or False", parameter="join"),
    mistake('table.dp.percent("n", join=1)', QueryError, "True or False", parameter="join"),
    mistake("table.dp.quantile(0.5)", QueryError, "dpf.ranges(", never=("quantiles takes",)),
    mistake('table.dp.quantile("stay", 0.5, epsilon=1)', DeclarationError, "released"),
    mistake("dpf.quantile(table, 0.5)", QueryError, "dpf.ranges("),
    mistake("spread.dp.quantile(1.5)", QueryError, "median", parameter="q", label=1.5),
    mistake("spread.dp.quantile(0.5, epsilon=1)", DeclarationError, "nothing", parameter="epsilon"),
    mistake("spread.dp.between(3, 1)", QueryError, "low", parameter="low"),
    mistake("spread.dp.between(0, 99)", QueryError, "10.0", parameter="high", label=99),
    mistake("table.dp.between(1, 2)", QueryError, "dpf.ranges("),
    mistake("table.dp.best", CertificateError, "suggest_caps"),
    mistake('table.dp.denoise("average")', QueryError, "'auto'", parameter="method"),
    mistake('table.dp.denoise(columns="m")', QueryError, "'n'", parameter="columns", label="m"),
    mistake("table.dp.denoise(strength=3)", QueryError, "option", parameter="strength"),
    mistake('table.dp.denoise("trend_filter")', QueryError, '"ordered"', parameter="graph"),
    mistake('table.dp.combine({"A": 1, "B": -1})', QueryError, "select(", parameter="weights"),
    mistake(
        'grid.dp.combine({("A", "f"): 1, ("Z", "f"): -1})',
        QueryError,
        "not in it",
        parameter="weights",
        label=("Z", "f"),
    ),
    mistake('grid.dp.combine({"A": 1})', QueryError, "'sex'", parameter="weights"),
    mistake('grid.dp.combine({("A", "f"): "1"})', QueryError, "numbers", parameter="weights"),
    mistake("grid.dp.combine({})", QueryError, "at least one", parameter="weights"),
    mistake("grid.dp.combine([1, -1])", QueryError, "dict", parameter="weights"),
    mistake(
        'table.dp.ratio("n", "visits")',
        QueryError,
        "'total'",
        parameter="denominator",
        label="visits",
    ),
    mistake('table.dp.ratio("n", "n")', QueryError, "another column", label="n"),
    mistake('table.dp.ratio("n")', CallError, "ratio(numerator, denominator)"),
    mistake('table.dp.ratio("stay", "n")', QueryError, "quotient", parameter="numerator"),
    mistake('table.dp.percent("visits")', QueryError, "'n'", parameter="column", label="visits"),
    mistake("table.dp.percent()", QueryError, "'n'", parameter="column"),
    mistake('table.dp.percent("n", by="sex")', QueryError, "'ward'", parameter="by", label="sex"),
]

STEPS = [  # from a release to a publication
    mistake("table.dp.round(-1.5)", QueryError, "whole number", parameter="decimals", label=-1.5),
    mistake('table.dp.round({"m": 1})', QueryError, "'n'", parameter="decimals", label="m"),
    mistake('table.dp.sort_values("m")', QueryError, "'n'", parameter="by", label="m"),
    mistake('table.dp.sort_values("n", ascending="no")', QueryError, parameter="ascending"),
    mistake(
        'table.dp.sort_values("n", ascending=[True, False])', QueryError, parameter="ascending"
    ),
    mistake("table.dp.head(-1)", QueryError, "0 or more", parameter="n", label=-1),
    mistake('table.dp.tail("3")', QueryError, "whole number", parameter="n", label="3"),
    mistake('table.dp.select(columns="m")', QueryError, "'n'", parameter="columns", label="m"),
    mistake("table.dp.select(columns=[])", QueryError, "some columns", parameter="columns"),
    mistake('table.dp.select(keys={"sex": ["f"]})', QueryError, "'ward'", label="sex"),
    mistake('table.dp.select(keys=["Z"])', QueryError, "no key", parameter="keys", label="Z"),
    mistake('table.dp.select(keys="A")', QueryError, "list", parameter="keys"),
    mistake("table.dp.select()", QueryError, "columns="),
    mistake('table.dp.select("n > 10**9")', DPFrameWarning, "no row"),
    mistake('table.dp.rename({"m": "n"})', QueryError, "'n'", parameter="columns", label="m"),
    mistake('table.dp.rename({"n": "total"})', QueryError, "another", parameter="columns"),
    mistake('table.dp.rename({"n": 7})', QueryError, "text", parameter="columns"),
    mistake('table.dp.rename("visits")', QueryError, "dict", parameter="columns"),
    mistake('table.dp.rename(index={"A": "Alpha"})', CallError, "relabel", parameter="index"),
    mistake('table.dp.rename(levels={"sex": "s"})', QueryError, "'ward'", label="sex"),
    mistake("table.dp.unstack()", QueryError, "two levels"),
    mistake('grid.dp.unstack("year")', QueryError, "'sex'", parameter="level", label="year"),
    mistake('grid.dp.unstack("sex", column="n")', QueryError, "'count'", parameter="column"),
    mistake("table.dp.suppress()", QueryError, "below="),
    mistake("table.dp.suppress(5)", CallError, "below="),
    mistake('table.dp.suppress(below="5", by="n")', QueryError, "number", parameter="below"),
    mistake('table.dp.suppress(below=5, by="m")', QueryError, "'n'", parameter="by", label="m"),
    mistake("table.dp.suppress(below=5)", QueryError, "by=", parameter="by"),
    mistake('table.dp.suppress(relative_error=0, by="n")', QueryError, parameter="relative_error"),
    mistake('table.dp.plot(kind="pie")', QueryError, "bar", parameter="kind", label="pie"),
    mistake('table.dp.plot("n")', CallError, "column="),
    mistake('table.dp.plot(column="m")', UnknownColumnError, "'n'", parameter="column", label="m"),
    mistake('table.dp.plot(x="ward")', CallError, "no keyword", never=("'ax'",), parameter="x"),
    mistake('table.dp.plot(y="n")', CallError, "'column'", parameter="y"),
    mistake('table.dp.plot(column="n", per="n")', QueryError, "another", parameter="per"),
    mistake('grid.dp.plot(per="year")', QueryError, "per", parameter="per", label="year"),
    mistake("grid.dp.plot(ax=3)", QueryError, "axes", never=("got 0",), parameter="ax"),
    mistake('table.dp.plot_map({"A": (0, 0)})', QueryError, "add them", parameter="coords"),
    mistake("table.dp.write_csv()", CallError, "needs path", parameter="path"),
    mistake("table.dp.write_csv(7)", QueryError, "path", parameter="path", label=7),
    mistake("table.dp.write_csv(tmp / 'no' / 'a.csv')", QueryError, "folder", parameter="path"),
    mistake("table.dp.write_parquet(tmp / 'a.csv')", QueryError, ".parquet", parameter="path"),
    mistake("table.dp.report(tmp / 'a.html', ledger='a')", DeclarationError, parameter="ledger"),
    mistake("dpf.report([])", QueryError, "one or more", parameter="released"),
    mistake("dpf.verify(table, ledger=df.dp.ledger)", CertificateError, "no ledger"),
    mistake("dpf.concat(table)", QueryError, "list", parameter="releases"),
    mistake("dpf.concat([table, grid], keys=[1, 2], name='x')", QueryError, ".dp.rename"),
    mistake("dpf.concat([table, table], keys=[1, 2], name='x')", QueryError, ".dp.select"),
    mistake("dpf.concat({'a': grid}, name=3)", QueryError, "name=", parameter="name", label=3),
    mistake("dpf.consistent(table)", QueryError, "margins", parameter="tables"),
    mistake("dpf.replay(table, grid)", CertificateError, "made from"),
    mistake("dpf.scan_parquet(tmp / 'a')", DeclarationError, "Parquet", parameter="path"),
    mistake("dpf.scan('trips/')", DeclarationError, "scan_parquet", parameter="source"),
    mistake("dpf.scan(raw)", DeclarationError, "of its own", parameter="source"),
    mistake("dpf.scan(iter([raw]))", DeclarationError, "only once", parameter="source"),
    mistake("dpf.scan_parquet(raw)", DeclarationError, "folder", parameter="path"),
]

ROWS = [
    *HABITS,
    *CALLS,
    *OLD_NAMES,
    *AMOUNTS,
    *BUDGETS,
    *DECLARATIONS,
    *COLUMNS,
    *BINS,
    *CONDITIONS,
    *ALTERED,
    *RELEASED,
    *STEPS,
]

VISITS = pd.DataFrame(
    {
        "ward": [*"AABBC"] * 4,
        "sex": [*"fmfmf"] * 4,
        "year": [2020, 2021] * 10,
        "stay": [1.0, 2.5, 4.0, 0.5, 8.0] * 4,
        "day": pd.to_datetime(["2024-03-01", "2024-03-02"] * 10),
        "person": [*range(10)] * 2,
    }
)
FACTS = {
    "privacy_unit": "person",
    "max_rows": 2,
    "keys": {"ward": ["A", "B", "C"], "sex": ["f", "m"], "year": [2020, 2021]},
    "bounds": {"stay": (0, 10)},
}
QUERIES = {
    "table": dpf.aggregate("ward", n=dpf.count(), total=dpf.sum("stay"), stay=dpf.mean("stay")),
    "grid": dpf.count(["ward", "sex"]),
    "spread": dpf.ranges("stay", 5, "ward"),
}


def declared(**facts):
    """Declare the visits anew."""
    frame = VISITS.copy()
    frame.dp.declare(**FACTS, **facts)
    return frame


@pytest.fixture(scope="module")
def released():
    return declared().dp.release(QUERIES, epsilon=3)


def names_in_a_cell(released, folder):
    """Make what the code of a mistake has at hand, anew for each."""
    return {
        **{name: table.copy() for name, table in released.items()},
        "df": declared(budget=dpf.Budget(epsilon=10, delta=1e-6, discovery=1e-7)),
        "raw": VISITS.copy(),
        "facts": FACTS,
        "tmp": Path(folder),
        **{"dpf": dpf, "pd": pd, "np": np},
    }


def answer_to(code, names):
    """Run code as a cell of a notebook, and return what it raises."""
    linecache.cache["<cell>"] = (len(code), None, [code], "<cell>")  # tracebacks show the line
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(code, "<cell>", "exec"), names)  # noqa: S102  # it is a notebook's cell
    except Exception as error:  # whatever it is, it is compared
        return error.with_traceback(error.__traceback__.tb_next)  # without this function
    return None


SILENT = {  # an error would depend on private cells, which dtypes are guessed from
    """df.dp.diagnose(dpf.count(where="year == '2020'"))""": "no row satisfies it",
    'df.dp.diagnose(dpf.count(where="day == 2024"))': "not compared",
    """df.dp.diagnose(dpf.count(where="day == '01.03.2024'"))""": "no row satisfies it",
    'df.dp.diagnose(dpf.count("year", keys=["2020"]))': "no row can match",
    'df.dp.diagnose(dpf.count("ward", keys=["a", "b", "c"]))': "most often 'A'",
    'df.dp.diagnose(dpf.histogram("day", [0, 10]))': "no row can match",
    'df.dp.diagnose(dpf.mean("day", bounds=(0, 10)))': "points in time",
    "(df.dp.count(epsilon=1), df.dp.count(epsilon=1), df.dp.budget)[-1]": "Spent      epsilon=2",
}


@pytest.mark.parametrize("code", SILENT)
def test_a_mistake_without_an_error_is_shown_where_one_may_look(code, released, tmp_path):
    answer = eval(code, names_in_a_cell(released, tmp_path))  # noqa: S307  # it is one of ours
    text = answer.to_string() if isinstance(answer, pd.DataFrame) else str(answer)
    assert SILENT[code] in text


def test_there_are_many_mistakes_each_once():
    assert len(ROWS) + len(PLANS) >= 150
    assert len({row.code for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_a_mistake_is_answered(row, released, tmp_path):
    error = answer_to(row.code, names_in_a_cell(released, tmp_path))
    assert not row.complaints(error), f"{error!r}"


@dataclass(frozen=True, repr=False)
class PlanMistake:
    """A change of a plan file, and what the line on standard error must have."""

    old: str
    new: str
    words: tuple[str, ...]
    never: tuple[str, ...] = ()
    code: int = 2

    def __repr__(self):
        return f"{self.old} -> {self.new}".replace("\n", "; ")

    def complaints(self, code, text):
        """List what is wrong with an answer."""
        found = [f"nothing about {word!r}" for word in self.words if word not in text]
        found += [f"says {word!r}" for word in self.never if word in text]
        if code != self.code:
            found.append(f"code {code} in place of {self.code}")
        if len(text.split()) > MOST_WORDS or len(text.splitlines()) > 1:
            found.append(f"{len(text.split())} words in {len(text.splitlines())} lines")
        return found


def plan_mistake(old, new, *words, **others):
    return PlanMistake(old, new, words, **others)


_SHARE, _BINS = 'share = "1/12"', "bins = { from = 0, to = 100, bins = 10 }"
_KEYS, _LEDGER = 'keys.zone = ["A", "B", "C"]', 'path = "trips.ledger"'
_UNIT, _FILES = 'privacy_unit = "driver"', 'files = "{query}-{month}.csv"'
_COUNT = 'outputs.trips = { kind = "count" }'

PLANS = [
    plan_mistake("[release]", "[relase]", "line 21", "'release'"),
    plan_mistake(_SHARE, 'shares = "1/12"', "line 22, release.shares", "'share'"),
    plan_mistake(_SHARE, "share = 50", "line 22, release.share", "0.5"),
    plan_mistake(_SHARE, 'share = "a twelfth"', "line 22, release.share", "number"),
    plan_mistake(_SHARE, "", "line 21, release", "share="),
    plan_mistake(_SHARE, "epsilon = 1\nmu = 1", "release", "exactly one way"),
    plan_mistake(_SHARE, "epsilon = 5", "Left", never=("larger budget", "twice"), code=3),
    plan_mistake(_SHARE, f'{_SHARE}\nmechanism = "gausian"', "release.mechanism", "'gaussian'"),
    plan_mistake(_SHARE, f"{_SHARE}\nseed = 3", "line 23, release.seed", "no key"),
    plan_mistake('by = "zone"', 'by = "zonne"', "line 12, queries.by_zone.by", "'zone'"),
    plan_mistake('kind = "histogram"', 'kind = "hist"', "line 17, queries.fares.kind", "histogram"),
    plan_mistake('kind = "histogram"\n', "", "line 16, queries.fares", "kind"),
    plan_mistake('column = "fare"', 'colum = "fare"', "line 18, queries.fares.colum", "'column'"),
    plan_mistake('column = "fare"', 'column = "fares"', "line 18, queries.fares.column", "'fare'"),
    plan_mistake('column = "fare"', "column = fare", "line 18, queries.fares.column", "quotes"),
    plan_mistake(
        'column = "fare"', 'column = "fare"\nwhere = "zone = 3"', "queries.fares.where", "=="
    ),
    plan_mistake(
        'column = "fare"', 'column = "fare"\nwhere = "far > 3"', "queries.fares.where", "'far'"
    ),
    plan_mistake(_BINS, "bins = 10", "line 19, queries.fares.bins", "from = 0"),
    plan_mistake(_BINS, "bins = [0, 5, 5]", "line 19, queries.fares.bins", "above the one before"),
    plan_mistake(_BINS, "", "line 16, queries.fares", "from = 0"),
    plan_mistake("max_rows = 3", 'max_rows = "3"', "line 6, declare.max_rows", "whole number"),
    plan_mistake("max_rows = 3\n", "", "line 5, declare.privacy_unit", "max_rows"),
    plan_mistake(_UNIT, 'privacy_unit = "drivr"', "line 5, declare.privacy_unit", "'driver'"),
    plan_mistake(f"{_UNIT}\nmax_rows = 3\n", "", "line 4, declare", "each_row = true"),
    plan_mistake(_KEYS, 'keys.zone = "A"', "line 7, declare.keys.zone", "list"),
    plan_mistake(_KEYS, 'keys.zone = ["A", "A"]', "line 7, declare.keys.zone", "unique"),
    plan_mistake(_KEYS, 'keys.zone = { file = "a.txt" }', "line 7, declare.keys.zone", "no file"),
    plan_mistake(
        "bounds.fare = [0, 100]", "bounds.fare = [100, 0]", "line 8, declare.bounds.fare", "Swap"
    ),
    plan_mistake("bounds.fare = [0, 100]\n", "", "line 13, queries.by_zone", "bounds"),
    plan_mistake(
        _COUNT, 'outputs.trips = "count"', "line 13, queries.by_zone.outputs.trips", "table"
    ),
    plan_mistake("[queries.fares]", "[queries.by_zone]", "line 16, queries.by_zone", "twice"),
    plan_mistake(_FILES, 'files = "{query}-{month}.xlsx"', "line 24, release.files", ".parquet"),
    plan_mistake(_FILES, 'files = "{month}.csv"', "line 24, release.files", "{query}"),
    plan_mistake(_FILES, 'files = "out/{query}.csv"', "line 24, release.files", "no folder"),
    plan_mistake(_FILES, 'files = "{quary}-{month}.csv"', "line 24, release.files", "{query}"),
    plan_mistake('name = "trips {month}"', 'name = "trips"', "line 23, release.name", "{month}"),
    plan_mistake('name = "trips {month}"', "name = 3", "line 23, release.name", "text"),
    plan_mistake(_LEDGER, 'path = "other.ledger"', "line 27, ledger.path", "--create"),
    plan_mistake(
        _LEDGER, f"{_LEDGER}\nbudget = {{ epsilon = 3 }}", "line 28, ledger.budget", "epsilon=2"
    ),
    plan_mistake('path = "trips-{month}.csv"', 'path = "trips.csv"', "line 2, data.path", "no "),
    plan_mistake(
        'path = "trips-{month}.csv"', 'path = "{month}.xlsx"', "line 2, data.path", ".csv"
    ),
]


@pytest.mark.parametrize("row", PLANS, ids=repr)
def test_a_mistake_in_a_plan_is_answered(row, tmp_path, capsys):
    plan = planned(tmp_path, (row.old, row.new))
    code = main(["release", str(plan), "--set", "month=2024-03", "--quiet"])
    text = capsys.readouterr().err.replace(str(tmp_path), "").strip()
    assert not row.complaints(code, text), text


def test_errors_that_the_page_of_troubleshooting_shows_are_raised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[1] / "docs" / "how-to" / "troubleshooting.md"
    text = page.read_text(encoding="utf-8")
    names = {}
    exec(re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1], names)  # noqa: S102
    shown = re.findall(r"^```\n((?:(?!```).*\n)+)```\n\n> `(.*)`$", text, re.MULTILINE)
    assert len(shown) == 12
    for code, answer in shown:
        with pytest.raises(DPFrameError) as raised:
            exec(code, names)  # noqa: S102
        assert f"{raised.type.__name__}: {raised.value}".startswith(answer)
    assert len(names["df"].dp.ledger.entries) == 1  # errors cost nothing

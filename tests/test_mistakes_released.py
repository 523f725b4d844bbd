"""Mistakes with released frames: each is answered briefly, with a way out."""

import pytest
from support.mistakes import complaints_of, mistake

from dpframe.errors import (
    CallError,
    CertificateError,
    DeclarationError,
    DPFrameWarning,
    NoSuchNameError,
    QueryError,
    UnknownColumnError,
)

ALTERED = [  # frames that are not what was released
    mistake("(table + 1000).dp.interval()", CertificateError, "'n'"),
    mistake("(table - table).dp.plot()", CertificateError, "rounding"),
    mistake("table.round(-9).dp.interval()", CertificateError, "rounding"),
    mistake("table.clip(lower=10**9).dp.write_csv(tmp / 'a.csv')", CertificateError, "'n'"),
    mistake("table.add(1).dp.report(tmp / 'a.html')", DPFrameWarning, "not to publish"),
    mistake("table.reset_index(drop=True).dp.interval()", CertificateError, "'ward'"),
    mistake("table.rename_axis('place').dp.interval()", CertificateError, ".dp.rename"),
    mistake('table.rename(columns={"n": "visits"}).dp.plot()', CertificateError, ".dp.rename"),
    mistake("table.assign(x=1).dp.write_csv(tmp / 'a.csv')", CertificateError, "'x'"),
    mistake('table.loc["A", "n"] += 1000; dpf.verify(table)', CertificateError, "'n'"),
    mistake("pd.concat([table, table]).dp.interval()", CertificateError, "twice"),
    mistake("table.merge(table, on='ward').dp.interval()", CertificateError, "certificate"),
    mistake("grid.swaplevel().sort_index().assign(x=1).dp.plot()", CertificateError, "'x'"),
    mistake(
        'table.rename({"A": "a"}).astype(float).assign(n_low=1).dp.interval()',
        CertificateError,
        "key",
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
    mistake("df.dp.publish()", CertificateError, "Release first"),
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
    mistake('table.dp.percent("n", sampling=1)', QueryError, "True or False", parameter="sampling"),
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
    mistake('table.dp.combine({"A": 1, "B": -1})', QueryError, "released[[", parameter="weights"),
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
    mistake('table.dp.percent("n", by="sex")', QueryError, "'ward'", parameter="by", label="sex"),
]

STEPS = [  # from a release to a publication
    mistake("table.dp.round(-1.5)", QueryError, "whole number", parameter="decimals", label=-1.5),
    mistake('table.dp.round({"m": 1})', QueryError, "'n'", parameter="decimals", label="m"),
    mistake("table.dp.nlargest(-1, 'n')", QueryError, "0 or more", parameter="n", label=-1),
    mistake("table.dp.nsmallest(3)", QueryError, "'n'", parameter="column"),
    mistake("table[[]].dp.interval()", QueryError, "none of the columns"),
    mistake("table.dp.select()", NoSuchNameError, "released.loc[keys]"),
    mistake("table.dp.interval(chosen='size')", QueryError, "keys", parameter="chosen"),
    mistake('table.dp.rename({"m": "n"})', QueryError, "'n'", parameter="columns", label="m"),
    mistake('table.dp.rename({"n": "total"})', QueryError, "Take another", parameter="columns"),
    mistake('table.dp.rename({"n": 7})', QueryError, "text", parameter="columns"),
    mistake('table.dp.rename("visits")', QueryError, "dict", parameter="columns"),
    mistake('table.dp.rename(index={"A": "Alpha"})', CallError, "keys=", parameter="index"),
    mistake('table.dp.rename(levels={"sex": "s"})', QueryError, "'ward'", label="sex"),
    mistake("dpf.certify(table[['n']] + 1, of=table)", CertificateError, "rounding"),
    mistake("dpf.unstack(grid)", NoSuchNameError, "released.unstack(level)"),
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
    mistake("dpf.concat([table, table], keys=[1, 2], name='x')", QueryError, "pd.concat"),
    mistake("dpf.concat({'a': grid}, name=3)", QueryError, "name=", parameter="name", label=3),
    mistake("dpf.consistent(table)", QueryError, "margins", parameter="tables"),
    mistake("dpf.verify(table, against=grid)", CertificateError, "made from", parameter="against"),
    mistake("dpf.scan_parquet(tmp / 'a')", DeclarationError, "Parquet", parameter="path"),
    mistake("dpf.scan('trips/')", DeclarationError, "scan_parquet", parameter="source"),
    mistake("dpf.scan(raw)", DeclarationError, "of its own", parameter="source"),
    mistake("dpf.scan(iter([raw]))", DeclarationError, "only once", parameter="source"),
    mistake("dpf.scan_parquet(raw)", DeclarationError, "folder", parameter="path"),
]

ROWS = [*ALTERED, *RELEASED, *STEPS]


def test_mistakes_are_each_there_once():
    assert len({row.code for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_a_mistake_is_answered(row, tmp_path):
    assert complaints_of(row, tmp_path) == []

"""Differentially private counts, rates, sums, means and histograms from pandas data frames.

Importing the package registers the `.dp` accessor on `pandas.DataFrame`; `import dpframe.dask`
registers it on `dask.dataframe.DataFrame`.
"""

from typing import TYPE_CHECKING, Never

from dpframe import errors
from dpframe.accessors.frames import DPAccessor
from dpframe.accessors.helping import DataFrame, describe_methods, module_text
from dpframe.accessors.private import Scan, scan, scan_parquet
from dpframe.accessors.showing import no_such_function, public_names
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.claims import certificate_schema
from dpframe.files.csv import read_csv, write_csv
from dpframe.files.excel import read_excel
from dpframe.files.pandera import schema
from dpframe.files.parquet import write_parquet
from dpframe.inference.combine import combine
from dpframe.inference.independence import independence
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.status import BudgetStatus
from dpframe.operations.declare import declare, declares
from dpframe.operations.diagnose import diagnose
from dpframe.operations.pipeline import VERSION
from dpframe.operations.planning import ReleasePlan, release
from dpframe.plotting.plot import plot
from dpframe.privacy.amounts import Budget
from dpframe.privacy.neighbors import EACH_ROW
from dpframe.public import public_call
from dpframe.queries.aggregate import aggregate
from dpframe.queries.binned import histogram, ranges
from dpframe.queries.groups import cut, period
from dpframe.queries.margins import margins
from dpframe.queries.of_columns import (
    corr,
    count,
    cov,
    mean,
    rate,
    regression,
    slope,
    std,
    sum,
    units,
    var,
)
from dpframe.queries.query import Query
from dpframe.queries.searches import discover, suggest_bounds, suggest_caps
from dpframe.reporting.report import report
from dpframe.steps.denoise import consistent, denoise
from dpframe.steps.derive import interval, ratio
from dpframe.steps.quantiles import between, quantile
from dpframe.steps.rename import concat
from dpframe.steps.suppress import round
from dpframe.steps.verify import certify, publish, verify

__version__ = VERSION

# the room of amounts knows no frames, and imports no door
Budget.__init__ = public_call(Budget.__init__)  # type: ignore[method-assign]

__all__ = [
    "EACH_ROW",
    "Budget",
    "BudgetStatus",
    "Certificate",
    "DPAccessor",
    "DataFrame",
    "Ledger",
    "Query",
    "ReleasePlan",
    "Scan",
    "aggregate",
    "between",
    "certificate_schema",
    "certify",
    "combine",
    "concat",
    "consistent",
    "corr",
    "count",
    "cov",
    "cut",
    "declare",
    "declares",
    "denoise",
    "diagnose",
    "discover",
    "errors",
    "histogram",
    "independence",
    "interval",
    "margins",
    "mean",
    "period",
    "plot",
    "publish",
    "quantile",
    "ranges",
    "rate",
    "ratio",
    "read_csv",
    "read_excel",
    "regression",
    "release",
    "report",
    "round",
    "scan",
    "scan_parquet",
    "schema",
    "slope",
    "std",
    "suggest_bounds",
    "suggest_caps",
    "sum",
    "units",
    "var",
    "verify",
    "write_csv",
    "write_parquet",
]

_PUBLIC = tuple(__all__)
describe_methods(DPAccessor, globals())
__doc__ = module_text(__doc__, {name: globals()[name] for name in _PUBLIC})
del __all__  # with it, `help` would repeat every docstring in full

if not TYPE_CHECKING:  # type checkers know all names

    def __dir__() -> list[str]:
        """List what is public."""
        return ["__doc__", "__version__", *_PUBLIC]

    def __getattr__(name: str) -> Never:
        """Say what to use in place of a name that is not there."""
        raise no_such_function(name, _PUBLIC, public_names(DPAccessor))

"""Differentially private counts, sums, means and histograms from pandas data frames.

Importing the package registers the `.dp` accessor on `pandas.DataFrame`, and on
`dask.dataframe.DataFrame` where Dask is used.
"""

from dpframe import errors
from dpframe.accessor import DPAccessor
from dpframe.certificate import Certificate, verify
from dpframe.certificate_schema import certificate_schema
from dpframe.combining import combine
from dpframe.csv_files import read_csv, write_csv
from dpframe.dask_accessor import register_dask_accessor
from dpframe.declaring import declare
from dpframe.denoising import denoised, denoising_report
from dpframe.downstream import schema_of
from dpframe.ledger import BudgetStatus, Ledger
from dpframe.mapping import plot_map
from dpframe.plotting import plot
from dpframe.postprocess import covariance, interval, std_error
from dpframe.preview import preview
from dpframe.privacy import Budget
from dpframe.queries import Query, aggregate, count, histogram, mean, sum
from dpframe.release import release
from dpframe.scanning import ParquetScan, scan_parquet

__all__ = [
    "Budget",
    "BudgetStatus",
    "Certificate",
    "DPAccessor",
    "Ledger",
    "ParquetScan",
    "Query",
    "aggregate",
    "certificate_schema",
    "combine",
    "count",
    "covariance",
    "declare",
    "denoised",
    "denoising_report",
    "errors",
    "histogram",
    "interval",
    "mean",
    "plot",
    "plot_map",
    "preview",
    "read_csv",
    "release",
    "scan_parquet",
    "schema_of",
    "std_error",
    "sum",
    "verify",
    "write_csv",
]

register_dask_accessor()

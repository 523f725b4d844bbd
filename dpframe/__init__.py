"""Differentially private counts, sums, means and histograms from pandas data frames.

Importing the package registers the `.dp` accessor on `pandas.DataFrame`.
"""

from dpframe import errors
from dpframe.accessor import DPAccessor
from dpframe.certificate import Certificate, verify
from dpframe.combining import combine
from dpframe.declaring import declare
from dpframe.denoising import denoised, denoising_report
from dpframe.ledger import BudgetStatus, Ledger
from dpframe.mapping import plot_map
from dpframe.plotting import plot
from dpframe.postprocess import covariance, interval, std_error
from dpframe.preview import preview
from dpframe.privacy import Budget
from dpframe.queries import Query, aggregate, count, histogram, mean, sum
from dpframe.release import release

__all__ = [
    "Budget",
    "BudgetStatus",
    "Certificate",
    "DPAccessor",
    "Ledger",
    "Query",
    "aggregate",
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
    "release",
    "std_error",
    "sum",
    "verify",
]

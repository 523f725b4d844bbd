"""Keep the first or the last rows of a release."""

from typing import Literal

import numpy as np
import pandas as pd

from dpframe.certificates.certificate import Certificate
from dpframe.certificates.steps import HeadStep
from dpframe.certificates.verify import verify
from dpframe.errors import QueryError
from dpframe.privacy.amounts import WRITTEN
from dpframe.public import public_call
from dpframe.steps.apply import Outcome, after, keep_rows


@public_call
def head(released: pd.DataFrame, n: int = 5) -> pd.DataFrame:
    """Keep the first rows of a release, and its certificate.

    Parameters
    ----------
    released
        A released frame.
    n
        How many.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If n is not a whole number, 0 or more.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> head(released, 1).dp.interval().index.tolist()
    ['A']
    """
    return _keep_end(released, "head", n)


@public_call
def tail(released: pd.DataFrame, n: int = 5) -> pd.DataFrame:
    """Keep the last rows of a release, and its certificate; see `head`.

    Parameters
    ----------
    released
        A released frame.
    n
        How many.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If n is not a whole number, 0 or more.
    """
    return _keep_end(released, "tail", n)


def _keep_end(released: pd.DataFrame, which: Literal["head", "tail"], n: object) -> pd.DataFrame:
    """Check a release and a number of rows, and keep these at one end."""
    certificate = verify(released)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 <= n < WRITTEN:
        raise QueryError.about("n", "must be a whole number of rows, 0 or more", n)
    step = HeadStep(which, int(n), certificate.digest)
    return after(released, certificate, step, apply_head)


def apply_head(frame: pd.DataFrame, certificate: Certificate, step: HeadStep) -> Outcome:
    """Keep the rows at one end."""
    places = np.arange(len(frame))
    kept = places[: step.rows] if step.step == "head" else places[max(len(frame) - step.rows, 0) :]
    return keep_rows(frame, certificate, kept)

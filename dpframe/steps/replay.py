"""Do the steps of a certificate again."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from dpframe.accuracy.ranges import with_quantiles
from dpframe.certificates import steps
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.mechanism_parts import MarginsPart, SignsPart
from dpframe.certificates.verify import verify
from dpframe.errors import CertificateError, QueryError
from dpframe.public import public_call
from dpframe.steps import head, join, rename, round, select, sort, suppress, unstack
from dpframe.steps.apply import Outcome, certified_after


@public_call
def replay(published: pd.DataFrame, released: pd.DataFrame) -> pd.DataFrame:
    """Repeat the steps of a published table from its release, and compare the results.

    Parameters
    ----------
    published
        A table that was made from the release by steps of this library.
    released
        The release, or a table between the two. Of margins made whole, it is the one that
        `dpframe.consistent` makes of all released tables: a single one does not say how.

    Returns
    -------
    DataFrame
        The published table, made anew.

    Raises
    ------
    CertificateError
        If one of them is not what its certificate was given for, or the steps make another table of
        the release.
    QueryError
        If the table was made from several released ones together.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> published = released.dp.round(-1).dp.head(1)
    >>> replay(published, released).equals(published)
    True
    """
    wanted, frame, certificate = verify(published), released, verify(released)
    for step in wanted.steps[len(certificate.steps) :]:
        _check_of_one(step, certificate)
        if isinstance(step, steps.DenoiseStep | steps.ConcatStep) or step.of != certificate.digest:
            break
        frame, certificate = certified_after(frame, certificate, step, _ACTIONS[type(step)])
    if certificate != wanted:
        rule = "the steps in the certificate do not lead from this release to this table"
        way_out = "Give the release that it was made from, with its denoised columns"
        raise CertificateError(f"{rule}. {way_out}.", parameter="released")
    return frame


def _check_of_one(step: steps.StepPart, certificate: Certificate) -> None:
    """Refuse to do again what was done with several tables."""
    together = isinstance(certificate.releases[0].mechanism, MarginsPart | SignsPart)
    if together and isinstance(step, steps.DenoiseStep) and step.of == certificate.digest:
        rule = "the whole numbers in this table were made from several together"
        way_out = "give the one that dpframe.consistent(tables) of all of them returns"
        raise QueryError(f"{rule}: {way_out}.", parameter="released")


_ACTIONS: dict[type[Any], Callable[..., Outcome]] = {
    steps.SortStep: sort.apply_sort,
    steps.HeadStep: head.apply_head,
    steps.SelectStep: select.apply_select,
    steps.RoundStep: round.apply_round,
    steps.SuppressStep: suppress.apply_suppress,
    steps.RenameStep: rename.apply_rename,
    steps.UnstackStep: unstack.apply_unstack,
    steps.IntervalsStep: join.apply_intervals,
    steps.PercentStep: join.apply_percent,
    steps.QuantilesStep: with_quantiles,
}

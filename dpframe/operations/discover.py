"""Labels that are not known beforehand: which of them may be published, with how many units.

The order is that of every release: validate, plan, charge, count, draw. It is the one release
whose rows are a result, as its counts are: dtype and order of the labels say nothing besides.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias, Unpack

import numpy as np
import pandas as pd

from dpframe.calls import with_keywords
from dpframe.certificates import parts
from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import CountPart, NoisePart
from dpframe.certificates.verify import attach
from dpframe.declaration.facts import Declaration
from dpframe.engines import Engine, Frame, engine_for
from dpframe.engines.declared import declaration_of
from dpframe.engines.labels import LabelCounts
from dpframe.ledger.log import Entry
from dpframe.operations.charging import RecordOptions, charge_and_make, check_recorded, entry_of
from dpframe.plan.discovery import DiscoveryPlan, plan_discovery
from dpframe.plan.record import Cost, before_values, certificate_for, cost
from dpframe.privacy.amounts import Amount, AmountOptions, Spend, round_up
from dpframe.privacy.neighbors import EachRow
from dpframe.privacy.threshold import LabelThreshold
from dpframe.queries.discovery import Dtypes, labels_wanted
from dpframe.queries.query import Columns
from dpframe.queries.tasks import LabelAxis

_COVARIANCE = "Rows are independent, given that they were published."
_BLOCK = "0"
_NOT_IN_COUNTS = "column where condition bounds times ratio moments rounded".split()


def cost_of_discovery(plan: DiscoveryPlan, declaration: Declaration) -> Cost:
    """Return what finding labels costs, the extra delta included.

    A delta that was given in the call is for noise and threshold together.
    """
    noise = cost(plan, declaration)
    together = bool(plan.loss.mu_squared) and plan.spend.delta is not None
    if noise["delta"] is None or together:
        return noise
    total = Fraction(noise["delta"]) + plan.loss.delta
    delta = round_up(float(total), lambda number: Fraction(number) >= total)
    return {**noise, "delta": min(delta, math.nextafter(1, 0))}


def record_of_discovery(plan: DiscoveryPlan, declaration: Declaration, entry: Entry) -> Release:
    """Write what is promised about labels to be found, all but their number and ledger."""
    threshold = plan.threshold
    axes, how = plan.wanted.axes, plan.how
    return Release(
        **before_values(declaration, plan.caps, entry),
        query=parts.QueryPart(
            name=None,
            words=plan.words,
            by=tuple(
                parts.GroupingPart(str(axis.column), 0, "discovered", rest=None) for axis in axes
            ),
            cells=0,
            outputs=1,
            where=None if plan.wanted.where is None else plan.wanted.where.text,
            options=parts.OptionsPart(max_true=None, n_weight=0.0, objective="total", n=None),
        ),
        columns=(_column(plan),),
        mechanism=parts.ThresholdPart(
            "threshold",
            plan.mechanism,
            how.title,
            how.law.name,
            scales={_BLOCK: threshold.scale},
            threshold=threshold.least,
            max_labels=threshold.labels,
            dtypes=tuple(axis.kind for axis in axes),
            max_length=axes[0].longest,
        ),
        covariance=_COVARIANCE,
        privacy_loss=parts.LossPart(
            **cost_of_discovery(plan, declaration),
            rho=plan.loss.rho,
            extra_delta=float(plan.loss.delta),
            joint=False,
        ),
    )


def _column(plan: DiscoveryPlan) -> CountPart:
    """Describe the noisy numbers of units."""
    deviation = plan.threshold.law.standard_deviation(plan.threshold.scale)
    return CountPart(
        kind="count",
        name="units",
        where=None,
        rounded=None,
        integer=True,
        noise=NoisePart(plan.threshold.scale, 1.0, 1),
        std_error=deviation,
        loadings={_BLOCK: deviation},
    )


DiscoveryMechanism: TypeAlias = Literal["auto", "laplace", "gaussian"]
"""The noise that hides numbers of units."""

_CHANCES = (0.05, 0.5, 0.95)


class LookOptions(AmountOptions, total=False):
    """What labels to look for, and how much to spend; see `dpframe.discover`."""

    dtype: Annotated[Dtypes, "string"]
    max_length: Annotated[int, 256]
    where: str | None
    max_groups: int | None
    discovery: Amount | None
    mechanism: Annotated[DiscoveryMechanism, "auto"]
    privacy_unit: EachRow | None


class DiscoverOptions(LookOptions, RecordOptions, total=False):
    """The same, and what to record; see `dpframe.discover`."""


@with_keywords
def discover(frame: Frame, by: Columns, **options: Unpack[DiscoverOptions]) -> pd.DataFrame:
    """Find the groups that may be published, where they are not known beforehand.

    Units are counted by label, each for at most k of its labels, chosen at random. Integer noise Y
    is added, and a label with n units is published, with `n + Y`, if `n + Y >= T`. T is the
    smallest integer with `P(Y <= T - 2)^k >= 1 - d`, d the extra delta: with that probability, all
    labels that one unit alone has stay hidden.

    Parameters
    ----------
    frame
        The private frame.
    by
        Column or list of columns with the labels; of several, a label is one of each.
    dtype
        What labels are: "string", "int64", "bool", "date" or "datetime" (without a time zone), or a
        dict of these by column. Values that equal none of the kind are left out.
    max_length
        Texts with more characters are left out, and so are those that UTF-8 cannot hold, or with
        NUL.
    where
        Which rows are looked at, as in `count`.
    max_groups
        For how many labels a unit counts, k, in place of the declared cap. One of them is needed
        where a privacy unit is declared. A unit has no more labels than its `max_rows`, either.
    epsilon, delta, mu, rho, share
        As in `release`, with an extra delta beside. A delta in the call is for noise and threshold
        together: the release is (epsilon, delta)-DP.
    discovery
        Largest extra delta. By default all that is left of the budget's `discovery`; where delta
        is in the call, the part of it that finds the smallest groups.
    mechanism
        "laplace", "gaussian", or "auto": the one with the least T, then the least noise, among
        those that the budget allows.
    name, note, privacy_unit
        As in `release`.

    Returns
    -------
    DataFrame
        One row per label that was found, sorted; the column `units` holds the noisy numbers of
        units. Its index can be given as `keys=`. Labels that are not in it may be in the data.

    Raises
    ------
    AlreadyReleasedError, BudgetExceededError, CalibrationError, DeclarationError, QueryError,
    ReleaseError, UnknownColumnError
        As `release`; also if a budget has no `discovery`, or a unit no `max_groups`.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas 2009; Wilkins, Kifer, Zhang and Karrer 2024.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A"] * 900 + ["B"] * 500 + ["C"]})
    >>> found = dpf.discover(trips, "zone", epsilon=1, delta=1e-6, privacy_unit=dpf.EACH_ROW)
    >>> list(found.index), list(found.columns)
    (['A', 'B'], ['units'])
    """
    spend = Spend.among(options)
    declaration = declaration_of(frame).with_unit(options["privacy_unit"])
    recorded: RecordOptions = {"name": options["name"], "note": options["note"]}
    check_recorded(declaration.ledger, **recorded)
    engine, plan = _plan_for_frame(frame, declaration, by, spend, options)
    entry = entry_of(plan.words, plan, declaration, **recorded)
    record = record_of_discovery(plan, declaration, entry)

    def measure(ledger: parts.LedgerPart | None) -> pd.DataFrame:
        published = _publish_labels(engine.labels(frame, plan.task), plan.threshold)
        return _certify_labels(published, plan.wanted.axes, replace(record, ledger=ledger))

    return charge_and_make(frame, declaration, spend, entry, measure)


@with_keywords
def preview_discover(frame: Frame, by: Columns, **options: Unpack[LookOptions]) -> pd.DataFrame:
    """Show which groups would be found, and at what cost; reads no data and spends nothing.

    Parameters
    ----------
    frame, by, dtype, max_length, where, max_groups
        As in `discover`.
    epsilon, delta, mu, rho, share, discovery, mechanism, privacy_unit
        As in `discover`.

    Returns
    -------
    DataFrame
        One row per mechanism, the one that would be used first. `threshold`; `sigma`, the scale of
        the noise, and `std_error`, its standard deviation; `found_5`, `found_50` and `found_95`,
        the smallest numbers of units with which a label is found with a probability of 5, 50 and
        95 %; the cost as `mu`, `epsilon`, `delta` and `extra_delta`; `fits`, whether the budget
        allows it.

    Raises
    ------
    BudgetExceededError, CalibrationError, DeclarationError, QueryError, UnknownColumnError
        As `discover`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> facts = {"epsilon": 1, "delta": 1e-6, "privacy_unit": dpf.EACH_ROW}
    >>> shown = preview_discover(trips, "zone", **facts)
    >>> shown[["threshold", "found_5", "found_50", "found_95"]]
               threshold  found_5  found_50  found_95
    mechanism
    laplace           15       13        15        17
    gaussian          23       16        23        30
    """
    declaration = declaration_of(frame).with_unit(options["privacy_unit"])
    _, plan = _plan_for_frame(frame, declaration, by, Spend.among(options), options)
    plans = [plan, *plan.others]
    index = pd.Index([one.mechanism for one in plans], name="mechanism")
    return pd.DataFrame([_preview_mechanism(one, declaration) for one in plans], index)


def _plan_for_frame(
    frame: Frame, declaration: Declaration, by: Columns, spend: Spend, options: LookOptions
) -> tuple[Engine, DiscoveryPlan]:
    """Plan for a frame that has the columns, and return the engine that can read it."""
    dtype, longest = options["dtype"], options["max_length"]
    where, groups = options["where"], options["max_groups"]
    wanted = labels_wanted(by, dtype=dtype, max_length=longest, where=where, max_groups=groups)
    engine = engine_for(frame)
    engine.check(frame, wanted.labels)
    plan = plan_discovery(declaration, wanted, spend, options["mechanism"], options["discovery"])
    engine.check(frame, plan.columns)
    return engine, plan


def _preview_mechanism(plan: DiscoveryPlan, declaration: Declaration) -> dict[str, Any]:
    """Say what to expect of one mechanism."""
    threshold = plan.threshold
    return {
        "threshold": threshold.least,
        "sigma": threshold.scale,
        "std_error": threshold.law.standard_deviation(threshold.scale),
        **{f"found_{chance:.0%}"[:-1]: threshold.size_published(chance) for chance in _CHANCES},
        **cost_of_discovery(plan, declaration),
        "extra_delta": float(plan.loss.delta),
        "fits": declaration.allows(plan.loss),
    }


def _publish_labels(found: LabelCounts, threshold: LabelThreshold) -> LabelCounts:
    """Draw noise for all labels, and keep those that reach the threshold."""
    (noise,) = threshold.law.draw([threshold.scale], len(found.units))
    noisy = np.add(found.units, noise, out=noise)
    kept = noisy >= threshold.least
    return LabelCounts(tuple(column[kept] for column in found.labels), noisy[kept])


def _certify_labels(
    published: LabelCounts, axes: Sequence[LabelAxis], record: Release
) -> pd.DataFrame:
    """Certify what is published: in the order of the labels, never in that of the data."""
    order = _in_order(published.labels)
    levels = [
        _level(column[order], axis) for column, axis in zip(published.labels, axes, strict=True)
    ]
    index = levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels)
    released = pd.DataFrame({"units": published.units[order]}, index=index)
    by = tuple(
        replace(grouping, groups=level.nunique())
        for grouping, level in zip(record.query.by, levels, strict=True)
    )
    query = replace(record.query, by=by, cells=len(released))
    attach(released, certificate_for(replace(record, query=query)))
    return released


def _in_order(labels: Sequence[np.ndarray]) -> np.ndarray:
    """Sort by the first column of labels, then by the next."""
    ranks = [pd.factorize(column, sort=True)[0] for column in labels]
    return np.lexsort(ranks[::-1])


def _level(labels: np.ndarray, axis: LabelAxis) -> pd.Index:
    """Make an index of one dtype, whatever was found: of texts, that of pandas itself."""
    dtype = str if axis.kind == "string" else labels.dtype
    return pd.Index(labels, dtype=dtype, name=axis.column, tupleize_cols=False)

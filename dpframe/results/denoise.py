"""From a released frame to one with denoised columns beside the released ones.

What is known of the noise is read from the certificate, and what was done is written into it. The
released columns stay as they are. Cannot reach private data.
"""

import hashlib
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpframe.denoise.base import Denoised
from dpframe.denoise.choice import Choice, choose
from dpframe.denoise.methods import Facts, denoise_array
from dpframe.privacy.laws import law_named
from dpframe.queries.timescale import in_seconds, seconds
from dpframe.results.certificate import Certificate, attach, certificate_of, unpack, verify
from dpframe.results.denoise_checks import Across, Denoising, check_denoising, described, label_of

__all__ = ["apply_denoising", "denoised", "denoising_report"]


def denoised(
    released: pd.DataFrame,
    method: str = "auto",
    *,
    columns: Hashable | Sequence[Hashable] | None = None,
    graph: object = None,
    across: Across | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Add a denoised column `<column>_denoised` beside each released column.

    It is computed from what was released and from the known law of its noise alone, so it costs no
    privacy (Balle and Wang 2018, section 4). It is no longer unbiased, and has no standard error;
    the released columns keep theirs.

    Parameters
    ----------
    released
        A released frame.
    method
        "auto": the method with the smallest estimated risk among those that apply, or none where
        none is clearly expected to help; or a name in `dpframe.denoise.methods.METHODS`:
        "empirical_bayes", "james_stein", "gaussian_prior", "soft_threshold", "tree_wavelets",
        "trend_filter", and the projections "nonnegative", "simplex", "l1_ball", "monotone",
        "consistent" and "whole".
    columns
        The released columns to denoise; by default all counts and sums. The noise of a mean differs
        from row to row: denoise its count and its sum.
    graph
        Which rows are neighbors: a scipy sparse adjacency matrix in the order of the rows, a
        networkx graph of keys, a frame whose first two columns hold the keys that an edge joins,
        "ordered" or "grid". By default bins are "ordered" for "auto".
    across
        "rows": the rows of a column are denoised together; "columns": the columns of a row, which
        must have noise of the same size. By default rows, if there are several; else the largest
        set of columns that are alike.
    options
        Options of the method, such as `order=1` for "trend_filter" or `total=...` for "simplex".

    Returns
    -------
    DataFrame
        The released columns, then the denoised ones. The certificate lists the step, and
        `denoising_report` what was tried.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If method, columns, graph or options do not fit the release.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=list("ABCDEFGH")), epsilon=0.1)
    >>> list(denoised(released, "nonnegative").columns)
    ['count', 'count_denoised']
    """
    certificate = verify(released)
    columns_released = described(certificate.columns, released.columns)
    how = check_denoising(
        method,
        released.index,
        columns_released,
        columns=columns,
        graph=graph,
        across=across,
        options=options,
    )
    return apply_denoising(released, certificate, how)


def denoising_report(released: pd.DataFrame) -> pd.DataFrame:
    """Return what each denoised column was made with, and what was tried.

    Returns
    -------
    DataFrame
        One row for each denoised column and method tried: `estimated_gain`, the part of the mean
        squared error of the noise that is expected to be removed, and whether it was `chosen`. Of
        several chosen, "average" is what their average is expected to gain. A method without an
        estimate has a missing gain.

    Raises
    ------
    CertificateError
        If the frame carries no certificate.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> counts = dpf.release(trips, dpf.count(by="zone", keys=list("ABCDEFGH")), epsilon=0.1)
    >>> report = denoising_report(denoised(counts, "auto"))
    >>> list(report.index.names), list(report.columns), bool(report["chosen"].any())
    (['column', 'method'], ['estimated_gain', 'chosen'], True)
    """
    rows = [
        (
            step["into"],
            method,
            math.nan if gain is None else gain,
            method in step["members"] or method == step["method"],
        )
        for step in certificate_of(released)["steps"]
        for method, gain in step["tried"].items()
    ]
    table = pd.DataFrame(rows, columns=["column", "method", "estimated_gain", "chosen"])
    return table.set_index(["column", "method"])


def apply_denoising(
    released: pd.DataFrame, certificate: Certificate, how: Denoising
) -> pd.DataFrame:
    """Add the denoised columns and the steps to a released frame."""
    record = certificate.to_dict()
    base = released.iloc[:, : len(record["columns"])]
    origin = record["steps"][0]["of"] if record["steps"] else record["digest"]
    facts = [_facts(record, position, how) for position in how.columns]
    described = [record["columns"][position] for position in how.columns]
    places = zip(how.columns, described, strict=True)
    table = np.stack([in_seconds(base.iloc[:, at], about) for at, about in places], axis=1)
    if how.across == "columns":
        results = [_denoise(row, facts[0], how) for row in table]
        values = np.array([result.denoised.values for result in results]).reshape(table.shape)
        steps = [_step(results, facts[0], how)] * len(facts)
    else:
        found = [_denoise(column, fact, how) for column, fact in zip(table.T, facts, strict=True)]
        values = np.array([result.denoised.values for result in found]).reshape(table.T.shape).T
        steps = [_step([result], fact, how) for result, fact in zip(found, facts, strict=True)]
    frame = released.copy()
    frame.attrs = {}
    for position, column, step in zip(how.columns, values.T, steps, strict=True):
        label = label_of(released.columns[position])
        times = record["columns"][position]["times"]
        frame[label] = column if times is None else seconds(column)
        done = {"step": "denoise", "column": record["columns"][position]["name"], "into": label}
        record["steps"] = [old for old in record["steps"] if old["into"] != label]
        record["steps"].append({**done, **step, "of": origin})
    return attach(frame, record)


def _denoise(values: np.ndarray, facts: Facts, how: Denoising) -> Choice:
    # bounds near the largest float, or totals that are public and have no noise
    if not (np.isfinite(values).all() and 0 < facts.sigma < math.inf):
        return Choice((), Denoised(values, facts.variance, {}), {})
    if how.method == "auto":
        return choose(values, facts)
    found = denoise_array(values, how.method, facts, how.options)
    return Choice((how.method,), found, {})


def _facts(record: Mapping[str, Any], position: int, how: Denoising) -> Facts:
    """Read from the certificate what is known of the noise in what is denoised together."""
    column = record["columns"][position]
    loadings = _loadings(column)
    if how.across == "rows":
        common = loadings.keys() & set(record["common_blocks"])
    else:
        others = [_loadings(record["columns"][other]) for other in how.columns if other != position]
        common = {
            block
            for block, loading in loadings.items()
            if others and all(math.isclose(other.get(block, 0), loading) for other in others)
        }
    own = [loading for block, loading in loadings.items() if block not in common]
    law = law_named(record["mechanism"]["law"]).of_sum(len(loadings))
    bounds, times = column["bounds"], column["times"]
    least = 0 if bounds is None else bounds[0]
    if times is not None:  # sums of points in time are counted from the lower bound
        least = times["bounds"][0] - times["origin"]
    return Facts(
        law,
        math.hypot(*own),
        math.hypot(*(loadings[block] for block in common)),
        lower=0.0 if least >= 0 else None,
        integer=column["integer"] and times is None,
        edges=how.edges,
    )


def _loadings(column: Mapping[str, Any]) -> dict[str, float]:
    """Return what the noise of each block does to a value, the same in all rows."""
    return {
        block: float(np.max(np.abs(unpack(loading)), initial=0.0))
        for block, loading in column["loadings"].items()
    }


def _step(results: Sequence[Choice], facts: Facts, how: Denoising) -> dict[str, Any]:
    """Describe what was done, as plain JSON."""
    noise = facts.variance
    names = sorted({result.name for result in results}) or ["none"]
    members = sorted({name for result in results for name in result.methods or ("none",)})
    chosen = _chosen(results[0]) if len(results) == 1 else {}
    tried: dict[str, list[float]] = {}
    for result in results:
        # an average stands beside its members
        for name, each in {**result.tried, result.name: result.denoised}.items():
            # an estimated risk can be negative, but no more than all noise can be removed
            gain = 1 - max(each.risk, 0.0) / noise if noise else 0.0
            tried.setdefault(name, []).append(gain)
    return {
        "method": "; ".join(names),
        "members": members,
        "asked": how.method,
        "options": {name: _plain(value) for name, value in how.options.items()},
        "across": how.across,
        "graph": None if how.edges is None else _graph(how),
        "noise_variance": _number(noise),
        "chosen": {name: _number(value) for name, value in chosen.items()},
        "tried": {name: _number(float(np.mean(gains))) for name, gains in tried.items()},
    }


def _chosen(result: Choice) -> dict[str, float]:
    """Return what the methods that were taken chose by looking at the values."""
    if len(result.methods) == 1:
        return result.denoised.chosen
    return result.denoised.chosen | {
        f"{method}: {name}": value
        for method in result.methods
        for name, value in result.tried[method].chosen.items()
    }


def _graph(how: Denoising) -> dict[str, Any]:
    """Say which graph was used: its number of edges, and a digest of their positions."""
    edges = np.ascontiguousarray(how.edges, "<i8")
    return {"edges": len(edges), "digest": f"sha256:{hashlib.sha256(edges.tobytes()).hexdigest()}"}


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | None) else "given"


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None

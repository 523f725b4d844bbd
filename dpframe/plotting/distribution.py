"""What is drawn of a released distribution: how many rows are below each edge, with a band."""

from collections.abc import Hashable

import numpy as np
import pandas as pd

from dpframe.accuracy.distribution import ENDS_OF_ROUNDING, below_edges, deviations, risen
from dpframe.accuracy.ranges import Distribution, distribution_of
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.subsets import ADDED_OR_RENAMED, check_before
from dpframe.certificates.verify import certificate_of, verify
from dpframe.plotting.cells import Drawn, caption_of
from dpframe.plotting.positions import text
from dpframe.plotting.scales import NUMBERS
from dpframe.privacy.accuracy import check_level


def is_distribution(released: pd.DataFrame) -> bool:
    """Whether a frame holds numbers of rows in ranges, as they were released."""
    certificate = certificate_of(released)
    if not isinstance(certificate, Certificate) or certificate.unstacked is not None:
        return False
    structure = certificate.mechanism.structure
    untouched = {step.step for step in certificate.steps} <= ADDED_OR_RENAMED
    return structure is not None and structure.kind == "tree" and untouched


def gather_distribution(released: pd.DataFrame, level: float) -> Drawn:
    """Gather the numbers of rows below the edges, made increasing, with intervals of each."""
    level = check_level(level)
    certificate = check_before(verify(released), "kind='distribution'", allowed=ADDED_OR_RENAMED)
    found = distribution_of(released, certificate, "kind='distribution'")
    below, rising = below_edges(found.rows), risen(below_edges(found.rows))
    errors = deviations(found.known, len(found.bins), [0.0])
    width = certificate.mechanism.distribution.quantile(level) * errors + ENDS_OF_ROUNDING
    numbers = {
        "value": rising,
        "low": np.minimum(below - width, rising),
        "high": np.maximum(below + width, rising),
    }
    numbers = {name: part.ravel() for name, part in numbers.items()}
    parts = pd.DataFrame(numbers, index=_index(found, released.index.names))
    label: Hashable = released.columns[0]
    name = f"{text(label)} below"
    return Drawn(label, name, parts, NUMBERS, caption_of(certificate, [0]))


def _index(found: Distribution, names: list[Hashable]) -> pd.Index:
    """Return the groups with the edges of their bins."""
    edges = found.edges
    if found.groups is None:
        return edges.rename(names[-1])
    levels = [found.groups.get_level_values(at).repeat(len(edges)) for at in range(len(names) - 1)]
    along = edges[np.tile(np.arange(len(edges)), len(found.groups))]
    return pd.MultiIndex.from_arrays([*levels, along], names=names)

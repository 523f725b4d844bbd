"""Errors of margins in many draws: covariances across tables too, and those of releases."""

import numpy as np
import pandas as pd
import pytest
from support.marginal import check_covariance, domain_of, drawn, shared_covariance, up_to

import dpframe as dpf
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.strategies import margins

pytestmark = pytest.mark.audit

SIZES, TABLES = (2, 3, 4), up_to(3, 2)
DRAWS = 400_000


@pytest.mark.parametrize("weights", [(), (1, 4, 1, 1, 0.2, 1, 9)], ids=["equal", "weighted"])
@pytest.mark.parametrize("scale", [2.1, 25.77, 3e4])
def test_gaussian_covariances(weights, scale):
    layers = margins.contrast_layers(domain_of(SIZES, TABLES, weights))
    squares = {
        layer: scale**2 / float(precision)
        for layer, precision in zip(layers.lattice.layers, layers.precisions, strict=True)
    }
    expected = shared_covariance(layers, TABLES, squares, 1 / 12)
    # the largest standard error is .22 %: 1.5 % is passed in one run of 1e9
    check_covariance(np.cov(drawn(layers, GAUSSIAN, scale, DRAWS)), expected, 0.015)
    with pytest.raises(AssertionError):  # noise 2 % too small
        check_covariance(np.cov(drawn(layers, GAUSSIAN, 0.98 * scale, DRAWS)), expected, 0.015)


@pytest.mark.parametrize("scale", [0.2, 5.0])
def test_covariances_of_reconciled_tables(scale):
    layers = margins.table_layers(domain_of(SIZES, TABLES), LAPLACE)
    squares = {layer: tau**2 for layer, tau in margins._taus(layers, scale).items()}
    expected = shared_covariance(layers, TABLES, squares, 0.0)
    # noise of one cell has a kurtosis of 6 at most here, so that the largest standard error is
    # .36 %: 2.5 % is passed in one run of 1e9
    check_covariance(np.cov(drawn(layers, LAPLACE, scale, DRAWS)), expected, 0.025)
    with pytest.raises(AssertionError):  # noise 3 % too small
        check_covariance(np.cov(drawn(layers, LAPLACE, 0.97 * scale, DRAWS)), expected, 0.025)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "box"])
def test_releases_are_as_far_off_as_they_say(mechanism):
    rows = pd.DataFrame({"a": [0, 1, 1, 1, 2] * 10, "b": [0, 1] * 25, "x": [1.0, 4.0] * 25})
    rows.dp.declare(
        keys={"a": range(3), "b": range(2)}, bounds={"x": (0, 5)}, privacy_unit=dpf.EACH_ROW
    )
    query = dpf.margins(["a", "b"], n=dpf.count(), s=dpf.sum("x"))
    found = [
        rows.dp.release(query, epsilon=1, delta=1e-6, mechanism=mechanism) for _ in range(2_000)
    ]
    planned = rows.dp.plan(query, epsilon=1, delta=1e-6, mechanism=mechanism).table["std_error"]
    for table in found[0]:
        values = np.stack([tables[table].to_numpy() for tables in found])
        errors = values.std(axis=0).mean(axis=0)
        # one cell has a standard error of 2.7 % with Laplace noise: 16 % is passed in one of 1e8
        for name, error in zip(("n", "s"), errors, strict=True):
            assert error == pytest.approx(planned[table, name], rel=0.16)

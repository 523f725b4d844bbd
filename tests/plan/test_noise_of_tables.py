"""A certificate names the noise of its own table, however many tables are measured with it."""

import pandas as pd
import pytest

import dpframe as dpf


def tables(mechanism, number=5):
    frame = pd.DataFrame({"zone": ["A", "B", "B"], "fare": [1.0, 2.0, 3.0]})
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, bounds={"fare": (0, 5)}, keys={"zone": ["A", "B"]})
    queries = {
        place: dpf.aggregate("zone", n=dpf.count(where=f"fare > {place}"), mean=dpf.mean("fare"))
        for place in range(number)
    }
    return frame.dp.release(queries, epsilon=1, delta=1e-6, mechanism=mechanism)


def read(certificate):
    loadings = [block for column in certificate.columns for block in column.deviations]
    return {block for block in loadings if int(block) >= 0}  # those below are of rounding


@pytest.mark.parametrize("mechanism", ["gaussian", "box", "auto"])
def test_scales_are_those_of_blocks_that_are_read_or_drawn_with_them(mechanism):
    for released in tables(mechanism).values():
        certificate = dpf.verify(released)
        scales, groups = certificate.mechanism.scales, certificate.mechanism.groups
        together = {block for group in groups for block in group}
        assert read(certificate) | together == scales.keys()
        assert all(read(certificate).intersection(group) for group in groups)
        assert min(scales.values()) > 0
        assert released.dp.interval().notna().all(axis=None)

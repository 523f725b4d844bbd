"""Independent noise on every total."""

import pytest
from support.designing import EVERYONE, columns, workload

from dpframe.strategies import Output, independently

COUNT = Output("rows", 0)


@pytest.mark.parametrize("norm", [1, 2])
def test_a_number_of_rows_that_matters_is_released_once(norm):
    asked = (COUNT, Output("value", 1))
    both = independently(workload(columns((0, 5)), asked, rows_weight=2.0), norm)
    assert both.extra == 0
    alone = independently(workload(columns((0, 5)), asked[1:], rows_weight=2.0), norm)
    assert alone.extra == 1
    assert sorted(alone.scales) == sorted(both.scales) == [1, 5]
    assert independently(workload((EVERYONE,), (COUNT,), rows_weight=2.0), norm).extra == 0

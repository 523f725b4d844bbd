"""Releases that are broken on purpose, each in the real code: the audit catches every one.

The same games are played with the code as it is in `test_epsilon_lower_bounds`, where nothing may
be found. A variant is caught when the certified loss is above what its own certificate claims.
"""

import pytest
from support.auditing import audit
from support.feature_runs import unchecked
from support.variants import VARIANTS


@pytest.mark.audit
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_broken_release_is_caught(variant, monkeypatch):
    variant.plant(monkeypatch)
    with unchecked():  # the check of charges refuses most of them before anything is drawn
        finding = audit(variant.game)
    assert finding.certified > finding.epsilon


def test_what_a_broken_release_claims_can_be_read(monkeypatch):
    variant = VARIANTS[0]
    variant.plant(monkeypatch)
    with unchecked():
        epsilon, _, _ = variant.game.claim()
    assert epsilon > 0

"""What releases really lose, bounded from below by experiment: never above what they claim.

Each audit raises a false alarm with probability `auditing.FALSE_ALARM`. Fewer than 100 are made:
fewer than one run in 10,000 fails by chance.
"""

import pytest
from support.auditing import LEAST_RATIO, audit
from support.games import GAMES


@pytest.mark.audit
@pytest.mark.parametrize("game", GAMES.values(), ids=map("-".join, GAMES))
def test_no_more_is_lost_than_claimed(game):
    finding = audit(game)
    assert finding.certified <= finding.epsilon
    if game.tight:
        assert finding.ratio >= LEAST_RATIO

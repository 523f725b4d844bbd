"""Every public argument of every call is given private data of every kind, however deep."""

import pytest
from support import arguments

pytestmark = pytest.mark.audit


@pytest.mark.parametrize("group", arguments.GROUPS)
def test_no_public_argument_takes_or_shows_what_is_private(group, tmp_path):
    frame, calls = arguments.all_calls(tmp_path)[group]
    for things in (arguments.marked(tmp_path), arguments.unmarked()):
        assert not arguments.walked(calls, things, frame)

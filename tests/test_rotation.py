"""Every case runs in a few commits, and each run takes every test."""

import subprocess
from types import SimpleNamespace

import pytest
from support import rotation


def item(name, *marks):
    return SimpleNamespace(nodeid=name, get_closest_marker=lambda mark: mark in marks or None)


ITEMS = [
    item("a::one"),
    *(item(f"a::many[{case}]") for case in range(8)),
    *(item(f"a::many[{case}]", "full") for case in range(8, 14)),
    *(item(f"a::slow[{case}]", "audit") for case in range(4)),
]


@pytest.mark.parametrize("turn", range(rotation.TURNS))
def test_a_turn_takes_every_test_a_third_of_other_cases_and_all_audits(turn):
    taken, left = rotation.part_cases(ITEMS, turn)
    names = [one.nodeid for one in taken]
    assert {"a::one", "a::many[0]", "a::many[8]"} <= set(names)
    assert sum("many" in name for name in names) <= 7
    assert sum("slow" in name for name in names) == 4
    assert sorted(names + [one.nodeid for one in left]) == sorted(one.nodeid for one in ITEMS)


def test_turns_together_take_every_case():
    turns = range(rotation.TURNS)
    taken = {one.nodeid for turn in turns for one in rotation.part_cases(ITEMS, turn)[0]}
    assert taken == {one.nodeid for one in ITEMS}


def test_commits_are_counted_in_a_checkout_a_shallow_one_and_not_in_a_folder(tmp_path):
    first, shallow, inner = (tmp_path / name for name in ("first", "shallow", "first/inner"))
    inner.mkdir(parents=True)
    assert rotation.count_commits(tmp_path) is None
    git = ["git", "-C", str(first), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    assert rotation.count_commits(first) is None
    for text in ("once", "twice"):
        commit = [*git, "commit", "-q", "--allow-empty", "--no-gpg-sign", "-m", text]
        subprocess.run(commit, check=True)
    clone = ["git", "clone", "-q", "--depth", "1", first.as_uri(), str(shallow)]
    subprocess.run(clone, check=True)
    counts = [rotation.count_commits(folder) for folder in (first, shallow, inner)]
    assert counts == [2, 1, None]

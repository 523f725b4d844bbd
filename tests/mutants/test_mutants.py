"""Planted faults are still where they were planted, and the default tests find them."""

import pytest
from mutants.kit import ROOT, copied_tree, read_mutants, try_mutant

FEWEST = 60

SURVIVORS = {}
"""Faults that no default test finds, and why."""


def test_every_mutant_can_still_be_planted():
    mutants = read_mutants()
    names = [mutant.name for mutant in mutants]
    assert len(mutants) >= FEWEST
    assert len(set(names)) == len(names)
    moved = []
    for mutant in mutants:
        path = ROOT / mutant.file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if text.count(mutant.old) == 1:
            compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
        else:
            times = text.count(mutant.old)
            moved.append(f"{mutant.file} has {times} times what {mutant.name!r} changes")
        moved += [
            f"{mutant.name}: no {name}" for name in mutant.tests if not (ROOT / name).exists()
        ]
    assert moved == []


@pytest.fixture(scope="module")
def tree():
    with copied_tree() as root:
        yield root


@pytest.mark.audit
@pytest.mark.parametrize("mutant", read_mutants(), ids=lambda mutant: mutant.name)
def test_a_default_test_finds_a_fault(mutant, tree):
    outcome = try_mutant(mutant, tree)
    assert (outcome.killer is None) == (mutant.name in SURVIVORS), outcome

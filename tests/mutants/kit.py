"""Plant faults in a copy of the package, one at a time, and see which tests find them.

    python tests/mutants/kit.py                       # all of them, in the tests named beside them
    python tests/mutants/kit.py "pot" "a lone label"  # those with a word in their name
    python tests/mutants/kit.py --lane full "pot"     # in tests of another lane
    python tests/mutants/kit.py --everywhere "pot"    # in all tests of the lane

Of each test its first cases run alone: what they find is found in every turn of the others.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TREES = ("benchmarks", "docs", "dpframe", "examples", "tests", ".ci", ".github")
LANES = {"default": "not audit and not full", "full": "full and not audit", "audit": "audit"}
_LONGEST = 900  # seconds that one mutant may take


@dataclass(frozen=True)
class Mutant:
    """A fault: a text of a file, which is there once, and what stands in its place."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def plant(self, root):
        """Write the fault into a tree; what is not there once is no fault any more."""
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            why = f"{self.file}: {self.name!r}: its text is there {text.count(self.old)} times"
            raise ValueError(why)
        mutated = text.replace(self.old, self.new)
        compile(mutated, self.file, "exec")
        path.write_text(mutated, encoding="utf-8")


def read_mutants():
    """Read all mutants, in order."""
    files = sorted(Path(__file__).parent.glob("*.toml"))
    tables = [tomllib.loads(path.read_text(encoding="utf-8"))["mutant"] for path in files]
    return [Mutant(**{**own, "tests": tuple(own["tests"])}) for table in tables for own in table]


@contextmanager
def copied_tree() -> Iterator[Path]:
    """Copy what tests need."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        root = Path(folder)
        for name in _TREES:
            unwanted = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, root / name, ignore=unwanted)
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy(path, root / path.name)
        yield root


@dataclass(frozen=True)
class Outcome:
    """What tests said of a mutant."""

    mutant: Mutant
    killer: str | None
    seconds: float

    def __str__(self):
        verdict = "SURVIVED" if self.killer is None else self.killer
        return f"{self.seconds:6.1f} s  {self.mutant.name}: {verdict}"


def try_mutant(mutant, root, lane="default", *, everywhere=False):
    """Plant a mutant in a copy, run tests until one fails, and take it out again."""
    original = (root / mutant.file).read_text(encoding="utf-8")
    mutant.plant(root)
    places = ["dpframe", "tests"] if everywhere else [mutant.file, *mutant.tests]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    settings = {
        "PYTHONPATH": str(root),
        "PYTHONPYCACHEPREFIX": str(root / ".bytecode"),
        "DPFRAME_TURN": "first",
        "CI": "1",
    }
    environment = {**os.environ, **settings}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begun = time.monotonic()
    try:
        ran = subprocess.run(
            [*command, "-m", LANES[lane], *places],
            check=False,
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_LONGEST,
        )
        killer = _killer(ran)
    except subprocess.TimeoutExpired:
        killer = "nothing ended in time"
    finally:
        (root / mutant.file).write_text(original, encoding="utf-8")
    return Outcome(mutant, killer, time.monotonic() - begun)


def _killer(ran):
    """Name what failed; a run that found no test, or could not begin, says nothing."""
    if ran.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+(?:.*\])?)", ran.stdout, re.MULTILINE)
    if found is None:
        raise RuntimeError(ran.stdout[-2000:] + ran.stderr[-2000:])
    return found[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--lane", choices=LANES, default="default")
    parser.add_argument("--everywhere", action="store_true")
    given = parser.parse_args()
    named = [
        mutant
        for mutant in read_mutants()
        if not given.words or any(word in mutant.name for word in given.words)
    ]
    with copied_tree() as root:
        for mutant in named:
            print(try_mutant(mutant, root, given.lane, everywhere=given.everywhere), flush=True)


if __name__ == "__main__":
    main()

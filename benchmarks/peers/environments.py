"""Make a virtual environment for each library, once, in a folder that is kept."""

import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READ_FILES = "pyarrow>=16"
REQUIREMENTS = {
    "dpframe": ["-e", str(ROOT), "pandas>=2.3", READ_FILES, "dask[dataframe]", "distributed"],
    "opendp": ["opendp[polars,mbi]==0.16.*", READ_FILES],  # contingency tables need mbi
    # its accountant of privacy loss distributions needs dp-accounting
    "pipeline_dp": ["pipeline-dp==0.3.1", "dp-accounting>=0.4", READ_FILES],
    # a name that 0.6.6 imports is gone from scikit-learn 1.6 on
    "diffprivlib": ["diffprivlib==0.6.6", "scikit-learn<1.6", READ_FILES],
    "smartnoise": ["smartnoise-sql==1.0.10", "pandas<3", READ_FILES],
    "tumult": ["tmlt.analytics==0.21.*", READ_FILES],
}
IMPORTS = {
    "dpframe": "import dpframe, dask.dataframe, distributed, pyarrow",
    "opendp": "import opendp.prelude, polars, mbi",
    "pipeline_dp": "import pipeline_dp, dp_accounting",
    "diffprivlib": "import diffprivlib.tools",
    "smartnoise": "import snsql",
    "tumult": "import shutil, tmlt.analytics; assert shutil.which('java'), 'there is no Java'",
}
VERSIONS = """
import importlib.metadata as m
names = %r.split()
found = {d.metadata["Name"].lower().replace("_", "-"): d.version for d in m.distributions()}
print(", ".join(f"{n} {found[n]}" for n in names if n in found))
"""
NAMES = (
    "dpframe opendp pipeline-dp diffprivlib smartnoise-sql pandas numpy polars pyarrow dask "
    "python-dp dp-accounting scikit-learn mbi jax tmlt.analytics tmlt.core pyspark"
)
LONGEST = 1800  # seconds for one installation


@dataclass(frozen=True)
class Environment:
    """Where the Python of a library is, or why there is none."""

    library: str
    python: str
    versions: str = ""
    reason: str = ""
    seconds: float = 0.0

    def record(self) -> dict[str, object]:
        return {"part": "environment", **asdict(self)}


def run(*command: str) -> str:
    """Return the last line printed, or raise RuntimeError with the last line of the error."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LONGEST, check=False, cwd="/"
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or "failed").splitlines()[-1])
    return (done.stdout.strip() or "-").splitlines()[-1]


def prepare(library: str, folder: Path) -> Environment:
    """Reuse the environment of a library, or make it."""
    home = (folder / library).resolve()
    python = str(home / "bin" / "python")
    made = home / "installed"
    start = time.perf_counter()
    try:
        if not made.exists():
            print(f"installing {library}", flush=True)
            run(sys.executable, "-m", "venv", "--clear", str(home))
            run(python, "-m", "pip", "install", "-q", *REQUIREMENTS[library])
            made.touch()
        run(python, "-c", IMPORTS[library])
        versions = run(python, "-c", VERSIONS % NAMES)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        return Environment(library, "", reason=str(error))
    return Environment(library, python, versions, seconds=time.perf_counter() - start)

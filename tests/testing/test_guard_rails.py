"""Nothing tests by accident, and nothing real happens in a test: threads, forks, ledgers, files."""

import asyncio
import contextlib
import contextvars
import gc
import logging
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import pytest
from support.certifying import carry_text, text_of
from support.planning import Overrides, planned, read_plan, release_job
from support.randomness import SYSTEM
from support.terminal import main

import dpframe as dpf
import dpframe.testing as dpt
from dpframe.context import at_the_door
from dpframe.errors import CertificateError, DeclarationError, LedgerError
from dpframe.ledger.log import Protected
from dpframe.testing import block as open_blocks

TRIPS = pd.DataFrame({"zone": ["A", "B", "A", "C"], "rider": [1, 1, 2, 3]})
QUERY = dpf.count("zone", keys=["A", "B"])
BUDGET, LARGE = dpf.Budget(epsilon=1), dpf.Budget(epsilon=100)
ROOT = Path(dpf.__file__).parent


def ask(frame=TRIPS, **options):
    return dpf.release(frame, QUERY, epsilon=0.25, privacy_unit=dpf.EACH_ROW, **options)


def declared(ledger):
    frame = TRIPS.copy()
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, ledger=ledger)
    return frame


def declare_and_ask(ledger):
    return declared(ledger).dp.count("zone", keys=["A", "B"], epsilon=0.25)


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "trips.ledger"
    dpf.Ledger.create(place, budget=BUDGET)
    return place


@pytest.fixture(autouse=True)
def outside():
    """Before and after each test, nothing is in a block."""
    assert at_the_door() is SYSTEM
    yield
    assert at_the_door() is SYSTEM
    assert not open_blocks._OPEN


def blocks():
    return [dpt.record, lambda: dpt.seeded_noise(1)]


@pytest.mark.parametrize("block", blocks())
def test_a_file_is_not_charged_and_not_told_of_a_unit(block, path):
    before = path.read_bytes()
    with block():
        first, second = dpf.Ledger(path), dpf.Ledger(str(path))
        declare_and_ask(first)
        declare_and_ask(second)
        assert first.status().remaining_epsilon == second.status().remaining_epsilon == 0.5
        assert [len(one.entries) for one in (first, second, dpf.Ledger(path))] == [2, 2, 2]
    assert path.read_bytes() == before
    assert dpf.Ledger(path).protected is None


@pytest.mark.parametrize("made", ["file", "memory"])
def test_a_ledger_from_outside_is_as_it_was(made, path):
    ledger = dpf.Ledger(path) if made == "file" else dpf.Ledger(budget=BUDGET)
    frame = declared(ledger)
    with dpt.record():
        frame.dp.count("zone", keys=["A", "B"], epsilon=1)
        assert ledger.glance().remaining_epsilon == ledger.last_status().remaining_epsilon == 0
    assert (ledger.entries, ledger.status().remaining_epsilon) == ((), 1.0)
    frame.dp.count("zone", keys=["A", "B"], epsilon=1)
    assert len(ledger.entries) == 1


def test_a_spent_ledger_has_its_whole_budget_inside():
    ledger = dpf.Ledger(budget=BUDGET)
    declared(ledger).dp.count("zone", keys=["A"], epsilon=1, name="march")
    with dpt.record():
        declared(ledger).dp.count("zone", keys=["A"], epsilon=1, name="march")


def test_a_ledger_made_inside_is_in_memory_and_refused_outside(tmp_path):
    place = tmp_path / "new.ledger"
    with dpt.record():
        made = dpf.Ledger.create(place, budget=BUDGET)
        declare_and_ask(dpf.Ledger(place))
        assert len(made.entries) == 1
        alone = dpf.Ledger(budget=BUDGET)
    assert not place.exists()
    for ledger in (made, alone):
        with pytest.raises(LedgerError, match="made inside a testing block"):
            ledger.status()
        with pytest.raises(LedgerError, match="made inside a testing block"):
            declared(ledger)
        with dpt.record(), pytest.raises(LedgerError, match="made inside a testing block"):
            declared(ledger)


def test_a_frame_declared_inside_is_refused_outside():
    with dpt.record() as run:
        frame = declared(dpf.Ledger(budget=BUDGET))
    with pytest.raises(DeclarationError, match="declared inside a testing block"):
        frame.dp.count("zone", keys=["A"], epsilon=0.5)
    with run.replay() as again, pytest.raises(DeclarationError, match="inside a testing block"):
        frame.dp.count("zone", keys=["A"], epsilon=0.5)
    assert again.measured == ()
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, budget=BUDGET)
    frame.dp.count("zone", keys=["A"], epsilon=0.5)
    assert frame.dp.budget.remaining_epsilon == 0.5


OUTSIDE = {
    "verify": dpf.verify,
    "certificate": lambda made: made.dp.certificate,
    "interval": lambda made: made.dp.interval(0.9),
    "round": lambda made: made.dp.round(1),
    "concat": lambda made: dpf.concat([made, made]),
    "change": lambda made: made.dp.change(made),
    "combine": lambda made: made.dp.combine({"A": 1}),
    "sort": lambda made: dpf.verify(made.sort_values("count")),
    "denoise": lambda made: made.dp.denoise(),
    "report": dpf.report,
    "plot": lambda made: made.dp.plot(),
    "schema": dpf.schema,
    "write_csv": lambda made: dpf.write_csv(made, "test.csv"),
    "write_parquet": lambda made: dpf.write_parquet(made, "test.parquet"),
    "write_excel": lambda made: made.dp.write_excel("test.xlsx"),
    "read": lambda made: dpf.verify(pickle.loads(pickle.dumps(made))),  # noqa: S301
}


@pytest.mark.parametrize("call", OUTSIDE)
@pytest.mark.parametrize("block", blocks())
def test_what_is_made_inside_is_refused_outside(call, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with block():
        made = ask()
        assert "TEST" in repr(made.dp.certificate)
    with pytest.raises(CertificateError, match="made inside a testing block"):
        OUTSIDE[call](made)
    assert list(tmp_path.iterdir()) == []


def test_a_mark_that_is_taken_out_shows():
    with dpt.record():
        made = ask()
    text = text_of(made)
    carry_text(made, text.replace('"testing": true', '"testing": false'))
    assert text_of(made) != text
    with pytest.raises(CertificateError, match="is not what its certificate"):
        dpf.verify(made)


def test_files_go_to_the_folder_of_the_block_and_say_that_they_are_tests(tmp_path):
    real, folder = tmp_path / "published", tmp_path / "tests"
    real.mkdir(), folder.mkdir()
    with dpt.seeded_noise(3, folder=folder):
        made = ask()
        dpf.write_csv(made, real / "zones.csv")
        dpf.write_parquet(made, real / "zones.parquet")
        made.dp.write_excel(real / "zones.xlsx")
        page = dpf.report(made, path=real / "page.html", title="Trips")
        dpf.write_csv(made, folder / "own.csv")
        assert dpf.read_csv(real / "zones.csv").equals(made)
        assert dpf.read_csv(folder / "own.csv").equals(made)
        assert dpf.read_excel(real / "zones.xlsx").equals(made)
    assert list(real.iterdir()) == []
    names = sorted(file.name for file in folder.rglob("*") if file.is_file())
    assert len(names) == 7 and all(".test." in name for name in names)
    assert "TEST: Trips" in page and "Verified" not in page.split("</header>")[0]
    (written,) = folder.rglob("zones.test.parquet")
    with pytest.raises(CertificateError, match="made inside a testing block"):
        dpf.verify(pd.read_parquet(written))
    with pytest.raises(CertificateError):
        dpf.read_csv(folder / "own.test.csv")


def test_tables_say_that_they_are_tests_wherever_they_are_shown():
    with dpt.record():
        made = ask()
        steps = made.dp.round(1)
        dpf.write_csv(made, "zones.csv")
        read = dpf.read_csv("zones.csv")
        drawn = made.dp.plot().figure.texts
    for table in (made, steps, read, made.head(1)):
        assert repr(table).startswith("TEST: made inside a testing block")
        assert table._repr_html_().startswith("<p><b>TEST: ")
    assert any("TEST" in text.get_text() for text in drawn)
    real = ask()
    assert type(real) is pd.DataFrame and "TEST" not in repr(real)


def outside_of_tests(code: str, *options: str) -> str:
    """Run code in a process that no test runs, and return what it says."""
    lines = "import dpframe as dpf, dpframe.testing as dpt, sys\n" + code
    done = subprocess.run(
        [sys.executable, *options, "-c", lines], capture_output=True, text=True, check=True
    )
    return done.stderr


def test_a_block_that_no_test_opens_or_that_is_never_closed_warns():
    said = outside_of_tests("with dpt.seeded_noise(1): pass\nrun = dpt.record(); run.__enter__()")
    assert "<string>:2: DPFrameWarning: a testing block is open outside of a test" in said
    assert said.count("was never closed") == 1


def test_commands_in_a_block_do_not_end_well(tmp_path, capsys):
    (tmp_path / "real").mkdir()
    plan = planned(tmp_path / "real")
    line = ["release", str(plan), "--set", "month=2024-03"]
    with dpt.seeded_noise(1, folder=tmp_path / "tests"):
        assert main(line) == 78
    assert "TEST" in capsys.readouterr().err
    assert main(line) == 0


def test_a_temporary_folder_ends_with_the_block(tmp_path):
    with dpt.record() as run:
        dpf.write_csv(ask(), tmp_path / "zones.csv")
        folder = run.folder
        assert len(run.files()) == 2
    assert not folder.exists() and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("inside", [True, False])
def test_plans_run_into_the_folder_of_the_block(inside, tmp_path):
    real, folder = tmp_path / "real", tmp_path / "tests"
    real.mkdir(), folder.mkdir()
    plan = planned(real)
    before = {file: file.read_bytes() for file in real.rglob("*") if file.is_file()}
    march = Overrides({"month": "2024-03"})
    job = None if inside else read_plan(plan, march)
    with dpt.seeded_noise(1, folder=folder):
        done = release_job(job or read_plan(plan, march))
        assert done.published.files.all_there and len(done.ledger.entries) == 1
        assert all(one.dp.certificate.release.testing for one in done.frames.values())
    assert {file: file.read_bytes() for file in real.rglob("*") if file.is_file()} == before
    written = done.published.files.written
    assert all(file.is_relative_to(folder) and file.is_file() for file in written)


def in_thread(act):
    """Return what an act in a plain thread of its own returns or raises."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act).result()


@pytest.mark.parametrize("block", blocks())
def test_threads_that_do_not_see_the_block_release_nothing(block, path):
    before, real = path.read_bytes(), dpf.Ledger(path)
    frame = declared(dpf.Ledger(budget=BUDGET))
    with pytest.raises(dpt.PrivacyTestError, match="without its context"), block():
        for act in (
            ask,
            lambda: declare_and_ask(dpf.Ledger(path)),
            lambda: declared(None),
            lambda: real.protect(Protected(None, "add_remove")),
        ):
            with pytest.raises(dpt.PrivacyTestError, match="without its context"):
                in_thread(act)
        with pytest.raises(dpt.PrivacyTestError, match="without its context"):
            in_thread(lambda: frame.dp.count("zone", keys=["A"], epsilon=0.5))
        with pytest.raises(dpt.PrivacyTestError, match="without its context"):
            in_thread(lambda: dpf.Ledger.create(path.with_name("other"), budget=BUDGET))
    assert path.read_bytes() == before and frame.dp.budget.remaining_epsilon == 1
    assert not path.with_name("other").exists()
    assert in_thread(ask).dp.certificate.release.testing is False


def test_threads_with_a_copied_context_are_followed():
    with dpt.record() as run:
        context = contextvars.copy_context()
        made = in_thread(lambda: context.run(ask))
        assert made.dp.certificate.release.testing
        asyncio.run(asyncio.to_thread(ask))
    assert len(run.measured) == 2


def test_a_thread_that_outlives_its_block_releases_nothing():
    go, failed = threading.Event(), []

    def late():
        go.wait(10)
        try:
            ask()
        except dpt.PrivacyTestError as error:
            failed.append(error)

    with dpt.record():
        thread = threading.Thread(target=contextvars.copy_context().run, args=(late,))
        thread.start()
    go.set()
    thread.join()
    assert "which has ended" in str(failed[0])


def steps():
    with dpt.seeded_noise(3):
        yield ask()
        yield ask()


def test_generators_that_are_closed_anywhere_leave_nothing_behind():
    opened = steps()
    next(opened)
    assert at_the_door().is_test
    opened.close()
    assert ask().dp.certificate.release.testing is False
    opened = steps()
    next(opened)
    contextvars.copy_context().run(opened.close)  # where the variable cannot be set back
    assert ask().dp.certificate.release.testing is False
    opened = steps()
    next(opened)
    in_thread(opened.close)
    assert ask().dp.certificate.release.testing is False
    opened = steps()
    next(opened)
    del opened
    gc.collect()
    assert ask().dp.certificate.release.testing is False


def test_blocks_that_are_closed_out_of_order_leave_nothing_behind():
    first, second = dpt.seeded_noise(1), dpt.seeded_noise(2)
    first.__enter__()
    with pytest.raises(dpt.PrivacyTestError, match="inside of another"):
        second.__enter__()
    context = contextvars.Context()
    context.run(second.__enter__)
    assert context.run(lambda: ask().dp.certificate.release.testing)
    first.__exit__(None, None, None)
    with pytest.raises(dpt.PrivacyTestError, match="without its context"):
        ask()
    with pytest.raises(dpt.PrivacyTestError, match="without its context"):
        second.__exit__(None, None, None)
    assert ask().dp.certificate.release.testing is False


def test_a_check_notices_a_thread_that_is_refused_and_never_asked():
    def publish(trips):
        made = ask(trips)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(ask, trips)
        return made

    with pytest.raises(dpt.PrivacyTestError, match="without its context") as caught:
        dpt.check(publish, TRIPS)
    assert caught.value.rule == "outside"


def test_a_block_that_two_threads_enter_is_opened_by_one():
    block = dpt.seeded_noise(1)
    with block:
        with pytest.raises(dpt.PrivacyTestError, match="can be opened once"):
            in_thread(block.__enter__)
        assert ask().dp.certificate.release.testing
    assert ask().dp.certificate.release.testing is False


class Opening(logging.Handler):
    """Opens a block when a charge is logged."""

    def emit(self, record):
        if "charged" in record.getMessage() and not open_blocks._OPEN:
            self.block = dpt.seeded_noise(1)
            self.block.__enter__()


@pytest.fixture
def listener():
    logger, handler = logging.getLogger("dpframe"), Opening()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def test_a_block_that_opens_after_the_charge_gives_no_noise(listener):
    made = []
    for _ in range(2):
        ledger = dpf.Ledger(budget=BUDGET)
        made.append(declared(ledger).dp.count("zone", keys=[*map(str, range(50))], epsilon=0.01))
        listener.block.__exit__(None, None, None)
        assert len(ledger.entries) == 1
    assert not made[0].equals(made[1])
    assert not any(one.dp.certificate.release.testing for one in made)


def test_a_release_that_its_block_does_not_wait_for_charges_no_file(path, monkeypatch):
    frame, charge = declared(dpf.Ledger(path)), dpf.Ledger.charge
    before = path.read_bytes()

    def late(ledger, entry):
        block.close()
        charge(ledger, entry)

    with dpt.seeded_noise(1) as block:
        monkeypatch.setattr(dpf.Ledger, "charge", late)
        made = frame.dp.count("zone", keys=["A"], epsilon=0.25)
    assert path.read_bytes() == before
    with dpt.record():
        assert made.dp.certificate.release.testing


def test_tasks_that_outlive_a_block_closed_elsewhere_release_nothing():
    async def blocks():
        with dpt.record():
            yield

    async def late(go):
        await go.wait()
        return ask()

    async def main():
        go, opened = asyncio.Event(), blocks()
        await anext(opened)
        task = asyncio.create_task(late(go))
        await asyncio.sleep(0)
        await asyncio.create_task(opened.aclose())
        go.set()
        with pytest.raises(dpt.PrivacyTestError, match="has ended"):
            await asyncio.wait_for(task, 10)
        return ask()  # which knows that it closed the block

    assert asyncio.run(main()).dp.certificate.release.testing is False


def test_common_budgets_are_kept_when_frames_were_declared_inside():
    facts = {"keys": {"zone": ["A", "B"]}, "privacy_unit": dpf.EACH_ROW}
    common = dpf.declares(**facts, budget=BUDGET, argument="frame")
    count = common(lambda frame: frame.dp.count("zone", epsilon=1))
    frames = [TRIPS.copy(), TRIPS.copy()]
    with dpt.record():
        for frame in frames:
            frame.dp.declare(**facts, budget=BUDGET)
    count(frames[0])
    with pytest.raises(dpf.errors.BudgetExceededError):
        count(frames[1])


def test_a_ledger_of_a_test_takes_the_place_of_a_real_one_inside_alone():
    frame = declared(dpf.Ledger(budget=BUDGET))
    frame.dp.count("zone", keys=["A"], epsilon=1)
    with dpt.record():
        frame.dp.declare(privacy_unit=dpf.EACH_ROW, ledger=dpf.Ledger(budget=BUDGET))
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, budget=BUDGET)
    assert frame.dp.budget.remaining_epsilon == 0


def test_what_is_warned_of_inside_is_warned_of_outside_too():
    frame = TRIPS.copy()
    for block in (dpt.record, dpt.record, contextlib.nullcontext):
        with block(), pytest.warns(dpf.errors.DPFrameWarning, match="too large"):
            frame.dp.declare(privacy_unit=dpf.EACH_ROW, ledger=dpf.Ledger(budget=LARGE))


def test_a_replay_writes_into_a_folder_of_its_own_and_removes_it(tmp_path):
    with dpt.record() as run:
        dpf.write_csv(ask(), tmp_path / "zones.csv")
    with run.replay() as again:
        dpf.write_csv(ask(), tmp_path / "zones.csv")
        assert again.folder != run.folder
        assert again.folder.stat().st_mode & 0o077 == 0
    assert not run.folder.exists() and not again.folder.exists()


def test_a_path_has_one_new_ledger_inside(tmp_path):
    with dpt.record():
        dpf.Ledger.create(tmp_path / "new.ledger", budget=BUDGET)
        with pytest.raises(LedgerError, match="already"):
            dpf.Ledger.create(tmp_path / "new.ledger", budget=BUDGET)


def test_a_block_that_fails_is_closed():
    with pytest.raises(ZeroDivisionError), dpt.record():
        1 / 0  # noqa: B018
    assert ask().dp.certificate.release.testing is False


def test_a_block_is_opened_once():
    run = dpt.record()
    with run:
        ask()
    with pytest.raises(dpt.PrivacyTestError, match="can be opened once"), run:
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_release_nothing(path):
    before = path.read_bytes()

    def act():
        try:
            declare_and_ask(dpf.Ledger(path))
        except dpt.PrivacyTestError as error:
            os._exit(7 if "forked" in str(error) else 8)
        os._exit(0)

    with dpt.record():
        child = get_context("fork").Process(target=act)
        child.start()
        child.join(60)
    assert child.exitcode == 7 and path.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_file_that_another_process_charges_is_noticed(path):
    context = get_context("fork")
    go, done = context.Event(), context.Event()

    def act():
        go.wait(30)
        declare_and_ask(dpf.Ledger(path))
        done.set()

    child = context.Process(target=act)
    child.start()  # before there is a block: it sees none
    with pytest.raises(dpt.PrivacyTestError, match="No test sees"), dpt.record():
        declare_and_ask(dpf.Ledger(path))
        go.set()
        assert done.wait(60)
    child.join(60)
    assert len(dpf.Ledger(path).entries) == 1


def test_blocks_and_their_ledgers_are_not_pickled(path):
    with dpt.record() as run:
        with pytest.raises(dpt.PrivacyTestError, match="cannot be pickled"):
            pickle.dumps(run)
        with pytest.raises(LedgerError, match="cannot be pickled or copied"):
            pickle.dumps(dpf.Ledger(path))
        with pytest.raises(LedgerError, match="cannot be pickled or copied"):
            pickle.dumps(dpf.Ledger(budget=BUDGET))


def test_errors_are_not_caught_by_pipelines():
    with pytest.raises(dpt.PrivacyTestError, match="one more release"):
        with dpt.record() as run:
            pass
        with run.replay():
            try:
                ask()
            except BaseException:  # noqa: S110
                pass
    assert not issubclass(dpt.PrivacyTestError, Exception)


SCRIPT = """
import sys
import dpframe
from dpframe.__main__ import main
assert not [name for name in sys.modules if name.startswith("dpframe.testing")]
"""


@pytest.mark.full
def test_nothing_imports_it_and_no_environment_turns_it_on():
    environment = {**os.environ, "DPFRAME_TESTING": "1", "DPFRAME_SEED": "1"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=False)
    assert done.returncode == 0
    rooms = [ROOT / "testing", ROOT / "context.py"]
    files = [file for room in rooms for file in ([room] if room.is_file() else room.glob("*.py"))]
    assert len(files) > 5
    assert not [file for file in files if "environ" in file.read_text(encoding="utf-8")]

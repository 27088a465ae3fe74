"""Thousands of histories keep every promise, a broken product does not, and a failing plan can be made small."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from scheduler.app import taking_over
from tests.simulation.history import run_history
from tests.simulation.many import Tally
from tests.simulation.plan import Deed, Fault, Plan, make_plan
from tests.simulation.record import Record, product_files
from tests.simulation.regressions import REGRESSIONS
from tests.simulation.shrink import shrunk

ROOT = Path(__file__).resolve().parents[2]
HISTORIES = 120
"""In each run of the tests; ``python -m tests.simulation --seed S --count N`` runs more."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=False, capture_output=True, text=True)


@pytest.mark.timeout(600)
def test_every_promise_is_kept():
    """No pod lost, none booked twice, nothing written without the lease, truth restored: in every history."""
    done = run("tests.simulation", "--seed", "70000", "--count", str(HISTORIES))
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert f"{HISTORIES} histories, 0 violated" in done.stdout
    assert done.stderr == "", "no exception went unnoticed"


@pytest.mark.timeout(300)
def test_a_broken_product_is_caught():
    """Each of the mutations spoils the history that is known to show it."""
    done = run("tests.simulation.mutations")
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("what", "plan"), REGRESSIONS.items(), ids=str)
def test_a_history_that_once_failed(what, plan):
    """What was found stays mended."""
    with capture_logs():
        assert run_history(plan).violations == (), what


@pytest.mark.timeout(300)
def test_take_overs_without_a_list_keep_every_promise(monkeypatch):
    """As in large clusters. Two of these histories are spoiled if the watch is believed before it has shown everything."""
    sure = []
    see_all = taking_over.TakingOver.see_all

    async def counted(self, given_up_at):
        sure.append(await see_all(self, given_up_at))
        return sure[-1]

    monkeypatch.setattr(taking_over, "PAGE_SIZE", -1)
    monkeypatch.setattr(taking_over, "PATIENCE_S", 8.0)
    monkeypatch.setattr(taking_over.TakingOver, "see_all", counted)
    with capture_logs():
        violations = [v for seed in (20, *range(710_004, 710_019)) for v in run_history(make_plan(seed)).violations]
    assert violations == []
    assert sure.count(False) >= 5, "so many were meant"


@pytest.mark.timeout(60)
def test_the_same_seed_is_the_same_history():
    """Down to the number of writes and the end of time."""
    said = {run("tests.simulation", "--seed", "12").stdout.split(" in ")[0] for _ in range(2)}
    assert len(said) == 1


@pytest.mark.timeout(60)
def test_a_history_does_not_depend_on_those_before():
    """So that a seed that failed among thousands fails alone."""
    with capture_logs():
        alone = run_history(make_plan(12)).fingerprint
        assert [run_history(make_plan(seed)).fingerprint for seed in (11, 12)][1] == alone


@pytest.mark.timeout(120)
def test_a_seed_means_the_same_history_in_every_process():
    """Nothing comes from this machine: not the time of day, not where objects lie in memory."""
    program = "from tests.simulation.history import run_history; from tests.simulation.plan import make_plan\n"
    program += "from tests.simulation.quiet import silence; silence()\n"
    program += "print([run_history(make_plan(seed)).fingerprint for seed in (5003, 5004, 5011)])"
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    runs = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout != ""


def test_a_record_says_what_ran_on_which_code(tmp_path):
    """Batches of the present code are not run again; those of another code do not count."""
    path, tally = tmp_path / "record.jsonl", Tally(histories=500, violated={7: "G1"}, by_kind={"down": 3})
    Record(path).add(0, 500, tally)
    record = Record(path)
    assert record.has(0, 500)
    assert not record.has(500, 500)
    assert record.total() == tally
    record.product = "another"
    assert not record.has(0, 500)
    assert record.total() == Tally()


def test_the_digest_covers_all_that_a_history_runs():
    """A module that were loaded only when it is needed would be missing in it."""
    names = "{name for name in sys.modules if name.startswith('scheduler')}"
    code = f"""
import sys
from tests.simulation.history import run_history
from tests.simulation.plan import make_plan
before = {names}
for seed in (9, 1173):
    run_history(make_plan(seed))
print(sorted({names} - before))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
    folders = {path.relative_to(ROOT / "scheduler").parts[0] for path in product_files()}
    assert folders > {"app", "binding", "cycle", "intake", "kube", "plugins", "state"}
    assert not folders & {"cli", "serving"}


def test_a_plan_is_made_small():
    """Only the deed and the fault that together break the promise are left."""
    guilty, fault = Deed(5.0, "crash", "0"), Fault("late", 0.0, 9.0)
    plan = make_plan(3)
    plan = replace(plan, deeds=(*plan.deeds, guilty), faults=(*plan.faults, fault), replicas=2)

    def broken_by(tried: Plan) -> str:
        return "G1" if guilty in tried.deeds and fault in tried.faults else ""

    assert shrunk(plan, broken_by) == Plan(3, 1, (guilty,), (fault,))

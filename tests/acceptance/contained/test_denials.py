"""What the sandbox refuses is told with its path and the setting that allows it, and costs no attempt."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Loop, Plan, Role, Run
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import AttemptState, LoopState, PlanState, TaskState


@pytest.fixture
def machine() -> Iterator[Path]:
    """A folder of the machine that runs can read but not write."""
    with tempfile.TemporaryDirectory(dir=Path(sys.prefix)) as folder:
        yield Path(folder)


def test_a_gate_that_may_not_write_holds_finished_work_and_goes_on_once_it_may(
    shop: Workshop, machine: Path
) -> None:
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    plan = shop.plan("gate", [task("one", f"test -s one && touch {machine}/made")])
    said = shop.run(plan)
    assert said.code != 0
    told = f"the sandbox kept it from writing {machine}/made: to allow it, add the folder to sandbox.write"
    assert told in " ".join((said.out + said.err).split())
    (gate,) = shop.rows(Run, role=Role.GATE)
    assert (gate.failure, gate.summary) == (Failure.ENVIRONMENT, told)
    (attempt,) = shop.attempts("one")
    assert attempt.state is AttemptState.CHECKING, "the work is kept, and waits"
    assert (shop.task("one").attempts, shop.row(Loop).state) == (0, LoopState.PAUSED)
    shop.program.env["LOOPWRIGHT_SANDBOX__WRITE"] = str(machine)
    again = shop("resume", timeout=100)
    assert again.code == 0, again.out + again.err
    assert len(shop.rows(Run, role=Role.IMPLEMENTER)) == 1, "nobody paid for the same work again"
    assert (machine / "made").exists()


def test_an_agent_that_fails_over_a_refusal_burns_no_attempt(shop: Workshop, machine: Path) -> None:
    steps = [{"run": f"touch {machine}/made"}, {"fail": "agent_error", "message": "I could not go on"}]
    shop.play({"one": [steps]})
    said = shop.run(shop.plan("agent", [task("one", "test -d .")]))
    assert said.code != 0
    (attempt,) = shop.attempts("one")
    assert (attempt.state, attempt.failure) == (AttemptState.BROKEN, Failure.ENVIRONMENT)
    assert f"from writing {machine}/made" in attempt.detail
    assert "sandbox.write" in attempt.detail
    row = shop.task("one")
    assert (row.status, row.attempts, row.failure) == (TaskState.ERROR, 0, Failure.ENVIRONMENT)


@pytest.mark.more
def test_a_setup_command_that_needs_a_hidden_file_names_it(shop: Workshop) -> None:
    needed = shop.program.user / "data" / "words"
    needed.parent.mkdir()
    needed.write_text("words")
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    plan = shop.plan("setup", [task("one", "test -d .")], settings={"setup": f"cat {needed} > words"})
    assert shop.run(plan).code != 0
    (attempt,) = shop.attempts("one")
    assert attempt.failure is Failure.ENVIRONMENT
    assert attempt.detail == f"the sandbox hides {needed} from it: to show it, add it to sandbox.read"
    assert shop.task("one").attempts == 0
    shop.program.env["LOOPWRIGHT_SANDBOX__READ"] = "~/data"
    said = shop("retry", "one", timeout=100)
    assert said.code == 0, said.out + said.err
    assert shop.landed() == ["one"]


def test_gate_all_that_may_not_use_the_network_pauses_the_plan(shop: Workshop) -> None:
    shop.program.env["LOOPWRIGHT_SANDBOX__NETWORK"] = "agents"
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    reach = "python3 -c \"import socket; socket.create_connection(('10.255.255.1', 9), 1)\""
    gates = [{"name": "fetch", "run": f"test ! -e one || {reach}"}]
    said = shop.run(shop.plan("network", [task("one", "test -s one")], gates=gates))
    assert said.code != 0
    assert "to allow it, set sandbox.network to on" in " ".join((said.out + said.err).split())
    assert shop.task("one").attempts == 0


def test_a_check_that_fails_for_its_own_reasons_is_no_denial(shop: Workshop) -> None:
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    check = "echo 'cannot open /nowhere/at/all: No such file or directory'; false"
    assert shop.run(shop.plan("own", [task("one", check)]), "--max-attempts", "1").code != 0
    row = shop.task("one")
    assert (row.failure, row.attempts) == (Failure.GATE, 1)


def test_a_sandbox_that_is_asked_for_by_name_and_does_not_hold_is_refused(shop: Workshop) -> None:
    shop.program.env |= {
        "LOOPWRIGHT_SANDBOX__LEVEL": "bubblewrap",
        "LOOPWRIGHT_SANDBOX__PROGRAM": "/nowhere/bwrap",
    }
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    said = shop.run(shop.plan("none", [task("one", "test -d .")]))
    assert said.code == 2
    assert "sandbox.level is bubblewrap, but that does not hold here" in said.err
    assert "install the package bubblewrap" in said.err
    assert shop.rows(Run) == []


def test_gate_all_that_is_refused_something_pauses_the_plan_and_is_asked_again(
    shop: Workshop, machine: Path
) -> None:
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    # Only the check of the whole plan is about no task.
    gates = [{"name": "whole", "run": f'test -n "$LOOPWRIGHT_TASK" || touch {machine}/made'}]
    said = shop.run(shop.plan("whole", [task("one", "test -s one")], gates=gates))
    assert said.code != 0
    assert (shop.row(Plan).status, shop.row(Loop).state) == (PlanState.RUNNING, LoopState.PAUSED)
    assert f"the sandbox kept it from writing {machine}/made" in " ".join(said.out.split())
    (run,) = shop.rows(Run, role=Role.EVALUATION)
    assert run.failure is Failure.ENVIRONMENT
    shop.program.env["LOOPWRIGHT_SANDBOX__WRITE"] = str(machine)
    again = shop("resume", timeout=100)
    assert again.code == 0, again.out + again.err
    assert shop.row(Plan).status is PlanState.VERIFIED


def test_init_tries_the_checks_where_runs_will_have_them(shop: Workshop, machine: Path) -> None:
    (shop.repository / "Makefile").write_text(
        f"test:\n\ttouch {machine}/made\n\ncheck:\n\tgrep -q hello greet.txt\n"
    )
    shop.git("add", "-A")
    shop.git("commit", "-qm", "Checks")
    said = shop("init", "--dry-run", timeout=100)
    assert f"the sandbox kept it from writing {machine}/made" in " ".join(said.out.split())
    assert not (machine / "made").exists()

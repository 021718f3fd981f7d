"""The whole way: a gate's spec, a real keeper, the real runner, and the verdict."""

import json
import os
import signal
from uuid import uuid4

import anyio
import psutil
import pytest
from tests.integration.gates.desks import command
from tests.waiting import eventually_async

from loopwright.adapters.gates.commands import RUNNER, CommandGate
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.core.values.findings import VerdictStatus
from loopwright.ports import GateRequest


@pytest.fixture(params=[None, RUNNER], ids=["started anew", "loaded before"])
def keepers(request):
    """Keepers that start the runner as a program, and such that have it loaded."""
    found = ProcessKeepers(loads=request.param)
    yield found
    found.close()


@pytest.mark.capability("C078", "C079")
async def test_a_gate_runs_under_a_keeper_which_records_what_its_commands_print(desk, keepers):
    gate = CommandGate()
    request = GateRequest(
        run_id=f"run_{uuid4()}",
        directory=desk.directory,
        tree=desk.tree,
        commands=(command("echo hello", "one"), command("echo '[FAIL] x: y'", "two")),
        env={"PATH": os.environ["PATH"]},
    )
    await keepers.start(gate.spec(request))
    with anyio.fail_after(30):
        lines = [line.text async for line in keepers.follow(desk.directory)]
        end = await keepers.wait(desk.directory)
    verdict = gate.verdict(request, end)
    assert verdict.status is VerdictStatus.FAILED
    assert [(c.name, c.status.value) for c in verdict.checks] == [("one", "passed"), ("x", "failed")]
    text = [line.rstrip("\n") for line in lines]
    assert text[0] == "=== 1/2 one: echo hello"
    assert text[1] == "hello"
    assert "[FAIL] x: y" in text
    assert not (desk.tree / "gate").exists()


async def test_a_gate_that_is_ended_from_outside_is_broken(desk, keepers, wording):
    gate = CommandGate(term_grace_s=0.3)
    request = GateRequest(
        run_id=f"run_{uuid4()}",
        directory=desk.directory,
        tree=desk.tree,
        commands=(command("touch begun; sleep 300"),),
        env={"PATH": os.environ["PATH"]},
    )
    await keepers.start(gate.spec(request))
    await eventually_async((desk.tree / "begun").exists)
    with anyio.fail_after(30):
        end = await keepers.end(desk.directory)
    verdict = gate.verdict(request, end)
    assert verdict.status is VerdictStatus.INCONCLUSIVE
    wording(verdict.reason)


async def test_a_gate_sees_its_own_environment_and_no_descriptor_of_ours(desk, keepers):
    gate = CommandGate()
    request = GateRequest(
        run_id=f"run_{uuid4()}",
        directory=desk.directory,
        tree=desk.tree,
        commands=(
            command(
                "env | cut -d= -f1 | grep -v LC_CTYPE | sort | tr '\\n' ' '; "
                # What the shell has open changes while it makes a pipe; what it starts has what was let through.
                "ls /proc/self/fd | tr '\\n' ' '; pwd"
            ),
        ),
        env={"PATH": os.environ["PATH"], "MINE": "1"},
    )
    await keepers.start(gate.spec(request))
    with anyio.fail_after(30):
        lines = [line.text async for line in keepers.follow(desk.directory)]
        await keepers.wait(desk.directory)
    assert lines[1].split() == [
        "LOOPWRIGHT_RUN",
        "MINE",
        "PATH",
        "PWD",
        "TMPDIR",
        "0",
        "1",
        "2",
        "3",  # the folder that is being listed
        str(desk.tree),
    ]


async def test_a_gate_dies_with_its_keeper_and_does_not_hold_the_run_for_it(desk, keepers):
    gate = CommandGate()
    request = GateRequest(
        run_id=f"run_{uuid4()}",
        directory=desk.directory,
        tree=desk.tree,
        commands=(command("touch begun; sleep 300"),),
        env={"PATH": os.environ["PATH"]},
    )
    await keepers.start(gate.spec(request))
    await eventually_async((desk.tree / "begun").exists)
    keeper = json.loads((desk.directory / "status.json").read_text())["keeper"]["pid"]
    (runner,) = psutil.Process(keeper).children()
    os.kill(keeper, signal.SIGKILL)
    await eventually_async(lambda: keepers.look(desk.directory).state == "lost")
    await eventually_async(lambda: not runner.is_running() or runner.status() == psutil.STATUS_ZOMBIE)
    with anyio.fail_after(30):
        assert (await keepers.end(desk.directory)).ended_by == "lost"

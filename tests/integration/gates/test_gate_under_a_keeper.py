"""The whole way: a gate's spec, a real keeper, the real runner, and the verdict."""

import os
from uuid import uuid4

import anyio
import pytest
from tests.integration.gates.desks import command
from tests.waiting import eventually_async

from loopwright.adapters.gates.commands import CommandGate
from loopwright.adapters.keepers import ProcessKeepers
from loopwright.core.model import VerdictStatus
from loopwright.ports import GateRequest


@pytest.mark.capability("C078", "C079")
async def test_a_gate_runs_under_a_keeper_which_records_what_its_commands_print(desk):
    gate, keepers = CommandGate(), ProcessKeepers()
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


async def test_a_gate_that_is_ended_from_outside_is_broken(desk):
    gate, keepers = CommandGate(term_grace_s=0.3), ProcessKeepers()
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
    assert (verdict.status, verdict.reason) == (
        VerdictStatus.BROKEN,
        "the gate was stopped before it was finished",
    )

"""A gate's commands in a sandbox, their runner outside of it."""

import sys
from dataclasses import replace
from pathlib import Path

from tests.integration.gates.desks import Desk, command, ended
from tests.integration.sandbox.conftest import MakeWalls

from loopwright.adapters.gates.commands import CommandGate
from loopwright.core.values.containment import Containment
from loopwright.core.values.findings import VerdictStatus
from loopwright.keeper import places
from loopwright.ports import Reach


def test_a_command_that_runs_out_of_time_is_asked_before_it_is_killed(
    tmp_path: Path, walls: MakeWalls
) -> None:
    desk = Desk(tree=tmp_path / "tree", directory=tmp_path / "own" / "run")
    desk.tree.mkdir()
    (desk.directory / places.TMP).mkdir(parents=True)
    sandbox = walls()
    patience_s = 3.0 if sandbox.level is Containment.BUBBLEWRAP else 15.0  # it has to be up by then
    slow = f"trap 'echo asked > asked; exit 5' TERM; {sys.executable} -c 'print(1)'; while :; do sleep 0.05; done"
    request = desk.request(
        command(slow, timeout_s=patience_s), command("test -s asked; echo second", name="second")
    )
    reach = Reach(directory=desk.directory, cwd=desk.tree, env=request.env, writable=(desk.tree,))
    request = replace(request, wrapper=sandbox.prefix(reach))
    gate = CommandGate(term_grace_s=20.0)
    with desk.start(gate, request) as process:
        process.communicate(timeout=90)
    verdict = gate.verdict(request, ended(process.returncode))
    assert verdict.status is VerdictStatus.FAILED
    first, second = verdict.commands
    assert (first.timed_out, first.exit_code, second.exit_code) == (True, 5, 0)
    assert (desk.tree / "asked").exists()

"""A gate run that is made from the records of another one."""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from tests.cases import each_case
from tests.integration.gates.desks import NOW, Desk, command, ended
from tests.wording_plugin import Wording

from loopwright.adapters.gates.commands import CommandGate
from loopwright.adapters.processes.keeper_files import read_exit
from loopwright.core.values.findings import VerdictStatus
from loopwright.keeper import places
from loopwright.ports import ShownBy

ONE, TWO = command("echo one", "one"), command("echo two; date +%N", "two")
TESTS = command(f"{sys.executable} -B -m pytest -q -p no:cacheprovider tests", "tests")
NARROW = command(f"{TESTS.command}/test_a.py", "narrow")


def recorded(desk: Desk, *commands: object) -> Desk:
    """Run commands, leave what a keeper leaves, and return a second desk beside it."""
    desk.run(*commands)
    over = {"version": 1, "run_id": "r", "code": 0, "ended_by": "itself", "started_at": None}
    over |= {"ended_at": NOW.isoformat(), "output_bytes": 0, "output_sha256": "x", "dropped_bytes": 0}
    (desk.directory / places.EXIT).write_text(json.dumps({**over, "error": "", "login_renewed": False}))
    (desk.directory / places.OUTPUT).mkdir()
    return Desk(tree=desk.tree, directory=desk.directory.parent / "second")


def test_the_same_commands_in_another_order_have_the_same_results(desk: Desk) -> None:
    again, gate = recorded(desk, ONE, TWO), CommandGate()
    request = again.request(TWO, ONE)
    assert gate.reuse(request, desk.directory, {}, NOW)
    over = read_exit(again.directory)
    assert over is not None
    assert (over.ended_by, over.ended_at) == ("itself", NOW)
    verdict = gate.verdict(request, over)
    assert verdict.status is VerdictStatus.PASSED
    first = gate.verdict(desk.request(ONE, TWO), ended())
    assert verdict.commands == first.commands[::-1]


def _program(desk: Desk, _: Path) -> None:
    (desk.tree.parent / "bin" / "own").write_text("#!/bin/sh\necho another\n")


def _output(desk: Desk, _: Path) -> None:
    (desk.directory / "gate" / "1.out").write_text("changed")


def _gone(desk: Desk, _: Path) -> None:
    shutil.rmtree(desk.directory / "gate")


@each_case("change", [_program, _output, _gone])
def test_nothing_is_reused_when_a_program_or_a_record_changed(change, tmp_path: Path) -> None:
    own = tmp_path / "bin" / "own"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\necho it\n")
    own.chmod(0o755)
    (tmp_path / "tree").mkdir()
    desk, path = Desk(tree=tmp_path / "tree", directory=tmp_path / "runs" / "run"), os.environ["PATH"]
    desk_env = {"PATH": f"{own.parent}:{path}"}
    gate, asked = CommandGate(), command("own", "own")
    first = replace(desk.request(asked), env=desk_env)
    with desk.start(gate, first) as process:
        process.communicate(timeout=300)
    (desk.directory / places.OUTPUT).mkdir()
    (desk.directory / places.EXIT).write_text('{"code": 0}')
    again = replace(first, directory=desk.directory.parent / "second")
    assert not gate.reuse(replace(again, environment="another"), desk.directory, {}, NOW)
    assert not gate.reuse(replace(again, commands=(command("other", "own"),)), desk.directory, {}, NOW)
    limited = (replace(asked, timeout_s=5.0),)
    assert not gate.reuse(replace(again, commands=limited), desk.directory, {}, NOW)
    assert gate.reuse(again, desk.directory, {}, NOW)
    shutil.rmtree(again.directory)
    change(desk, tmp_path)
    assert not gate.reuse(again, desk.directory, {}, NOW)
    assert not again.directory.exists()


def test_a_narrower_command_has_what_was_seen_of_its_tests_in_the_wider_one(
    desk: Desk, wording: Wording
) -> None:
    (desk.tree / "tests").mkdir()
    for name in "ab":
        (desk.tree / "tests" / f"test_{name}.py").write_text(f"def test_{name}():\n    pass\n")
    again, gate = recorded(desk, TESTS), CommandGate()
    request = again.request(TESTS, NARROW)
    tests = frozenset({"tests/test_a.py::test_a"})
    shown = {NARROW.command: ShownBy(gate=TESTS, tests=tests)}
    assert gate.reuse(request, desk.directory, shown, NOW)
    verdict = gate.verdict(request, ended())
    assert verdict.status is VerdictStatus.PASSED
    wording(verdict.commands[1].tail)
    whole, narrow = gate.witnessed(again.directory, 2) or (None, None)
    assert whole is not None
    assert narrow is not None
    assert (len(whole.passed), narrow.passed, narrow.problems) == (2, tests, ())

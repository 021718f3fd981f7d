"""Trouble of the machine is one sentence with what to do and exit code 6, never a traceback."""

import json
import resource
import shutil
import subprocess
import sys
from functools import partial

from tests.acceptance.faults.test_disk_and_database import mounted
from tests.acceptance.sandbox import Sandbox, task

from loopwright.adapters.store.sql import SqlStore
from loopwright.cli.shell.trouble import trouble_of


def _limited(sandbox: Sandbox, kind: int, limit: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Call the program where only so much of something may be used."""
    return subprocess.run(
        [sys.executable, "-m", "loopwright.cli", *arguments],
        cwd=sandbox.repository,
        env=sandbox.program.env,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=partial(resource.setrlimit, kind, (limit, limit)),
    )


def test_few_open_files_and_little_memory_are_told_with_what_to_do(sandbox: Sandbox) -> None:
    sandbox.home.mkdir()
    SqlStore.open(sandbox.home / "loopwright.db").close_sync()
    plan = sandbox.plan("limits", [task("a", "grep -q right a.txt")])
    for kind, limit, code, advice in (
        (resource.RLIMIT_NOFILE, 6, "too_many_open_files", "ulimit -n 4096"),
        (resource.RLIMIT_NOFILE, 8, "too_many_open_files", "ulimit -n 4096"),
        (resource.RLIMIT_AS, 64 << 20, "out_of_memory", "ulimit -v"),
    ):
        said = _limited(sandbox, kind, limit, "run", str(plan), "--json")
        assert "Traceback" not in said.stderr, (limit, said.stderr)
        assert said.returncode == 6, (limit, said)
        error = json.loads(said.stdout)["error"]
        assert error["code"] == code, (limit, error)
        assert advice in error["hint"]


def test_a_read_only_home_is_told_by_every_command_that_needs_to_write(sandbox: Sandbox) -> None:
    sandbox.home.mkdir()
    SqlStore.open(sandbox.home / "loopwright.db").close_sync()
    plan = sandbox.plan("read-only", [task("a", "grep -q right a.txt")])
    with mounted(sandbox.home, "--bind", str(sandbox.home)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(sandbox.home)], check=True)
        for command in (("run", str(plan)), ("worker",)):
            said = sandbox(*command)
            assert said.code == 6, (command, said)
            assert str(sandbox.home) in said.err
            assert "writable for this user" in said.err


def test_a_home_that_is_deleted_under_a_worker_ends_it_with_a_sentence(sandbox: Sandbox) -> None:
    go = sandbox.place / "go"
    sandbox.play({"a": [[{"write": "a.txt", "text": "right\n"}, {"wait_for": str(go)}]]})
    worker = sandbox.start("run", str(sandbox.plan("gone", [task("a", "grep -q right a.txt")])))
    try:
        worker.until("a  scripted")
        shutil.rmtree(sandbox.home, ignore_errors=True)
        go.touch()
        assert worker.end() == 6, worker.out
    finally:
        worker.kill()
    told = " ".join(worker.out.split())
    assert "loopwright.db was deleted or moved while Loopwright used it" in told
    assert "to do: put it back" in told


def test_an_error_counts_as_trouble_of_the_machine_by_itself_or_by_its_named_cause() -> None:
    wrapped = RuntimeError("leg 7 ended")
    wrapped.__cause__ = ExceptionGroup("several", [ValueError("x"), OSError(28, "No space left on device")])
    found = trouble_of(wrapped)
    assert found is not None
    assert (found.code, "free some space" in found.hint) == ("disk_full", True)  # type: ignore[attr-defined]

    defect = KeyError("a defect")
    defect.__context__ = FileNotFoundError(2, "No such file", "optional.json")
    assert trouble_of(defect) is None, "what was handled before is not why it failed"

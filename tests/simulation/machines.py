"""Machines: what runs on them outlives the worker that started it, and ends when it ends."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from tests.simulation.target import Target, Workspace
from tests.simulation.trouble import Trouble, effect

from loopwright.core.errors import CannotRun
from loopwright.core.findings import Check, CheckStatus, Verdict, VerdictStatus
from loopwright.core.model import Task
from loopwright.core.policy import GateCommand
from loopwright.ports import Exit, GateRequest, OutputLine, RunSpec, Sighting
from loopwright.testing.virtual_loop import VirtualClock

GATE_ALL = GateCommand(name="all", command="all")


def acceptance(key: str) -> GateCommand:
    """Return the command that tells whether a task was really done."""
    return GateCommand(name=f"accept {key}", command=f"accept {key}")


def is_good(command: str, files: Mapping[str, str]) -> bool:
    """Say what a command finds in a tree when nothing goes wrong."""
    if command.startswith("accept "):
        key = command.removeprefix("accept ")
        return files.get(f"{key}.txt") == f"good {key}"
    return not any(text.startswith(("bad", "half")) for text in files.values())


@dataclass(slots=True, kw_only=True, eq=False)
class Kept:
    """One process under its keeper."""

    spec: RunSpec
    started_at: datetime
    began: float
    ended: asyncio.Event
    state: Literal["alive", "exited", "lost"] = "alive"
    exit: Exit | None = None
    lines: list[str] = field(default_factory=list)
    found: dict[str, bool] | None = None
    """What a gate's commands found, once they all ran."""

    @property
    def is_gate(self) -> bool:
        return self.spec.argv[0] == "gate"


class Machine:
    """One host: its disk, its clock, and the processes that workers left on it."""

    def __init__(
        self,
        name: str,
        target: Target,
        trouble: Trouble,
        clock: VirtualClock,
        task_of: Callable[[str], Task],
        watch: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self.name = name
        self.clock = clock
        self.kept: dict[Path, Kept] = {}
        self.gone = False
        self._target = target
        self._trouble = trouble
        self._task_of = task_of
        self._watch = watch

    # --- processes ----------------------------------------------------------------------------------

    def begin(self, spec: RunSpec) -> None:
        """Start a process; nobody here owns it."""
        loop = asyncio.get_running_loop()
        kept = Kept(spec=spec, started_at=self.clock.now(), began=loop.time(), ended=asyncio.Event())
        self._watch("process", {"machine": self, "kept": kept})
        self.kept[spec.directory] = kept
        seconds = self._gate(kept) if kept.is_gate else self._agent(kept)
        if spec.limits.hard_s is not None and seconds > spec.limits.hard_s:
            self._later(spec.limits.hard_s, lambda: self._exit(kept, None, "deadline"))
        else:
            self._later(seconds, lambda: self._finish(kept))
        if not kept.is_gate and self._trouble.strikes("agent_dies", 0.05, spec.run_id):
            self._later(self._trouble.chance("agent").uniform(0, seconds), lambda: self.lose(kept))

    def lose(self, kept: Kept) -> None:
        """Let a keeper disappear without a word, with what it kept."""
        if kept.state == "alive":
            kept.state = "lost"
            kept.ended.set()

    def reboot(self) -> None:
        """Lose everything that runs here; the disk stays."""
        for kept in self.kept.values():
            self.lose(kept)

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        # No worker's death keeps a process from going on.
        asyncio.get_running_loop().call_later(seconds, what, context=Context())

    def _exit(self, kept: Kept, code: int | None, ended_by: Any) -> None:
        if kept.state != "alive":
            return
        text = "\n".join(kept.lines)
        kept.exit = Exit(
            code=code,
            ended_by=ended_by,
            started_at=kept.started_at,
            ended_at=self.clock.now(),
            output_bytes=len(text),
            output_sha256=hashlib.sha256(text.encode()).hexdigest(),
        )
        kept.state = "exited"
        kept.ended.set()

    def _finish(self, kept: Kept) -> None:
        if kept.state != "alive":
            return
        if kept.is_gate:
            self._judge(kept)
        else:
            self._work(kept, half=False)
        code = 1 if kept.lines and '"ok": false' in kept.lines[-1] else 0
        self._exit(kept, code, "itself")

    # --- agents -------------------------------------------------------------------------------------

    def _agent(self, kept: Kept) -> float:
        """Decide what this agent will do; return how long it takes."""
        trouble, run_id = self._trouble, kept.spec.run_id
        chance = trouble.chance("agent")
        seconds = min(150.0, chance.lognormvariate(2.5, 1.0))
        kept.lines.append(json.dumps({"event": "started", "session_ref": run_id}))
        if not trouble.strikes("no_cost", 0.05, run_id):
            micros = chance.randint(1_000, 100_000)
            kept.lines.append(json.dumps({"event": "usage", "input_tokens": 1, "cost_micros": micros}))
        said: dict[str, Any] = {"event": "result", "ok": True, "summary": "good"}
        if trouble.strikes("usage_limit", 0.1, run_id):
            said = {"event": "result", "ok": False, "failure": "usage_limit", "message": "window used up"}
            wait_s = chance.choice((-60, 30, 120, 600, None))
            if wait_s is not None:
                said["retry_at"] = int((self.clock.now() + timedelta(seconds=wait_s)).timestamp())
        elif trouble.strikes("overload", 0.1, run_id):
            said = {"event": "result", "ok": False, "failure": "overloaded", "message": "too busy"}
        elif trouble.strikes("agent_errs", 0.1, run_id):
            said = {"event": "result", "ok": False, "failure": "agent_error", "message": "I cannot"}
        elif trouble.strikes("agent_lies", 0.15, run_id):
            said["summary"] = chance.choice(("nothing", "bad"))
        elif trouble.strikes("agent_hangs", 0.05, run_id):
            seconds = 1e9
        kept.lines.append(json.dumps(said))
        self._later(seconds / 2, lambda: self._work(kept, half=True))
        return seconds

    def _work(self, kept: Kept, *, half: bool) -> None:
        """Write into the workspace, as far as the agent has come."""
        workspace = self._target.workspaces.get((self.name, kept.spec.cwd))
        if kept.state != "alive" or workspace is None:
            return
        said = json.loads(kept.lines[-1])
        if said.get("summary") == "nothing":
            return
        key = self._task_of(kept.spec.env["LOOPWRIGHT_TASK"]).key
        if half:
            self._write(workspace, f"{key}.txt", f"half {key}")
        elif said["ok"]:
            quality = said["summary"]
            self._write(workspace, f"{key}.txt", f"{quality} {key}")
            if self._trouble.has("conflict") and self._trouble.chance("conflict").random() < 0.3:
                self._write(workspace, "shared.txt", f"by {key}")

    def _write(self, workspace: Workspace, path: str, text: str) -> None:
        workspace.files[path] = text
        workspace.touched = True

    # --- gates --------------------------------------------------------------------------------------

    def _gate(self, kept: Kept) -> float:
        run_id = kept.spec.run_id
        if self._trouble.strikes("gate_dies", 0.05, run_id):
            self._later(self._trouble.chance("gate").uniform(0, 5), lambda: self.lose(kept))
        return self._trouble.chance("gate").uniform(0.5, 20.0)

    def _judge(self, kept: Kept) -> None:
        files = self._target.trees[self._target.checkouts[self.name, kept.spec.cwd]]
        found = {command: is_good(command, files) for command in kept.spec.argv[1:]}
        if self._trouble.strikes("gate_flakes", 0.05, kept.spec.run_id):
            found[kept.spec.argv[1]] = False
        kept.found = found
        kept.lines.append(json.dumps(found))


class SimKeepers:
    """The Keepers port of one worker on a machine."""

    def __init__(self, machine: Machine, trouble: Trouble) -> None:
        self._machine = machine
        self._trouble = trouble

    async def start(self, spec: RunSpec) -> None:
        await self._trouble.delay("keeper")
        if self.look(spec.directory).state in ("alive", "exited"):
            return
        await effect(self._trouble, "keeper.start.before")
        if self.look(spec.directory).state in ("alive", "exited"):
            return  # its lock is held by another worker's keeper
        self._machine.begin(spec)
        await effect(self._trouble, "keeper.start.after")

    def look(self, directory: Path) -> Sighting:
        kept = self._machine.kept.get(directory)
        if kept is None:
            return Sighting(state="absent")
        return Sighting(state=kept.state, exit=kept.exit)

    async def follow(self, directory: Path, offset: int = 0) -> AsyncIterator[OutputLine]:
        kept = self._kept(directory)
        await kept.ended.wait()
        await self._trouble.delay("keeper")
        if kept.exit is None or kept.exit.ended_by == "itself":
            for text in kept.lines:
                offset += len(text) + 1
                yield OutputLine(offset=offset, stream="out", text=text)

    async def wait(self, directory: Path) -> Exit:
        kept = self._kept(directory)
        await kept.ended.wait()
        await self._trouble.delay("keeper")
        return kept.exit or self._lost()

    async def write(self, directory: Path, n: int, data: str, *, close: bool = False) -> None:
        raise AssertionError("a simulated agent asks nothing")

    async def end(self, directory: Path, *, polite: bool = True) -> Exit:
        kept = self._kept(directory)
        await self._trouble.delay("keeper")
        await effect(self._trouble, "keeper.end.before")
        if kept.state == "lost":
            kept.exit, kept.state = self._lost(), "exited"
        self._machine._exit(kept, -15, "asked")
        await effect(self._trouble, "keeper.end.after")
        assert kept.exit is not None
        return kept.exit

    async def sweep(self, run_id: str) -> int:
        await self._trouble.delay("keeper")
        return 0

    def close(self) -> None:
        """Nothing is kept for the next start."""

    def _kept(self, directory: Path) -> Kept:
        if directory not in self._machine.kept:
            raise CannotRun(f"nothing was ever started in {directory}")
        return self._machine.kept[directory]

    def _lost(self) -> Exit:
        return Exit(
            code=None,
            ended_by="lost",
            started_at=None,
            ended_at=self._machine.clock.now(),
            output_bytes=0,
            output_sha256="",
        )


class SimGate:
    """The Gate port of one worker: the verdict is what its commands found, if they ran to their end."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def spec(self, request: GateRequest) -> RunSpec:
        return RunSpec(
            run_id=request.run_id,
            directory=request.directory,
            argv=("gate", *(one.command for one in request.commands)),
            cwd=request.tree,
            env=request.env,
        )

    def witnessed(self, directory: Path, count: int) -> None:
        return None

    def verdict(self, request: GateRequest, exit: Exit) -> Verdict:
        found = self._machine.kept[request.directory].found
        if exit.ended_by != "itself" or found is None:
            return Verdict(status=VerdictStatus.BROKEN, reason=f"it was not run to its end: {exit.ended_by}")
        checks = tuple(
            Check(
                id=str(n),
                name=command,
                status=CheckStatus.PASSED if good else CheckStatus.FAILED,
                message="" if good else "it is not there",
            )
            for n, (command, good) in enumerate(found.items())
        )
        status = VerdictStatus.PASSED if all(found.values()) else VerdictStatus.FAILED
        return Verdict(status=status, checks=checks, reason="" if all(found.values()) else "a check failed")

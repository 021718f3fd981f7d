"""Machines: what runs on them outlives the worker that started it, and ends when it ends."""

import asyncio
import hashlib
import json
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from tests.fakes.virtual_loop import VirtualClock
from tests.fakes.world import UnwatchedGate
from tests.simulation.agents import MODEL, Act, draw_act
from tests.simulation.answers import draw_answer, draw_investigation
from tests.simulation.services import Services
from tests.simulation.target import Target, Workspace
from tests.simulation.trouble import Trouble, effect

from loopwright.core.replies.discoveries import Noticed
from loopwright.core.replies.doc_sync import ORIGIN as DOCUMENTS
from loopwright.core.replies.questions import Asking
from loopwright.core.rows.model import Task
from loopwright.core.values.errors import CannotRun
from loopwright.core.values.findings import Check, CheckStatus, Verdict, VerdictStatus
from loopwright.core.values.permissions import Settled
from loopwright.core.values.policy import GateCommand
from loopwright.ports import Exit, GateRequest, OutputLine, RunSpec, Sighting

GATE_ALL = GateCommand(name="all", command="all")
_LONGEST_S = 150.0
"""No agent lives longer that does not hang."""


def acceptance(key: str) -> GateCommand:
    """Return the command that tells whether a task was really done."""
    return GateCommand(name=f"accept {key}", command=f"accept {key}")


NEW: Final = ".new"
"""How a file is called that has behaviour which only a new test allows."""


def is_good(command: str, files: Mapping[str, str]) -> bool:
    """Say what a command finds in a tree when nothing goes wrong."""
    if command.startswith("accept "):
        key = command.removeprefix("accept ")
        return files.get(f"{key}.txt") == f"good {key}"
    contradicts = any(path.endswith(NEW) and test_of(path.removesuffix(NEW)) not in files for path in files)
    return not contradicts and not any(text.startswith(("bad", "half")) for text in files.values())


def test_of(key: str) -> str:
    """Return the test that a task brings along for behaviour that contradicts the old tests."""
    return f"tests/test_{key}.py"


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
    spoke: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is a new line, and then another one takes its place."""
    act: Act | None = None
    """What an agent is going to do."""
    told: dict[int, str] = field(default_factory=dict)
    """What was written to an agent, by number."""
    asked: tuple[Asking, ...] = ()
    """What an agent asked with its tool."""
    noticed: tuple[Noticed, ...] = ()
    """What work an agent noted with its tool."""
    found: dict[str, bool] | None = None
    """What a gate's commands found, once they all ran."""

    @property
    def is_gate(self) -> bool:
        return self.spec.argv[0] == "gate"

    @property
    def prompt(self) -> str:
        """What an agent was told."""
        return self.spec.files.get("prompt.md", "")

    @property
    def investigates(self) -> bool:
        """Say whether its agent reads why a task failed."""
        return "You investigate why a task failed" in self.prompt

    @property
    def reviews(self) -> bool:
        """Say whether an agent looks at the work of another."""
        return "\nReview: " in self.prompt

    @property
    def goes_back(self) -> bool:
        """Return whether an agent is asked once more about work that it finished."""
        return self.is_told_of_checks or any(
            words in self.prompt
            for words in ("An independent reviewer looked at what you did", "could not be read")
        )

    @property
    def is_told_of_checks(self) -> bool:
        """Return whether an agent has its turn with the checks that its work contradicts."""
        return "Your work contradicts or removes existing checks" in self.prompt

    @property
    def is_done(self) -> bool:
        """Say whether an agent ended by itself, did its work and needs nobody."""
        by_itself = self.exit is not None and self.exit.ended_by == "itself"
        return by_itself and '"ok": true' in self.lines[-1] and not self.asked

    def say(self, *lines: str) -> None:
        """Put out lines, for everyone who listens."""
        self.lines.extend(lines)
        self.spoke.set()
        self.spoke = asyncio.Event()


class Machine:
    """One host: its disk, its clock, and the processes that workers left on it."""

    def __init__(
        self,
        name: str,
        target: Target,
        trouble: Trouble,
        clock: VirtualClock,
        services: Services,
        task_of: Callable[[str], Task],
        watch: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self.name = name
        self.clock = clock
        self.kept: dict[Path, Kept] = {}
        self.gone = False
        self._target = target
        self._trouble = trouble
        self._services = services
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
        if spec.limits.hard is not None and seconds > spec.limits.hard:
            self._later(spec.limits.hard, lambda: self._exit(kept, None, "deadline"))
        else:
            self._later(seconds, lambda: self._finish(kept))
        if not kept.is_gate and self._trouble.strikes("agent_dies", 0.05, spec.run_id):
            lives_s = self._trouble.chance("agent").uniform(0, min(seconds, _LONGEST_S))
            self._later(lives_s, lambda: self.lose(kept))

    def lose(self, kept: Kept) -> None:
        """Let a keeper disappear without a word, with what it kept."""
        if kept.state == "alive":
            kept.state = "lost"
            kept.ended.set()
            kept.say()

    def asked(self, directory: Path) -> tuple[Asking, ...]:
        """Return what an agent asked with its tool."""
        kept = self.kept.get(directory)
        return kept.asked if kept is not None else ()

    def noticed(self, directory: Path) -> tuple[Noticed, ...]:
        """Return what work an agent noted with its tool."""
        kept = self.kept.get(directory)
        return kept.noticed if kept is not None else ()

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
        kept.say()

    def _finish(self, kept: Kept) -> None:
        if kept.state != "alive":
            return
        if kept.act is None:
            self._judge(kept)
            self._exit(kept, 0, "itself")
            return
        self._work(kept, half=False)
        self._watch("finished", {"kept": kept})
        costs, said = kept.act.costs, kept.act.last_words
        if said["ok"] and kept.act.words:
            said = {**said, "summary": f"{said['summary']}\n\n{kept.act.words}"}
        kept.say(*(kept.act.usage(micros) for micros in costs[-1:]), json.dumps(said))
        self._exit(kept, 0 if said["ok"] else 1, "itself")

    # --- agents -------------------------------------------------------------------------------------

    def _agent(self, kept: Kept) -> float:
        """Let an agent begin; return how long it takes, for ever if it waits for leave meanwhile."""
        spec = kept.spec
        act = kept.act = self._draw(spec, self._task_of(spec.env["LOOPWRIGHT_TASK"]))
        if kept.reviews:
            act.wish = act.question = None
            act.noticed, act.words = (), ""
            if act.last_words["ok"]:
                key = self._task_of(spec.env["LOOPWRIGHT_TASK"]).key
                act.last_words = {**act.last_words, "summary": draw_answer(self._trouble, key)}
        elif kept.investigates:
            act.wish = act.question = None
            act.noticed, act.words = (), ""
            if act.last_words["ok"]:
                act.last_words = {**act.last_words, "summary": draw_investigation(self._trouble)}
        model = MODEL if act.in_tokens else None
        kept.say(json.dumps({"event": "started", "session_ref": spec.run_id, "model": model}))
        for n, micros in enumerate(act.costs[:-1], start=1):
            at = act.seconds * n / len(act.costs)
            self._later(at, lambda micros=micros: self._tell_cost(kept, micros))
        self._later(act.seconds / 2, lambda: self._come_half_way(kept))
        return act.seconds if act.wish is None else math.inf

    def _draw(self, spec: RunSpec, task: Task) -> Act:
        """Decide what an agent will do."""
        return draw_act(
            self._trouble,
            self._services,
            run_id=spec.run_id,
            agent=spec.argv[0],
            task=task,
            now=self.clock.now,
        )

    def _come_half_way(self, kept: Kept) -> None:
        if kept.state != "alive" or kept.act is None:
            return
        self._work(kept, half=True)
        if kept.act.question is not None:
            kept.asked = (kept.act.question,)
        kept.noticed = kept.act.noticed
        if kept.act.wish is not None:
            kept.say(json.dumps({"event": "wish", "what": kept.act.wish.what}))

    def tell(self, kept: Kept, n: int, data: str) -> None:
        """Write to an agent, which waits for leave; the same number twice writes once."""
        self._watch("told", {"kept": kept, "n": n, "data": data})
        if n in kept.told or kept.state != "alive" or kept.act is None:
            return
        kept.told[n] = data
        if data == Settled.ASK:
            kept.act.last_words = {"event": "result", "ok": False, "message": "a person is asked"}
            self._later(self._trouble.chance("agent").uniform(0.1, 8.0), lambda: self._finish(kept))
            return
        if data == Settled.ALLOW:
            self._watch("allowed", {"kept": kept, "wish": kept.act.wish})
        self._later(kept.act.seconds / 2, lambda: self._finish(kept))

    def _tell_cost(self, kept: Kept, micros: int) -> None:
        if kept.state == "alive" and kept.act is not None:
            kept.say(kept.act.usage(micros))
            self._watch("cost", {"kept": kept, "micros": micros})

    def _work(self, kept: Kept, *, half: bool) -> None:
        """Write into the workspace, as far as the agent has come."""
        workspace = self._target.workspaces.get((self.name, kept.spec.cwd))
        if kept.state != "alive" or workspace is None or kept.act is None:
            return
        said = kept.act.last_words
        if said.get("summary") == "nothing":
            return
        task = self._task_of(kept.spec.env["LOOPWRIGHT_TASK"])
        key = task.key
        if half:
            self._write(workspace, f"{key}.txt", f"half {key}")
        elif said["ok"]:
            quality = said["summary"]
            self._write(workspace, f"{key}.txt", f"{quality} {key}")
            for path in task.scope if task.origin == DOCUMENTS else ():
                self._write(workspace, path, f"{quality} {path}")
            if kept.is_told_of_checks:
                # It keeps the old behaviour after all, or it insists and leaves its work as it is.
                if self._trouble.chance("contradiction").random() < 0.3:
                    workspace.files.pop(f"{key}{NEW}", None)
                    workspace.files.pop(test_of(key), None)
            elif self._trouble.strikes("contradiction", 0.3, kept.spec.run_id):
                self._write(workspace, f"{key}{NEW}", "another way")
                self._write(workspace, test_of(key), "passes with it")
            if kept.goes_back and not kept.is_told_of_checks:
                self._write(workspace, f"{key}.mended", kept.spec.run_id)
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
        tree = self._target.checkouts[self.name, kept.spec.cwd]
        found = {command: is_good(command, self._target.trees[tree]) for command in kept.spec.argv[1:]}
        first, stubborn = kept.spec.argv[1], self._target.stubborn
        # A plan is verified once, while each of its tasks has a gate or more.
        likely = 0.2 if first == GATE_ALL.command else 0.05
        if self._trouble.strikes("gate_flakes", likely, kept.spec.run_id):
            found[first] = False
            if self._trouble.chance("stubborn").random() < 0.5:
                stubborn.add((tree, first))
        elif not self._trouble.calm and (tree, first) in stubborn:
            found[first] = False
        kept.found = found
        kept.lines.append(json.dumps(found))


class SimKeepers:
    """The Keepers port of one worker on a machine."""

    def __init__(self, machine: Machine, trouble: Trouble) -> None:
        self._machine = machine
        self._trouble = trouble

    def get_ready(self) -> None:
        """Nothing is needed ahead."""

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
        kept, seen = self._kept(directory), 0
        while True:
            spoke, ended = kept.spoke, kept.ended.is_set()
            if seen < len(kept.lines) or ended:
                await self._trouble.delay("keeper")
            new = kept.lines[seen:]
            seen += len(new)
            for text in new:
                offset += len(text) + 1
                yield OutputLine(offset=offset, stream="out", text=text)
            if ended:
                return
            if not spoke.is_set():
                await spoke.wait()

    async def wait(self, directory: Path) -> Exit:
        kept = self._kept(directory)
        await kept.ended.wait()
        await self._trouble.delay("keeper")
        return kept.exit or self._lost()

    async def write(
        self, directory: Path, n: int, data: str, *, close: bool = False, stops: bool = False
    ) -> None:
        kept = self._kept(directory)
        await self._trouble.delay("keeper")
        await effect(self._trouble, "keeper.write.before")
        self._machine.tell(kept, n, data)
        # Few runs are written to at all, and whoever takes such a one up must not say anything else.
        await effect(self._trouble, "keeper.write.after", times=6.0)

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

    async def sweep(self, *run_ids: str) -> int:
        await self._trouble.delay("keeper")
        return 0

    def evidence(self, directory: Path) -> str:
        return ""

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


class SimGate(UnwatchedGate):
    """The Gate port of one worker: the verdict is what its commands found, if they ran to their end."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def verdict(self, request: GateRequest, exit: Exit) -> Verdict:
        found = self._machine.kept[request.directory].found
        if exit.ended_by != "itself" or found is None:
            return Verdict(
                status=VerdictStatus.INCONCLUSIVE, reason=f"it was not run to its end: {exit.ended_by}"
            )
        checks = tuple(
            Check(
                id=str(n),
                name=command,
                status=CheckStatus.PASSED if good else CheckStatus.FAILED,
                message="" if good else "it is not there",
            )
            for n, (command, good) in enumerate(found.items())
        )
        broken = tuple(command for command, good in found.items() if not good)
        status = VerdictStatus.FAILED if broken else VerdictStatus.PASSED
        return Verdict(status=status, checks=checks, reason="a check failed" if broken else "", broken=broken)

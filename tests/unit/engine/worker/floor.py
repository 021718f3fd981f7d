"""Agents at work in simulated time, as the monitor sees them: real rows, files and progress."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from tests.doubles import Home, InstantKeepers, planned

from loopwright.core.rows.model import Attempt, Leg, Plan, Run, Task
from loopwright.core.rows.monitor_rows import Trouble
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import RunState
from loopwright.engine.processes.runs import Progress
from loopwright.engine.rows.moves import move_run
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.worker.monitor import Monitor
from loopwright.ports import AgentEvent, Sighting, Tx


class Beating(InstantKeepers):
    """Every process is alive, and its keeper beat at the moment noted here."""

    beats: dict[str, datetime]

    def look(self, directory: Path) -> Sighting:
        return Sighting(state="alive", beat_at=self.beats.get(directory.name))


class Floor:
    """Agents at work in one home, each with a run directory and a workspace on the disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Home(slots=4)
        self.keepers = Beating(self.home.clock)
        self.keepers.beats = {}
        self.home.world = replace(
            self.home.world,
            paths=HomePaths(root=root),
            keepers=self.keepers,
            me=replace(self.home.world.me, host_id="host-a"),
        )
        self.monitor = Monitor(self.home.world)
        self.legs: dict[str, Leg] = {}
        self.progress: dict[str, Progress] = {}
        self.beating = True

    async def begin(
        self, *tasks: str, scope: tuple[str, ...] = (), plan: str = "plan.yaml", **policy: int
    ) -> None:
        """Let an agent work at each of these tasks."""
        if not self.legs:
            await self.home.launch()
        self.home.submit(
            *(planned(one, scope=scope) for one in tasks),
            source_path=plan,
            policy=replace(Policy(parallel=4), **policy),
        )
        for leg in await self.home.turn():
            attempt = self.home.hand.work(leg)
            key = self.home.get(Task, attempt.task_id).key
            workspace = self.root / "workspaces" / key
            workspace.mkdir(parents=True)
            directory = self.root / "runs" / (attempt.run_id or "")
            directory.mkdir(parents=True)

            def place(tx: Tx, attempt: Attempt = attempt, workspace: Path = workspace) -> None:
                tx.update(Attempt, attempt.id, workspace=str(workspace))
                tx.update(Run, attempt.run_id or "", host_id="host-a", started_at=tx.now())

            self.home.store.transact_sync("place", place)
            self.legs[key], self.progress[key] = leg, Progress(directory)

    def tool(self, task: str, call: str, result: str | None = "fine", *, ok: bool = True) -> None:
        """Let an agent call a tool."""
        self.progress[task](AgentEvent(kind="ToolStart", text=call, data={"input": call}))
        if result is not None:
            self.progress[task](AgentEvent(kind="ToolEnd", text=result, data={"ok": ok}))

    def ends(self, task: str, result: str) -> None:
        """End the tool that works."""
        self.progress[task](AgentEvent(kind="ToolEnd", text=result, data={"ok": True}))

    def says(self, task: str, text: str) -> None:
        self.progress[task](AgentEvent(kind="Text", text=text))

    def write(self, task: str, name: str) -> None:
        """Let an agent write a file."""
        path = self.root / "workspaces" / task / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        at = self.home.clock.now().timestamp() + 1
        os.utime(path, (at, at))

    async def minutes(self, count: float, act: Callable[[int], object] = lambda _n: None) -> None:
        """Let time pass; `act` happens before each look."""
        for n in range(int(count * 60 / self.home.world.look_s)):
            self.home.clock.advance(self.home.world.look_s)
            if self.beating:
                now = self.home.clock.now()
                self.keepers.beats = {one.id: now for one in self.home.all(Run)}
            act(n)
            await self.monitor.look(controls=True)

    def found(self) -> set[str]:
        return {one.kind for one in self.home.all(Trouble)}

    def refused(self, *tasks: str, failure: Failure = Failure.OVERLOADED) -> None:
        """End the agents of these tasks as a service that refuses them does."""
        runs = [self.home.attempt(one).run_id or "" for one in tasks]

        def end(tx: Tx) -> None:
            for run in tx.find(Run, id=runs, state=RunState.RUNNING):
                move_run(tx, run, RunState.ERROR, failure=failure)

        self.home.store.transact_sync("refused", end)

    def spent(self, micros: int) -> None:
        """Set what the plan has cost."""
        plan = self.home.plan()
        self.home.store.transact_sync("spent", lambda tx: tx.update(Plan, plan.id, spent_micros=micros))

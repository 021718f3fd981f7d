"""`plan "goal"`: let an agent write the plan, and have it judged, before anything of it runs.

Planning is itself a plan of one task, so all that holds for work holds for it: it outlives a kill, waits for its
account, keeps to the budget, and is recorded.
"""

import asyncio
import json as jsonlib
import os
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.markup import escape

from loopwright.adapters.agents.environment import secret_values
from loopwright.adapters.host import new_id
from loopwright.adapters.redaction import redacted
from loopwright.adapters.sources.plan_format import plan_schema
from loopwright.adapters.statefiles import ProjectStateFiles
from loopwright.app import Home, open_home, repositories
from loopwright.cli.context import actor, settings_for
from loopwright.cli.drive import Foreground, log_to
from loopwright.cli.exits import ExitCode
from loopwright.cli.follow import Display
from loopwright.cli.glance import glance_at, needed_place
from loopwright.cli.inspecting import project_packet
from loopwright.cli.lines import counted
from loopwright.cli.output import console, duration, money
from loopwright.cli.preflight import check_accounts, check_agents, check_sandbox
from loopwright.cli.starting import project_settings
from loopwright.cli.writing import write_whole
from loopwright.config.resolve import Settings
from loopwright.core.documents import document
from loopwright.core.errors import Refused
from loopwright.core.model import Plan, Project
from loopwright.core.packets import in_markdown
from loopwright.core.planning import CHECK, KEY, TRIES, instructions, name_of
from loopwright.core.policy import GateCommand, ReviewPolicy
from loopwright.core.states import PlanState
from loopwright.engine.metrics import plan_figures, together
from loopwright.engine.submit import Submission, submit
from loopwright.engine.views import recent_plans
from loopwright.ports import PlannedTask, PlannedWork, Tx

FOLDER = "plans"
_CHECK_S = 60.0
_COMPARED = 50
"""How many earlier plans an estimate looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What came of planning."""

    plan_id: str
    packet_id: str
    path: Path | None
    """Where the plan lies; None when none could be made."""
    code: int


def plan_goal(goal: str, *, out: Path | None, flags: dict[str, Any], force: bool, quiet: bool) -> Planned:
    """Have a plan written for a goal; it is put where a person can read and edit it."""
    return asyncio.run(_plan(goal, out=out, flags=flags, force=force, quiet=quiet))


async def _plan(goal: str, *, out: Path | None, flags: dict[str, Any], force: bool, quiet: bool) -> Planned:
    place = needed_place()
    # It becomes a title, a prompt and the name of a file.
    goal = redacted(goal, secret_values(os.environ))
    target = out or place.root / FOLDER / f"{name_of(goal)}.yaml"
    if target.exists() and not force:
        raise Refused(
            f"{os.path.relpath(target)} exists already",
            hint="run it as it is, choose another name with --out, or replace it with --force",
        )
    packet = await project_packet(goal)
    text = in_markdown(packet)
    files = ProjectStateFiles()
    files.put(place.root, "packets", packet.packet_id, document(packet))
    files.put_text(place.root, "packets", f"{packet.packet_id}.md", text)
    with glance_at(place.root) as repository:
        base = await repository.base()
        found = await project_settings(repository, base.sha, place)
    settings = settings_for(flags=flags, project_text=found.text)
    work = _work(goal, text, place.subfolder)
    for note in check_agents(settings, work):
        console(stderr=True).print(f"[yellow]note[/]: {escape(note)}")
    check_accounts(settings)
    check_sandbox(settings)
    policy = replace(
        settings.policy(),
        max_attempts=TRIES,
        fix_cycles=0,
        on_task_error="fail",
        finish="leave",
        allow_unverified=False,
        review=ReviewPolicy(),
    )
    submission = Submission(
        root=place.root,
        subfolder=place.subfolder,
        source_kind="goal",
        source_path=f"goal:{name_of(goal)}",
        work=work,
        base=base,
        policy=policy,
        gates=(),
        actor=actor(),
        new=force,
    )
    home = open_home(settings, os.environ)
    log_to(home.root)
    try:
        return await _driven(home, settings, submission, packet.packet_id, target, quiet=quiet)
    finally:
        await home.store.close()


async def _driven(
    home: Home, settings: Settings, asked: Submission, packet_id: str, target: Path, *, quiet: bool
) -> Planned:
    submitted = await home.store.transact("submit", lambda tx: submit(tx, new_id, asked))
    plan_id = submitted.plan.id
    display = Display(footer="Ctrl-C pauses cleanly; the same command goes on.", quiet=quiet)
    code = await Foreground(home, settings, plan_id, actor=asked.actor, display=display).run()
    plan = await home.store.read(lambda tx: tx.get(Plan, plan_id))
    if plan is None or plan.status is not PlanState.VERIFIED or plan.result_sha is None:
        return Planned(plan_id=plan_id, packet_id=packet_id, path=None, code=int(code) or 1)
    project = await home.store.read(lambda tx: tx.get(Project, plan.project_id))
    assert project is not None, "a plan has a project"
    text = await repositories(home)(project).file_at(plan.result_sha, _file(asked.subfolder))
    if text is None:
        return Planned(plan_id=plan_id, packet_id=packet_id, path=None, code=int(ExitCode.NOT_VERIFIED))
    target.parent.mkdir(parents=True, exist_ok=True)
    # An agent wrote it, and what is planned becomes rows.
    clean = redacted(text, secret_values(os.environ))
    write_whole(target, clean, hint="choose another place with --out")
    return Planned(plan_id=plan_id, packet_id=packet_id, path=target, code=int(ExitCode.VERIFIED))


def _file(subfolder: str) -> str:
    return f"{subfolder}/loopwright.plan.yaml".lstrip("/")


def _work(goal: str, packet: str, subfolder: str) -> PlannedWork:
    """Return the plan of one task; what it writes is judged by the harness, not by its word."""
    name = Path(_file(subfolder)).name
    check = f"{shlex.quote(sys.executable)} -m loopwright.cli.spec_check {name}"
    task = PlannedTask(
        key=KEY,
        title=f"Plan: {' '.join(goal.split())}"[:200],
        description=instructions(goal, packet, path=name, schema=jsonlib.dumps(plan_schema())),
        acceptance=(GateCommand(name=CHECK, command=check, timeout_s=_CHECK_S),),
        scope=(name,),
    )
    return PlannedWork(title=task.title, tasks=(task,), sha256=name_of(goal))


def estimate(settings: Settings, project: str | None, tasks: int, side_by_side: int) -> str:
    """Say what a plan will probably take, from what the project's plans took before; empty when there are none."""

    async def look() -> list[Any]:
        home = open_home(settings, os.environ)
        try:
            return await home.store.read(lambda tx: _before(tx, project))
        finally:
            await home.store.close()

    found = (
        asyncio.run(look()) if (settings.home / "loopwright.db").exists() or settings.values.database else []
    )
    whole = together(found)
    if not whole.completed:
        return ""
    cost = whole.cost_micros * tasks // whole.completed
    seconds = (whole.agent_seconds + whole.gate_seconds) / whole.completed * tasks / max(1, side_by_side)
    known = f"about {money(cost)}" if cost and not whole.unknown_costs else "cost unknown"
    return (
        f"estimate from {counted(whole.completed, 'task')} done here before: {known}, "
        f"about {duration(seconds)} with {side_by_side} side by side"
    )


def _before(tx: Tx, project: str | None) -> list[Any]:
    plans = [one for one in recent_plans(tx, project_path=project, limit=_COMPARED) if one.executed_at]
    return [plan_figures(tx, one) for one in plans]

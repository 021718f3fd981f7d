"""`plan`: have one written for a goal, and everything that can be known about one before any money is spent."""

import asyncio
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from loopwright.adapters.sources.spec.yaml_plan import YamlSource
from loopwright.app import open_home
from loopwright.cli.commands.decide.finishing import check_finish
from loopwright.cli.screens.layout import Wrapped
from loopwright.cli.shell.cost_flags import NO_COST_FLAGS, CostFlags
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import columns
from loopwright.cli.shell.output import console, print_json
from loopwright.config.resolve import Settings
from loopwright.core.gates.held_out import proposed
from loopwright.core.plans.evaluating import OVERRIDABLE, Finding
from loopwright.core.plans.plan_evaluators import Judgement, in_words
from loopwright.core.plans.planning import KEY
from loopwright.core.policy import graph
from loopwright.core.policy.finishing import LEAVE
from loopwright.core.values.errors import NotARepository, Refused
from loopwright.core.values.ids import short_id
from loopwright.core.values.shell_hints import to_type
from loopwright.core.values.wording import counted, listed, one_line
from loopwright.engine.intake.submit import edges_of, evaluate, to_do
from loopwright.engine.rows.source_marks import SETTLED
from loopwright.ports import PlannedTask, PlannedWork
from loopwright.services.doctor.probes import FoundAgent
from loopwright.services.gates.base_gates import BaseRun, checked_on_base
from loopwright.services.homes.context import (
    Place,
    ProjectSettings,
    SettingsFile,
    given_settings,
    here,
    project_text,
    settings_for,
    settings_in_checkout,
)
from loopwright.services.homes.loop_sources import unused_loops
from loopwright.services.homes.repository_glance import glance_at
from loopwright.services.plans.evaluator import check_evaluator, wanted
from loopwright.services.plans.goals import check_goal, is_goal
from loopwright.services.plans.plan_context import seen_around, with_base
from loopwright.services.plans.prompt_check import check_prompts
from loopwright.services.plans.unusable_answers import print_wrong
from loopwright.services.runs.cost_check import check_costs
from loopwright.services.runs.preflight import (
    check_accounts,
    check_fallback,
    check_held_out,
    check_keeping,
    check_review,
    check_tasks,
    other_base,
    relative,
    uncommitted,
    warnings,
    who_works,
)
from loopwright.services.runs.run_inputs import PlanPath, meant_path, project_settings, read_plan

if TYPE_CHECKING:
    from loopwright.services.plans.planning import Planned

app = App(name="plan", help="Have a plan written for a goal, or check one.", help_format="plaintext")
app.command(
    "loopwright.cli.commands.inspect.coverage:coverage",
    name="coverage",
    help="Show every criterion with the checks that prove it, or that there is no evidence.",
)

_WIDEST = 24
_PROPOSED = 3
"""So many held-out checks are proposed on the screen; --json has all."""


class Run(Enum):
    """What is run to learn more about a plan."""

    NOTHING = 0
    GATES = 1
    """The project's own: what stands only in the plan, nobody may have read yet."""
    ALL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """What is known about a good plan."""

    work: PlannedWork
    settings: Settings
    critical_path: tuple[str, ...]
    width: int
    agents: tuple[FoundAgent, ...]
    notes: tuple[str, ...]
    against: tuple[str, ...]
    """Why `run` refuses it unless a person says why it is to run all the same."""
    proposals: Mapping[str, str]
    """By task: a held-out check for those that have none."""
    base: BaseRun | None
    """How its checks end on the commit that it starts from; None when nothing was run."""


@app.default
def make(
    goal: str,
    /,
    *,
    out: Path | None = None,
    agent: str | None = None,
    model: str | None = None,
    packet: str | None = None,
    force: bool = False,
    costs: CostFlags = NO_COST_FLAGS,
    json: bool = False,
) -> int:
    """Let an agent look at the project and write the plan for a goal; read it, edit it, then run it.

    Parameters
    ----------
    goal
        What is to be done, in your own words.
    out
        Where to put the plan (default: in the folder plans, by the goal's first words).
    agent
        Which agent plans (default: the setting `planner.agent`, else `agent`).
    model
        Which model it uses.
    packet
        A packet of `loopwright inspect` to plan from, by its id: of a run that went wrong, for example.
    force
        Plan anew, and replace the file that is there.
    json
        Print one JSON document.
    """
    from loopwright.services.plans.planning import plan_goal

    check_goal(goal)
    if not json and not is_goal(goal):
        console().print(f"taken as a goal in one word: {escape(goal.strip())}")
    flags = {"agent": agent, "model": model, **costs.given()}
    planned = plan_goal(goal, out=out, flags=flags, own=True, packet=packet, force=force, quiet=json)
    if json:
        found: dict[str, Any] = {"packet_id": planned.packet_id, "planned_by": planned.plan_id}
        found["problems"] = planned.problems
        if planned.path is not None:
            report = _examine(planned.path, None, run=Run.GATES, quiet=True)
            found |= {"path": str(planned.path), "plan": _document(planned.path, report)}
            found["estimate"] = _estimate(report)
            found["evaluator"] = planned.judgement
        print_json({**found, "exit_code": planned.code})
    elif planned.path is None and planned.code == ExitCode.NOT_VERIFIED:
        print_wrong(console(), planned.problems)
        console().print(f"no plan could be made; see why:  {_why(planned)}")
        console().print("the same command tries again")
    elif planned.path is not None:
        _present(planned.path, planned.judgement)
        typed = to_type("run", os.path.relpath(planned.path))
        console().print(f"read it and edit it, then run it:  {escape(typed)}")
    return planned.code


def made(
    goal: str, *, agent: str | None, model: str | None, costs: CostFlags, quiet: bool, notes: bool
) -> Path:
    """Have a plan written for a goal and show it, or raise why there is none.

    `notes` says whether what is odd about it is told here; else whoever runs it tells that.
    """
    from loopwright.services.plans.planning import plan_goal

    flags = {"agent": agent, "model": model, **costs.given()}
    planned = plan_goal(goal, out=None, flags=flags, own=False, force=False, quiet=quiet)
    if planned.path is None:
        if not quiet:
            print_wrong(console(), planned.problems)
        raise Refused("no plan could be made for it", hint=f"see why:  {_why(planned)}")
    if not quiet:
        _present(planned.path, planned.judgement, notes=notes)
    return planned.path


def _why(planned: "Planned") -> str:
    return f"loopwright show {short_id(planned.plan_id)}/{KEY}"


def _present(path: Path, judgement: Judgement | None, *, notes: bool = True) -> None:
    # What an agent wrote and nobody has read is not run.
    report = _examine(path, None, run=Run.GATES)
    report = report if notes else replace(report, notes=())
    _print(path, report, console())
    if judgement is not None:
        _print_judgement(judgement, console())
    console().print(_estimate(report))


def _print_judgement(judgement: Judgement, out: Console) -> None:
    by = " ".join(filter(None, (judgement.agent, judgement.model)))
    out.print(Wrapped(Text(f"evaluated by {by}: {judgement.summary or 'no summary'}"), indent="  "))
    for one in judgement.findings:
        blocks = one in judgement.blocking
        word = Text("objection" if blocks else "opinion", style="bold red" if blocks else "dim")
        out.print(Wrapped(Text.assemble(word, f": {in_words(one)}"), indent="  "))
    if judgement.blocking:
        out.print('`run` refuses it as it is: edit it, or say why it is to run: --despite "..."')


def _estimate(report: _Report) -> str:
    from loopwright.services.plans.planning import estimate

    at_once = min(report.width, report.settings.values.parallel)
    place = here()
    return estimate(
        report.settings,
        str(place.root) if place else None,
        tasks=len(to_do(report.work)),
        longest=len(report.critical_path),
        side_by_side=at_once,
    )


@app.command
def check(
    file: PlanPath,
    /,
    *,
    source: str | None = None,
    settings_file: SettingsFile = None,
    no_run: bool = False,
    json: bool = False,
) -> int:
    """Read a plan, name every problem with its place, run its checks on the base, and say what running it would mean.

    Parameters
    ----------
    file
        The file or folder that has the work, in any form that is known.
    source
        Which form the work has, where that cannot be seen from its name.
    settings_file
        Read the project's settings from this file instead of the commit's loopwright.toml.
    no_run
        Only look: do not run gates and acceptance on the commit that the plan starts from.
    json
        Print one JSON document.
    """
    file = meant_path(file, source)
    what = Run.NOTHING if no_run else Run.ALL
    report = _examine(file, source, run=what, settings_file=settings_file, quiet=json)
    unchecked = _unchecked(report) and not report.settings.values.allow_unverified
    refused = unchecked or report.against
    code = ExitCode.USER_ERROR if refused else ExitCode.VERIFIED
    if json:
        print_json({"plan": _document(file, report), "exit_code": int(code)})
        return code
    _print(file, report, console())
    if refused:
        return code
    if any(agent.usable for agent in report.agents):
        console().print(f"[green]ok[/]: the plan is good; run it with  {escape(to_type('run', str(file)))}")
    else:
        console().print(
            "[green]ok[/]: the plan is good, but `run` refuses it here: no agent of it can be used"
        )
    return code


def _examine(
    path: Path, kind: str | None, *, run: Run, settings_file: Path | None = None, quiet: bool = False
) -> _Report:
    source, work = read_plan(path, kind)
    evaluate(work, str(path), despite="it is only looked at")
    place = here(path)
    found, notes = (
        asyncio.run(_project_settings(place, path, work, settings_file))
        if place
        else (given_settings(settings_file) if settings_file else _beside(path), _outside())
    )
    loop = os.path.relpath(path.resolve(), place.root if place else Path.cwd().resolve())
    settings = settings_for(
        plan=work, plan_name=path.name, loop=loop, project_text=found.text, project_name=found.name
    )
    if place is not None:
        asyncio.run(_check_start(settings, place, path, work))
    agents = check_tasks(settings, work, path.name)
    check_fallback(settings)
    check_review(settings)
    check_evaluator(settings)
    check_accounts(settings, who_works(settings, *(task.agent for task in work.tasks)))
    check_costs(settings, work)
    base, seen = asyncio.run(_around(settings, place, work, run, quiet=quiet)) if place else (None, ())
    judged = evaluate(work, str(path), despite="it is only looked at", seen=seen)["findings"]
    edges = edges_of(to_do(work))
    return _Report(
        work=work,
        settings=settings,
        critical_path=graph.critical_path(edges),
        width=widest(edges),
        agents=agents,
        notes=(
            *warnings(settings),
            *check_keeping(settings, work),
            *notes,
            *work.notes,
            *(one["text"] for one in judged if one["weight"] not in OVERRIDABLE),
            *(f"an agent evaluates it before it runs: {why}" for why in wanted(settings, work)),
        ),
        against=tuple(one["text"] for one in judged if one["weight"] in OVERRIDABLE),
        proposals={
            task.key: proposed(task.acceptance)
            for task in to_do(work)
            if task.acceptance and not task.held_out and isinstance(source, YamlSource)
        },
        base=base,
    )


async def _project_settings(
    place: Place, plan: Path, work: PlannedWork, given: Path | None
) -> tuple[ProjectSettings, tuple[str, ...]]:
    """Return the project's settings as `run` would use them."""
    with glance_at(place.root) as repository:
        try:
            start = await repository.base()
        except NotARepository as not_yet:
            lying = given_settings(given) if given is not None else settings_in_checkout(place)
            return lying, (f"it cannot be run here yet: {not_yet}",)
        found = await project_settings(repository, start.sha, place, given)
        await check_prompts(repository, start.sha, place)
        other = await other_base(repository, start, place.root, work)
    plan_name = relative(plan, place.root)
    file = None if found.given else found.file
    notes = uncommitted(start, file, committed=found.committed, plan=plan_name)
    return found, (*notes, *unused_loops(found, place.root), *other)


async def _around(
    settings: Settings, place: Place, work: PlannedWork, run: Run, *, quiet: bool
) -> tuple[BaseRun | None, tuple[Finding, ...]]:
    known = (settings.home / "loopwright.db").exists() or settings.values.database
    home = open_home(settings, os.environ) if known else None
    try:
        with glance_at(place.root) as repository:
            try:
                start = await repository.base()
            except NotARepository:
                return None, ()  # said before
            about = (repository, start.sha, place, settings, work)
            seen = await seen_around(*about, home.store if home else None)
            # What is plain to see without running anything is said once.
            if run is Run.NOTHING or any(one.weight in OVERRIDABLE for one in seen):
                return None, seen
            tell = (lambda _: None) if quiet else _told
            base = await checked_on_base(*about, tell, trusted=run is Run.ALL)
            return base, with_base(seen, base.findings)
    finally:
        if home is not None:
            await home.store.close()


def _told(line: str) -> None:
    console().print(Text(line, style="dim"))


async def _check_start(settings: Settings, place: Place, path: Path, work: PlannedWork) -> None:
    """Refuse what `run` would refuse before it starts."""
    if settings.values.finish == LEAVE and not any(task.held_out for task in work.tasks):
        return
    with glance_at(place.root) as repository:
        try:
            start = await repository.base()
        except NotARepository:
            return  # said before
        await check_finish(settings, repository, start)
        await check_held_out(repository, start, place, path, work, settings.policy().copy_files)


def _beside(plan: Path) -> ProjectSettings:
    """Return the settings that count once there is a repository: those of this folder, else those beside the plan."""
    found = project_text(Path.cwd())
    return ProjectSettings(text=found if found is not None else project_text(plan.resolve().parent))


def _outside() -> tuple[str, ...]:
    return ("this folder is not in a git repository: `run` has to be called in one",)


def widest(edges: graph.Edges) -> int:
    """Return how many tasks can be worked on at once when each starts as soon as its dependencies allow."""
    level: dict[str, int] = {}
    for node in graph.topological(edges):
        level[node] = 1 + max((level[dep] for dep in edges[node]), default=0)
    counts: dict[int, int] = {}
    for depth in level.values():
        counts[depth] = counts.get(depth, 0) + 1
    return max(counts.values(), default=0)


def _unchecked(report: _Report) -> list[str]:
    """Return the tasks that nothing at all would check."""
    if report.settings.gates:
        return []
    return _bare(report.work)


def _bare(work: PlannedWork) -> list[str]:
    """Return what is to be done and has no acceptance of its own."""
    return [task.key for task in to_do(work) if not task.acceptance]


def _document(path: Path, report: _Report) -> Mapping[str, Any]:
    work, values = report.work, report.settings.values
    return {
        "file": str(path),
        "title": work.title,
        "sha256": work.sha256,
        "tasks": work.tasks,
        "critical_path": report.critical_path,
        "parallel_width": report.width,
        "parallel": values.parallel,
        "without_acceptance": _bare(work),
        "unchecked": _unchecked(report),
        "allow_unverified": values.allow_unverified,
        "gates": report.settings.gates,
        "gates_origin": report.settings.origin("gates"),
        "agents": [{**_agent_facts(one), "usable": one.usable} for one in report.agents],
        "notes": report.notes,
        "against": report.against,
        "held_out_proposals": report.proposals,
        "base": report.base.document() if report.base is not None else None,
    }


def _agent_facts(agent: FoundAgent) -> Mapping[str, Any]:
    return {
        "name": agent.name,
        "program": agent.program,
        "path": agent.path,
        "problem": agent.problem,
        "hint": agent.hint,
    }


def _print(path: Path, report: _Report, out: Console) -> None:
    work, settings = report.work, report.settings
    out.print(f"[bold]{escape(work.title)}[/]  {escape(os.path.relpath(path))}")
    at_once = min(report.width, settings.values.parallel)
    wanted = len(to_do(work))
    settled = len(work.tasks) - wanted
    told = (
        f"{counted(wanted, 'task')}{f' to do ({settled} done or skipped)' if settled else ''}, "
        f"critical path {len(report.critical_path)} "
        f"({one_line(' → '.join(report.critical_path), 200)}), "
        f"up to {report.width} side by side, {at_once} with the setting parallel"
    )
    out.print(Wrapped(Text(told)))
    to_come = {task.key for task in to_do(work)}
    for line in columns([_row(task, to_come) for task in work.tasks]):
        out.print(Wrapped(Text(line), indent="      "))
    _print_checks(report, out)
    for agent in report.agents:
        if agent.usable:
            out.print(f"agent: {escape(agent.name)}, found at {escape(agent.path or agent.program)}")
        else:
            out.print(f"[yellow]warn[/]: agent {escape(agent.name)}: {escape(agent.problem)}")
            out.print(f"      to do: {escape(agent.hint)}")
    for note in report.notes:
        out.print(Wrapped(Text.assemble(("note", "yellow"), f": {note}"), indent="  "))
    _print_proposals(report.proposals, out)
    for objection in report.against:
        out.print(Wrapped(Text.assemble(("error", "bold red"), f": {objection}"), indent="  "))
    if report.against:
        out.print('[bold]to do[/]: fix that, or say why the plan is to run all the same: --despite "..."')


def _print_proposals(proposals: Mapping[str, str], out: Console) -> None:
    """Show how a person gives tasks a check that their agents never see."""
    if not proposals:
        return
    told = "no held-out check for {}: the agent sees every check. Add a line to the task, with other inputs:"
    out.print(
        Wrapped(Text.assemble(("tip", "cyan"), f": {told.format(listed(list(proposals)))}"), indent="  ")
    )
    for key, line in islice(proposals.items(), _PROPOSED):
        out.print(Wrapped(Text(f"  {key}:  {line}"), indent="      "))


def _row(task: PlannedTask, to_come: Collection[str]) -> tuple[str, ...]:
    if task.mark in SETTLED:
        return task.key, one_line(task.title, 50), task.mark.value, ""
    needs = [key for key in task.depends_on if key in to_come]
    waits = f"after {listed(needs)}" if needs else "at once"
    checked = counted(len(task.acceptance), "acceptance command") if task.acceptance else "by the gates only"
    if task.held_out:
        checked += f", {len(task.held_out)} held out"
    if task.may_change:
        checked += f", may change {listed(list(task.may_change))}"
    return task.key, one_line(task.title, 50), waits, checked


def _print_checks(report: _Report, out: Console) -> None:
    gates = report.settings.gates
    if gates:
        out.print(f"gates, from {escape(report.settings.origin('gates'))}:")
        # A gate without a name of its own is called by its command.
        shown = [(gate.name, one_line(gate.command) if gate.name != gate.command else "") for gate in gates]
        for line in columns(shown, most=_WIDEST):
            out.print(Wrapped(Text(line), indent="      "))
    else:
        out.print("[yellow]warn[/]: no gates are in force; `loopwright init` finds your project's checks")
    if unchecked := _unchecked(report):
        names = escape(listed(unchecked))
        if report.settings.values.allow_unverified:
            out.print(
                f"[yellow]warn[/]: nothing would check {names}; it lands because allow_unverified is set"
            )
            return
        out.print(f"[bold red]error[/]: nothing would check {names}, so `run` refuses the plan")
        out.print(
            "[bold]to do[/]: add gates (`loopwright init`) or acceptance commands, or set allow_unverified"
        )

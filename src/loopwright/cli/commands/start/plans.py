"""`plan`: write a plan for a goal, or check a plan before it costs anything."""

import asyncio
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from cyclopts import App
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from loopwright.cli.foreground import code_of, showing
from loopwright.cli.screens.clock import Clock
from loopwright.cli.shell.command_table import COMMANDS
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import Wrapped, columns
from loopwright.cli.shell.output import console, print_json
from loopwright.cli.shell.parameters import NO_COST_FLAGS, CostFlags, PlanPath, SettingsFile
from loopwright.core.values.errors import Refused
from loopwright.core.values.wording import counted, listed, one_line, to_type
from loopwright.services.doctor.probes import FoundAgent
from loopwright.services.plans.checking import PlannedTask, PlanReport, RunOnBase, estimated, examine
from loopwright.services.plans.evaluator import Judgement, in_words
from loopwright.services.plans.goal_tracks import Unplanned
from loopwright.services.plans.planning import GoalRequest, Planned, check_goal, is_goal, plan_goal
from loopwright.services.preflight.run_inputs import meant_path

# Why an answer of an agent could not be used.

_SHOWN: Final = 3


def print_wrong(out: Console, problems: tuple[str, ...]) -> None:
    """Print the first of them."""
    if problems:
        out.print("the last answer cannot be used:")
    for one in problems[:_SHOWN]:
        out.print(f"  {escape(one_line(one, 400))}")
    if len(problems) > _SHOWN:
        out.print(f"  and {len(problems) - _SHOWN} more")


app = App(name="plan", help="Write a plan for a goal, or check a plan.", help_format="plaintext")
app.command(
    "loopwright.cli.commands.inspect.coverage:coverage",
    name="coverage",
    help="Show every criterion with the checks that prove it, or that there is no evidence.",
)

_WIDEST = 24
_PROPOSED = 3
"""So many held-out checks are proposed on the screen; --json has all."""


@app.default
def make(
    goal: str = "",
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
        The goal, in your own words (default: that of the packet).
    out
        Where to put the plan (default: in the folder plans, by the goal's first words).
    agent
        Which agent plans (default: the setting `planner.agent`, else `agent`).
    model
        Which model it uses.
    packet
        The id of a packet of `loopwright inspect` to plan from, such as one of a failed run.
    force
        Plan again, and replace the existing file.
    json
        Print one JSON document.
    """
    if goal or not packet:
        check_goal(goal, ["plan check", "plan coverage", *COMMANDS])
    if goal and not json and not is_goal(goal):
        console().print(f"taken as a goal in one word: {escape(goal.strip())}")
    flags = {"agent": agent, "model": model, **costs.given()}
    planned = _planned(GoalRequest(goal=goal, out=out, flags=flags, packet=packet, force=force), quiet=json)
    code = _code(planned)
    if json:
        found: dict[str, Any] = {"packet_id": planned.packet_id, "planned_by": planned.plan_id}
        found["problems"] = planned.problems
        if planned.path is not None:
            report = _examined(planned.path, run=RunOnBase.GATES, quiet=True)
            found |= {"path": str(planned.path), "plan": _document(report)}
            found["estimate"] = asyncio.run(estimated(report))
            found["evaluator"] = planned.judgement
        print_json({**found, "exit_code": int(code)})
    elif planned.path is None and code is ExitCode.NOT_VERIFIED:
        print_wrong(console(), planned.problems)
        console().print(f"no plan could be made; see why:  {_why(planned)}")
        console().print("the same command tries again")
    elif planned.path is not None:
        _present(planned.path, planned.judgement)
        typed = to_type("run", os.path.relpath(planned.path))
        console().print(f"read it and edit it, then run it:  {escape(typed)}")
    return code


def made(
    goal: str,
    *,
    agent: str | None,
    model: str | None,
    costs: CostFlags,
    quiet: bool,
    notes: bool,
    track: Unplanned | None = None,
) -> Path:
    """Have a plan written for a goal and show it, or raise why there is none.

    `notes` prints the notes about it here; otherwise `run` prints them.
    """
    flags = {"agent": agent, "model": model, **costs.given()}
    planned = _planned(GoalRequest(goal=goal, flags=flags, own=False, track=track), quiet=quiet)
    if planned.path is None:
        if not quiet:
            print_wrong(console(), planned.problems)
        raise Refused("no plan could be made for it", code="no_plan_made", hint=f"see why:  {_why(planned)}")
    if not quiet:
        _present(planned.path, planned.judgement, notes=notes)
    return planned.path


def _planned(request: GoalRequest, *, quiet: bool) -> Planned:
    """Have a plan made, and show the planner at work."""
    return asyncio.run(
        plan_goal(request, tell=_unheard if quiet else console().print, drive=showing(quiet=quiet))
    )


def _code(planned: Planned) -> ExitCode:
    """Return what the exit code says about a plan that was made, or could not be."""
    if planned.is_objected_to:
        return ExitCode.NOT_VERIFIED
    if planned.path is not None or planned.rested is None:
        return ExitCode.VERIFIED
    return code_of(planned.rested) or ExitCode.NOT_VERIFIED


def _unheard(_: str) -> None:
    """Print nothing."""


def _why(planned: Planned) -> str:
    return to_type("status", planned.task)


def _present(path: Path, judgement: Judgement | None, *, notes: bool = True) -> None:
    # The commands that an agent wrote are not run before you have read them.
    report = _examined(path, run=RunOnBase.GATES)
    report = report if notes else replace(report, notes=())
    _print(report, console())
    if judgement is not None:
        _print_judgement(judgement, console())
    console().print(asyncio.run(estimated(report)))


def _print_judgement(judgement: Judgement, out: Console) -> None:
    by = " ".join(filter(None, (judgement.agent, judgement.model)))
    out.print(Wrapped(Text(f"evaluated by {by}: {judgement.summary or 'no summary'}"), indent="  "))
    for one in judgement.findings:
        blocks = one in judgement.blocking
        word = Text("objection" if blocks else "opinion", style="bold red" if blocks else "dim")
        out.print(Wrapped(Text.assemble(word, f": {in_words(one)}"), indent="  "))
    if judgement.blocking:
        out.print('`run` refuses it as it is: edit it, or say why it is to run: --despite "..."')


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
    """Check a plan: name every problem with its place, and run its checks on the base commit.

    Parameters
    ----------
    file
        The file or folder with the work, in any supported format.
    source
        The kind of its format, if its name does not show it.
    settings_file
        Read the project's settings from this file instead of the commit's loopwright.toml.
    no_run
        Do not run gates and acceptance commands on the base commit.
    json
        Print one JSON document.
    """
    file = meant_path(file, source)
    what = RunOnBase.NOTHING if no_run else RunOnBase.ALL
    report = _examined(file, source, run=what, settings_file=settings_file, quiet=json)
    code = ExitCode.USER_ERROR if report.is_refused else ExitCode.VERIFIED
    if json:
        print_json({"plan": _document(report), "exit_code": int(code)})
        return code
    _print(report, console())
    if report.is_refused:
        return code
    if not report.to_do:
        console().print("[green]ok[/]: there is nothing to do in it")
    elif any(agent.usable for agent in report.agents):
        console().print(f"[green]ok[/]: the plan is good; run it with  {escape(to_type('run', str(file)))}")
    else:
        console().print(
            "[green]ok[/]: the plan is good, but `run` refuses it here: none of its agents can be used"
        )
    return code


def _examined(
    path: Path,
    kind: str | None = None,
    *,
    run: RunOnBase,
    settings_file: Path | None = None,
    quiet: bool = False,
) -> PlanReport:
    with Clock(quiet=quiet, out=console()) as tell:
        return asyncio.run(examine(path, kind, run=run, settings_file=settings_file, tell=tell))


def _document(report: PlanReport) -> Mapping[str, Any]:
    work, values = report.work, report.settings.values
    return {
        "file": str(report.path),
        "title": work.title,
        "sha256": work.sha256,
        "tasks": work.tasks,
        "critical_path": report.critical_path,
        "parallel_width": report.width,
        "parallel": values.parallel,
        "without_acceptance": report.without_acceptance,
        "unchecked": report.unchecked,
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


def _print(report: PlanReport, out: Console) -> None:
    work, settings = report.work, report.settings
    out.print(f"[bold]{escape(work.title)}[/]  {escape(os.path.relpath(report.path))}")
    at_once = min(report.width, settings.values.parallel)
    wanted = len(report.to_do)
    settled = len(work.tasks) - wanted
    told = (
        f"{counted(wanted, 'task')}{f' to do ({settled} done or skipped)' if settled else ''}, "
        f"critical path {len(report.critical_path)} "
        f"({one_line(' → '.join(report.critical_path), 200)}), "
        f"up to {report.width} at once, {at_once} with the setting parallel"
    )
    out.print(Wrapped(Text(told)))
    to_come = {task.key for task in report.to_do}
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
    if task.key not in to_come:
        return task.key, one_line(task.title, 50), task.mark.value, ""
    needs = [key for key in task.depends_on if key in to_come]
    waits = f"after {listed(needs)}" if needs else "at once"
    checked = counted(len(task.acceptance), "acceptance command") if task.acceptance else "by the gates only"
    if task.held_out:
        checked += f", {len(task.held_out)} held out"
    if task.may_change:
        checked += f", may change {listed(list(task.may_change))}"
    return task.key, one_line(task.title, 50), waits, checked


def _print_checks(report: PlanReport, out: Console) -> None:
    gates = report.settings.gates
    if gates:
        out.print(f"gates, from {escape(report.settings.origin('gates'))}:")
        # A gate without a name of its own is called by its command.
        shown = [(gate.name, one_line(gate.command) if gate.name != gate.command else "") for gate in gates]
        for line in columns(shown, most=_WIDEST):
            out.print(Wrapped(Text(line), indent="      "))
    else:
        out.print("[yellow]warn[/]: no gates are in force; `loopwright init` finds your project's checks")
    if unchecked := report.unchecked:
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

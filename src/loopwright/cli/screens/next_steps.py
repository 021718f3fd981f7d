"""What a person may do next: the commands to type, each with what it is good for."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from loopwright.core.gates.contradictions import KIND
from loopwright.core.plans.planning import FOLDER, TITLED, name_of
from loopwright.core.policy import caps_reached
from loopwright.core.rows.model import Role
from loopwright.core.values.ids import short_id
from loopwright.core.values.shell_hints import to_type
from loopwright.engine.views.views import PlanView
from loopwright.services.homes.read_only_home import project_here
from loopwright.services.homes.repository import has_branch

_ALIGNED = 50
"""Longer commands do not push the reasons of the others aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command to type."""

    command: str
    why: str


def print_steps(out: Console, steps: list[Step]) -> None:
    """Print the commands one to a line: a reason gives way where there is no room, a command is never cut."""
    column = max((len(step.command) for step in steps if len(step.command) <= _ALIGNED), default=0)
    for step in steps:
        line = (
            Text("  ").append(step.command.ljust(column), style="bold").append(f"  {step.why}", style="dim")
        )
        if out.is_terminal and line.cell_len > out.width:
            line = Text("  ").append(step.command, style="bold")
        out.print(line)


def written_by(view: PlanView) -> list[Step]:
    """Return how the plan that a planner answered with becomes a file, where it did not yet."""
    if view.answers != Role.PLANNER.value:
        return []
    goal = view.title.removeprefix(TITLED)
    file = Path(FOLDER) / f"{name_of(goal)}.yaml"
    if (Path(view.path) / file).exists():
        return []
    return [Step(command=to_type("plan", goal), why=f"write the plan to {file}, at no cost")]


def left_without(view: PlanView) -> bool:
    """Say whether nothing is left of a plan but what was cancelled: a person may have it verified without that."""
    given_up = sum(task.status == "CANCELLED" for task in view.tasks)
    resting = view.status == "RUNNING" and view.loop_state != "RUNNING"
    return resting and bool(view.done and given_up) and view.done + given_up == view.total


def merge_command(view: PlanView) -> str:
    """Return what merges a plan's branch from the current folder; empty if the branch no longer exists."""
    if not has_branch(Path(view.path), view.branch):
        return ""
    where = "" if view.path in (project_here() or ()) else f"-C {shlex.quote(view.path)} "
    return f"git {where}merge --ff-only {view.branch}"


def plan_steps(view: PlanView, *, worked: bool) -> list[Step]:
    """Return what to do about a plan; `worked` says whether somebody works on it now."""
    plan = short_id(view.id)
    if view.status == "VERIFIED" and view.answers:
        return written_by(view)  # nobody merges an answer
    if view.status == "VERIFIED":
        whole = [one for one in view.finishes if not one.tasks]
        if any(one.state == "FINISHED" for one in whole):
            return []  # it is where it was to go
        if whole and whole[-1].state == "REFUSED":
            why = f"its end was refused: {whole[-1].detail.partition(chr(10))[0]}"
            return [Step(command=to_type("accept", plan, finish=whole[-1].how), why=why)]
        merge = merge_command(view)
        return [Step(command=merge, why="take the result over")] if merge else []
    steps = [
        Step(
            command=to_type("show", view.prefix + task.key),
            why="what failed, and what to do about it",
        )
        for task in view.tasks
        if task.status == "ERROR"
    ][:3]
    given_up = [task for task in view.tasks if task.status == "CANCELLED"]
    if given_up and view.loop_state == "FAILED" and view.status == "RUNNING" and not steps:
        # The two ways on: nobody but a person decides which.
        steps += [
            Step(
                command=to_type("retry", view.prefix + task.key),
                why=f"try {task.key} again after all",
            )
            for task in given_up[:3]
        ]
        if left_without(view):
            without = "it" if len(given_up) == 1 else f"the {len(given_up)} that were cancelled"
            steps.append(
                Step(command=to_type("reverify", plan), why=f"or verify what landed, without {without}")
            )
        elif view.done:
            # The loop has failed, so whatever is queued waits for what was given up.
            stuck = [task.key for task in view.tasks if task.status == "QUEUED"][:2]
            steps += [
                Step(
                    command=to_type("cancel", view.prefix + key),
                    why="or cancel it too, then reverify",
                )
                for key in stuck
            ]
        ends = "or end the plan; what landed stays"
        steps.append(Step(command=to_type("cancel", plan), why=ends))
    if view.status == "FAILED" and not steps:
        steps.append(Step(command=to_type("logs", plan), why="what the complete gate printed"))
        steps.append(Step(command=to_type("reverify", plan), why="run the complete gate once more"))
    if view.status == "RUNNING" and any(one.kind == KIND for one in view.questions):
        steps.insert(0, Step(command=to_type("resume", plan), why="continue after your answer"))
    if view.status in ("FAILED", "CANCELLED") or view.loop_state in ("FAILED", ""):
        return steps
    budget = next((one for one in view.questions if one.kind == caps_reached.ASKED), None)
    if budget is not None and view.loop_state == "PAUSED":
        raised = next((one for one in budget.options if one.startswith("raise")), budget.options[0])
        said = to_type("answer", short_id(budget.id), raised)
        steps.append(Step(command=said, why="spend more, and go on"))
    elif view.loop_state in ("PAUSED", "STOPPED"):
        steps.append(Step(command=to_type("resume", plan), why="go on"))
    elif view.awaits_look:
        steps.append(Step(command=to_type("reviewed", plan), why="you have looked at what landed"))
    elif worked:
        steps.append(Step(command=to_type("watch", plan), why="follow it live"))
    else:
        steps.append(Step(command=to_type("resume", plan), why="no worker is running: go on here"))
    return steps

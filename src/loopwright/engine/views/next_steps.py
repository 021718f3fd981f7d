"""What to do next about a plan, a task or a run: the commands to type, each with its reason."""

from dataclasses import dataclass, field
from typing import Final

from loopwright.core.gates.contradictions import ACCEPT, KIND, REJECT
from loopwright.core.healing.diagnosis import fixes
from loopwright.core.plans.planning import FOLDER, TITLED, name_of
from loopwright.core.policy import budget as budgets
from loopwright.core.policy.manual_steps import DONE, FAILED, SKIP
from loopwright.core.policy.manual_steps import KIND as BY_HAND
from loopwright.core.rows.model import Role
from loopwright.core.values.failures import Failure
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import command
from loopwright.engine.views.overview import RunView
from loopwright.engine.views.views import PlanView, TaskDetail

_SHORT: Final = 10
"""How much of a commit id is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command to type."""

    command: tuple[str, ...]
    """Its words."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What to type for a task and for those that hold it up, and whether it can be tried again."""

    handle: str = ""
    blockers: tuple[str, ...] = ()
    retry_refused: str = ""
    """Why `retry` would be refused; empty if it would not."""
    may_leave_out: bool = False
    """Whether the plan can be verified without it: everything else has landed."""
    stuck: tuple[str, ...] = ()
    """Those that can never start without it, if nothing else of its plan is left."""
    resting: bool = False
    """Whether the plan was paused or stopped, so that nothing continues by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Facts for the next steps that a view does not have."""

    is_worked_on: bool = False
    """Whether a process works on the plan now."""
    has_branch: bool = False
    """Whether the plan's branch still exists."""
    is_elsewhere: bool = False
    """Whether the plan's repository differs from the caller's."""
    has_plan_file: bool = False
    """Whether the plan in a planner's answer is already a file."""
    names: Names = field(default_factory=Names)
    """The names for a task."""
    unchanged: frozenset[int] = frozenset()
    """Attempts of a task that changed nothing."""


def next_steps(view: PlanView | TaskDetail | RunView, known: Known) -> tuple[Step, ...]:
    """Return the commands that help with what a view shows, the most useful one first."""
    match view:
        case PlanView():
            return tuple(_of_plan(view, known))
        case TaskDetail():
            return tuple(_of_task(view, known))
        case RunView():
            return tuple(_of_run(view))


def planned_file(view: PlanView) -> str:
    """Return the file for the plan in a planner's answer; empty for any other plan."""
    if view.answers != Role.PLANNER.value:
        return ""
    return f"{FOLDER}/{name_of(view.title.removeprefix(TITLED))}.yaml"


def _writing(view: PlanView, known: Known) -> list[Step]:
    """Return how the plan in a planner's answer becomes a file, if it has not yet."""
    file = planned_file(view)
    if not file or known.has_plan_file:
        return []
    words = command("plan", view.title.removeprefix(TITLED))
    return [Step(command=words, why=f"write the plan to {file}, at no cost")]


def _can_leave_out(view: PlanView) -> bool:
    """Return whether only cancelled tasks are left of a plan, so that it can be verified without them."""
    given_up = sum(task.status == "CANCELLED" for task in view.tasks)
    resting = view.status == "RUNNING" and view.loop_state != "RUNNING"
    return resting and bool(view.done and given_up) and view.done + given_up == view.total


def merge_command(view: PlanView, known: Known) -> tuple[str, ...]:
    """Return what merges a plan's branch from the current folder; empty if the branch no longer exists."""
    if not known.has_branch:
        return ()
    where = ("-C", view.path) if known.is_elsewhere else ()
    return ("git", *where, "merge", "--ff-only", view.branch)


def diff_command(old: str | None, new: str | None) -> tuple[str, ...]:
    """Return the command that shows a diff; empty while there is none."""
    return ("git", "diff", f"{old[:_SHORT]}..{new[:_SHORT]}") if old and new else ()


def _of_plan(view: PlanView, known: Known) -> list[Step]:
    plan = short_id(view.id)
    if view.status == "VERIFIED" and view.answers:
        return _writing(view, known)  # an answer is not merged
    if view.status == "VERIFIED":
        whole = [one for one in view.finishes if not one.tasks]
        if any(one.state == "FINISHED" for one in whole):
            return []  # it is already merged
        if whole and whole[-1].state == "REFUSED":
            why = f"its end was refused: {whole[-1].detail.partition(chr(10))[0]}"
            return [Step(command=command("accept", plan, finish=whole[-1].how), why=why)]
        merge = merge_command(view, known)
        return [Step(command=merge, why="merge the result")] if merge else []
    steps = [
        Step(
            command=command("status", view.prefix + task.key),
            why="what failed, and what to do about it",
        )
        for task in view.tasks
        if task.status == "ERROR"
    ][:3]
    given_up = [task for task in view.tasks if task.status == "CANCELLED" and not task.manual]
    if given_up and view.loop_state == "FAILED" and view.status == "RUNNING" and not steps:
        # The two ways to continue: the user decides.
        steps += [
            Step(
                command=command("retry", view.prefix + task.key),
                why=f"try {task.key} again after all",
            )
            for task in given_up[:3]
        ]
        if _can_leave_out(view):
            without = "it" if len(given_up) == 1 else f"the {len(given_up)} that were cancelled"
            steps.append(
                Step(command=command("reverify", plan), why=f"or verify what landed, without {without}")
            )
        elif view.done:
            # The loop has failed, so everything queued waits for the failed tasks.
            stuck = [task.key for task in view.tasks if task.status == "QUEUED"][:2]
            steps += [
                Step(
                    command=command("cancel", view.prefix + key),
                    why="or cancel it too, then reverify",
                )
                for key in stuck
            ]
        ends = "or end the plan; what landed stays"
        steps.append(Step(command=command("cancel", plan), why=ends))
    if view.status == "FAILED" and not steps:
        steps.append(Step(command=command("logs", plan), why="what the complete gate printed"))
        steps.append(Step(command=command("reverify", plan), why="run the complete gate once more"))
    if view.status == "RUNNING":
        steps += [
            Step(
                command=command("answer", short_id(one.id), DONE),
                why="you did this step by hand (or skip, failed)",
            )
            for one in view.questions
            if one.kind == BY_HAND
        ][:3]
    if view.status == "RUNNING" and any(one.kind == KIND for one in view.questions):
        steps.insert(0, Step(command=command("resume", plan), why="continue after your answer"))
    if view.status in ("FAILED", "CANCELLED") or view.loop_state in ("FAILED", ""):
        return steps
    budget = next((one for one in view.questions if one.kind == budgets.ASKED), None)
    if budget is not None and view.loop_state == "PAUSED":
        raised = next((one for one in budget.options if one.startswith("raise")), budget.options[0])
        said = command("answer", short_id(budget.id), raised)
        steps.append(Step(command=said, why="spend more, and continue"))
    elif view.loop_state in ("PAUSED", "STOPPED"):
        steps.append(Step(command=command("resume", plan), why="continue"))
    elif view.awaits_look:
        steps.append(Step(command=command("reviewed", plan), why="you have looked at what landed"))
    elif known.is_worked_on:
        steps.append(Step(command=command("watch", plan), why="follow it live"))
    else:
        steps.append(Step(command=command("resume", plan), why="no worker is running: continue here"))
    return steps


def _of_task(detail: TaskDetail, known: Known) -> list[Step]:
    task, names = detail.task, known.names
    name = names.handle
    seen = [
        one
        for one in detail.attempts
        if one.run_ids and (one.tip_sha or one.failure or one.state == "WORKING")
    ]
    logs = Step(command=command("logs", name), why="what the agent did and the gate printed")
    cancel = Step(command=command("cancel", name), why=f"give it up; {what_stays(detail)}")
    match task.status:
        case "COMPLETE":
            steps = [] if task.manual else [logs]
            if task.commit:
                steps.append(Step(command=("git", "show", task.commit[:_SHORT]), why="what landed"))
            return steps
        case "AWAITING_RESPONSE":
            asked = Step(command=command("answer"), why="what it asks, and how to answer")
            resume = command("resume", short_id(detail.plan_id))
            then = [Step(command=resume, why="then continue, if no worker is running")]
            decide = _decisions(detail)
            after = then if decide or names.resting else ()
            return [asked, *decide, *after, *(() if task.manual else (logs,)), cancel]
        case "ERROR" | "CANCELLED":
            again = [
                Step(command=command("retry", name, note="…"), why="try again with your note"),
                Step(command=command("retry", name, agent="NAME"), why="let another agent try (or --model)"),
            ]
            kept = detail.attempts[-1].contradicted if detail.attempts else ()
            if task.failure == Failure.CONTRADICTION and kept:
                why = "allow it to contradict these checks"
                again.insert(0, Step(command=command("retry", name, allow=kept), why=why))
            plan = short_id(detail.plan_id)
            without = Step(command=command("reverify", plan), why="or verify what landed, without it")
            if names.retry_refused:
                again = [without] if names.may_leave_out else []
            elif task.status == "CANCELLED":
                ends = "or end the plan; what landed stays"
                end = Step(command=command("cancel", plan), why=ends)
                waiting = []
                if names.stuck:
                    why = "or cancel all that waits for it too, then reverify"
                    waiting = [Step(command=command("cancel", name, chain=True), why=why)]
                again = [*again[:1], *([without] if names.may_leave_out else waiting), end]
            steps = [*again, *([logs] if seen else [])]
            if seen and seen[-1].tip_sha and seen[-1].n not in known.unchanged:
                diff = diff_command(seen[-1].base_sha, seen[-1].tip_sha)
                steps.append(Step(command=diff, why=f"what attempt {seen[-1].n} changed"))
            if task.failure in ("auth", "cannot_start", "billing"):
                steps.insert(0, Step(command=command("doctor"), why="is the agent there and logged in?"))
            if detail.diagnosis is not None and not names.retry_refused:
                helps = [
                    Step(command=one.command, why=one.why)
                    for one in fixes(detail.diagnosis.cause, name=name, title=task.title)
                ]
                known_already = {one.command for one in helps}
                steps = [*helps, *(one for one in steps if one.command not in known_already)]
            return [*steps, *([cancel] if task.status == "ERROR" else [])]
        case "QUEUED" if task.taken_by:
            back = Step(
                command=command("take-over", name, done=True), why="send what you did through the checks"
            )
            drop = Step(command=command("take-over", name, drop=True), why="leave it to the machine again")
            return [back, drop, *([logs] if seen else []), cancel]
        case "RUNNING" | "QUEUED" if names.resting:
            go_on = Step(command=command("resume", short_id(detail.plan_id)), why="continue the plan")
            return [go_on, *([logs] if seen else []), cancel]
        case "RUNNING":
            follow = Step(command=command("logs", name, follow=True), why="see what it does")
            return [follow, cancel]
        case _:
            watch = Step(command=command("watch", short_id(detail.plan_id)), why="follow the plan live")
            held = [Step(command=command("status", key), why=f"{key} holds it up") for key in names.blockers]
            return [*(held or [watch]), *([logs] if seen else []), cancel]


def _decisions(detail: TaskDetail) -> list[Step]:
    """Return the answers to each question about contradicted checks or a manual step."""
    by_hand = ((DONE, "you did it"), (SKIP, "continue without it"), (f"{FAILED}: …", "say what went wrong"))
    decisions = [
        Step(command=command("answer", short_id(one.id), said), why=why)
        for one in detail.questions
        if one.kind == BY_HAND
        for said, why in by_hand
    ]
    return decisions + [
        Step(command=command("answer", short_id(one.id), said), why=why)
        for one in detail.questions
        if one.kind == KIND
        for said, why in (
            (ACCEPT, "let the work land"),
            (REJECT, "keep these checks, and say so to a new attempt"),
        )
    ]


def _of_run(view: RunView) -> list[Step]:
    steps = [Step(command=command("logs", short_id(view.id)), why="what it printed")]
    if view.role == "implementer" and view.tip_sha:
        steps.append(Step(command=diff_command(view.base_sha, view.tip_sha), why="what its attempt changed"))
    return steps


def what_stays(detail: TaskDetail) -> str:
    """Return how the work of a task is kept; git cannot pin files that it cannot record."""
    last = detail.attempts[-1] if detail.attempts else None
    unrecorded = last is not None and last.failure == Failure.UNRECORDABLE
    return "its files stay in the archive" if unrecorded else "its work stays pinned"

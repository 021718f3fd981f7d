"""The finish of a plan: the ways to finish, which tasks can be merged alone, and the texts of commits and requests."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from loopwright.core.rows.model import Finish, Outcome, Plan, Task
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.states import TaskState

LEAVE: Final = "leave"
FAST_FORWARD: Final = "fast-forward"
SQUASH: Final = "squash"
PULL_REQUEST: Final = "pull-request"
WAYS: Final = (LEAVE, FAST_FORWARD, SQUASH, PULL_REQUEST)

FINISH_TRAILER: Final = "Loopwright-Finish"
RECEIPT_TRAILER: Final = "Loopwright-Receipt"
PICKED_TRAILER: Final = "Loopwright-Picked"
"""Names the commit that this one replaces: only this one reaches a clone with the branch."""
BOOKS_TRAILER: Final = "Loopwright-Books"
COPY_TRAILER: Final = "Loopwright-Copy"
"""Names a file of the user's copy whose changes the commit includes: the id of its content, and its path."""
_SHOWN: Final = 200


def receipt_hash(text: str) -> str:
    """Return the hash of a receipt's text as `sha256sum` prints it for the file."""
    return hashlib.sha256(text.encode()).hexdigest()


def refuse_unknown(tasks: Sequence[Task], keys: Sequence[str]) -> None:
    """Refuse names that are not tasks of the plan."""
    known = [task.key for task in tasks]
    if unknown := [key for key in keys if key not in known]:
        hint = f"its tasks are: {', '.join(known[:20])}"
        raise NotFound(f"the plan has no task {', '.join(unknown)}", code="task_not_found", hint=hint)


def chosen(tasks: Sequence[Task], keys: Sequence[str], accepted: Iterable[str]) -> tuple[Task, ...]:
    """Return the tasks that the user named, in the plan's order; raise if they depend on others.

    `accepted` are the ids of tasks that were merged before.
    """
    refuse_unknown(tasks, keys)
    wanted = [task for task in tasks if task.key in keys]
    if unfinished := [task for task in wanted if task.status is not TaskState.COMPLETE]:
        told = ", ".join(f"{task.key} is {task.status.value}" for task in unfinished)
        raise Refused(
            f"only a task that has landed can be accepted: {told}",
            code="task_not_landed",
            hint="leave it out, or wait for it",
        )
    have = {task.id for task in wanted} | set(accepted)
    names = {task.id: task.key for task in tasks}
    missing = {names[one]: task.key for task in wanted for one in task.depends_on if one not in have}
    if missing:
        told = ", ".join(f"{after} builds on {before}" for before, after in missing.items())
        whole = ",".join(task.key for task in tasks if task.key in {*keys, *missing})
        raise Refused(
            f"these tasks cannot go without what they build on: {told}",
            code="tasks_need_others",
            hint=f"take them together: --tasks {whole}",
        )
    return tuple(wanted)


def subject(plan: Plan) -> str:
    """Return the first line of a commit or a request about a plan's finish."""
    return _line(plan.title) or plan.id


def _line(text: str) -> str:
    """Return external text on one line, without characters that could control a terminal."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())[:_SHOWN]


def message(plan: Plan, tasks: Sequence[Task], finish: Finish) -> str:
    """Return the message of the commit that merges a plan's work into the base branch."""
    picked = [task.landed_sha for task in tasks if task.landed_sha] if finish.how == SQUASH else []
    return "\n".join(
        [
            subject(plan),
            "",
            *(f"- {task_line(task)}" for task in tasks),
            "",
            f"Loopwright-Plan: {plan.id}",
            *(f"{PICKED_TRAILER}: {sha}" for sha in picked),
            f"{FINISH_TRAILER}: {finish.id}",
            f"{RECEIPT_TRAILER}: sha256:{finish.receipt_sha256}",
        ]
    )


def picked_message(plan: Plan, task: Task, finish: Finish) -> str:
    """Return the message of a task's commit that was rebuilt on the base branch."""
    return "\n".join(
        [
            _line(f"feat({task.key}): {task.title}"),
            "",
            f"Loopwright-Plan: {plan.id}",
            f"Loopwright-Task: {task.id}",
            f"{PICKED_TRAILER}: {task.landed_sha}",
            f"{FINISH_TRAILER}: {finish.id}",
            f"{RECEIPT_TRAILER}: sha256:{finish.receipt_sha256}",
        ]
    )


def task_line(task: Task) -> str:
    """Return the line about a task for people."""
    commit = f" ({task.landed_sha[:10]})" if task.landed_sha else ""
    return _line(f"{task.key}: {task.title}") + commit


_OUTCOMES: Final[Mapping[Outcome, str]] = {
    Outcome.VERIFIED: "verified",
    Outcome.VERIFIED_WITH_GAPS: "verified, with gaps",
    Outcome.NO_CHANGE_PROVEN: "nothing had to be changed",
}


def request_body(plan: Plan, tasks: Sequence[Task], finish: Finish, *, gates: Sequence[str]) -> str:
    """Return the text of a pull request: what was done, what checked it, and how to verify that."""
    rows = [
        f"| `{_cell(task.key)}` | {_cell(task.title)} | {_outcome(task)} | {_code(task.landed_sha)} |"
        for task in tasks
    ]
    checked = [f"- `{_cell(gate)}`" for gate in gates] or ["- nothing is configured to check it"]
    return "\n".join(
        [
            f"The work of plan `{plan.id}`, begun from `{plan.base_sha[:10]}` of `{_cell(plan.base_ref)}`.",
            "",
            "| task | what | outcome | commit |",
            "|---|---|---|---|",
            *rows,
            "",
            f"These commands passed together on `{(finish.commit_sha or '')[:10]}`:",
            "",
            *checked,
            "",
            f"Receipt: sha256 `{finish.receipt_sha256}`",
        ]
    )


def _outcome(task: Task) -> str:
    return _OUTCOMES.get(task.outcome, "not verified") if task.outcome else "not verified"


def _code(sha: str | None) -> str:
    return f"`{sha[:10]}`" if sha else ""


def _cell(text: str) -> str:
    """Return external text so that it stays in its table cell."""
    return _line(text.replace("|", "/").replace("`", "'").replace("<", "‹"))


def done_sentence(finish: Finish, base: str) -> str:
    """Return in plain words what was done with a plan's work."""
    commit = (finish.commit_sha or "")[:10]
    match finish.how:
        case "fast-forward":
            return f"{base} was moved forward to {commit}"
        case "squash":
            return f"squashed into {base} as {commit}"
        case _:
            return f"pull request: {finish.request_url}"

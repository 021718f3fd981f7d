"""The leftovers of a source's last plan, and flags of `run` that cannot change it any more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.git import GitRepository
from loopwright.adapters.git.plumbing.runner import user_env
from loopwright.config.groups import ROUND_FLAGS
from loopwright.core.policy.budget import CAPS
from loopwright.core.policy.finishing import PULL_REQUEST
from loopwright.core.rows.model import Finish, Loop, Plan, Task
from loopwright.core.values.errors import BadPlan, Refused
from loopwright.core.values.ids import short_id
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import ENDED_PLAN, FinishState, PlanState, TaskState
from loopwright.core.values.wording import counted, listed, money, on_one_line, to_type
from loopwright.engine.intake.evaluation import to_do
from loopwright.engine.intake.submit import Submission, last_plan
from loopwright.engine.plans.state_export import is_exported
from loopwright.engine.rows.source_marks import SETTLED, marks_of
from loopwright.engine.rows.writeback_debts import DebtView, debt_view, is_asked
from loopwright.engine.sources.writeback_files import folder_of, inside
from loopwright.ports import Mark, Source, Store, Tx

# `run` with an existing plan: flags that would change it are reported, never silently ignored.

_TYPED: Final[Mapping[str, str]] = {"wait_for_limits": "--no-wait", **ROUND_FLAGS}
"""Flags whose name differs from their setting's."""

_HARMLESS: Final = frozenset({"parallel"})
"""Flags that affect neither the cost nor the meaning of the result."""


_SETTLED: Final = "every item is done or skipped: what you set open again in the source is done again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """A flag that would change nothing: the plan keeps the value that it began with."""

    flag: str
    kept: str
    harmless: bool


def flag_of(key: str) -> str:
    """Return a flag as it is typed."""
    return _TYPED.get(key, "--" + key.replace("_", "-"))


def idle_flags(
    flags: Mapping[str, Any], wanted: Policy, plan: Plan, *, base_sha: str | None
) -> tuple[Idle, ...]:
    """Return the flags that were given but differ from what an unfinished plan began with."""
    found: list[Idle] = []
    for key, value in flags.items():
        if value is None or not hasattr(plan.policy, key.partition(".")[0]):
            continue  # not given, or nothing that a plan keeps
        field = attrgetter(key)
        kept = field(plan.policy)
        if field(wanted) != kept:
            found.append(Idle(flag=flag_of(key), kept=_words(key, kept), harmless=key in _HARMLESS))
    if base_sha is not None and base_sha != plan.base_sha:
        kept = f"{plan.base_ref} ({plan.base_sha[:7]})"
        found.append(Idle(flag="--base", kept=kept, harmless=False))
    return tuple(found)


def _words(key: str, kept: Any) -> str:
    if key in CAPS:
        return "no limit" if kept is None else money(kept)
    return "none" if kept is None else str(kept).lower() if isinstance(kept, bool) else str(kept)


def refuse_idle(idle: Sequence[Idle], plan: Plan) -> tuple[str, ...]:
    """Refuse to continue a plan with misleading flags; return notes about the others."""
    wrong = [one for one in idle if not one.harmless]
    if wrong:
        kept = ", ".join(f"{one.flag} (it began with {one.kept})" for one in wrong)
        ways = [f"leave {'it' if len(wrong) == 1 else 'them'} out to carry the plan on"]
        limits = [one.flag for one in wrong if one.flag in map(flag_of, CAPS)]
        if limits:
            another = to_type("resume", short_id(plan.id), **{limits[0].removeprefix("--"): "…"})
            ways.append(f"`{another}` sets another limit")
        ways.append(f"`loopwright cancel {short_id(plan.id)}`, then run it with --new")
        raise Refused(
            f"this plan is unfinished and keeps its settings, so {counted(len(wrong), 'flag')} would change "
            f"nothing: {kept}",
            code="flags_without_effect",
            hint="; or ".join(ways),
        )
    return tuple(f"{one.flag} changes nothing now: the plan began with {one.kept}" for one in idle)


def for_finished(
    flags: Mapping[str, Any], *, base: str | None, cancelled: bool = False, left: int | None = None
) -> str:
    """Return how to run an ended plan again, with the given flags.

    `left` is how many items the source has open while others are done or skipped: those are not done again.
    """
    given = [flag_of(key) for key, value in {**flags, "base": base}.items() if value is not None]
    was = "was cancelled" if cancelled else "was already run"
    over = "--new starts it over"
    if left is not None:
        over = f"--new starts over with the {counted(left, 'item')} still open" if left else _SETTLED
    if not given:
        return f"This plan {was}; {over}."
    verb = "changes" if len(given) == 1 else "change"
    told = f"This plan {was}, so {listed(given)} {verb} nothing; {over}{'' if left == 0 else ' with that'}."
    if flags.get("finish") and not cancelled:
        told += f" `{to_type('accept', finish=flags['finish'])}` accepts its work."
    return told


_TOLD: Final = 200
"""How much of a reason a message repeats."""


async def refuse_left_behind(store: Store, repository: GitRepository, asked: Submission) -> None:
    """Refuse a new plan that would start without what the last one landed; `--new` confirms it."""
    if asked.new:
        return
    plan, landed = await store.read(lambda tx: _landed(tx, asked))
    if plan is None or not landed or not await is_ahead(repository, asked.root, plan.branch, asked.base.sha):
        return
    ways = [f"`git merge {plan.branch}` brings it in"]
    if plan.status is PlanState.VERIFIED:
        accept = f"loopwright accept {short_id(plan.id)} --finish fast-forward"
        ways[0] = f"`git merge {plan.branch}` or `{accept}` brings it in"
    if not asked.books:
        # The status of finished items is in the file itself, not on the branch.
        ways.append(f"--base {plan.branch} starts from it")
    ways.append("--new starts without it (say so as well if you took it over with your own changes)")
    failed = ""
    if plan.status is PlanState.FAILED:
        # A user who builds on it has to know that it did not pass.
        failed = f"FAILED its verification ({on_one_line(plan.reason)[:_TOLD]}) and "
        ways.reverse()
    raise Refused(
        f"the last plan of {asked.source_path} landed {counted(landed, 'task')} on {plan.branch}, which {failed}is not "
        f"merged into {asked.base.ref} ({asked.base.sha[:7]}): a new plan would start without that work",
        code="branch_not_merged",
        hint="; or ".join(ways),
    )


def source_debt(tx: Tx, asked: Submission) -> DebtView | None:
    """Return the write-back debt of its last plan; None if all was written."""
    plan = last_plan(tx, asked)
    if plan is None:
        return None
    if is_exported(tx, plan.id):
        debt = debt_view(tx, plan.id, gone=True)
        if debt is not None and is_asked(tx, plan.id):
            reason = (
                f"{debt.reason}; the worker of this home was asked to write it now, and has not done so yet"
            )
            return replace(debt, reason=reason)
        return debt
    # The worker was killed before the write-back, or has not done it yet.
    reason, since = "no worker has done so yet", plan.completed_at or plan.updated_at
    return DebtView(plan_id=plan.id, source=asked.source_path, items=(), reason=reason, since=since)


def refuse_untold(debt: DebtView | None, asked: Submission) -> None:
    """Refuse a new plan of a source without the last status: finished items would be done again."""
    if debt is None or asked.new:
        return
    about = f"of {listed(debt.items)} " if debt.items else ""
    hint = "fix that, or write the status there yourself, and run it again; --new starts over anyway"
    if debt.over:
        marks = f"mark {listed(debt.items)} as done" if debt.items else "set the marks of what is done"
        hint = f"{marks} in {debt.source}, and run it again; --new starts over anyway"
    raise Refused(
        f"the last plan of {debt.source} has ended, and its status could not be written back {about}"
        f"({debt.reason}): a new plan would do again what is done",
        code="status_not_written_back",
        hint=hint,
    )


async def opened_again(
    store: Store, repository: GitRepository, source: Source, asked: Submission
) -> tuple[str, ...]:
    """Return the items that the user has reopened since: done by the last plan, or settled before it began."""
    plan, loop = await store.read(lambda tx: _over(tx, asked))
    if plan is None or loop is None or plan.source_sha256 != asked.work.sha256 or asked.work.is_copy:
        return ()
    if await store.read(lambda tx: source_debt(tx, asked)) is not None:
        return ()  # an item without its status is also open there, and looks the same
    if not plan.books:
        marks = await store.read(lambda tx: marks_of(tx, plan.id))
        done = {key for key, (_, told) in marks.items() if told == Mark.DONE.value}
        # One that is marked in progress is an older copy, which gets the status of the plan again.
        again = [task for task in to_do(asked.work) if task.mark is not Mark.RUNNING]
        kept = await store.read(lambda tx: _task_keys(tx, plan.id))
        return tuple(task.key for task in again if task.key in done or task.key not in kept)
    if plan.result_sha is None or not to_do(asked.work):
        return ()
    _, landed = await store.read(lambda tx: _landed(tx, asked))
    if landed and await is_ahead(repository, asked.root, plan.branch, asked.base.sha):
        return ()  # the status is on the branch, which is not checked out
    files = await repository.files_at(plan.result_sha, plan.books)
    try:
        told = source.parse(inside(files, folder_of(plan, loop)), asked.source_path)
    except BadPlan:
        return ()  # its commits are gone
    settled = {task.key for task in told.tasks if task.mark in SETTLED}
    return tuple(task.key for task in to_do(asked.work) if task.key in settled)


def _task_keys(tx: Tx, plan_id: str) -> frozenset[str]:
    return frozenset(task.key for task in tx.find(Task, plan_id=plan_id))


def _over(tx: Tx, asked: Submission) -> tuple[Plan | None, Loop | None]:
    plan = last_plan(tx, asked)
    if plan is None or plan.status not in ENDED_PLAN:
        return None, None
    return plan, tx.get(Loop, plan.loop_id)


async def is_ahead(repository: GitRepository, root: Path, branch: str, sha: str) -> bool:
    """Return whether a branch has work that a commit lacks, also as a squash; a deleted branch has none."""
    said = await repository.git.run(
        "for-each-ref",
        f"--no-merged={sha}",
        "--format=%(objectname)",
        f"refs/heads/{branch}",
        env=user_env(),
        cwd=root,
    )
    return bool(said.text) and not await repository.proven(said.text, sha)


def _landed(tx: Tx, asked: Submission) -> tuple[Plan | None, int]:
    """Return the last plan of a source, and how many tasks it landed that are not merged, as a squash or otherwise."""
    plan = last_plan(tx, asked)
    if plan is None or plan.status not in ENDED_PLAN:
        return None, 0  # a running plan is refused for that reason
    tasks = tx.find(Task, plan_id=plan.id, status=TaskState.COMPLETE)
    # A pull request is not a merge yet.
    ends = [
        one for one in tx.find(Finish, plan_id=plan.id, state=FinishState.FINISHED) if one.how != PULL_REQUEST
    ]
    if any(not one.tasks for one in ends):
        return plan, 0
    taken = {task_id for one in ends for task_id in one.tasks}
    return plan, sum(task.landed_sha is not None and task.id not in taken for task in tasks)

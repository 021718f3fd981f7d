"""`take-over`, `hand-back` and `reviewed`: a person does a task by hand, or looks at what landed."""

import asyncio
import os
import re
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from loopwright.adapters.git.checkout.handover import Hands
from loopwright.app import Home, repositories
from loopwright.cli.commands.decide.control import (
    ask,
    control,
    find_target,
    let_agents_stop,
    someone_works,
    work_here,
)
from loopwright.cli.foreground import is_worked_on
from loopwright.cli.screens.command_effects import print_effect
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.rows.model import Attempt, Command, Loop, Plan, Project, Task
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.failures import RULES, Level
from loopwright.core.values.shell_hints import to_type
from loopwright.core.values.states import LIVE_ATTEMPT, AttemptState, LoopState
from loopwright.core.values.wording import counted
from loopwright.engine.branch.branch import stands
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.ref_names import attempt_ref, commit_subject, hand_branch
from loopwright.ports import Repository, Tx
from loopwright.services.homes.context import look_settings, open_existing
from loopwright.services.homes.log import log_to

_NAMED = 5


def take_over(task: str, directory: Path | None = None, /, *, json: bool = False) -> int:
    """Do a task yourself: you get a checkout with the last work on it, and the machine leaves it alone.

    Parameters
    ----------
    task
        Which task.
    directory
        Where (default: beside the repository, named after the task).
    json
        Print the answer as JSON.
    """
    return asyncio.run(_take_over(task, directory, as_json=json))


def hand_back(
    task: str,
    /,
    *,
    include_uncommitted: Annotated[bool, Parameter(help="Take what is in no commit as well.")] = False,
    drop: bool = False,
    json: bool = False,
) -> int:
    """Send what you did through the same checks as an agent's work; it lands, or stays with you.

    Parameters
    ----------
    task
        Which task.
    drop
        Let the machine do it after all; your checkout stays as it is.
    json
        Print the answer as JSON.
    """
    if drop:
        return asyncio.run(control("hand_back", task, {"drop": True}, as_json=json))
    return asyncio.run(_hand_back(task, include=include_uncommitted, as_json=json))


def reviewed(target: str, /, *, json: bool = False) -> int:
    """Say that you have looked at what a task, or every task of a plan, landed.

    Parameters
    ----------
    target
        A task or a plan.
    json
        Print the answer as JSON.
    """
    return asyncio.run(control("reviewed", target, {}, as_json=json))


async def _take_over(text: str, directory: Path | None, *, as_json: bool) -> int:
    settings = look_settings()
    home = open_existing(settings)
    log_to(home.root)
    try:
        task, plan, project = await home.store.read(lambda tx: _rows(tx, text, "take-over"))
        where = (directory or _beside(project, task)).resolve()
        if not task.taken_by and where.exists() and (not where.is_dir() or any(where.iterdir())):
            raise Refused(f"{where} holds other files", hint="name a DIR that is not there yet")
        wanted = "" if task.taken_by and directory is None else str(where)
        answer = await ask(home, "take_over", task.id, {"directory": wanted})
        if not await someone_works(home):
            await let_agents_stop(home, settings)
        last = await _until_ended(home, task)
        task = await home.store.read(lambda tx: need(tx.get(Task, task.id), "the task"))
        repository = repositories(home)(project)
        by_hand = await repository.by_hand()
        tip = (await stands(home.store, repository, plan)).tip
        start = await by_hand.start(
            last.tip_sha if last else None,
            base=last.base_sha if last else None,
            tip=tip,
            subject=commit_subject(task),
            at=task.created_at,
        )
        await by_hand.hand_out(Path(task.taken_dir), hand_branch(plan, task), start)
        if as_json:
            told = {"directory": task.taken_dir, "branch": hand_branch(plan, task), "start": start}
            print_json({"command": answer, **told, "exit_code": 0})
            return ExitCode.VERIFIED
        out = console()
        out.print(escape(answer.result))
        print_effect("take-over")
        out.print(f"work here:  cd {escape(shlex.quote(task.taken_dir))}")
        out.print(
            f"[dim]it starts from {'attempt ' + str(last.n) if last else 'the plan branch'} ({start[:7]})[/]"
        )
        out.print(f"then:       {escape(to_type('hand-back', task.key))}")
        return ExitCode.VERIFIED
    finally:
        await home.store.close()


def _rows(tx: Tx, text: str, verb: str) -> tuple[Task, Plan, Project]:
    row = find_target(tx, text, verb)
    if not isinstance(row, Task):
        raise NotFound(f"{text} is a plan", hint="name a task")
    plan = need(tx.get(Plan, row.plan_id), "the plan")
    return row, plan, need(tx.get(Project, plan.project_id), "the project")


def _beside(project: Project, task: Task) -> Path:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", task.key).strip("-.") or task.id
    root = Path(project.path)
    return root.parent / f"{root.name}.{name}"


async def _until_ended(home: Home, task: Task) -> Attempt | None:
    """Wait until the machine has let go of the task, and return the last attempt that left work, if any."""
    while True:
        attempts = await home.store.read(lambda tx: tx.find(Attempt, task_id=task.id, order_by=("-n",)))
        if not any(one.state in LIVE_ATTEMPT - {AttemptState.QUEUED} for one in attempts):
            return next((one for one in attempts if one.tip_sha), None)
        await home.store.changed(1.0)


async def _hand_back(text: str, *, include: bool, as_json: bool) -> int:
    settings = look_settings()
    home = open_existing(settings)
    log_to(home.root)
    try:
        task, plan, project = await home.store.read(lambda tx: _rows(tx, text, "hand-back"))
        if not task.taken_by:
            raise Refused(
                f"nobody has taken {task.key} over", hint=f"`{to_type('take-over', task.key)}` does"
            )
        repository = repositories(home)(project)
        by_hand = await repository.by_hand()
        where = Path(task.taken_dir)
        hands = await by_hand.look(where, hand_branch(plan, task))
        if hands.uncommitted and not include and not _agreed(hands, where):
            console().print("nothing was handed back")
            return ExitCode.UNFINISHED
        attempt: Attempt = await home.store.read(
            lambda tx: need(tx.get(Attempt, task.attempt_id or ""), "the attempt")
        )
        if not hands.uncommitted:
            await _refuse_unchanged(home, repository, task, attempt, hands.head)
        tip = (await stands(home.store, repository, plan)).tip
        sha = await by_hand.take_in(
            where, hands, ref=attempt_ref(attempt), subject=commit_subject(task), at=datetime.now(UTC)
        )
        told = {"tip_sha": sha, "base_sha": await by_hand.base_of(sha, tip)}
        answer = await ask(home, "hand_back", task.id, told)
        if not as_json:
            console().print(escape(answer.result))
            print_effect("hand-back")
        if not await is_worked_on(home, plan.project_id):
            await work_here(home, settings, plan, quiet=as_json)
        code = await _told(home, answer, attempt.id, task, as_json=as_json)
        if code is ExitCode.VERIFIED and not as_json:
            left = await by_hand.look(where, hand_branch(plan, task)) if (where / ".git").exists() else None
            console().print(f"landed.{escape(_how_to_delete(where, left))}")
            await _close(home, plan.id)
        return code
    finally:
        await home.store.close()


async def _refuse_unchanged(
    home: Home, repository: Repository, task: Task, attempt: Attempt, sha: str
) -> None:
    """Refuse work that is what it was when the task was taken over, if that was judged and is not on the branch."""
    tried = await home.store.read(lambda tx: tx.find(Attempt, task_id=task.id, order_by=("-n",)))
    last = next((one for one in tried if one.tip_sha and one.n < attempt.n), None)
    if last is None or last.tip_sha is None:
        return
    counted = last.failure is not None and RULES[last.failure].level is Level.ATTEMPT
    if last.state is not AttemptState.LANDED and not counted:
        return
    if await repository.tree_of(sha) == await repository.tree_of(last.tip_sha):
        became = (
            "was taken back"
            if last.state is AttemptState.LANDED
            else f"did not pass: {last.detail.partition(chr(10))[0]}"
        )
        raise Refused(
            f"nothing changed since you took it over: it is what attempt {last.n} left, which {became}",
            hint=f"change it in {task.taken_dir}, or `{to_type('hand-back', task.key, drop=True)}`",
        )


def _agreed(hands: Hands, where: Path) -> bool:
    """Ask the person at the terminal whether to take what is in no commit."""
    more = f" and {len(hands.uncommitted) - _NAMED} more" if len(hands.uncommitted) > _NAMED else ""
    named = ", ".join(hands.uncommitted[:_NAMED]) + more
    if not (sys.stdin.isatty() and os.isatty(1)):
        raise Refused(
            f"{where} has changes that are in no commit: {named}",
            hint="commit them, or --include-uncommitted takes them as they are",
        )
    console().print(f"In no commit: {escape(named)}")
    return input("Hand that back as well? [y/N] ").strip().lower() in ("y", "yes")


def _how_to_delete(where: Path, left: Hands | None) -> str:
    """Return the command that deletes a checkout; git wants --force for one with files that are in no commit."""
    if left is None:
        return ""
    remove = f"git worktree remove {'--force ' * bool(left.uncommitted)}{shlex.quote(str(where))}"
    files = counted(len(left.uncommitted), "file")
    more = f", with {files} that its branch does not have" if left.uncommitted else ""
    return f" Your checkout stays; `{remove}` deletes it{more}"


async def _close(home: Home, plan_id: str) -> None:
    """End like `run` where the work that landed was the last that its plan waited for."""
    from loopwright.cli.screens.end import closing
    from loopwright.cli.screens.source_news import view_with_news

    view = await view_with_news(home, plan_id)
    if view.loop_state != LoopState.RUNNING.value:
        closing(view, as_json=False)


async def _told(home: Home, answer: Command, attempt_id: str, task: Task, *, as_json: bool) -> ExitCode:
    """Wait for what the checks say, and tell it; the exit code says whether the work landed."""

    def look(tx: Tx) -> tuple[Attempt, bool]:
        attempt = need(tx.get(Attempt, attempt_id), "the attempt")
        plan = need(tx.get(Plan, attempt.plan_id), "the plan")
        loop = need(tx.get(Loop, plan.loop_id), "the loop")
        return attempt, attempt.state in LIVE_ATTEMPT and loop.state is LoopState.RUNNING

    attempt, goes_on = await home.store.read(look)
    while goes_on:
        await home.store.changed(1.0)
        attempt, goes_on = await home.store.read(look)
    landed = attempt.state is AttemptState.LANDED
    waits = attempt.state in LIVE_ATTEMPT
    code = ExitCode.VERIFIED if landed else ExitCode.UNFINISHED if waits else ExitCode.NOT_VERIFIED
    if as_json:
        facts = {"attempt": attempt.n, "state": attempt.state.value, "detail": attempt.detail}
        print_json({"command": answer, **facts, "exit_code": int(code)})
        return code
    out = console()
    if not landed and not waits:
        out.print(f"not accepted: {escape(attempt.detail)}")
        out.print(
            f"it is still yours, in {escape(task.taken_dir)}; more: {escape(to_type('show', task.key))}"
        )
    return code

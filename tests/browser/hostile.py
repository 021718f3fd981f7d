"""A home in which every text was written by an enemy: rows, a recording, and a repository with its changes."""

import os
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tests.acceptance.orchestrator.bundle import files
from tests.contracts.store import rows
from tests.integration.server.api import Api

from loopwright.core.rows.events import Event
from loopwright.core.rows.healing_rows import Healing
from loopwright.core.rows.lesson_rows import Lesson
from loopwright.core.rows.model import Plan, Project, Role, Run, Task, Usage
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.rows.webhook_rows import DeadLetter, Webhook
from loopwright.core.values.findings import Check, CheckStatus, Verdict, VerdictStatus
from loopwright.core.values.healing import Cause, HealStep
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import AttemptState, LessonState, LoopState, PlanState, RunState, TaskState
from loopwright.keeper import places

SCRIPT: Final = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"
UNSEEN: Final = "\u202egnp.exe\u202c \u200b\u2066\ufeff"
CODES: Final = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x07\x08"
LONG: Final = "W" * 600
HOSTILE: Final = f"'\"><b>{{{{7*7}}}} {SCRIPT} {CODES}{UNSEEN}"
"""In a name or a sentence; with `LONG`, where nothing can be broken into lines."""
NOW: Final = datetime.now(UTC)


def furnish(api: Api, place: Path) -> dict[str, str]:
    """Fill a home, and return where its pages are by their names."""
    repository, base, tip = _repository(place / "repository")
    project = rows.project(name=f"shop {HOSTILE}", path=str(repository), created_at=NOW)
    made: list[Any] = [project]
    pages = {"project": f"/projects/{project.id}"}
    states = (
        (PlanState.RUNNING, LoopState.RUNNING, TaskState.AWAITING_RESPONSE),
        (PlanState.FAILED, LoopState.FAILED, TaskState.ERROR),
        (PlanState.VERIFIED, LoopState.COMPLETED, TaskState.COMPLETE),
        (PlanState.DRAFT, LoopState.IDLE, TaskState.QUEUED),
    )
    for status, loop_state, task_state in states:
        found = _plan(project, status, loop_state, task_state, base, tip)
        made += found
        plan = next(one for one in found if isinstance(one, Plan))
        task = next(one for one in found if isinstance(one, Task))
        pages[f"plan {status.value}"] = f"/plans/{plan.id}"
        pages[f"task {status.value}"] = f"/plans/{plan.id}/tasks/{task.id}"
        for run in (one for one in found if isinstance(one, Run)):
            pages[f"{run.role} {status.value}"] = f"/runs/{run.id}"
            _record(api.home / "runs" / run.id, run)

    made.append(
        Lesson(
            id=rows.new_id(Kind.LESSON),
            project_id=project.id,
            state=LessonState.PROPOSED,
            text=HOSTILE + LONG,
            files=(HOSTILE,),
            proposed_by=HOSTILE,
            created_at=NOW,
        )
    )

    rounds = rows.loop(project, source_kind="orchestrator", source_path="orchestrator", created_at=NOW)
    webhook = Webhook(
        id=rows.new_id(Kind.WEBHOOK),
        url=f"https://example.com/{HOSTILE}{LONG}",
        secret="s",
        cursor=0,
        failures=3,
        error=HOSTILE + LONG,
        off_at=NOW,
        created_by=HOSTILE,
        created_at=NOW - timedelta(days=1),
    )
    letter = DeadLetter(
        id="letter", webhook_id=webhook.id, n=1, type="plan_failed", error=HOSTILE, failures=9, died_at=NOW
    )
    made += [rounds, webhook, letter]
    pages |= {"rounds": f"/loops/{rounds.id}/rounds", "webhook": f"/webhooks/{webhook.id}"}
    _rounds(repository)

    def insert(tx: Any) -> None:
        for row in made:
            tx.insert(row)
        for plan in (one for one in made if isinstance(one, Plan)):
            for n in range(3):
                tx.append(
                    Event(
                        type="task_started",
                        actor=f"actor {HOSTILE}",
                        project=project.id,
                        plan=plan.id,
                        loop=plan.loop_id,
                        payload={"reason": HOSTILE, "n": n},
                    )
                )

    api.write(insert)
    return pages


def _plan(
    project: Project, status: PlanState, loop_state: LoopState, task_state: TaskState, base: str, tip: str
) -> list[Any]:
    loop = rows.loop(
        project,
        name=f"loop {HOSTILE}{LONG}",
        state=loop_state,
        reason=HOSTILE if loop_state is LoopState.FAILED else "",
        created_at=NOW,
        updated_at=NOW,
    )
    verdict = Verdict(
        status=VerdictStatus.FAILED,
        checks=(Check(id="1", name=f"check {HOSTILE}", status=CheckStatus.FAILED, message=HOSTILE + LONG),),
        reason=HOSTILE,
    )
    plan = rows.plan(
        loop,
        title=f"plan {HOSTILE}{LONG}",
        status=status,
        reason=f"because {HOSTILE}{LONG}",
        base_sha=base,
        result_sha=tip,
        verdict=verdict,
        created_at=NOW - timedelta(minutes=9),
        updated_at=NOW,
        executed_at=NOW - timedelta(minutes=8),
        spent_micros=1_234_567,
    )
    first = rows.task(plan, key="base", title="Base", status=TaskState.COMPLETE, landed_sha=tip)
    task = rows.task(
        plan,
        key=f"key{HOSTILE}",
        title=f"title {HOSTILE}{LONG}",
        description=HOSTILE + LONG,
        criteria=(HOSTILE,),
        depends_on=(first.id,),
        position=1,
        status=task_state,
        reason=HOSTILE,
        landed_sha=tip if task_state is TaskState.COMPLETE else None,
    )
    attempt = rows.attempt(
        task,
        agent="scripted",
        model=HOSTILE,
        state=AttemptState.LANDED if task_state is TaskState.COMPLETE else AttemptState.REJECTED,
        detail=HOSTILE + LONG,
        base_sha=base,
        tip_sha=tip,
        created_at=NOW - timedelta(minutes=7),
        updated_at=NOW,
    )
    runs = [
        Run(
            id=rows.new_id(Kind.RUN),
            plan_id=plan.id,
            task_id=task.id,
            attempt_id=attempt.id,
            role=role,
            state=RunState.COMPLETE,
            agent=agent,
            model=HOSTILE if agent else None,
            summary=HOSTILE + LONG,
            usage=Usage(input_tokens=12_345, output_tokens=678) if agent else None,
            cost_micros=450_000 if agent else None,
            verdict=None if agent else verdict,
            created_at=NOW - timedelta(minutes=7),
            started_at=NOW - timedelta(minutes=6),
            ended_at=NOW - timedelta(minutes=2),
        )
        for role, agent in ((Role.IMPLEMENTER, "scripted"), (Role.GATE, None))
    ]
    attempt = replace(attempt, run_id=runs[0].id)
    question = Question(
        id=rows.new_id(Kind.QUESTION),
        project_id=project.id,
        loop_id=loop.id,
        plan_id=plan.id,
        task_id=task.id,
        run_id=runs[0].id,
        kind="choice",
        key=status.value,
        text=f"question {HOSTILE}{LONG}",
        options=(f"yes {HOSTILE}", "no"),
        default=f"yes {HOSTILE}",
        asked_by=(attempt.id,),
        deadline=NOW + timedelta(hours=1),
        created_at=NOW,
    )
    healing = Healing(
        id=rows.new_id(Kind.HEALING),
        project_id=project.id,
        plan_id=plan.id,
        task_id=task.id,
        n=1,
        step=HealStep.RESTATE,
        cause=Cause.UNCLEAR,
        signature="s",
        because=HOSTILE + LONG,
        attempt_id=attempt.id,
        created_at=NOW,
    )
    found = [loop, plan, first, replace(task, attempt_id=attempt.id), attempt, *runs, healing]
    return [*found, question] if task_state is TaskState.AWAITING_RESPONSE else found


def _rounds(repository: Path) -> None:
    error = f"{HOSTILE}{LONG}"
    for path, text in files(2, resume_errors={"controller": error}).items():
        place = repository / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    record = repository / "orchestrator/rounds/round-001/plan.md"
    record.parent.mkdir(parents=True)
    record.write_text(f"{HOSTILE}{LONG}")


def _repository(path: Path) -> tuple[Path, str, str]:
    path.mkdir()

    def git(*arguments: str) -> str:
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        named = ("-c", "user.name=x", "-c", "user.email=x@example.invalid", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *named, *arguments], cwd=path, env=env, check=True, capture_output=True)
        return done.stdout.decode().strip()

    git("init", "-q", "-b", "main")
    (path / "a.py").write_text("def f():\n    return 1\n")
    git("add", "-A")
    git("commit", "-qm", "base")
    base = git("rev-parse", "HEAD")
    (path / "a.py").write_text(f"def f():\n    return 2  # {SCRIPT} {CODES}{UNSEEN}\n{LONG}\n")
    (path / "<img src=x onerror=alert(1)>\u202egnp.py").write_text(f"x = '{SCRIPT}'\n")
    (path / "page.html").write_text(f"{SCRIPT}\n{'y' * 5_000}\n")
    git("add", "-A")
    git("commit", "-qm", "change")
    return path, base, git("rev-parse", "HEAD")


def _record(directory: Path, run: Run) -> None:
    (directory / places.OUTPUT).mkdir(parents=True)
    (directory / "prompt.md").write_text(f"prompt {HOSTILE}{LONG}", encoding="utf-8")
    if run.agent is None:
        lines = [f"line {HOSTILE}", "<plaintext>", "z" * 200_000, "\x00\x1b[2J\x9b31m"]
    else:
        import json

        lines = [
            json.dumps(one)
            for one in (
                {"event": "text", "text": HOSTILE + LONG},
                {"event": "tool_start", "name": f"shell{SCRIPT}", "input": HOSTILE},
                {"event": "tool_end", "name": f"shell{SCRIPT}", "ok": False, "output": HOSTILE + LONG},
                {"event": "file", "path": f"{SCRIPT}{UNSEEN}.py", "change": "changed"},
                {"event": "text", "text": "W" * 200_000},
            )
        ]
    data = "".join(f"o {one}\n" for one in lines).encode()
    (directory / places.OUTPUT / places.segment_name(0)).write_bytes(data)

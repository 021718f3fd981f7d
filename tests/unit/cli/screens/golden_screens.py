"""Screens as an 80-column terminal shows them: run this file to write the golden ones, the tests compare them.

`python -m tests.unit.cli.screens.golden_screens` writes what the screens are now; look at the difference first.
"""

import io
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.contracts.store import rows

from loopwright.cli.commands.maintain.doctor import report
from loopwright.cli.commands.watch.quota import print_account
from loopwright.cli.commands.watch.stats import print_figures
from loopwright.cli.screens.advice import print_steps
from loopwright.cli.screens.plan_details import print_details
from loopwright.cli.screens.plan_table import screen
from loopwright.cli.screens.question import picture
from loopwright.cli.screens.task_screen import Names, print_lines, task_screen
from loopwright.cli.shell.command_table import build
from loopwright.cli.shell.output import SafeConsole, paragraph
from loopwright.core.rows.waiting_rows import Envelope, QuotaKind, QuotaWindow
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Check, CheckStatus, CommandResult
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import EnvelopeState
from loopwright.core.values.wording import command
from loopwright.engine.views.metrics import Figures, PlanFigures
from loopwright.engine.views.next_steps import Step
from loopwright.engine.views.question_views import QuestionView
from loopwright.engine.views.views import AttemptView, PlanView, TaskDetail, TaskView
from loopwright.services.doctor.checkup_machine import Finding, Status
from loopwright.services.views.changes import Change

GOLDEN = Path(__file__).parents[3] / "data" / "screens"
AT = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)
WIDE = 400


def task(key: str, title: str, status: str, **more: object) -> TaskView:
    usual = TaskView(
        id=f"task_{key}", key=key, title=title, status=status, origin="", stage=status, outcome=None, agent="claude",
        attempt=1, attempts_used=0, max_attempts=3, elapsed_s=None, cost_micros=None, cost_estimated=False,
        checks_passed=0, checks_total=0, commit=None, doing="", reason="",
    )  # fmt: skip
    return replace(usual, **more)  # type: ignore[arg-type]


TASKS = (
    task("limiter", "Add a token bucket", "COMPLETE", outcome="verified", elapsed_s=312, cost_micros=410_000,
         checks_passed=12, checks_total=12, review="CLEAR", commit="1a2b3c4d5e"),
    task("middleware", "Use the bucket in every endpoint of the partner API", "RUNNING", stage="WORKING", attempt=2,
         attempts_used=1, elapsed_s=3_725, cost_micros=1_250_000,
         doing="runs pytest -q tests/test_partners.py tests/test_limits.py"),
    task("settings", "Make the limit a setting", "AWAITING_RESPONSE", elapsed_s=48, cost_micros=90_000,
         cost_estimated=True, doing="Should the limit be per partner or per key?"),
    task("metrics", "Count refused requests", "ERROR", elapsed_s=95, failure="gate",
         reason="tests/test_metrics.py::test_refused_requests_are_counted failed: expected 3, got 0"),
    task("quota", "Wait for the account", "RUNNING", stage="WAITING", elapsed_s=5,
         doing="parked until 2026-03-01 23:45:00 UTC: the account is used up"),
    task("docs", "Document the limit", "QUEUED", doing="waits for middleware, settings"),
)  # fmt: skip
QUESTION = QuestionView(
    id="ask_01jq8s6c7d", kind="question", key="", state="OPEN", plan_id="plan_01jq8s", tasks=("settings",),
    text="Should the limit be per partner or per key?", options=("per partner", "per key"), default="per partner",
    answer=None, asked_at=AT, deadline=AT, holds_for="", answered_by="", project="shop",
)  # fmt: skip
PLAN = PlanView(
    id="plan_01jq8s6c7d8e9f", title="Rate limiting for the API", status="RUNNING", state="RUNNING",
    loop_id="loop_1", loop_name="plan.yaml", loop_state="RUNNING", taken="", project="shop", path="/code/shop",
    branch="loopwright/rate-limiting-01jq8s6c", base_ref="main", base_sha="9f8e7d6c5b", result_sha=None, outcome=None,
    reason="", tasks=TASKS, done=1, total=6, gate_passed=0, gate_total=0, cost_micros=1_750_000, cost_complete=False,
    cost_estimated=True, elapsed_s=4_037, created_at=AT, evaluation={"critical_path": 3}, questions=(QUESTION,),
)  # fmt: skip
FINDINGS = [
    Finding(name="git", status=Status.OK, text="git version 2.50.0"),
    Finding(name="sandbox", status=Status.WARN, text="agents run as you, in no sandbox: 'bwrap' was not found",
            fix="install the package bubblewrap, or set sandbox.program to where a bwrap is"),
    Finding(name="agent codex", status=Status.ABSENT, text="the program 'codex' was not found"),
    Finding(name="agent claude", status=Status.FAIL, text="the program 'claude' was not found; it is the agent in use",
            fix="install Claude Code (https://code.claude.com/docs), or set agents.claude.binary to where it is"),
    Finding(name="agent goose", status=Status.ABSENT, text="the program 'goose' was not found"),
    Finding(name="backups", status=Status.OK, text="3 backups of the database, the last of 2026-03-01 22:30 UTC"),
]  # fmt: skip
STEPS = [
    Step(command=command("status", "metrics"), why="what failed, and what to do about it"),
    Step(command=command("watch", "01jq8s6c"), why="follow it live"),
]
ERROR = (
    "[bold red]error[/]: the worker did not respond to `retry` within 60 s: process 4711 on build-machine-7 holds the "
    "home and does not answer"
)


def _status(out: SafeConsole) -> None:
    out.print(screen(PLAN))
    print_steps(out, STEPS)


def _error(out: SafeConsole) -> None:
    out.print(paragraph(ERROR))
    out.print(paragraph("[bold]to do[/]: is it running? Try `loopwright status`."))


def _task(out: SafeConsole) -> None:
    checks = (
        Check(
            id="1",
            name="tests/test_metrics.py::test_refused",
            status=CheckStatus.FAILED,
            message="expected 3, got 0",
        ),
        Check(id="2", name="lint", status=CheckStatus.PASSED),
    )
    tail = "E   assert 0 == 3\ntests/test_metrics.py:12: AssertionError\n1 failed in 0.31s"
    failed = CommandResult(
        name="tests",
        command="pytest -q",
        exit_code=1,
        duration_s=2.5,
        output_sha256="0" * 64,
        output_bytes=9,
        tail=tail,
    )
    attempt = AttemptView(
        id="att_1", n=1, state="REJECTED", agent="claude", model="opus", drew=("claude opus",), stands_in="",
        failure="gate", advice="", detail="pytest -q failed", ref="refs/loopwright/att_1", tip_sha="2" * 40,
        base_sha="1" * 40, workspace=None, run_ids=("run_1",), failing_checks=checks[:1], lasted_s=95.0,
        cost_micros=None, cost_estimated=False, summary="I count refused requests now.", commands=(failed,),
        checks=checks,
    )  # fmt: skip
    detail = TaskDetail(
        task=TASKS[3], plan_id=PLAN.id, plan_title=PLAN.title, description="Count every request that is refused.",
        criteria=("The counter has a label for the partner.",), expected=("pytest -q", "ruff check ."),
        attempts=(attempt,), note="", plan_branch=PLAN.branch, path=PLAN.path,
        commands=(GateCommand(name="tests", command="pytest -q"), GateCommand(name="lint", command="ruff check .")),
    )  # fmt: skip
    change = Change(files=("shop/metrics.py", "tests/test_metrics.py"), insertions=31, deletions=4)
    lines, steps = task_screen(detail, {1: change}, names=Names(handle="metrics"), height=40)
    print_lines(out, lines)
    print_steps(out, steps)


def _plan_details(out: SafeConsole) -> None:
    row = rows.plan(
        rows.loop(rows.project()),
        created_at=AT,
        verified_at=AT,
        result_sha="3" * 40,
        gates=(GateCommand(name="tests", command="pytest -q"),),
    )
    print_details(out, row, PLAN)


def _stats(out: SafeConsole) -> None:
    figures = Figures(
        tasks=6, completed=5, attempts=9, begun=9, retries=4, first_pass=3, first_pass_rate=0.5, agent_runs=9,
        agent_seconds=4_100, gate_runs=14, gate_seconds=320, cost_micros=1_750_000, unknown_costs=1,
    )  # fmt: skip
    plan = PlanFigures(
        plan_id=PLAN.id, loop_id="loop_1", loop="shop/plan.yaml", title=PLAN.title, status="RUNNING",
        state="NEEDS_YOU", outcome=None, loop_state="PAUSED", started_at=AT, ended_at=None, wall_seconds=None,
        figures=figures,
    )  # fmt: skip
    print_figures(out, [plan], "plan", [plan], figures)


def _quota(out: SafeConsole) -> None:
    window = QuotaWindow(name="five_hour", kind=QuotaKind.SUBSCRIPTION, used=1.0, resets_at=AT, rejected=True)
    account = Envelope(
        id="claude/default", agent="claude", state=EnvelopeState.CLOSED, failure=Failure.USAGE_LIMIT,
        reason="You have reached your usage limit", until=AT, windows=(window,), runs=7, created_at=AT, updated_at=AT,
    )  # fmt: skip
    print_account(out, account)


def _help(out: SafeConsole) -> None:
    os.environ["COLUMNS"] = str(out.width)
    with redirect_stdout(out.file):
        build().help_print([])


SCREENS: dict[str, Callable[[SafeConsole], None]] = {
    "status": _status,
    "watch": lambda out: out.print(screen(PLAN, limit=20, footer="q quits; the plan continues.", live=True)),
    "cost_unknown": lambda out: out.print(
        screen(replace(PLAN, tasks=TASKS[:1], questions=(), cost_micros=None))
    ),
    "task": _task,
    "plan_details": _plan_details,
    "stats": _stats,
    "quota": _quota,
    "question": lambda out: out.print(picture(QUESTION, whole=True)),
    "doctor": lambda out: out.print(report(FINDINGS)),
    "error": _error,
    "help": _help,
}


@contextmanager
def in_berlin() -> Iterator[None]:
    """Put this process on a clock one hour ahead of UTC: what is shown in UTC by mistake is seen."""
    before = {name: os.environ.get(name) for name in ("TZ", "COLUMNS")}
    os.environ["TZ"] = "CET-1"
    time.tzset()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        time.tzset()


def shown(name: str, width: int = 80) -> str:
    """Return a screen as a terminal of this width shows it, without colours."""
    file = io.StringIO()
    out = SafeConsole(
        file=file, width=width, height=40, force_terminal=True, no_color=True, highlight=False, soft_wrap=True
    )
    with in_berlin():
        SCREENS[name](out)
    return re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for one in SCREENS:
        (GOLDEN / f"{one}.txt").write_text(shown(one))

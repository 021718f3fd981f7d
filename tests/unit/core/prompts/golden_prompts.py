"""Each prompt with realistic values: run this file to write the golden ones, the tests compare them."""

from dataclasses import replace
from pathlib import Path

from tests.contracts.store import rows

from loopwright.core.healing.diagnosis import Seen, diagnose
from loopwright.core.healing.earlier_tries import Try
from loopwright.core.plans import planning
from loopwright.core.plans.plan_evaluators import FENCE as EVALUATION
from loopwright.core.plans.plan_evaluators import FILE as EVALUATION_FILE
from loopwright.core.plans.plan_evaluators import SCHEMA as EVALUATION_SCHEMA
from loopwright.core.plans.plan_evaluators import instructions as evaluation
from loopwright.core.prompts.prompts import (
    answering,
    areas_of,
    implementer,
    investigator,
    look_prompt,
    reviewer,
)
from loopwright.core.replies import doc_sync, qa
from loopwright.core.replies.doc_sync import DocSync
from loopwright.core.replies.reviews import Finding, Severity
from loopwright.core.rows.model import Review
from loopwright.core.values.failures import Failure
from loopwright.core.values.healing import HealStep
from loopwright.core.values.patches import read_patch
from loopwright.core.values.policy import Answering, ExecutionEvaluation, GateCommand, Policy, RoundsPolicy
from loopwright.ports import PlannedTask
from loopwright.prompts import packaged

GOLDEN = Path(__file__).parents[3] / "data" / "prompts"

GATES = (GateCommand(name="tests", command="pytest -q"), GateCommand(name="lint", command="ruff check ."))
PLAN = rows.plan(
    rows.loop(rows.project()),
    title="Rate limiting",
    context="The shop's API is used by partners.\nThey must not slow each other down.",
    policy=Policy(business_docs=True, business_documents=("docs/product.md: tiers",)),
)
TASK = rows.task(
    PLAN,
    key="limiter",
    title="Limit requests per partner",
    description="Refuse more than 100 requests per minute with status 429.\n\nUse `shop/clock.py` for the time.",
    criteria=("The limit is a setting.", "Other partners are not affected."),
    acceptance=(GateCommand(name="limits", command="pytest -q tests/test_limits.py"),),
    section="## Phase 2: Limits (FR-004)\n\nPartners share one process, so each has its own budget.",
    scope=("shop/limits.py", "tests/test_limits.py"),
    approved=("tests/test_api.py",),
    prove=True,
)
FIRST = rows.attempt(TASK)
SECOND = rows.attempt(
    TASK,
    n=2,
    evidence="tests failed:\nE   assert 200 == 429",
    note="Keep the limiter in one module.",
)
DOCUMENTS = {
    "specs/limits/spec.md": "# Limits\n\n## Requirements\n\n- FR-004: refuse more than 100 requests per minute "
    "and partner with status 429.\n\nNothing else matters here.\n",
    "specs/limits/design.md": "# Design\n\nColours are chosen by the brand team.\n",
}
ANSWERS = (("Per partner or per key?", "Per partner."),)
FINDING = Finding(
    file="shop/limits.py", line=3, severity=Severity.BLOCKING, text="The 101st request passes.", in_diff=True
)
DIFF = b"""\
diff --git a/shop/limits.py b/shop/limits.py
index 1..2 100644
--- a/shop/limits.py
+++ b/shop/limits.py
@@ -1,2 +1,2 @@
 def allowed(count):
-    return True
+    return count <= 100
"""
REVIEW = Review(
    id="review_1",
    plan_id=PLAN.id,
    task_id=TASK.id,
    attempt_id=FIRST.id,
    n=1,
    run_id="run_1",
    agent="claude",
    parent_sha="1" * 40,
    candidate_sha="2" * 40,
    patch_sha256="3" * 64,
    reasons=("every change is reviewed",),
    contradicted=("tests/test_api.py::test_no_limit",),
    created_at=FIRST.created_at,
)


def prompts() -> dict[str, str]:
    """Return each prompt by the name of its golden file."""
    return {
        "implementer-first": _first(),
        "implementer-again": _again(),
        "implementer-round": _round(),
        "reviewer-first": _review(goes_on=False),
        "reviewer-again": _review(goes_on=True),
        "qa": _qa(),
        "execution-evaluator": _execution(),
        "planner": _planner(),
        "plan-evaluator": _evaluator(),
        "investigator": _investigator(),
        "documents": _documents(),
        "probe": packaged("parts/probe").fill({}),
    }


def _investigator() -> str:
    tries = (
        Try(
            n=1,
            agent="claude",
            failure=Failure.TURNS,
            touched=("shop/limits.py",),
            found="It used its turns.",
        ),
    )
    found = diagnose([Seen(tried=one) for one in tries], name="limits", title=TASK.title)
    attempt = rows.attempt(TASK, n=2, evidence="It used its turns.", healing=HealStep.SPLIT)
    return investigator(
        packaged("investigator"),
        PLAN,
        TASK,
        attempt,
        gates=GATES,
        diagnosis=found,
        tries=tries,
        resumed=False,
        by_schema=False,
    )


def _first() -> str:
    bare = rows.task(PLAN, key="readme", title="Describe the limiter")
    plan = rows.plan(rows.loop(rows.project()), title="Rate limiting")
    return implementer(
        packaged("implementer"), plan, bare, rows.attempt(bare), gates=GATES, asks_by_tool=True
    )


def _again() -> str:
    return implementer(
        packaged("implementer"),
        PLAN,
        TASK,
        SECOND,
        gates=GATES,
        resumed=True,
        answers=ANSWERS,
        findings=[FINDING],
        contradicted=["tests/test_api.py::test_no_limit"],
        documents=DOCUMENTS,
        tries=(
            Try(
                n=1,
                agent="scripted",
                failure=Failure.GATE,
                touched=("shop/limits.py",),
                said="Counted requests by key.",
                found=SECOND.evidence,
            ),
        ),
    )


def _round() -> str:
    plan = rows.plan(rows.loop(rows.project()), title="Tidy up", policy=Policy(rounds=RoundsPolicy(on=True)))
    task = rows.task(plan, key="prompt", title="Tidy up", description="Remove dead code.", type="bug")
    attempt = rows.attempt(task, n=2, evidence="lint failed")
    return implementer(packaged("implementer"), plan, task, attempt, gates=())


def _review(*, goes_on: bool) -> str:
    return reviewer(
        packaged("reviewer"),
        PLAN,
        TASK,
        FIRST,
        REVIEW,
        read_patch(DIFF.splitlines(keepends=True)),
        gates=GATES,
        by_schema=goes_on,
        goes_on=goes_on,
    )


def _qa() -> str:
    task = rows.task(
        PLAN, key="qa-1", title="Try the API", description="Call it as a partner does.", type=qa.TYPE
    )
    return look_prompt(
        packaged("qa"),
        PLAN,
        task,
        rows.attempt(task),
        gates=GATES,
        resumed=False,
        answers=(),
        asks_by_tool=False,
        by_schema=False,
    )


def _execution() -> str:
    evaluation = ExecutionEvaluation(evaluators=(qa.CODE_QUALITY,), agent="claude")
    plan = replace(PLAN, policy=replace(PLAN.policy, evaluation=evaluation))
    done = packaged("parts/executed").fill({"tasks": "- limiter: Limit requests (1234567)"})
    task = rows.task(plan, key="evaluate-execution", description=done, type=qa.TYPE, origin=qa.EVALUATION)
    return look_prompt(
        packaged("execution-evaluator"),
        plan,
        task,
        rows.attempt(task),
        gates=GATES,
        resumed=False,
        answers=(),
        asks_by_tool=False,
        by_schema=False,
        evaluators=[packaged(f"parts/evaluator_{one}").fill({}) for one in areas_of(plan, task)[1]],
    )


def _planner() -> str:
    goal = planning.instructions(packaged("parts/goal"), "Limit requests.", "# The shop\n", gates=True)
    text = planning.objected(
        packaged("parts/objections"), goal, "tasks: []\n", ["task limiter: nothing checks it"]
    )
    task = rows.task(PLAN, key=planning.KEY, title="Plan: Limit requests.", description=text)
    answer = Answering(role="planner", file=planning.FILE, fence=planning.FENCE, schema={"type": "object"})
    attempt = rows.attempt(task, n=2, evidence="line 1: `tasks` is empty")
    return answering(
        packaged("planner"), task, attempt, answer, by_schema=False, last="tasks: []\n", answers=ANSWERS
    )


def _evaluator() -> str:
    planned = [PlannedTask(key="limiter", title=TASK.title, description=TASK.description)]
    text = evaluation(packaged("parts/evaluation"), "Rate limiting", planned, GATES, goal="Limit requests.")
    task = rows.task(PLAN, key="evaluate", title="Evaluate: Rate limiting", description=text)
    answer = Answering(
        role="plan-evaluator",
        file=EVALUATION_FILE,
        fence=EVALUATION,
        schema=EVALUATION_SCHEMA,
        asks=False,
    )
    return answering(packaged("plan-evaluator"), task, rows.attempt(task), answer, by_schema=False)


def _documents() -> str:
    flags = [DocSync(reason="The limit is new.", documents=("docs/prices.md",))]
    return doc_sync.description(packaged("parts/documents"), flags, ["docs/prices.md"]) + "\n"


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, text in prompts().items():
        (GOLDEN / f"{name}.md").write_text(text, encoding="utf-8")

"""What an agent is told and given: put together from values alone."""

from pathlib import Path
from typing import Any

from tests.cases import each_case
from tests.contracts.store.rows import AT
from tests.unit.engine.attempt.plain_values import leg_rows

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.replies import investigations, qa
from loopwright.core.replies.reviews import SCHEMA, Finding, Severity
from loopwright.core.rows.model import Review, Role, Run
from loopwright.core.values.patches import Patch
from loopwright.core.values.permissions import Access, Permissions
from loopwright.core.values.policy import Answering, Policy
from loopwright.core.values.states import RunState
from loopwright.engine.attempt.agent_brief import Facts, ReviewFixes, brief
from loopwright.ports import AgentRequest, ToolServer
from loopwright.prompts import packaged

ALL = frozenset({"resume", "tools", "schema", "budget"})
TOOLS = {"loopwright": ToolServer(command="python")}
ANSWERS = Policy(answer=Answering(role="planner", file="plan.yaml", fence="yaml", schema={"type": "object"}))
CONTINUES = "You were interrupted"
PATCH = Patch(text="+a whole change", sha256="1" * 64, files=(), is_whole=True)
FOUND = Finding(severity=Severity.BLOCKING, file="a.py", line=3, text="it leaks")


def a_run(**changes: Any) -> Run:
    values = {
        "id": "run_2",
        "plan_id": "plan_1",
        "role": Role.IMPLEMENTER,
        "state": RunState.QUEUED,
        "agent": "claude",
        "created_at": AT,
    }
    return Run(**{**values, **changes})


BEFORE = a_run(id="run_1", account="default", session_ref="session_1")


def briefed(role: str = "implementer", *, rows: Any = None, run: Any = None, **facts: Any) -> AgentRequest:
    values: dict[str, Any] = {
        "rows": leg_rows(**(rows or {})),
        "template": packaged(role),
        "run": a_run(**(run or {})),
        "agent": "claude",
        "can": ALL,
        "workspace": Path("/workspace"),
        "directory": Path("/run"),
        "contained": False,
        "permissions": Permissions(),
        "account": "default",
        "max_cost_micros": 70,
        "tools": TOOLS,
    }
    return brief(Facts(**{**values, **facts}))


def reviewed(**facts: Any) -> AgentRequest:
    rows = leg_rows()
    review = Review(
        id="review_1",
        plan_id=rows.plan.id,
        task_id=rows.task.id,
        attempt_id=rows.attempt.id,
        n=1,
        run_id="run_2",
        agent="claude",
        parent_sha="1" * 40,
        candidate_sha="2" * 40,
        patch_sha256=PATCH.sha256,
        created_at=AT,
    )
    return briefed("reviewer", run={"role": Role.REVIEWER}, review=review, patch=PATCH, **facts)


def test_an_agent_is_told_its_task_and_given_what_it_can_use() -> None:
    request = briefed(rows={"task": {"title": "Divide numbers"}})
    assert "Divide numbers" in request.prompt
    assert "pytest" in request.prompt, "how it is checked"
    assert (request.workspace, request.run_directory) == (Path("/workspace"), Path("/run"))
    assert (request.tools, request.max_cost_micros, request.schema) == (TOOLS, 70, None)
    bare = briefed(can=frozenset())
    assert (bare.tools, bare.max_cost_micros, bare.session_ref) == ({}, None, None)


@each_case(
    "can, before, account, continued",
    [
        (ALL, BEFORE, "default", "session_1"),
        (frozenset(), BEFORE, "default", None),
        (ALL, BEFORE, "private", None),
        (ALL, a_run(agent="codex", account="default", session_ref="session_1"), "default", None),
    ],
)
def test_only_the_same_agent_on_the_same_account_continues_a_conversation(
    can: frozenset[str], before: Run, account: str, continued: str | None
) -> None:
    request = briefed(can=can, earlier=(before,), account=account)
    assert request.session_ref == continued
    assert CONTINUES in request.prompt, "the work continues whoever does it"


def test_the_newest_of_the_earlier_runs_is_continued() -> None:
    newer = a_run(id="run_3", account="default", session_ref="session_3")
    assert briefed(earlier=(newer, BEFORE)).session_ref == "session_3"


def test_new_findings_and_contradicted_checks_are_told_as_a_new_job() -> None:
    new = briefed(earlier=(BEFORE,), review_fixes=ReviewFixes(findings=(FOUND,), is_new=True))
    assert "it leaks" in new.prompt
    assert CONTINUES not in new.prompt
    told = briefed(earlier=(BEFORE,), review_fixes=ReviewFixes(findings=(FOUND,)))
    assert "it leaks" in told.prompt
    assert CONTINUES in told.prompt
    contradicts = {"attempt": {"gate_files": GateFiles(contradicted=("test_sum",))}}
    turn = briefed(rows=contradicts, earlier=(BEFORE,))
    assert "test_sum" in turn.prompt
    assert CONTINUES not in turn.prompt
    allowed = {"attempt": {"gate_files": GateFiles(contradicted=("test_sum",), allowed_by=("you",))}}
    assert "test_sum" not in briefed(rows=allowed).prompt


def test_answers_of_people_reach_the_agent() -> None:
    request = briefed(earlier=(BEFORE,), answers=(("Which port?", "the usual one"),))
    assert "Which port?" in request.prompt
    assert "the usual one" in request.prompt


def test_one_that_only_answers_gets_its_schema_and_the_answer_that_was_not_accepted() -> None:
    request = briefed("planner", rows={"policy": ANSWERS, "attempt": {"n": 2}}, last_answer="tasks: []")
    assert request.schema == {"type": "object"}
    assert "tasks: []" in request.prompt
    assert request.tools == TOOLS
    quiet = Policy(answer=Answering(role="planner", file="plan.yaml", fence="yaml", asks=False))
    assert briefed("planner", rows={"policy": quiet}).tools == {}


def test_a_qa_review_reports_by_its_own_schema() -> None:
    request = briefed("qa", rows={"task": {"type": qa.TYPE}})
    assert (request.schema, request.tools) == (qa.schema("full"), TOOLS)
    assert briefed("qa", rows={"task": {"type": qa.TYPE}}, can=frozenset()).schema is None


def test_an_investigator_reads_why_a_qa_review_failed() -> None:
    request = briefed("investigator", rows={"task": {"type": qa.TYPE}}, run={"role": Role.INVESTIGATOR})
    assert (request.schema, request.tools) == (investigations.SCHEMA, {})


def test_a_reviewer_sees_the_change_and_asks_nobody() -> None:
    only_reads = Permissions(access=Access.READ_ONLY)
    request = reviewed(permissions=only_reads)
    assert "a whole change" in request.prompt
    assert (request.schema, request.tools, request.permissions) == (SCHEMA, {}, only_reads)


def test_a_reviewer_that_continues_has_seen_the_change() -> None:
    before = a_run(id="run_1", role=Role.REVIEWER, account="default", session_ref="session_1")
    request = reviewed(earlier=(before,))
    assert request.session_ref == "session_1"
    assert "a whole change" not in request.prompt

"""A conductor track, from an unevaluated plan to COMPLETE: every clause of its executor's contract."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.control.greeting import GOAL, block
from tests.acceptance.control.workshop import Workshop, kill
from tests.cases import each_case
from tests.loaded import Said
from tests.once import once
from tests.waiting import eventually

from loopwright.core.plans.tracks import rule_of
from loopwright.core.rows.model import Attempt, Plan, Role, Run, Task
from loopwright.testing.scripted import read_journal

TRACK = "conductor/tracks/greeter_20261116"
PLAN = """# Greeter

## Phase 1: Words

- [x] Task 1.0: Say hello <!-- abc1234 -->
- [ ] Task 1.1: Say bonjour
  - Acceptance: `test -s bonjour`
- [ ] Task 1.2: Say salut
  - Acceptance: `test -s salut`
- [ ] Task 1.3: Set the price of a greeting
  - Acceptance: `test -s price`
"""
ISSUE = {"what": "The price has no unit", "severity": "high", "area": "business_logic"}
FLAG = """Done.
```loopwright-docs
{"reason": "A greeting has a price", "documents": ["docs/prices.md"]}
```
"""
GREETING = """\
title: Greet in French
tasks:
  - id: bonjour
    title: Say bonjour
    description: |
      Write bonjour into the file bonjour.
      - [ ] and nothing else
      Acceptance: `false`
    acceptance:
      - test -s bonjour
    criteria:
      - It says bonjour once
    scope:
      - bonjour
  - id: salut
    title: Say salut
    description: Write salut.
    depends_on:
      - bonjour
    acceptance:
      - test -s salut
"""
SETTINGS = '[[gates]]\nname = "greeting"\nrun = "grep -q hello greet.txt"\n'


def metadata(**more: Any) -> str:
    start = {"current_step": "PLAN", "step_status": "PASSED", "fix_cycle_count": 0, "max_fix_cycles": 3}
    table = {"version": 3, "track_id": "greeter_20261116", "type": "feature", "status": "new"}
    return json.dumps({**table, "loop_state": {**start, "checkpoints": {}}, **more}, indent=2) + "\n"


def lay(shop: Workshop, plan: str = PLAN, told: str | None = None) -> Path:
    """Put a track into the project, as git tracks it."""
    track = shop.repository / TRACK
    track.mkdir(parents=True)
    (track / "plan.md").write_text(plan)
    (track / "spec.md").write_text("# Spec\n\nGreet in French.\n")
    (track / "metadata.json").write_text(told or metadata())
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the track")
    return track


def says(*findings: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what a plan evaluator answers."""
    text = json.dumps({"summary": "Looked.", "findings": findings})
    return [{"claim": f"Done.\n```loopwright-evaluation\n{text}\n```\n"}]


def makes(*names: str) -> list[dict[str, Any]]:
    return [{"write": name, "text": f"{name}\n"} for name in names]


def state(shop: Workshop, plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shop.git("show", f"{plan.branch}:{TRACK}/metadata.json"))
    return found


LOOP = {
    "evaluate": [says()],
    "1.1": [[*makes("bonjour"), {"claim": "Said bonjour to everyone."}]],
    "1.2": [makes("salut")],
    "1.3": [[*makes("price"), {"claim": FLAG}]],
    "evaluate-execution": [[{"qa": [ISSUE]}], [{"qa": []}]],
    "fix-evaluate-execution-001": [makes("unit")],
    "business-sync": [makes("docs/prices.md")],
}


@dataclass(frozen=True, kw_only=True)
class Done:
    """A track that went through all of its steps."""

    shop: Workshop
    said: Said
    plan: Plan
    state: Mapping[str, Any]
    text: str
    """Of its plan."""
    steps: tuple[tuple[str, str], ...]
    """The positions that its metadata had on the branch, in order."""

    @property
    def checkpoints(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.state["loop_state"]["checkpoints"]
        return found


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    def carry_out(place: Path) -> Said:
        shop = Workshop(place)
        track = lay(shop)
        shop.program.env["LOOPWRIGHT_EVALUATOR__AGENT"] = "scripted"
        shop.play(LOOP)
        return shop("run", str(track), timeout=200)

    place, said = once(tmp_path_factory, "track", carry_out)
    shop = Workshop(place)
    plan = shop.rows(Plan)[-1]
    file = f"{TRACK}/metadata.json"
    line = f"{plan.base_sha}..{plan.branch}"
    commits = shop.git("log", "--first-parent", "--reverse", "--format=%H", line, "--", file).split()
    told = [json.loads(shop.git("show", f"{one}:{file}"))["loop_state"] for one in commits]
    yield Done(
        shop=shop,
        said=said,
        plan=plan,
        state=state(shop, plan),
        text=shop.git("show", f"{plan.branch}:{TRACK}/plan.md"),
        steps=tuple(dict.fromkeys((one["current_step"], one["step_status"]) for one in told)),
    )
    shop.clean_up()


# --- before execution ------------------------------------------------------------------------------------


@pytest.mark.clause("X03")
@pytest.mark.capability("C020")
def test_a_track_without_an_evaluation_stops_and_asks_for_one(shop: Workshop) -> None:
    """A structural check alone is not one, and neither is a draft that nobody evaluated."""
    track = lay(shop)
    shop.play(LOOP)
    stopped = shop("run", str(track), "--json", timeout=100)
    assert stopped.code == 2
    error = stopped.document["error"]
    assert error["code"] == "track_unevaluated"
    assert "evaluator.agent" in error["hint"]
    assert "loop-plan-evaluator" in error["hint"]
    assert shop.rows(Run) == []
    checked = shop("plan", "check", str(track), "--no-run", "--json")
    assert [one for one in checked.document["plan"]["against"] if "no evaluation" in one]

    shop.program.env["LOOPWRIGHT_EVALUATOR__AGENT"] = "scripted"
    objects = {"task": "1.2", "severity": "blocking", "text": "Nobody says salut."}
    shop.play({**LOOP, "evaluate": [says(objects)]})
    refused = shop("run", str(track), "--json", timeout=100)
    assert (refused.code, refused.document["error"]["code"]) == (2, "plan_objected")
    assert "Nobody says salut." in refused.document["error"]["message"]
    assert not shop.rows(Run, role=Role.IMPLEMENTER)
    loop = json.loads((track / "metadata.json").read_text())["loop_state"]
    step = loop["checkpoints"]["EVALUATE_PLAN"]
    assert (loop["current_step"], loop["step_status"]) == ("EVALUATE_PLAN", "FAILED")
    assert (step["status"], step["verdict"], step["run_by"]) == ("FAILED", "FAIL", "scripted")
    assert "Nobody says salut." in step["failure_reasons"][0]
    before = len(shop.started())
    assert shop("run", str(track), "--json", timeout=100).code == 2
    assert len(shop.started()) == before, "the same plan is not evaluated again"


@pytest.mark.capability("C020")
@pytest.mark.capability("C017")
def test_a_track_without_a_plan_is_planned_from_its_specification_and_keeps_what_is_not_ours(
    shop: Workshop,
) -> None:
    start = {"current_step": "PLAN", "step_status": "NOT_STARTED", "checkpoints": {}, "theirs": 1}
    track = lay(shop, "# Greeter\n", metadata(loop_state=start, owner="me"))
    spec = (track / "spec.md").read_bytes()
    shop.program.env["LOOPWRIGHT_EVALUATOR__AGENT"] = "scripted"
    told = {"expect_prompt": "Greet in French.", "otherwise": [{"claim": "there is no specification"}]}
    answer = [told, {"claim": block(GREETING)}]
    shop.play({**LOOP, "plan": [answer], "evaluate-execution": [[{"qa": []}]]})
    asked = shop("run", str(track), timeout=100)
    assert (asked.code, "--yes" in asked.err) == (2, True)
    said = shop("run", str(track), "--yes", timeout=200)
    assert said.code == 0, said.out + said.err
    assert shop.started_keys() == ["plan", "evaluate", "1.1", "1.2", "evaluate-execution"], "evaluated once"
    assert (track / "spec.md").read_bytes() == spec
    plan = shop.row(Plan, id=shop.row(Task, key="1.1").plan_id)
    after = state(shop, plan)
    loop = after["loop_state"]
    assert (after["owner"], loop["theirs"], loop["current_step"]) == ("me", 1, "COMPLETE")
    assert (loop["checkpoints"]["PLAN"]["run_by"], loop["checkpoints"]["EVALUATE_PLAN"]["verdict"]) == (
        "scripted",
        "PASS",
    )


@pytest.mark.capability("C020")
@pytest.mark.capability("C047")
@each_case(
    ("command", "check"),
    [("true", "task_quality"), ("no-such-program-here greet", "task_quality")],
)
def test_what_programs_object_to_in_a_plan_is_a_failed_evaluation_in_its_metadata(
    tmp_path: Path, command: str, check: str
) -> None:
    """The first always passes; the second cannot run."""
    shop = Workshop(tmp_path)
    track = lay(shop, f"# Greeter\n\n- [ ] Task 1.1: Say bonjour\n  - Acceptance: `{command}`\n")
    shop.program.env["LOOPWRIGHT_EVALUATOR__AGENT"] = "scripted"
    shop.play(LOOP)
    refused = shop("run", str(track), "--json", timeout=100)
    assert (refused.code, refused.document["error"]["code"]) == (2, "plan_objected"), refused.out
    loop = json.loads((track / "metadata.json").read_text())["loop_state"]
    step = loop["checkpoints"]["EVALUATE_PLAN"]
    assert (loop["current_step"], loop["step_status"]) == ("EVALUATE_PLAN", "FAILED")
    assert (step["verdict"], step["run_by"], step["checks"][check]) == ("FAIL", "loopwright", False)
    assert step["failure_reasons"][0] in refused.document["error"]["message"]
    assert shop.rows(Run) == [], "no agent is asked about it"


@pytest.mark.capability("C020")
def test_a_track_that_keeps_no_loop_yet_is_evaluated_before_it_runs(shop: Workshop) -> None:
    track = lay(shop, told=json.dumps({"track_id": "greeter", "type": "feature", "status": "new"}))
    shop.play({**LOOP, "1.3": [makes("price")], "evaluate-execution": [[{"qa": []}]]})
    stopped = shop("run", str(track), "--json", timeout=100)
    assert (stopped.code, stopped.document["error"]["code"]) == (2, "track_unevaluated")
    assert shop.git("status", "--porcelain") == ""
    shop.program.env["LOOPWRIGHT_EVALUATOR__AGENT"] = "scripted"
    said = shop("run", str(track), timeout=150)
    assert said.code == 0, said.out + said.err
    assert shop.started_keys() == ["evaluate", "1.1", "1.2", "1.3", "evaluate-execution"]
    assert state(shop, shop.rows(Plan)[-1])["loop_state"]["current_step"] == "COMPLETE"


@pytest.mark.capability("C020")
def test_a_person_lets_a_track_run_without_an_evaluation_and_its_metadata_says_why(shop: Workshop) -> None:
    track = lay(shop)
    shop.play({**LOOP, "1.3": [makes("price")]})
    said = shop("run", str(track), "--despite", "it is a spike", timeout=100)
    assert said.code == 0, said.out + said.err
    plan = shop.row(Plan)
    assert plan.evaluation["despite"] == "it is a spike"
    step = state(shop, plan)["loop_state"]["checkpoints"]["EVALUATE_PLAN"]
    assert (step["status"], step["overridden_because"]) == ("SKIPPED", "it is a spike")
    assert "verdict" not in step
    assert shop.started_keys() == ["1.1", "1.2", "1.3"], "no agent evaluates where none is set to"


@pytest.mark.more
@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (PLAN, metadata(loop_state={"checkpoints": {"EVALUATE_PLAN": {"verdict": "PASS"}}})),
        (f"{PLAN}\n## Plan Evaluation Report\n\n### Verdict: PASS\n", None),
    ],
    ids=["metadata", "report"],
)
@pytest.mark.capability("C020")
def test_a_track_that_says_that_it_was_evaluated_runs_without_another_evaluation(
    shop: Workshop, plan: str, told: str | None
) -> None:
    track = lay(shop, plan, told)
    shop.play({**LOOP, "1.3": [makes("price")]})
    said = shop("run", str(track), timeout=100)
    assert said.code == 0, said.out + said.err
    assert shop.started_keys() == ["1.1", "1.2", "1.3"]


def test_a_track_that_another_tool_blocked_waits_for_a_person(shop: Workshop) -> None:
    blocker = {"id": "blk-1", "description": "No API key", "blocked_step": "EXECUTE", "status": "ACTIVE"}
    passed = {"EVALUATE_PLAN": {"status": "PASSED", "verdict": "PASS"}}
    stuck = {"current_step": "EXECUTE", "step_status": "BLOCKED", "checkpoints": passed}
    track = lay(shop, told=metadata(loop_state=stuck, blockers=[blocker]))
    shop.play(LOOP)
    said = shop("run", str(track), timeout=100)
    assert (said.code, "blk-1: No API key" in " ".join(said.err.split())) == (2, True)
    assert shop.rows(Run) == []


# --- the whole loop --------------------------------------------------------------------------------------


@pytest.mark.capability("C020", "C044")
def test_a_track_goes_from_its_evaluation_over_one_fix_cycle_to_complete(done: Done) -> None:
    assert done.said.code == 4, done.said.out + done.said.err
    assert done.plan.status == "VERIFIED"
    assert done.shop.started() == [
        ("evaluate", 1),
        ("1.1", 1),
        ("1.2", 1),
        ("1.3", 1),
        ("evaluate-execution", 1),
        ("fix-evaluate-execution-001", 1),
        ("evaluate-execution", 2),
        ("business-sync", 1),
    ]
    assert done.steps[0] == ("EXECUTE", "IN_PROGRESS")
    assert done.steps[-1] == ("COMPLETE", "PASSED")
    assert all(rule_of(*one) is not None for one in done.steps)
    assert done.state["status"] == "complete"


@pytest.mark.clause("X01")
def test_it_finds_the_first_open_task_and_skips_those_that_are_done(done: Done) -> None:
    assert done.shop.started_keys()[1] == "1.1"
    assert "1.0" not in done.shop.started_keys()


@pytest.mark.clause("X02")
def test_it_confirms_that_the_plan_was_evaluated_before_it_writes_code(done: Done) -> None:
    assert done.shop.started_keys()[0] == "evaluate"
    step = done.checkpoints["EVALUATE_PLAN"]
    assert (step["status"], step["verdict"], step["agent"]) == ("PASSED", "PASS", "loop-plan-evaluator")
    assert step["run_by"] == "scripted"
    assert {"scope_alignment", "overlap_detection", "dependencies", "task_quality"} <= step["checks"].keys()
    assert {"dag_validation", "board_review"} <= step["checks"].keys()


@pytest.mark.clause("X05")
def test_the_agent_reads_the_acceptance_criteria_before_it_begins(done: Done) -> None:
    run = done.shop.rows(Run, attempt_id=done.shop.attempts("1.1")[0].id, role=Role.IMPLEMENTER)[0]
    assert "test -s bonjour" in (done.shop.home / "runs" / run.id / "prompt.md").read_text()


@pytest.mark.clause("X10")
def test_tasks_run_one_after_another_in_the_order_of_the_file(done: Done) -> None:
    starts = [line for line in read_journal(done.shop.place / "journal.txt") if line.task.startswith("1.")]
    assert [(line.task, line.what) for line in starts] == [
        (key, what) for key in ("1.1", "1.2", "1.3") for what in ("start", "end")
    ]


@pytest.mark.clause("X07")
@pytest.mark.capability("C035", "C036")
def test_a_finished_task_has_its_mark_its_commit_a_summary_and_its_acceptance(done: Done) -> None:
    task = done.shop.task("1.1")
    assert task.landed_sha is not None
    lines = done.text.partition("- [x] Task 1.1: Say bonjour")[2].splitlines()
    assert lines[0] == f" <!-- {task.landed_sha[:12]} -->"
    assert lines[2].startswith("  - Summary: Said bonjour to everyone.")
    assert lines[3].startswith("  - Acceptance: ✅ test -s bonjour: passed")


@pytest.mark.clause("X04", "X18", "X24")
@pytest.mark.capability("C035")
def test_a_task_is_in_progress_in_the_plan_while_it_is_worked_on(shop: Workshop) -> None:
    """And [x] tasks are not executed again after a kill in the middle."""
    track = lay(shop, told=metadata(loop_state={"checkpoints": {"EVALUATE_PLAN": {"verdict": "PASS"}}}))
    shop.git("rm", "-rq", "--cached", "conductor")
    shop.git("commit", "-qm", "not tracked")
    gate = shop.gate("gate")
    shop.play({**LOOP, "1.2": [[{"run": gate.shell}, *makes("salut")]], "1.3": [makes("price")]})
    run = shop.start("run", str(track))
    gate.until_reached()
    eventually(lambda: "- [~] Task 1.2" in (track / "plan.md").read_text())
    told = json.loads((track / "metadata.json").read_text())["loop_state"]
    assert (told["current_step"], told["step_status"]) == ("EXECUTE", "IN_PROGRESS")
    assert "step_started_at" in told
    execute = told["checkpoints"]["EXECUTE"]
    assert (execute["tasks_completed"], execute["tasks_total"]) == (2, 4)
    assert execute["last_task"] == "Task 1.1"
    assert execute["last_commit"] == execute["commits"][-1]["sha"]
    kill(run)
    gate.let_go()
    said = shop("run", str(track), timeout=100)
    assert said.code == 0, said.out + said.err
    assert [key for key, _ in shop.started()].count("1.1") == 1
    assert "- [x] Task 1.2" in (track / "plan.md").read_text()


@pytest.mark.clause("X09")
@pytest.mark.capability("C039")
def test_each_task_and_each_phase_has_a_commit(done: Done) -> None:
    subjects = done.shop.git("log", "--first-parent", "--format=%s", done.plan.branch).splitlines()
    for subject in (
        "feat(1.1): Say bonjour",
        "feat(1.2): Say salut",
        "chore(plan): Phase 1: Words is finished",
    ):
        assert subject in subjects
    assert any(one.startswith("docs(plan): 1.1 is done in") for one in subjects)


@pytest.mark.clause("X13")
@pytest.mark.capability("C042")
def test_a_flagged_document_is_updated_in_a_step_of_its_own_before_completion(done: Done) -> None:
    sync = done.checkpoints["BUSINESS_SYNC"]
    assert (sync["status"], sync["affected_docs"]) == ("PASSED", ["docs/prices.md"])
    assert done.checkpoints["EVALUATE_EXECUTION"]["business_sync_required"] is True
    summary = done.text.partition("## Execution Summary")[2]
    assert "**Business Doc Sync Required**: Yes" in summary
    assert "**Reason**: A greeting has a price" in summary
    assert "**Affected Docs**: docs/prices.md" in summary


@pytest.mark.clause("X14")
@pytest.mark.capability("C042")
def test_agents_of_a_track_are_told_every_trigger_of_the_document_sync(done: Done) -> None:
    run = done.shop.rows(Run, role=Role.IMPLEMENTER)[0]
    prompt = (done.shop.home / "runs" / run.id / "prompt.md").read_text()
    for trigger in (
        "prices", "tiers", "feature lists", "AI models", "SDKs", "cost structures", "packages", "personas",
        "go-to-market", "revenue assumptions", "assets",
    ):  # fmt: skip
        assert trigger in prompt, trigger


@pytest.mark.clause("X22")
@pytest.mark.capability("C043")
def test_the_execution_summary_has_its_fixed_fields(done: Done) -> None:
    summary = done.text.partition("## Execution Summary")[2]
    assert "**Track**: greeter_20261116" in summary
    assert "**Tasks Completed**: 5/5" in summary
    assert "**Tasks Blocked**: 0" in summary
    assert "**Commits**: abc1234, " in summary
    assert "**Discovered Work**: 0" in summary
    assert "**Ready for**: " in summary


@pytest.mark.capability("C047", "C048")
def test_the_checkpoint_of_the_execution_names_the_role_and_apart_from_it_the_agent(done: Done) -> None:
    execute = done.checkpoints["EXECUTE"]
    assert (execute["agent"], execute["run_by"]) == ("loop-executor", "scripted")
    assert (execute["status"], execute["tasks_completed"], execute["tasks_total"]) == ("PASSED", 4, 4)
    assert execute["last_task"] == "Task 1.3"
    assert [one["task"] for one in execute["commits"]] == ["Task 1.0", "Task 1.1", "Task 1.2", "Task 1.3"]
    assert {"started_at", "completed_at", "last_commit"} <= execute.keys()


@pytest.mark.clause("X20")
@pytest.mark.capability("C049")
def test_on_completion_the_step_advances_to_the_evaluation_of_the_execution(done: Done) -> None:
    executed = done.steps.index(("EXECUTE", "IN_PROGRESS"))
    assert done.steps[executed + 1][0] == "EVALUATE_EXECUTION"


@pytest.mark.clause("X25")
@pytest.mark.capability("C044")
def test_evaluators_by_the_type_of_the_track_judge_in_a_conversation_of_their_own(done: Done) -> None:
    step = done.checkpoints["EVALUATE_EXECUTION"]
    assert (step["agent"], step["verdict"]) == ("loop-execution-evaluator", "PASS")
    assert [one["evaluator"] for one in step["evaluators_run"]] == [
        "loop-execution-evaluator",
        "eval-code-quality",
        "eval-business-logic",
    ]
    runs = done.shop.rows(Run, role=Role.IMPLEMENTER)
    sessions = [run.session_ref for run in runs]
    assert len(set(sessions)) == len(sessions)
    judged = done.shop.rows(Attempt, task_id=done.shop.task("evaluate-execution").id)
    run = next(run for run in runs if run.attempt_id == judged[0].id)
    prompt = (done.shop.home / "runs" / run.id / "prompt.md").read_text()
    assert "You did not make it" in prompt
    assert "`business_logic`: compare the behaviour with the rules" in prompt
    assert "`ui_ux`" not in prompt, "it has no page"
    assert "Greet in French." in prompt, "the specification"


@pytest.mark.capability("C044")
def test_a_failed_evaluation_is_fixed_once_counted_once_and_evaluated_again(done: Done) -> None:
    loop, fix = done.state["loop_state"], done.checkpoints["FIX"]
    assert (loop["fix_cycle_count"], loop["max_fix_cycles"], fix["cycle"]) == (1, 3, 1)
    assert (fix["agent"], fix["status"], fix["fixes_remaining"]) == ("loop-fixer", "PASSED", [])
    (applied,) = fix["fixes_applied"]
    assert applied["issue"].startswith("The price has no unit")
    assert (done.shop.task("fix-evaluate-execution-001").landed_sha or "").startswith(applied["commit_sha"])
    assert "## Fix Phase (from Evaluation on " in done.text


# --- what ends otherwise ---------------------------------------------------------------------------------


@pytest.mark.capability("C041", "C043", "C044")
def test_after_as_many_fix_cycles_as_its_file_allows_the_track_is_blocked_and_names_its_blocker(
    shop: Workshop,
) -> None:
    passed = {"EVALUATE_PLAN": {"verdict": "PASS"}}
    track = lay(shop, told=metadata(loop_state={"max_fix_cycles": 2, "checkpoints": passed}))
    shop.git("rm", "-rq", "--cached", "conductor")
    shop.git("commit", "-qm", "not tracked")
    shop.program.env["LOOPWRIGHT_EVALUATOR__AGENT"] = "scripted"
    issues = [[{"qa": [{"what": f"Wrong {n}", "severity": "high", "area": "structure"}]}] for n in range(5)]
    fixes = {f"fix-evaluate-execution-00{n}": [makes(f"fixed-{n}")] for n in (1, 2, 3, 4)}
    shop.play({**LOOP, "1.3": [makes("price")], "evaluate-execution": issues, **fixes})
    said = shop("run", str(track), timeout=150)
    assert said.code == 1, said.out + said.err
    assert [key for key, _ in shop.started()].count("evaluate-execution") == 3
    assert shop.row(Plan).fix_cycles == 2
    told = json.loads((track / "metadata.json").read_text())
    loop = told["loop_state"]
    assert (loop["current_step"], loop["step_status"]) == ("FIX", "BLOCKED")
    assert (loop["fix_cycle_count"], loop["max_fix_cycles"]) == (2, 2)
    evaluation = loop["checkpoints"]["EVALUATE_EXECUTION"]
    assert (evaluation["verdict"], evaluation["failure_items"]) == ("FAIL", ["Wrong 2"])
    (blocker,) = told["blockers"]
    assert (blocker["blocked_step"], blocker["status"]) == ("FIX", "ACTIVE")
    assert {"id", "description", "blocked_at"} <= blocker.keys()


@pytest.mark.clause("X15", "X16", "X17")
@pytest.mark.capability("C040", "C041", "C043")
def test_a_blocked_task_is_named_while_others_continue_and_found_work_is_only_written_down(
    shop: Workshop,
) -> None:
    track = lay(shop, told=metadata(loop_state={"checkpoints": {"EVALUATE_PLAN": {"verdict": "PASS"}}}))
    shop.git("rm", "-rq", "--cached", "conductor")
    shop.git("commit", "-qm", "not tracked")
    night = {"title": "Greet at night", "reason": "It is dark", "recommendation": "new"}
    found = f"Done.\n```loopwright-discovered\n{json.dumps(night)}\n```\n"
    shop.play(
        {
            **LOOP,
            "1.1": [[{"fail": "permanent", "message": "no such word"}]],
            "1.2": [[*makes("salut"), {"claim": found}]],
            "1.3": [makes("price")],
        }
    )
    said = shop("run", str(track), "--max-attempts", "1", timeout=150)
    assert said.code == 1, said.out + said.err
    text = (track / "plan.md").read_text()
    assert "- [!] Task 1.1" in text
    assert "- [x] Task 1.2" in text
    assert "- [x] Task 1.3" in text
    assert "  - Blocked: " in text
    assert "**Tasks Blocked**: 1 (Task 1.1: " in text
    told = json.loads((track / "metadata.json").read_text())
    (blocker,) = told["blockers"]
    assert (blocker["blocked_step"], blocker["status"]) == ("EXECUTE", "ACTIVE")
    assert told["loop_state"]["step_status"] == "PARTIAL_FAIL"


@pytest.mark.more
@pytest.mark.capability("C017")
def test_a_goal_in_a_conductor_repository_becomes_a_track_and_is_carried_through(shop: Workshop) -> None:
    (shop.repository / "conductor" / "tracks").mkdir(parents=True)
    (shop.repository / "conductor" / "tracks.md").write_text("# Tracks\n")
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "conductor")
    shop.program.env["LOOPWRIGHT_EVALUATOR__AGENT"] = "scripted"
    shop.play({**LOOP, "plan": [[{"claim": block(GREETING)}]], "evaluate-execution": [[{"qa": []}]]})
    said = shop("run", GOAL, "--yes", timeout=200)
    assert said.code == 0, said.out + said.err
    assert shop.started_keys() == ["plan", "evaluate", "1.1", "1.2", "evaluate-execution"], "evaluated once"
    (track,) = (shop.repository / "conductor" / "tracks").iterdir()
    assert track.name.startswith("greet-in-french-please_20")
    assert GOAL in (track / "spec.md").read_text()
    text = (track / "plan.md").read_text()
    assert "- [x] Task 1.1: Say bonjour <!-- " in text
    assert "\n  - [ ] and nothing else" in text, "what the planner says is words"
    told = json.loads((track / "metadata.json").read_text())
    loop = told["loop_state"]
    assert (told["status"], loop["current_step"], loop["step_status"]) == ("complete", "COMPLETE", "PASSED")
    plan, evaluation = loop["checkpoints"]["PLAN"], loop["checkpoints"]["EVALUATE_PLAN"]
    assert (plan["agent"], plan["run_by"], plan["plan_version"]) == ("loop-planner", "scripted", 1)
    assert (evaluation["agent"], evaluation["verdict"]) == ("loop-plan-evaluator", "PASS")
    listed = (track.parent.parent / "tracks.md").read_text()
    assert f"- [x] **Track: Greet in French**\n  *Link: [./tracks/{track.name}/]" in listed

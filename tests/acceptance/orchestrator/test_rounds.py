"""Rounds of an orchestrator folder with scripted roles: from the first plan to the end, and over every interruption."""

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.acceptance.control.workshop import Workshop, kill, refused
from tests.acceptance.orchestrator.bundle import ADVANCED, play, prepared, record, state, statuses, usual
from tests.cases import each_case
from tests.once import once

from loopwright.adapters.sources.schemas import source_schemas
from loopwright.cli.shell.exits import ExitCode
from loopwright.core.orchestrator.history import EVENTS
from loopwright.core.rows.model import Plan
from loopwright.core.values.states import TaskState

GOLDEN = Path(__file__).parent / "golden"
SCHEMAS = {
    "selection-record.json": "orchestrator_selection",
    "round-plan-record.json": "orchestrator_round_plan",
    "review-record.json": "orchestrator_review",
    "closeout-record.json": "orchestrator_closeout",
}


@pytest.fixture(scope="module")
def carried_out(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workshop, str]:
    """One round that the reviewer rejects once, in a repository without the files of the named exits; its output."""

    def carry_out(place: Path) -> Any:
        shop = Workshop(place)
        prepared(shop, 1, {"reject": ["round-001"]}, add={})
        return shop("run", "orchestrator", timeout=200)

    place, said = once(tmp_path_factory, "corrected", carry_out)
    assert said.code == 0, said.out + said.err
    return Workshop(place), said.out


@pytest.fixture(scope="module")
def corrected(carried_out: tuple[Workshop, str]) -> Workshop:
    return carried_out[0]


def test_a_run_says_once_how_to_pause_it_and_that_the_roadmap_is_done(
    carried_out: tuple[Workshop, str],
) -> None:
    told = carried_out[1]
    assert told.count("Ctrl-C pauses the plan") == 1
    assert told.count("The roadmap is done.") == 1


@pytest.mark.capability("C050")
def test_a_round_is_planned_made_reviewed_fixed_and_merged(corrected: Workshop) -> None:
    stages = [plan.title.removeprefix("round-001: ") for plan in corrected.rows(Plan)]
    assert stages == [
        "plan by the planner",
        "implement by the implementer",
        "review by the reviewer",
        "implement by the implementer",
        "review by the reviewer",
    ]
    assert (corrected.repository / "made-milestone-1").read_text() == "right\n"
    assert statuses(corrected) == ["done"]
    now = state(corrected)
    assert (now["controller_stage"], now["active_rounds"], now["retry"]) == ("done", [], None)
    assert now["ours"] == "kept as it is"


@pytest.mark.capability("C006")
def test_the_archived_records_of_a_round_match_the_published_schemas(corrected: Workshop) -> None:
    for name, schema in SCHEMAS.items():
        jsonschema.validate(record(corrected, "round-001", name), source_schemas()[schema])


@pytest.mark.capability("C069")
def test_a_round_lands_as_one_commit_that_says_what_each_stage_landed(corrected: Workshop) -> None:
    done, landed, _ = corrected.git("log", "--format=%s", "-3", "trunk").splitlines()
    assert (done, landed) == ("Mark roadmap 2026-03-01-00-greet done", "Complete round-001: One item")
    message = corrected.git("log", "-1", "--format=%B", "trunk~1")
    tip = re.findall(r"^Loopwright-Tip: (\w+)$", message, re.MULTILINE)
    stages = re.findall(r"^Loopwright-Landed: ptask_\S+ (\w+)$", message, re.MULTILINE)
    assert len(stages) == 5
    branch = "orchestrator/round-001-milestone-1"
    assert corrected.git("rev-parse", branch).split() == tip
    for sha in stages:
        corrected.git("merge-base", "--is-ancestor", sha, branch)
    assert corrected.git("status", "--porcelain") == ""
    assert "worktrees/round-001" not in corrected.git("worktree", "list")


@pytest.mark.capability("C023")
def test_a_closeout_changes_status_pointers_and_history_and_nothing_else(corrected: Workshop) -> None:
    changed = corrected.git("diff", "-U0", "trunk~2", "trunk~1", "--", "orchestrator/roadmaps")
    lines = [line for line in changed.splitlines() if re.match(r"[+-](?!\+\+|--)\s*\S", line)]
    assert sorted(lines) == sorted(
        [
            "+- round-001 completed milestone-1.",
            '-      "status": "pending",',
            '+      "status": "done",',
            '-      "selector": "### [pending] 1. Part 1"',
            '+      "selector": "### [done] 1. Part 1"',
            "-### [pending] 1. Part 1",
            "+### [done] 1. Part 1",
            "+- round-001 completed milestone-1.",
        ]
    )
    closeout = record(corrected, "round-001", "closeout-record.json")
    assert closeout["status"] == "applied"
    assert closeout["base_revision"] == corrected.git("rev-parse", "trunk~2").strip()


@pytest.mark.clause("X27")
@pytest.mark.capability("C063")
def test_every_role_gets_the_contract_and_its_own_prompt(corrected: Workshop) -> None:
    briefs = [task.description for plan in corrected.rows(Plan) for task in tasks_of(corrected, plan)]
    roles = ["planner", "implementer", "reviewer", "implementer", "reviewer"]
    for text, role in zip(briefs, roles, strict=True):
        assert "The contract of this repository." in text
        assert [f"The prompt of the {one}." in text for one in set(roles)].count(True) == 1
        assert f"The prompt of the {role}." in text
    assert "Problem: it is wrong. Suggested fix: write it right." in briefs[3]


@pytest.mark.capability("C051")
def test_the_event_log_has_each_change_of_a_round_once(corrected: Workshop) -> None:
    found = corrected.events(*EVENTS)
    told = [(one.type, *(one.payload.get(key, "") for key in ("from", "stage"))) for one in found]
    assert told == [
        ("round_began", "", "plan"),
        ("controller_moved", "", "dispatch-rounds"),
        ("round_moved", "plan", "implement"),
        ("round_moved", "implement", "review"),
        ("round_moved", "review", "implement"),
        ("round_moved", "implement", "review"),
        ("round_moved", "review", "finalize-round"),
        ("round_merged", "", ""),
        ("controller_moved", "dispatch-rounds", "done"),
    ]
    assert {one.project for one in found} == {plan.project_id for plan in corrected.rows(Plan)}


@pytest.mark.capability("C066")
def test_no_conversation_is_used_by_two_stages(corrected: Workshop) -> None:
    from loopwright.core.rows.model import Run

    sessions = [(run.session_ref, run.plan_id) for run in corrected.rows(Run) if run.session_ref]
    assert len({session for session, _ in sessions}) == len({plan for _, plan in sessions}) == 5


@pytest.mark.clause("X26")
@pytest.mark.capability("C065")
def test_a_serial_run_needs_nothing_of_the_named_exits(corrected: Workshop) -> None:
    assert not any((corrected.repository / path).exists() for path in ADVANCED)
    script = (
        "import sys\nfrom loopwright.cli.main import main\n"
        "sys.argv = ['loopwright', 'run', 'orchestrator']\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code, ended.code\n"
        "loaded = {name.rpartition('.')[2] for name in sys.modules if '.orchestrator.' in name}\n"
        "assert 'controller' in loaded\n"
        "assert not loaded & {'recovery', 'fan_out', 'roadmap_updates'}, loaded\n"
    )
    said = corrected.measured(script)
    assert said.code == 0, said.out + said.err


def tasks_of(shop: Workshop, plan: Plan) -> list[Any]:
    from loopwright.core.rows.model import Task

    return shop.rows(Task, plan_id=plan.id)


# --- what is killed continues --------------------------------------------------------------------------


@pytest.mark.capability("C056")
def test_a_controller_that_is_killed_in_a_stage_continues_and_does_nothing_twice(shop: Workshop) -> None:
    killed_in(shop, "implement")


@pytest.mark.more
@pytest.mark.capability("C056")
@pytest.mark.parametrize("stage", ["plan", "review"])
def test_it_continues_in_every_other_stage_too(shop: Workshop, stage: str) -> None:
    killed_in(shop, stage)


def killed_in(shop: Workshop, stage: str) -> None:
    prepared(shop, 1)
    gate = shop.gate(stage)
    play(shop, **{stage: [[gate.step, {"run": f"python3 tools/roles.py {stage}"}]]})
    running = shop.start("run", "orchestrator")
    shop.until_started(stage)
    kill(running)
    gate.let_go()
    assert state(shop)["active_rounds"][0]["stage"] == stage
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    assert shop.started() == [("plan", 1), ("implement", 1), ("review", 1)]
    assert statuses(shop) == ["done"]
    moved = [(one.payload["from"], one.payload["stage"]) for one in shop.events("round_moved")]
    stages = ["plan", "implement", "review", "finalize-round"]
    assert moved == list(pairwise(stages)), "the event log has each of them once"


@pytest.mark.more
@pytest.mark.capability("C056")
@pytest.mark.capability("C073")
@pytest.mark.parametrize("stage", ["left", "right", "implement"])
def test_a_fan_out_continues_in_each_worker_and_in_its_integration(shop: Workshop, stage: str) -> None:
    _killed_once(shop, stage, {"fan_out": ["round-001"]}, "implement")
    assert sorted(shop.started()) == [(one, 1) for one in ("implement", "left", "plan", "review", "right")]


@pytest.mark.more
@pytest.mark.capability("C073")
def test_the_integration_waits_only_for_the_workers_that_block_it(shop: Workshop) -> None:
    prepared(shop, 1, {"fan_out": ["round-001"], "late": ["round-001"]})
    gate = shop.gate("right")
    play(shop, right=[[gate.step, {"run": "python3 tools/roles.py right"}]])
    running = shop.start("run", "orchestrator")
    shop.until_started("left", "right", "implement")
    states = _states(shop)
    assert (states["left"], states["right"]) == (TaskState.COMPLETE, TaskState.RUNNING)
    gate.let_go()
    assert running.process.wait(timeout=200) == 0
    assert (shop.repository / "right/half").read_text() == "right\n"
    assert shop.started_keys()[-1] == "review", "of everything, also of what came later"


def _states(shop: Workshop) -> dict[str, TaskState]:
    return {task.key: task.status for task in tasks_of(shop, shop.rows(Plan)[-1])}


@pytest.mark.more
@pytest.mark.capability("C056")
@pytest.mark.capability("C064")
@pytest.mark.parametrize("stage", ["update-roadmap", "update-review"])
def test_a_roadmap_update_continues_in_each_of_its_stages(shop: Workshop, stage: str) -> None:
    _killed_once(shop, stage, {"request": ["round-001"]}, None)
    stages = ["plan", "update-roadmap", "update-review", "plan", "implement", "review"]
    assert shop.started() == [(one, 1) for one in stages]
    assert state(shop)["roadmap_revision"] == "rev-002"


def _killed_once(shop: Workshop, stage: str, scenario: dict[str, Any], live: str | None) -> None:
    """Kill the controller while an agent is in a stage, let the agent finish, and run the folder to its end."""
    prepared(shop, 1, scenario)
    gate = shop.gate(stage)
    steps = [[gate.step, {"run": f"python3 tools/roles.py {stage}"}]]
    shop.play({**usual(), stage: steps})
    running = shop.start("run", "orchestrator")
    shop.until_started(stage)
    kill(running)
    gate.let_go()
    assert [one["stage"] for one in state(shop)["active_rounds"]] == ([live] if live else [])
    said = shop("run", "orchestrator", timeout=280)
    assert said.code == 0, said.out + said.err
    assert statuses(shop) == ["done"]


@pytest.mark.more
@pytest.mark.capability("C056")
@pytest.mark.parametrize("moment", ["git.base.before", "git.base.after"])
def test_a_kill_while_a_revision_is_activated_activates_it_once(shop: Workshop, moment: str) -> None:
    prepared(shop, 1, {"request": ["round-001"]})
    shop.program.env["LOOPWRIGHT_FAILPOINT"] = moment
    assert shop("run", "orchestrator", timeout=200).code < 0
    assert state(shop)["roadmap_update"]["status"] == "approved"
    del shop.program.env["LOOPWRIGHT_FAILPOINT"]
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    assert shop.git("log", "--format=%s", "trunk").count("Activate rev-002") == 1
    assert len(shop.started()) == 6


@pytest.mark.more
@pytest.mark.capability("C056")
@pytest.mark.parametrize("moment", ["git.base.before", "git.base.after"])
def test_a_kill_while_the_round_is_merged_merges_it_once(shop: Workshop, moment: str) -> None:
    prepared(shop, 1)
    shop.program.env["LOOPWRIGHT_FAILPOINT"] = moment
    assert shop("run", "orchestrator", timeout=200).code < 0
    assert state(shop)["active_rounds"][0]["stage"] == "finalize-round"
    del shop.program.env["LOOPWRIGHT_FAILPOINT"]
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    assert shop.git("log", "--format=%s", "trunk").count("Complete round-001") == 1
    assert len(shop.started()) == 3


@pytest.mark.clause("X28")
@pytest.mark.capability("C050")
@pytest.mark.more
def test_what_you_change_in_the_state_between_two_actions_is_used_and_kept(shop: Workshop) -> None:
    prepared(shop, 2, apart=True)
    gate = shop.gate("plan")
    second = [{"run": "ROUND=round-002 CHOOSE=1 python3 tools/roles.py plan"}]
    told = {"expect_prompt": "Round: round-001", "otherwise": second}
    play(shop, plan=[[told, gate.step, {"run": "python3 tools/roles.py plan"}]])
    running = shop.start("run", "orchestrator")
    shop.until_started("plan")
    rewritten(shop, "orchestrator/state.json", '"max_parallel_rounds": 1', '"max_parallel_rounds": 2')
    rewritten(shop, "orchestrator/state.json", "kept as it is", "and so is this")
    gate.let_go()
    assert running.process.wait(timeout=280) == 0
    moved = [(one.type, one.payload["round"]) for one in shop.events("round_began", "round_merged")]
    assert moved[:2] == [("round_began", "round-001"), ("round_began", "round-002")], (
        "two at once from then on"
    )
    assert (state(shop)["max_parallel_rounds"], state(shop)["ours"]) == (2, "and so is this")


@pytest.mark.capability("C056")
@pytest.mark.trap("two controllers")
def test_a_second_controller_of_a_repository_is_refused_from_any_home_and_changes_nothing(
    shop: Workshop,
) -> None:
    prepared(shop, 1)
    gate = shop.gate("plan")
    play(shop, plan=[[gate.step, {"run": "python3 tools/roles.py plan"}]])
    running = shop.start("run", "orchestrator")
    shop.until_started("plan")
    before = (shop.repository / "orchestrator/state.json").read_bytes(), shop.git("for-each-ref")
    home = shop.program.env["LOOPWRIGHT_HOME"]
    shop.program.env["LOOPWRIGHT_HOME"] = str(shop.place / "another home")
    refused(shop("run", "orchestrator"), ExitCode.HELD, f"process {running.process.pid} is the controller")
    refused(shop("scaffold", "orchestrator", "Greet", "--yes"), ExitCode.HELD, "is the controller of")
    shop.program.env["LOOPWRIGHT_HOME"] = home
    assert before == ((shop.repository / "orchestrator/state.json").read_bytes(), shop.git("for-each-ref"))
    kill(running)  # and the lock with it, although its agent works
    gate.let_go()
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    assert shop.started() == [("plan", 1), ("implement", 1), ("review", 1)]


# --- what does not hold is recorded, and then it stops ---------------------------------------------------


def rewritten(shop: Workshop, path: str, before: str, after: str) -> None:
    place = shop.repository / path
    text = place.read_text()
    assert before in text
    place.write_text(text.replace(before, after, 1))


ROADMAP = "orchestrator/roadmaps/2026-03-01-00-greet/rev-001"
OLDER = """# Greeting

## Goal

Greet.

## Alignment Summary

- one after the other

## Outcome Boundaries

- a greeting

## Global Sequencing Rules

- one after the other

## Parallel Lanes

- one

## Milestones

### 1. [completed] Say hello

Milestone id: `milestone-1`
Depends on: none
Intent: greet
whoever comes.
Completion signal: a greeting is there
Parallel lane: default serial
Coordination notes: none
Progress: round 001 was the last

Candidate directions:

- Direction id: `direction-1a`
  Status: complete via round 001
  Summary: write hello
  Why it matters now: it is first
  Preconditions: none
  Parallel hints: serial
  Boundary notes: none
  Extraction notes: one round,
  and no more.

### 2. [pending] Say goodbye

Milestone id: `milestone-2`
Depends on: `milestone-1`
Intent: part
Completion signal: a farewell is there
Parallel lane: default serial
Coordination notes: none

Candidate directions:

- Direction id: `direction-2a`
  Summary: write goodbye
  Why it matters now: it is next
  Preconditions: hello
  Parallel hints: serial
  Boundary notes: none
  Extraction notes: one round for it

- Direction id: `direction-2b`
  Summary: wave
  Why it matters now: it is polite
  Preconditions: goodbye
  Parallel hints: serial
  Boundary notes: none
  Extraction notes: the last
"""
"""A roadmap as a folder of an older contract has it."""


@pytest.mark.capability("C057")
@pytest.mark.capability("C059")
@each_case(
    ("path", "before", "after", "words"),
    [
        (f"{ROADMAP}/roadmap-view.json", '"pending"', '"unknown"', "expected one of: pending"),
        (f"{ROADMAP}/roadmap-view.json", '"milestone-1-status"', '"nowhere"', 'there is no anchor "nowhere"'),
        (f"{ROADMAP}/roadmap.md", "[pending] 1. Part 1", "[done] 1. Part 1", 'status is "done" here'),
        ("orchestrator/artifact-manifest.md", "# Artifact Manifest\n", "", "artifact-manifest.md is empty"),
        ("orchestrator/role-contract.md", "# Role Contract", "", ""),
        (".gitignore", "orchestrator/worktrees/\n", "", "git does not ignore orchestrator/worktrees/"),
        ("orchestrator/state.json", '"base_branch"', '"based_on"', "state.json.base_branch: missing"),
        (
            "orchestrator/state.json",
            '"retry": null',
            '"retry": {"schema_version": "retry-v1"}',
            "state.json.retry",
        ),
        (
            "orchestrator/state.json",
            '"roadmap_update": null',
            '"roadmap_update": {}',
            "state.json.roadmap_update",
        ),
        (
            "orchestrator/state.json",
            '"dispatch-rounds"',
            '"resting"',
            "state.json.controller_stage: 'resting'",
        ),
        ("orchestrator/state.json", '"trunk"', '"main"', "base_branch is main, and trunk is checked out"),
    ],
)
def test_what_does_not_hold_is_recorded_precisely_and_nothing_begins(
    tmp_path: Path, path: str, before: str, after: str, words: str
) -> None:
    shop = Workshop(tmp_path)
    prepared(shop, 1)
    if not words:
        (shop.repository / "orchestrator/role-contract.md").unlink()
        words = "orchestrator/role-contract.md: missing, and part of the contract"
    else:
        rewritten(shop, path, before, after)
    said = shop("run", "orchestrator", timeout=60)
    assert said.code == 3, said.out + said.err
    assert words in state(shop)["resume_errors"]["controller"]
    assert words in " ".join(said.out.split())
    assert state(shop)["ours"] == "kept as it is"
    assert not shop.started()


@pytest.mark.capability("C006")
@pytest.mark.capability("C057")
def test_a_folder_of_an_older_contract_says_what_it_lacks_is_migrated_and_resumed_with_every_byte(
    shop: Workshop,
) -> None:
    """In the form of a real project: no role contract, no manifest, no view, other prose, and retired fields."""
    retired = {"stage": None, "roadmap_style": "strategy-backlog", "last_completed_round": "round-189"}
    prepared(shop, 1, add={}, **retired)
    gone = (
        "orchestrator/artifact-manifest.md",
        "orchestrator/role-contract.md",
        f"{ROADMAP}/roadmap-view.json",
    )
    shop.git("rm", "-q", *gone)
    (shop.repository / ROADMAP / "roadmap.md").write_text(OLDER)
    shop.git("commit", "-qam", "as it was")
    before = state(shop)
    said = shop("run", "orchestrator", timeout=60)
    assert said.code == 3, said.out + said.err
    after = state(shop)
    why = after["resume_errors"].pop("controller")
    assert why.startswith(f"{', '.join(gone)}: missing, and part of the contract orchestrator-v2; ")
    assert "`loopwright scaffold orchestrator --migrate`" in why
    assert after == before
    assert shop.git("status", "--porcelain").split() == ["M", "orchestrator/state.json"]
    assert not shop.started()

    made = shop("scaffold", "orchestrator", "--migrate", "--json")
    assert made.code == 0, made.out + made.err
    assert set(gone) < set(made.document["files"])
    added = shop.git("status", "--porcelain", "-uall").splitlines()
    assert [line for line in added if not line.startswith("?? ")] == [" M orchestrator/state.json"]
    shop.git("add", "-A")
    shop.git("commit", "-qm", "migrated")
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    closed = OLDER.replace("### 2. [pending]", "### 2. [done]") + "\n- round-001 completed milestone-2.\n"
    assert (shop.repository / ROADMAP / "roadmap.md").read_text() == closed
    assert statuses(shop) == ["done", "done"]
    assert {key: state(shop)[key] for key in retired} == retired
    again = shop("scaffold", "orchestrator", "--migrate")
    refused(again, 2, "lacks no file of the contract")


@pytest.mark.capability("C057")
def test_a_state_in_which_nothing_can_be_recorded_is_left_as_it_is(shop: Workshop) -> None:
    prepared(shop, 1)
    place = shop.repository / "orchestrator/state.json"
    for text in ("{", "[]", ""):
        place.write_text(text)
        refused(shop("run", "orchestrator"), 2, "state.json")
        assert place.read_text() == text


@pytest.mark.capability("C046")
def test_a_transition_that_the_table_does_not_have_is_refused_and_recorded(shop: Workshop) -> None:
    """Another controller left a round that is done, and that is not merged."""
    prepared(shop, 1)
    branch, path = "orchestrator/round-001-milestone-1", "orchestrator/worktrees/round-001"
    shop.git("worktree", "add", "-q", "-b", branch, path)
    live = {"round_id": "round-001", "stage": "done", "branch": branch, "worktree_path": path}
    place = shop.repository / "orchestrator/state.json"
    place.write_text(json.dumps(state(shop) | {"active_rounds": [live]}, indent=2))
    said = shop("run", "orchestrator", timeout=60)
    assert said.code == 3, said.out + said.err
    assert state(shop)["active_rounds"] == [live]
    assert "round round-001: done -> review is not allowed" in state(shop)["resume_errors"]["controller"]
    assert not shop.started()


@pytest.mark.capability("C063")
def test_a_missing_role_is_an_error_of_the_stage_that_needs_it_and_is_not_substituted(shop: Workshop) -> None:
    prepared(shop, 1)
    shop.git("rm", "-q", "orchestrator/roles/planner.md")
    shop.git("commit", "-qm", "no planner")
    said = shop("run", "orchestrator", timeout=60)
    assert said.code == 3
    why = state(shop)["resume_errors"]["controller"]
    assert why.startswith("orchestrator/roles/planner.md is missing in commit ")
    assert not shop.started()


@pytest.mark.capability("C063")
@pytest.mark.more
def test_a_role_that_you_commit_after_its_round_was_blocked_is_read(shop: Workshop) -> None:
    prepared(shop, 1)
    shop.git("rm", "-q", "orchestrator/roles/reviewer.md")
    shop.git("commit", "-qm", "no reviewer")
    said = shop("run", "orchestrator", timeout=200)
    assert (said.code, shop.started_keys()) == (3, ["plan", "implement"])
    assert "orchestrator/roles/reviewer.md is missing" in state(shop)["resume_errors"]["controller"]
    shop.git("checkout", "-q", "HEAD~1", "--", "orchestrator/roles/reviewer.md")
    shop.git("commit", "-qm", "a reviewer", "--", "orchestrator/roles")
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    assert shop.started_keys() == ["plan", "implement", "review"]


@pytest.mark.capability("C063")
@pytest.mark.more
def test_a_role_that_you_change_and_commit_during_a_round_is_read_from_the_next_round_on(
    shop: Workshop,
) -> None:
    prepared(shop, 2)
    gate = shop.gate("plan")
    play(shop, plan=[[gate.step, {"run": "python3 tools/roles.py plan"}]])
    running = shop.start("run", "orchestrator")
    shop.until_started("plan")
    path = "orchestrator/roles/reviewer.md"
    rewritten(shop, path, "The prompt of the reviewer.", "Another prompt.")
    shop.git("commit", "-qm", "another reviewer", "--", path)
    gate.let_go()
    assert running.process.wait(timeout=280) == 0
    reviews = [plan for plan in shop.rows(Plan) if plan.title.endswith("review by the reviewer")]
    briefs = [task.description for plan in reviews for task in tasks_of(shop, plan)]
    assert [("The prompt of the reviewer." in one, "Another prompt." in one) for one in briefs] == [
        (True, False),
        (False, True),
    ]


def test_rounds_in_the_background_need_a_daemon(shop: Workshop) -> None:
    prepared(shop, 1)
    refused(shop("run", "orchestrator", "--detach"), 2, "no daemon runs here that could drive rounds")
    checked = shop("plan", "check", "orchestrator")
    assert "Part 1" in checked.out


# --- the whole contract in one repository ------------------------------------------------------------------


def written(shop: Workshop) -> str:
    """Return what the controller and the roles left in the repository, without what is another each time."""
    paths = shop.git("ls-files", "orchestrator").split()
    wanted = [
        path
        for path in paths
        if path.endswith(("record.json", "state.json", "roadmap-history.md", "roadmap-view.json"))
        or path.startswith("orchestrator/roadmap-updates/")
    ]
    found = {path: (shop.repository / path).read_text() for path in sorted(wanted)}
    subjects = shop.git("log", "--reverse", "--format=%s", "trunk").splitlines()
    text = json.dumps({"commits": subjects, "files": found}, indent=1) + "\n"
    return re.sub(r"\b[0-9a-f]{40,64}\b", "HASH", text)


_WHOLE = {
    "request": ["round-001"],
    "reject_update": ["round-001"],
    "reject": ["round-002"],
    "fan_out": ["round-003"],
    "semantic": ["round-004"],
}


@pytest.mark.more
@pytest.mark.capability("C064")
@pytest.mark.capability("C073")
def test_four_milestones_with_a_rejection_a_fan_out_and_two_updates_end_as_the_golden_files_say(
    shop: Workshop,
) -> None:
    prepared(shop, 4, _WHOLE)
    said = shop("run", "orchestrator", timeout=900)
    assert said.code == 0, said.out + said.err
    golden = GOLDEN / "four-milestones.json"
    found = written(shop)
    if os.environ.get("UPDATE_SAMPLES"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found)
    assert json.loads(found) == json.loads(golden.read_text())
    assert state(shop)["roadmap_revision"] == "rev-003"
    assert set(statuses(shop)) == {"done"}


@pytest.mark.long
@pytest.mark.capability("C056")
@pytest.mark.parametrize("moment", ["round.write.after", "round.write.before:2"])
def test_a_kill_at_every_write_of_the_controller_leads_to_the_same_golden_files(
    shop: Workshop, moment: str
) -> None:
    """Each process lives for one write and dies at the next moment, until the roadmap is done."""
    prepared(shop, 4, _WHOLE)
    shop.program.env["LOOPWRIGHT_FAILPOINT"] = moment
    lives = 0
    while (said := shop("run", "orchestrator", timeout=300)).code < 0:
        lives += 1
        assert lives < 400, said.out + said.err
    assert said.code == 0, said.out + said.err
    assert lives > 60, "each stage has several writes"
    assert json.loads(written(shop)) == json.loads((GOLDEN / "four-milestones.json").read_text())
    assert {attempt for _, attempt in shop.started()} == {1}


# --- the ladder, one class of resuming after the other -----------------------------------------------------


@pytest.mark.more
@pytest.mark.capability("C058")
@pytest.mark.capability("C056")
def test_a_stage_without_a_result_climbs_the_ladder_blocks_and_continues_when_you_run_it_again(
    shop: Workshop,
) -> None:
    prepared(shop, 1)
    play(shop, implement=[[{"fail": "agent_error", "message": "broken"}]])
    said = shop("run", "orchestrator", timeout=280)
    assert said.code == 3, said.out + said.err
    rungs = ("ask the recovery investigator", "delegate the stage", "record the blockage")
    ladder = [rung for line in said.out.splitlines() for rung in rungs if rung in line]
    assert ladder == [*rungs[:2] * 6, rungs[0], rungs[2]]
    assert said.out.count("delegate the stage to another agent") == 3
    why = state(shop)["resume_errors"]["controller"]
    assert why.startswith("round-001 cannot leave implement after 7 tries: implement: ")
    assert state(shop)["retry"]["entries"][0]["attempt"] == 7
    jsonschema.validate(state(shop)["retry"], source_schemas()["orchestrator_retry"])

    play(shop)
    shutil.rmtree(shop.repository / "orchestrator/worktrees/round-001")
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    assert "round-001: recreate the worktree" in said.out
    assert (state(shop)["resume_errors"], state(shop)["retry"]) == ({}, None)
    diagnosis = shop.repository / "orchestrator/rounds/round-001/recovery-investigation.md"
    assert "Diagnosis" in diagnosis.read_text()


@pytest.mark.more
@pytest.mark.capability("C056")
def test_files_that_another_controller_left_prove_their_stages_and_are_not_made_again(shop: Workshop) -> None:
    """A blocked round whose files are not even committed."""
    prepared(shop, 1)
    branch, path = "orchestrator/round-001-milestone-1", "orchestrator/worktrees/round-001"
    shop.git("worktree", "add", "-q", "-b", branch, path)
    for stage in ("plan", "implement"):
        subprocess.run([sys.executable, "tools/roles.py", stage], cwd=shop.repository / path, check=True)
    live = {"round_id": "round-001", "stage": "blocked", "branch": branch, "worktree_path": path}
    place = shop.repository / "orchestrator/state.json"
    place.write_text(
        json.dumps(state(shop) | {"active_rounds": [{**live, "resume_error": "lost"}]}, indent=2)
    )
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    assert "round-001: its files prove review" in said.out
    assert shop.started_keys() == ["review"]
    assert statuses(shop) == ["done"]


@pytest.mark.more
@pytest.mark.capability("C056")
@pytest.mark.capability("C046")
def test_an_approval_that_is_not_valid_blocks_the_round_until_it_is_reviewed_again(shop: Workshop) -> None:
    """Another controller left it; no role of ours can, because its files are checked."""
    prepared(shop, 1)
    branch, path = "orchestrator/round-001-milestone-1", "orchestrator/worktrees/round-001"
    shop.git("worktree", "add", "-q", "-b", branch, path)
    for stage in ("plan", "implement", "review"):
        subprocess.run([sys.executable, "tools/roles.py", stage], cwd=shop.repository / path, check=True)
    review = shop.repository / path / "orchestrator/rounds/round-001/review-record.json"
    approved = json.loads(review.read_text())
    approved["roadmap_closeout"]["status_changes"][0]["roadmap_view_anchor"] = "nowhere"
    review.write_text(json.dumps(approved))
    live = {"round_id": "round-001", "stage": "review", "branch": branch, "worktree_path": path}
    place = shop.repository / "orchestrator/state.json"
    place.write_text(json.dumps(state(shop) | {"active_rounds": [live]}, indent=2))
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    assert shop.started_keys() == ["review"]
    (troubled,) = shop.events("round_troubled")
    assert (troubled.payload["stage"], "nowhere" in troubled.payload["reason"]) == ("blocked", True)
    moved = [one.payload["stage"] for one in shop.events("round_moved")]
    assert moved == ["review", "finalize-round"]
    assert statuses(shop) == ["done"]


@pytest.mark.more
@pytest.mark.capability("C057")
@pytest.mark.parametrize(
    ("stage", "name", "made_again"),
    [
        ("plan", "selection-record.json", ["plan", "implement", "review"]),
        ("plan", "round-plan-record.json", ["plan", "implement", "review"]),
        ("review", "review-record.json", ["review"]),
        ("finalize-round", "closeout-record.json", []),
    ],
)
def test_a_record_that_is_corrupt_is_written_again_by_its_own_role(
    shop: Workshop, stage: str, name: str, made_again: list[str]
) -> None:
    prepared(shop, 1)
    branch, path = "orchestrator/round-001-milestone-1", "orchestrator/worktrees/round-001"
    shop.git("worktree", "add", "-q", "-b", branch, path)
    before = {"plan": ("plan",)}.get(stage, ("plan", "implement", "review"))
    for one in before:
        subprocess.run([sys.executable, "tools/roles.py", one], cwd=shop.repository / path, check=True)
    (shop.repository / path / "orchestrator/rounds/round-001" / name).write_text("{}")
    live = {"round_id": "round-001", "stage": stage, "branch": branch, "worktree_path": path}
    place = shop.repository / "orchestrator/state.json"
    place.write_text(json.dumps(state(shop) | {"active_rounds": [live]}, indent=2))
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    assert shop.started_keys() == made_again
    assert statuses(shop) == ["done"]
    for file, schema in SCHEMAS.items():
        jsonschema.validate(record(shop, "round-001", file), source_schemas()[schema])


@pytest.mark.more
@pytest.mark.capability("C059")
@pytest.mark.capability("C064")
def test_an_update_that_is_rejected_three_times_blocks_the_controller(shop: Workshop) -> None:
    prepared(shop, 1, {"request": ["round-001"], "never_update": ["round-001"]})
    said = shop("run", "orchestrator", timeout=400)
    assert said.code == 3, said.out + said.err
    now = state(shop)
    update = now["roadmap_update"]
    assert (now["controller_stage"], now["roadmap_revision"]) == ("blocked", "rev-001")
    assert (update["status"], update["attempt"]) == ("blocked", 3)
    why = "the roadmap update of round-001 was rejected 3 times: say why in the rationale"
    assert now["resume_errors"]["controller"] == update["resume_error"] == why
    stages = [key for key, _ in shop.started()]
    assert stages == ["plan", *("update-roadmap", "update-review") * 3], "also where a review repeats itself"
    moves = [(one.payload["status"], one.payload["try"]) for one in shop.events("roadmap_update_moved")]
    assert moves == [
        *[("authoring", 1), ("review", 1), ("rejected", 2), ("review", 2)],
        *[("rejected", 3), ("review", 3), ("blocked", 3)],
    ]
    play(shop, update_review=[[{"run": "SCENARIO='{}' python3 tools/roles.py update-review"}]])
    said = shop("run", "orchestrator", timeout=300)
    assert said.code == 0, said.out + said.err
    assert state(shop)["roadmap_revision"] == "rev-002"


@pytest.mark.more
@pytest.mark.capability("C056")
def test_a_review_whose_round_lost_the_notes_steps_back_to_the_stage_that_writes_them(shop: Workshop) -> None:
    prepared(shop, 1)
    branch, path = "orchestrator/round-001-milestone-1", "orchestrator/worktrees/round-001"
    shop.git("worktree", "add", "-q", "-b", branch, path)
    subprocess.run([sys.executable, "tools/roles.py", "plan"], cwd=shop.repository / path, check=True)
    live = {"round_id": "round-001", "stage": "review", "branch": branch, "worktree_path": path}
    place = shop.repository / "orchestrator/state.json"
    place.write_text(json.dumps(state(shop) | {"active_rounds": [live]}, indent=2))
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    assert "round-001: return to the stage whose files are gone" in said.out
    assert "round-001: its files prove implement" in said.out
    assert shop.started_keys() == ["review", "recovery-review-1", "implement"]
    assert statuses(shop) == ["done"]


@pytest.mark.more
@pytest.mark.capability("C056")
def test_a_stale_end_is_reopened_and_a_stale_error_is_cleared(shop: Workshop) -> None:
    prepared(shop, 1, controller_stage="done", resume_errors={"controller": "planner failed"})
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    assert "recovering from: controller: planner failed" in said.out
    assert statuses(shop) == ["done"]


@pytest.mark.more
@pytest.mark.capability("C062")
def test_what_a_role_changes_of_others_is_not_merged(shop: Workshop) -> None:
    prepared(shop, 1)
    gate = shop.gate("again")
    steals = [{"run": "python3 tools/roles.py plan"}, {"write": "greet.txt", "text": "hello, planner\n"}]
    play(shop, plan=[steals], recovery_plan_1=[[gate.step]])
    running = shop.start("run", "orchestrator")
    shop.until_started("recovery-plan-1")
    kill(running)
    why = state(shop)["active_rounds"][0]["resume_error"]
    assert why == "the planner changed files that it does not own: greet.txt"
    play(shop)
    gate.let_go()
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    assert (shop.repository / "greet.txt").read_text() == "hello\n"


@pytest.mark.more
@pytest.mark.capability("C069")
def test_a_base_that_moved_is_merged_in_and_a_failed_gate_sends_the_round_back(shop: Workshop) -> None:
    prepared(shop, 1)
    gate = shop.gate("review")
    play(shop, review=[[gate.step, {"run": "python3 tools/roles.py review"}]])
    running = shop.start("run", "orchestrator")
    shop.until_started("review")
    kill(running)
    command = "test ! -e made-milestone-1 || test -e allowed"
    (shop.repository / "loopwright.toml").write_text(f'[[gates]]\nname = "greeting"\nrun = "{command}"\n')
    shop.git("commit", "-qm", "another gate", "loopwright.toml")
    gate.let_go()
    fixes = [{"run": "python3 tools/roles.py implement"}, {"write": "allowed", "text": "x\n"}]
    play(shop, implement=[fixes])
    said = shop("run", "orchestrator", timeout=280)
    assert said.code == 0, said.out + said.err
    assert "back to implement: gates fail on what would be merged: greeting" in said.out
    assert record(shop, "round-001", "closeout-record.json")["status"] in ("applied", "revalidated")
    assert shop.git("show", "trunk:allowed") == "x\n"


@pytest.mark.clause("X28")
@pytest.mark.more
@pytest.mark.capability("C023")
def test_a_change_of_meaning_in_the_active_revision_stops_the_round_until_it_is_undone(
    shop: Workshop,
) -> None:
    prepared(shop, 1)
    gate = shop.gate("review")
    play(shop, review=[[gate.step, {"run": "python3 tools/roles.py review"}]])
    running = shop.start("run", "orchestrator")
    shop.until_started("review")
    rewritten(shop, f"{ROADMAP}/roadmap.md", "- Intent: have part 1", "- Intent: have something else")
    gate.let_go()
    running.process.wait(timeout=200)
    assert "the active revision changed its meaning" in state(shop)["resume_errors"]["controller"]
    shop.git("checkout", "-q", "--", ROADMAP)
    assert shop("run", "orchestrator", timeout=200).code == 0


@pytest.mark.more
@pytest.mark.capability("C073")
def test_two_rounds_are_live_at_once_where_the_roadmap_allows_it(shop: Workshop) -> None:
    prepared(shop, 2, apart=True, max_parallel_rounds=2)
    second = [{"run": "ROUND=round-002 CHOOSE=1 python3 tools/roles.py plan"}]
    plan = [
        {"expect_prompt": "Round: round-001", "otherwise": second},
        {"run": "python3 tools/roles.py plan"},
    ]
    play(shop, plan=[plan])
    said = shop("run", "orchestrator", timeout=280)
    assert said.code == 0, said.out + said.err
    assert said.out.index("round-002 begins") < said.out.index("round-001 is merged")
    assert statuses(shop) == ["done", "done"]
    assert record(shop, "round-002", "closeout-record.json")["status"] == "revalidated"


# --- a live stage that shows nothing -----------------------------------------------------------------------


@pytest.mark.more
@pytest.mark.capability("C056")
@pytest.mark.capability("C066")
def test_three_observations_without_a_sign_start_the_ladder_and_the_agent_is_not_interrupted(
    shop: Workshop,
) -> None:
    prepared(shop, 1)
    pipe = shop.place / "pipe"
    os.mkfifo(pipe)
    silent = [{"run": f"read line < {pipe}"}, {"run": "python3 tools/roles.py implement"}]
    play(shop, implement=[silent], recovery_implement_1=[[{"run": f"read line < {pipe}.never"}]])
    os.mkfifo(f"{pipe}.never")
    shop.program.env["LOOPWRIGHT_LIMITS__IDLE"] = "20s"
    running = shop.start("run", "orchestrator")
    shop.until_started("recovery-implement-1")
    why = state(shop)["active_rounds"][0]["resume_error"]
    assert why.startswith("implement is not observable: 3 observations, each after 4 s")
    pipe.write_text("go\n")
    assert running.process.wait(timeout=200) == 0
    assert shop.started_keys() == ["plan", "implement", "recovery-implement-1", "review"]
    assert (state(shop)["retry"], statuses(shop)) == (None, ["done"])
    assert [plan.status for plan in shop.rows(Plan) if "recovery" in plan.title] == ["CANCELLED"]


@pytest.mark.more
@pytest.mark.capability("C056")
def test_a_limit_that_ends_a_silent_agent_is_the_recorded_cause_and_the_diagnosis_is_used(
    shop: Workshop,
) -> None:
    prepared(shop, 1)
    os.mkfifo(shop.place / "pipe")
    silent = [{"run": f"read line < {shop.place / 'pipe'}"}]
    told = {"expect_prompt": "The stage left no result", "otherwise": silent}
    play(shop, implement=[[told, {"run": "python3 tools/roles.py implement"}]])
    shop.program.env["LOOPWRIGHT_LIMITS__IDLE"] = "8s"
    said = shop("run", "orchestrator", "--max-attempts", "1", timeout=280)
    assert said.code == 0, said.out + said.err
    assert "implement is not observable" in said.out
    assert "round-001: delegate the stage again: implement: " in said.out
    assert shop.started_keys() == ["plan", "implement", "recovery-implement-1", "review"]
    assert shop.started().count(("implement", 1)) == 2

"""What a person is told to type next, and which runs `logs` prints: over rows that the engine wrote."""

from dataclasses import replace
from pathlib import Path

from tests.doubles import FAILED, PASSED, Home, planned
from tests.wording_plugin import Wording

from loopwright.cli.screens.advice import typed
from loopwright.cli.screens.plan_table import exit_code, tries
from loopwright.cli.screens.task_screen import task_screen
from loopwright.cli.shell.exits import ExitCode
from loopwright.core.gates.verdicts import first_line
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.replies.questions import Asking
from loopwright.core.rows.model import Attempt, Role, Run, VerdictRecord
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Check, CheckStatus, CommandResult
from loopwright.core.values.ids import Kind, short_id
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import AttemptState
from loopwright.engine.people.verifying import held_up
from loopwright.engine.rows.finishes import FinishView
from loopwright.engine.rows.moves import MACHINE, change_attempt
from loopwright.engine.rows.questions import wait_for_answers
from loopwright.engine.views.next_steps import Known, Names, next_steps
from loopwright.engine.views.views import plan_view, task_detail
from loopwright.ports import PlannedTask, Tx
from loopwright.services.recordings.log_runs import Wish, choose
from loopwright.services.views.changes import Change
from loopwright.services.views.plans import known_about


async def _one_cancelled(*more: PlannedTask) -> Home:
    """Return a home whose plan has landed everything but a task that a person cancelled, and what waits for it."""
    home = await Home().launch()
    home.submit(planned("a"), planned("b"), *more)
    first, second = await home.turn()
    home.hand.land(first)
    home.hand.park(second, None)
    await home.command("cancel", home.task("b").id)
    await home.turn()
    return home


def _plan_commands(home: Home) -> list[str]:
    view = home.store.read_sync(lambda tx: plan_view(tx, home.plan().id, home.world.paths))
    return [typed(step) for step in next_steps(view, known_about(view))]


def _task_commands(home: Home, names: Names) -> tuple[str, list[str]]:
    detail = home.store.read_sync(lambda tx: task_detail(tx, home.task("b").id, home.world.paths))
    lines, _ = task_screen(detail, {}, names=names, height=40)
    text = "\n".join(line.plain for line in lines)
    return text, [typed(step) for step in next_steps(detail, Known(names=names))]


async def test_every_cancelled_task_is_offered_and_left_out_together(wording: Wording) -> None:
    home = await _one_cancelled(planned("c", "b"))
    await home.command("cancel", home.task("c").id)
    await home.turn()
    view = home.store.read_sync(lambda tx: plan_view(tx, home.plan().id, home.world.paths))
    steps = [(typed(step).split()[1], step.why) for step in next_steps(view, known_about(view))]
    wording(steps[:3])
    late = replace(view.tasks[0], attempt=2, attempts_used=1, max_attempts=1)
    assert tries(late) == "attempt 2, 1 of 1 failed"


async def test_a_plan_that_waits_for_a_cancelled_task_names_the_ways_on() -> None:
    home = await _one_cancelled()
    plan = short_id(home.plan().id)
    without = f"loopwright reverify {plan}"
    assert _plan_commands(home) == ["loopwright retry b", without, f"loopwright cancel {plan}"]
    text, commands = _task_commands(home, Names(handle="b", may_leave_out=True))
    assert "try it again, verify the plan without it, or cancel the plan" in text
    assert commands[:3] == ["loopwright retry b --note '…'", without, f"loopwright cancel {plan}"]
    text, commands = _task_commands(home, Names(handle="b"))
    assert "not finished without it: try it again, or cancel the plan" in text
    assert commands[:2] == ["loopwright retry b --note '…'", f"loopwright cancel {plan}"]


async def test_what_waits_for_a_cancelled_task_is_named_with_the_way_on() -> None:
    home = await _one_cancelled(planned("c", "b"), planned("d", "c"))
    stuck = home.store.read_sync(lambda tx: [one.key for one in held_up(tx, home.plan().id)])
    assert stuck == ["c", "d"]
    ways = ["loopwright cancel c", "loopwright cancel d", f"loopwright cancel {short_id(home.plan().id)}"]
    assert _plan_commands(home) == ["loopwright retry b", *ways]
    text, commands = _task_commands(home, Names(handle="b", stuck=("c", "d")))
    assert "c and 1 more wait for it and cannot start: retry it; or cancel them too, then reverify" in text
    assert commands[:3] == ["loopwright retry b --note '…'", "loopwright cancel b --chain", ways[-1]]
    assert (
        "c waits for it and cannot start: retry it; or cancel c too, then reverify"
        in _task_commands(home, Names(handle="b", stuck=("c",)))[0]
    )


async def test_a_plan_that_still_has_something_to_do_is_held_up_by_nothing() -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("b"), planned("c", "b"), planned("d", "a"), policy=Policy(parallel=2))
    first, second = await home.turn()
    home.hand.park(second, None)
    await home.command("cancel", home.task("b").id)
    assert home.store.read_sync(lambda tx: held_up(tx, home.plan().id)) == [], "nothing has landed yet"
    home.hand.land(first)
    assert home.store.read_sync(lambda tx: held_up(tx, home.plan().id)) == [], "d can still be done"


async def test_a_retry_that_would_be_refused_is_not_offered() -> None:
    home = await _one_cancelled()
    await home.command("cancel", home.plan().id)
    assert _plan_commands(home) == []
    text, commands = _task_commands(home, Names(handle="b", retry_refused="its plan was cancelled"))
    assert "it cannot be tried again: its plan was cancelled" in text
    assert not any("retry" in one or "cancel" in one for one in commands)


async def test_a_task_of_a_stopped_plan_is_told_how_to_go_on() -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("b", "a"))
    [leg] = await home.turn()
    home.hand.until(leg, AttemptState.WORKING)
    await home.command("stop", home.plan().id)
    _, commands = _task_commands(home, Names(handle="b", resting=True))
    assert commands[0] == f"loopwright resume {short_id(home.plan().id)}"
    assert _plan_commands(home) == commands[:1]


async def test_a_task_that_a_person_has_is_shown_with_how_to_hand_it_back() -> None:
    home = await Home().launch()
    home.submit(planned("b"))
    [leg] = await home.turn()
    home.hand.park(leg, None)
    await home.command("take_over", home.task("b").id, directory="/mine")
    text, commands = _task_commands(home, Names(handle="b", resting=True))
    assert commands[:2] == ["loopwright take-over b --done", "loopwright take-over b --drop"]
    assert "decided by people" in text
    assert ": took it over" in text


async def _failed_with(facts: GateFiles, failure: Failure) -> Home:
    home = await Home().launch()
    home.submit(planned("b"), policy=Policy(max_attempts=1))
    [leg] = await home.turn()
    home.hand.until(leg, AttemptState.CHECKING)
    home.hand.judge(leg, FAILED)
    home.store.transact_sync(
        "changed", lambda tx: change_attempt(tx, leg.subject, leg.fence, gate_files=facts)
    )
    home.hand.fail(leg, failure)
    return home


async def test_a_red_gate_is_not_blamed_on_tests_that_the_work_added_or_changed() -> None:
    home = await _failed_with(GateFiles(pinned=("tests/test_b.py",)), Failure.GATE)
    text, commands = _task_commands(home, Names(handle="b"))
    assert "test_b.py" not in text
    assert not [one for one in commands if "--allow" in one], "the checks failed as the work has them"


async def test_checks_that_a_person_wants_kept_are_named_with_the_way_to_allow_them() -> None:
    check = "tests/test_b.py::test_b"
    facts = GateFiles(pinned=("tests/test_b.py", "tests/test_new.py"), contradicted=(check,))
    home = await _failed_with(facts, Failure.CONTRADICTION)
    _, commands = _task_commands(home, Names(handle="b"))
    assert commands[0] == f"loopwright retry b --allow {check}"


async def test_work_that_waits_for_a_decision_is_shown_with_both_answers_and_its_own_checks() -> None:
    home = await Home().launch()
    home.submit(planned("b"))
    [leg] = await home.turn()
    home.hand.until(leg, AttemptState.CHECKING)
    home.hand.judge(leg, FAILED)
    attempt = home.attempt("b")

    def wait(tx: Tx) -> None:
        asked = Asking(kind="contradiction", text="Accept?", options=("accept", "reject"))
        record = VerdictRecord(
            id=home.ids(Kind.VERDICT),
            plan_id=home.plan().id,
            tree="t",
            gate_key="k",
            run_id=attempt.run_id or "",
            verdict=PASSED,
            created_at=tx.now(),
        )
        tx.insert(record)
        run = tx.find(Run, attempt_id=attempt.id, role=Role.IMPLEMENTER)[0]
        wait_for_answers(
            tx, home.world.ids, home.plan(), attempt, run, (asked,), fence=leg.fence, verdict_id=record.id
        )

    home.store.transact_sync("wait", wait)
    _, commands = _task_commands(home, Names(handle="b"))
    [question] = home.all(Question)
    said = f"loopwright answer {short_id(question.id)}"
    assert commands[1:4] == [
        f"{said} accept",
        f"{said} reject",
        f"loopwright resume {short_id(home.plan().id)}",
    ]
    detail = home.store.read_sync(lambda tx: task_detail(tx, home.task("b").id, home.world.paths))
    assert detail.attempts[-1].failing_checks == (), "with its own files the work passes"


async def test_attempts_that_nobody_failed_are_not_counted_against_the_limit() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.until(leg, AttemptState.WORKING)
    view = home.store.read_sync(lambda tx: plan_view(tx, home.plan().id, home.world.paths))
    first = view.tasks[0]
    assert tries(first) == "attempt 1 of 3"
    assert tries(replace(first, attempt=2, attempts_used=1)) == "attempt 2 of 3"
    assert tries(replace(first, attempt=4)) == "attempt 4"
    assert tries(replace(first, attempt=4, attempts_used=1)) == "attempt 4, 1 of 3 failed"


async def test_what_a_person_asked_for_in_vain_does_not_make_a_plan_unfinished() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    view = home.store.read_sync(lambda tx: plan_view(tx, home.plan().id, home.world.paths))
    done = replace(view, status="VERIFIED", outcome="verified")
    end = FinishView(
        id="f",
        how="squash",
        state="REFUSED",
        actor="somebody",
        tasks=(),
        target_sha=None,
        commit_sha=None,
        request_url=None,
        receipt_sha256=None,
        signed=False,
        detail="",
        finished_at=None,
    )
    assert exit_code(replace(done, finishes=(end,))) is ExitCode.VERIFIED
    assert exit_code(replace(done, finishes=(replace(end, actor=MACHINE),))) is ExitCode.UNFINISHED
    assert exit_code(replace(done, finishes=(end, replace(end, state="CHECKING")))) is ExitCode.UNFINISHED
    finished = replace(end, state="FINISHED")
    assert exit_code(replace(done, finishes=(replace(end, actor=MACHINE), finished))) is ExitCode.VERIFIED


async def test_a_plan_that_asks_you_is_unfinished_even_if_other_tasks_failed() -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("b"))
    view = home.store.read_sync(lambda tx: plan_view(tx, home.plan().id, home.world.paths))
    failed, asks = (replace(view.tasks[0], status=status) for status in ("ERROR", "AWAITING_RESPONSE"))
    held = replace(view, status="RUNNING", loop_state="FAILED", tasks=(failed, asks))
    assert exit_code(held) is ExitCode.UNFINISHED
    assert exit_code(replace(held, tasks=(failed,))) is ExitCode.NOT_VERIFIED


async def test_what_was_seen_inside_a_runner_is_said_once_to_its_end_and_marks_its_command() -> None:
    home = await Home().launch()
    home.submit(planned("a"), gates=(GateCommand(name="tests", command="make test"),))
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.GATE)
    detail = home.store.read_sync(lambda tx: task_detail(tx, home.task("a").id, home.world.paths))
    words = f"1 test that passed before is missing: {'very/' * 20}test_div"
    seen = Check(id="1:tests/witness 1", name=f"tests: {words}", status=CheckStatus.FAILED, message=words)
    ran = CommandResult(
        name="tests", command="make test", exit_code=0, duration_s=1, output_sha256="", output_bytes=0
    )
    judged = replace(detail.attempts[-1], failure="gate", commands=(ran,), failing_checks=(seen,))
    lines, _ = task_screen(replace(detail, attempts=(judged,)), {}, names=Names(handle="a"), height=40)
    text = "\n".join(line.plain for line in lines)
    assert "  ✘ tests: make test" in text, "its exit code was 0, and it speaks against the work"
    assert text.count("that passed before is missing") == 1
    assert "".join(words.split()) in "".join(text.split())
    plain = Check(id="2", name="lint", status=CheckStatus.FAILED, message="exit code 1")
    assert first_line(replace(FAILED, checks=(seen, plain))) == f"lint failed; tests: {words}"


async def test_the_log_of_a_role_is_that_of_the_newest_attempt_that_had_one() -> None:
    home = await Home().launch()
    home.submit(planned("a"), policy=Policy(max_attempts=2))
    reviewed = ""
    for n in range(2):
        [leg] = await home.turn()
        home.hand.until(leg, AttemptState.WORKING)
        if not n:
            attempt = home.get(Attempt, leg.subject)
            run = home.get(Run, attempt.run_id)
            reviewer = replace(run, id=home.ids(Kind.RUN), role=Role.REVIEWER, started_at=run.created_at)
            home.store.transact_sync("reviewer", lambda tx, row=reviewer: tx.insert(row))
            reviewed = reviewer.id
        home.hand.fail(leg, Failure.GATE)
        home.clock.advance(3600)
    wish = Wish(target=home.task("a").id, role="reviewer", attempt=None)
    chosen = home.store.read_sync(lambda tx: choose(tx, wish))
    assert [run.id for run in chosen.runs] == [reviewed]
    assert list(chosen.attempts.values()) == [1]


async def test_the_log_of_a_tree_that_was_judged_before_has_the_earlier_gate() -> None:
    home = await Home().launch()
    home.submit(planned("a"), policy=Policy(max_attempts=2))
    gate: Run | None = None
    for _ in range(2):
        [leg] = await home.turn()
        home.hand.until(leg, AttemptState.CHECKING)
        gate = gate or home.hand.judge(leg, FAILED)
        judged_by = gate.id

        def judged(tx: Tx, leg: object = leg, run_id: str = judged_by) -> None:
            known = tx.find(VerdictRecord)
            record = VerdictRecord(
                id=home.ids(Kind.VERDICT),
                plan_id=home.plan().id,
                tree="t",
                gate_key="k",
                run_id=run_id,
                verdict=FAILED,
                created_at=tx.now(),
            )
            if not known:
                tx.insert(record)
            change_attempt(tx, leg.subject, leg.fence, verdict_id=(known or [record])[0].id)  # type: ignore[attr-defined]

        home.store.transact_sync("judged", judged)
        home.hand.fail(leg, Failure.GATE)
        home.clock.advance(3600)
    assert gate is not None
    task = home.task("a")
    assert [one.n for one in home.all(Attempt, task_id=task.id)] == [1, 2]

    def chosen(attempt: int | None) -> tuple[list[str], dict[str, str]]:
        wish = Wish(target=task.id, role="gate", attempt=attempt)
        found = home.store.read_sync(lambda tx: choose(tx, wish))
        return [run.id for run in found.runs], found.reused

    assert chosen(None) == ([gate.id], {gate.id: "attempt 1 at a"})
    assert chosen(1) == ([gate.id], {})


async def test_an_answer_is_never_merged_but_a_plan_that_has_no_file_yet_is_written(tmp_path: Path) -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    view = home.store.read_sync(lambda tx: plan_view(tx, home.plan().id, home.world.paths))
    made = replace(
        view, status="VERIFIED", answers="planner", title="Plan: Greet all of us", path=str(tmp_path)
    )
    assert [typed(one) for one in next_steps(made, known_about(made))] == [
        "loopwright plan 'Greet all of us'"
    ]
    judged = replace(made, answers="plan-evaluator")
    assert next_steps(judged, known_about(judged)) == ()
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "greet-all-of-us.yaml").touch()
    assert next_steps(made, known_about(made)) == ()


async def test_the_diff_of_an_attempt_that_changed_nothing_is_not_offered() -> None:
    home = await Home().launch()
    home.submit(planned("b"))
    [leg] = await home.turn()
    home.hand.park(leg, None)
    await home.command("cancel", home.task("b").id)
    await home.turn()
    detail = home.store.read_sync(lambda tx: task_detail(tx, home.task("b").id, home.world.paths))
    [attempt] = detail.attempts
    run = replace(attempt, tip_sha="b" * 40, base_sha="a" * 40, run_ids=("run_1",))
    seen = replace(detail, attempts=(run,))

    def offered(*files: str) -> bool:
        changes = {1: Change(files=files, insertions=0, deletions=0)}
        names = Names(handle="b")
        lines, steps = task_screen(seen, changes, names=names, height=40)
        told = "git diff" in "\n".join(line.plain for line in lines)
        assert told == any("git diff" in typed(one) for one in steps)
        return told

    assert offered("x.py")
    assert not offered()

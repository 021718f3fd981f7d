"""How checks become a verdict, and verdicts become outcomes."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.cases import each_case

from loopwright.core.gates.verdicts import (
    MAX_CHECKS,
    MAX_EVIDENCE,
    MAX_MESSAGE,
    bounded,
    combine,
    command_checks,
    evidence,
    first_line,
    gate_key,
    judge,
    keep_end,
    keep_ends,
    keep_start,
    of_installed,
    passed,
    plan_outcome,
    task_outcome,
    telling_line,
)
from loopwright.core.receipts.gaps import is_open
from loopwright.core.rows.model import Outcome
from loopwright.core.values.findings import (
    Check,
    CheckStatus,
    CommandResult,
    Verdict,
    VerdictStatus,
    is_sentence,
)
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import TaskState

NOW = datetime(2026, 1, 2, tzinfo=UTC)
P, F, S, E = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.SKIPPED, CheckStatus.ERROR


def result(name="test", exit_code=0, *, tail="", timed_out=False, command="make test"):
    return CommandResult(
        name=name,
        command=command,
        exit_code=exit_code,
        duration_s=1.5,
        output_sha256="0" * 64,
        output_bytes=len(tail),
        tail=tail,
        timed_out=timed_out,
    )


def check(name="c", status=P, message="", id=None):
    return Check(id=id or name, name=name, status=status, message=message)


GOOD = judge([check()], [result()])
BAD = judge([check(status=F)], [result(exit_code=1)])
BROKEN = Verdict(status=VerdictStatus.INCONCLUSIVE, reason="the gate's process was lost")
NOTHING = judge([], [])


@pytest.mark.capability("C081")
@each_case(
    ("given", "found", "expected"),
    [
        (result(), [], [("test", P, "")]),
        (result(), [check()], [("c", P, "")]),
        (result(), [check(status=S)], [("test", P, ""), ("c", S, "")]),
        (result(), [check(status=F)], [("c", F, "")]),
        (result(exit_code=3, tail="boom"), [], [("test", F, "exit code 3\nboom")]),
        (result(exit_code=1), [check()], [("test", F, "exit code 1"), ("c", P, "")]),
        (result(exit_code=-9), [], [("test", F, "ended by signal 9")]),
        (result(exit_code=None), [], [("test", F, "exit code None")]),
        (result(timed_out=True), [check()], [("test", F, "ended at its time limit of 7 s"), ("c", P, "")]),
    ],
)
def test_the_exit_code_and_the_checks_are_held_against_each_other(given, found, expected):
    got = command_checks(1, given, found, timeout_s=7.0)
    assert [(c.name, c.status, c.message) for c in got] == expected


@each_case(("code", "words"), [(127, "command not found"), (126, "cannot execute")])
def test_a_command_that_could_not_be_run_is_a_failed_check_that_says_so(code, words):
    (own,) = command_checks(1, result(exit_code=code), [], timeout_s=1)
    assert own.status is F
    assert words in own.message


def test_a_failed_command_carries_its_reason_and_only_its_last_lines():
    (own,) = command_checks(1, result(exit_code=2, tail="x\n" * 9000 + "the end"), [], timeout_s=1)
    assert own.message.startswith("exit code 2\n[cut]\n")
    assert own.message.endswith("the end")
    assert len(own.message) <= MAX_MESSAGE


@pytest.mark.capability("C078")
@pytest.mark.trap("no check")
def test_a_gate_without_commands_is_unverified_and_never_passed():
    assert NOTHING.status is VerdictStatus.UNVERIFIED
    assert not passed(NOTHING)


@pytest.mark.capability("C081")
def test_one_failed_check_fails_the_verdict_although_every_exit_code_is_0():
    verdict = judge([check("a"), check("b", F)], [result()])
    assert verdict.status is VerdictStatus.FAILED
    assert verdict.reason == "1 of 2 checks failed"


@each_case("bad", [result(exit_code=1), result(timed_out=True)])
def test_a_bad_command_fails_the_verdict_although_every_check_passed(bad):
    assert judge([check()], [result(), bad]).status is VerdictStatus.FAILED


def test_the_ids_of_checks_are_unique_within_a_verdict():
    verdict = judge([check("a"), check("a"), check("b", id="a#2"), check("a")], [result()])
    ids = [c.id for c in verdict.checks]
    assert ids[:2] == ["a", "a#2"]
    assert len(set(ids)) == 4


@each_case(
    "verdict",
    [
        None,
        BAD,
        BROKEN,
        NOTHING,
        replace(GOOD, checks=()),
        replace(GOOD, checks=(check(status=S),)),
        replace(GOOD, checks=(check(), check(status=E))),
        replace(GOOD, commands=(result(exit_code=1),)),
        replace(GOOD, commands=(result(timed_out=True),)),
    ],
)
def test_a_verdict_passes_only_when_its_own_facts_agree(verdict):
    assert passed(GOOD)
    assert not passed(verdict)


@each_case(
    ("verdicts", "status"),
    [
        ([], VerdictStatus.UNVERIFIED),
        ([NOTHING], VerdictStatus.UNVERIFIED),
        ([GOOD, NOTHING], VerdictStatus.PASSED),
        ([GOOD, GOOD], VerdictStatus.PASSED),
        ([GOOD, BROKEN], VerdictStatus.INCONCLUSIVE),
        ([BAD, BROKEN, GOOD], VerdictStatus.FAILED),
        ([GOOD, replace(GOOD, checks=(check(status=F),))], VerdictStatus.FAILED),
    ],
)
def test_a_failure_wins_then_a_broken_gate_then_a_pass(verdicts, status):
    assert combine(verdicts).status is status


def test_combined_verdicts_keep_every_check_command_and_reason():
    both = combine([GOOD, BAD, BROKEN, BROKEN])
    assert [c.id for c in both.checks] == ["c", "c#2"]
    assert len(both.commands) == 2
    assert both.reason == "1 of 1 checks failed; the gate's process was lost"


def test_more_checks_than_fit_are_summarised_and_the_bad_ones_stay():
    many = [check(f"p{n}") for n in range(MAX_CHECKS)] + [check("bad", F), check("skipped", S)]
    kept = bounded(many)
    assert len(kept) == MAX_CHECKS
    assert "bad" in [c.name for c in kept]
    assert kept[-1].name == "3 more checks"
    assert kept[-1].status is P
    assert kept[-1].message == "2 passed, 1 skipped"


def test_bad_checks_that_do_not_fit_still_fail_the_summary():
    kept = bounded([check(f"b{n}", F) for n in range(5)], limit=3)
    assert [c.name for c in kept] == ["b0", "b1", "3 more checks"]
    assert kept[-1].status is F


def test_the_messages_of_many_checks_stay_small_together():
    kept = bounded([check(f"b{n}", F, "x" * 9000) for n in range(1000)])
    assert len(kept[0].message) == MAX_MESSAGE
    assert sum(len(c.message) for c in kept) < 600_000


@pytest.mark.capability("C037")
def test_evidence_names_the_failed_checks_the_command_its_exit_code_and_last_lines():
    checks = [
        *command_checks(1, result("unit", 1, tail="E   assert 1 == 2"), [], timeout_s=1),
        check("t::a", F, "assert x\nmore", id="1:unit/t::a"),
        check("fine"),
    ]
    text = evidence(judge(checks, [result("unit", 1, tail="E   assert 1 == 2"), result("quiet")]))
    assert text.startswith("2 of 3 checks failed.")
    assert "- unit (failed): exit code 1\n" in text
    assert "- t::a (failed): assert x\n  more\n" in text
    assert 'command "unit": make test\nexit code 1, 1.5 s, last lines:\nE   assert 1 == 2' in text
    assert text.count("assert 1 == 2") == 1
    assert "quiet" not in text


def test_evidence_says_a_sentence_once():
    told = "none of its tests passed: t::a"
    text = evidence(judge([check(f"unit: {told}", F, told, id="1:unit/w")], [result("unit", 1)]))
    assert text.count(told) == 1


def test_evidence_shows_the_last_lines_of_a_command_that_ended_with_0_but_failed_a_check():
    found = [check("ui", F, id="1:gate/ui")]
    text = evidence(judge(found, [result("gate", 0, tail="details")]))
    assert text.endswith("exit code 0, 1.5 s, last lines:\ndetails")


def test_evidence_of_a_timeout_without_output_says_so():
    timed_out = result("slow", -15, timed_out=True)
    text = evidence(judge(command_checks(1, timed_out, [], timeout_s=9), [timed_out]))
    assert "- slow (failed): ended at its time limit of 9 s" in text
    assert text.endswith("ended at its time limit, 1.5 s, no output")


def test_evidence_stays_within_its_limit():
    commands = [result(f"c{n}", 1, tail="line\n" * 5000, command="x" * 5000) for n in range(30)]
    checks = [check(f"bad {n}", F, "y" * 3000) for n in range(200)]
    text = evidence(judge(checks, commands))
    assert len(text) <= MAX_EVIDENCE
    assert "[cut]" in text


def test_evidence_counts_failed_checks_that_it_does_not_list():
    text = evidence(judge([check(f"bad {n}", F) for n in range(60)], [result(exit_code=1)]))
    assert "- and 10 more" in text


@each_case("verdict", [BROKEN, NOTHING])
def test_evidence_of_a_gate_that_learned_nothing_is_its_reason(verdict):
    assert evidence(verdict) == verdict.reason


V = VerdictStatus


@pytest.mark.clause("X06")
@pytest.mark.capability("C037")
@each_case(
    ("status", "landed", "verdict", "outcome"),
    [
        (TaskState.COMPLETE, True, V.PASSED, Outcome.VERIFIED),
        (TaskState.COMPLETE, False, V.PASSED, Outcome.NO_CHANGE_PROVEN),
        (TaskState.COMPLETE, True, V.UNVERIFIED, Outcome.UNVERIFIED),
        (TaskState.COMPLETE, True, V.FAILED, Outcome.NOT_VERIFIED),
        (TaskState.COMPLETE, True, V.INCONCLUSIVE, Outcome.NOT_VERIFIED),
        (TaskState.COMPLETE, True, None, Outcome.NOT_VERIFIED),
        (TaskState.ERROR, False, V.PASSED, Outcome.NOT_VERIFIED),
        (TaskState.RUNNING, False, V.PASSED, Outcome.NOT_VERIFIED),
        (TaskState.AWAITING_RESPONSE, False, None, Outcome.NEEDS_HUMAN),
        (TaskState.CANCELLED, False, V.PASSED, Outcome.CANCELLED),
    ],
)
def test_a_task_is_verified_only_by_a_pass_on_the_tree_that_landed(status, landed, verdict, outcome):
    assert task_outcome(status=status, landed=landed, verdict=verdict) is outcome


def test_that_nothing_had_to_be_changed_is_not_proven_by_a_pass_with_an_excuse():
    excused = task_outcome(status=TaskState.COMPLETE, landed=False, verdict=V.PASSED, capped=True)
    assert excused is Outcome.VERIFIED_WITH_GAPS


def test_a_task_that_waits_for_quota_says_so():
    waiting = task_outcome(status=TaskState.QUEUED, landed=False, verdict=None, waits_for_quota=True)
    assert waiting is Outcome.WAITING_QUOTA


O = Outcome  # noqa: E741


@pytest.mark.capability("C078")
@each_case(
    ("tasks", "final", "outcome"),
    [
        ([O.VERIFIED, O.NO_CHANGE_PROVEN], V.PASSED, O.VERIFIED),
        ([O.VERIFIED], V.FAILED, O.NOT_VERIFIED),
        ([O.VERIFIED], V.INCONCLUSIVE, O.NOT_VERIFIED),
        ([O.VERIFIED], None, O.NOT_VERIFIED),
        ([O.VERIFIED], V.UNVERIFIED, O.UNVERIFIED),
        ([], V.PASSED, O.UNVERIFIED),
        ([O.VERIFIED, O.UNVERIFIED], V.PASSED, O.VERIFIED_WITH_GAPS),
        ([O.VERIFIED, O.CANCELLED], V.PASSED, O.VERIFIED_WITH_GAPS),
        ([O.CANCELLED, O.CANCELLED], V.PASSED, O.CANCELLED),
        ([O.VERIFIED, O.NOT_VERIFIED], V.PASSED, O.NOT_VERIFIED),
        ([O.NOT_VERIFIED, O.NEEDS_HUMAN, O.WAITING_QUOTA], V.PASSED, O.NEEDS_HUMAN),
        ([O.NOT_VERIFIED, O.WAITING_QUOTA], None, O.WAITING_QUOTA),
    ],
)
def test_a_plan_is_verified_only_by_gate_all_on_the_final_tree(tasks, final, outcome):
    assert plan_outcome(tasks=tasks, final=final) is outcome


def test_a_cancelled_plan_is_cancelled_whatever_its_checks_say():
    assert plan_outcome(tasks=[O.VERIFIED], final=V.PASSED, cancelled=True) is O.CANCELLED


LINT = GateCommand(name="lint", command="make lint")
TEST = GateCommand(name="test", command="make test", junit="r.xml")


@pytest.mark.capability("C079")
@each_case(
    "other",
    [
        (TEST, LINT),
        (LINT,),
        (),
        (LINT, replace(TEST, command="make tests")),
        (LINT, replace(TEST, junit=None)),
        (LINT, replace(TEST, timeout_s=1)),
        (replace(LINT, name="l"), TEST),
    ],
)
def test_the_gate_key_is_the_same_only_for_the_same_commands_in_the_same_order(other):
    assert gate_key((LINT, TEST)) == gate_key([LINT, replace(TEST, timeout_s=600)])
    assert gate_key((LINT, TEST)) != gate_key(other)


@each_case(
    ("cut", "text", "limit", "expected"),
    [
        (keep_start, "abc", 3, "abc"),
        (keep_start, "abcdefghij", 8, "ab\n[cut]"),
        (keep_end, "abc", 3, "abc"),
        (keep_end, "abcdefghij", 8, "[cut]\nij"),
        (keep_end, "abcdefghij", 4, ""),
        (keep_ends, "head\ntail", 50, "head\ntail"),
        (keep_ends, "head", 50, "head"),
        (keep_ends, "head\n0123456789", 13, "head\n[cut]\n89"),
        (keep_ends, "a long first line\n0123456789", 20, "a lo\n[cut]\n[cut]\n789"),
    ],
)
def test_a_cut_text_shows_where_it_was_cut(cut, text, limit, expected):
    assert cut(text, limit) == expected
    assert len(expected) <= limit


@each_case(
    ("command", "code", "tail", "missing"),
    [
        ("nosuch --all", 127, "/bin/sh: 1: nosuch: not found", "nosuch"),
        ("nosuch", 127, "bash: line 1: nosuch: command not found", "nosuch"),
        ("nosuch", 1, "/bin/sh: 1: nosuch: not found", ""),
        ("./run.sh", 127, "/bin/sh: 1: ./run.sh: not found", ""),
        ("make test", 127, "/bin/sh: 1: inner: not found", ""),
        ("A=1 nosuch", 127, "/bin/sh: 1: nosuch: not found", ""),
        ("nosuch", 127, "", ""),
    ],
)
def test_only_a_program_that_the_shell_did_not_find_is_missing(
    command: str, code: int, tail: str, missing: str
) -> None:
    verdict = judge([check()], [result(), result("b", code, tail=tail, command=command)])
    told = f"the program {missing!r} was not found" if missing else "0 of 1 checks failed"
    status = VerdictStatus.INCONCLUSIVE if missing else VerdictStatus.FAILED
    assert (verdict.status, verdict.reason, verdict.lasting) == (status, told, bool(missing))


def test_an_empty_output_has_no_line_to_quote() -> None:
    assert telling_line("\n \n") == ""
    assert telling_line("first\nlast\n") == "last"


def test_a_check_whose_name_ends_with_its_message_says_all() -> None:
    check = Check(id="a", name="tests: exit code 1", status=CheckStatus.FAILED, message="exit code 1")
    assert is_sentence(check)
    assert not is_sentence(replace(check, message=""))
    assert not is_sentence(replace(check, name="tests"))


def test_a_flaky_or_open_verdict_leaves_a_gap() -> None:
    result = CommandResult(
        name="tests", command="pytest", exit_code=0, duration_s=1, output_sha256="", output_bytes=0
    )
    verdict = Verdict(status=VerdictStatus.PASSED, commands=(result,))
    assert not is_open([verdict])
    assert is_open([verdict, replace(verdict, commands=(replace(result, flaky=("test_a",)),))])


def test_a_red_gate_that_tests_an_installed_build_says_that_it_may_not_see_the_work(wording):
    verdict = judge([check("t", F, id="1:unit/t")], [result("unit", 1), result("lint", 0)])
    told = of_installed(Policy(installed_gates=("unit", "lint")), verdict)
    wording(told)
    assert of_installed(Policy(installed_gates=("lint",)), verdict) == ""


def test_one_line_names_at_most_five_failed_checks_and_falls_back_to_the_reason(wording):
    many = judge([check(f"t{n}", F) for n in range(7)], [result("unit", 1)])
    assert first_line(many) == "t0, t1, t2, t3, t4 and 2 more failed"
    assert first_line(Verdict(status=VerdictStatus.FAILED, reason="it was killed")) == "it was killed"
    wording(first_line(Verdict(status=VerdictStatus.FAILED)))

"""A gate's verdict on real commands."""

import hashlib
import json
import signal
import sys
from dataclasses import replace

import psutil
import pytest
from tests.integration.gates.desks import command, ended
from tests.waiting import eventually

from loopwright.adapters.gates.commands import CommandGate, OutputLimits
from loopwright.adapters.gates.records import evidence_file
from loopwright.core.gates.verdicts import killed_in
from loopwright.core.values.findings import CheckStatus, VerdictStatus

FAILED, PASSED, BROKEN = VerdictStatus.FAILED, VerdictStatus.PASSED, VerdictStatus.INCONCLUSIVE


def summary(verdict):
    return [(c.name, c.status.value) for c in verdict.checks]


@pytest.mark.capability("C078", "C079")
def test_commands_run_in_their_order_in_the_tree_and_each_is_a_check(desk):
    (desk.tree / "here").write_text("x")
    verdict, out, code = desk.run(
        command("test -f here && echo one >>log", "first"),
        command("echo two >>log", "second"),
        command("cat log", "third"),
    )
    assert code == 0
    assert verdict.status is PASSED
    assert summary(verdict) == [("first", "passed"), ("second", "passed"), ("third", "passed")]
    assert [c.name for c in verdict.commands] == ["first", "second", "third"]
    assert verdict.commands[2].output_sha256 == hashlib.sha256(b"one\ntwo\n").hexdigest()
    assert verdict.commands[2].tail == "one\ntwo\n"
    lines = out.splitlines()
    assert lines[0] == "=== 1/3 first: test -f here && echo one >>log"
    assert lines[4:7] == ["=== 3/3 third: cat log", "one", "two"]


@pytest.mark.capability("C078")
def test_a_failed_command_does_not_stop_the_later_ones(desk):
    verdict, _, code = desk.run(
        command("echo out; echo err >&2; exit 3", "bad"), command("touch ran", "later")
    )
    assert code == 1
    assert (desk.tree / "ran").exists()
    assert verdict.status is FAILED
    assert summary(verdict) == [("bad", "failed"), ("later", "passed")]
    assert verdict.checks[0].message == "exit code 3\nout\nerr"


@pytest.mark.capability("C081")
def test_exit_code_0_with_a_failed_check_line_is_a_failure(desk):
    verdict, _, code = desk.run(command("echo '[PASS] a'; echo '[FAIL] b: broken'; exit 0"))
    assert code == 0
    assert verdict.status is FAILED
    assert summary(verdict) == [("a", "passed"), ("b", "failed")]
    assert verdict.checks[1].message == "broken"


@pytest.mark.capability("C078")
def test_a_command_without_output_passes_by_its_exit_code(desk):
    verdict, _, _ = desk.run(command("true"))
    assert verdict.status is PASSED
    assert verdict.commands[0].output_bytes == 0


def test_a_command_that_does_not_exist_tells_nothing_of_the_work_and_says_so(desk, wording):
    verdict, _, _ = desk.run(command("no-such-program-anywhere"))
    assert (verdict.status, verdict.lasting) == (VerdictStatus.INCONCLUSIVE, True)
    wording(verdict.checks[0].message)


def test_a_command_that_was_killed_names_the_signal(desk, wording):
    verdict, _, _ = desk.run(command("kill -9 $$"))
    wording(verdict.checks[0].message)


def test_what_something_outside_ended_is_told_from_what_crashed_and_from_what_failed(desk, wording):
    """Also where a shell tells of a child of it."""
    ways = {
        "kill -9 $$": 9,
        "sh -c 'kill -9 $$'; exit $?": 9,
        "kill -15 $$": 15,
        "sh -c 'kill -15 $$'; exit $?": 15,
        "kill -1 $$": 1,
        "kill -11 $$": None,
        "kill -6 $$": None,
        "exit 129": None,
        "exit 1": None,
    }
    verdict, _, _ = desk.run(*(command(way, f"way {n}") for n, way in enumerate(ways)))
    for result, number in zip(verdict.commands, ways.values(), strict=True):
        killed = killed_in(replace(verdict, commands=(result,)))
        assert (killed and killed.signal) == number, result
    killed = killed_in(verdict)
    assert killed is not None
    wording(killed.reason)
    late, _, _ = desk.run(command("trap 'kill -9 $$' TERM; sleep 60 & wait", timeout_s=0.5))
    assert killed_in(late) is None, "that was its own time limit"


def is_alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_timeout_ends_the_whole_group_and_names_the_limit(desk):
    stubborn = "trap '' TERM; sleep 300 & echo $! >child; echo begun; while :; do sleep 0.05; done"
    verdict, _, code = desk.run(
        command(stubborn, "slow", timeout_s=0.5), command("true", "next"), gate=CommandGate(term_grace_s=0.3)
    )
    assert code == 1
    assert summary(verdict) == [("slow", "failed"), ("next", "passed")]
    assert verdict.checks[0].message == "ended at its time limit of 0.5 s\nbegun"
    assert verdict.commands[0].timed_out
    child = int((desk.tree / "child").read_text())
    eventually(lambda: not is_alive(child))


def test_a_command_that_cleans_up_on_term_within_its_grace_is_not_killed(desk):
    polite = "trap 'echo cleaned; exit 0' TERM; while :; do sleep 0.05; done"
    verdict, _, _ = desk.run(command(polite, timeout_s=0.3))
    assert verdict.status is FAILED
    assert verdict.commands[0].tail.endswith("cleaned\n")


def test_what_a_command_leaves_running_is_ended_and_holds_nothing_up(desk):
    verdict, _, _ = desk.run(command("sleep 300 & echo $! >child; echo done"))
    assert verdict.status is PASSED
    assert verdict.commands[0].duration_s < 10
    child = int((desk.tree / "child").read_text())
    eventually(lambda: not is_alive(child))


def test_what_a_command_leaves_running_may_clean_up(desk):
    left = "trap 'echo bye; exit' TERM; touch ready; while :; do sleep 0.02; done"
    verdict, _, _ = desk.run(command(f"({left}) & while [ ! -f ready ]; do sleep 0.02; done"))
    assert verdict.status is PASSED
    assert verdict.commands[0].tail.endswith("bye\n")


def test_a_command_that_closes_its_output_is_still_waited_for(desk):
    verdict, _, _ = desk.run(command("exec >&- 2>&-; sleep 0.2; exit 4"))
    assert verdict.commands[0].exit_code == 4
    verdict, _, _ = desk.run(command("exec >&- 2>&-; sleep 60", timeout_s=0.2))
    assert verdict.commands[0].timed_out


def test_a_process_that_left_the_group_cannot_hold_the_gate_up(desk):
    escape = f"{sys.executable} -c 'import os,time; os.setsid(); time.sleep(3)' & sleep 0.3; echo done"
    verdict, _, _ = desk.run(command(escape))
    assert verdict.status is PASSED
    assert verdict.commands[0].duration_s < 2.9


def test_much_output_is_hashed_whole_and_kept_in_part(desk):
    limits = OutputLimits(head_bytes=100, tail_bytes=100, mark_bytes=100)
    noisy = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; exit 1"
    verdict, out, _ = desk.run(command(noisy), gate=CommandGate(limits=limits))
    whole = b"".join(b"line %d\n" % i for i in range(2000))
    assert verdict.commands[0].output_sha256 == hashlib.sha256(whole).hexdigest()
    assert verdict.commands[0].output_bytes == len(whole)
    kept = evidence_file(desk.directory, "1").read_bytes()
    assert kept.startswith(b"line 0\n")
    assert kept.endswith(b"line 1999\n")
    assert len(kept) < 300
    assert b"bytes left out" in kept
    assert kept.decode() in out
    assert verdict.checks[0].message.endswith("line 1999")


@pytest.mark.capability("C081")
def test_a_failed_check_in_the_middle_of_much_output_is_not_lost(desk, wording):
    limits = OutputLimits(head_bytes=64, tail_bytes=64, mark_bytes=40)
    noise = "i=0; while [ $i -lt 300 ]; do echo noise noise $i; i=$((i+1)); done"
    marks = "echo '[FAIL] in the middle'; echo '[PASS] fine'; echo '[FAIL] does not fit any more'"
    verdict, _, _ = desk.run(command(f"{noise}; {marks}; {noise}"), gate=CommandGate(limits=limits))
    assert verdict.status is FAILED
    wording(summary(verdict))


def test_an_endless_line_and_bytes_that_are_no_text_do_no_harm(desk):
    script = "head -c 300000 /dev/zero | tr '\\0' x; printf '\\377\\000\\n[PASS] after'"
    verdict, _, _ = desk.run(command(script))
    assert verdict.status is PASSED
    assert summary(verdict) == [("after", "passed")]
    assert verdict.commands[0].output_bytes == 300_000 + 3 + len("[PASS] after")
    assert "\x00" not in verdict.commands[0].tail


def test_a_line_without_an_end_is_passed_on_while_it_grows(desk):
    gate = CommandGate()
    endless = "head -c 300000 /dev/zero | tr '\\0' x; while [ ! -f go ]; do sleep 0.02; done"
    with desk.start(gate, desk.request(command(endless, timeout_s=20))) as process:
        seen = process.stdout.read(200_000)
        (desk.tree / "go").touch()
        process.communicate(timeout=30)
    assert seen.endswith(b"xxxx")


def test_secrets_are_taken_out_before_anything_is_stored(desk):
    shape = "ghp_" + "a" * 30
    script = """
        echo $PASSWORD; cat token; head -c 66000 /dev/zero | tr '\\0' x; echo $PASSWORD
        echo "<testsuite><testcase name='t'><failure>$PASSWORD</failure></testcase></testsuite>" >r.xml
        exit 1
    """
    (desk.tree / "token").write_text(shape)
    verdict, out, _ = desk.run(
        command(script, junit="r.xml"),
        gate=CommandGate(secrets=("hunter2hunter2",)),
        PASSWORD="hunter2hunter2",
    )
    assert [c.message.partition("\n")[0] for c in verdict.checks] == ["exit code 1", "[redacted]"]
    stored = {path.name: path.read_text() for path in (desk.directory / "gate").iterdir()}
    assert set(stored) == {"job.json", "results.json", "1.out", "1.xml"}
    assert stored["1.out"].count("[redacted]") == 2, (
        "the token goes on up to the password, which goes with it"
    )
    for text in (out, repr(verdict), *stored.values()):
        assert "hunter2" not in text
        assert shape not in text


def test_the_environment_of_a_command_does_not_reveal_where_results_are_kept(desk):
    verdict, out, _ = desk.run(command("env; pwd", "look"))
    shown = out.split("\n", 1)[1]
    assert str(desk.directory) not in shown
    assert verdict.status is PASSED


def test_results_that_a_command_wrote_itself_are_overwritten(desk):
    results = desk.directory / "gate" / "results.json"
    forged = {"schema": "loopwright.gate/1", "complete": True, "commands": []}
    verdict, _, _ = desk.run(command(f"echo '{json.dumps(forged)}' >{results}; exit 1"))
    assert verdict.status is FAILED


# --- nothing was learned ---------------------------------------------------------------------------


@pytest.mark.capability("C078")
@pytest.mark.parametrize(
    ("exit", "words"),
    [
        (ended(None, "lost"), "lost"),
        (ended(None, "not_started", "no such file"), "could not be started: no such file"),
        (ended(-9, "deadline"), "hard limit"),
        (ended(-15, "asked"), "stopped before"),
        (ended(-15, "idle"), "no sign of life"),
        (ended(-15, "done_hang"), "did not exit"),
        (ended(-11), "runner died (exit code -11)"),
        (ended(70), "runner died"),
    ],
)
def test_a_gate_that_did_not_end_by_itself_is_broken_and_says_nothing_about_the_tree(desk, exit, words):
    desk.run(command("true"))
    verdict = CommandGate().verdict(desk.request(command("true")), exit)
    assert verdict.status is BROKEN
    assert words in verdict.reason
    assert verdict.checks == ()


def test_a_gate_without_results_is_broken(desk, wording):
    verdict = CommandGate().verdict(desk.request(command("true")), ended())
    assert verdict.status == BROKEN
    wording(verdict.reason)


@pytest.mark.capability("C078")
def test_no_commands_are_unverified(desk):
    verdict = CommandGate().verdict(desk.request(), ended())
    assert verdict.status is VerdictStatus.UNVERIFIED


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda data: None, "another shape"),
        (lambda data: data | {"schema": "x"}, "did not run all"),
        (lambda data: data | {"complete": False}, "did not run all"),
        (lambda data: data | {"commands": []}, "did not run all"),
        (lambda data: data | {"commands": [data["commands"][0] | {"command": "x"}]}, "another command"),
        (lambda data: data | {"commands": [data["commands"][0] | {"exit_code": "0"}]}, "another shape"),
        (lambda data: data | {"commands": [data["commands"][0] | {"lost": 1}]}, "another shape"),
        (lambda data: data | {"commands": [{}]}, "another shape"),
    ],
)
def test_results_of_another_shape_are_a_broken_gate(desk, spoil, words):
    desk.run(command("true"))
    results = desk.directory / "gate" / "results.json"
    results.write_text(json.dumps(spoil(json.loads(results.read_text()))))
    verdict = CommandGate().verdict(desk.request(command("true")), ended())
    assert verdict.status is BROKEN
    assert words in verdict.reason


@pytest.mark.parametrize("text", ["", "{", "\xff\xfe"])
def test_results_that_are_no_json_are_a_broken_gate(desk, text, wording):
    desk.run(command("true"))
    (desk.directory / "gate" / "results.json").write_text(text, encoding="latin-1")
    verdict = CommandGate().verdict(desk.request(command("true")), ended())
    assert verdict.status is BROKEN
    wording(verdict.reason)


def test_an_output_that_was_changed_later_is_a_broken_gate(desk, wording):
    desk.run(command("echo '[FAIL] x'"))
    kept = evidence_file(desk.directory, "1")
    kept.write_text("[PASS] x\n")
    request = desk.request(command("echo '[FAIL] x'"))
    wording(CommandGate().verdict(request, ended()).reason)
    kept.unlink()
    wording(CommandGate().verdict(request, ended()).reason)


def test_a_tree_that_is_gone_is_a_broken_gate(desk, wording):
    gate = CommandGate()
    request = desk.request(command("rm -rf ../tree", "eats"), command("true", "hungry"))
    with desk.start(gate, request) as process:
        process.communicate(timeout=60)
    verdict = gate.verdict(request, ended(process.returncode))
    assert verdict.status is BROKEN
    wording(verdict.reason)


def test_a_verdict_asked_for_again_is_the_same_also_without_the_tree(desk):
    asked = command("echo '[PASS] x'; exit 1")
    first, _, code = desk.run(asked)
    desk.tree.rmdir()
    assert CommandGate().verdict(desk.request(asked), ended(code)) == first


# --- the runner and its keeper ---------------------------------------------------------------------


def test_a_runner_that_is_asked_to_stop_ends_its_command_and_runs_no_other(desk, wording):
    gate = CommandGate(term_grace_s=1.0)
    request = desk.request(command("echo $$ >pid; sleep 300", "long"), command("touch ran", "next"))
    with desk.start(gate, request) as process:
        pid = int(eventually(lambda: (desk.tree / "pid").exists() and (desk.tree / "pid").read_text()))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 70
    assert not is_alive(pid)
    assert not (desk.tree / "ran").exists()
    assert gate.verdict(request, ended(70)).status is BROKEN
    wording(gate.verdict(request, ended(0)).reason)


def test_a_runner_whose_reader_went_away_still_records_its_results(desk):
    gate = CommandGate()
    request = desk.request(command("while [ ! -f go ]; do sleep 0.02; done; seq 100000; echo '[PASS] x'"))
    with desk.start(gate, request) as process:
        process.stdout.close()
        (desk.tree / "go").touch()
        process.wait(timeout=30)
    assert process.stderr.closed
    verdict = gate.verdict(request, ended(process.returncode))
    assert verdict.status is PASSED


def test_the_spec_gives_the_keeper_a_limit_above_all_commands_and_can_be_made_again(desk):
    gate = CommandGate(term_grace_s=3.0, secrets=("s3cret-value",))
    request = desk.request(command("a", timeout_s=10), command("b", timeout_s=20), TOKEN="s3cret-value")
    spec = gate.spec(request)
    assert spec == gate.spec(request)
    assert 30 + 2 * 3 < spec.limits.hard < 100
    assert (spec.limits.idle, spec.limits.done_grace) == (None, None)
    assert spec.cwd == desk.tree
    assert spec.env == request.env
    assert spec.secrets == ("s3cret-value",)
    assert spec.argv[1:3] == ("-I", "-S")
    assert "s3cret-value" not in (desk.directory / "gate" / "job.json").read_text()


def test_checks_of_commands_with_the_same_name_keep_their_own_ids(desk):
    verdict, _, _ = desk.run(command("true", "same"), command("false", "same"))
    assert [(c.id, c.status) for c in verdict.checks] == [
        ("1:same", CheckStatus.PASSED),
        ("2:same", CheckStatus.FAILED),
    ]

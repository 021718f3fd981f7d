"""`loopwright show`: one task on one screen, and runs and plans."""

import json
import re

import pytest
from tests.acceptance.cli.conftest import Live
from tests.acceptance.sandbox import Sandbox, task


def test_a_failed_task_is_explained_on_one_screen(finished: Sandbox) -> None:
    out = finished("show", "broken").out
    assert len(out.splitlines()) <= 40
    parts = [
        "✘  broken  Make broken",
        "failed: A check failed on the result; read its last lines. (2 of 2 attempts)",
        "likely cause: ",
        "\nexpected\n",
        "✘ broken is right: cat broken.txt",
        "✔ greeting: grep -q hello greet.txt",
        "· The word right is in the file.",
        "failed: broken is right (exit code 1), last lines",
        "  second try",
        "  expected the word right, but it is not there",
        "\nattempts\n",
        "1  rejected (gate)  scripted",
        "broken.txt  +1 -0",
        "2  rejected (gate)  scripted",
        "broken.txt, more.txt  +2 -0",
        "\nto do\n",
        "loopwright retry broken --model",
        "loopwright retry broken --agent",
        "loopwright retry broken --note",
        "loopwright logs broken",
        "loopwright cancel broken",
    ]
    places = [out.index(part) for part in parts]
    assert places == sorted(places)


def test_the_printed_git_command_shows_what_the_attempt_changed(finished: Sandbox) -> None:
    command = next(line.strip() for line in finished("show", "broken").out.splitlines() if "git diff" in line)
    assert "+first try" in finished.git(*command.split()[1:])


@pytest.mark.parametrize("rows", [24, 40])
def test_the_screen_fits_the_terminal_and_no_command_is_cut(finished: Sandbox, rows: int) -> None:
    out = finished.on_terminal("show", "broken", columns=80, rows=rows)
    lines = out.rstrip("\n").split("\n")
    assert len(lines) < rows, "the prompt of the shell needs a line too"
    assert max(map(len, lines)) <= 80
    assert any("expected the word right" in line for line in lines)


def test_a_landed_task_says_what_landed_and_which_checks_passed(finished: Sandbox) -> None:
    out = finished("show", "fine").out
    commit = finished("status", "--json").document["plan"]["tasks"][0]["commit"]
    assert "✔  fine  Make fine" in out
    assert f"{commit[:10]} on loopwright/plan_" in out
    assert "fine.txt  +1 -0" in out
    assert "✔ fine is right" in out
    assert f"git show {commit[:10]}" in out


def test_the_diff_of_a_task_is_what_landed_or_what_the_newest_attempt_changed(finished: Sandbox) -> None:
    assert "+right" in finished("diff", "fine").out
    broken = finished("diff", "broken").out
    assert "+second try" in broken
    assert "+first try" not in broken


def test_a_task_that_waits_names_what_holds_it_up(finished: Sandbox) -> None:
    out = finished("show", "after").out
    assert "queued: waits for broken" in out
    assert "loopwright status broken" in out
    assert finished("diff", "after").code == 2


def test_the_task_of_an_older_plan_is_shown_with_commands_that_mean_it(
    finished: Sandbox, good_plan: str
) -> None:
    one = finished("status", good_plan, "--json").document["plan"]["tasks"][0]["id"]
    assert "loopwright logs one" in finished("show", one).out


def test_a_task_as_json_has_attempts_and_changes(finished: Sandbox) -> None:
    found = finished("show", "broken", "--json").document
    assert found["changes"]["2"] == {"files": ["broken.txt", "more.txt"], "insertions": 2, "deletions": 0}
    assert [attempt["failure"] for attempt in found["task"]["attempts"]] == ["gate", "gate"]
    assert found["task"]["attempts"][0]["commands"][0]["exit_code"] == 1
    assert found["task"]["criteria"] == ["The word right is in the file."]


def test_an_id_that_could_be_many_is_refused_with_their_names(finished: Sandbox) -> None:
    said = finished("show", "plan_")
    assert said.code == 2
    assert "could be any of 2" in said.err
    assert re.search(
        r"\n  plan_\w{8}  running   .* ago +bad\n  plan_\w{8}  verified  .* ago +good\n", said.err
    )
    assert re.search(r"for example: loopwright show plan_\w{8}\n", said.err)


def test_status_of_a_task_or_a_plan_is_what_show_prints(finished: Sandbox, good_plan: str) -> None:
    for target in ("broken", good_plan):
        assert finished("status", target).out == finished("show", target).out
    assert finished("status", "broken", "--json").document["task"]["task"]["key"] == "broken"
    refused = finished("status", "broken", "--exit-code")
    assert refused.code == 2
    assert "--exit-code is about a plan" in refused.err


def test_a_plan_is_shown_with_its_gate_and_its_settings(finished: Sandbox, good_plan: str) -> None:
    out = finished("show", good_plan).out
    assert "gate:all  passed" in out
    assert "agent     scripted, permission mode auto, 2 at once, 3 attempts each" in out
    assert "loopwright receipt show" in out
    assert "+right" in finished("diff", good_plan).out
    found = finished("show", good_plan, "--json").document
    assert found["verdict"]["status"] == "passed"


def test_a_run_is_shown_with_its_facts(finished: Sandbox) -> None:
    run = finished("show", "broken", "--json").document["task"]["attempts"][0]["run_ids"][0]
    out = finished("show", run).out
    assert f"{run}  implementer  complete" in out
    assert "broken attempt 1" in out
    assert "$0.01" in out
    assert "1200 in, 300 out" in out
    assert json.loads(finished("show", run, "--json").out)["run"]["exit_code"] == 0


def test_a_running_task_says_what_it_does_and_how_to_follow_it(live: Live) -> None:
    out = live("show", "slow").out
    assert "scripted (attempt 1 of 3): first words" in out
    assert "loopwright logs slow --follow" in out


def test_an_agent_that_gave_up_is_quoted(sandbox: Sandbox) -> None:
    sandbox.play({"hard": [[{"fail": "refusal", "message": "I would rather not."}]]})
    sandbox.run(sandbox.plan("hard", [task("hard", "test -d .")]), "--max-attempts", "1")
    out = sandbox("show", "hard").out
    assert "The model refused the task; reword it." in out
    assert "failed: refusal\n  I would rather not." in out


def test_a_very_long_failure_still_fits_one_screen(sandbox: Sandbox) -> None:
    noise = "for i in $(seq 300); do echo line $i of a very long story that goes on and on and on and on; done; exit 1"
    checks = [f"test {n} -ge 0" for n in range(12)]
    sandbox.play(
        {"long": [[{"write": f"f{n}", "text": "x\n"} for n in range(attempt, 20)] for attempt in range(5)]}
    )
    plan = sandbox.plan("long", [task("long", noise, *checks, criteria=[f"criterion {n}" for n in range(9)])])
    assert sandbox.run(plan, "--max-attempts", "5").code == 1
    out = sandbox("show", "long").out
    assert len(out.splitlines()) <= 40
    assert "line 300 of a very long story" in out
    assert "and 2 earlier" in out
    assert "loopwright retry long" in out

"""The check that a planner's answer has to pass."""

from pathlib import Path

import pytest
from tests.wording_plugin import Wording

from loopwright.services.plans.evaluation_check import main as evaluation_check
from loopwright.services.plans.spec_check import GATES, main

TASK = "tasks:\n  - {id: a, title: x, acceptance: [make a]}\n"
GATED = "gates: [make test]\n"
BARE = "tasks:\n  - {id: a, title: x}\n"


@pytest.mark.parametrize(
    ("plan", "arguments", "said"),
    [
        (TASK, [], ""),
        (TASK, [GATES], ""),
        (GATED + TASK, [GATES], ""),
        (GATED + TASK, [], "gates: the project has its own checks"),
        (GATED + BARE, [GATES], "no criterion can fail: no task has acceptance"),
        (BARE, [], "no criterion can fail: no task has acceptance"),
        (TASK + "  - {id: b, title: y}\n", [], ""),
        (GATED + TASK + "  - {id: b, title: y}\n", [GATES], ""),
        (
            TASK + "  - {id: b, title: y}\n",
            [GATES],
            "no criterion can fail where nothing checks the work of b",
        ),
        (BARE, [GATES], "no criterion can fail where nothing checks the work of a"),
        (TASK.replace("make a", "':'"), [], "no criterion can fail"),
        (TASK.replace("]}", "], held_out: [make b]}"), [], ""),
        (
            TASK.replace("]}", "], held_out: ['true']}"),
            [],
            "a command that always passes checks nothing: true",
        ),
        (TASK + "settings: {parallel: 9}\n", [], "settings: they are not part of what you plan"),
        (TASK.replace("title: x", "title: x, agent: codex"), [], "task a: agent: leave it out"),
        (TASK.replace("title: x", "title: x, may_change: tests/"), [], "task a: may_change: leave it out"),
        ("I will not.\n", [], "instead of a plan the answer has: title: t I will not."),
    ],
)
@pytest.mark.capability("C019")
def test_what_is_wrong_with_a_plan_is_said_in_words(
    plan: str,
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(f"title: t\n{plan}")
    code = main([*arguments, "p.yaml"])
    out = " ".join(capsys.readouterr().out.split())
    assert (code, said in out) == (int(bool(said)), True)
    assert said or not out


def test_all_that_is_wrong_is_named_and_no_plan_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wording: Wording
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text("title: t\n" + TASK.replace("make a", "':'") + "settings: {parallel: 9}\n")
    assert main(["p.yaml"]) == 1
    said = capsys.readouterr().out
    assert "settings: they are not part" in said
    assert "no criterion can fail" in said
    Path("p.yaml").write_text("I would\nrather not.\n")
    assert main(["p.yaml"]) == 1
    [only] = capsys.readouterr().out.splitlines()
    wording(only)
    assert only.endswith("instead of a plan the answer has: I would rather not.")


def test_an_answer_that_says_nothing_of_a_plan_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wording: Wording
) -> None:
    path = tmp_path / "e.json"
    assert evaluation_check([str(path)]) == 1
    wording(capsys.readouterr().out)
    path.write_text('{"findings": []}')
    assert evaluation_check([str(path)]) == 0

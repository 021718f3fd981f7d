"""Plans that cannot be used: told with their place before anything is made or spent."""

import pytest
from tests.acceptance.sandbox import Sandbox, task

HEAD = "title: Broken\ngates: ['true']\ntasks:\n"
BAD = {
    "no YAML": (HEAD + "  - id: [a\n", (":5: this is not YAML",)),
    "many mistakes": (
        HEAD + "  - {id: a, title: A, depends_on: zz}\n  - {id: a, title: B, depend_on: a}\n",
        (
            ':4: tasks[0].depends_on: unknown task "zz"',
            ':5: tasks[1].id: "a" is already on line 4',
            ':5: tasks[1].depend_on: unknown key (did you mean "depends_on"?)',
        ),
    ),
    "a circle": (
        HEAD + "  - {id: a, title: A, depends_on: b}\n  - {id: b, title: B, depends_on: a}\n",
        (":4: tasks[0].depends_on: these tasks wait for each other: a -> b -> a",),
    ),
    "an empty file": ("", ("the file is empty",)),
}


def check_nothing_was_made(sandbox: Sandbox) -> None:
    """The home, the state folder and the repository are as if nobody had called."""
    assert not (sandbox.home / "loopwright.db").exists()
    assert not (sandbox.repository / ".loopwright").exists()
    assert sandbox.git("for-each-ref", "--format=%(refname)").split() == ["refs/heads/trunk"]
    assert sandbox.git("status", "--porcelain") == ""


@pytest.mark.capability("C004", "C020")
@pytest.mark.parametrize("what", BAD)
def test_a_plan_that_cannot_be_used_is_refused_with_the_place_of_each_mistake(
    sandbox: Sandbox, what: str
) -> None:
    text, expected = BAD[what]
    path = sandbox.place / "broken.yaml"
    path.write_text(text)
    said = sandbox("run", str(path))
    assert said.code == 2
    assert said.err.startswith("error: broken.yaml")
    for mistake in expected:
        assert mistake in said.err
    assert said.out == ""
    check_nothing_was_made(sandbox)


def test_a_program_gets_the_same_refusal_as_one_document(sandbox: Sandbox) -> None:
    path = sandbox.place / "broken.yaml"
    path.write_bytes(b"title: \xff\n")
    said = sandbox("run", str(path), "--json")
    assert said.code == said.document["exit_code"] == 2
    assert said.document["error"]["code"] == "bad_plan"
    assert ":1: this is not UTF-8" in said.document["error"]["message"]
    assert said.err == ""


def test_a_plan_that_is_not_there_is_refused(sandbox: Sandbox) -> None:
    said = sandbox("run", str(sandbox.place / "gone.yaml"))
    assert (said.code, f"{sandbox.place}/gone.yaml: there is no such file" in said.err) == (2, True), said.err
    check_nothing_was_made(sandbox)


@pytest.mark.trap("no check")
def test_work_that_nothing_would_check_is_refused_before_any_of_it_is_done(sandbox: Sandbox) -> None:
    said = sandbox("run", str(sandbox.plan("unchecked", [task("a")], gates=[])))
    assert said.code == 2
    assert "nothing would check the work of: a" in said.err
    assert "`allow_unverified`" in said.err
    check_nothing_was_made(sandbox)


@pytest.mark.capability("C029")
@pytest.mark.parametrize(
    ("agent", "expected"),
    [("claude", "the program 'claude' was not found"), ("clod", "no agent named 'clod'")],
)
def test_an_agent_that_is_not_there_is_told_before_anything_is_made(
    sandbox: Sandbox, agent: str, expected: str
) -> None:
    plan = sandbox.plan("p", [task("a", "test -d .")])
    said = sandbox("run", str(plan), "--agent", agent, env={"PATH": "/usr/bin:/bin"})
    assert said.code in (2, 6)
    assert expected in said.err
    assert "`loopwright doctor`" in said.err
    check_nothing_was_made(sandbox)

"""`loopwright plan check`: what can be known before any money is spent."""

from pathlib import Path

import pytest
from tests.acceptance.cli.program import Program, executable, git, repository

from loopwright.testing.sample import demo_plan, make_sample_repository

BAD = """\
title: Bad
tasks:
  - id: one
    title: One
    depends_on: [tow]
  - id: two
    titel: Two
    max_attempts: many
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    make_sample_repository(folder)
    (folder / "plan.yaml").write_text(demo_plan())
    return folder


def test_a_good_plan_is_shown_with_its_longest_chain_and_its_width(program: Program, shop: Path) -> None:
    said = program("plan", "check", "plan.yaml", "--no-run", cwd=shop)
    assert said.code == 0
    assert "7 tasks, critical path 4 (discounts → totals → receipts → readme)" in said.out
    assert "up to 3 at once, 2 with the setting parallel" in said.out
    assert "python3 -B -m unittest -q" in said.out
    assert "ok: the plan is good" in said.out
    assert "no held-out check for money, discounts, stock" in " ".join(said.out.split())
    assert 'held_out: ["python3' in said.out or "held_out: {run:" in said.out
    assert not program.home.exists(), "looking leaves nothing in the home"
    assert git(shop, "status", "--porcelain").split() == ["??", "plan.yaml"]


def test_the_same_facts_are_there_for_programs(program: Program, shop: Path) -> None:
    agent = executable(program.user / "claude", "echo 1.2.3")
    env = {"LOOPWRIGHT_AGENTS__CLAUDE__BINARY": str(agent)}
    said = program("plan", "check", "plan.yaml", "--json", cwd=shop, env=env)
    plan = said.document["plan"]
    assert said.code == said.document["exit_code"] == 0
    assert [task["key"] for task in plan["tasks"]][:3] == ["money", "discounts", "stock"]
    assert plan["critical_path"] == ["discounts", "totals", "receipts", "readme"]
    assert plan["parallel_width"] == 3
    assert [gate["name"] for gate in plan["gates"]] == ["tests"]
    assert plan["gates_origin"] == "plan plan.yaml"
    assert [(one["name"], one["usable"], one["path"]) for one in plan["agents"]] == [
        ("claude", True, str(agent))
    ]
    assert plan["notes"] == []
    assert list(plan["held_out_proposals"]) == [task["key"] for task in plan["tasks"] if task["acceptance"]]


@pytest.mark.capability("C004")
def test_every_problem_of_a_bad_plan_is_named_with_its_line(program: Program, shop: Path) -> None:
    (shop / "bad.yaml").write_text(BAD)
    said = program("plan", "check", "bad.yaml", cwd=shop)
    assert said.code == 2
    assert "bad.yaml cannot be run: 4 problems" in said.err
    assert 'bad.yaml:5: tasks[0].depends_on: unknown task "tow"' in said.err
    assert 'bad.yaml:7: tasks[1].titel: unknown key (did you mean "title"?)' in said.err
    assert "bad.yaml:6: tasks[1].title: missing" in said.err
    assert "bad.yaml:8: tasks[1].max_attempts: expected a whole number" in said.err
    assert said.out == ""
    as_json = program("plan", "check", "bad.yaml", "--json", cwd=shop)
    assert as_json.code == as_json.document["exit_code"] == 2
    assert len(as_json.document["error"]["problems"]) == 4


def test_an_agent_that_is_not_installed_is_told_but_no_fault_of_the_plan(
    program: Program, shop: Path
) -> None:
    said = program("plan", "check", "plan.yaml", cwd=shop)
    assert said.code == 0
    assert "warn: agent claude: the program 'claude' was not found" in said.out
    assert "install Claude Code" in said.out


def test_an_agent_that_nobody_knows_is_a_fault_of_the_plan(program: Program, shop: Path) -> None:
    plan = demo_plan().replace("    title: Keep stock\n", "    title: Keep stock\n    agent: clad\n")
    (shop / "plan.yaml").write_text(plan)
    said = program("plan", "check", "plan.yaml", cwd=shop)
    assert said.code == 2
    line = plan.splitlines().index("    agent: clad") + 1
    assert f"plan.yaml:{line}: task stock: there is no agent named 'clad'" in said.err
    assert "to do: the agents are: acp, claude" in said.err


AGENTS_GONE_WRONG = """\
title: Wrong
settings:
  agent: command
  fallback: [cluade]
  agents:
    command: {command: "true"}
    claude:
      max_turn: 3
    nobody: {binary: x}
    codex:
      ask: sometimes
tasks:
  - {id: one, title: One, acceptance: ["test -d ."]}
  - id: two
    title: Two
    acceptance: ["test -d ."]
    agent: gose
"""


@pytest.mark.capability("C004")
def test_everything_that_is_wrong_about_agents_is_said_at_once_and_run_says_the_same(
    program: Program, shop: Path
) -> None:
    (shop / "wrong.yaml").write_text(AGENTS_GONE_WRONG)
    said = program("plan", "check", "wrong.yaml", cwd=shop)
    assert said.code == 2
    for place, words in (
        ("wrong.yaml:4: fallback", "there is no agent named 'cluade'"),
        ("wrong.yaml:8: agents.claude.max_turn", "max_turn"),
        ("wrong.yaml:9: agents.nobody", "there is no agent of this name"),
        ("wrong.yaml:11: agents.codex.ask", "ask"),
        ("wrong.yaml:17: task two", "there is no agent named 'gose' (did you mean \"goose\"?)"),
    ):
        assert [line for line in said.err.splitlines() if place in line and words in line], said.err
    refused = program("run", "wrong.yaml", cwd=shop)
    assert refused.code == 2
    assert set(refused.err.splitlines()[1:]) < set(said.err.splitlines()), (
        "a task without an agent fails alone"
    )


def test_a_plan_that_run_refuses_on_this_machine_is_not_told_to_be_run(program: Program, shop: Path) -> None:
    plan = shop / "plan.yaml"
    plan.write_text(
        'settings: {agent: command, agents: {command: {command: "nosuchagent --go"}}}\n' + demo_plan()
    )
    said = program("plan", "check", "plan.yaml", cwd=shop)
    assert "`run` refuses it here: none of its agents can be used" in said.out
    assert "run it with" not in said.out
    assert program("run", "plan.yaml", cwd=shop).code == 2


def test_tasks_that_nothing_would_check_make_the_plan_one_that_run_refuses(
    program: Program, shop: Path
) -> None:
    (shop / "plan.yaml").write_text("title: T\ntasks:\n  - {id: a, title: A}\n  - {id: b, title: B}\n")
    said = program("plan", "check", "plan.yaml", cwd=shop)
    assert said.code == 2
    assert "nothing would check a, b, so `run` refuses the plan" in said.out
    refused = program("run", "plan.yaml", "--agent", "scripted", cwd=shop)
    assert refused.code == 2, "the two commands agree"
    allowed = program(
        "plan", "check", "plan.yaml", "--json", cwd=shop, env={"LOOPWRIGHT_ALLOW_UNVERIFIED": "yes"}
    )
    assert allowed.code == 0
    assert allowed.document["plan"]["unchecked"] == ["a", "b"]


def test_the_gates_are_those_of_the_commit_that_a_run_would_start_from(
    program: Program, tmp_path: Path
) -> None:
    gates = '[[gates]]\nname = "committed"\nrun = "true"\n'
    project = repository(
        tmp_path / "project",
        {"loopwright.toml": gates, "plan.yaml": "title: T\ntasks:\n  - {id: a, title: A}\n"},
    )
    (project / "loopwright.toml").write_text(gates.replace("committed", "edited"))
    said = program("plan", "check", "plan.yaml", "--json", cwd=project)
    plan = said.document["plan"]
    assert said.code == 0
    assert [gate["name"] for gate in plan["gates"]] == ["committed"]
    assert plan["without_acceptance"] == ["a"]
    assert plan["unchecked"] == []
    note, bare = plan["notes"]
    assert bare == "these have no acceptance command: a"
    assert note.startswith("loopwright.toml has uncommitted changes; commit them or pass --settings FILE")


@pytest.mark.parametrize("name", ["nothing.yaml", "plan.txt", "empty"])
def test_a_file_that_is_no_plan_is_a_plain_error(program: Program, shop: Path, name: str) -> None:
    (shop / "plan.txt").write_text("do something")
    (shop / "empty").mkdir()
    said = program("plan", "check", name, cwd=shop)
    assert said.code == 2
    assert "error: " in said.err
    assert "to do: " in said.err


def test_outside_a_repository_a_plan_can_be_checked_and_the_limit_is_told(
    program: Program, tmp_path: Path
) -> None:
    boxes = "- [x] one\n- [-] two\n- [ ] three <!-- deps: one -->\n- [ ] four <!-- deps: three -->\n"
    (tmp_path / "plan.md").write_text(boxes)
    said = program("plan", "check", "plan.md", cwd=tmp_path, env={"LOOPWRIGHT_ALLOW_UNVERIFIED": "true"})
    assert said.code == 0, said.out + said.err
    assert "this folder is not in a git repository" in said.out
    rows = [line.split() for line in said.out.splitlines() if line.startswith("  ")][:4]
    assert [row[2:4] for row in rows] == [["done"], ["skipped"], ["at", "once"], ["after", "three"]]
    (tmp_path / "loopwright.toml").write_text('[loops."plan.md"]\npermission_mode = "read-only"\n')
    said = program("plan", "check", "plan.md", cwd=tmp_path)
    assert "permission_mode is read-only (loopwright.toml:2)" in said.out


def test_agents_that_may_change_nothing_are_warned_of(program: Program, shop: Path) -> None:
    (shop / "plan.yaml").write_text("settings: {permission_mode: read-only}\n" + demo_plan())
    said = program("plan", "check", "plan.yaml", cwd=shop)
    assert "note: permission_mode is read-only (plan plan.yaml:1): agents may change no file" in said.out


def test_permissions_are_listed_and_a_gate_without_a_name_is_listed_once(
    program: Program, shop: Path
) -> None:
    (shop / "plan.yaml").write_text(
        "title: Other\ngates: [git --version]\n"
        "tasks:\n  - {id: m, title: Make it, acceptance: [test -f it], may_change: tests/tset_a.py}\n"
    )
    said = program("plan", "check", "plan.yaml", cwd=shop)
    told = " ".join(said.out.split())
    assert "1 acceptance command, may change tests/tset_a.py" in told
    assert "does not have: tests/tset_a.py (task m)" in told
    assert "git --version git --version" not in told


@pytest.mark.capability("C020")
def test_checks_that_cannot_run_and_work_that_is_there_already_are_named(
    program: Program, shop: Path
) -> None:
    """A program that is missing, a target that the Makefile does not have, and a file that nobody has to make."""
    (shop / "Makefile").write_text("test: build\n\ttrue\nbuild:\n\ttrue\n")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "make")
    (shop / "other.yaml").write_text(
        "title: Other\ngates: [make test, make tset, nosuchcheck -q]\n"
        "tasks:\n  - {id: m, title: Create the file Makefile, acceptance: [test -f Makefile], scope: [Makefile]}\n"
    )
    said = program("plan", "check", "other.yaml", "--json", cwd=shop)
    assert said.code == 2
    found = said.document["plan"]
    target, missing = found["against"]
    assert "the gate make tset cannot run: the Makefile has no target tset" in target
    assert "the gate nosuchcheck -q cannot run: nosuchcheck is not on PATH" in missing
    assert found["notes"][-2:] == [
        "these are to make a file that is there already: m: Makefile",
        "these pass before the work, because the file is there: m: test -f Makefile",
    ]
    shown = program("plan", "check", "other.yaml", cwd=shop)
    assert "--despite" in shown.out
    assert "ok: the plan is good" not in shown.out

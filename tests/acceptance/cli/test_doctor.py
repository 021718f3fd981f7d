"""`loopwright doctor`: each line says how things are and what to do, and the exit code follows."""

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.cli.program import Program, executable, git
from tests.loaded import Said

from loopwright.adapters.store.sql import SqlStore


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A machine on which everything is there: its agent is a small program of ours."""
    program = Program(tmp_path)
    claude = executable(program.user / "bin" / "claude", "echo '9.8.7 (Claude Code)'")
    program.env["LOOPWRIGHT_AGENTS__CLAUDE__BINARY"] = str(claude)
    return program


@pytest.fixture
def home(program: Program) -> Path:
    program.home.mkdir(mode=0o700)
    SqlStore.open(program.home / "loopwright.db").close_sync()
    return program.home


def findings(said: Said) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in said.document["findings"]}


def test_a_machine_where_nothing_is_missing_is_fine(program: Program, tmp_path: Path) -> None:
    said = program("doctor", cwd=tmp_path)
    assert said.code == 0, said.out
    assert "9.8.7 (Claude Code)" in said.out
    assert "ANTHROPIC_API_KEY" in said.out
    assert " 0 fail" in said.out
    assert not program.home.exists(), "looking makes nothing"


def test_every_line_that_is_not_ok_says_what_to_do(program: Program, home: Path, tmp_path: Path) -> None:
    home.chmod(0o755)
    (home / "workspaces" / "att_1").mkdir(parents=True)
    (home / "trials" / "run_1").mkdir(parents=True)
    said = program("doctor", "--json", cwd=tmp_path)
    found = findings(said)
    assert said.code == said.document["exit_code"] == 0
    assert {one["status"] for one in found.values()} == {"ok", "warn", "absent"}
    assert [name for name, one in found.items() if one["status"] in ("warn", "fail") and not one["fix"]] == []
    assert found["home"]["fix"] == f"chmod 700 {home}"
    assert [found[name]["status"] for name in ("workspaces", "trials", "database")] == ["warn", "warn", "ok"]
    assert "att_1" in found["workspaces"]["text"]


def test_a_sandbox_that_holds_is_named_with_what_it_keeps_away(
    program: Program, tmp_path: Path, bwrap: str
) -> None:
    env = {"LOOPWRIGHT_SANDBOX__LEVEL": "auto", "LOOPWRIGHT_SANDBOX__PROGRAM": bwrap}
    sandbox = findings(program("doctor", "--json", cwd=tmp_path, env=env))["sandbox"]
    assert sandbox["status"] == "ok"
    assert sandbox["text"].startswith("bubblewrap (")
    assert not program.home.exists(), "looking makes nothing"


def test_a_sandbox_that_does_not_hold_is_found_out_and_an_open_machine_is_told_honestly(
    program: Program, tmp_path: Path
) -> None:
    # It starts what it is told to, and keeps it from nothing.
    pretender = executable(
        program.user / "bin" / "bwrap", 'while [ "$1" != "--" ]; do shift || exit 0; done; shift; exec "$@"'
    )
    auto = {"LOOPWRIGHT_SANDBOX__LEVEL": "auto"}
    env = {**auto, "LOOPWRIGHT_SANDBOX__PROGRAM": str(pretender)}
    pretended = program("doctor", "--json", cwd=tmp_path, env=env)
    found = findings(pretended)["sandbox"]
    assert found["status"] == "warn"
    for what in ("read a hidden file of HOME", "write outside of the workspace", "kill processes outside"):
        assert f"one can {what} from it" in found["text"]
    named = program("doctor", "--json", cwd=tmp_path, env={**env, "LOOPWRIGHT_SANDBOX__LEVEL": "bubblewrap"})
    assert findings(named)["sandbox"]["status"] == "fail"
    assert named.code == 6
    env = {**auto, "LOOPWRIGHT_SANDBOX__PROGRAM": "/nowhere/bwrap"}
    missing = findings(program("doctor", "--json", cwd=tmp_path, env=env))["sandbox"]
    assert missing["status"] == "warn"
    assert "bubblewrap" in missing["fix"]
    offline = program("doctor", "--json", cwd=tmp_path, env={**env, "LOOPWRIGHT_SANDBOX__NETWORK": "off"})
    assert (offline.code, findings(offline)["sandbox"]["status"]) == (6, "fail")


def test_a_missing_agent_in_force_fails_and_one_that_is_not_in_force_does_not(
    program: Program, tmp_path: Path
) -> None:
    nowhere = {"LOOPWRIGHT_AGENTS__CLAUDE__BINARY": "/nowhere/claude"}
    missing = program("doctor", "--json", cwd=tmp_path, env=nowhere)
    assert missing.code == 6
    assert findings(missing)["agent claude"]["status"] == "fail"
    assert "Claude Code" in findings(missing)["agent claude"]["fix"]
    other = program("doctor", "--json", cwd=tmp_path, env={**nowhere, "LOOPWRIGHT_AGENT": "scripted"})
    assert other.code == 0
    assert findings(other)["agent claude"]["status"] == "absent"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        pytest.param("exec sleep 600", "it gave no answer within 20 s", marks=pytest.mark.more),
        ("echo no; exit 3", "exit code 3: no"),
    ],
)
@pytest.mark.timeout(300)
def test_an_agent_that_does_not_answer_fails_in_a_few_seconds(
    program: Program, tmp_path: Path, script: str, told: str
) -> None:
    agent = executable(program.user / "bin" / "broken", script)
    said = program("doctor", "--json", cwd=tmp_path, env={"LOOPWRIGHT_AGENTS__CLAUDE__BINARY": str(agent)})
    assert said.code == 6
    assert told in findings(said)["agent claude"]["text"]


@pytest.mark.parametrize(
    ("version", "status", "told"),
    [
        ("0.163.0", "ok", "codex-cli 0.163.0, at "),
        ("0.157.9", "warn", "it is older than the versions that were tried, 0.158.0 to 0.166.0"),
        ("0.1000.0", "warn", "it is newer than the versions that were tried, 0.158.0 to 0.166.0"),
    ],
)
def test_a_version_of_an_agent_that_nobody_tried_is_a_warning(
    program: Program, tmp_path: Path, version: str, status: str, told: str
) -> None:
    codex = executable(program.user / "bin" / "codex", f"echo 'codex-cli {version}'")
    env = {"LOOPWRIGHT_AGENT": "codex", "LOOPWRIGHT_AGENTS__CODEX__BINARY": str(codex)}
    said = program("doctor", "--json", cwd=tmp_path, env=env)
    found = findings(said)["agent codex"]
    assert said.code == 0
    assert found["status"] == status
    assert told in found["text"]
    assert "codex login" in found["fix"]
    pinned = "install a version that was tried (npm install -g @openai/codex@0.166.0)"
    assert (pinned in found["fix"]) is (status == "warn")


@pytest.mark.parametrize(
    ("name", "said", "told", "pinned"),
    [
        (
            "claude",
            "2.1.197 (Claude Code)",
            "it is older than the versions that were tried, 2.1.248 to 2.1.325",
            "npm install -g @anthropic-ai/claude-code@2.1.325",
        ),
        (
            "qwen",
            "0.14.1",
            "it is older than the versions that were tried, 0.15.10 to 0.24.4",
            "npm install -g @qwen-code/qwen-code@0.24.4, with Node.js 22 or newer",
        ),
        (
            "claude-acp",
            "",
            "it does not say its version; tried were 0.99.1 to 0.99.1",
            "npm install -g @agentclientprotocol/claude-agent-acp@0.99.1, with Node.js 22 or newer",
        ),
    ],
)
def test_the_version_that_npm_picked_silently_is_told_with_the_one_to_ask_for(
    program: Program, tmp_path: Path, name: str, said: str, told: str, pinned: str
) -> None:
    """On an older Node.js the same command without a version would only bring the same old one again."""
    agent = executable(program.user / "bin" / name, f"echo '{said}'")
    env = {"LOOPWRIGHT_AGENT": name, f"LOOPWRIGHT_AGENTS__{name.upper()}__BINARY": str(agent)}
    found = findings(program("doctor", "--json", cwd=tmp_path, env=env))[f"agent {name}"]
    assert found["status"] == "warn", found
    assert told in found["text"]
    assert f"({pinned})" in found["fix"]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'git version 2.30.2'", "2.30.2 is too old: 2.38 is the oldest"),
        ("echo broken >&2; exit 1", "git does not work: exit code 1: broken"),
    ],
)
def test_a_git_that_cannot_be_used_fails(program: Program, tmp_path: Path, script: str, told: str) -> None:
    executable(program.user / "old" / "git", script)
    env = {"PATH": f"{program.user / 'old'}:{program.env['PATH']}"}
    said = program("doctor", "--json", cwd=tmp_path, env=env)
    assert said.code == 6
    assert told in findings(said)["git"]["text"]
    assert "install git 2.38 or newer" in findings(said)["git"]["fix"]


def test_a_missing_git_fails_and_an_unknown_committer_is_a_warning(program: Program, tmp_path: Path) -> None:
    without = program("doctor", "--json", cwd=tmp_path, env={"PATH": str(program.user / "bin")})
    assert without.code == 6
    assert findings(without)["git"]["text"] == "git was not found"
    assert findings(program("doctor", "--json", cwd=tmp_path))["identity"]["status"] == "warn"
    (program.user / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.invalid\n")
    known = findings(program("doctor", "--json", cwd=tmp_path))["identity"]
    assert (known["status"], known["text"]) == ("ok", "commits as Ada <ada@example.invalid>")


def test_a_damaged_database_fails_with_what_to_do(program: Program, tmp_path: Path) -> None:
    program.home.mkdir(mode=0o700)
    (program.home / "loopwright.db").write_bytes(b"this is no database" * 100)
    said = program("doctor", "--json", cwd=tmp_path)
    assert said.code == 6
    assert findings(said)["database"]["status"] == "fail"


@pytest.mark.capability("C005")
def test_a_database_of_a_newer_program_fails_and_is_left_alone(
    program: Program, home: Path, tmp_path: Path
) -> None:
    with sqlite3.connect(home / "loopwright.db") as database:
        database.execute("UPDATE schema_version SET version_num = '9999'")
    database.close()
    said = program("doctor", "--json", cwd=tmp_path)
    assert said.code == 6
    assert findings(said)["database"]["status"] == "fail"
    with sqlite3.connect(home / "loopwright.db") as database:
        assert database.execute("SELECT version_num FROM schema_version").fetchall() == [("9999",)]
    database.close()


def test_a_postgresql_server_is_asked_and_its_password_never_shown(
    program: Program, tmp_path: Path, postgres_url: str
) -> None:
    there = program("doctor", "--json", cwd=tmp_path, env={"LOOPWRIGHT_DATABASE": postgres_url})
    assert there.code == 0, there.out
    assert findings(there)["database"]["status"] == "ok"
    nowhere = {"LOOPWRIGHT_DATABASE": "postgresql://me:hush-hush@127.0.0.1:1/loops"}
    gone = program("doctor", "--json", cwd=tmp_path, env=nowhere)
    assert gone.code == 6
    assert findings(gone)["database"]["status"] == "fail"
    assert "hush-hush" not in gone.out + gone.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_cannot_be_written_fails(program: Program, home: Path, tmp_path: Path) -> None:
    home.chmod(0o500)
    try:
        said = program("doctor", "--json", cwd=tmp_path)
    finally:
        home.chmod(0o700)
    assert said.code == 6
    assert findings(said)["home"]["status"] == "fail"


def test_a_home_that_is_a_file_fails(program: Program, tmp_path: Path) -> None:
    program.home.write_text("not a folder")
    said = program("doctor", "--json", cwd=tmp_path)
    assert said.code == 6
    assert findings(said)["home"]["status"] == "fail"


def test_a_broken_setting_is_one_of_the_findings(program: Program, tmp_path: Path) -> None:
    said = program("doctor", cwd=tmp_path, env={"LOOPWRIGHT_PARALLEL": "many"})
    assert said.code == 6
    assert "fail  settings" in said.out
    assert "LOOPWRIGHT_PARALLEL" in said.out
    assert "ok    git" in said.out, "the rest of the machine is looked at all the same"


def test_work_in_quarantine_and_projects_that_are_gone_are_named(
    program: Program, home: Path, tmp_path: Path
) -> None:
    from datetime import UTC, datetime

    from loopwright.core.rows.model import Project

    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q", "-b", "trunk")
    git(project, "commit", "-q", "--allow-empty", "-m", "first")
    git(project, "update-ref", "refs/loopwright/quarantine/replaced/one", "HEAD")
    now = datetime.now(UTC)
    store = SqlStore.open(home / "loopwright.db")
    for number, path in enumerate((project, tmp_path / "gone"), 1):
        row = Project(
            id=f"proj_00000000-0000-4000-8000-00000000000{number}", name="p", path=str(path), created_at=now
        )
        store.transact_sync("test", lambda tx, row=row: tx.insert(row))
    store.close_sync()
    found = findings(program("doctor", "--json", cwd=tmp_path))
    assert found["quarantine"]["text"].endswith(f" {project}")
    assert found["projects"]["text"].endswith(f" {tmp_path / 'gone'}")


def test_a_probe_of_a_codex_without_its_app_server_names_the_other_way(
    program: Program, tmp_path: Path
) -> None:
    codex = tmp_path / "codex"
    codex.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) echo codex-cli 0.163.0; exit 0;; esac\n'
        "echo \"error: unrecognized subcommand '$1'\" >&2\nexit 2\n"
    )
    codex.chmod(0o755)
    program.env["LOOPWRIGHT_AGENTS__CODEX__BINARY"] = str(codex)
    instead = 'try it without its app server: `protocol = "exec"` in [agents.codex]'
    found = program("doctor", "--agent", "codex", "--probe", "--json", cwd=tmp_path).document["findings"][-1]
    assert (found["name"], found["status"]) == ("probe of codex", "fail")
    assert "unrecognized subcommand" in found["text"]
    assert instead in found["fix"]
    program.env["LOOPWRIGHT_AGENTS__CODEX__PROTOCOL"] = "exec"
    found = program("doctor", "--agent", "codex", "--probe", "--json", cwd=tmp_path).document["findings"][-1]
    assert found["status"] == "fail"
    assert instead not in found["fix"], "it is done already"


def test_a_probe_of_an_agent_that_is_not_there_starts_nothing_and_says_how_to_get_it(
    program: Program, home: Path, tmp_path: Path
) -> None:
    before = sorted(path.name for path in program.user.rglob("*"))
    said = program("doctor", "--agent", "goose", "--probe", "--json", cwd=tmp_path)
    found = said.document["findings"][-1]
    assert (said.code, found["name"], found["status"]) == (6, "probe of goose", "fail")
    assert "'goose'" in found["text"]
    assert found["fix"].startswith("install it")
    assert sorted(path.name for path in program.user.rglob("*")) == before

"""The environment of a plan's runs, put together by whichever process executes it."""

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from socket import AF_UNIX, SHUT_WR
from socket import socket as AnySocket

import pytest
from tests.doubles import Home, planned
from tests.refusals import raises_code

from loopwright.adapters.agents.environment import Environments, read_env_file, with_file
from loopwright.adapters.agents.secret_providers import provided
from loopwright.adapters.home.submitters import answering, asked
from loopwright.adapters.processes.keeper_calls import short_path
from loopwright.core.rows.model import Plan
from loopwright.core.values.environments import captured
from loopwright.core.values.errors import NoEnvironment
from loopwright.core.values.policy import Policy
from loopwright.ports import Invocation

THEN = {
    "PATH": "/then",
    "TZ": "Asia/Tokyo",
    "HOME": "/then",
    "WORD": "swordfish",
    "KIND": "two",
    "KEY": "of then",
}
NOW = {
    "PATH": "/now",
    "LANG": "de",
    "HOME": "/now",
    "OTHER": "leaks",
    "KIND": "one",
    "KEY": "of now",
    "VIRTUAL_ENV": "/v",
}
POLICY = Policy(environment=("WORD", "OTHER"), environment_plain=("KIND",))
AGENT = Invocation(argv=("agent",), inherit=("KEY",))


def _plan(**changes: str) -> Plan:
    given = {"host_id": "here", "submitter": "them", **changes}
    then = captured(THEN, secret=POLICY.environment, plain=POLICY.environment_plain, programs={}, **given)
    return replace(Home().submit(planned("a")), policy=POLICY, environment=then)


def _made(answer: Mapping[str, str] | None, **more: str) -> Environments:
    def answered(_: str, names: Collection[str]) -> Mapping[str, str] | None:
        return None if answer is None else {name: answer[name] for name in names if name in answer}

    return Environments(env={**NOW, **more}, host_id="here", asked=answered)


def test_a_plan_that_requires_a_sandbox_never_gets_a_forge_token_by_any_name() -> None:
    policy = Policy(environment=("GITHUB_TOKEN", "RENAMED", "WORD"), sandbox_required=True)
    agent = Invocation(argv=("agent",), inherit=("GH_TOKEN", "GITLAB_TOKEN", "KEY"))
    plan = replace(Home().submit(planned("a")), policy=policy, environment=None)
    tokens = {
        "GITHUB_TOKEN": "merge-1",
        "GH_TOKEN": "merge-2",
        "GITLAB_TOKEN": "merge-3",
        "RENAMED": "merge-1",
    }
    worker = Environments(env={**NOW, **tokens, "WORD": "swordfish"}, host_id="here")
    given = worker(plan, agent, {})
    assert given.keys() & tokens.keys() == set()
    assert (given["KEY"], given["WORD"]) == ("of now", "swordfish")
    loose = replace(plan, policy=replace(policy, sandbox_required=False))
    assert tokens.keys() <= worker(loose, agent, {}).keys()


def test_what_is_stored_and_what_the_submitter_has_wins_over_the_executing_process() -> None:
    env = _made(THEN)(_plan(), AGENT, {"CI": "true"})
    assert env == {
        "PATH": "/then",
        "TZ": "Asia/Tokyo",
        "HOME": "/now",
        "WORD": "swordfish",
        "KIND": "two",
        "KEY": "of then",
        "TERM": "dumb",
        "CI": "true",
    }
    assert "swordfish" not in repr(_plan().environment)


def test_a_key_that_the_submitter_does_not_have_is_not_lent_from_the_executing_process() -> None:
    assert "KEY" not in _made({"WORD": "swordfish"})(_plan(), AGENT, {})


def test_without_the_submitter_secrets_come_from_the_executing_process_or_are_named() -> None:
    env = _made(None, WORD="from the worker")(_plan(), AGENT, {})
    assert (env["WORD"], env["KEY"], env["PATH"]) == ("from the worker", "of now", "/then")
    told = rf"WORD was set where .* process {os.getpid()} on .* not have it; .* env_file.* loopwright resume plan_"
    with pytest.raises(NoEnvironment, match=told):
        _made(None)(_plan(), None, {})


def test_a_variable_that_was_not_set_at_submission_comes_from_the_file_and_never_from_the_worker(
    tmp_path: Path,
) -> None:
    path = tmp_path / "values.env"
    path.write_text("OTHER=of the file\nWORD=of the file\nKEY=of the file\nUNASKED=x\n")
    path.chmod(0o600)
    for answer, word in ((THEN, "swordfish"), (None, "of the file")):
        env = replace(_made(answer), env_file=str(path))(_plan(), None, {})
        assert (env["OTHER"], env["WORD"], "KEY" in env, "UNASKED" in env) == (
            "of the file",
            word,
            False,
            False,
        )
    here = replace(_made(None), env_file=str(path))
    assert here(replace(_plan(), environment=None), None, {})["WORD"] == "of the file"
    assert with_file(NOW, str(path), ("OTHER", "WORD", "NOWHERE")) == {**NOW, "WORD": "of the file"}
    path.write_text("KEY=x\n")
    with raises_code("no_environment"):
        here(_plan(), None, {})


def test_on_another_machine_folders_are_the_workers_and_the_rest_is_the_plans() -> None:
    env = _made(None, WORD="w")(_plan(host_id="elsewhere"), None, {})
    assert (env["PATH"], env["VIRTUAL_ENV"], env["TZ"], env["KIND"]) == ("/now", "/v", "Asia/Tokyo", "two")
    assert "LANG" not in env


def test_a_file_of_variables_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "values.env"
    path.write_text("# mine\nexport WORD='a b'\nOTHER=c=d\n\nnothing\n")
    path.chmod(0o644)
    with raises_code("no_environment"):
        read_env_file(path)
    path.chmod(0o600)
    assert read_env_file(path) == {"WORD": "a b", "OTHER": "c=d"}


def test_a_submitter_answers_on_a_private_socket_until_it_ends(tmp_path: Path) -> None:
    home = tmp_path / ("deep" * 30)
    with answering(home, "them", {"WORD": "swordfish", "OTHER": "x"}):
        socket = home / "submitters" / "them" / "socket"
        assert (socket.stat().st_mode & 0o777, socket.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        for odd in (b"5", b"[[]]", b"[" * 100_000, b"{"):
            with AnySocket(AF_UNIX) as caller, short_path(socket.parent) as path:
                caller.connect(path)
                caller.sendall(odd)
                caller.shutdown(SHUT_WR)
                assert caller.recv(10) == b"", "nothing is said to that"
        assert asked(home, "them", ("WORD", "NOT_SET")) == {"WORD": "swordfish"}
    assert asked(home, "them", ("WORD",)) is None
    assert not list((home / "submitters").iterdir())


def _tool(folder: Path, name: str, body: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o700)
    return path


def test_secrets_come_by_name_from_a_command_or_the_keyring(tmp_path: Path) -> None:
    tool = _tool(tmp_path, "pass", 'test "$1" = WORD && echo "of $1"')
    made = _made(None)
    for command in (str(tool), f"{tool} {{name}}"):
        env = replace(made, secrets_from=command)(_plan(submitter="gone"), AGENT, {})
        assert env["WORD"] == "of WORD"
    bin_folder = tmp_path / "bin"
    _tool(bin_folder, "secret-tool", 'echo "$*"')
    _tool(bin_folder, "security", 'echo "$*"')
    here = {"PATH": str(bin_folder)}
    assert provided("keyring", ["WORD"], here, "linux") == {"WORD": "lookup service loopwright name WORD"}
    mac = provided("keyring", ["WORD"], here, "darwin")
    assert mac == {"WORD": "find-generic-password -s loopwright -a WORD -w"}


def test_a_secret_that_no_provider_has_makes_the_plan_wait_and_say_so(tmp_path: Path) -> None:
    recorded_plan = _plan()
    assert recorded_plan.environment is not None
    then = replace(recorded_plan.environment, recorded=True, submitter="")
    plan = replace(recorded_plan, environment=then)
    empty = _tool(tmp_path, "pass", "echo secret-in-an-error >&2; exit 1")
    made = replace(_made(None, WORD="of the daemon"), secrets_from=str(empty))
    with pytest.raises(NoEnvironment) as waits:
        made(plan, AGENT, {})
    assert "WORD" in str(waits.value)
    assert str(empty) in str(waits.value)
    assert "secret-in-an-error" not in str(waits.value)
    with pytest.raises(NoEnvironment, match="cannot be started"):
        replace(made, secrets_from=str(tmp_path / "missing"))(plan, AGENT, {})
    full = _tool(tmp_path, "full", "echo given")
    env = replace(made, secrets_from=str(full))(plan, AGENT, {})
    assert env["WORD"] == "given", "nothing of the daemon's environment is used"

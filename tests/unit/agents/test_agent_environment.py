"""Which variables reach an agent."""

import pytest

from loopwright.adapters.agents.environment import agent_environment, secret_values
from loopwright.core.errors import BadConfig
from loopwright.ports import Invocation

HOST = {
    "PATH": "/bin",
    "HOME": "/h",
    "LC_ALL": "C.UTF-8",
    "TERM": "xterm",
    "TMPDIR": "/t",
    "HTTPS_PROXY": "http://p",
    "SSL_CERT_FILE": "/c",
    "AWS_SECRET_ACCESS_KEY": "aws-secret",
    "ANTHROPIC_API_KEY": "key-of-the-user",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "LOOPWRIGHT_TOKEN": "our-own-token",
    "GIT_DIR": "/elsewhere/.git",
    "DATABASE_URL": "postgres://x",
}


def test_only_listed_names_come_through() -> None:
    assert agent_environment(HOST) == {
        "PATH": "/bin",
        "HOME": "/h",
        "LC_ALL": "C.UTF-8",
        "HTTPS_PROXY": "http://p",
        "SSL_CERT_FILE": "/c",
        "TERM": "dumb",
    }


def test_the_adapters_names_and_the_users_names_come_through_too() -> None:
    invocation = Invocation(argv=("x",), inherit=("ANTHROPIC_API_KEY",), env={"DISABLE_TELEMETRY": "1"})
    env = agent_environment(HOST, invocation, ["DATABASE_URL", "NOT_SET"])
    assert env["ANTHROPIC_API_KEY"] == "key-of-the-user"
    assert env["DATABASE_URL"] == "postgres://x"
    assert env["DISABLE_TELEMETRY"] == "1"
    assert "NOT_SET" not in env


def test_what_the_harness_sets_wins() -> None:
    invocation = Invocation(argv=("x",), env={"A": "adapter"})
    env = agent_environment(HOST, invocation, (), {"A": "harness", "TMPDIR": "/own", "HOME": "/view"})
    assert (env["A"], env["TMPDIR"], env["HOME"]) == ("harness", "/own", "/view")


@pytest.mark.trap("inherited marker")
@pytest.mark.parametrize("name", ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "LOOPWRIGHT_TOKEN", "GIT_DIR"])
def test_some_names_never_come_through(name: str) -> None:
    invocation = Invocation(argv=("x",), inherit=(name,))
    assert name not in agent_environment(HOST, invocation)
    with pytest.raises(BadConfig, match=name):
        agent_environment(HOST, invocation, [name])


def test_values_to_redact_are_found_by_their_names() -> None:
    env = {
        "A_TOKEN": "0123456789",
        "API_KEY": "longer-than-that",
        "PATH": "/usr/bin:/bin",
        "PASSWORD": "short",
    }
    assert secret_values(env) == ("longer-than-that", "0123456789")

"""Which variables reach an agent."""

import pytest
from tests.cases import each_case

from loopwright.adapters.agents.environment import agent_environment, secret_values
from loopwright.core.values.errors import BadConfig
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
@each_case("name", ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "LOOPWRIGHT_TOKEN", "GIT_DIR"])
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
        "GIT_AUTHOR_NAME": "Jane Developer",
        "GIT_AUTHOR_EMAIL": "jane@example.org",
        "PROXY_AUTHORIZATION": "also-secret",
    }
    assert secret_values(env) == ("longer-than-that", "also-secret", "0123456789")


def test_what_the_user_hands_over_is_a_secret_whatever_its_name_is() -> None:
    env = {
        "DATABASE_URL": "postgres://app:hunter2-hunter2@db/shop",
        "LICENCE": "0123-4567-89ab",
        "JAVA_HOME": "/usr/lib/jvm/java-21",
        "MIRROR": "http://mirror.example:8080/",
        "NODE_ENV": "test",
        "LANG": "en_GB.UTF-8",
    }
    handed_over = secret_values(env, tuple(env))
    assert handed_over == ("postgres://app:hunter2-hunter2@db/shop", "hunter2-hunter2", "0123-4567-89ab")
    assert secret_values(env) == ("hunter2-hunter2",), "a password in an address is one anywhere"


def test_what_a_header_says_is_a_secret_without_its_name_too() -> None:
    headers = "x-team: red-herring-9\nAuthorization: Bearer zyxwvut987"
    assert secret_values({"X_HEADERS": f"x-team: red-herring-9{' ' * 50_000}!"}), "however it is spaced"
    assert secret_values({"ANTHROPIC_CUSTOM_HEADERS": headers}) == (headers, "red-herring-9", "zyxwvut987")

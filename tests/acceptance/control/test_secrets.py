"""Planted secrets: whatever way an agent says them, they are in no file and no row that is kept."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.cli.program import executable
from tests.acceptance.control.greeting import block
from tests.acceptance.control.workshop import Workshop, refused
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.adapters.agents import asking
from loopwright.core.rows.model import Plan, Review, Role, Run
from loopwright.core.rows.waiting_rows import Question
from loopwright.keeper import redact

OF_THE_ENVIRONMENT = "correct horse battery staple 77"
SHAPES = {
    "anthropic": "sk-ant-api03-Zx81kQpLr0aV7tYw2mNb",
    "github": "ghp_0123456789abcdefABCDEF0123456789abcd",
    "aws": "AKIAABCDEFGHIJKLMNOP",
    "google": "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "slack": "xoxb-123456789012-abcdefghijkl",
    "openai": "sk-proj-Zx81kQpLr0aV7tYw2mNb",
    "an older openai": "sk-Zx81kQpLr0aV7tYw2mNbZx81",
    "github, fine-grained": "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "gitlab": "glpat-0123456789abcdefABCD",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4",
    "google, for an hour": "ya29.a0AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "stripe": "sk_live_0123456789abcdefABCDEF01",
    "stripe, for tests": "sk_test_0123456789abcdefABCDEF01",
    "stripe, restricted": "rk_live_0123456789abcdefABCDEF01",
    "npm": "npm_0123456789abcdefghijklmnopqrstuvwxyz",
    "pypi": "pypi-AgEIcHlwaS5vcmcCJDAxMjM0NTY3ODlhYmNkZWZnaGlqa2xtbm9wcXJz",
    "hugging face": "hf_0123456789abcdefghijklmnopqrstuvwx",
    "groq": "gsk_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP",
    "xai": "xai-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP",
    "sendgrid": "SG.0123456789abcdefghijkl.0123456789abcdefghijklmnopqrstuvwxyzABCDEFG",
    "digitalocean": f"dop_v1_{'0123456789abcdef' * 4}",
    "shopify": f"shpat_{'0123456789abcdef' * 2}",
}
KEY_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
PRIVATE_KEY = f"-----BEGIN PRIVATE KEY-----\n{KEY_LINE}\n-----END PRIVATE KEY-----"
PGP_LINE = "lQOYBGNkZWYBCADKzq7nq0hV3mJ8xYp1sW2bQ5rT9uZ4cL6dN8eF0gH1iJ2kM3oP"
PGP_KEY = f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{PGP_LINE}\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----"
PASSWORD = "hunter2-and-a-half"
HANDED_OVER = {
    "DEPLOY_TOKEN": OF_THE_ENVIRONMENT,
    "DATABASE_URL": f"postgres://app:{PASSWORD}@db.example/shop",
    "LICENCE": "red herring 4711",
}
"""Only one of them has the name of a secret."""
OF_THE_USER = "not for agents 1234567"
"""In the environment of the user alone: an agent may come upon it all the same."""
ALL = (*HANDED_OVER.values(), PASSWORD, OF_THE_USER, *SHAPES.values(), KEY_LINE, PGP_LINE)


EVERYTHING = "\n".join(
    (*HANDED_OVER.values(), f"it is {PASSWORD}", OF_THE_USER, *SHAPES.values(), PRIVATE_KEY, PGP_KEY)
)


def test_one_of_every_shape_is_planted() -> None:
    assert [shape for _, shape in redact.SHAPES if not re.search(shape, EVERYTHING)] == []


def kept(shop: Workshop) -> dict[Path, bytes]:
    """Return every file that is kept, but for workspaces and the user's own files; and every message of a commit."""
    places = (shop.home, shop.repository / ".loopwright", shop.repository / "plans")
    files = [
        path for place in places for path in place.rglob("*") if path.is_file() and not path.is_symlink()
    ]
    found = {path: path.read_bytes() for path in files if "workspaces" not in path.parts}
    return {**found, Path("commits"): shop.git("log", "--all", "--format=%an%n%B").encode()}


def leaks(shop: Workshop, *more: Path) -> dict[str, list[str]]:
    """Return where a planted secret is kept, and which."""
    files = {**kept(shop), **{path: path.read_bytes() for path in more}}
    found = {str(path): [one for one in ALL if one.encode() in content] for path, content in files.items()}
    return {path: secrets for path, secrets in found.items() if secrets}


def told(shop: Workshop) -> None:
    """Give the secrets of the environment to agents and gates, but for the user's own."""
    listed = ",".join(HANDED_OVER)
    shop.program.env |= {**HANDED_OVER, "MY_PASSWORD": OF_THE_USER, "LOOPWRIGHT_ENVIRONMENT": listed}


def fenced(kind: str, **fields: str) -> str:
    return f"```loopwright-{kind}\n{json.dumps(fields)}\n```"


PLAN = """# Secrets

- [ ] Task 1: Say it
  - Acceptance: `sh check.sh`
"""
CHECK = """\
test -s a && echo $DEPLOY_TOKEN && echo $DATABASE_URL $LICENCE && cat leaked
test -s b || { echo "it takes $DEPLOY_TOKEN"; exit 1; }
"""


@pytest.mark.capability("C108")
@pytest.mark.timeout(200)
def test_no_planted_secret_is_in_anything_that_is_kept(shop: Workshop) -> None:
    """Said, printed, asked, noted as work, claimed, written into files, found by a reviewer and told by a gate."""
    (shop.repository / "check.sh").write_text(CHECK)
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "a check")
    source = shop.place / "plan.md"
    source.write_text(PLAN)
    told(shop)
    says = [
        {"say": EVERYTHING},
        *({"print": line} for line in EVERYTHING.split("\n")),
        {"run": "echo $DEPLOY_TOKEN; echo $DEPLOY_TOKEN >&2; echo $DATABASE_URL $LICENCE"},
    ]
    asks = fenced("ask", question=f"May I use {EVERYTHING}?", default=SHAPES["github"])
    notes = fenced("discovered", title=f"Rotate {SHAPES['aws']}", reason=f"It is {EVERYTHING}")
    works = [{"write": "a", "text": "a\n"}, {"write": "leaked", "text": f"{EVERYTHING}\n"}]
    unanswered = [*says, {"claim": f"Used {EVERYTHING}\n{asks}"}]
    first = [
        {"expect_prompt": "The answer:", "otherwise": unanswered},
        *works,
        {"claim": f"Done with {EVERYTHING}\n{notes}"},
    ]
    finds = {"file": "leaked", "line": 1, "severity": "blocking", "text": f"It has {EVERYTHING}"}
    second = [
        {"expect_prompt": "It has", "otherwise": [*works, {"write": "b", "text": "b\n"}]},
        {"write": "leaked", "text": f"less of {EVERYTHING}\n"},
        {"claim": f"Mended, with {EVERYTHING}"},
    ]
    script = {
        "tasks": {"1": [first, second]},
        "reviews": {"1": [[{"review": [finds]}], [{"say": EVERYTHING}, {"review": []}]]},
    }
    shop.script.write_text(json.dumps(script))
    shop.program.env |= {"LOOPWRIGHT_REVIEW__MODE": "always", "LOOPWRIGHT_REVIEW__MODEL": "critic"}
    going = shop.start("run", str(source))
    eventually(lambda: shop.rows(Question), timeout=60)
    assert "[redacted]" in shop.row(Question).text, "the question itself is there"
    assert shop("answer", shop.row(Question).id, "no").code == 0
    assert going.end(120) == 0, going.out
    assert shop.row(Plan).status == "VERIFIED"
    assert shop("inspect", "1").code == 0
    assert shop("receipt", "show", "--output", str(shop.place / "receipt.json")).code == 0
    assert "Rotate [redacted]" in source.read_text(), "work that was noted is told to the source"
    (blocking, _) = shop.rows(Review)
    assert "[redacted]" in blocking.findings[0].text
    looked = shop.rows(Run, role=Role.REVIEWER)
    assert "+[redacted]" in (shop.home / "runs" / looked[0].id / "prompt.md").read_text()
    assert leaks(shop, source, shop.place / "receipt.json") == {}


def test_what_an_agent_is_started_with_is_kept_without_secrets(shop: Workshop) -> None:
    """A program may be told on its command line what somebody put into a task's title, for example."""
    told(shop)
    program = executable(shop.place / "agent", "echo a > a")
    title = f"Use {SHAPES['slack']} and {PASSWORD}"
    shop.program.env |= {
        "LOOPWRIGHT_AGENT": "command",
        "LOOPWRIGHT_AGENTS__COMMAND__COMMAND": f"{program} {{prompt}}",
        "LOOPWRIGHT_AGENTS__COMMAND__PROMPT": "argument",
    }
    shop.run(shop.plan("title", [{**task("a", "test -s a"), "title": title}]))
    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    argv = " ".join(run.argv)
    assert "Use [redacted] and [redacted]" in argv
    assert SHAPES["slack"] not in (shop.home / "runs" / run.id / "spec.json").read_text()


def test_settings_with_a_secret_in_them_are_refused_because_they_are_stored(shop: Workshop) -> None:
    told(shop)
    program = executable(shop.place / "agent", "echo a > a")
    shop.program.env["LOOPWRIGHT_AGENT"] = "command"
    for secret in (OF_THE_ENVIRONMENT, SHAPES["github"], HANDED_OVER["DATABASE_URL"]):
        shop.program.env["LOOPWRIGHT_AGENTS__COMMAND__COMMAND"] = f"{program} '{secret}'"
        said = shop.run(shop.plan("options", [task("a", "test -s a")]))
        refused(said, 2, "agents.command.command: there is a secret in it", "name that in `environment`")
        assert secret not in said.out + said.err
    assert leaks(shop) == {}


IN_PIECES = """
import json, sys
def say(**fields):
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)
def words(text):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    say(method="session/update", params={"sessionId": "s", "update": update})
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        say(id=asked["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
    elif asked.get("method") == "session/new":
        say(id=asked["id"], result={"sessionId": "s"})
    elif asked.get("method") == "session/prompt":
        open("a", "w").write("a")
        for secret in SECRETS:
            words(" I use " + secret[:9])
            words(secret[9:] + " now.")
        say(id=asked["id"], result={"stopReason": "end_turn"})
"""


def test_a_secret_that_is_said_in_pieces_is_not_put_together_again(shop: Workshop) -> None:
    """Agents of the Agent Client Protocol tell their words a few letters at a time."""
    secrets = (OF_THE_ENVIRONMENT, HANDED_OVER["LICENCE"], PASSWORD, OF_THE_USER, *SHAPES.values())
    program = shop.place / "agent.py"
    program.write_text(f"SECRETS = {secrets!r}\n{IN_PIECES}")
    told(shop)
    shop.program.env |= {
        "LOOPWRIGHT_AGENT": "acp",
        "LOOPWRIGHT_AGENTS__ACP__COMMAND": f"{sys.executable} -S -I {program}",
    }
    said = shop.run(shop.plan("pieces", [task("a", "test -s a")]))
    assert said.code == 0, said.out + said.err
    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert run.summary.count("I use [redacted] now.") == len(secrets)
    assert leaks(shop) == {}


def test_a_plan_that_an_agent_wrote_is_kept_without_secrets(shop: Workshop) -> None:
    """Neither the goal nor what the planner found and put into a task."""
    told(shop)
    text = f"""\
title: Deploy
tasks:
  - id: one
    title: Deploy it
    description: Use {OF_THE_ENVIRONMENT} and {SHAPES["github"]}.
    acceptance: [test -s one]
"""
    shop.play({"plan": [[{"say": EVERYTHING}, {"claim": block(text)}]]})
    said = shop("plan", f"Deploy with {OF_THE_ENVIRONMENT} and {SHAPES['slack']}", timeout=100)
    assert said.code == 0, said.out + said.err
    (plan,) = (shop.repository / "plans").iterdir()
    assert "Use [redacted] and [redacted]." in plan.read_text()
    assert leaks(shop) == {}


def test_what_an_agent_asks_by_its_tool_is_kept_without_secrets(tmp_path: Path) -> None:
    from loopwright.adapters.agents.asked import asked_by_tool

    said = {"question": f"May I use {SHAPES['github']} and {OF_THE_ENVIRONMENT}?"}
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "ask", "arguments": said}},
    ]
    subprocess.run(
        [sys.executable, "-I", "-S", asking.__file__, str(tmp_path)],
        input="".join(json.dumps(one) + "\n" for one in calls),
        text=True,
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    (asked,) = asked_by_tool(tmp_path, (OF_THE_ENVIRONMENT,))
    assert asked.text == "May I use [redacted] and [redacted]?"
    assert not any(one.encode() in (tmp_path / asking.FILE).read_bytes() for one in ALL)

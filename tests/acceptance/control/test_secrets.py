"""Planted secrets: whatever way an agent says them, they are in no file and no row that is kept."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright import asking
from loopwright.core.model import Plan, Question

OF_THE_ENVIRONMENT = "correct horse battery staple 77"
SHAPES = {
    "anthropic": "sk-ant-api03-Zx81kQpLr0aV7tYw2mNb",
    "github": "ghp_0123456789abcdefABCDEF0123456789abcd",
    "aws": "AKIAABCDEFGHIJKLMNOP",
    "google": "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "slack": "xoxb-123456789012-abcdefghijkl",
}
KEY_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
PRIVATE_KEY = f"-----BEGIN PRIVATE KEY-----\n{KEY_LINE}\n-----END PRIVATE KEY-----"
ALL = (OF_THE_ENVIRONMENT, *SHAPES.values(), KEY_LINE)


def kept(shop: Workshop) -> dict[Path, bytes]:
    """Return every file that is kept, but for workspaces and the user's own."""
    places = (shop.home, shop.repository / ".loopwright")
    files = [
        path for place in places for path in place.rglob("*") if path.is_file() and not path.is_symlink()
    ]
    return {path: path.read_bytes() for path in files if "workspaces" not in path.parts}


@pytest.mark.capability("C110")
def test_no_planted_secret_is_in_anything_that_is_kept(shop: Workshop) -> None:
    everything = "\n".join((OF_THE_ENVIRONMENT, *SHAPES.values(), PRIVATE_KEY))
    question = json.dumps({"question": f"May I use {everything}?", "default": SHAPES["github"]})
    shop.program.env |= {"DEPLOY_TOKEN": OF_THE_ENVIRONMENT, "LOOPWRIGHT_ENVIRONMENT": "DEPLOY_TOKEN"}
    shop.play(
        {
            "a": [
                [
                    {
                        "expect_prompt": "The answer:",
                        "otherwise": [
                            {"say": everything},
                            *({"print": line} for line in everything.split("\n")),
                            {"run": "echo $DEPLOY_TOKEN; echo $DEPLOY_TOKEN >&2"},
                            {"claim": f"Used {everything}\n```loopwright-ask\n{question}\n```"},
                        ],
                    },
                    {"write": "a", "text": "a\n"},
                    {"claim": f"Done with {everything}"},
                ]
            ]
        }
    )
    check = f"test -s a && echo $DEPLOY_TOKEN {SHAPES['aws']}"
    going = shop.start(
        "run", str(shop.plan("secrets", [task("a", "test -s a")], gates=[{"name": "all", "run": check}]))
    )
    eventually(lambda: shop.rows(Question), timeout=60)
    assert "[redacted]" in shop.row(Question).text, "the question itself is there"
    assert shop("answer", shop.row(Question).id, "no").code == 0
    assert going.end(60) == 0, going.out
    assert shop.row(Plan).status == "VERIFIED"
    # What the user wrote into the plan is theirs: the gate's own command is told as it is.
    written_by_the_user = SHAPES["aws"]
    for path, content in kept(shop).items():
        found = [one for one in ALL if one.encode() in content and one != written_by_the_user]
        assert found == [], path


def test_what_an_agent_asks_by_its_tool_is_kept_without_secrets(tmp_path: Path) -> None:
    from loopwright.adapters.asked import asked_by_tool

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

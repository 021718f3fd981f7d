"""What a plan or an agent says is shown, but it steers no terminal: no escape, no hidden letter, on any screen."""

import json
import re
from typing import Any

from tests.acceptance.sandbox import Sandbox, task

from loopwright.core.values.wording import drawable

HOSTILE = "\x1b]0;OWNED\x07 \x1b[2J \u009b31m \u202eevil\rover \x7f [bold]x[/]"
SCREENS = ("status", "status --json", "show", "show bad", "logs good", "logs bad", "questions", "discovered")
_OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What the program itself uses on a terminal: colours, and moving the cursor."""


def fenced(kind: str, **fields: str) -> str:
    return f"```loopwright-{kind}\n{json.dumps(fields)}\n```"


def _words(key: str, check: str, **more: Any) -> dict[str, Any]:
    return {**task(key, check, **more), "title": f"Make {key} {HOSTILE}", "description": HOSTILE}


def test_no_screen_obeys_what_a_plan_an_agent_or_a_gate_says(sandbox: Sandbox) -> None:
    strange = "printf x > \"$(printf 'file\\033[2Jname')\""
    asks = fenced("ask", question=f"May I {HOSTILE}?", default=f"no {HOSTILE}")
    notes = fenced("discovered", title=f"Also {HOSTILE}", reason=HOSTILE)
    sandbox.play(
        {
            "good": [
                [
                    {"write": "good.txt", "text": "right\n"},
                    {"run": strange},
                    {"say": HOSTILE},
                    {"print": HOSTILE},
                    {"claim": f"{HOSTILE}\n{notes}"},
                ]
            ],
            "bad": [[{"write": "bad.txt", "text": f"{HOSTILE}\n"}, {"claim": HOSTILE}]],
            "asks": [[{"claim": f"{HOSTILE}\n{asks}"}]],
        }
    )
    plan = sandbox.plan(
        "hostile",
        [
            _words("good", "grep -q right good.txt"),
            _words("bad", "cat bad.txt; printf 'gate \\033]0;OWNED\\007\\n'; grep -q right bad.txt"),
            _words("asks", "test -e asks.txt"),
        ],
        title=f"hostile {HOSTILE}",
        settings={"max_attempts": 1, "parallel": 3},
    )
    said, worker = {}, sandbox.start("run", str(plan))
    try:
        for seen in ("✔  good", "✘  bad", "May I"):
            worker.until(seen, timeout=60)
        for words in SCREENS:
            found = sandbox(*words.split(), timeout=60)
            said[words] = found.out + found.err
        worker.interrupt()
        worker.end()
    finally:
        worker.kill()
    said["run"] = worker.out
    drawn = sandbox.on_terminal("watch", color=True)
    obeyed = {
        name: found
        for name, text in said.items()
        if (found := {letter for letter in text if drawable(letter) != letter})
    }
    assert obeyed == {}
    for screen in ("status", "questions", "show bad", "logs good"):
        assert "OWNED" in said[screen], "what was said is shown, not left out"
    assert "\x1b[2J" not in drawn
    rest = _OURS.sub("", drawn).replace("\r", "")
    assert {letter for letter in rest if drawable(letter) != letter} == set()

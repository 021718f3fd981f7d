"""Plays the scripted agent: `python scripted.py BEHAVIOUR ...`, with the rest as the adapter would give it to Python.

Most parts are scripts for the real program, which is then started; a few things no script can say.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

WORK = [{"write": "made.txt", "text": "made\n"}]
SPENT = {"usage": {"input_tokens": 120, "output_tokens": 25, "cost_micros": 1040}}
LATE = "while :; do echo late >> late.txt; sleep 0.02; done"

SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "done": [SPENT, *WORK],
    "resume": [SPENT, *WORK],
    "garbage": [
        {"garbage": 40},
        {"print": "gibberish"},
        {"print": '{"event":"gibberish","text":'},
        SPENT,
        *WORK,
    ],
    "unknown_events": [{"print": '{"event":"novelty","text":[1]}'}, SPENT, *WORK],
    "huge_output": [SPENT, *WORK],
    "overload_then_done": [{"say": "overloaded, once more"}, SPENT, *WORK],
    "children": [{"spawn": LATE}, {"wait_for": "late.txt"}, SPENT, *WORK],
    "done_then_hang": [SPENT, *WORK, {"claim": "done"}, {"hang": 60}],
    "interrupt": [{"say": "working"}, {"run": "while :; do echo x > /dev/null; done"}],
    "ignores_sigint": [{"hang": 60, "stubborn": True}],
    "hang": [{"hang": 60}],
    "limit": [{"usage_limit": 3600}],
    "retry_after": [{"fail": "rate_limit", "message": "slow down", "retry_in": 60}],
    "error_result": [{"print": '{"event":"result","ok":false,"message":"it did not work"}'}, {"exit": 0}],
    **{
        name: [{"fail": name, "message": f"the service says: {name}"}]
        for name in ("rate_limit", "overloaded", "auth", "billing", "model", "context", "refusal", "tool")
    },
}

CANNOT: dict[str, str] = {}


def started() -> None:
    """Begin as the real program does."""
    sys.stdin.read()
    sys.stdout.write(
        '{"event":"started","version":"1","session_ref":"scripted"}\n{"event":"text","text":"working"}\n'
    )
    sys.stdout.flush()


def crash_mid_write() -> None:
    """Die in the middle of a line."""
    started()
    sys.stdout.write('{"event":"result","ok":true,"summ')
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def zero_on_sigterm() -> None:
    """Work until it is ended, and then act as if all were well."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    started()
    while True:
        time.sleep(0.05)


PROGRAMS = {"crash_mid_write": crash_mid_write, "zero_on_sigterm": zero_on_sigterm}


def main(behaviour: str, given: list[str]) -> None:
    """Play a part."""
    if behaviour in PROGRAMS:
        PROGRAMS[behaviour]()
        return
    if behaviour == "huge_output":
        for _ in range(20 * 64):
            sys.stdout.write("x" * (16 * 1024 - 1) + "\n")
        sys.stdout.flush()
    script = Path(os.environ["TMPDIR"]) / "script.json"
    script.write_text(json.dumps({"default": [SCRIPTS[behaviour]]}), encoding="utf-8")
    os.execv(sys.executable, [sys.executable, *given, "--script", str(script)])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

"""Plays `claude -p --output-format stream-json` with the prompt on stdin, in short forms of the real lines."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CANNOT = dict.fromkeys(
    ("permission", "permission_granted", "permission_listed", "permission_refused"),
    "without a way to ask, it is told at its start what it may do",
) | {"tool": "it does not say when a tool server is missing"}

USED = {
    "input_tokens": 120,
    "cache_creation_input_tokens": 10,
    "cache_read_input_tokens": 50,
    "output_tokens": 25,
}
COST = 0.00104
LATE = "while :; do echo late >> late.txt; sleep 0.02; done"

# status, error of the message, text, reason
REFUSED: dict[str, tuple[int | None, str, str, str]] = {
    "auth": (401, "authentication_failed", "Invalid API key · Fix external API key", "api_error"),
    "billing": (400, "billing_error", "Credit balance is too low", "api_error"),
    "rate_limit": (429, "rate_limit", "API Error: Request rejected (429)", "api_error"),
    "overloaded": (529, "server_error", "API Error: 529 Overloaded", "api_error"),
    "model": (404, "model_not_found", "There's an issue with the selected model", "api_error"),
    "context": (400, "invalid_request", "Prompt is too long", "prompt_too_long"),
    "limit": (429, "rate_limit", "You've hit your 5-hour limit", "api_error"),
    "error_result": (None, "", "something went wrong", "api_error"),
}

SESSION = next(
    (sys.argv[n + 1] for n, word in enumerate(sys.argv) if word in ("--resume", "--session-id")), ""
)


def emit(kind: str, **fields: Any) -> None:
    sys.stdout.write(
        json.dumps({"type": kind, **fields, "session_id": SESSION}, separators=(",", ":")) + "\n"
    )
    sys.stdout.flush()


def text(words: str, **more: Any) -> None:
    emit("assistant", message={"id": "msg_1", "content": [{"type": "text", "text": words}]}, **more)


def result(words: str, *, times: int = 1, is_error: bool = False, **more: Any) -> None:
    fields = {"subtype": "success", "terminal_reason": "completed", "stop_reason": "end_turn", **more}
    emit(
        "result",
        is_error=is_error,
        num_turns=1,
        result=words,
        usage=USED,
        total_cost_usd=COST * times,
        permission_denials=[],
        **fields,
    )


def work(times: int = 1) -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {"file_path": "made.txt"}}
    emit("assistant", message={"id": "msg_1", "content": [use]})
    Path("made.txt").write_text("made\n", encoding="utf-8")
    done = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "created"}
    emit("user", message={"content": [done]}, tool_use_result={"type": "create", "filePath": "made.txt"})
    result("Made.", times=times)


def toil() -> None:
    while True:
        text("working")
        time.sleep(0.05)


def interrupt() -> None:
    try:
        toil()
    except KeyboardInterrupt:
        result("", is_error=True, subtype="error_during_execution", terminal_reason="aborted_tools")


def ignore() -> None:
    for polite in (signal.SIGINT, signal.SIGTERM):
        signal.signal(polite, signal.SIG_IGN)
    toil()


def zero() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    toil()


def children() -> None:
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(
        ["sh", "-c", LATE], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    )
    child.returncode = 0  # it is meant to outlive us
    while not Path("late.txt").exists():
        time.sleep(0.005)
    work()


def garbage() -> None:
    sys.stdout.buffer.write(b'{"type":"assistant","mess\nnull\n[1\n\xff\x00\n' + b"[" * 5000 + b"\n")
    work()


def refuse(part: str) -> None:
    status, error, words, reason = REFUSED[part]
    if part == "limit":
        resets = int(time.time()) + 3600
        about = {"status": "rejected", "resetsAt": resets, "rateLimitType": "five_hour"}
        emit("rate_limit_event", rate_limit_info=about)
    if error:
        text(words, error=error)
    result(words, is_error=True, terminal_reason=reason, api_error_status=status)


def main(part: str, given: list[str]) -> int:
    sys.stdin.read()
    init = {"subtype": "init", "model": "claude-sonnet-4-5", "claude_code_version": "2.1.325"}
    emit("system", **init)
    match part:
        case "done" | "resume":
            work(times=2 if "--resume" in given else 1)
        case "garbage":
            garbage()
        case "unknown_events":
            emit("novelty", subtype="of_tomorrow", list=[{}])
            work()
        case "huge_output":
            for _ in range(20 * 64):
                text("x" * 16 * 1024)
            work()
        case "overload_then_done":
            emit("system", subtype="api_retry", attempt=1, max_retries=2, retry_delay_ms=10, error_status=529)
            work()
        case "children":
            children()
        case "done_then_hang":
            work()
            signal.pause()
        case "interrupt":
            interrupt()
        case "ignores_sigint":
            ignore()
        case "zero_on_sigterm":
            zero()
        case "crash_mid_write":
            sys.stdout.write('{"type":"result","is_err')
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            signal.pause()
        case "refusal":
            result("I will not.", is_error=True, stop_reason="refusal", terminal_reason="api_error")
        case "error_result":
            refuse(part)
        case _:
            refuse(part)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

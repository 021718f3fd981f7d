"""Plays `claude -p` with stream-json both ways: `python claude.py BEHAVIOUR ...`, the rest as the adapter gives it.

It is opened by a control request, takes the prompt as a line on stdin, asks for leave, can be interrupted, and ends
when its stdin is closed, as the real program does: with 1 if its last result was an error.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CANNOT: dict[str, str] = {}

PRICE = 0.00104
LATE = "while :; do echo late >> late.txt; sleep 0.02; done"

# behaviour: (status, error of the message, words, reason, more of the result)
TROUBLE: dict[str, tuple[int | None, str, str, str, dict[str, Any]]] = {
    "auth": (401, "authentication_failed", "Invalid API key · Fix external API key", "api_error", {}),
    "billing": (400, "billing_error", "Credit balance is too low", "api_error", {}),
    "rate_limit": (429, "rate_limit", "API Error: Request rejected (429) · slow down", "api_error", {}),
    "retry_after": (429, "rate_limit", "API Error: Request rejected (429) · slow down", "api_error", {}),
    "overloaded": (529, "server_error", "API Error: 529 Overloaded", "api_error", {}),
    "model": (404, "model_not_found", "There's an issue with the selected model", "api_error", {}),
    "context": (400, "invalid_request", "Prompt is too long", "prompt_too_long", {}),
    "refusal": (None, "invalid_request", "I cannot help with that", "api_error", {"stop_reason": "refusal"}),
    "turns": (None, "", "Reached maximum number of turns (1)", "max_turns", {"subtype": "error_max_turns"}),
    "budget": (
        *(None, "", "Reached maximum budget ($1)", "budget_exhausted"),
        {"subtype": "error_max_budget_usd"},
    ),
    "error_result": (None, "", "something went wrong", "api_error", {}),
}


class Interrupted(Exception):
    """The turn is to stop."""


class Program:
    """One process: its stdin, its conversation and what it has said last."""

    def __init__(self, behaviour: str, arguments: list[str]) -> None:
        self.behaviour = behaviour
        self.arguments = arguments
        self.session = self.argument("--session-id") or self.argument("--resume") or "stand-in"
        home = os.environ.get("CLAUDE_CONFIG_DIR") or Path(os.environ["HOME"], ".claude")
        # A file for each: many may run at once.
        self.memory = Path(home, "projects")
        # A copy is counted on from where it was copied.
        self.runs = self.remembered(self.argument("--resume")) + 1
        self.failed = False
        self.asked = 0
        self._buffer = b""

    def argument(self, name: str) -> str:
        """Return what follows an argument; empty without it."""
        if name not in self.arguments:
            return ""
        return self.arguments[self.arguments.index(name) + 1]

    def remembered(self, session: str) -> int:
        """Return how many runs a conversation has had."""
        known = self.memory / session
        return int(known.read_text()) if session and known.exists() else 0

    def say(self, kind: str, **fields: Any) -> None:
        """Print a line at once."""
        line = {"type": kind, **fields, "session_id": self.session}
        sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
        sys.stdout.flush()

    def hear(self, timeout: float | None = None) -> dict[str, Any] | None:
        """Return the next line from stdin; None when none came in time. At its end the program ends."""
        while b"\n" not in self._buffer:
            if timeout is not None and not select.select([0], [], [], timeout)[0]:
                return None
            data = os.read(0, 65536)
            if not data:
                sys.exit(1 if self.failed else 0)
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        heard: dict[str, Any] = json.loads(line)
        if heard["type"] == "control_request":
            self._answer(heard)
        return heard

    def _answer(self, heard: dict[str, Any]) -> None:
        kind = heard["request"]["subtype"]
        if kind == "interrupt" and self.behaviour == "ignores_sigint":
            return
        answer = {"subtype": "success", "request_id": heard["request_id"], "response": {}}
        self.say("control_response", response=answer)
        if kind == "interrupt":
            raise Interrupted

    def prompt(self) -> None:
        """Wait until something is said to it, and begin the turn."""
        while (heard := self.hear()) is None or heard["type"] != "user":
            continue
        servers = [{"name": "toy", "status": "failed", "source": "dynamic"}]
        self.say(
            "system",
            subtype="init",
            model="stand-in",
            claude_code_version="2.1.325",
            permissionMode=self.argument("--permission-mode"),
            cwd=str(Path.cwd()),
            mcp_servers=servers if self.behaviour == "tool" else [],
        )

    def text(self, words: str, **more: Any) -> None:
        """Say something as the model."""
        self.say("assistant", message={"id": "msg_1", "content": [{"type": "text", "text": words}]}, **more)

    def leave(self, tool: str, given: dict[str, str]) -> dict[str, Any]:
        """Ask for leave to use a tool, where the mode asks at all; return the answer."""
        if self.argument("--permission-mode") != "default":
            return {"behavior": "allow"}
        self.asked += 1
        request = {"subtype": "can_use_tool", "tool_name": tool, "input": given, "tool_use_id": "toolu_1"}
        line = {"type": "control_request", "request_id": f"asks-{self.asked}", "request": request}
        sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
        sys.stdout.flush()
        while True:
            heard = self.hear()
            if heard and heard["type"] == "control_response":
                response: dict[str, Any] = heard["response"]
                assert response["request_id"] == f"asks-{self.asked}"
                if response["subtype"] != "success":
                    return {"behavior": "deny", "message": response["error"]}
                answer: dict[str, Any] = response["response"]
                if answer.get("interrupt"):
                    raise Interrupted
                return answer

    def use(self, tool: str, given: dict[str, str]) -> bool:
        """Use a tool, if that is allowed."""
        use = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": given}
        self.say("assistant", message={"id": "msg_1", "content": [use]})
        answer = self.leave(tool, given)
        allowed = bool(answer["behavior"] == "allow")
        if allowed:
            path = Path(given.get("file_path", "dist.txt"))
            path.write_text("made\n", encoding="utf-8")
        done = {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": "done" if allowed else answer["message"],
            "is_error": not allowed,
        }
        self.say("user", message={"content": [done]})
        return allowed

    def result(self, words: str, *, is_error: bool = False, spent: bool = True, **more: Any) -> None:
        """End the turn; cost and tokens by model are those of the whole conversation."""
        self.failed = is_error
        self.memory.mkdir(parents=True, exist_ok=True)
        (self.memory / self.session).write_text(str(self.runs))
        turn = {
            "input_tokens": 120,
            "output_tokens": 25,
            "cache_read_input_tokens": 50,
            "cache_creation_input_tokens": 10,
        }
        total = {
            "inputTokens": 120 * self.runs,
            "outputTokens": 25 * self.runs,
            "cacheReadInputTokens": 50 * self.runs,
            "cacheCreationInputTokens": 10 * self.runs,
        }
        self.say(
            "result",
            **{
                "subtype": "success",
                "is_error": is_error,
                "result": words,
                "terminal_reason": "completed",
                "stop_reason": "end_turn",
                "num_turns": 1,
                "permission_denials": [],
                "usage": turn if spent else dict.fromkeys(turn, 0),
                "modelUsage": {"stand-in": total} if spent else {},
                "total_cost_usd": PRICE * self.runs if spent else 0,
                **more,
            },
        )

    def made(self) -> None:
        """Do the work, and say so."""
        if self.use("Write", {"file_path": str(Path.cwd() / "made.txt"), "content": "made\n"}):
            self.result("Made.")
        else:
            self.result("I may not.", permission_denials=[{"tool_name": "Write"}])


def trouble(program: Program) -> None:
    """Be refused by the service."""
    status, error, words, reason, more = TROUBLE[program.behaviour]
    if program.behaviour in ("rate_limit", "retry_after"):
        # Its own first pause, with nothing asked for, is half a second and up to a quarter more.
        delay_ms = 60_000 if program.behaviour == "retry_after" else 553
        about = {"attempt": 1, "max_retries": 2, "error_status": status, "error": error}
        program.say("system", subtype="api_retry", retry_delay_ms=delay_ms, **about)
    if error:
        program.text(words, error=error, api_error_status=status)
    program.result(words, is_error=True, spent=False, terminal_reason=reason, api_error_status=status, **more)
    if program.behaviour == "error_result":
        program.failed = False


def limit(program: Program) -> None:
    """Reach the limit of a subscription."""
    info = {"status": "rejected", "resetsAt": int(time.time()) + 3600, "rateLimitType": "five_hour"}
    window = {"utilization": 1, "resetsAt": info["resetsAt"], "status": "rejected"}
    program.say("rate_limit_event", rate_limit_info={**info, "unifiedWindows": {"five_hour": window}})
    words = "You've hit your 5-hour limit · resets 9:44pm (UTC)"
    program.text(
        words,
        error="rate_limit",
        api_error="usage_limit_reached",
        api_error_params={"rate_limit_info": info},
    )
    program.result(words, is_error=True, spent=False, terminal_reason="api_error", api_error_status=429)


def overload_then_done(program: Program) -> None:
    """Get over an overload."""
    program.say("system", subtype="api_retry", attempt=1, max_retries=2, error_status=529, error="overloaded")
    program.made()


def permission(program: Program) -> None:
    """Want to run a command that writes dist.txt."""
    if program.use("Bash", {"command": "make dist", "description": "Build it"}):
        program.result("Built.")
    else:
        program.text("I may not build it.")
        program.result("Not built.", permission_denials=[{"tool_name": "Bash"}])


def garbage(program: Program) -> None:
    """Print what nobody can read, then do the work."""
    sys.stdout.flush()
    odd = (
        b'\xff\xfe\x00 gibberish \x1b[31m\n{"type":"result","gibberish":fal\n' + b"[" * 5000 + b"\nnull\n{}\n"
    )
    sys.stdout.buffer.write(odd + b'{"type":"assistant","message":7}\n{"type":"control_request"}\n')
    sys.stdout.buffer.flush()
    program.made()


def unknown_events(program: Program) -> None:
    """Say what nobody knows yet, and ask what nobody knows yet, then do the work."""
    program.say("novelty", subtype="shiny", payload=[1, {"a": None}])
    program.say("system", subtype="novelty_of_a_system")
    program.say("control_request", request_id="new-1", request={"subtype": "novelty"})
    heard = program.hear()
    assert heard
    assert heard["response"]["subtype"] == "error", "who does not understand says so"
    program.made()


def crash_mid_write(program: Program) -> None:
    """Die in the middle of a line."""
    program.text("working")
    sys.stdout.write('{"type":"result","subtype":"success","is_error":false,"resu')
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def hang(_: Program) -> None:
    """Show no sign of life."""
    while True:
        signal.pause()


def done_then_hang(program: Program) -> None:
    """Do the work, say so, and stay, whatever becomes of stdin."""
    program.made()
    hang(program)


def huge_output(program: Program) -> None:
    """Print 20 MB, then do the work."""
    for _ in range(20 * 64):
        program.text("x" * 16 * 1024)
    program.made()


def children(program: Program) -> None:
    """Leave a process behind that goes on writing."""
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(
        ["/bin/sh", "-c", LATE], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    )
    child.returncode = 0  # it is meant to outlive us
    while not Path("late.txt").exists():
        time.sleep(0.005)
    program.made()


def toil(program: Program) -> None:
    """Work until somebody stops it."""
    while True:
        program.text("working")
        program.hear(timeout=0.05)


def ignores_sigint(program: Program) -> None:
    """Work on, whatever is politely asked."""
    for polite in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(polite, signal.SIG_IGN)
    toil(program)


def zero_on_sigterm(program: Program) -> None:
    """Work until it is ended, and then act as if all were well."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    toil(program)


def tool(program: Program) -> None:
    """Have no tool server (its opening line says so), and go on without it."""
    toil(program)


PARTS = {
    **dict.fromkeys(TROUBLE, trouble),
    **dict.fromkeys(("done", "resume"), Program.made),
    "interrupt": toil,
    **{
        one.__name__: one
        for one in (
            limit, overload_then_done, permission, garbage, unknown_events, crash_mid_write, hang, done_then_hang,
            huge_output, children, ignores_sigint, zero_on_sigterm, tool,
        )
    },
}  # fmt: skip


def main(behaviour: str, arguments: list[str]) -> None:
    """Play a part, turn by turn, until stdin is closed."""
    program = Program(behaviour, arguments)
    while True:
        try:
            program.prompt()
            PARTS[behaviour](program)
        except Interrupted:
            program.result(
                "", is_error=True, subtype="error_during_execution", terminal_reason="aborted_tools"
            )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

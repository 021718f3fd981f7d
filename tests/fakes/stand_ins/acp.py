"""Plays an agent of the Agent Client Protocol: `python acp.py BEHAVIOUR ...`, with the rest as the adapter gives it.

The messages have the shapes that the real programs were heard to send. Which of them it plays it takes from what the
adapter sets for each, as the real ones do. What the protocol cannot express is in the table at the end.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LATE = "while :; do echo late >> late.txt; sleep 0.02; done"
COST = 0.00104
TOKENS = {"inputTokens": 120, "outputTokens": 25, "totalTokens": 145, "cachedReadTokens": 50}

MARKS = {
    "GEMINI_CLI_NO_RELAUNCH": "gemini",
    "OPENCODE_PERMISSION": "opencode",
    "GOOSE_MODE": "goose",
    "COPILOT_AUTO_UPDATE": "copilot",
    "CLAUDE_CODE_MAX_RETRIES": "claude",
}
"""Variables that the adapter sets for one agent only."""

VERSIONS = {
    "gemini": "0.61.0",
    "opencode": "1.18.33",
    "goose": "1.52.0",
    "copilot": "1.0.102",
    "claude": "0.99.1",
}
MODES = {
    "gemini": ("default", "autoEdit", "yolo", "plan"),
    "qwen": ("plan", "default", "auto-edit", "yolo"),
    "goose": ("auto", "approve", "smart_approve", "chat"),
    "claude": ("default", "acceptEdits", "plan", "auto", "bypassPermissions"),
    "copilot": tuple(
        f"https://agentclientprotocol.com/protocol/session-modes#{name}"
        for name in ("agent", "plan", "autopilot")
    ),
}
OPTIONS = {
    "gemini": ("proceed_always", "proceed_once", "cancel"),
    "qwen": ("proceed_always", "proceed_once", "cancel"),
    "opencode": ("always", "once", "reject"),
    "claude": ("allow-with-updates", "allow-once", "reject"),
}
KINDS = ("allow_always", "allow_once", "reject_once")

ERRORS: dict[str, tuple[int, str, str]] = {
    "limit": (429, "rate_limit", "You've hit your 5-hour limit · resets {at} (UTC)"),
    "rate_limit": (429, "rate_limit", "Rate limit reached for requests"),
    "retry_after": (429, "rate_limit", "Rate limit reached for requests. Please try again in 60s."),
    "overloaded": (529, "server_error", "Overloaded"),
    "auth": (401, "authentication_failed", "Incorrect API key provided"),
    "billing": (400, "billing_error", "Your credit balance is too low"),
    "model": (404, "model_not_found", "The model `nosuch` does not exist"),
    "context": (400, "invalid_request", "prompt is too long: 250000 tokens > 200000 maximum"),
    "error_result": (400, "unknown", "something went wrong"),
}
"""Behaviours that end with an error: the status of the service, claude's name for it, and its words."""

HIDDEN: dict[tuple[str, str], tuple[str, int]] = {
    ("gemini", "limit"): (
        "You have exhausted your capacity on this model. Your quota will reset after 1h0m0s.",
        3_600_000,
    ),
    ("opencode", "limit"): ("5-hour usage limit reached. Resets in 1hr", 3_600_000),
    ("opencode", "rate_limit"): ("Rate limit reached for requests", 0),
    ("gemini", "retry_after"): ("Rate limit reached for requests", 60_000),
    ("opencode", "retry_after"): ("Rate limit reached for requests. Please try again in 60s.", 0),
    ("gemini", "overload_then_done"): ("The model is overloaded. Please try again later.", 0),
    ("opencode", "overload_then_done"): ("Provider is overloaded", 0),
}
"""What these do not tell as an error, but try again without a word in the protocol: the words of the service, and how
many milliseconds later it wants to be asked again, if it says so."""

NOW = "2026-11-16T19:17:57.792Z"
TRIES = 5
"""So often OpenCode asks again before it gives up."""


def say(message: dict[str, Any]) -> None:
    """Print a message at once."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


class Agent:
    """One agent, with one conversation."""

    def __init__(self, behaviour: str, given: Sequence[str]) -> None:
        self.behaviour = behaviour
        self.given = given
        plain = "qwen" if "--acp" in given else "acp"
        self.dialect = next((name for mark, name in MARKS.items() if mark in os.environ), plain)
        self.session = ""
        self.prompt: Any = None
        self.cancelled = False
        self._received = b""
        self._asked = 0
        # A file for each: many may run at once.
        self._memory = Path(os.environ["HOME"]) / "conversations"

    def serve(self) -> None:
        """Answer until stdin is closed."""
        while (message := self.next()) is not None:
            self.take(message)
        if self.behaviour in ("done_then_hang", "ignores_sigint"):
            signal.pause()

    def next(self, patience_s: float | None = None) -> dict[str, Any] | None:
        """Return the next message; None at the end, or when there is none for so long."""
        while b"\n" not in self._received:
            if not select.select([sys.stdin], [], [], patience_s)[0]:
                return None
            data = os.read(0, 65536)
            if not data:
                return None
            self._received += data
        line, self._received = self._received.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def take(self, message: dict[str, Any]) -> None:
        """Do what is asked."""
        match message.get("method"):
            case "initialize":
                can = {"loadSession": True, "promptCapabilities": {"image": True}}
                about = {"name": self.dialect, "version": VERSIONS.get(self.dialect, "0.15.10")}
                self.answer(message, {"protocolVersion": 1, "agentCapabilities": can, "agentInfo": about})
            case "session/new" | "session/load" | "session/resume" | "session/fork":
                self.begin(message)
            case "session/prompt":
                self.prompt = message
                self.play()
            case "session/cancel":
                self.cancelled = True
            case "session/set_mode" | "authenticate":
                self.answer(message, {})
            case method if "id" in message and method is not None:
                self.refuse(message, -32601, f'"Method not found": {method}')

    def begin(self, message: dict[str, Any]) -> None:
        """Begin a conversation, or go on with one."""
        known = message["params"].get("sessionId")
        if known is not None and self.turns_of(known) is None:
            self.refuse(message, -32002, "Resource not found", f"Session not found: {known}")
            return
        is_new = known is None or message["method"] == "session/fork"
        self.session = f"session-{os.getpid()}" if is_new else known
        if known is not None and is_new and self.dialect == "opencode":
            # It counts on from where it was copied; others count a copy anew.
            self.remember(self.turns_of(known) or 0)
        modes = MODES.get(self.dialect)
        result: dict[str, Any] = {"sessionId": self.session} if is_new else {}
        if modes:
            result["modes"] = {
                "currentModeId": modes[0],
                "availableModes": [{"id": mode, "name": mode} for mode in modes],
            }
        if message["method"] == "session/load":
            # It repeats the whole conversation, with what was used.
            self.update("user_message_chunk", content=text("Play your part."))
            self.update("agent_message_chunk", content=text("made.txt is made"), _meta={"usage": TOKENS})
        self.answer(message, result)
        self.update("available_commands_update", availableCommands=[])

    def turns_of(self, session: str) -> int | None:
        """Return how many turns a conversation has had; None when there is no such conversation."""
        known = self._memory / session
        return int(known.read_text()) if known.is_file() else None

    def remember(self, turns: int) -> None:
        """Write down how many turns the conversation has had."""
        self._memory.mkdir(parents=True, exist_ok=True)
        (self._memory / self.session).write_text(str(turns))

    def answer(self, message: dict[str, Any], result: dict[str, Any]) -> None:
        """Answer a request."""
        say({"id": message["id"], "result": result})

    def refuse(self, message: dict[str, Any], code: int, words: str, data: Any = None) -> None:
        """Answer a request with an error."""
        error = {"code": code, "message": words}
        say({"id": message["id"], "error": error if data is None else {**error, "data": data}})

    def update(self, what: str, **facts: Any) -> None:
        """Tell of the work."""
        update = {"sessionUpdate": what, **facts}
        say({"method": "session/update", "params": {"sessionId": self.session, "update": update}})

    def words(self, said: str, **facts: Any) -> None:
        """Say something."""
        self.update("agent_message_chunk", content=text(said), **facts)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the other side, and return its answer."""
        number, self._asked = self._asked, self._asked + 1
        asked = f"00000000-{number:04}" if self.dialect == "goose" else number
        say({"id": asked, "method": method, "params": {"sessionId": self.session, **params}})
        while (message := self.next()) is not None:
            if message.get("id") == asked and "method" not in message:
                return message
            self.take(message)
        sys.exit(1)

    def may(self, call: dict[str, Any]) -> str:
        """Ask leave for a call; return what was chosen."""
        names = OPTIONS.get(self.dialect, KINDS)
        options = [
            {"optionId": name, "name": name, "kind": kind} for name, kind in zip(names, KINDS, strict=True)
        ]
        if self.dialect == "goose":
            # It tells no kind, and the tool's name only before.
            given = {"toolName": "shell" if "command" in call["rawInput"] else "write"}
            told = {key: call[key] for key in ("toolCallId", "title", "rawInput")}
            self.update("tool_call", **told, _meta={"goose": {"toolCall": given}})
            call = {**told, "kind": "other", "status": "pending"}
        elif self.dialect == "gemini":
            # Nothing is told of a call before leave is asked for it, and never its input.
            call = {key: value for key, value in call.items() if key != "rawInput"}
        else:
            self.update("tool_call", **call)
        outcome = self.ask("session/request_permission", toolCall=call, options=options)["result"]["outcome"]
        if outcome["outcome"] == "cancelled":
            return "cancelled"
        return KINDS[names.index(outcome["optionId"])]

    def play(self) -> None:
        """Play the turn."""
        match self.behaviour:
            case "permission":
                self.permission()
            case "interrupt" | "ignores_sigint" | "zero_on_sigterm":
                self.work()
            case "refusal":
                self.words("I cannot help with that.")
                self.end("refusal")
            case "turns":
                self.words("I've reached the maximum number of actions I can do without user input. Go on?")
                self.end("end_turn" if self.dialect == "goose" else "max_turn_requests")
            case "crash_mid_write":
                sys.stdout.write(f'{{"jsonrpc":"2.0","id":{self.prompt["id"]},"result":{{"stopRea')
                sys.stdout.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            case hidden if (self.dialect, hidden) in HIDDEN and hidden != "overload_then_done":
                self.keep_trying()
            case failing if failing in ERRORS:
                self.fail(*ERRORS[failing])
            case _:
                self.done()

    def tried(self, attempt: int) -> None:
        """Note that a call failed and is tried again, for those who have it told that they want to know."""
        words, pause_ms = HIDDEN[self.dialect, self.behaviour]
        if self.dialect == "gemini" and os.environ.get("GEMINI_DEBUG_LOG_FILE") == "/dev/stderr":
            how = f"after {pause_ms}ms" if pause_ms else "with backoff"
            told = f"[{NOW}] [DEBUG] Flags {{\n  flags: []\n}}\n"
            told += f"[{NOW}] [WARN] Attempt {attempt} failed: {words}. Retrying {how}..."
        elif self.dialect == "opencode" and "--print-logs" in self.given:
            told = (
                f'timestamp={NOW} level=ERROR run=5e9ae6f6 message="stream error" providerID=local modelID=any '
                f'session.id={self.session} small=false agent=build mode=primary error.error="AI_APICallError: {words}"'
            )
        else:
            return
        sys.stderr.write(told + "\n")
        sys.stderr.flush()

    def keep_trying(self) -> None:
        """Call a service again that refuses, until there is no more hope, or somebody stops it."""
        for attempt in range(1, TRIES + 1):
            self.tried(attempt)
            # One of an hour is only over when it is stopped; shorter ones are not played in their length.
            message = self.next(None if HIDDEN[self.dialect, self.behaviour][1] > 60_000 else 0.05)
            if message is not None:
                self.take(message)
            if self.cancelled:
                # OpenCode ends its turn then as if it had been done.
                self.end("end_turn" if self.dialect == "opencode" else "cancelled")
                return
        self.fail(*ERRORS[self.behaviour])

    def done(self) -> None:
        """Do the work and end well, after whatever the behaviour has before it."""
        self.before()
        self.words("Working.", messageId="first")
        path = str(Path.cwd() / "made.txt")
        call = {"toolCallId": "call-1", "title": "Write made.txt", "kind": "edit", "status": "pending"}
        chosen = self.may(
            {**call, "locations": [{"path": path}], "rawInput": {"path": path, "content": "made"}}
        )
        if chosen == "allow_once":
            Path("made.txt").write_text("made\n", encoding="utf-8")
        if self.dialect == "opencode":
            # It was told that we write no files, and asks us to all the same.
            assert self.ask("fs/write_text_file", path=path, content="made\n")["error"]["code"] == -32601
        status = "completed" if chosen == "allow_once" else "failed"
        self.update("tool_call_update", toolCallId="call-1", status=status, locations=[{"path": path}])
        for word in ("made.txt ", "is ", "made"):
            self.words(word, messageId="second")
        self.end("end_turn")

    def before(self) -> None:
        """Do what the behaviour has before the work."""
        match self.behaviour:
            case "garbage":
                sys.stdout.flush()
                sys.stdout.buffer.write(
                    b'{"jsonrpc":"2.0","id":6,"gibberish\n\xff\xfe\x00 gibberish \x1b[31m\n'
                    + b"[" * 5000
                    + b"\n[1]\n7\n"
                )
                sys.stdout.flush()
            case "unknown_events":
                self.update("novelty", news=[1])
                say({"method": "session/novelty", "params": {}})
                say({"novelty": "else"})
                assert self.ask("session/novelty_wanted")["error"]["code"] == -32601
            case "huge_output":
                self.update(
                    "tool_call", toolCallId="call-0", title="cat", kind="execute", status="in_progress"
                )
                for _ in range(20 * 64):
                    content = [{"type": "content", "content": text("x" * 16_000)}]
                    self.update("tool_call_update", toolCallId="call-0", content=content)
                self.update("tool_call_update", toolCallId="call-0", status="completed")
            case "overload_then_done" if (self.dialect, self.behaviour) in HIDDEN:
                self.tried(1)
            case "overload_then_done" if self.dialect == "copilot":
                self.words("Info: Request failed due to a transient API error. Retrying...")
            case "overload_then_done":
                raise AssertionError(f"nobody knows how {self.dialect} tells of one")
            case "children":
                leave_a_child()

    def permission(self) -> None:
        """Ask leave for a command, and run it if that is allowed."""
        self.words("Building.", messageId="first")
        title = "build it" if self.dialect == "copilot" else "make dist"
        call = {"toolCallId": "call-1", "title": title, "kind": "execute", "status": "pending"}
        chosen = self.may({**call, "rawInput": {"command": "make dist"}})
        if chosen == "allow_once":
            Path("dist.txt").write_text("dist\n", encoding="utf-8")
        status = "completed" if chosen == "allow_once" else "failed"
        self.update("tool_call_update", toolCallId="call-1", status=status)
        if chosen == "reject_once" and self.dialect == "copilot":
            self.words("Info: Operation cancelled by user")
        elif chosen != "cancelled":
            self.words("I did what I may.", messageId="second")
        self.end("cancelled" if self.cancelled else "end_turn")

    def work(self) -> None:
        """Work until somebody stops it."""
        if self.behaviour == "ignores_sigint":
            for polite in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(polite, signal.SIG_IGN)
        if self.behaviour == "zero_on_sigterm":
            signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        self.update("tool_call", toolCallId="call-1", title="sleep 60", kind="execute", status="in_progress")
        while not self.cancelled or self.behaviour == "ignores_sigint":
            message = self.next(0.05)
            if message is not None:
                self.take(message)
            self.update("tool_call_update", toolCallId="call-1")
        self.end("cancelled")

    def fail(self, status: int, kind: str, words: str) -> None:
        """Tell of an error in the way of the agent that is played."""
        moment = time.gmtime(time.time() + 3600)
        words = words.format(
            at=f"{moment.tm_hour % 12 or 12}:{moment.tm_min:02}{'ap'[moment.tm_hour >= 12]}m"
        )
        match self.dialect:
            case "goose" | "claude" if self.behaviour == "auth":
                self.refuse(self.prompt, -32000, "Authentication required")
            case "goose":
                self.words(
                    f"Ran into this error: Request failed: error ({status}): {words}.\n\nPlease retry."
                )
                self.end("end_turn")
            case "copilot":
                self.words(f"Error: {words} (HTTP {status}).")
                self.end("end_turn")
            case "claude":
                self.words(words)
                self.refuse(self.prompt, -32603, f"Internal error: {words}", {"errorKind": kind})
            case "gemini":
                self.refuse(self.prompt, status, words)
            case "opencode":
                named = {"service": "session", "errorName": "APIError"}
                self.refuse(self.prompt, -32603, f"Internal error: {words}", named)
            case _:
                self.refuse(self.prompt, -32603, "Internal error", {"details": f"{status} {words}"})

    def end(self, reason: str) -> None:
        """End the turn, and tell what it used; what it cost is counted on over the whole conversation."""
        turns = (self.turns_of(self.session) or 0) + 1
        self.remember(turns)
        used: dict[str, Any] = {"used": 145, "size": 128_000}
        if self.dialect in ("opencode", "claude"):
            used["cost"] = {"amount": round(COST * turns, 6), "currency": "USD"}
        self.update("usage_update", **used)
        result: dict[str, Any] = {"stopReason": reason}
        match self.dialect:
            case "gemini":
                counted = {"input_tokens": 120, "output_tokens": 25}
                models = [{"model": "gemini-2.5-pro", "token_count": counted}]
                result["_meta"] = {"quota": {"token_count": counted, "model_usage": models}}
            case "qwen":
                self.words("", _meta={"usage": TOKENS})
            case "acp":
                pass
            case _:
                result["usage"] = TOKENS
        self.answer(self.prompt, result)


def text(said: str) -> dict[str, Any]:
    """Return words as a message has them."""
    return {"type": "text", "text": said}


def leave_a_child() -> None:
    """Leave a process behind that goes on writing."""
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(
        ["/bin/sh", "-c", LATE], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    )
    child.returncode = 0  # it is meant to outlive us
    while not Path("late.txt").exists():
        time.sleep(0.005)


CANNOT = {"tool": "an agent goes on without a tool server that does not start, and says nothing of it"}
CANNOT_TELL = {**CANNOT, "overload_then_done": "it was not heard to say anything of one"}


def main(behaviour: str, given: Sequence[str]) -> int:
    """Play a part."""
    if "--version" in given:
        sys.stdout.write("stand-in 1\n")
        return 0
    if behaviour == "hang":
        signal.pause()
    Agent(behaviour, given).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

"""Plays Codex: `python codex.py BEHAVIOUR app-server|exec ...`, with the rest as the real program gets it.

The messages have the shapes that the real program was heard to send. What its protocols cannot express is in the
tables at the end.
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

VERSION = "0.166.0"
TURN = {"inputTokens": 120, "cachedInputTokens": 50, "cacheWriteInputTokens": 10, "outputTokens": 25}
DIFF = "diff --git a/made.txt b/made.txt\nnew file mode 100644\n--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+made\n"
LATE = "while :; do echo late >> late.txt; sleep 0.02; done"

ERRORS: dict[str, tuple[Any, str]] = {
    "limit": ("usageLimitExceeded", "You’ve hit your usage limit. Upgrade to Pro or try again at 8:48 PM."),
    "rate_limit": (
        {"responseTooManyFailedAttempts": {"httpStatusCode": 429}},
        "exceeded retry limit, last status: 429 Too Many Requests",
    ),
    "retry_after": (
        "rateLimitExceeded",
        "rate limit exceeded: Rate limit reached. Please try again in 60s.",
    ),
    "overloaded": ("serverOverloaded", "Selected model is at capacity. Please try a different model."),
    "auth": (
        {"httpConnectionFailed": {"httpStatusCode": 401}},
        "unexpected status 401 Unauthorized: Incorrect API key provided",
    ),
    "billing": ("usageLimitExceeded", "Quota exceeded. Check your plan and billing details."),
    "model": (
        {"httpConnectionFailed": {"httpStatusCode": 404}},
        "unexpected status 404 Not Found: The model `gpt-0` does not exist or you do not have access to it.",
    ),
    "context": ("contextWindowExceeded", "Codex ran out of room in the model's context window."),
    "refusal": ("cyberPolicy", "This content was flagged for possible cybersecurity risk."),
    "error_result": ("other", "something went wrong"),
}
"""Behaviours that end the turn with an error: its name, and its words."""

BROKEN_TOOL = "required MCP servers failed to initialize: toy: handshaking with MCP server failed"


def say(message: dict[str, Any]) -> None:
    """Print a message at once."""
    sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
    sys.stdout.flush()


class Memory:
    """What outlives the process: how many turns each conversation has had."""

    def __init__(self) -> None:
        home = Path(os.environ.get("CODEX_HOME") or Path(os.environ["HOME"]) / ".codex")
        # A file for each: many may run at once.
        self._folder = home / "sessions"
        self._folder.mkdir(parents=True, exist_ok=True)

    def turns(self, thread: str) -> int | None:
        """Return how many turns a conversation has had; None when there is no such conversation."""
        known = self._folder / thread
        return int(known.read_text()) if known.is_file() else None

    def count(self, thread: str, turns: int) -> None:
        """Write down a conversation."""
        (self._folder / thread).write_text(str(turns))


def made() -> None:
    """Do the work."""
    Path("made.txt").write_text("made\n", encoding="utf-8")


def leave_a_child() -> None:
    """Leave a process behind that goes on writing."""
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(
        ["/bin/sh", "-c", LATE], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    )
    child.returncode = 0  # it is meant to outlive us
    while not Path("late.txt").exists():
        time.sleep(0.005)


def garbage() -> None:
    """Print what nobody can read."""
    sys.stdout.flush()
    sys.stdout.buffer.write(
        b'{"method":"gibberish/comp\n\xff\xfe\x00 gibberish \x1b[31m\n' + b"[" * 5000 + b"\n[1]\n7\n"
    )
    sys.stdout.flush()


def deaf() -> None:
    """Do not listen to whoever politely asks to stop."""
    for polite in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(polite, signal.SIG_IGN)


class AppServer:
    """The app server, for one conversation."""

    def __init__(self, behaviour: str) -> None:
        self.behaviour = behaviour
        self.memory = Memory()
        self.thread = ""
        self.turn = ""
        self._received = b""
        self._asked = 0

    def serve(self) -> None:
        """Answer until stdin is closed."""
        while (message := self.next()) is not None:
            match message.get("method"):
                case "initialize":
                    agent = f"{message['params']['clientInfo']['name']}/{VERSION} (Debian 12.0.0; x86_64)"
                    self.answer(
                        message, {"userAgent": agent, "platformFamily": "unix", "platformOs": "linux"}
                    )
                case "account/read":
                    self.answer(message, {"account": {"type": "apiKey"}, "requiresOpenaiAuth": True})
                case "thread/start" | "thread/resume" | "thread/fork":
                    self.begin(message)
                case "turn/start":
                    self.turn = f"{self.thread}-turn-{(self.memory.turns(self.thread) or 0) + 1}"
                    turn = {"id": self.turn, "rootTurnId": self.turn, "items": [], "status": "inProgress"}
                    self.answer(message, {"turn": turn})
                    self.tell("turn/started", turn=turn)
                    self.play()
                    if self.behaviour == "done_then_hang":
                        signal.pause()

    def next(self, wait_s: float | None = None) -> dict[str, Any] | None:
        """Return the next message of the other side; None when it has no more, or none in that time."""
        while b"\n" not in self._received:
            ready, _, _ = select.select([0], [], [], wait_s)
            if not ready:
                return None
            data = os.read(0, 1 << 16)
            if not data:
                return None
            self._received += data
        line, self._received = self._received.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def answer(self, message: dict[str, Any], result: dict[str, Any]) -> None:
        """Answer a request."""
        say({"id": message["id"], "result": result})

    def tell(self, method: str, **params: Any) -> None:
        """Say that something happened in our conversation."""
        ours = {"threadId": self.thread, "turnId": self.turn} if method.startswith("item/") else {}
        say({"method": method, "params": {"threadId": self.thread, **ours, **params}})

    def ask(self, method: str, **params: Any) -> Any:
        """Ask the other side, and return its answer."""
        number, self._asked = self._asked, self._asked + 1
        say(
            {
                "method": method,
                "id": number,
                "params": {"threadId": self.thread, "turnId": self.turn, **params},
            }
        )
        while (message := self.next()) is not None:
            if message.get("id") == number and "method" not in message:
                return message["result"]
        sys.exit(1)

    def begin(self, message: dict[str, Any]) -> None:
        """Begin a conversation, or go on with one."""
        params = message["params"]
        known = params.get("threadId", "")
        if known and self.memory.turns(known) is None:
            error = {"code": -32600, "message": f"no rollout found for thread id {known}"}
            say({"id": message["id"], "error": error})
            return
        if self.behaviour == "tool":
            say({"id": message["id"], "error": {"code": -32603, "message": BROKEN_TOOL}})
            return
        self.thread = known if message["method"] == "thread/resume" else f"thread-{os.getpid()}"
        if message["method"] != "thread/resume":
            self.memory.count(self.thread, self.memory.turns(known) or 0 if known else 0)
        thread: dict[str, Any] = {
            "id": self.thread,
            "cliVersion": VERSION,
            "turns": [],
            "cwd": str(Path.cwd()),
        }
        model = params.get("model") or "gpt-5.5"
        self.answer(message, {"thread": thread, "model": model, "cwd": str(Path.cwd())})
        say({"method": "thread/started", "params": {"thread": thread}})

    def play(self) -> None:
        """Play the turn."""
        self.item("completed", type="userMessage", id="user", content=[])
        match self.behaviour:
            case "permission":
                self.permission()
            case "interrupt" | "ignores_sigint" | "zero_on_sigterm":
                self.work()
            case "crash_mid_write":
                sys.stdout.write('{"method":"turn/completed","params":{"threadId":"')
                sys.stdout.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            case failing if failing in ERRORS:
                self.fail(*ERRORS[failing])
            case _:
                self.done()

    def item(self, what: str, **item: Any) -> None:
        """Tell of an item."""
        self.tell(f"item/{what}", item=item)

    def done(self) -> None:
        """Do the work and end well, after whatever the behaviour has before it."""
        match self.behaviour:
            case "garbage":
                garbage()
            case "unknown_events":
                self.tell("turn/novelty", news=[1])
                self.item("completed", type="noveltyItem", id="novel")
                say({"novelty": "else"})
            case "huge_output":
                for _ in range(20 * 64):
                    self.tell("item/commandExecution/outputDelta", itemId="call", delta="x" * 16_000)
            case "overload_then_done":
                error = {"message": "Reconnecting... 1/5", "codexErrorInfo": "serverOverloaded"}
                self.tell("error", error=error, willRetry=True)
            case "children":
                leave_a_child()
        change = {"path": str(Path.cwd() / "made.txt"), "kind": {"type": "add"}, "diff": "made\n"}
        item = {"type": "fileChange", "id": "change", "changes": [change]}
        self.item("started", **item, status="inProgress")
        decision = self.ask("item/fileChange/requestApproval", itemId="change")["decision"]
        if decision == "accept":
            made()
        self.item("completed", **item, status="completed" if decision == "accept" else "declined")
        self.tell("turn/diff/updated", diff=DIFF)
        self.end("completed", words="made.txt is made")

    def permission(self) -> None:
        """Ask leave for a command, and run it if that is allowed."""
        item = {"type": "commandExecution", "id": "call", "command": "/bin/bash -lc 'make dist'"}
        self.item("started", **item, status="inProgress")
        asked = {"itemId": "call", "kind": "command", "command": item["command"], "cwd": str(Path.cwd())}
        decision = self.ask("item/commandExecution/requestApproval", **asked)["decision"]
        if decision == "accept":
            Path("dist.txt").write_text("dist\n", encoding="utf-8")
        self.item("completed", **item, status="completed" if decision == "accept" else "declined")
        if decision == "cancel":
            self.end("interrupted")
        else:
            self.end("completed", words="I did what I may.")

    def work(self) -> None:
        """Work until somebody stops it."""
        if self.behaviour == "ignores_sigint":
            deaf()
        if self.behaviour == "zero_on_sigterm":
            signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        self.item("started", type="commandExecution", id="call", command="/bin/bash -lc 'sleep 60'")
        while True:
            message = self.next(0.05)
            if message is not None and message.get("method") == "turn/interrupt":
                if self.behaviour == "ignores_sigint":
                    continue
                self.answer(message, {})
                self.end("interrupted")
                return
            self.tell("item/agentMessage/delta", itemId="msg", delta="working")

    def fail(self, info: Any, words: str) -> None:
        """End the turn with an error."""
        if self.behaviour == "limit":
            hour = int(time.time()) + 3600
            limits = {
                "limitId": "codex",
                "primary": {"usedPercent": 100, "windowDurationMins": 300, "resetsAt": hour},
                "secondary": {"usedPercent": 40, "windowDurationMins": 10080, "resetsAt": hour + 90_000},
            }
            say({"method": "account/rateLimits/updated", "params": {"rateLimits": limits}})
        error = {"message": words, "codexErrorInfo": info, "additionalDetails": None}
        self.tell("error", error=error, willRetry=False)
        self.end("failed", error=error)

    def end(self, status: str, *, words: str = "", error: Any = None) -> None:
        """End the turn; what it used is counted on over the whole conversation."""
        turns = (self.memory.turns(self.thread) or 0) + 1
        self.memory.count(self.thread, turns)
        total = {name: count * turns for name, count in TURN.items()}
        self.tell("thread/tokenUsage/updated", turnId=self.turn, tokenUsage={"total": total, "last": TURN})
        if words:
            self.item("completed", type="agentMessage", id="msg", text=words)
        turn = {"id": self.turn, "rootTurnId": self.turn, "items": [], "status": status, "error": error}
        self.tell("turn/completed", turn=turn)


class Exec:
    """`exec --json`: everything it is told is on its command line and its stdin."""

    def __init__(self, behaviour: str, given: list[str]) -> None:
        self.behaviour = behaviour
        self.memory = Memory()
        going_on = [given[place + 1] for place, word in enumerate(given) if word in ("resume", "fork")]
        self.known = going_on[0] if going_on else ""

    def run(self) -> int:
        """Play it, and return the exit code."""
        sys.stdin.read()  # an open pipe keeps the real one waiting as well
        if self.known and self.memory.turns(self.known) is None:
            sys.stderr.write(f"Error: thread/resume failed: no rollout found for thread id {self.known}\n")
            return 1
        if self.behaviour == "tool":
            sys.stderr.write(f"Error: thread/start: {BROKEN_TOOL}\n")
            return 1
        thread = self.known or f"thread-{os.getpid()}"
        say({"type": "thread.started", "thread_id": thread})
        say({"type": "turn.started"})
        if self.behaviour in ERRORS:
            message = ERRORS[self.behaviour][1]
            say({"type": "error", "message": message})
            say({"type": "turn.failed", "error": {"message": message}})
            return 0 if self.behaviour == "error_result" else 1
        self.before()
        made()
        change = {"path": str(Path.cwd() / "made.txt"), "kind": "add"}
        item = {"id": "item_1", "type": "file_change", "changes": [change], "status": "completed"}
        say({"type": "item.completed", "item": item})
        say({"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "made"}})
        turns = (self.memory.turns(thread) or 0) + 1
        self.memory.count(thread, turns)
        names = {"inputTokens": "input_tokens", "cachedInputTokens": "cached_input_tokens"}
        names |= {"cacheWriteInputTokens": "cache_write_input_tokens", "outputTokens": "output_tokens"}
        say({"type": "turn.completed", "usage": {names[name]: count * turns for name, count in TURN.items()}})
        if self.behaviour == "done_then_hang":
            signal.pause()
        return 0

    def before(self) -> None:
        """Do what the behaviour has before the work."""
        match self.behaviour:
            case "garbage":
                garbage()
            case "unknown_events":
                say({"type": "turn.novelty", "news": [1]})
            case "huge_output":
                for _ in range(20 * 64):
                    say({"type": "item.updated", "item": {"id": "item_0", "text": "x" * 16_000}})
            case "overload_then_done":
                say(
                    {
                        "type": "error",
                        "message": "Reconnecting... 1/5 (We’re currently experiencing high demand)",
                    }
                )
            case "children":
                leave_a_child()
            case "crash_mid_write":
                sys.stdout.write('{"type":"turn.compl')
                sys.stdout.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            case "interrupt" | "ignores_sigint" | "zero_on_sigterm":
                self.work()

    def work(self) -> None:
        """Work until somebody stops it; the real one then says nothing more."""
        if self.behaviour == "ignores_sigint":
            deaf()
        if self.behaviour == "interrupt":
            signal.signal(signal.SIGINT, lambda *_: os._exit(1))
        if self.behaviour == "zero_on_sigterm":
            signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        say(
            {
                "type": "item.started",
                "item": {"id": "item_0", "type": "command_execution", "command": "sleep 60"},
            }
        )
        while True:
            time.sleep(0.05)


_NOBODY = "nobody can be asked while it runs"
CANNOT: dict[str, str] = {}
CANNOT_EXEC = {
    **dict.fromkeys(("permission", "permission_granted", "permission_listed", "permission_refused"), _NOBODY),
    "fork": "what a copy used is told together with what was copied",
}


def main(behaviour: str, given: list[str]) -> int:
    """Play a part."""
    if behaviour == "hang":
        signal.pause()
    if given and given[0] == "exec":
        return Exec(behaviour, given[1:]).run()
    if given and given[0] == "app-server":
        AppServer(behaviour).serve()
        return 0
    sys.stdout.write(f"codex-cli {VERSION}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

"""An agent that follows a script: a real program that really edits files, for tests and demonstrations.

It reads a prompt on stdin, finds the lines `Task: <key>` and `Attempt: <n>` in it, and carries out the steps
that the script has for that attempt (the last list of steps also serves all later attempts):

    {"journal": "journal.txt", "tasks": {"<key>": [[step, ...], [step, ...]]}, "default": [[step, ...]]}

A prompt with the line `Review: <n>` is one for a reviewer: then the steps of that round of review are taken from
`"reviews": {"<key>": [[step, ...]]}` instead, and without any for the task it finds nothing to say.

A step is an object with one of these keys; paths are relative to the working directory:

    {"write": PATH, "text": TEXT}     {"append": PATH, "text": TEXT}     {"delete": PATH}
    {"sleep": SECONDS}                {"say": TEXT}                      {"print": LINE}
    {"run": SHELL}                    {"spawn": SHELL, "pid_file": PATH} {"commit": MESSAGE}
    {"wait_for": PATH, "timeout": S}  {"garbage": COUNT}     {"flood_mb": MEGABYTES, "line_kb": KILOBYTES}
    {"usage": {"input_tokens": N, "output_tokens": N, "cost_micros": N}}
    {"review": [{"file": PATH, "line": N, "severity": "blocking", "text": TEXT}]}   answer as a reviewer, and carry on
    {"qa": [{"what": TEXT, "severity": "high"}]}   report a look at all areas of the prompt (`area` has issues)
    {"expect_prompt": TEXT, "otherwise": [step, ...]}   without TEXT in the prompt, do the others and end
    {"usage_limit": SECONDS, "model": NAME}  say that the window is used up and opens again in so long; end
    {"fail": FAILURE, "message": TEXT, "retry_in": SECONDS}  report an error of that class; end
    {"tool": NAME, "with": ARGUMENTS, "keep": {WORD: PATH}}   use a tool of the server `loops`; PATH, such as
                                      `loops.0.id`, finds what later arguments call @WORD in its result
    {"claim": SUMMARY}                say "done" and carry on: follow it with "hang" for one that never leaves
    {"hang": SECONDS, "stubborn": BOOL}  do nothing, and when stubborn ignore polite signals
    {"crash": "SIGKILL"}              end by a signal        {"exit": CODE}   end without another word

After the last step it claims success, unless it has reported something already. Each line of output is a
JSON object with an "event". It uses only the standard library and imports nothing of Loopwright, so that it
starts in a few hundredths of a second by its path (`python -S -I agent_program.py --script FILE`).
"""

# Loading `typing` and `pathlib` would take a third of its start.
# ruff: noqa: PTH100, PTH103, PTH108, PTH110, PTH118, PTH120, PTH123

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Step = dict[str, Any]

VERSION = "1"
SCRIPT_VARIABLE = "SCRIPTED_AGENT_SCRIPT"
TOOLS_VARIABLE = "SCRIPTED_AGENT_TOOLS"


def emit(event: str, **fields: Any) -> None:
    """Print one event."""
    sys.stdout.write(json.dumps({"event": event, **fields}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def complain(message: str) -> NoReturn:
    """End because the script or the prompt cannot be used."""
    sys.stderr.write(f"scripted agent: {message}\n")
    raise SystemExit(2)


class Performance:
    """One run through the steps of one attempt."""

    def __init__(self, *, task: str, attempt: int, prompt: str, journal: str | None) -> None:
        self.task = task
        self.attempt = attempt
        self.prompt = prompt
        self.journal = journal
        self.reported = False
        self.kept: dict[str, Any] = {}

    def play(self, steps: list[Step]) -> NoReturn:
        """Carry out all steps, then claim success unless something was reported."""
        self.note("start")
        for step in steps:
            self.do(step)
        if not self.reported:
            self.report(ok=True, summary="done")
        self.leave(0)

    def do(self, step: Step) -> None:
        """Carry out one step."""
        for name in STEPS:
            if name in step:
                getattr(self, f"do_{name}")(step)
                return
        complain(f"unknown step {step!r}; known are: {', '.join(STEPS)}")

    def note(self, what: str) -> None:
        """Add a line to the journal in one write, so that many processes may share it."""
        if self.journal is not None:
            line = f"{self.task} {self.attempt} {what} {os.getpid()} {time.time():.6f}\n"
            file = os.open(self.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            os.write(file, line.encode())
            os.close(file)

    def report(self, *, ok: bool, **fields: Any) -> None:
        """Report how it went."""
        self.reported = True
        emit("result", ok=ok, **fields)

    def leave(self, code: int) -> NoReturn:
        """End in order."""
        self.note("end")
        raise SystemExit(code)

    def do_write(self, step: Step) -> None:
        """Create or overwrite a file."""
        self.put(step["write"], step.get("text", ""), "w")

    def do_append(self, step: Step) -> None:
        """Add to a file."""
        self.put(step["append"], step.get("text", ""), "a")

    def put(self, path: str, text: str, mode: str) -> None:
        """Write a file and say so."""
        change = "changed" if os.path.exists(path) else "created"
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, mode, encoding="utf-8") as file:
            file.write(text)
        emit("file", path=path, change=change)

    def do_delete(self, step: Step) -> None:
        """Remove a file."""
        os.unlink(step["delete"])
        emit("file", path=step["delete"], change="deleted")

    def do_sleep(self, step: Step) -> None:
        """Take its time."""
        time.sleep(step["sleep"])

    def do_say(self, step: Step) -> None:
        """Say something."""
        emit("text", text=step["say"])

    def do_print(self, step: Step) -> None:
        """Print a line outside the protocol."""
        sys.stdout.write(step["print"] + "\n")
        sys.stdout.flush()

    def do_run(self, step: Step) -> None:
        """Run a shell command and wait for it."""
        self.shell(step["run"])

    def shell(self, command: str, **variables: str) -> None:
        """Run a command as a tool call."""
        # Most scripts start no program, and every run pays for what is loaded.
        import subprocess

        emit("tool_start", name="shell", input=command)
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, **variables},
        )
        output = (done.stdout + done.stderr).decode(errors="replace")[-2000:]
        emit("tool_end", name="shell", ok=done.returncode == 0, output=output)

    def do_tool(self, step: Step) -> None:
        """Use a tool of an MCP server, once for each step."""
        # Most scripts start no program, and every run pays for what is loaded.
        import subprocess

        with open(os.environ[TOOLS_VARIABLE], encoding="utf-8") as file:
            server = json.load(file)["loops"]
        given = {
            name: self.kept[value[1:]] if isinstance(value, str) and value.startswith("@") else value
            for name, value in step.get("with", {}).items()
        }
        emit("tool_start", name=step["tool"], input=json.dumps(given))
        client = {"name": "scripted", "version": VERSION}
        asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        with subprocess.Popen(
            [server["command"], *server["args"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **server["env"]},
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            result: Any = None
            for id_, method, params in (
                (1, "initialize", asked),
                (None, "notifications/initialized", {}),
                (2, "tools/call", {"name": step["tool"], "arguments": given}),
            ):
                told = {"jsonrpc": "2.0", "method": method, "params": params}
                line = json.dumps(told if id_ is None else {**told, "id": id_})
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()
                while id_ is not None and (answer := json.loads(process.stdout.readline())).get("id") != id_:
                    pass
                result = answer.get("result") if id_ is not None else None
            process.stdin.close()
        text = "".join(one.get("text", "") for one in (result or {}).get("content", ()))
        emit("tool_end", name=step["tool"], ok=not (result or {}).get("isError"), output=text[-2000:])
        for word, path in step.get("keep", {}).items():
            found: Any = json.loads(text)
            for part in path.split("."):
                found = found[int(part)] if isinstance(found, list) else found[part]
            self.kept[word] = found

    def do_spawn(self, step: Step) -> None:
        """Leave a child behind in its own session, where no signal to our group reaches it."""
        # Most scripts start no program, and every run pays for what is loaded.
        import subprocess

        quiet = subprocess.DEVNULL
        child = subprocess.Popen(
            ["/bin/sh", "-c", step["spawn"]], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )
        # It is meant to outlive us, so we do not wait for it.
        child.returncode = 0
        if "pid_file" in step:
            with open(step["pid_file"], "w", encoding="ascii") as file:
                file.write(str(child.pid))
        emit("text", text=f"spawned {child.pid}")

    def do_commit(self, step: Step) -> None:
        """Commit everything, as some agents do."""
        who = "-c user.name=agent -c user.email=agent@example.invalid"
        self.shell(f'git add -A && git {who} commit -q -m "$MESSAGE"', MESSAGE=step["commit"])

    def do_wait_for(self, step: Step) -> None:
        """Wait until a file exists."""
        path, deadline = step["wait_for"], time.monotonic() + float(step.get("timeout", 60))
        while not os.path.exists(path):
            if time.monotonic() > deadline:
                complain(f"{path} did not appear")
            time.sleep(0.01)

    def do_garbage(self, step: Step) -> None:
        """Print what no parser expects."""
        odd = [
            b"not json at all",
            b'{"event":"text","text":',
            b"\xff\xfe\x00 binary \x1b[31m",
            b"[" * 5000,
            b'{"event":' + b'{"a":' * 5000,
            b'{"event":"no such event"}',
            b'{"event":7}',
            b"[1,2,3]",
            b"null",
            b"",
        ]
        for number in range(step["garbage"]):
            sys.stdout.buffer.write(odd[number % len(odd)] + b"\n")
        sys.stdout.buffer.flush()

    def do_flood_mb(self, step: Step) -> None:
        """Print a lot."""
        length = step.get("line_kb", 1)
        line = "x" * (length * 1024 - 1) + "\n"
        for _ in range(int(step["flood_mb"] * 1024 / length)):
            sys.stdout.write(line)
        sys.stdout.flush()

    def do_usage(self, step: Step) -> None:
        """Report tokens and cost of this run so far."""
        emit("usage", **step["usage"])

    def do_review(self, step: Step) -> None:
        """Give a reviewer's answer."""
        blocks = any(one["severity"] == "blocking" for one in step["review"])
        decision = step.get("decision", "object" if blocks else "approve")
        said = {"decision": decision, "summary": "I looked at all of it.", "findings": step["review"]}
        answer = json.dumps(said)
        self.report(ok=True, summary=f"I looked.\n```loopwright-review\n{answer}\n```\n")

    def do_qa(self, step: Step) -> None:
        """Report a QA review."""
        asked = self.prompt.partition("Go through each of these areas:\n")[2].partition("\n\n")[0]
        areas = re.findall(r"^- (\w+):", asked, re.MULTILINE)
        bad = [issue["area"] for issue in step["qa"] if "area" in issue]
        seen = [
            {"area": one, "result": "issues" if one in bad else "fine", "how": f"I looked at {one}."}
            for one in areas
        ]
        report = json.dumps({"summary": "I used all of it.", "checked": seen, "issues": step["qa"]})
        self.report(ok=True, summary=f"I looked.\n```loopwright-qa\n{report}\n```\n")

    def do_expect_prompt(self, step: Step) -> None:
        """Continue only if the prompt says this."""
        if step["expect_prompt"] in self.prompt:
            emit("text", text=f"the prompt says: {step['expect_prompt']}")
            return
        for other in step.get("otherwise", []):
            self.do(other)
        if not self.reported:
            self.report(ok=True, summary="done, without having been told")
        self.leave(0)

    def do_usage_limit(self, step: Step) -> None:
        """Report a used-up window with the time at which it opens again."""
        opens_at = time.time() + step["usage_limit"]
        of = {"limit_of": step["model"]} if "model" in step else {}
        self.report(ok=False, failure="usage_limit", message="usage limit reached", retry_at=opens_at, **of)
        self.leave(1)

    def do_fail(self, step: Step) -> None:
        """Report an error."""
        later = {"retry_at": time.time() + step["retry_in"]} if "retry_in" in step else {}
        self.report(ok=False, failure=step["fail"], message=step.get("message", step["fail"]), **later)
        self.leave(1)

    def do_claim(self, step: Step) -> None:
        """Say that it is done."""
        self.report(ok=True, summary=step["claim"])

    def do_hang(self, step: Step) -> None:
        """Do nothing for very long."""
        if step.get("stubborn"):
            for polite in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(polite, signal.SIG_IGN)
        emit("text", text="hanging")
        time.sleep(step["hang"])

    def do_crash(self, step: Step) -> None:
        """End by a signal, without a word."""
        number = signal.Signals[step["crash"]]
        if number is not signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.pause()

    def do_exit(self, step: Step) -> None:
        """End with an exit code."""
        self.leave(step["exit"])


STEPS = tuple(name.removeprefix("do_") for name in vars(Performance) if name.startswith("do_"))


def choose(script: dict[str, Any], task: str, attempt: int, review: int) -> list[Step]:
    """Return the steps for one attempt at one task, or for one round of its review."""
    if review:
        rounds = script.get("reviews", {}).get(task) or [[{"review": []}]]
        return list(rounds[min(review, len(rounds)) - 1])
    attempts = script.get("tasks", {}).get(task, script.get("default"))
    if not attempts:
        complain(f"the script has no steps for task {task!r}")
    return list(attempts[min(attempt, len(attempts)) - 1])


def header(prompt: str, name: str) -> str:
    """Return what the first line `<name>: ...` of the prompt says."""
    found = re.search(rf"^{name}:[ \t]*(\S.*?)[ \t]*$", prompt, re.MULTILINE)
    if found is None:
        complain(f"the prompt has no line `{name}: ...`")
    return found.group(1)


def main(argv: list[str]) -> NoReturn:
    """Play the script that `--script` (or the environment) names."""
    given = dict(zip(argv[::2], argv[1::2], strict=False))
    path = given.get("--script") or os.environ.get(SCRIPT_VARIABLE)
    if not path:
        complain(f"give --script FILE, or set {SCRIPT_VARIABLE}")
    try:
        with open(path, encoding="utf-8") as file:
            script = json.load(file)
    except (OSError, ValueError) as error:
        complain(f"{path} cannot be used: {error}")
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    task, attempt = header(prompt, "Task"), header(prompt, "Attempt")
    if not attempt.isdigit() or attempt == "0":
        complain(f"the prompt's attempt number is {attempt!r}")
    folder = os.path.dirname(os.path.abspath(path))
    journal = os.path.join(folder, script["journal"]) if script.get("journal") else None
    emit(
        "started",
        version=VERSION,
        model=given.get("--model"),
        session_ref=given.get("--session") or f"scripted-{os.getpid()}",
        task=task,
        attempt=int(attempt),
    )
    found = re.search(r"^Review: (\d+)$", prompt, re.MULTILINE)
    review = int(found.group(1)) if found else 0
    noted, n = (f"review of {task}", review) if review else (task, int(attempt))
    performance = Performance(task=noted, attempt=n, prompt=prompt, journal=journal)
    performance.play(choose(script, task, int(attempt), review))


if __name__ == "__main__":
    main(sys.argv[1:])

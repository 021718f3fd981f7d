"""Plays `bd`, the program of the beads tracker: `install(folder)` puts it there under that name.

It keeps its issues in `.beads/tracker.jsonl` below its working folder, or where there is none in `.beads/issues.jsonl`,
and knows the commands that Loopwright uses, with `--json`. What it does besides is said by the variable FAKE_BD:
`refuse=STATUS` refuses that status and changes nothing, `silent=STATUS` does so as the real program does, with a word
beside its answer and exit code 0, `keeps=STATUS` answers with the issue as it was, `error` ends well with an error in
its answer, `garbage` answers with no JSON, `hang` never answers, `old` knows no `--claim`. Every command is appended
to `.beads/commands.log`.
"""

import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

STATUSES = ("open", "in_progress", "blocked", "closed")


def install(folder: Path) -> Path:
    """Write the program `bd` into a folder, which is to be put on the PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "bd"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(__file__)} "$@"\n')
    program.chmod(0o755)
    return program


def main(arguments: list[str]) -> int:
    """Do one command."""
    store = Path(".beads") / "tracker.jsonl"
    store = store if store.exists() else store.with_name("issues.jsonl")
    with (store.parent / "commands.log").open("a") as log:
        log.write(shlex.join(arguments) + "\n")
    behaviour = os.environ.get("FAKE_BD", "")
    if behaviour == "hang":
        while True:
            time.sleep(60)
    if behaviour == "garbage":
        sys.stdout.write("a new version of bd is available!\n")
        return 0
    if behaviour == "error":
        sys.stdout.write(json.dumps({"error": "database is locked"}))
        return 0
    issues = [json.loads(line) for line in store.read_text().splitlines() if line.strip()]
    how, _, refused = behaviour.partition("=")
    if arguments[0] == "export":
        Path(arguments[1].removeprefix("--output=")).write_bytes(store.read_bytes())
        return 0
    before = json.dumps(issues)
    try:
        answer = _done(arguments, issues, refused)
    except ValueError as wrong:
        if how == "keeps":
            sys.stdout.write(before)
            return 0
        sys.stderr.write(f"Error: {wrong}\n")
        return 0 if how == "silent" else 1
    store.write_text("".join(json.dumps(issue, separators=(",", ":")) + "\n" for issue in issues))
    sys.stdout.write(json.dumps(answer))
    return 0


def _done(arguments: list[str], issues: list[dict[str, Any]], refused: str) -> Any:
    command = arguments[0]
    options = dict(one.split("=", 1) for one in arguments if one.startswith("--") and "=" in one)
    known = {issue["id"]: issue for issue in issues}
    if command == "list":
        wants_closed = options.get("--status") == "closed"
        return [issue for issue in issues if (issue["status"] == "closed") == wants_closed]
    if command == "create":
        return _created(options, issues, known)
    issue = _found(known, arguments[1])
    statuses = {"close": "closed", "reopen": "open"}
    status = statuses.get(command) or options.get("--status", "in_progress")
    if status not in STATUSES or status == refused:
        raise ValueError(f"invalid status: {status}")
    if "--claim" in options:
        return [_claimed(issue)]
    issue["status"] = status
    if "--assignee" in options:
        issue["assignee"] = options["--assignee"]
    if "--reason" in options:
        issue["close_reason"] = options["--reason"]
    if "--notes" in options:
        issue["notes"] = options["--notes"]
    return [issue]


def _claimed(issue: dict[str, Any]) -> dict[str, Any]:
    if os.environ.get("FAKE_BD") == "old":
        raise ValueError("unknown flag: --claim")
    if issue.get("assignee"):
        raise ValueError(f"issue already claimed by {issue['assignee']}")
    issue |= {"assignee": os.environ["BEADS_ACTOR"], "status": "in_progress"}
    return issue


def _found(known: dict[str, dict[str, Any]], key: str) -> dict[str, Any]:
    if key not in known:
        raise ValueError(f"no issue {key}")
    return known[key]


def _created(
    options: dict[str, str], issues: list[dict[str, Any]], known: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    issue: dict[str, Any] = {"id": f"bd-new{len(issues)}", "status": "open"}
    issue |= {name: options[f"--{name}"] for name in ("title", "description")}
    issue |= {"issue_type": options["--type"], "labels": options["--labels"].split(",")}
    if "--deps" in options:
        kind, _, other = options["--deps"].partition(":")
        link = {"issue_id": issue["id"], "depends_on_id": _found(known, other)["id"], "type": kind}
        issue["dependencies"] = [link]
    issues.append(issue)
    return issue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

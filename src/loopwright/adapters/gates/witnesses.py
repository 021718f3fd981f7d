"""Laying our own witness beside a command's test runners, and reading what it wrote.

How each runner is reached:

- pytest finds the plugin by its entry point, from a folder on PYTHONPATH or from a .pth file in a virtual environment
  at the top of the tree.
- `python -m unittest` is replaced by one of our programs.
- `node --test` takes a reporter from NODE_OPTIONS. jest and vitest are reached by what every Node process loads first.
- `go test` is reached by a script called go.
- Scripts called python, pytest, node and the like are first on the PATH. They add the folder or the option again where
  a Makefile or a script replaced PYTHONPATH or NODE_OPTIONS.

A runner that is not reached is seen from outside (`processes.py`) or by what it prints, and the verdict names it. A
runner of the setting `test_runners` is read and tried by the gate's runner itself. The names of the canaries and of the
plugin are new in each run.
"""

import json
import os
import re
import secrets
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.gates.inside import __file__ as _inside
from loopwright.adapters.gates.text import clean_name
from loopwright.core.gates.missing_tests import UNLOADED
from loopwright.core.gates.witnesses import NO_END, NOTHING
from loopwright.core.values.findings import Witnessed
from loopwright.core.values.policy import ConfiguredRunner, GateCommand

DOORS: Final = "@LOOPWRIGHT_DOORS@"
"""A placeholder in a command for the folder with the plugin, which the gate's runner makes."""
_PROGRAMS: Final = Path(_inside).parent
_FOR_UNITTEST: Final = "witness_unittest.py"
_FOR_NODE: Final = "witness_node.mjs"
_FOR_JAVASCRIPT: Final = "witness_javascript.cjs"
_FOR_GO: Final = "witness_go.py"
_NEXT: Final = {"e": "session"}
"""The gate's runner puts this in front of what each process wrote."""
_MAY_TEST: Final = re.compile(
    r"py\.?test|python|unittest|make|node|np[mx]|yarn|bun|jest|vitest|\bgo\b|tox|nox|\buv\b|poetry|hatch|pdm|just|task|\bsh\b|\.sh\b|bash"
    r"|(?:^|[;&|(]\s*)[^\s;&|]*/"
)
"""Commands that may start a test runner, a program of the project's own among them."""
_UNITTEST: Final = re.compile(
    r"((?:^|[\s;&|(])\S*python[\d.]*(?:\s+-[A-Zbdiqsuvx]+)*)\s+-m\s+unittest(?=\s|$|[;&|)])"
)
_PYTHONPATH: Final = re.compile(r"\bPYTHONPATH=")
# Below npm the options would also reach programs that do not bear them, such as the threads of other test runners.
_NODE: Final = re.compile(r"\bnode\b[^;&|]*\s--test\b")
_NODE_TEST: Final = re.compile(r"\s--test(?=\s|$)")


def prepare(
    commands: tuple[GateCommand, ...],
    only: frozenset[str] = frozenset(),
    runners: tuple[ConfiguredRunner, ...] = (),
) -> dict[str, Any]:
    """Return how each command is started so that its test runners are seen; the gate's runner makes the folders.

    With `only`, those that can be told so run no other tests than these.
    """
    plugin = f"w{secrets.token_hex(8)}"
    programs = {
        "pytest_plugin.py": f"{plugin}.py",
        "unittest_program.py": _FOR_UNITTEST,
        "node_reporter.mjs": _FOR_NODE,
        "javascript.cjs": _FOR_JAVASCRIPT,
        "go_program.py": _FOR_GO,
    }
    return {
        "plugin": plugin,
        "programs": {name: os.fspath(_PROGRAMS / source) for source, name in programs.items()},
        "variable": "LOOPWRIGHT_WITNESS",
        "preload": _FOR_JAVASCRIPT,
        "go": _FOR_GO,
        "unittest": _FOR_UNITTEST,
        "commands": [_prepared(command, only, runners) for command in commands],
    }


def _prepared(
    command: GateCommand, only: frozenset[str], runners: tuple[ConfiguredRunner, ...]
) -> dict[str, Any] | None:
    configured = next((one for one in runners if one.command in command.command), None)
    if configured is None and not _MAY_TEST.search(command.command):
        return None
    text = _UNITTEST.sub(lambda found: f"{found[1]} {DOORS}/{_FOR_UNITTEST}", command.command)
    # A command that sets the variable itself would hide the plugin.
    text = _PYTHONPATH.sub(lambda _: f"PYTHONPATH={DOORS}:", text)
    options = None
    if _NODE.search(text) and "--test-reporter" not in text:
        options = (
            "--test-reporter=spec --test-reporter-destination=stdout "
            f'"--test-reporter={DOORS}/{_FOR_NODE}" --test-reporter-destination=/dev/null'
        )
        patterns = "".join(f" {_node_pattern(test)}" for test in sorted(only))
        text = _NODE_TEST.sub(lambda found: found[0] + patterns, text)
    names = {kind: f"test_{secrets.token_hex(8)}" for kind in ("must_pass", "must_fail")}
    return {
        "run": text,
        "node_options": options,
        "names": names,
        "only": sorted(only),
        "configured": asdict(configured) if configured else None,
    }


def _node_pattern(test: str) -> str:
    """Return how node is told to run one test; its id is the file, then the name."""
    return shlex.quote(f"--test-name-pattern=/^{re.escape(test.partition('::')[2].strip())}$/")


def read_witness(seen: bytes, names: dict[str, str]) -> Witnessed | None:
    """Return what was seen inside one command's test runners, from the lines of all of them; None for none."""
    sessions: list[_Session] = []
    for line in _lines(seen):
        if line == _NEXT:
            sessions.append(_Session(names))
        elif sessions:
            sessions[-1].take(line)
    if not sessions:
        return None
    outcomes = {name: outcome for session in sessions for name, outcome in session.outcomes.items()}

    def ending(*words: str) -> frozenset[str]:
        return frozenset(name for name, outcome in outcomes.items() if outcome in words)

    printed = all(session.configured for session in sessions)
    return Witnessed(
        passed=ending("passed"),
        failed=ending("failed"),
        skipped=ending("skipped", "xfailed"),
        xfailed=ending("xfailed"),
        deselected=frozenset(name for session in sessions for name in session.deselected),
        unloaded=frozenset(name for session in sessions for name in session.unloaded) & ending("failed"),
        problems=tuple(dict.fromkeys(words for session in sessions for words in session.problems())),
        reported=printed,
        tried=printed,
    )


_WEIGHT: Final = {"passed": 0, "xfailed": 1, "skipped": 2, "failed": 3}


class _Session:
    """One process of a test runner, as it was written down."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names
        self._canaries: dict[str, str] = {}
        self._ended = False
        self._named = True
        self.configured = False
        """Whether it is what a runner of the settings printed itself."""
        self._collected: set[str] = set()
        self._hidden: list[str] = []
        self.outcomes: dict[str, str] = {}
        self.deselected: set[str] = set()
        self.unloaded: set[str] = set()

    def take(self, line: dict[str, Any]) -> None:
        """Take in one line; what has another shape says nothing."""
        match line:
            case {"e": "collected", "ids": list(ids)}:
                self._collected |= {clean_name(str(each)) for each in ids}
            case {"e": "deselected", "ids": list(ids)}:
                self.deselected |= {clean_name(str(each)) for each in ids}
            case {"e": "collect", "id": str(name), "outcome": str(outcome)}:
                self._note(name, "failed" if outcome == "failed" else "skipped")
                self.unloaded.add(clean_name(name))
            case {"e": "report", "id": str(name), "outcome": str(outcome), "hidden": hidden}:
                self._note(name, outcome if outcome in _WEIGHT else "failed")
                if name.startswith(UNLOADED):
                    self.unloaded.add(clean_name(name))
                if hidden:
                    self._hidden.append(clean_name(name))
            case {"e": "canary", "kind": str(kind), "name": str(name), "outcome": str(outcome)}:
                if self._names.get(kind) == name:
                    self._canaries[kind] = outcome
            case {"e": "start", "runner": "configured", "named": bool(named)}:
                self.configured, self._named = True, named
            case {"e": "end"}:
                self._ended = True

    def _note(self, name: str, outcome: str) -> None:
        known = self.outcomes.get(clean_name(name), "passed")
        self.outcomes[clean_name(name)] = max(known, outcome, key=_WEIGHT.__getitem__)

    def problems(self) -> Iterator[str]:
        """Return why this run's result does not count."""
        if not self._ended:
            yield NO_END
            return
        if self._named and not self._collected and not self.outcomes:
            yield NOTHING
        for kind, wanted in (("must_fail", "failed"), ("must_pass", "passed")):
            found = self._canaries.get(kind)
            if found != wanted:
                ended = {
                    None: "was not run",
                    "passed": "passed",
                    "failed": "failed",
                    "skipped": "was skipped",
                }
                said = ended.get(found, clean_name(found or ""))
                yield f"the test runner cannot be believed: a canary test that has to {wanted[:4]} {said}"
        for name in self._hidden[:10]:
            yield f"{name} failed, but was reported as passed"


def _lines(seen: bytes) -> Iterator[dict[str, Any]]:
    for line in seen.split(b"\n"):
        try:
            found = json.loads(line)
        except ValueError:
            continue  # torn where the process was ended, or not ours
        if isinstance(found, dict):
            yield found

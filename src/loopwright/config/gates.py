"""Reading gate commands and test runners: the same shape in loopwright.toml, in a plan and in the environment."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from loopwright.config.kinds import (
    MAX_TEXT,
    Kind,
    WrongValue,
    is_inside,
    json_list,
    read_duration,
    show_duration,
)
from loopwright.config.nearest import did_you_mean, quoted
from loopwright.core.values.policy import ConfiguredRunner, GateCommand

# Reading the setting `test_runners`: how a test runner that is not known is watched.

RUNNER_KEYS: Final[Mapping[str, str]] = {
    "command": "A part of the commands that start it, in gates and in acceptance.",
    "tests": "How its output names tests: tap, or a regular expression with the groups id, passed, failed and skipped, "
    "tried on each line. Left out: the gate's JUnit report names them.",
    "file": "Where a canary is written, relative to the project; {name} is its name, a new one for each run.",
    "passes": "The text of the canary that has to pass.",
    "fails": "The text of the canary that has to fail.",
    "run": "The command that runs the canary alone.",
}
_OPTIONAL: Final = frozenset({"tests"})
_NAME: Final = "{name}"
_TAP: Final = (
    r"^\s*(?:(?P<passed>ok)|(?P<failed>not ok))\b\s*\d*\s*(?:- )?(?P<id>[^#]*[^#\s])\s*"
    r"(?P<skipped># *(?i:skip|todo)\b.*)?$"
)
_GROUPS: Final = frozenset({"id", "passed", "failed"})


def _read_runner(entry: object) -> ConfiguredRunner:
    if not isinstance(entry, Mapping):
        raise WrongValue("a list of tables with command, tests, file, passes, fails and run", entry)
    for key in entry:
        if key not in RUNNER_KEYS:
            raise WrongValue(
                f"no other keys than {', '.join(RUNNER_KEYS)}{did_you_mean(str(key), RUNNER_KEYS)}", key
            )
    for key, meaning in RUNNER_KEYS.items():
        value = entry.get(key)
        if value is None and key in _OPTIONAL:
            continue
        if not isinstance(value, str) or not value.strip() or len(value) > MAX_TEXT or "\0" in value:
            raise WrongValue(f"{key} in each test runner. {meaning}", value)
    if not is_inside(entry["file"]) or _NAME not in entry["file"]:
        raise WrongValue(
            "file as a path relative to the project, without .., with {name} in it", entry["file"]
        )
    if _NAME not in entry["run"] and _NAME not in entry["passes"]:
        raise WrongValue(
            "{name} in run or in passes, so that no other test is taken for the canary", entry["run"]
        )
    tests = entry.get("tests")
    return ConfiguredRunner(
        **{**entry, "tests": _TAP if tests == "tap" else _pattern(tests) if tests else None}
    )


def _pattern(text: str) -> str:
    try:
        groups = re.compile(text).groupindex.keys()
    except re.error as error:
        raise WrongValue(f"tests as tap or a regular expression ({error})", text) from error
    if missing := sorted(_GROUPS - groups):
        raise WrongValue(
            f"tests with the named groups id, passed and failed; {quoted(missing[0])} is missing", text
        )
    return text


def _read(value: object) -> tuple[ConfiguredRunner, ...]:
    entries = json_list(value) if isinstance(value, str) else value
    if not isinstance(entries, list | tuple):
        raise WrongValue("a list of test runners", value)
    return tuple(_read_runner(entry) for entry in entries)


def _table(runner: ConfiguredRunner) -> dict[str, Any]:
    table = {key: getattr(runner, key) for key in RUNNER_KEYS}
    table["tests"] = "tap" if runner.tests == _TAP else runner.tests
    return {key: value for key, value in table.items() if value is not None}


_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT}
TEST_RUNNERS: Final = Kind(
    name="list of test runners",
    expected="a list of test runners, each a table with command, tests, file, passes, fails and run",
    read=_read,
    show=lambda runners: [_table(runner) for runner in runners],
    schema={
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": [key for key in RUNNER_KEYS if key not in _OPTIONAL],
            "properties": {key: {**_TEXT, "description": words} for key, words in RUNNER_KEYS.items()},
        },
    },
)


GATE_KEYS: Final[Mapping[str, str]] = {
    "name": "A short name for reports; the command itself when left out.",
    "run": "The shell command; exit code 0 means passed.",
    "timeout": "How long it may take, 10 minutes when left out.",
    "junit": "A JUnit XML report that the command writes, relative to the tree, for a result per test.",
}
MAX_NAME: Final = 80
_DEFAULT_TIMEOUT_S: Final = 600.0

GATE_SCHEMA: Final[Mapping[str, Any]] = {
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["run"],
            "properties": {
                "name": {"type": "string", "maxLength": MAX_NAME, "description": GATE_KEYS["name"]},
                "run": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_TEXT,
                    "description": GATE_KEYS["run"],
                },
                "timeout": {
                    "anyOf": [
                        {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d)\s*)+$"},
                        {"type": "number", "exclusiveMinimum": 0},
                    ],
                    "description": GATE_KEYS["timeout"],
                },
                "junit": {"type": "string", "maxLength": 1000, "description": GATE_KEYS["junit"]},
            },
        },
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateProblem:
    """What is wrong with one gate of a list, and under which key."""

    index: int
    key: str
    message: str

    @property
    def place(self) -> str:
        """The position in the list, as `[2].run`."""
        return f"[{self.index}]" + (f".{self.key}" if self.key else "")


class WrongGates(ValueError):
    """A list of gates with problems."""

    def __init__(self, problems: tuple[GateProblem, ...]) -> None:
        super().__init__("; ".join(f"{problem.place}: {problem.message}" for problem in problems))
        self.problems = problems


def read_gates(entries: Sequence[object]) -> tuple[tuple[GateCommand, ...], tuple[GateProblem, ...]]:
    """Read a list of gates, each a command or a table; return those that are right and all problems."""
    gates: list[GateCommand] = []
    problems: list[GateProblem] = []
    given: set[str] = set()
    for index, entry in enumerate(entries):
        found: list[tuple[str, str]] = []
        gate = _read_gate(entry, found)
        if gate is not None and gate.name in given:
            if isinstance(entry, Mapping) and entry.get("name"):
                found.append(("name", f"a second gate with the name {quoted(gate.name)}"))
            elif gate.command in {other.command for other in gates}:
                found.append(("", f"the same command twice: {quoted(gate.command)}"))
            else:
                gate = replace(gate, name=f"{gate.name[: MAX_NAME - 10]} ({index + 1})")
        problems.extend(GateProblem(index=index, key=key, message=message) for key, message in found)
        if gate is not None and not found:
            given.add(gate.name)
            gates.append(gate)
    return tuple(gates), tuple(problems)


def _read_gate(entry: object, problems: list[tuple[str, str]]) -> GateCommand | None:
    table = {"run": entry} if isinstance(entry, str) else entry
    if not isinstance(table, Mapping):
        problems.append(("", str(WrongValue("a command, or a table with run", entry))))
        return None
    problems.extend(
        (str(key), f"unknown key{did_you_mean(str(key), GATE_KEYS)}") for key in table if key not in GATE_KEYS
    )
    command = table.get("run")
    if command is None:
        problems.append(("run", "missing: the shell command to run"))
    elif not isinstance(command, str) or not command.strip() or len(command) > MAX_TEXT or "\0" in command:
        problems.append(("run", str(WrongValue("a shell command", command))))
    name = table.get("name")
    if name is not None and not _is_name(name):
        problems.append(("name", str(WrongValue(f"a name on one line, at most {MAX_NAME} characters", name))))
    timeout_s = _DEFAULT_TIMEOUT_S
    if table.get("timeout") is not None:
        try:
            timeout_s = read_duration(table["timeout"])
        except WrongValue as wrong:
            problems.append(("timeout", str(wrong)))
        if timeout_s == 0:
            problems.append(("timeout", str(WrongValue("a duration of more than zero", table["timeout"]))))
    junit = table.get("junit")
    if junit is not None and not (isinstance(junit, str) and is_inside(junit)):
        problems.append(("junit", str(WrongValue("a path relative to the tree, without ..", junit))))
    if problems or not isinstance(command, str):
        return None
    return GateCommand(
        name=name or _name_of(command), command=command.strip(), timeout_s=timeout_s, junit=junit
    )


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name.strip()) and len(name) <= MAX_NAME and name.isprintable()


def _name_of(command: str) -> str:
    """Return a name for a command that has none: the command, shortened to one line."""
    line = " ".join("".join(char if char.isprintable() else " " for char in command).split())
    return line if len(line) <= MAX_NAME else line[: MAX_NAME - 1] + "…"


def gate_table(gate: GateCommand) -> dict[str, Any]:
    """Return a gate as it would be written in a file."""
    table: dict[str, Any] = {"name": gate.name, "run": gate.command}
    if gate.timeout_s != _DEFAULT_TIMEOUT_S:
        table["timeout"] = show_duration(gate.timeout_s)
    if gate.junit is not None:
        table["junit"] = gate.junit
    return table


def _read_setting(value: object) -> tuple[GateCommand, ...]:
    entries = value
    if isinstance(value, str):
        # In the environment: a JSON list, or one command. A command may itself begin with a bracket.
        entries = json_list(value)
        if entries is None:
            entries = [value]
    if not isinstance(entries, list | tuple):
        raise WrongValue("a list of gates", value)
    gates, problems = read_gates(entries)
    if problems:
        raise WrongGates(problems)
    return gates


GATES: Final = Kind(
    name="list of gates",
    expected="a list of gates, each a command or a table with run",
    read=_read_setting,
    show=lambda gates: [gate_table(gate) for gate in gates],
    schema={"type": "array", "items": GATE_SCHEMA},
)

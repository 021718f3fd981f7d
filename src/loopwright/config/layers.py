"""Where values come from: one layer for each origin, flattened to dotted keys and checked on its own."""

import json
import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from loopwright.config.accounts import ACCOUNT_SETTINGS
from loopwright.config.gates import GateProblem, WrongGates, gate_table
from loopwright.config.nearest import did_you_mean, nearest, quoted
from loopwright.config.settings import CONSTANTS, GROUPS, setting_of, settings
from loopwright.core.values.policy import GateCommand

# Find on which line of a TOML text each key stands: the standard parser does not tell.
#
# The text has been parsed before, so it is valid; what is looked for is only a place to show to a person.

_BARE: Final = r"[A-Za-z0-9_-]+"
_QUOTED: Final = r'"(?:[^"\\]|\\.)*"|\'[^\']*\''
_PART: Final = re.compile(rf"\s*({_BARE}|{_QUOTED})\s*")
_KEY: Final = re.compile(rf"\s*((?:{_BARE}|{_QUOTED})(?:\s*\.\s*(?:{_BARE}|{_QUOTED}))*)\s*=")
_HEADER: Final = re.compile(
    rf"\s*(\[\[?)\s*((?:{_BARE}|{_QUOTED})(?:\s*\.\s*(?:{_BARE}|{_QUOTED}))*)\s*\]\]?"
)
_FENCE: Final = re.compile(r'"""|\'\'\'')


def key_lines(text: str) -> dict[str, int]:
    """Return the line of each key, dotted, counted from 1; tables in a list as `gates[0].run`."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    fence: str | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        inside = fence is not None
        fence = _fence_after(line, fence)
        if inside:
            continue
        if header := _HEADER.match(line):
            table = ".".join(_parts(header[2]))
            if header[1] == "[[":
                index = counts.get(table, 0)
                counts[table] = index + 1
                lines.setdefault(table, number)
                table = f"{table}[{index}]"
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            parts = ([table] if table else []) + _parts(key[1])
            for end in range(1, len(parts) + 1):
                lines.setdefault(".".join(parts[:end]), number)
    return lines


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(dotted)]


def _fence_after(line: str, fence: str | None) -> str | None:
    """Return which multi-line string is open after this line."""
    for found in _FENCE.findall(line):
        if fence is None:
            fence = found
        elif fence == found:
            fence = None
    return fence


PREFIX: Final = "LOOPWRIGHT_"
PROJECT_FILE: Final = "loopwright.toml"
LOOPS: Final = "loops"
"""The table of a configuration file that has a table of settings for each loop, by the name of its work source."""
_TOML_PLACE: Final = re.compile(r"(.*) \(at line (\d+), column \d+\)", re.DOTALL)
_APART: Final = "belongs to no table: put it above the first [table]"
_NO_LOOP: Final = (
    'expected a table for each work source, such as [loops."plans/nightly.yaml"] with agent = "…"'
)
_LAST_STEP: Final = re.compile(r"(\.[^.\[\]]*|\[\d+\]|^[^.\[\]]*)$")


class Level(IntEnum):
    """Who said it; the higher one wins."""

    DEFAULT = 0
    USER = 1
    PROJECT = 2
    LOOP = 3
    PLAN = 4
    ENVIRONMENT = 5
    FLAG = 6


MACHINE_LEVELS: Final = frozenset({Level.DEFAULT, Level.USER, Level.ENVIRONMENT, Level.FLAG})


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The values of one origin by dotted key, as they were written, and what is wrong with them."""

    level: Level
    values: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    """For each key, the words that say where it was set."""
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One wrong key or value."""

    key: str
    message: str


def check_values(tree: Mapping[str, Any], level: Level) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Flatten nested values to dotted keys; return those that are right and every problem."""
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, value in _flatten(tree):
        if value is None:
            continue
        found = _problems(key, value, level)
        problems.extend(found)
        if not found:
            values[key] = value
    return values, tuple(problems)


def _flatten(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping) and name in GROUPS:
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
        elif isinstance(value, Mapping) and name == "agents":
            for agent, options in value.items():
                if isinstance(options, Mapping):
                    yield from _flatten_agent(f"agents.{agent}", options)
                else:
                    yield f"agents.{agent}", options
        else:
            yield str(name), value


def _flatten_agent(agent: str, options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in options.items():
        if key != "accounts" or not isinstance(value, Mapping):
            yield f"{agent}.{key}", value
            continue
        for name, account in value.items():
            if isinstance(account, Mapping) and account:
                yield from ((f"{agent}.accounts.{name}.{inner}", given) for inner, given in account.items())
            else:
                yield f"{agent}.accounts.{name}", account


def _problems(key: str, value: object, level: Level) -> list[Problem]:
    setting = setting_of(key)
    if setting is None:
        return [Problem(key=key, message=_unknown(key, value))]
    if setting.machine and level not in MACHINE_LEVELS:
        message = (
            f"this belongs to a machine, not to a project or plan: set it in your own config.toml "
            f"or as {setting.variable}"
        )
        return [Problem(key=key, message=message)]
    try:
        setting.kind.read(value)
    except WrongGates as wrong:
        return [Problem(key=key + each.place, message=_of_gate(each)) for each in wrong.problems]
    except ValueError as wrong:
        return [Problem(key=key, message=str(wrong))]
    return []


def _of_gate(problem: GateProblem) -> str:
    """Return what is wrong with a gate; TOML takes what is written below a table for a part of it."""
    top = problem.key in settings() and problem.message.startswith("unknown key")
    return f"unknown key: {problem.key} {_APART}" if top else problem.message


def _constant(key: str) -> str | None:
    """Return what holds instead of a setting of an earlier version, or of its group."""
    return CONSTANTS.get(key) or CONSTANTS.get(key.partition(".")[0])


def _unknown(key: str, value: object) -> str:
    if constant := _constant(key):
        return f"is not a setting any more ({constant}): remove it"
    if key in GROUPS:
        inner = ", ".join(each for each in settings() if each.startswith(f"{key}."))
        return f"expected a table with {inner}, got {quoted(value)}"
    if key.startswith("agents.") and ".accounts" in key:
        return (
            'expected a table for each account, such as [agents.claude.accounts.work] with home = "~/.claude-work" '
            f"(its keys are {', '.join(ACCOUNT_SETTINGS)})"
        )
    if key == "agents" or key.startswith("agents."):
        return 'expected a table for each agent, such as [agents.claude] with binary = "…"'
    group, _, last = key.partition(".")
    if group in GROUPS and last in settings():
        return f"unknown setting: {last} {_APART}"
    # `hard` means `limits.hard`.
    whole = next((each for each in settings() if each.endswith(f".{key}")), key)
    return f"unknown setting{did_you_mean(whole, (*settings(), 'agents'))}"


def from_toml(text: str, name: str, level: Level) -> Layer:
    """Read a configuration file's text; `name` is how it is called in messages."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as broken:
        place = _TOML_PLACE.fullmatch(str(broken))
        words = f"{name}:{place[2]}: {place[1]}" if place else f"{name}: {broken}"
        return Layer(level=level, problems=(f"{words} (this is not TOML)",))
    except RecursionError:
        return Layer(level=level, problems=(f"{name}: nested too deeply",))
    lines = key_lines(text)
    loops = tree.pop(LOOPS, {})
    values, problems = check_values(tree, level)
    problems += _loop_problems(loops)
    return Layer(
        level=level,
        values=values,
        origins={key: _placed(name, key, lines) for key in values},
        problems=tuple(
            f"{_placed(name, problem.key, lines)}: {problem.key}: {problem.message}" for problem in problems
        ),
    )


def _loop_problems(loops: object) -> tuple[Problem, ...]:
    """Check the settings of every loop, not only of the one that runs."""
    if not isinstance(loops, Mapping):
        return (Problem(key=LOOPS, message=_NO_LOOP),)
    found: list[Problem] = []
    for source, table in loops.items():
        key = f"{LOOPS}.{source}"
        if not isinstance(table, Mapping):
            found.append(Problem(key=key, message=_NO_LOOP))
            continue
        _, problems = check_values(table, Level.LOOP)
        found += [Problem(key=f"{key}.{one.key}", message=one.message) for one in problems]
    return tuple(found)


def loop_places(text: str, name: str) -> dict[str, str]:
    """Return the work sources that a configuration file has tables for, each with the place of its table."""
    try:
        loops = tomllib.loads(text).get(LOOPS, {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
    lines = key_lines(text)
    return (
        {one: _placed(name, f"{LOOPS}.{one}", lines) for one in loops} if isinstance(loops, Mapping) else {}
    )


def loop_from_toml(text: str, name: str, source: str) -> Layer:
    """Read what a configuration file says of one loop; what is wrong in the file is told of the file itself."""
    try:
        loops = tomllib.loads(text).get(LOOPS, {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return Layer(level=Level.LOOP)
    names = loops if isinstance(loops, Mapping) else ()
    # However it is spelt: with ./ in front, or with / behind the name of a folder.
    named = next((one for one in names if one and posixpath.normpath(one) == source), "")
    table = loops[named] if named else None
    if not isinstance(table, Mapping):
        return Layer(level=Level.LOOP)
    lines = key_lines(text)
    values, _ = check_values(table, Level.LOOP)
    origins = {key: _placed(name, f"{LOOPS}.{named}.{key}", lines) for key in values}
    return Layer(level=Level.LOOP, values=values, origins=origins)


def _placed(name: str, key: str, lines: Mapping[str, int]) -> str:
    """Return the file with the line of the key, or of its table."""
    while key:
        if key in lines:
            return f"{name}:{lines[key]}"
        key = _LAST_STEP.sub("", key)
    return name


def from_environment(env: Mapping[str, str], *, ours: frozenset[str] = frozenset()) -> Layer:
    """Read `LOOPWRIGHT_*` variables; an empty one counts as not set.

    Names in `ours` are set by Loopwright itself for the processes it starts. Of the other names only those
    that look like a mistyped setting are refused: a name may belong to another program.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    problems: list[str] = []
    for variable in sorted(env):
        text = env[variable]
        if not variable.startswith(PREFIX) or variable in ours or not text.strip():
            continue
        key = variable.removeprefix(PREFIX).lower().replace("__", ".")
        if _constant(key):
            problems.append(f"environment {variable}: {_unknown(key, text)}")
            continue
        if setting_of(key) is None:
            guess = _mistyped(variable)
            if guess is not None:
                problems.append(f"environment {variable}: unknown setting (did you mean {guess}?)")
            continue
        value = _literal(text) if key.startswith("agents.") else text
        found = _problems(key, value, Level.ENVIRONMENT)
        problems.extend(f"environment {variable}: {each.message}" for each in found)
        if not found:
            values[key] = value
            origins[key] = f"environment {variable}"
    return Layer(level=Level.ENVIRONMENT, values=values, origins=origins, problems=tuple(problems))


def _mistyped(variable: str) -> str | None:
    # Compared without the prefix that all share, and strictly: strangers must not look alike.
    known = [setting.variable.removeprefix(PREFIX) for setting in settings().values()]
    name = variable.removeprefix(PREFIX)
    if name.lower() in GROUPS:
        name = next(each for each in known if each.startswith(f"{name}__"))
    guess = nearest(name, known, cutoff=0.8)
    return PREFIX + guess if guess is not None else None


def _literal(text: str) -> Any:
    """Return a number, switch or list when the text spells one: options of agents have no fixed kind."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, int | float | bool | list) else text


def from_flags(flags: Mapping[str, Any]) -> Layer:
    """Read command-line flags given by dotted key; None means that the flag was not given."""
    values, problems = check_values(flags, Level.FLAG)
    return Layer(
        level=Level.FLAG,
        values=values,
        origins={key: f"flag {_flag(key)}" for key in values},
        problems=tuple(f"flag {_flag(problem.key)}: {problem.message}" for problem in problems),
    )


def _flag(key: str) -> str:
    setting = setting_of(key)
    return setting.flag if setting is not None else f"--{key}"


def from_baseline(gates: tuple[GateCommand, ...], name: str) -> Layer:
    """Take over the checks that a source names for all of its tasks: they count if no gates are set."""
    tree = {"gates": [gate_table(gate) for gate in gates]}
    return _named(tree, f"the baseline checks of {name}", Level.DEFAULT, {})


def from_plan(
    plan: Mapping[str, Any],
    name: str,
    *,
    gates: tuple[GateCommand, ...] | None = None,
    lines: Mapping[str, int] | None = None,
) -> Layer:
    """Take over a plan's own settings and its gates."""
    tree = dict(plan)
    if gates is not None:
        tree["gates"] = [gate_table(gate) for gate in gates]
    return _named(tree, f"plan {name}", Level.PLAN, lines or {})


def _named(tree: Mapping[str, Any], name: str, level: Level, lines: Mapping[str, int]) -> Layer:
    values, problems = check_values(tree, level)
    return Layer(
        level=level,
        values=values,
        origins={key: _placed(name, key, lines) for key in values},
        problems=tuple(f"{name}: {problem.key}: {problem.message}" for problem in problems),
    )

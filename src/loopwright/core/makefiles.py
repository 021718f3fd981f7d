"""What in a Makefile steers a gate: everything but the rules that its commands cannot reach."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

_RULE: Final = re.compile(r"(?P<targets>[^\s#:=][^:=#]*?)\s*::?(?!=)\s*(?P<needs>[^=]*)$")
_BEGINS: Final = re.compile(r"\s*(?:ifn?eq|ifn?def|define)\b")
_ENDS: Final = re.compile(r"\s*(?:endif|endef)\b")
_CALLS: Final = re.compile(r"(?:\$[({]MAKE[)}]|\bmake\b)((?:\s+[^\s;&|)]+)*)")
_USUAL: Final = ("test", "tests", "check", "lint", "all")


@dataclass(slots=True)
class _Rule:
    targets: tuple[str, ...]
    needs: tuple[str, ...]
    lines: list[str] = field(default_factory=list)


def make_steering(text: str, commands: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of a Makefile that can change what these commands do, for a comparison."""
    lines, rules = _read(text)
    reached = _reached(rules, _goals(commands) or _USUAL)
    kept = [line for rule in rules if reached is None or reached & set(rule.targets) for line in rule.lines]
    return (*lines, "", *kept)


def _read(text: str) -> tuple[list[str], list[_Rule]]:
    """Return the lines outside of rules, and the rules; what stands inside a condition counts as outside."""
    outside: list[str] = []
    rules: list[_Rule] = []
    depth = 0
    rule: _Rule | None = None
    for line in re.sub(r"\\\n[ \t]*", " ", text).splitlines():
        if rule is not None and line.startswith("\t"):
            rule.lines.append(line.rstrip())
            continue
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        rule = None
        depth += 1 if _BEGINS.match(line) else -1 if _ENDS.match(line) else 0
        found = _RULE.match(line.partition(" #")[0].rstrip()) if depth == 0 else None
        if found is None or _ENDS.match(line):
            outside.append(line.rstrip())
            continue
        needs, _, recipe = found["needs"].partition(";")
        rule = _Rule(tuple(found["targets"].split()), tuple(needs.replace("|", " ").split()), [line.rstrip()])
        rule.needs += tuple(_called(recipe))
        if rule.targets == (".PHONY",):
            continue
        rules.append(rule)
    return outside, rules


def _reached(rules: Iterable[_Rule], goals: Iterable[str]) -> set[str] | None:
    """Return the targets that goals lead to; None when a variable or a pattern hides where they lead."""
    known = list(rules)
    reached: set[str] = {target for rule in known for target in rule.targets if target.startswith(".")}
    open_goals = [*goals, *reached]
    while open_goals:
        goal = open_goals.pop()
        if "$" in goal:
            return None
        reached.add(goal)
        for rule in known:
            if goal in rule.targets or any("%" in target or "$" in target for target in rule.targets):
                reached.update(rule.targets)
                called = [name for line in rule.lines[1:] for name in _called(line)]
                open_goals += [each for each in (*rule.needs, *called) if each not in reached]
    return reached


def _goals(commands: Iterable[str]) -> list[str]:
    return [goal for command in commands for goal in _called(command)]


def _called(line: str) -> list[str]:
    """Return the goals that a command line hands to make."""
    goals: list[str] = []
    for found in _CALLS.finditer(line):
        try:
            words = shlex.split(found[1])
        except ValueError:
            words = found[1].split()
        goals += [word for word in words if not word.startswith("-") and "=" not in word]
    return goals

"""Find what affects a gate in a Makefile: everything but the rules that its commands cannot reach."""

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
_DEFAULT: Final = ""
"""The goal of a call that names none."""
_DEFAULT_GOAL: Final = re.compile(r"(?:override\s+|export\s+)*\.DEFAULT_GOAL\s*[:?!+]*=\s*(.*)")
_INCLUDES: Final = re.compile(r"\s*[-s]?include\b")
_HIDDEN: Final = "$"
"""A goal that cannot be known by reading, such as one with a variable in it."""
_WITH_WORD: Final = frozenset("CEfIoW")
_WITH_NUMBER: Final = frozenset("jl")
_LONG_WITH_WORD: Final = frozenset(
    {"--directory", "--eval", "--file", "--makefile", "--include-dir", "--old-file", "--assume-old"}
    | {"--what-if", "--new-file", "--assume-new"}
)
_LONG_WITH_NUMBER: Final = frozenset({"--jobs", "--load-average", "--max-load"})
"""Options of make that take the next word as their value; a number is optional."""


@dataclass(slots=True)
class _Rule:
    targets: tuple[str, ...]
    needs: tuple[str, ...]
    lines: list[str] = field(default_factory=list)


def make_steering(text: str, commands: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of a Makefile that can change what these commands do, for a comparison."""
    lines, rules, phony = _read(text)
    reached = _reached(rules, _goals(commands) or _USUAL, _defaults(lines, rules))
    kept = [line for rule in rules if reached is None or reached & set(rule.targets) for line in rule.lines]
    # Without `.PHONY` a file of that name is enough, and nothing runs.
    always = sorted(phony if reached is None else phony & reached)
    return (*lines, "", *kept, *([f".PHONY: {' '.join(always)}"] if always else []))


def file_targets(text: str, commands: Sequence[str]) -> frozenset[str]:
    """Return the targets that commands reach and that make skips if a file of that name exists."""
    lines, rules, phony = _read(text)
    reached = _reached(rules, _goals(commands) or _USUAL, _defaults(lines, rules))
    targets = {target for rule in rules for target in rule.targets}
    found = (targets if reached is None else targets & reached) - phony
    return frozenset(
        target for target in found if not target.startswith(".") and not set("%$*") & set(target)
    )


def _read(text: str) -> tuple[list[str], list[_Rule], frozenset[str]]:
    """Return the lines outside rules, the rules, and the phony targets.

    Lines inside a condition count as outside.
    """
    outside: list[str] = []
    rules: list[_Rule] = []
    phony: set[str] = set()
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
            phony.update(rule.needs)
            continue
        rules.append(rule)
    return outside, rules, frozenset(phony)


def _defaults(lines: Iterable[str], rules: Iterable[_Rule]) -> tuple[str, ...]:
    """Return what make builds without a goal: the value of `.DEFAULT_GOAL`, else the first target."""
    lines = list(lines)
    said = tuple(found[1].strip() for line in lines if (found := _DEFAULT_GOAL.match(line)))
    targets = (target for rule in rules for target in rule.targets)
    first = next((one for one in targets if (not one.startswith(".") or "/" in one) and "%" not in one), "")
    # An included file may have a target before the first one here.
    hidden = (_HIDDEN,) if not said and any(_INCLUDES.match(line) for line in lines) else ()
    return (*said, *hidden, *((first,) if first else ()))


def _reached(rules: Iterable[_Rule], goals: Iterable[str], defaults: Sequence[str]) -> set[str] | None:
    """Return the targets that goals reach; None if a variable or a pattern hides them."""
    known = list(rules)
    reached: set[str] = {target for rule in known for target in rule.targets if target.startswith(".")}
    open_goals = [*goals, *reached]
    while open_goals:
        goal = open_goals.pop()
        if goal == _DEFAULT:
            open_goals += [each for each in defaults if each not in reached]
            continue
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
    """Return the goals that a command line gives make, the default goal for a call without any."""
    goals: list[str] = []
    for found in _CALLS.finditer(line):
        try:
            words = shlex.split(found[1])
        except ValueError:
            words = re.sub("['\"]", "", found[1]).split()  # the call itself is in quotes: sh -c 'make test'
        goals += _named_goals(words) or [_DEFAULT]
    return goals


def _named_goals(words: Iterable[str]) -> list[str]:
    """Return the goals among the words after `make`."""
    goals: list[str] = []
    takes = ""
    for word in words:
        taken = takes == "word" or (takes == "number" and word[:1].isdigit())
        takes = "" if taken else _takes(word)
        if not taken and not word.startswith("-") and "=" not in word:
            goals.append(word)
    return goals


def _takes(word: str) -> str:
    """Return what the word after an option of make can be besides a goal."""
    if word.startswith("--"):
        return "word" if word in _LONG_WITH_WORD else "number" if word in _LONG_WITH_NUMBER else ""
    if not word.startswith("-"):
        return ""
    # The rest of the word after the letter is already its argument.
    end = next((n for n, letter in enumerate(word) if letter in _WITH_WORD | _WITH_NUMBER), -1)
    if end != len(word) - 1:
        return ""
    return "word" if word[end] in _WITH_WORD else "number"

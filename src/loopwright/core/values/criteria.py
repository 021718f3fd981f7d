"""Find the commands in lists of criteria."""

import re
from collections.abc import Collection, Iterable
from typing import Final

# The words around a command that must pass. With any other word, the backticks hold a name, not a command:
# "`Limiter` is safe with threads" must never be run.
_AROUND: Final = frozenset(
    {
        "0", "all", "and", "clean", "cleanly", "code", "command", "commands", "errors", "execute", "exit", "exits",
        "green", "is", "must", "pass", "passed", "passes", "passing", "return", "returns", "run", "running", "runs",
        "should", "succeed", "succeeds", "successful", "successfully", "test", "tests", "the", "verify", "with",
        "without", "zero",
    }
)  # fmt: skip
_WORD: Final = re.compile(r"[\w']+")
_LABELLED: Final = re.compile(r"[^`]*:[*_]*\s+`([^`]+)`[\s.]*")
MAX_ENTRY: Final = 5_000


def commands_in(entry: str) -> tuple[str, ...]:
    """Return the commands of a criterion that only says that they pass, such as "`make test` passes"."""
    parts = entry.split("`")
    if len(parts) < 3 or len(parts) % 2 == 0 or len(entry) > MAX_ENTRY:
        return ()
    around = {word.lower() for part in parts[::2] for word in _WORD.findall(part)}
    commands = tuple(part.strip() for part in parts[1::2])
    return commands if around <= _AROUND and all(commands) else ()


def labelled(entry: str) -> str:
    """Return the command at the end of "what it shows: `command`"; only for lists in which it should be run."""
    found = _LABELLED.fullmatch(entry) if len(entry) <= MAX_ENTRY else None
    return found[1].strip() if found is not None else ""


def checks_in(entry: str) -> tuple[str, ...]:
    """Return the commands of an entry in a list of checks: the one after its label, or all of it."""
    command = labelled(entry)
    return (command,) if command else commands_in(entry)


def in_words(entries: Iterable[str], commands: Collection[str]) -> tuple[str, ...]:
    """Return the criteria that say more than that some of these commands pass."""
    return tuple(one for one in entries if not (found := checks_in(one)) or not set(found) <= set(commands))

"""Which tests a command of pytest names, where it runs those and nothing else."""

import posixpath
from collections.abc import Collection
from typing import Final

from loopwright.core.command_lines import Call, calls_in, is_outside, joined

_RUNNERS: Final = frozenset({"pytest", "py.test"})
_VALUED: Final = frozenset(
    {
        "-k",
        "-m",
        "-p",
        "-c",
        "-o",
        "-W",
        "-n",
        "-r",
        "--tb",
        "--cov",
        "--cov-report",
        "--cov-config",
        "--maxfail",
    }
    | {
        "--rootdir",
        "--confcutdir",
        "--timeout",
        "--durations",
        "--junitxml",
        "--junit-xml",
        "--ignore",
        "--color",
    }
    | {
        "--deselect",
        "--import-mode",
        "--basetemp",
        "--override-ini",
        "--numprocesses",
        "--dist",
        "--log-level",
    }
)
"""Options that the next word belongs to."""
_MORE: Final = ("--pyargs", "--doctest-glob", "--lf", "--last-failed", "--ff", "--failed-first", "@")
"""What has pytest run something else than is named."""
_OPEN: Final = frozenset("*?[{$`~<>")


def only_new_tests(command: str, new: Collection[str], before: Collection[str]) -> tuple[str, ...]:
    """Return the new tests that a command names; empty unless it runs pytest on these and on nothing else.

    The paths are relative to where the command is run: tests that the work brought, and all that was there before.
    """
    calls = calls_in(command)
    if len(calls) != 1:
        return ()
    named: list[str] = []
    for word in _places(calls[0]):
        place = None if is_outside(word) else joined(calls[0].folder, word.partition("::")[0])
        below = [path for path in new if place and (path == place or path.startswith(f"{place}/"))]
        if not below or place in before or any(path.startswith(f"{place}/") for path in before):
            return ()
        named += below
    return tuple(dict.fromkeys(named))


def _places(call: Call) -> list[str]:
    """Return the words that tell pytest where to look; one that leads nowhere when something else may tell it too."""
    words = list(call.words)
    starts = [
        n + 1
        for n, word in enumerate(words)
        if posixpath.basename(word) in _RUNNERS
        and (n == 0 or words[n - 1] not in _VALUED or words[n - 1] == "-m")
    ]
    if not starts or any(word.startswith(_MORE) or _OPEN & set(word) for word in words):
        return ["/"]
    found: list[str] = []
    waits = False
    for word in words[starts[0] :]:
        if not waits and not word.startswith("-"):
            found.append(word)
        waits = not waits and word in _VALUED
    return found

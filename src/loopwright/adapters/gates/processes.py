"""Which test runners run below a gate's command, seen from outside. Loaded by the gate's runner.

Standard library only. A test runner that did not report to the witness is known by this, whatever the command did to
its environment. Only Linux lists the children of a process; elsewhere nothing is found.
"""

import os
import re
from collections.abc import Collection, Iterator

EVERY_S = 0.02
WITNESS = re.compile(r"(?:^|/)witness_\w+\.py$")
PYTHON = re.compile(r"(?:^|/)(?:python|pypy)[\d.]*$")
NODE = re.compile(r"(?:^|/)node$")
JAVASCRIPT = re.compile(r"(?:^|/)(?:jest|vitest)(?:\.m?js)?$")
MODULES = frozenset({"pytest", "py.test", "unittest"})
NO_RUN = frozenset(
    {"--version", "-V", "--help", "-h", "--fixtures", "--markers", "--clearCache", "--showConfig", "--init"}
    | {"-c", "-n", "-list", "help"}
)
"""Words with which the programs below run no tests; for those of one letter see `named`."""


def named(argv: list[str]) -> str:
    """Return the test runner that a process is, or nothing."""
    program, words = argv[0], argv[1:]
    if program.rpartition("/")[2] == "go":
        plain = words[:1] == ["test"] and not NO_RUN & {word.partition("=")[0] for word in words}
        return "go test" if plain else ""
    if (NO_RUN - {"-c", "-n"}) & set(words):
        return ""
    if PYTHON.search(program):
        return in_python(iter(words))
    if NODE.search(program):
        script = next((word for word in words if not word.startswith("-")), "")
        if found := JAVASCRIPT.search(script):
            return found[0].strip("/").partition(".")[0]
        return "node --test" if "--test" in words else ""
    return ""


def in_python(words: Iterator[str]) -> str:
    """Return the test runner that a Python runs as a module or a script, or nothing."""
    for word in words:
        if word in ("-W", "-X"):
            next(words, "")
        elif word == "-m" or not word.startswith("-"):
            run = (next(words, "") if word == "-m" else word).rpartition("/")[2]
            if run != "coverage":
                return run if run in MODULES else ""
            next(words, "")  # its own command: what follows is run as Python would run it
        elif word == "-c":
            return ""
    return ""


def is_witness(argv: list[str]) -> bool:
    """Return whether a process belongs to Loopwright, which reports for what it runs."""
    return any(WITNESS.search(word) for word in argv[1:6])


def read(pid: int, name: str) -> str:
    """Return a file about a process; empty when the process is gone."""
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""


def children(pid: int) -> Iterator[int]:
    """Yield the processes that a process started, by any of its threads."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - no Path for each
    except OSError:
        return
    for thread in threads:
        yield from map(int, read(pid, f"task/{thread}/children").split())


def inner_pid(pid: int) -> int:
    """Return the number by which a process knows itself: another one inside a sandbox."""
    found = re.search(r"^NSpid:.*\s(\d+)$", read(pid, "status"), re.MULTILINE)
    return int(found[1]) if found else pid


class Runners:
    """The test runners that were seen below one process."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._found: dict[int, str] = {}
        self._family: dict[int, set[int]] = {}
        """By the number from outside: a runner and what it started, by the numbers from inside."""
        self._looked_at = float("-inf")

    def look(self, now: float) -> None:
        """Look at all processes, unless that was done a moment ago."""
        if now - self._looked_at < EVERY_S:
            return
        self._looked_at = now
        below = [self._top]
        while below:
            pid = below.pop()
            argv = read(pid, "cmdline").rstrip("\0").split("\0")
            if is_witness(argv):
                continue
            if runner := named(argv):
                # What a test starts is not what is being judged, so nothing further down counts.
                self._found[pid] = runner
                self._family.setdefault(pid, {inner_pid(pid)}).update(map(inner_pid, children(pid)))
            else:
                below += children(pid)

    def unwatched(self, reported: Collection[int]) -> list[str]:
        """Return the runners of which nothing was reported."""
        silent = [pid for pid, family in self._family.items() if not family & set(reported)]
        # A runner that starts a second one to be watched reports by that one, which may not have been seen.
        spare = len(set(reported).difference(*self._family.values()))
        return sorted({self._found[pid] for pid in silent[spare:]})

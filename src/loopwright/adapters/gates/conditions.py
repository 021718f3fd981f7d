"""What a gate's result depends on besides the tree and the commands: the programs that the commands start."""

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from loopwright.core.values.policy import GateCommand

Programs = list[list[str | int]]


def programs_of(commands: Sequence[GateCommand], env: Mapping[str, str]) -> Programs:
    """Return each program that a command names, with what changes when it, or a package beside it, is replaced."""
    found: dict[str, list[str | int]] = {}
    for command in commands:
        for word in _words(command.command):
            if word not in found and (place := shutil.which(word, path=env.get("PATH", ""))):
                found[word] = [word, os.path.realpath(place), *_stamps(Path(place))]
    return list(found.values())


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return command.split()


def _stamps(program: Path) -> list[int]:
    # An installer touches the folder of the packages that belong to an interpreter, so its time stands for them.
    packages = sorted(program.parent.parent.glob("lib/python*/site-packages"))
    stats = [path.stat() for path in (program, *packages)]
    return [number for one in stats for number in (one.st_size, one.st_mtime_ns)]

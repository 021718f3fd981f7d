"""Command lines that only read. An agent without a tool for reading asks for permission for each."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from loopwright.core.values.permissions import parts


def _without(*beginnings: str) -> re.Pattern[str]:
    """Match arguments of which none begins like this."""
    return re.compile(rf"(?!(?:.*\n)?(?:{'|'.join(beginnings)})).*", re.DOTALL)


_ANYTHING: Final = re.compile(r".*", re.DOTALL)

_READERS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "cat", "head", "tail", "nl", "wc", "ls", "pwd", "cd", "stat", "du", "basename", "dirname",
                "realpath", "readlink", "grep", "egrep", "fgrep", "cut", "tr", "diff", "cmp", "comm", "jq",
                "which", "echo", "printf", "true",
            ),
            _ANYTHING,
        ),
        "rg": _without(r"--pre(?:=|\n|$)", "--hostname-bin", "--search-zip", r"-[^-\n]*z"),
        "find": _without("-exec", "-ok", "-delete", "-fls", "-fprint"),
        "fd": _without("--exec", r"-[^-\n]*[xX]"),
        "tree": _without(r"-[^-\n]*o", "--output"),
        "sort": _without(r"-[^-\n]*o", "--o", "--co"),
        # A second name is where it writes, so it may only be fed by a pipe.
        "uniq": _without("[^-]"),
        # Everything but printing lines by number can write or run something.
        "sed": re.compile(r"-n\n(?:\d+(?:,(?:\d+|\$))?p;?)+(?:\n[^-\n][^\n]*)*"),
        "git": re.compile(
            r"(?:--no-pager\n)?"
            r"(?:status|diff|log|show|blame|grep|ls-files|ls-tree|rev-parse|rev-list|merge-base|describe|shortlog)"
            # Options may be shortened, and put together after one dash.
            r"(?:\n(?!--ou|--op|--ext(?!ended)|--textc|-[^-\n]*O)[^\n]*)*"
        ),
    }
)  # fmt: skip
"""What the arguments of each program, one on a line, have to look like for it to change nothing."""


def only_reads(line: str) -> bool:
    """Return whether a command line changes nothing, as far as its words tell."""
    told = parts(line)
    return bool(told) and all(_reads(words) for words in told)


def _reads(words: list[str]) -> bool:
    pattern = _READERS.get(words[0])
    return pattern is not None and pattern.fullmatch("\n".join(words[1:])) is not None

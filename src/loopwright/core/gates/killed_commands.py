"""Commands that something outside ended: the system when memory ran out, or anybody with a signal."""

from dataclasses import dataclass, replace
from typing import Final

from loopwright.core.values.findings import CommandResult, Verdict, VerdictStatus

_HANGUP: Final = 1
_KILL: Final = 9
_TERM: Final = 15
_FROM_OUTSIDE: Final = {
    **{-number: number for number in (_HANGUP, _KILL, _TERM)},
    # How a shell, or a sandbox, tells of a process below it. 129 is left out: git ends so when it is called wrongly.
    **{128 + number: number for number in (_KILL, _TERM)},
}
"""Exit codes of commands that were killed, and the signal. A program that crashes ends by other ones: that is red."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """Commands of one gate run that did not end by themselves."""

    commands: tuple[str, ...]
    signal: int
    """Of the first of them."""
    name: str

    @property
    def reason(self) -> str:
        """What happened, in words."""
        why = ", probably out of memory" if self.signal == _KILL else ""
        return f"{self.name}: killed by signal {self.signal}{why}"


def killed_in(verdict: Verdict) -> Killed | None:
    """Return what was killed in a gate run; None when every command ended by itself or at its own time limit."""
    dead = [one for one in verdict.commands if _signal(one) is not None]
    if not dead or verdict.status is not VerdictStatus.FAILED:
        return None
    number = _signal(dead[0])
    assert number is not None
    return Killed(commands=tuple(one.command for one in dead), signal=number, name=dead[0].name)


def _signal(result: CommandResult) -> int | None:
    return None if result.timed_out or result.exit_code is None else _FROM_OUTSIDE.get(result.exit_code)


def not_judged(verdict: Verdict, killed: Killed, *, lasting: bool = False) -> Verdict:
    """Return a verdict that says nothing about the tree."""
    status = VerdictStatus.INCONCLUSIVE
    return Verdict(status=status, reason=killed.reason, commands=verdict.commands, lasting=lasting)


def red(verdict: Verdict, killed: Killed) -> Verdict:
    """Return the verdict on a tree on which a command was killed again, although the base lets it end."""
    reason = f"{killed.reason}; again when it ran alone, and not on the base"
    return replace(verdict, status=VerdictStatus.FAILED, reason=reason)

"""Everything that the judgement of a Codex run needs to know about its lines so far."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from loopwright.adapters.agents.codex.failures import Problem
from loopwright.adapters.agents.codex.quota import Windows
from loopwright.adapters.agents.output import whole_number
from loopwright.core.replies.questions import Asking
from loopwright.core.rows.model import Usage
from loopwright.ports import AgentRequest

_COUNTS: Final = (
    ("input_tokens", "inputTokens"),
    ("output_tokens", "outputTokens"),
    ("cache_read_tokens", "cachedInputTokens"),
    ("cache_write_tokens", "cacheWriteInputTokens"),
)
"""Our words for tokens beside Codex's; `exec` has the latter in snake case."""

_MOST_THREADS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that Codex is at: it is remembered until it ends, because requests only name its id."""

    id: str
    type: str
    paths: tuple[str, ...] = ()
    server: str = ""
    tool: str = ""
    arguments: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the turn ended."""

    status: str
    """`completed`, `failed` or `interrupted`; `refused` when there was no turn at all."""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexState:
    """What was said so far, by both sides."""

    request: AgentRequest | None = None
    before: Usage = field(default_factory=Usage)
    """What the conversation had used before this run."""
    roots: tuple[str, ...] = ()
    """Where the workspace is; Codex may know it by another path, without links."""
    thread: str | None = None
    turn: str | None = None
    model: str | None = None
    version: str | None = None
    acted: bool = False
    """It has done or said anything at all."""
    said: str = ""
    """The last words of the agent."""
    ending: Ending | None = None
    asked: tuple[Asking, ...] = ()
    interrupted: bool = False
    """Codex has taken our word that it should stop."""
    items: tuple[Item, ...] = ()
    changes: tuple[tuple[str, int], ...] = ()
    """Changed files with a checksum of the change, as told last."""
    totals: tuple[tuple[str, Usage], ...] = ()
    """What each thread has used in all its life: sub-agents have their own threads."""
    base: Usage | None = None
    """What a copied conversation brought along."""
    windows: Windows = ()
    unpaid: bool = False
    """What a request was refused for is money, and not time."""
    waiting: Problem | None = None
    """Why it tries again, as long as nothing else has happened since."""
    failed_changes: int = 0
    helpless: bool = False
    """Codex has said that it has no helper programs: then its sandbox lets nothing be written."""
    tail: tuple[str, ...] = ()
    """The last lines that were not JSON: this is where the program complains before it can talk."""

    def total(self, thread: str) -> Usage | None:
        """Return what a thread has used in all its life."""
        return dict(self.totals).get(thread)

    def counted(self, thread: str, usage: Usage) -> "CodexState":
        """Return the state with the newest count of a thread."""
        totals = dict(self.totals)
        if thread not in totals and len(totals) >= _MOST_THREADS:
            return self
        return replace(self, totals=tuple({**totals, thread: usage}.items()))

    def used(self) -> Usage | None:
        """Return what this run has used: its own share of its conversation, and all of the agents that it started."""
        if self.thread is None or (total := self.total(self.thread)) is None:
            return None
        if self.request is not None and self.request.fork:
            # A turn that failed at once repeats the last count of the conversation that it was copied from.
            if self.base is None or self.ending is None or self.ending.status != "completed":
                return None
            share = minus(total, self.base)
        else:
            share = since(total, self.before)
        for thread, usage in self.totals:
            if thread != self.thread:
                share = plus(share, usage)
        return share


def read_usage(counts: object) -> Usage | None:
    """Read a count of tokens. Codex counts what came from a cache as input as well; we keep the two apart."""
    if not isinstance(counts, dict):
        return None
    found = {ours: whole_number(counts.get(theirs)) for ours, theirs in _COUNTS}
    cached = (found["cache_read_tokens"] or 0) + (found["cache_write_tokens"] or 0)
    if found["input_tokens"] is not None:
        found["input_tokens"] = max(0, found["input_tokens"] - cached)
    return Usage(**found)


def since(total: Usage, before: Usage) -> Usage:
    """Return what was used since; a total below what was known before was counted again."""
    known = [(getattr(total, name), getattr(before, name) or 0) for name, _ in _COUNTS]
    anew = any(now is not None and now < then for now, then in known)
    return total if anew else minus(total, before)


def minus(total: Usage, part: Usage) -> Usage:
    """Take one count off another; what is unknown stays unknown."""
    return Usage(**{name: _minus(getattr(total, name), getattr(part, name)) for name, _ in _COUNTS})


def plus(one: Usage, other: Usage) -> Usage:
    """Add two counts."""
    return Usage(**{name: _plus(getattr(one, name), getattr(other, name)) for name, _ in _COUNTS})


def _minus(total: int | None, part: int | None) -> int | None:
    return None if total is None else max(0, total - (part or 0))


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)

"""Drive one process: start it or find it again, listen to it, and find out how it ended."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol
from zlib import crc32

from loopwright.core.healing.earlier_tries import masked
from loopwright.core.policy.budget import Over
from loopwright.core.replies.discoveries import Noticed
from loopwright.core.values.containment import HomeView
from loopwright.core.values.errors import CannotRun
from loopwright.core.values.failures import RULES, Failure
from loopwright.core.values.policy import Limits
from loopwright.engine.memory.interrupts import call_off
from loopwright.engine.money.quotas import QuotaWatch
from loopwright.engine.money.spending import SpendingWatch
from loopwright.ports import (
    Agent,
    AgentEvent,
    AgentRequest,
    AgentResult,
    Exit,
    Invocation,
    Keepers,
    RunSpec,
    Spent,
    able,
)

Listener = Callable[[AgentEvent], None]

Reason = Callable[[], Coroutine[Any, Any, object]]
"""Waits until there is a reason to stop a process."""


class Excess(Protocol):
    """Watches a process that may use only a limited amount of something."""

    why: str
    """Why it has to stop; empty while it may continue."""

    async def until_over(self) -> None:
        """Wait until it has used too much."""


_STEPS: Final = ("ToolStart", "ToolEnd", "FileChange")
"""Events with which an agent does something; all others are text."""
_MOST_STEPS: Final = 50_000

INTERRUPT = 10**9
"""Numbers of writes that folding never uses, so that they never collide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a driven process ended."""

    exit: Exit
    interrupted: bool
    """Whether it was ended at the user's request, not by itself."""
    result: AgentResult | None = None
    denial: str = ""
    """What its sandbox denied, as far as its last output says: the path, and the setting that allows it."""
    over: Over | None = None
    """Why it was ended, if it reached its cost limit."""
    excess: str = ""
    """Why it was ended, if it used too much disk space."""
    discovered: tuple[Noticed, ...] = ()
    """Work that it found and did not do."""


def agent_spec(
    request: AgentRequest,
    invocation: Invocation,
    *,
    run_id: str,
    env: Mapping[str, str],
    limits: Limits,
    secrets: tuple[str, ...] = (),
    home: HomeView | None = None,
) -> RunSpec:
    """Return how to start the process of an agent."""
    grace = [one for one in (invocation.done_grace_s, limits.done_grace) if one is not None]
    return RunSpec(
        run_id=run_id,
        directory=request.run_directory,
        argv=invocation.argv,
        cwd=request.workspace / request.subfolder,
        env=env,
        stdin=invocation.stdin,
        stdin_data=invocation.stdin_data,
        limits=replace(limits, done_grace=min(grace, default=None)),
        done_pattern=invocation.done_pattern,
        interrupt=invocation.interrupt,
        activity_paths=(request.workspace,),
        secrets=secrets,
        files={"prompt.md": request.prompt, **invocation.files},
        home=home,
    )


async def drive_agent(
    keepers: Keepers,
    agent: Agent,
    spec: RunSpec,
    *,
    request: AgentRequest,
    before: Spent,
    interrupt: asyncio.Event,
    heard: Listener,
    spending: SpendingWatch | None = None,
    quota: QuotaWatch | None = None,
    excess: Excess | None = None,
) -> Ended:
    """Start the agent or adopt the running one, fold its whole output, and judge its end.

    Folding starts from the first line every time: the codec is pure, so an adopting worker reaches the same
    state, and its numbered answers are written at most once.
    """
    await _settle_lost(keepers, spec.directory)
    await keepers.start(spec)
    says_done = re.compile(spec.done_pattern) if spec.done_pattern else None
    said_done = False
    state = agent.initial(request, before=before)
    written = 0

    async def listen() -> None:
        nonlocal state, written, said_done
        async for line in keepers.follow(spec.directory):
            folded = agent.fold(state, line)
            state = folded.state
            said_done = said_done or bool(says_done and line.stream == "out" and says_done.search(line.text))
            # New input asks for more work, so the earlier last message is no longer the last one.
            said_done = said_done and not any(folded.writes)
            for event in folded.events:
                heard(event)
                if spending is not None:
                    spending.hear(event)
            if quota is not None and folded.windows:
                await quota.hear(folded.windows)
            for n, text in enumerate(folded.writes, 1):
                written += 1
                last = n == len(folded.writes)
                await keepers.write(spec.directory, written, text, stops=folded.stops and last)
            if folded.close:
                written += 1
                await keepers.write(spec.directory, written, "", close=True)

    async def stop() -> None:
        """Ask the agent to stop by its protocol first, if it has a way: then it reports its work and the cost."""
        words = agent.interrupt(state) if "interrupt" in able(agent, request.options) else ()
        # Its stdin may be closed by now, because it ended in this exact moment.
        with suppress(CannotRun):
            for n, text in enumerate(words, INTERRUPT):
                await keepers.write(spec.directory, n, text)
        if words:
            with suppress(TimeoutError):
                async with asyncio.timeout(spec.limits.term_grace):
                    await keepers.wait(spec.directory)
        await keepers.end(spec.directory)

    reasons = [interrupt.wait, *(one.until_over for one in (spending, excess) if one)]
    end, why = await _until_end(keepers, spec.directory, listen, reasons, stop)
    interrupted = why is reasons[0]
    result: AgentResult | None = None
    if (judged := exit_to_judge(end, said_done=said_done)) is not None:
        result = agent.result(state, judged)
        if not result.claimed and end.ended_by in ("idle", "deadline"):
            result = agent.result(state, end)  # its last message answers the interrupt: it had not finished
    if result is not None and result.failure is Failure.AUTH and end.login_renewed:
        # Two renewed it at the same moment, which invalidates the old one, and this run was the second.
        result = replace(result, failure=Failure.LOGIN_RENEWED)
    if excess is not None and why == excess.until_over:
        return Ended(exit=end, interrupted=False, result=result, excess=excess.why)
    cancelled = result is not None and result.failure is not None and RULES[result.failure].stopped
    if interrupted and end.ended_by != "asked":
        # An agent that ended by itself before it was asked to has finished its work, however late we see that.
        interrupted = cancelled
    # Asked again, because the worker that stopped it over its cost may have died since.
    if result and cancelled and not interrupted and spending and await spending.was_over():
        result = replace(result, failure=Failure.BUDGET, detail=spending.over.why if spending.over else "")
        return Ended(exit=end, interrupted=False, result=result, over=spending.over)
    return Ended(exit=end, interrupted=interrupted, result=result)


def exit_to_judge(end: Exit, *, said_done: bool) -> Exit | None:
    """Return the end by which an agent's result is judged; None if its keeper was lost before it reported success.

    Finished work is judged whatever ended the process afterwards, like that of an agent that does not exit.
    """
    if said_done and end.ended_by in ("lost", "idle", "deadline"):
        return replace(end, ended_by="done_hang")
    return None if end.ended_by == "lost" else end


async def drive_command(
    keepers: Keepers, spec: RunSpec, *, interrupt: asyncio.Event, excess: Excess
) -> Ended:
    """Start a gate or a setup command, or adopt it, and wait for its end: it runs what an agent wrote."""
    await _settle_lost(keepers, spec.directory)
    await keepers.start(spec)

    async def listen() -> None:
        await keepers.wait(spec.directory)

    async def stop() -> None:
        await keepers.end(spec.directory)

    reasons = [interrupt.wait, excess.until_over]
    end, why = await _until_end(keepers, spec.directory, listen, reasons, stop)
    asked = end.ended_by == "asked"
    return Ended(
        exit=end,
        interrupted=asked and why is reasons[0],
        excess=excess.why if asked and why is reasons[1] else "",
    )


async def _settle_lost(keepers: Keepers, directory: Path) -> None:
    """End what is left of a run whose keeper died. It is never started again under the same id."""
    if keepers.look(directory).state == "lost":
        await keepers.end(directory, polite=False)


def _told(keepers: Keepers, directory: Path, end: Exit) -> Exit:
    return replace(end, files_sha256=keepers.evidence(directory))


async def _until_end(
    keepers: Keepers,
    directory: Path,
    listen: Callable[[], Coroutine[None, None, None]],
    reasons: Sequence[Reason],
    stop: Callable[[], Coroutine[None, None, None]],
) -> tuple[Exit, Reason | None]:
    """Wait for the end; return the first reason for which it was asked to stop before its end was known."""
    listening = asyncio.ensure_future(listen())
    stopping = {asyncio.ensure_future(reason()): reason for reason in reasons}
    try:
        await asyncio.wait({listening, *stopping}, return_when=asyncio.FIRST_COMPLETED)
        why = None
        for done in [one for one in stopping if one.done() and not listening.done()]:
            await done  # it may have failed
            why = why or stopping[done]
        if why is not None:
            await stop()
        await listening
        end = await keepers.wait(directory)
        if keepers.look(directory).state == "lost":
            end = await keepers.end(directory, polite=False)
        return _told(keepers, directory, end), why
    finally:
        await call_off(listening, *stopping)


class Progress:
    """Writes an agent's current activity into its run directory, for the user and the monitor."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "progress.json"
        self._last: dict[str, Any] = {}
        self._said: dict[str, Any] = {"kind": "", "text": ""}
        self._tools = 0
        self._open = 0
        self._call = ""
        self._new: set[int] = set()
        self._error = ""
        self._errors = 0

    def __call__(self, event: AgentEvent) -> None:
        """Note an event if it says something new."""
        if event.kind in _STEPS:
            self._count(event)
        if event.kind not in ("Usage", "Raw", "ToolEnd") and event.text:
            self._said = {"kind": event.kind, "text": " ".join(event.text.split())[:200]}
        now = {
            **self._said,
            "tools": self._tools,
            "new": len(self._new),
            "in_tool": self._open > 0,
            "error": self._error,
            "errors": self._errors,
        }
        if now == self._last:
            return
        self._last = now
        draft = self._path.with_suffix(".new")
        try:
            draft.write_text(json.dumps(now))
            draft.replace(self._path)
        except OSError:
            # Progress is optional: a full disk must not end the run.
            return

    def _count(self, event: AgentEvent) -> None:
        """Count new actions of the agent, and repeated errors."""
        text = masked(event.text)
        if event.kind == "ToolStart":
            self._call = str(event.data.get("input", ""))
        if len(self._new) < _MOST_STEPS:
            # The same result of another call is something new, such as "built" after a long build.
            self._new.add(crc32(f"{event.kind} {text} {self._call}".encode()))
        if event.kind == "ToolStart":
            self._tools += 1
            self._open += 1
        if event.kind == "ToolEnd":
            self._open = max(0, self._open - 1)
            failed = event.data.get("ok") is False
            self._errors = 0 if not failed else self._errors + 1 if text == self._error else 1
            self._error = text[:300] if failed else ""

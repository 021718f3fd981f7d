"""An event loop in which time is free and nothing depends on the machine.

It waits for nothing: when no task can go on, the clock jumps to the next one that is due. Everything runs in one
thread in the order in which it became due, so the same program gives the same run, every time.

Tasks may belong to a simulated `Process`. A killed process stops between two awaits, without a `finally`, as
kill -9 does; a frozen one stands still until it is thawed, as SIGSTOP or a closed lid does.
"""

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from tests.fakes.clock import START

from loopwright.core.values.errors import LoopwrightError

T = TypeVar("T")

_PROCESS: Final[ContextVar["Process | None"]] = ContextVar("process", default=None)


_NOBODY: Final = Context()
"""Where callbacks run that belong to no process."""


class Stuck(Exception):
    """Nothing can ever happen any more, and the task that was waited for is not done."""


class Process:
    """The tasks that live and die together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.frozen = False
        self._held: list[_Call] = []

    @staticmethod
    def current() -> "Process | None":
        """Return the process that the running task belongs to."""
        return _PROCESS.get()

    @property
    def running(self) -> bool:
        """Say whether it takes part now."""
        return self.alive and not self.frozen

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine as part of this process, and everything that it starts."""
        context = copy_context()
        context.run(_PROCESS.set, self)
        return asyncio.get_running_loop().create_task(work, name=self.name, context=context)

    def kill(self) -> None:
        """Let no line of it run again."""
        self.alive = False

    def freeze(self) -> None:
        """Let it stand still; what becomes due meanwhile is kept for later."""
        self.frozen = True

    def thaw(self) -> None:
        """Let it go on as if nothing had happened."""
        self.frozen = False
        if self.alive:
            self._release()

    def raise_from_the_dead(self) -> None:
        """Let it go on after all: only for the end of a simulation, when every task has to be wound up."""
        self.alive, self.frozen = True, False
        self._release()

    def _release(self) -> None:
        held, self._held = self._held, []
        for call in held:
            call.loop.queue(call)

    def hold(self, call: "_Call") -> None:
        """Keep what it would have done."""
        self._held.append(call)


class _Call:
    """One callback that is due now or later."""

    __slots__ = ("_when", "args", "callback", "context", "loop", "process")

    def __init__(
        self,
        loop: "VirtualLoop",
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> None:
        self.loop = loop
        self._when = when
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.context = copy_context() if context is None else context
        self.process = self.context.get(_PROCESS)

    def cancel(self) -> None:
        self.callback = None

    def cancelled(self) -> bool:
        return self.callback is None

    def when(self) -> float:
        return self._when


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class VirtualLoop(asyncio.AbstractEventLoop):
    """See the module's text. There is no input or output on it: it is for what is simulated."""

    def __init__(self) -> None:
        self._now = 0.0
        self._drawn = 0
        self._ready: deque[_Call] = deque()
        self._later: list[tuple[float, int, _Call]] = []
        # In the order of their making: a set would give another order in every process.
        self._tasks: dict[asyncio.Task[Any], Process | None] = {}
        self._failed: list[tuple[asyncio.Task[Any], Process | None]] = []
        self._running = False
        self._closed = False
        self._handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None = None

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Run it at once: there are no threads here."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except (OSError, ValueError, LoopwrightError) as error:
            future.set_exception(error)
        return future

    # --- running ------------------------------------------------------------------------------------

    def run_until_complete(self, future: Any) -> Any:
        """Run until this is done, in no time at all."""
        task: asyncio.Future[Any] = asyncio.ensure_future(future, loop=self)
        before = events._get_running_loop()
        events._set_running_loop(self)
        self._running = True
        try:
            self._run_until(task.done)
        finally:
            self._running = False
            events._set_running_loop(before)
        return task.result()

    def _run_until(self, is_done: Callable[[], bool]) -> None:
        # Spelled out, with few calls: a simulation spends much of its time right here.
        ready = self._ready
        while not is_done():
            if not ready:
                self._let_time_pass()
                continue
            call = ready.popleft()
            process = call.process
            if process is not None and (process.frozen or not process.alive):
                process.hold(call)
            elif call.callback is not None:
                try:
                    call.context.run(call.callback, *call.args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001 - what a callback raises is the loop's to report
                    message = f"exception in {call.callback}"
                    self.call_exception_handler({"message": message, "exception": error})

    def _let_time_pass(self) -> None:
        """Let the next one be due that anybody still waits for."""
        while self._later:
            when, _, call = heapq.heappop(self._later)
            if call.callback is None:
                continue
            if call.process is not None and not call.process.alive:
                call.process.hold(call)  # time does not wait for the dead
                continue
            self._now = max(self._now, when)
            self._ready.append(call)
            return
        raise Stuck("every task waits for something that nobody will do")

    def queue(self, call: _Call) -> None:
        """Let a call happen after all that is due now."""
        self._ready.append(call)

    def time(self) -> float:
        """Return the seconds since this loop was made."""
        return self._now

    def is_running(self) -> bool:
        """Say whether it runs."""
        return self._running

    def is_closed(self) -> bool:
        """Say whether it was closed."""
        return self._closed

    def close(self) -> None:
        """Forget everything that is still due."""
        self._closed = True
        self._ready.clear()
        self._later.clear()

    # --- what tasks and futures need -----------------------------------------------------------------

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Call:
        """Call it after all that is due now."""
        call = _Call(self, self._now, callback, args, context)
        self._ready.append(call)
        return call

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Call:
        """Do as `call_soon`: there are no threads here."""
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Call:
        """Call it when this much time has passed."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Call:
        """Call it at this time."""
        call = _Call(self, when, callback, args, context)
        self._drawn += 1
        heapq.heappush(self._later, (when, self._drawn, call))
        return call

    async def sleep(self, seconds: float) -> None:
        """Do what `asyncio.sleep` does, with fewer calls: a simulation sleeps very often."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.Future(loop=self)
        call = self.call_at(self._now + seconds, _wake, future)
        try:
            await future
        finally:
            call.callback = None

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        """Return a task of this loop."""
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        # Held until it is done: one of a killed process must not run its `finally` because nobody knows it any more.
        self._tasks[task] = _PROCESS.get() if context is None else context.get(_PROCESS)
        task.add_done_callback(self._ended, context=_NOBODY)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        process = self._tasks.pop(task)
        # Nobody has asked for it yet: told by whoever throws it away, it would be told at no certain moment.
        if task._log_traceback:
            self._failed.append((task, process))

    def lost(self) -> list[asyncio.Task[Any]]:
        """Return the tasks that ended with an exception which nobody has asked for, but for those of the dead."""
        living = [task for task, process in self._failed if process is None or process.alive]
        return [task for task in living if task._log_traceback]

    def unfinished(self) -> list[asyncio.Task[Any]]:
        """Return the tasks that are not done, also those of processes that are dead."""
        return [task for task in self._tasks if not task.done()]

    def get_debug(self) -> bool:
        """Return False: debugging looks at the real clock."""
        return False

    def set_exception_handler(
        self, handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None
    ) -> None:
        """Tell who hears of exceptions that nobody awaits."""
        self._handler = handler

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report an exception that nobody awaits, or raise it when nobody wants to hear of it."""
        if self._handler is not None:
            self._handler(self, context)
        else:
            raise RuntimeError(context["message"]) from context.get("exception")


class VirtualClock:
    """The clock of one simulated machine: its date may be wrong, and it may run a little too fast or too slow."""

    def __init__(self, loop: VirtualLoop, *, ahead_s: float = 0.0, rate: float = 1.0) -> None:
        self._loop = loop
        self._ahead = timedelta(seconds=ahead_s)
        self._rate = rate
        self._seen, self._now = -1.0, START

    def now(self) -> datetime:
        """Return what this machine takes for the present moment."""
        seconds = self._loop.time()
        if seconds != self._seen:  # many look at the same moment
            self._seen, self._now = seconds, START + timedelta(seconds=seconds) + self._ahead
        return self._now

    def monotonic(self) -> float:
        """Return seconds as this machine counts them."""
        return self._loop.time() * self._rate

    async def sleep(self, seconds: float) -> None:
        """Wait, by this machine's counting."""
        await self._loop.sleep(max(0.0, seconds) / self._rate)

"""Call use cases on behalf of one repository and one environment."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from loopwright.services.homes.caller import called_from
from loopwright.services.homes.session import Session, session

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The folder that relative paths belong to, and the variables that settings, agents and gates come from."""

    folder: Path
    env: Mapping[str, str]

    @contextmanager
    def here(self) -> Iterator[None]:
        """Let everything inside work for this folder and these variables."""
        with called_from(self.folder, self.env):
            yield

    def path(self, path: Path | str) -> Path:
        """Return a path that is relative to the folder as an absolute one."""
        return self.folder / path

    async def look(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that may wait for a disk or a program, in a thread."""
        with self.here():
            return await asyncio.to_thread(function, *args, **kwargs)

    async def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call an asynchronous use case."""
        with self.here():
            return await function(*args, **kwargs)

    async def act(
        self, function: Callable[Concatenate[Session, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a use case that changes something, with the home open for the length of the call."""
        with self.here():
            async with session() as at:
                return await function(at, *args, **kwargs)

    async def each(self, values: AsyncIterator[T]) -> AsyncIterator[T]:
        """Yield what a use case yields. The caller's own code in between is not affected by folder or variables."""
        while True:
            with self.here():
                try:
                    value = await anext(values)
                except StopAsyncIteration:
                    return
            yield value


@dataclass(frozen=True, slots=True)
class Noun:
    """One attribute of `Loopwright`."""

    _caller: Caller

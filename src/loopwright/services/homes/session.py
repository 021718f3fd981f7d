"""Open a home to work in it, with the settings in force: what every use case that changes something needs."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from loopwright.adapters.machine.threads import share_memory
from loopwright.app import Home, open_home
from loopwright.config.resolve import Settings
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import look_settings, open_existing
from loopwright.services.homes.log import log_to


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One home, opened for one caller."""

    home: Home
    settings: Settings
    env: Mapping[str, str] = field(default_factory=environment)
    """The variables for agents and gates."""


@asynccontextmanager
async def session() -> AsyncIterator[Session]:
    """Open the existing home, and close it at the end."""
    settings = look_settings()
    home = open_existing(settings)
    log_to(home.root)
    try:
        yield Session(home=home, settings=settings)
    finally:
        await home.store.close()


# Open a home to work in it; its first use creates it.


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Session]:
    """Open the home that the settings name, and close it at the end."""
    share_memory()
    home = open_home(settings, environment())
    log_to(home.root)
    try:
        yield Session(home=home, settings=settings, env=environment())
    finally:
        await home.store.close()

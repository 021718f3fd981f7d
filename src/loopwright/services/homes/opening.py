"""Open a home to work in it; its first use creates it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from loopwright.app import open_home
from loopwright.config.resolve import Settings
from loopwright.services.homes.caller import environment
from loopwright.services.homes.log import log_to
from loopwright.services.homes.session import Session


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Session]:
    """Open the home that the settings name, and close it at the end."""
    home = open_home(settings, environment())
    log_to(home.root)
    try:
        yield Session(home=home, settings=settings, env=environment())
    finally:
        await home.store.close()

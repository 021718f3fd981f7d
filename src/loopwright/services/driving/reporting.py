"""Send notices while this process drives plans."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from loopwright.services.homes.session import Session


@asynccontextmanager
async def reporting(at: Session, loop_id: str | None = None) -> AsyncIterator[None]:
    """Send notices and traces for the length of a block, where targets are set.

    `loop_id` is the loop that this process is for.
    """
    async with AsyncExitStack() as stack:
        if at.settings.values.notify:
            # The sender takes a while to load, and most homes send nothing.
            from loopwright.services.notifications.sending import notifying

            await stack.enter_async_context(notifying(at, loop_id))
        if endpoint := at.settings.values.otlp_endpoint:
            # The same.
            from loopwright.services.tracing.sending import tracing

            await stack.enter_async_context(tracing(at, endpoint))
        yield

"""A plan that rests, once its receipt is written."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from loopwright.core.values.states import ENDED_PLAN
from loopwright.engine.views.views import PlanView
from loopwright.services.homes.session import Session
from loopwright.services.views.source_news import view_with_news

_RECEIPT_S: Final = 5.0
"""How long to wait for a receipt that another worker writes."""


async def ended_view(at: Session, plan_id: str) -> PlanView:
    """Return a plan that rests, with the news of its source; wait a moment for the receipt of one that ended."""
    view = await view_with_news(at, plan_id)
    if view.status in ENDED_PLAN:
        with suppress(TimeoutError):
            async with asyncio.timeout(_RECEIPT_S):
                while not receipt_file(view).exists():
                    await asyncio.sleep(0.05)
    return view


def receipt_file(view: PlanView) -> Path:
    """Return where the receipt of a plan is written."""
    return Path(view.path) / ".loopwright" / "receipts" / f"{view.id}.json"

"""A plan together with what its source says beyond it."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from loopwright.adapters import registry
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.sources.later_edits import Ended, ended_plan, source_news
from loopwright.engine.views.views import PlanView, plan_view

if TYPE_CHECKING:  # `status` shows the news of an ended plan without opening a home for work
    from loopwright.services.homes.session import Session

__all__ = ["ended_plan", "view_with_news", "with_news"]


async def view_with_news(at: "Session", plan_id: str) -> PlanView:
    """Return a plan, and, once it ended, what is new in its source."""
    paths = HomePaths(root=at.home.root)
    view, ended = await at.home.store.read(
        lambda tx: (plan_view(tx, plan_id, paths), ended_plan(tx, plan_id))
    )
    return await asyncio.to_thread(with_news, view, ended, ask_program=True)


def with_news(view: PlanView, ended: Ended | None, *, ask_program: bool = False) -> PlanView:
    """Return a plan with what is new in its source."""
    if ended is None or ended.kind not in registry.known_sources():
        return view
    source = registry.source(ended.kind)
    return replace(view, news=source_news(source, ended, ask_program=ask_program))

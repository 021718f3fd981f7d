"""Work on one issue from a terminal: each call takes the next step."""

from dataclasses import dataclass, replace

from loopwright.core.integrations.issues import REQUIRED
from loopwright.core.rows.model import Loop, Plan
from loopwright.engine.rows.moves import need
from loopwright.ports import Tx
from loopwright.services.homes.context import look_settings, needed_place
from loopwright.services.homes.loop_sources import is_home
from loopwright.services.homes.session import Session, session
from loopwright.services.issues.following import Stage, follow
from loopwright.services.issues.taking import Tracker, take, tracker_of
from loopwright.services.runs.preparation import RunRequest

__all__ = ["Due", "Stage", "claim", "due"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The next step for an issue."""

    stage: Stage
    request: RunRequest
    """How its plan is run."""
    tracker: Tracker

    @property
    def is_work(self) -> bool:
        """Return whether there is work for agents."""
        return self.stage in (Stage.WORKING, Stage.SENT_BACK)


async def due(n: int, asked: RunRequest) -> Due:
    """Take an issue, or do the next step for one that was taken; raise `Refused` with why it does not become work.

    `asked` is how the user wants its plan to be run.
    """
    place = needed_place()
    tracker = await tracker_of(look_settings(asked.settings_file), place)
    flags = {**asked.flags, **REQUIRED}
    if is_home():
        async with session() as at:
            loop = (await at.home.store.read(tracker.loops)).get(n)
            if loop is not None:
                stage = await follow(at, tracker, loop)
                request = replace(asked, plan=place.root / loop.source_path, flags=flags)
                return Due(stage=stage, request=request, tracker=tracker)
    request = replace(asked, plan=await take(tracker, n), flags=flags)
    return Due(stage=Stage.WORKING, request=request, tracker=tracker)


async def claim(at: Session, plan_id: str, tracker: Tracker) -> None:
    """Claim the issue of a plan that was submitted just now."""

    def load(tx: Tx) -> Loop:
        plan = need(tx.get(Plan, plan_id), "the plan")
        return need(tx.get(Loop, plan.loop_id), "the loop")

    await follow(at, tracker, await at.home.store.read(load))

"""What each agent and model did over all plans that a caller may see."""

from loopwright.core.rows.model import Plan
from loopwright.core.values.access import Caller
from loopwright.engine.views.agent_record import AgentRecord, TypeRecord, agent_records
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import seen_where

__all__ = ["AgentRecord", "TypeRecord", "records"]


async def records(at: Session, caller: Caller, project_id: str | None = None) -> tuple[AgentRecord, ...]:
    """Return the record of each agent and model: those with most tasks first."""

    def load(tx: Tx) -> tuple[AgentRecord, ...]:
        return agent_records(tx, tx.find(Plan, **seen_where(tx, caller, project_id)))

    return await at.home.store.read(load)

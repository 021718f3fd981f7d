"""Record rounds in the event log of the home: each change of `state.json` once, also after a kill."""

from loopwright.core.orchestrator.history import EVENTS, differences, reading
from loopwright.core.orchestrator.manifest import FOLDER
from loopwright.core.orchestrator.records import ControlState
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Loop
from loopwright.ports import Tx
from loopwright.services.homes.context import actor
from loopwright.services.orchestrator.delegation import Desk


async def record_changes(desk: Desk, state: ControlState) -> None:
    """Append the changes since the newest of these events, which contains the last reading."""
    project = desk.project_id

    def work(tx: Tx) -> None:
        last = tx.events(projects=[project], types=EVENTS, newest=True, limit=1)
        found = differences(last[0].payload["read"] if last else {}, state)
        loops = tx.find(Loop, project_id=project, source_path=FOLDER, deleted_at=None, limit=1)
        for name, about in found:
            tx.append(
                happened(
                    name,
                    actor(),
                    project_id=project,
                    loop=loops[0] if loops else None,
                    **about,
                    read=reading(state),
                )
            )

    await desk.at.home.store.transact("rounds.record", work)

"""Write `loop_registry.json`: every loop with its state, for programs that read files instead of using the API."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from loopwright.config.publish import identified
from loopwright.core.rows.loop_files import LOOP_CONFIG
from loopwright.core.rows.model import Loop, Project
from loopwright.core.values.documents import readable
from loopwright.core.values.states import LoopState
from loopwright.engine.people.served_projects import serves
from loopwright.engine.rows.projects import state_place
from loopwright.engine.rows.world import World
from loopwright.engine.sources.source_heartbeats import BEAT
from loopwright.engine.views.loop_views import LoopPlans, plans_of, registry_entry, view_of
from loopwright.ports import StateFiles, Tx

log = logging.getLogger(__name__)

FILE: Final = "loop_registry.json"
CONFIG: Final = "loop_config.schema.json"
_MOVING: Final = (LoopState.RUNNING, LoopState.PAUSED)


@dataclass(frozen=True, slots=True)
class _Seen:
    """All loops of a home at one moment."""

    now: datetime
    entries: Mapping[str, Mapping[str, Any]]
    folders: Mapping[str, Path]
    """The folders of projects that a worker serves and that exist here, by project id."""


class LoopRegistry:
    """Writes the registry into the home, and each project's part into its state directory."""

    def __init__(self, world: World, files: StateFiles) -> None:
        self._world = world
        self._files = files
        self._known: dict[str, tuple[datetime, Mapping[str, Any]]] = {}
        """Entries of loops that do not move, by id, with the time of their last change."""

    async def write(self, *, ends: bool = False) -> None:
        """Write all of it; `ends` is whether no worker drives anything any more."""
        seen = await self._world.store.read(lambda tx: self._load(tx, ends=ends))
        until = None if ends else seen.now + 2 * BEAT
        try:
            # With many loops it takes as long as several requests.
            await self._files.beside(lambda: self._put(seen, until))
        except OSError as trouble:
            # The rows are the truth, and the next heartbeat tries again.
            log.warning("the registry of loops was not written", extra={"why": str(trouble)})

    def _put(self, seen: _Seen, until: datetime | None) -> None:
        home, schema = self._world.paths.root, readable(identified("loop_config", LOOP_CONFIG))
        self._files.put_private(home / FILE, _text(seen.now, until, seen.entries.items()))
        self._files.put_private(home / CONFIG, schema)
        for project_id, folder in seen.folders.items():
            mine = [(key, one) for key, one in seen.entries.items() if one["project_id"] == project_id]
            self._files.put_top(folder, FILE, _text(seen.now, until, mine))
            self._files.put_top(folder, CONFIG, schema)

    def _load(self, tx: Tx, *, ends: bool) -> _Seen:
        loops = [one for one in tx.find(Loop, order_by=("id",)) if one.deleted_at is None]
        projects = {one.id: one for one in tx.find(Project)}
        served = {key for key in projects if not ends and serves(tx, self._world, key)}
        here = {one.project_id for one in loops} if ends else {one.project_id for one in loops} & served
        known = plans_of(tx, (one for one in loops if not self._is_written(one)))
        entries = {one.id: self._entry(tx, one, known, driven=one.project_id in served) for one in loops}
        self._known = {key: one for key, one in self._known.items() if key in entries}
        folders = {key: state_place(projects[key]) for key in sorted(here) if key in projects}
        return _Seen(
            tx.now(), entries, {key: one for key, one in folders.items() if Path(projects[key].path).is_dir()}
        )

    def _is_written(self, loop: Loop) -> bool:
        """Return whether the known entry of a loop is current."""
        return _is_at_rest(loop) and loop.id in self._known and self._known[loop.id][0] == loop.updated_at

    def _entry(self, tx: Tx, loop: Loop, known: LoopPlans, *, driven: bool) -> Mapping[str, Any]:
        if self._is_written(loop):
            return self._known[loop.id][1]
        alive = loop.state in _MOVING and driven
        view = view_of(
            tx,
            loop,
            known,
            pid=self._world.me.pid if alive and loop.state is LoopState.RUNNING else None,
            heartbeat=tx.now() if alive else loop.updated_at if loop.plan_id else None,
        )
        entry = registry_entry(view)
        if _is_at_rest(loop):
            self._known[loop.id] = (loop.updated_at, entry)
        return entry


def _is_at_rest(loop: Loop) -> bool:
    return loop.state not in _MOVING and loop.start is None


def _text(now: datetime, until: datetime | None, entries: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    return readable(
        {
            "updated_at": _moment(now),
            "next_update_before": None if until is None else _moment(until),
            "loops": dict(entries),
        }
    )


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")

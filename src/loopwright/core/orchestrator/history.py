"""Which events the log gets about rounds: the difference between two readings of `state.json`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from loopwright.core.orchestrator.records import ControlState, RoadmapUpdate

EVENTS: Final = (
    "controller_moved",
    "controller_blocked",
    "round_began",
    "round_moved",
    "round_troubled",
    "round_merged",
    "round_dropped",
    "roadmap_update_moved",
    "roadmap_revised",
)
Told = tuple[str, dict[str, Any]]
"""The type and the data of an event."""


def reading(state: ControlState) -> dict[str, Any]:
    """Return the part of a state that events are made from, as it is stored with the newest event."""
    update = state.roadmap_update
    return {
        "controller": state.controller_stage.value,
        "revision": state.roadmap_revision,
        "error": (state.resume_errors or {}).get("controller", ""),
        "update": _words(update) if update is not None else "",
        "rounds": {one.round_id: [one.stage.value, one.resume_error or ""] for one in state.active_rounds},
    }


def _words(update: RoadmapUpdate) -> str:
    return f"{update.source_round_id} {update.status.value} {update.attempt}"


def differences(before: Mapping[str, Any], state: ControlState) -> tuple[Told, ...]:
    """Return what happened since an earlier reading, in order."""
    now = reading(state)
    return (*_of_rounds(before, now, state), *_of_the_whole(before, now, state))


def _of_rounds(before: Mapping[str, Any], now: Mapping[str, Any], state: ControlState) -> Iterator[Told]:
    known: Mapping[str, list[str]] = before.get("rounds", {})
    update = state.roadmap_update
    asked = update.source_round_id if update is not None and update.trigger == "planner-request" else None
    for round_id in known:
        if round_id not in now["rounds"]:
            yield ("round_dropped" if round_id == asked else "round_merged"), {"round": round_id}
    for round_id, (stage, error) in now["rounds"].items():
        was, old_error = known.get(round_id, ["", ""])
        if not was:
            yield "round_began", {"round": round_id, "stage": stage}
        elif was != stage:
            yield "round_moved", {"round": round_id, "from": was, "stage": stage}
        if error and error != old_error:
            yield "round_troubled", {"round": round_id, "stage": stage, "reason": error}


def _of_the_whole(before: Mapping[str, Any], now: Mapping[str, Any], state: ControlState) -> Iterator[Told]:
    if before and before["revision"] != now["revision"]:
        yield "roadmap_revised", {"from": before["revision"], "revision": now["revision"]}
    update = state.roadmap_update
    if update is not None and before.get("update") != now["update"]:
        about = {"round": update.source_round_id, "status": update.status.value, "try": update.attempt}
        reason = update.last_rejection_summary or update.resume_error
        yield "roadmap_update_moved", about | ({"reason": reason} if reason else {})
    if before.get("controller") != now["controller"]:
        yield "controller_moved", {"from": before.get("controller", ""), "stage": now["controller"]}
    if now["error"] and before.get("error") != now["error"]:
        yield "controller_blocked", {"reason": now["error"]}

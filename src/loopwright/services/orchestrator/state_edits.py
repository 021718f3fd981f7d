"""Changes of `state.json`, each for `ControllerFiles.edit_state`; a stage moves only along its table."""

from collections.abc import Callable

from loopwright.adapters.sources.text.json_edits import JsonEdits
from loopwright.adapters.sources.text.located import Located, inner, plain, tables, words
from loopwright.core.orchestrator.records import LiveRound, RetryRecord, RoadmapUpdate
from loopwright.core.values.documents import plain as as_json
from loopwright.core.values.errors import IllegalTransition
from loopwright.core.values.round_states import CONTROLLER, ROUND, ControllerStage, RoundStage
from loopwright.core.values.states import step

Change = Callable[[JsonEdits], None]


def both(*changes: Change) -> Change:
    """Return one change that makes all of these."""

    def change(edits: JsonEdits) -> None:
        for one in changes:
            one(edits)

    return change


def controller_to(stage: ControllerStage) -> Change:
    """Move the controller."""

    def change(edits: JsonEdits) -> None:
        now = ControllerStage(words(edits.document, "controller_stage"))
        if now is not stage:
            step("controller", CONTROLLER, "orchestrator", now, stage)
            edits.put(edits.document, "controller_stage", stage.value)

    return change


def round_to(round_id: str, stage: RoundStage) -> Change:
    """Move a round, and clear its error."""

    def change(edits: JsonEdits) -> None:
        live = _round(edits, round_id)
        now = RoundStage(words(live, "stage"))
        if now is not stage:
            step("round", ROUND, round_id, now, stage)
            edits.put(live, "stage", stage.value)
        edits.put(live, "resume_error", None)

    return change


def round_error(round_id: str, error: str | None) -> Change:
    """Record what keeps a round from continuing, or clear it."""
    return lambda edits: edits.put(_round(edits, round_id), "resume_error", error)


def add_round(live: LiveRound) -> Change:
    """Add a live round."""

    def change(edits: JsonEdits) -> None:
        rounds = inner(edits.document, "active_rounds")
        if rounds is None:
            edits.put(edits.document, "active_rounds", [as_json(live)])
        else:
            edits.append(rounds, as_json(live))

    return change


def drop_round(round_id: str) -> Change:
    """Remove a live round; the others are unchanged."""

    def change(edits: JsonEdits) -> None:
        left = [one for one in plain(edits.document, "active_rounds", []) if one.get("round_id") != round_id]
        edits.put(edits.document, "active_rounds", left)

    return change


def controller_error(error: str | None) -> Change:
    """Record what stops the controller, or clear it."""

    def change(edits: JsonEdits) -> None:
        known = plain(edits.document, "resume_errors", {})
        errors = dict(known) if isinstance(known, dict) else {}
        errors.pop("controller", None)
        edits.put(edits.document, "resume_errors", errors | ({"controller": error} if error else {}))

    return change


def all_errors_cleared(edits: JsonEdits) -> None:
    """Clear the controller's errors: real problems are found again."""
    edits.put(edits.document, "resume_errors", {})


def retry(record: RetryRecord | None) -> Change:
    """Write the retries."""
    return lambda edits: edits.put(edits.document, "retry", as_json(record) if record else None)


def update(record: RoadmapUpdate | None) -> Change:
    """Write the roadmap update, or clear it."""
    return lambda edits: edits.put(edits.document, "roadmap_update", as_json(record) if record else None)


def revision(name: str, folder: str) -> Change:
    """Activate another revision of the roadmap."""

    def change(edits: JsonEdits) -> None:
        edits.put(edits.document, "roadmap_revision", name)
        edits.put(edits.document, "roadmap_dir", folder)

    return change


def _round(edits: JsonEdits, round_id: str) -> Located:
    found = [
        one for one in tables(inner(edits.document, "active_rounds")) if words(one, "round_id") == round_id
    ]
    if not found:
        raise IllegalTransition("round", round_id, "not live", "changed")
    return found[0]

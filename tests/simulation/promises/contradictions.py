"""The promises about work that contradicts existing checks: what lands of it is decided, once, and on the record."""

from collections.abc import Mapping
from typing import Any

from tests.simulation.machines import NEW
from tests.simulation.promises.invariants import Problems, Watch, on_commit, on_effect
from tests.simulation.rows import Change
from tests.simulation.target import Target

from loopwright.core.gates.contradictions import ACCEPT, KIND
from loopwright.core.rows.model import Attempt, Review
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.states import QuestionState, ReviewState


@on_effect("landed")
def what_contradicts_a_check_lands_only_by_decision(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """Behaviour that an old check forbids lands only if a person or a reviewer has allowed it for this task."""
    target: Target = watch.universe.target
    old, new = target.files(about["old"]), target.files(about["new"])
    if not any(path.endswith(NEW) for path in new.keys() - old.keys()):
        return
    for attempt in watch.all(Attempt).values():
        if attempt.candidate_sha != about["new"]:
            continue
        facts = attempt.gate_files
        if facts is None or not facts.contradicted or not all(facts.allowed_by):
            yield f"{attempt.id} lands what contradicts a check, and its record does not say who allowed it"
        elif not (_accepted(watch, attempt) or _approved(watch, attempt)):
            yield f"{attempt.id} lands what contradicts a check, and neither a person nor a reviewer allowed it"


@on_commit(Question)
def the_same_decision_is_asked_once(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """The same change and the same checks of a task are one question, however often the work is judged."""
    for change in changes:
        if change.kind is not Question or change.before is not None or change.after.kind != KIND:
            continue
        asked: Question = change.after
        for other in watch.all(Question).values():
            same = (other.kind, other.task_id, other.plan_id, other.key) == (
                *(KIND, asked.task_id),
                *(asked.plan_id, asked.key),
            )
            settled = other.state in (QuestionState.OPEN, QuestionState.ANSWERED)
            if same and other.id != asked.id and settled:
                yield f"{name} asks {asked.id}, but {other.id} is {other.state.value}"


def _accepted(watch: Watch, attempt: Attempt) -> bool:
    return any(
        one.task_id == attempt.task_id and one.kind == KIND and one.answer == ACCEPT
        for one in watch.all(Question).values()
    )


def _approved(watch: Watch, attempt: Attempt) -> bool:
    return any(
        one.task_id == attempt.task_id and one.contradicted and one.state is ReviewState.CLEAR
        for one in watch.all(Review).values()
    )

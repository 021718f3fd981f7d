"""The promises about reviews: what lands only reviewed, and what is never asked twice."""

from collections.abc import Mapping
from typing import Any, Final

from tests.simulation.promises.invariants import Problems, Watch, moves, on_commit, on_effect
from tests.simulation.rows import Change
from tests.simulation.target import Target, patch_between

from loopwright.core.rows.model import Attempt, Plan, Review, Role, Run
from loopwright.core.values.states import AttemptState, ReviewState, RunState

_OVER: Final = (ReviewState.CLEAR, ReviewState.BLOCKING, ReviewState.UNCLEAR)


@on_effect("landed")
def what_needs_a_review_lands_only_reviewed(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """Where every change is reviewed, what lands is exactly what a review let through."""
    target: Target = watch.universe.target
    attempts = [one for one in watch.all(Attempt).values() if one.candidate_sha == about["new"]]
    for attempt in attempts:
        if watch.all(Plan)[attempt.plan_id].policy.review.mode != "always":
            continue
        review = watch.all(Review).get(attempt.review_id or "")
        patch = patch_between(target.files(about["old"]), target.files(about["new"]))
        if review is None or review.task_id != attempt.task_id:
            yield f"{attempt.id} lands without a review"
        elif review.state not in (ReviewState.CLEAR, ReviewState.UNCLEAR):
            yield f"{attempt.id} lands although {review.id} is {review.state.value}"
        elif review.patch_sha256 != patch.sha256:
            yield f"{attempt.id} lands another change than {review.id} looked at"


@on_commit(Review)
def no_change_is_reviewed_twice(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A change that has been reviewed is not reviewed again."""
    for change in changes:
        if change.kind is not Review or change.before is not None:
            continue
        asked: Review = change.after
        for other in watch.all(Review).values():
            same = (other.task_id, other.patch_sha256) == (asked.task_id, asked.patch_sha256)
            # One that was to decide about checks and came to no answer leaves the change to be reviewed.
            same = same and not (
                other.contradicted != asked.contradicted and other.state is ReviewState.UNCLEAR
            )
            if same and other.id != asked.id and other.state in _OVER:
                yield f"{name} asks {asked.id}, but {other.id} is {other.state.value}"


@on_commit(Run)
def no_author_reviews_its_own_work(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A reviewer never continues the conversation of an author."""
    for change in moves(changes, Run, RunState.RUNNING):
        run: Run = change.after
        if run.role is Role.REVIEWER and run.session_ref is not None:
            authors = [
                one
                for one in watch.all(Run).values()
                if one.role is Role.IMPLEMENTER and one.session_ref == run.session_ref
            ]
            if authors:
                yield f"{name} lets {run.id} review in the conversation of {authors[0].id}"


@on_commit(Attempt)
def findings_send_work_back_only_so_often(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """No attempt is sent back to mend more often than its plan allows."""
    for change in moves(changes, Attempt, AttemptState.WORKING):
        attempt: Attempt = change.after
        most = watch.all(Plan)[attempt.plan_id].policy.review.max_turns
        if attempt.fix_turns > most:
            yield f"{name} sends {attempt.id} back for the {attempt.fix_turns}th time, of {most}"

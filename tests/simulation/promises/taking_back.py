"""The promises about what people take back."""

from collections.abc import Mapping
from typing import Any

from tests.simulation.promises.invariants import Problems, Watch, at_end, on_effect, plan_of_branch
from tests.simulation.target import patch_between

from loopwright.core.rows.model import Attempt, Command, CommandState, Plan, VerdictRecord
from loopwright.core.values.findings import VerdictStatus
from loopwright.engine.people.handover import HUMAN


@on_effect("landed")
def what_stays_was_judged(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """Work is taken back only if what stays is good: the branch had that tree before, or its gate passed on it."""
    target = watch.universe.target
    commit = target.commits[about["new"]]
    if not commit.takes_out:
        return
    plan = plan_of_branch(watch, about["branch"])
    known = {target.commits[plan.base_sha].tree}
    known |= {one.tree for one in target.line(about["old"], plan.base_sha) if one.trailers is not None}
    passed = [
        one
        for one in watch.all(VerdictRecord).values()
        if one.plan_id == plan.id and one.tree == commit.tree and one.verdict.status is VerdictStatus.PASSED
    ]
    if commit.tree not in known and not passed:
        yield f"{commit.sha[:8]} takes work back, and nothing judged what stays"


@on_effect("landed")
def what_was_rejected_does_not_come_back(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """The very change that a person rejected with a word does not land again, unless a person hands it in."""
    target = watch.universe.target
    commit = target.commits[about["new"]]
    if commit.trailers is None:
        return
    by_hand = any(
        one.agent == HUMAN for one in watch.all(Attempt).values() if one.candidate_sha == commit.sha
    )
    plan = plan_of_branch(watch, about["branch"])
    for one in target.line(about["old"], plan.base_sha):
        asked = watch.all(Command).get(one.command)
        if asked is None or asked.verb != "reject" or asked.target != commit.trailers.task or by_hand:
            continue
        for landing in one.takes_out:
            gone = target.commits[landing]
            if gone.trailers is not None and gone.trailers.task == asked.target:
                was = patch_between(target.files(gone.parents[0]), target.files(landing))
                now = patch_between(target.files(about["old"]), target.files(commit.sha))
                if was.sha256 == now.sha256:
                    yield f"{commit.sha[:8]} is what {asked.id} rejected as {landing[:8]}"


@at_end
def what_was_taken_back_is_told(watch: Watch) -> Problems:
    """Each commit that takes work back comes from one command of a person, which names it."""
    told = {
        event.payload["command"]: event.payload["commit"]
        for event in watch.universe.database.read_sync(
            lambda tx: tx.events(types=("plan_rolled_back",), limit=10**9)
        )
    }
    found: dict[str, str] = {}
    target = watch.universe.target
    for plan in watch.all(Plan).values():
        for commit in target.line(target.refs.get(plan.branch, plan.base_sha), plan.base_sha):
            if commit.takes_out and commit.command in found:
                yield f"{commit.command} took work back twice"
            if commit.takes_out:
                found[commit.command] = commit.sha
    for command, sha in found.items():
        if watch.all(Command)[command].state is not CommandState.APPLIED:
            yield f"{sha[:8]} took work back, but {command} was not carried out"
    if told != found:
        yield f"taken back was {found}, told was {told}"

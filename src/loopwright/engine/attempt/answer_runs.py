"""Runs that answer and change nothing: what they said is written down by the harness, and judged like any work."""

from pathlib import Path

from loopwright.core.replies.answers import answer_in
from loopwright.core.rows.model import Attempt
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Answering
from loopwright.engine.attempt.leg_rows import Rows
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.world import World
from loopwright.ports import AgentResult


def is_answer(result: AgentResult) -> bool:
    """Say whether a run came to something that a check can judge, and be it that it does not fit its schema."""
    return result.claimed or result.failure is Failure.AGENT_ERROR


async def put_answer(world: World, rows: Rows, answering: Answering, result: AgentResult) -> None:
    """Make the workspace what it was before the agent came, and put its answer there: nothing else of it counts."""
    repository, attempt = world.repository(rows.project), rows.attempt
    path, base = Path(need(attempt.workspace, "a workspace")), need(attempt.base_sha, "a base")
    if repository.has_workspace(path):
        await repository.remove_workspace(path)
    await repository.make_workspace(path, base, marker=attempt.id)
    place = path / rows.project.subfolder / answering.file
    # What lies there may be a link.
    place.unlink(missing_ok=True)
    said = result.last_words or result.summary or result.detail
    place.write_text(answer_in(answering, result.structured, said), encoding="utf-8")


async def last_answer(world: World, rows: Rows) -> str:
    """Return what the attempt before this one answered; empty when it did not come to that."""
    answering = need(rows.plan.policy.answer, "what is to be answered")
    earlier = await world.store.read(
        lambda tx: tx.find(Attempt, task_id=rows.task.id, order_by=("-n",), n=rows.attempt.n - 1)
    )
    tip = earlier[0].tip_sha if earlier else None
    if tip is None:
        return ""
    file = f"{rows.project.subfolder}/{answering.file}".lstrip("/")
    return await world.repository(rows.project).file_at(tip, file) or ""

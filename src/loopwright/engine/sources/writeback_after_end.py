"""What the branch of a plan that is over does not tell of it: what was verified stays as it is."""

from pathlib import Path

from loopwright.core.values.errors import BadPlan, NotFound
from loopwright.engine.rows.source_marks import SETTLED
from loopwright.engine.rows.writeback_debts import Untold
from loopwright.engine.sources.writeback_files import Tracked, folder_of, in_checkout, inside, untracked
from loopwright.ports import Files, Mark, Progress, Repository, Source


async def left_at_end(
    repository: Repository, source: Source, tracked: Tracked, progress: Progress
) -> Untold | None:
    """Return what landed and neither the branch nor the user's own copy calls done; None where one of them does."""
    landed = [key for key, item in progress.items.items() if item.mark is Mark.DONE and item.commit]
    if not landed:
        return None
    theirs = in_checkout(source, tracked)
    on_branch = await _on_branch(repository, tracked, theirs)
    left = _left(source, tracked, on_branch, landed) if on_branch else None
    # A person may have written it into their own copy, as they are asked to.
    if left is None or _left(source, tracked, theirs, landed) is None:
        return None
    if not (Path(tracked.project.path) / tracked.loop.source_path).exists():
        return Untold(reason=f"{tracked.loop.source_path} is not there any more", items=left.items, gone=True)
    return left


async def _on_branch(repository: Repository, tracked: Tracked, theirs: Files) -> Files:
    """Return the source as its plan left it; nothing where that is gone."""
    plan, folder = tracked.plan, folder_of(tracked.plan, tracked.loop)
    try:
        sha = plan.result_sha or await repository.tip(plan.branch)
    except NotFound:
        return {}
    committed = await repository.files_at(sha, plan.books)
    return {**untracked(plan, folder, theirs), **inside(committed, folder)} if committed else {}


def _left(source: Source, tracked: Tracked, files: Files, landed: list[str]) -> Untold | None:
    try:
        tasks = source.parse(files, tracked.loop.source_path).tasks
    except BadPlan as broken:
        return Untold(reason=str(broken), items=tuple(landed))
    still_open = {task.key for task in tasks if task.mark not in SETTLED}
    items = tuple(key for key in landed if key in still_open)
    return Untold(reason="its copy on the plan branch does not say so", items=items) if items else None

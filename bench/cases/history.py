"""Whether the git work of a task costs the same in a repository with much history and many attempts."""

import asyncio
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.cases.growth import GROUP
from bench.measure import Measurement, Setting, Target
from bench.yard import Yard
from loopwright.adapters.git import GitRepository
from loopwright.ports import Trailers

CASE = "history"
LIMIT = 1.25
BRANCH = "loopwright/plan_bench/main"


def case(setting: Setting) -> Iterator[Measurement]:
    """Do the git work of tasks in repositories of growing history, in turn."""
    sizes = (100, 1000) if setting.quick else (100, 1000, 10_000)
    yards = {size: _made(setting.folder / f"history-{size}", size) for size in sizes}
    took: dict[int, list[float]] = {size: [] for size in sizes}
    for n in range(setting.pick(10, 3)):
        for size in sizes if n % 2 == 0 else reversed(sizes):
            took[size].append(asyncio.run(_task(yards[size], n)))
    for size in sizes:
        yield Measurement(
            case=CASE,
            name=f"git work of a task, {size} commits of history and {size} attempts kept",
            unit="ms",
            values=tuple(took[size]),
            against=f"{sizes[0]} commits",
            baseline=tuple(took[sizes[0]]),
            target=Target(limit=LIMIT, of="ratio") if size == sizes[-1] else None,
            group="" if size == sizes[0] else GROUP,
            at=f"git work {size}",
        )


def _made(root: Path, size: int) -> Yard:
    yard = Yard(root=root, jobs=()).make()
    base = yard.git("rev-parse", "HEAD")
    lines = []
    for n in range(size):
        # The parent of the next is the one before it; each is also kept as an attempt would be.
        start = f"from {base}\n" if n == 0 else ""
        text = f"commit {n}\n"
        lines.append(
            f"commit refs/heads/{BRANCH}\ncommitter B <b@example.invalid> {1_700_000_000 + n} +0000\n"
            f"data {len(text)}\n{text}{start}M 100644 inline log-{n % 50}\ndata {len(text)}\n{text}\n"
            f"reset refs/loopwright/attempts/plan_bench/task_{n}/1\nfrom refs/heads/{BRANCH}\n\n"
        )
    subprocess.run(
        ["git", "fast-import", "--quiet"],
        input="".join(lines).encode(),
        cwd=yard.repository,
        env=yard.env(),
        check=True,
    )
    return yard


async def _task(yard: Yard, n: int) -> float:
    """Do what the pipeline does with git for one task."""
    repository = GitRepository(yard.repository, project_id="prj_bench", home=yard.home)
    await repository.tip(BRANCH)  # the first call looks at the repository once
    path, tree = yard.home / "workspaces" / f"att_{n}", yard.home / "trees" / f"run_{n}"
    who = Trailers(plan="plan_bench", task=f"task_new_{n}", attempt=f"att_{n}", run=f"run_{n}")
    at = datetime.now(UTC)
    began = time.monotonic()
    base = await repository.tip(BRANCH)
    await repository.make_workspace(path, base, marker=f"att_{n}")
    before = await repository.tripwire()
    (path / f"new-{n}").write_text("done\n")
    repository.stray(before, await repository.tripwire())
    saved = await repository.snapshot(
        path,
        base_sha=base,
        ref=f"refs/loopwright/attempts/plan_bench/task_new_{n}/1",
        subject="work",
        trailers=who,
        at=at,
    )
    tip = await repository.tip(BRANCH)
    await repository.landed(tip, since=base, task_id=who.task, among=(saved.sha,), reverts=())
    candidate = await repository.candidate(
        tip=tip, attempt_sha=saved.sha, subject="work", trailers=who, at=at
    )
    await repository.checkout(tree, candidate.sha)
    await repository.remove_workspace(tree)
    if not await repository.advance(BRANCH, new=candidate.sha, old=tip):
        raise RuntimeError("the branch moved")
    await repository.tree_of(candidate.sha)
    await repository.proven(saved.sha, await repository.tip(BRANCH))
    await repository.remove_workspace(path)
    return (time.monotonic() - began) * 1000

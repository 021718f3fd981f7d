"""Whatever a person does to their copy of a plan while the branch's copy is told, both are in the result."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from tests.doubles import Home, planned
from tests.integration.git.world import World
from tests.unit.sources.plan_md.test_plan_md_properties import AT, readable, theirs, told

from loopwright.adapters.git import GitRepository
from loopwright.adapters.sources.plan_md.plan_md import PlanMdSource
from loopwright.adapters.sources.text.writing import put_files
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.values.states import PlanState
from loopwright.engine.sources.status_writeback import tell
from loopwright.engine.sources.writeback_files import Tracked, files_on
from loopwright.ports import ItemProgress, Mark, MergedFile, Progress, Repository

SOURCE = PlanMdSource()
BASE = """\
# Work

Say it all.

## Phase 1

- [ ] Task 1: one
  - Acceptance: `test -s 1`
- [ ] Task 2: two
- [ ] Task 3: three
  Files: a.py

## Phase 2

Words.

- [ ] Task 4: four
"""
quick = settings(
    max_examples=40,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
items = st.builds(
    ItemProgress,
    mark=st.sampled_from(Mark),
    commit=st.just("abc1234def56789"),
    summary=st.sampled_from(["", "It is done"]),
    reason=st.sampled_from(["", "no key"]),
)
keys = ("1", "2", "3", "4")
progresses = st.builds(
    Progress,
    plan_id=st.just("plan_1"),
    at=st.just(AT),
    items=st.fixed_dictionaries(dict.fromkeys(keys, items)),
    completed_at=st.sampled_from([None, AT]),
)
Edit = tuple[int, bool, str]
"""Where, whether the line that is there goes, and what is written there."""
edits = st.tuples(
    st.integers(0, BASE.count("\n") - 1),
    st.booleans(),
    st.sampled_from(
        ["- [ ] Task 9: nine", "A remark.", "## Phase 9\n\n- [ ] Task 8: eight\n", "  - Type: docs", ""]
    ),
)


@dataclass(frozen=True)
class Copies:
    """Files by the commit that has them; what two sides did to one is merged by git itself."""

    git: GitRepository
    commits: Mapping[str, bytes]
    seen: Mapping[str, bytes]

    async def files_at(self, sha: str, paths: Sequence[str]) -> Mapping[str, bytes]:
        return dict.fromkeys(paths, self.commits[sha])

    async def copies(self, sha: str, *, since: str) -> Mapping[str, bytes]:
        return self.seen

    async def merged_file(self, base: bytes, ours: bytes, theirs: bytes) -> MergedFile:
        return await self.git.merged_file(base, ours, theirs)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def edited(content: bytes, edit: Edit) -> bytes:
    at, gone, new = edit
    lines = content.decode().split("\n")
    at = min(at, len(lines) - 1)
    return "\n".join([*lines[:at], *([new] if new else []), *lines[at + gone :]]).encode()


def tracked() -> Tracked:
    home = Home()
    plan = home.submit(planned("a"))
    home.store.transact_sync(
        "books", lambda tx: tx.update(Plan, plan.id, books=("plan.md",), base_sha="base")
    )
    home.store.transact_sync("path", lambda tx: tx.update(Loop, home.loop().id, source_path="plan.md"))
    return Tracked(home.project(), home.plan(), home.loop())


def first(mark: Mark) -> Progress:
    marks = {**dict.fromkeys(keys, Mark.OPEN), "1": mark}
    return Progress(
        plan_id="plan_1", at=AT, items={key: ItemProgress(mark=one) for key, one in marks.items()}
    )


@pytest.mark.trap("lost edit")
@quick
@given(steps=st.lists(st.tuples(edits, progresses), min_size=1, max_size=3))
@example(steps=[((7, False, "A remark."), first(Mark.DONE))])
@example(steps=[((9, False, "A remark."), first(Mark.DONE)), ((9, True, "Another."), first(Mark.DONE))])
@example(steps=[((3, False, "A remark."), first(Mark.OPEN)), ((3, True, ""), first(Mark.DONE))])
def test_an_edited_copy_and_a_told_branch_are_both_in_the_result(
    world: World, runner: asyncio.Runner, steps: list[tuple[Edit, Progress]]
) -> None:
    base = branch = copy = BASE.encode()
    seen: Mapping[str, bytes] = {}
    about = tracked()
    for edit, progress in steps:
        new = edited(copy, edit)
        copy = new if readable(new) else copy
        copies = cast("Repository", Copies(world.repository, {"base": base, "tip": branch}, seen))
        found = runner.run(files_on(copies, SOURCE, about, "tip", {"plan.md": copy}, progress))
        # Nobody else commits there, so that of what collides the person's own last word counts.
        branch = told({**found.current, **found.theirs}["plan.md"], progress)
        seen = {**found.seen, **found.copies}
        assert theirs(branch)[: len(theirs(copy))] == theirs(copy), "theirs, all of it and in its order"
        marks = {task.key: task.mark for task in SOURCE.parse({"plan.md": branch}, "plan.md").tasks}
        present = {task.key: task.mark for task in SOURCE.parse({"plan.md": copy}, "plan.md").tasks}
        assert marks == {
            key: progress.items[key].mark if key in keys else mark for key, mark in present.items()
        }
        assert branch == told(copy, progress), "as if it had been told there"


async def test_a_plan_that_was_cancelled_before_it_began_is_told_though_there_is_no_branch(
    world: World,
) -> None:
    track = world.user / "track"
    track.mkdir()
    (track / "plan.md").write_text(BASE)
    world.sh("git", "add", "track/plan.md")
    world.sh("git", "commit", "-qm", "a track")
    (track / "metadata.json").write_text('{"version": 3, "track_id": "t"}\n')
    home = Home()
    work = SOURCE.parse(SOURCE.files(track), "track")
    plan = home.submit(work=work)
    base = world.sh("git", "rev-parse", "HEAD")
    books = ("track/plan.md",)
    home.store.transact_sync("plan", lambda tx: tx.update(Plan, plan.id, books=books, base_sha=base))
    home.store.transact_sync("loop", lambda tx: tx.update(Loop, home.loop().id, source_path="track"))
    home.store.transact_sync("at", lambda tx: tx.update(Project, home.project().id, path=str(world.user)))
    real = replace(
        home.world,
        repository=lambda _project: world.repository,
        source=lambda _kind: SOURCE,
        put_files=put_files,
    )
    await home.command("cancel", plan.id)
    assert (home.plan().status, home.plan().executed_at) == (PlanState.CANCELLED, None)
    assert await tell(real, plan.id) is None

"""What lands with a task on the plan's branch: how its source stands, and the end of its phase."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from tests.doubles import Home, planned
from tests.wording_plugin import Wording

from loopwright.adapters.sources.plan_md.plan_md import PlanMdSource
from loopwright.core.rows.model import Leg, Project
from loopwright.core.values.states import AttemptState
from loopwright.engine.sources.status_writeback import booked
from loopwright.ports import Candidate

PLAN = b"""\
## One
- [ ] Task 1.1: Do 1.1
- [ ] Task 1.2: Do 1.2
## Two
- [ ] Task 2.1: Do 2.1 <!-- deps: 1.1 -->
- [ ] Task 2.2: Do 2.2 <!-- deps: none -->
"""


class Commits:
    """A branch of which only one file counts: what stands in it at each commit, and what each is called."""

    def __init__(self) -> None:
        self.files = {"": PLAN}
        self.subjects: list[str] = []

    async def files_at(self, sha: str, paths: Sequence[str]) -> Mapping[str, bytes]:
        """Return the plan as it is on a commit; a candidate stands on the last one."""
        return dict.fromkeys(paths, self.files.get(sha, list(self.files.values())[-1]))

    async def booked(
        self,
        sha: str,
        files: Mapping[str, bytes],
        *,
        subject: str,
        plan_id: str,
        at: datetime,
        copies: Mapping[str, bytes],
    ) -> str:
        """Make a commit on top of another."""
        self.files[f"{len(self.subjects)}"] = files["plan.md"]
        self.subjects.append(subject)
        return f"{len(self.subjects) - 1}"


async def test_a_phase_is_finished_with_its_last_task_and_not_while_another_of_it_is_at_work(
    wording: Wording,
) -> None:
    """The second lands on top of the first while the row of the first does not say so yet."""
    home, commits = await Home().launch(), Commits()
    world = replace(home.world, source=lambda _: PlanMdSource())
    tasks = (planned("1.1", phase="One"), planned("1.2", phase="One"))
    more = (planned("2.1", "1.1", phase="Two"), planned("2.2", phase="Two"))
    home.submit(*tasks, *more, source_kind="plan_md", source_path="plan.md", books=("plan.md",))
    legs = await home.turn()
    (project,) = home.store.read_sync(lambda tx: tx.find(Project))

    async def book(key: str, letter: str) -> None:
        made = Candidate(parent="", sha=letter * 40, tree="", empty=False)
        await booked(world, commits, project, home.plan(), home.task(key), home.attempt(key), made)  # type: ignore[arg-type]

    def leg_of(key: str) -> Leg:
        return next(leg for leg in legs if leg.subject == home.attempt(key).id)

    await book("1.1", "a")
    home.hand.land(leg_of("1.1"))
    home.clock.advance(60)
    legs += await home.turn()
    for key in ("1.2", "2.1"):
        home.hand.until(leg_of(key), AttemptState.LANDING)
    await book("1.2", "b")
    await book("2.1", "c")
    wording(commits.subjects)
    home.hand.until(leg_of("2.2"), AttemptState.LANDING)
    await book("2.2", "d")
    wording(commits.subjects[4:])
    last = list(commits.files.values())[-1].decode()
    first = (home.task("1.1").landed_sha or "")[:12]
    assert [line for line in last.splitlines() if "finished" in line] == [
        f"<!-- finished: {first}..{'b' * 12} --> <!-- loopwright -->",
        f"<!-- finished: {'c' * 12}..{'d' * 12} --> <!-- loopwright -->",
    ], "what is about to land comes behind what has"

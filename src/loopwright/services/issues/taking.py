"""Take an issue: check who set its label, and write its current text into a plan file."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.home.statefiles import ProjectStateFiles
from loopwright.app import issues
from loopwright.config.resolve import Settings
from loopwright.core.integrations.issues import Words, counting, file_name, number_in, plan_of_issue, why_not
from loopwright.core.rows.model import Loop, Project
from loopwright.core.values.errors import Refused
from loopwright.ports import Issue, Issues, Remark, Tx
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import Place, glance_at

FOLDER: Final = "loops"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracker:
    """The issues of a project, and the label that makes work of them."""

    issues: Issues
    label: str
    place: Place
    state_folder: str

    def number(self, loop: Loop) -> int | None:
        """Return the number of a loop's issue; None if the loop works on something else."""
        return number_in(Path(loop.source_path).name, self.issues.name)

    def loops(self, tx: Tx) -> dict[int, Loop]:
        """Return the loops over issues of this project, by the numbers of these."""
        projects = tx.find(Project, path=str(self.place.root), subfolder=self.place.subfolder)
        known = tx.find(Loop, project_id=[one.id for one in projects], deleted_at=None) if projects else []
        return {n: one for one in known if (n := self.number(one)) is not None}


async def tracker_of(settings: Settings, place: Place) -> Tracker:
    """Return the issues of the project's remote; raise `Refused` if a setting is missing."""
    wanted = settings.values.forge
    if not wanted.issues:
        raise Refused(
            "no label is set that turns issues into work",
            code="issues_off",
            hint='name one in loopwright.toml: [forge] issues = "loopwright"',
        )
    with glance_at(place.root) as repository:
        address = await (await repository.ends()).remote(wanted.remote)
    if address is None:
        raise Refused(
            f"there is no git remote {wanted.remote!r}, so there are no issues",
            code="no_remote",
            hint="add it with `git remote add`, or set forge.remote to the one that you mean",
        )
    return Tracker(
        issues=issues(settings, environment(), address),
        label=wanted.issues,
        place=place,
        state_folder=settings.values.state_folder,
    )


async def take(tracker: Tracker, n: int) -> Path:
    """Write the plan file for an issue and return its path; raise `Refused` with why it does not become work."""
    found = await tracker.issues.issue(n, tracker.label)
    if reason := await refusal(tracker, found):
        raise Refused(
            f"issue {n} does not become work: {reason}",
            code="issue_not_taken",
            hint=f"an account that may write to the repository sets the label {tracker.label} on it",
        )
    said = words(await tracker.issues.remarks(n))
    plan = plan_of_issue(
        n,
        found.url,
        title=found.title,
        body=found.body,
        author=found.author,
        remarks=counting(said, await writers(tracker, said)),
    )
    text = json.dumps(plan, indent=2, ensure_ascii=False) + "\n"
    folder = tracker.place.root / tracker.place.subfolder / tracker.state_folder
    return await asyncio.to_thread(
        ProjectStateFiles().put_text, folder, FOLDER, file_name(tracker.issues.name, n), text
    )


async def refusal(tracker: Tracker, found: Issue) -> str:
    """Return why an issue does not become work; empty if it does."""
    return why_not(
        is_open=found.is_open,
        labels=found.labels,
        label=tracker.label,
        labelled_by=found.labelled_by,
        labelled_at=found.labelled_at,
        edited_at=found.edited_at,
        may_write=await tracker.issues.may_write(found.labelled_by),
    )


def words(remarks: Iterable[Remark]) -> list[Words]:
    """Return comments as the rules take them."""
    return [Words(id=one.id, who=one.author, text=one.text, place=one.place) for one in remarks]


async def writers(tracker: Tracker, said: list[Words]) -> set[str]:
    """Return the authors with write access to the repository."""
    return {who for who in {one.who for one in said} if await tracker.issues.may_write(who)}

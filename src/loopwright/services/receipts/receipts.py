"""Show, export, verify and replay the receipt of a plan."""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loopwright.adapters.git import GitRepository
from loopwright.adapters.home.receipts import gather_facts, plan_events
from loopwright.adapters.home.statefiles import state_file
from loopwright.config.resolve import Settings
from loopwright.core.receipts.differences import Difference
from loopwright.core.receipts.model import PlanEntry, Receipt
from loopwright.core.receipts.script import check_script
from loopwright.core.receipts.verify import EventFacts, Facts, verify_receipt
from loopwright.core.rows.model import Finish, Loop, Plan, Project
from loopwright.core.values.errors import DamagedRow, LoopwrightError, NotARepository, NotFound, Refused
from loopwright.core.values.findings import Verdict
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import ENDED_PLAN
from loopwright.core.values.wording import counted
from loopwright.engine.rows.plan_states_text import word_of
from loopwright.engine.views.activity import StrayView, stray_views
from loopwright.ports import Tx
from loopwright.services.homes.caller import current_folder, environment, write_whole
from loopwright.services.homes.context import look_settings, open_existing
from loopwright.services.homes.read_only_home import find_plan, glancing, looking, whereabouts
from loopwright.services.receipts.files import EVIDENCE, export, frozen_beside, load_receipt, script_beside

if TYPE_CHECKING:
    from loopwright.services.receipts.replay import Judged

# Check again everything that a receipt mentions: git, recordings, the chain of events, rows, the script.


async def present_receipt(plan: str | None) -> Receipt:
    """Return the receipt of a plan from its current rows."""
    # To verify a receipt needs no worker.
    from loopwright.app import make_world
    from loopwright.engine.branch.receipt import plan_receipt

    settings = look_settings()
    home = open_existing(settings)
    try:
        row = await home.store.read(lambda tx: find_plan(tx, plan))
        world = make_world(home, settings, environment(), slots=1)
        return await plan_receipt(world, row.id)
    finally:
        await home.store.close()


async def look_again(receipt: Receipt, where: Path, file: Path) -> Facts:
    """Return the facts about a receipt in a file that a repository and the available home still have."""
    evidence = _run_files(receipt) or (beside if (beside := file.with_name(EVIDENCE)).is_dir() else None)
    # The repository's reader keeps notes in a home: a temporary one, so that nothing is left behind.
    with tempfile.TemporaryDirectory(prefix="loopwright-verify-") as scratch:
        repository = GitRepository(where, project_id="verify", home=Path(scratch))
        try:
            facts = await gather_facts(
                repository, receipt, evidence, _events(receipt.plan.id), frozen_beside(receipt, file)
            )
        except NotARepository as outside:
            hint = "say where the result is: --repository PATH"
            raise NotARepository(str(outside), code="not_a_repository", hint=hint) from outside
    script = script_beside(file)
    if script is not None:
        expected = check_script(receipt, file.read_text(encoding="utf-8"), name=file.with_suffix(".sh").name)
        facts = replace(facts, script=script, expected_script=expected)
    if facts.events is None:
        return facts
    if receipt.events.head not in facts.events.current:
        return replace(
            facts, unchecked=(*facts.unchecked, "the home's rows: the plan continued after the receipt")
        )
    return replace(facts, rows=await present_receipt(receipt.plan.id))


def _events(plan_id: str) -> EventFacts | None:
    """Check the chain of events, if the plan ran in the available home."""
    try:
        with looking() as look:
            return look.store.read_sync(lambda tx: plan_events(tx, plan_id))
    except DamagedRow:
        raise
    except LoopwrightError:
        return None  # `unchecked` names it


def _run_files(receipt: Receipt) -> Path | None:
    """Return the folder with the run files, if the plan ran on this machine."""
    try:
        folder = whereabouts(environment(), sys.platform)[0] / "runs"
    except LoopwrightError:
        return None
    return folder if any((folder / run.id).is_dir() for run in receipt.runs) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The receipt of a plan from its current rows."""

    receipt: Receipt
    state: str
    """The state of the plan, in the same word as in every other command."""
    strays: tuple[StrayView, ...]
    """Changes to your checkout while the plan ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A receipt that was written to a folder with what its reader needs."""

    folder: Path
    sha256: str
    missing: tuple[str, ...]
    """Outputs that could not be included, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result of comparing a receipt with a repository."""

    receipt: Receipt
    file: Path
    repository: Path
    facts: Facts
    differences: tuple[Difference, ...]
    """False statements of the receipt."""

    @property
    def agrees(self) -> bool:
        """Whether every statement is true, and every commit still exists."""
        return not self.differences and not self.facts.cleaned

    @property
    def checked(self) -> tuple[str, ...]:
        """What was checked, in plain words."""
        facts = self.facts
        still = " and is still there" if facts.cleaned else ""
        done = [f"every commit, tree and diff that it names{still}, in git"]
        if facts.outputs:
            done.append(f"{counted(len(facts.outputs), 'recording')} of gates and agents")
        if facts.events is not None:
            done.append(f"the chain of {counted(len(facts.events.hashes), 'event')}, in this home's database")
        if facts.rows is not None:
            done.append("every row of the plan, in this home's database")
        if facts.script is not None:
            done.append("the script beside it")
        return tuple(done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The gates of a receipt, ready to run again."""

    receipt: Receipt
    repository: Path
    settings: Settings
    judged: "tuple[Judged, ...]"
    not_run: Mapping[str, str]
    """What cannot run again, and why."""

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that would run on this machine: show them before you run them."""
        return tuple(sorted({command.command for one in self.judged for command in one.commands}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One recorded verdict beside the new one."""

    judged: "Judged"
    verdict: Verdict
    differences: tuple[str, ...]


async def show(plan: str | None = None) -> Shown:
    """Return the receipt of a plan as it is now; without a name, of the newest plan of this repository."""
    receipt = await present_receipt(plan)
    with glancing() as look:
        state, strays = look.store.read_sync(
            lambda tx: (_state(tx, receipt.plan), tuple(stray_views(tx, receipt.plan.id)))
        )
    return Shown(receipt=receipt, state=state, strays=strays)


async def export_to(folder: Path, plan: str | None = None) -> Exported:
    """Write a receipt into a new folder, with the script that checks it and the outputs of the gates."""
    receipt = await present_receipt(plan)
    with looking() as look:
        ends = look.store.read_sync(lambda tx: tx.find(Finish, plan_id=receipt.plan.id))
    runs = whereabouts(environment(), sys.platform)[0] / "runs"
    missing = export(receipt, folder, runs, {one.id: one.receipt for one in ends if one.receipt})
    return Exported(folder=folder, sha256=receipt.sha256, missing=tuple(missing))


async def write_report(path: Path, plan: str | None = None) -> Receipt:
    """Write the receipt of a plan as one HTML file for people, and return it."""
    # Late: the other commands of receipts write no HTML.
    from loopwright.services.receipts.report import report

    receipt = await present_receipt(plan)
    if path.exists():
        raise Refused(
            f"{path} is there already",
            code="file_exists",
            hint="give a file that does not exist yet: nothing is overwritten",
        )
    write_whole(path, report(receipt), hint="give another file")
    return receipt


async def verify(receipt: str | None = None, *, repository: Path | None = None) -> Verified:
    """Compute again what a receipt says, from a file or of a plan, and name every difference."""
    file, where = _located(receipt, repository)
    found = load_receipt(file)
    facts = await look_again(found, where, file)
    return Verified(
        receipt=found,
        file=file,
        repository=where,
        facts=facts,
        differences=tuple(verify_receipt(found, facts)),
    )


def prepare_replay(
    receipt: str | None = None, *, tasks: Sequence[str] = (), repository: Path | None = None
) -> Replay:
    """Read which gates of a receipt can run again: those of the result, or those of the named tasks."""
    # To show or verify a receipt runs no gates.
    from loopwright.services.receipts.replay import judged_trees, not_run

    file, where = _located(receipt, repository)
    found = load_receipt(file)
    judged = judged_trees(found, tasks)
    settings = look_settings()
    gone = not_run(found, tasks, judged, home=settings.home, repository=where)
    return Replay(
        receipt=found,
        repository=where,
        settings=settings,
        judged=tuple(one for one in judged if one.what not in gone),
        not_run=gone,
    )


def run_replay(prepared: Replay) -> Iterator[Replayed]:
    """Run the gates again in a clean workspace, and yield each verdict beside the recorded one."""
    # To show or verify a receipt runs no gates.
    from loopwright.services.receipts.replay import differences, replay

    for one, verdict, denial in replay(
        list(prepared.judged),
        repository=prepared.repository,
        subfolder=prepared.receipt.project.subfolder,
        settings=prepared.settings,
        plan=_known_plan(prepared.receipt.plan.id),
    ):
        differing = (*differences(one.recorded, verdict), *([denial] if denial else []))
        yield Replayed(judged=one, verdict=verdict, differences=differing)


def _state(tx: Tx, plan: PlanEntry) -> str:
    if plan.status in ENDED_PLAN:
        return str(plan.status)  # the outcome is the result
    found = tx.find(Loop, plan_id=plan.id, limit=1)
    return word_of(plan.status, None, found[0].state.value if found else "").replace("_", " ")


def _located(text: str | None, repository: Path | None) -> tuple[Path, Path]:
    """Return the file to use, this one or that of this plan, and the repository to check it in."""
    if text is not None and ((path := Path(text)).exists() or path.suffix == ".json"):
        return path, (repository or current_folder()).absolute()
    with looking() as look:
        plan, project = look.store.read_sync(lambda tx: _plan_and_project(tx, text))
    file = state_file(Path(project.path), "receipts", f"{plan.id}.json")
    if not file.exists():
        raise NotFound(
            f"{project.path} has no receipt of {short_id(plan.id)} yet",
            code="no_receipt",
            hint=f"`loopwright receipt show {short_id(plan.id)} --output FILE` writes one as it is now",
        )
    return file, (repository or Path(project.path)).absolute()


def _plan_and_project(tx: Tx, text: str | None) -> tuple[Plan, Project]:
    plan = find_plan(tx, text)
    project = tx.get(Project, plan.project_id)
    assert project is not None, "a plan always has its project"
    return plan, project


def _known_plan(plan_id: str) -> Plan | None:
    """Return the plan of a receipt, if it is in the available home."""
    try:
        with glancing() as look:
            return look.store.read_sync(lambda tx: tx.get(Plan, plan_id))
    except NotFound:
        return None

"""Finds again in the repository, and in a home's run files, what a receipt says."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from loopwright.adapters.gates.commands import OutputLimits
from loopwright.adapters.gates.records import evidence_file
from loopwright.adapters.machine.disk import forgotten_since
from loopwright.adapters.processes.keeper_files import listing
from loopwright.adapters.store.chain import verify_chain
from loopwright.core.receipts.evidence import Recorded, recorded
from loopwright.core.receipts.model import Receipt
from loopwright.core.receipts.verify import CommitFacts, EventFacts, Facts, read_commit
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.values.errors import GitFailed, NotFound
from loopwright.core.values.states import FinishState
from loopwright.keeper import places
from loopwright.ports import HELD_OUT, PATCHES, Repository, Step, Tx

_NOT_THERE: Final = (GitFailed, NotFound)
_GONE: Final = "its file is gone"
_IN_PART: Final = "only parts of it were kept"
PROMPT: Final = "prompt.md"
_CUT: Final = re.compile(rb"^\[\.\.\. \d+ bytes left out \.\.\.\]$", re.MULTILINE)


def plan_events(tx: Tx, plan_id: str) -> EventFacts | None:
    """Compute a plan's chain of events again from what is stored; None when the home knows nothing of the plan."""
    stored: list[RecordedEvent] = []
    while page := tx.events(after=stored[-1].n if stored else 0, plan=plan_id, as_stored=True):
        stored += page
    if not stored:
        return None
    cleaned = [event for event in stored if event.type == "plan_cleaned"]
    # Letting go of refs changes no row.
    last = next((at for at, event in reversed([*enumerate(stored)]) if event not in cleaned), 0)
    return EventFacts(
        hashes=frozenset(event.hash for event in stored),
        head=stored[-1].hash,
        current=frozenset(event.hash for event in stored[last:]),
        cleaned=frozenset(sha for event in cleaned for sha in event.payload.get("commits", ())),
        broken_at=verify_chain(stored),
    )


async def gather_facts(
    repository: Repository,
    receipt: Receipt,
    home_runs_dir: Path | None,
    events: EventFacts | None = None,
    frozen: Mapping[str, str] | None = None,
) -> Facts:
    """Recompute everything that a receipt can be compared with; `unchecked` names what could not be looked at."""
    plan, tasks = receipt.plan, receipt.tasks
    base, result = plan.base_sha, plan.result_sha
    history = _History(repository)
    made = [one.commit_sha for one in receipt.finishes if one.state is FinishState.FINISHED]
    named = [base, result, *(task.landed_sha for task in tasks), *made]
    trees = {sha: await history.tree(sha) for sha in dict.fromkeys(named) if sha is not None}
    parents: dict[str, str] = {}
    landings: dict[str, tuple[str, ...]] = {}
    compared: dict[str, tuple[str, str]] = {}
    unchecked = []
    if events is None:
        unchecked.append("the chain of events (it is in the database of the home where the plan ran)")
    line: tuple[Step, ...] = ()
    contains_base, whole = False, False
    if result is not None and trees[base] is not None and trees[result] is not None:
        whole = True
        compared[plan.id] = (base, result)
        line = await repository.steps(result, since=base)
        contains_base = await repository.is_ancestor(base, result)
    else:
        unchecked.append("which tasks landed: there is no result yet, or it is not in this repository")
    # What others put on the branch is named in the receipt, and lands nothing whatever its trailers say.
    others = {one.sha for one in plan.not_ours}
    steps = [step for step in line if step.sha not in others]
    gone = {sha for step in steps for sha in step.takes_out}
    for task in tasks:
        if whole:
            carried = [step.sha for step in reversed(steps) if task.id in step.tasks]
            landings[task.id] = tuple(sha for sha in carried if sha not in gone)
        sha = task.landed_sha
        if sha is not None and trees[sha] is not None:
            parent = await history.parent(sha)
            if parent is not None:
                parents[sha] = parent
                compared[task.id] = (parent, sha)
    patches = await _patches(repository, receipt, compared)
    commits: dict[str, CommitFacts] = {}
    for sha in made:
        if sha is not None and trees[sha] is not None:
            commits[sha] = read_commit(await (await repository.ends()).text(sha))
    frozen = frozen or {}
    unchecked += [
        f"the receipt that {one.id} names: {one.id}.json is not beside this one"
        for one in receipt.finishes
        if one.receipt_sha256 is not None and one.id not in frozen
    ]
    hashes = await _diff_hashes(repository, list(compared.values()))
    outputs, missing = _outputs(receipt, home_runs_dir)
    tips = {one.tip_sha: (task.key, one.n) for task in tasks for one in task.attempts}
    absent = await repository.absent([sha for sha in tips if sha is not None])
    # Attempts that came to nothing are work as well.
    kept_tips = [sha for sha in (result, *commits, *tips) if sha is not None and sha not in absent]
    damage = await repository.damaged(since=base, tips=kept_tips) if whole else None
    return Facts(
        trees=trees,
        contains_base=contains_base,
        parents=parents,
        landings=landings,
        carried={step.sha: step.receipt for step in steps if step.tasks},
        taken_out={step.sha: step.takes_out for step in steps if step.takes_out} if whole else None,
        diffs=dict(zip(compared, hashes, strict=True)),
        patches=patches,
        commits=commits,
        frozen=frozen,
        damage=damage,
        outputs=outputs,
        events=events,
        unchecked=(*unchecked, *missing, *(_gone(sha, *tips[sha]) for sha in absent)),
    )


async def _diff_hashes(repository: Repository, pairs: Sequence[tuple[str, str]]) -> list[str]:
    try:
        return await repository.diff_hashes(pairs)
    except GitFailed:
        return [""] * len(pairs)  # an object is damaged: no hash agrees then


async def _patches(
    repository: Repository, receipt: Receipt, compared: Mapping[str, tuple[str, str]]
) -> dict[str, str]:
    """Hash again what was reviewed before it landed."""
    found = {}
    for task in receipt.tasks:
        if task.id in compared and receipt.review_of(task) is not None:
            try:
                found[task.id] = (await repository.patch(*compared[task.id])).sha256
            except GitFailed:
                found[task.id] = ""  # an object is damaged: no hash agrees then
    return found


def _gone(sha: str, task: str, n: int) -> str:
    """Name the work of an attempt that cannot be looked at any more: no result rests on it, but it may be lost."""
    return (
        f"the work of attempt {n} at task {task!r}: commit {sha} is not in this repository"
        " (a clone does not have it, and `clean` lets go of it)"
    )


class _History:
    """Reads commits; each parent is looked up once, since the port finds it by resolving a name."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._parents: dict[str, str | None] = {}

    async def tree(self, sha: str) -> str | None:
        """Return the tree of a commit, None when there is no such commit."""
        try:
            return await self._repository.tree_of(sha)
        except _NOT_THERE:
            return None

    async def parent(self, sha: str) -> str | None:
        """Return the first parent; a root commit has none."""
        if sha not in self._parents:
            try:
                self._parents[sha] = (await self._repository.base(f"{sha}^1")).sha
            except _NOT_THERE:
                self._parents[sha] = None
        return self._parents[sha]


def _outputs(receipt: Receipt, evidence: Path | None) -> tuple[dict[str, str], list[str]]:
    """Hash again what was recorded while the plan ran, where the whole of it was kept."""
    if evidence is None:
        return {}, ["the recorded outputs of the gates and agents (they are in the home where the plan ran)"]
    found: dict[str, str] = {}
    missing: list[str] = []
    for one in recorded(receipt):
        kept = read_evidence(evidence, one)
        if isinstance(kept, str):
            missing.append(f"{one.what} ({one.key}): {kept}")
        else:
            found[one.key] = hashlib.sha256(kept).hexdigest()
    return found, missing


def _place(evidence: Path, directory: Path, part: str) -> Path:
    """Return the file that a part of a receipt's key means."""
    match part:
        case "prompt":
            return directory / PROMPT
        case _ if directory.name == HELD_OUT:
            return evidence.with_name(HELD_OUT) / part
        case "patch":
            return evidence.with_name(PATCHES) / f"{directory.name}.patch"
        case _:
            return evidence_file(directory, part)


def read_evidence(evidence: Path, wanted: Recorded) -> bytes | str:
    """Return what was recorded; a text says why the whole of it cannot be had."""
    folder, _, part = wanted.key.rpartition("/")
    directory = evidence / folder
    if part == "output":
        pieces = sorted((directory / places.OUTPUT).glob("*"))
        if not (directory / places.OUTPUT).is_dir():
            since = forgotten_since(directory)
            return f"no longer kept since {since}" if since else _GONE
        data = b"".join(piece.read_bytes() for piece in pieces)
        # Each piece is named after where it begins: when one is missing, the next ones begin later.
        at = 0
        for piece in pieces:
            if int(piece.name) != at:
                return _IN_PART
            at += piece.stat().st_size
        return data
    if part == "files":
        # What was handed on to another process has a gate's files alone.
        return listing(directory) if (directory / places.EXIT).is_file() else _GONE
    path = _place(evidence, directory, part)
    if not path.is_file():
        return _GONE
    data, size = path.read_bytes(), wanted.size or 0
    # Nothing small is ever cut: a mark in a small file is what the command printed, or what was put there.
    cut = size > max(len(data), OutputLimits().head_bytes) and _CUT.search(data)
    return _IN_PART if cut else data

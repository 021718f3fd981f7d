"""What a receipt says of a plan's end, and what must be so if that is true."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopwright.core.policy.finishing import FINISH_TRAILER, PULL_REQUEST, RECEIPT_TRAILER, receipt_hash
from loopwright.core.receipts.verdicts import Json, finish_asked, unseen_asked, verdict_on
from loopwright.core.rows.model import Finish
from loopwright.core.values.states import FinishState, TaskState

_COPIED: Final = (
    "id how actor source_sha target_sha commit_sha tree verdict_id receipt_sha256 signed request_url "
    "request_n detail"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """What a repository says of the commit with which a plan ended."""

    parents: tuple[str, ...]
    trailers: Mapping[str, str]
    """Those of ours."""
    signed: bool


def read_commit(text: str) -> CommitFacts:
    """Read a commit as `git cat-file commit` prints it."""
    head, _, message = text.partition("\n\n")
    lines = head.splitlines()
    told = [line.partition(": ") for line in message.splitlines() if line.startswith("Loopwright-")]
    return CommitFacts(
        parents=tuple(line.removeprefix("parent ") for line in lines if line.startswith("parent ")),
        trailers={key: value.strip() for key, _, value in told},
        signed=any(line.startswith("gpgsig") for line in lines),
    )


def finish_entry(finish: Finish) -> Json:
    """Return what a receipt says of one end of its plan."""
    return {
        **{name: getattr(finish, name) for name in _COPIED.split()},
        "state": finish.state.value,
        "tasks": list(finish.tasks),
        "created_at": finish.created_at.isoformat(),
        "finished_at": finish.finished_at.isoformat() if finish.finished_at else None,
    }


def told_once(finishes: Iterable[Finish]) -> list[Finish]:
    """Return the ends in order, without those that found everything where an earlier one had brought it."""
    found: list[Finish] = []
    for one in sorted(finishes, key=lambda f: (f.created_at, f.id)):
        idle = one.state is FinishState.FINISHED and one.commit_sha == one.target_sha is not None
        before = [each.tasks for each in found if each.state is FinishState.FINISHED]
        if not idle or one.tasks not in before:
            found.append(one)
    return found


def is_made(entry: Mapping[str, Any]) -> bool:
    """Say whether a commit was made for it: a fast-forward may need none, and neither does what was there before."""
    return entry["commit_sha"] not in (None, entry["source_sha"], entry["target_sha"])


def carries_hash(entry: Mapping[str, Any]) -> bool:
    """Say whether the commit's trailer has the hash of the receipt: tasks that were picked have it as well."""
    picked = bool(entry["tasks"]) and entry["commit_sha"] not in (None, entry["target_sha"])
    return is_made(entry) or picked


def squashed(receipt: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return, by the id of each task, the commits or requests with which it reached its end."""
    found: dict[str, list[str]] = {}
    for one in receipt["finishes"]:
        if one["state"] != FinishState.FINISHED.value:
            continue
        where = one["request_url"] if one["how"] == PULL_REQUEST else one["commit_sha"]
        for task in receipt["tasks"]:
            chosen = task["id"] in one["tasks"] if one["tasks"] else True
            if chosen and task["status"] == TaskState.COMPLETE.value:
                found.setdefault(task["id"], []).append(where)
    return found


def finish_differences(
    receipt: Mapping[str, Any],
    *,
    trees: Mapping[str, str | None],
    commits: Mapping[str, CommitFacts],
    frozen: Mapping[str, str],
) -> list[str]:
    """Say what does not hold of the ends of a plan; `frozen` are the receipts that their commits name, by id."""
    found: list[str] = []
    for one in receipt["finishes"]:
        name, commit = f"the end {one['id']}", one["commit_sha"]
        text = frozen.get(one["id"])
        if text is not None and receipt_hash(text) != one["receipt_sha256"]:
            found.append(f"the receipt that {name} names is not the one that was kept")
        if one["state"] != FinishState.FINISHED.value or commit is None:
            continue
        if one["tree"] is not None and commit != one["target_sha"] and not _passed(receipt, one):
            found.append(f"{name} took over the tree {one['tree']}, which no gate has passed")
        if trees.get(commit) is None:
            found.append(f"commit {commit} does not exist")
            continue
        if one["tree"] is not None and trees[commit] != one["tree"]:
            found.append(f"{name} has the tree {trees[commit]}, but {one['tree']} was judged")
        facts = commits.get(commit)
        if facts is not None:
            found += _commit_differences(one, name, facts)
    return found


def _commit_differences(one: Mapping[str, Any], name: str, facts: CommitFacts) -> list[str]:
    found = []
    if carries_hash(one):
        for key, value in ((FINISH_TRAILER, one["id"]), (RECEIPT_TRAILER, f"sha256:{one['receipt_sha256']}")):
            if facts.trailers.get(key) != value:
                found.append(f"the commit of {name} says {facts.trailers.get(key)!r} as {key}, not {value!r}")
    if is_made(one) and one["target_sha"] not in facts.parents:
        found.append(f"the commit of {name} was not made on {one['target_sha']}")
    if one["signed"] and not facts.signed:
        found.append(f"the commit of {name} has no signature")
    return found


def _passed(receipt: Mapping[str, Any], one: Mapping[str, Any]) -> bool:
    unseen = [commands for _, commands in unseen_asked(receipt, one["tasks"])]
    return all(verdict_on(receipt, one["tree"], asked) for asked in (finish_asked(receipt, one), *unseen))

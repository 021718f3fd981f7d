"""Verify a receipt: compare it with itself, with the repository, and with the home if available."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from loopwright.core.gates.verdicts import gate_key
from loopwright.core.policy.finishing import FINISH_TRAILER, RECEIPT_TRAILER, receipt_hash
from loopwright.core.policy.red_first import is_red
from loopwright.core.receipts.differences import Difference, DifferenceCode, differs
from loopwright.core.receipts.evidence import recorded
from loopwright.core.receipts.landing_hashes import landing_hash_differences
from loopwright.core.receipts.model import FinishEntry, PlanEntry, Receipt, RunEntry, TaskEntry, fingerprint
from loopwright.core.receipts.outcomes import derive
from loopwright.core.receipts.verdicts import acceptance_commands, finish_passed, gate_commands
from loopwright.core.replies.qa import QaIssue, QaReport
from loopwright.core.replies.reviews import blocking, said_hash
from loopwright.core.rows.model import Role
from loopwright.core.values.containment import Containment
from loopwright.core.values.documents import plain
from loopwright.core.values.states import FinishState

_DERIVED: Final = ("outcome", "cost", "usage", "gaps", "notes", "not_checked")
_LISTS: Final = (
    "tasks",
    "verdicts",
    "reviews",
    "claims",
    "opinions",
    "looks",
    "reports",
    "runs",
    "finishes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """What a repository says about the commit of a finish."""

    parents: tuple[str, ...]
    trailers: Mapping[str, str]
    """The trailers that Loopwright writes."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFacts:
    """What a home's database says about a plan's events."""

    hashes: frozenset[str]
    head: str
    """The hash of the last event."""
    current: frozenset[str] = frozenset()
    """The hash of the last event that may have changed the plan's rows, and of all after it."""
    cleaned: frozenset[str] = frozenset()
    """Commits of the plan's branch that the user released with `clean`."""
    broken_at: int | None = None
    """The number of the first event that was changed, moved or removed; None if the chain is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts that were collected to verify a receipt."""

    trees: Mapping[str, str | None]
    """The tree of each commit that the receipt names; None for one that does not exist."""
    contains_base: bool
    """Whether the result contains the base."""
    parents: Mapping[str, str]
    """The first parent of each landing commit."""
    landings: Mapping[str, Sequence[str]]
    """Per task id, the commits on the first-parent line from base to result that carry its trailer and still count."""
    diffs: Mapping[str, str]
    """Hashes of the diffs, by task id, and by plan id for the whole."""
    patches: Mapping[str, str] = field(default_factory=dict)
    """By task id, the hash of the reviewed change that it landed, as `core.values.patches` computes it."""
    carried: Mapping[str, str] = field(default_factory=dict)
    """The receipt trailer of each commit on that line; empty if it has none."""
    taken_out: Mapping[str, Sequence[str]] | None = None
    """The commits on that line that remove landings, each with those; None if there is no such line."""
    commits: Mapping[str, CommitFacts] = field(default_factory=dict)
    """The commits of the plan's finishes."""
    frozen: Mapping[str, str] = field(default_factory=dict)
    """The kept receipts that those commits name, by the id of the finish."""
    damage: str | None = None
    """A damaged git object between base and result."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the recorded files that could be read whole, by `Recorded.key`."""
    script: str | None = None
    """The script beside the receipt; None if there is none."""
    expected_script: str | None = None
    """The script that should be there."""
    rows: Receipt | None = None
    """The receipt from the home's current rows; None if the plan has changed since."""
    events: EventFacts | None = None
    """None if the home in which the plan ran is not available."""
    unchecked: Sequence[str] = ()
    """What could not be checked here, in plain words."""

    @property
    def cleaned(self) -> frozenset[str]:
        """The missing commits that `clean` released.

        Only the home can confirm that: its chain of events must be intact, and its rows available.
        """
        if self.events is None or self.events.broken_at is not None or self.rows is None:
            return frozenset()
        return frozenset(sha for sha in self.events.cleaned if sha in self.trees and self.trees[sha] is None)


def verify_receipt(receipt: Receipt, facts: Facts) -> list[Difference]:
    """Compare a receipt with itself and with the collected facts; return every difference."""
    found: list[Difference] = []
    if receipt.sha256 != fingerprint(receipt):
        found.append(differs(DifferenceCode.HASH, "", "the receipt was changed: its own hash does not match"))
    found += _derived_differences(receipt)
    found += _git_differences(receipt, facts)
    for task in receipt.tasks:
        found += _landing_differences(
            task, facts, has_result=receipt.plan.result_sha not in (None, *facts.cleaned)
        )
    found += _review_differences(receipt, facts)
    found += _qa_differences(receipt)
    found += _red_differences(receipt)
    found += _sandbox_differences(receipt)
    found += _override_differences(receipt, facts.taken_out)
    found += landing_hash_differences(receipt, facts.carried, facts.events.hashes if facts.events else None)
    found += _finish_differences(receipt, facts)
    for one in recorded(receipt):
        if facts.outputs.get(one.key, one.sha256) != one.sha256:
            found.append(
                differs(
                    DifferenceCode.RECORDED_FILE,
                    one.key,
                    f"{one.what} ({one.key}) is not the one in the receipt",
                )
            )
    if facts.script != facts.expected_script:
        found.append(
            differs(DifferenceCode.SCRIPT, "", "the script beside the receipt does not belong to it")
        )
    if facts.rows is not None:
        found += _row_differences(receipt, facts.rows)
    return found + _event_differences(receipt.events.head, facts.events)


def _derived_differences(receipt: Receipt) -> list[Difference]:
    derived = derive(receipt)
    found = [
        differs(
            DifferenceCode.DERIVED,
            name,
            f"the receipt's {name} is {plain(said)!r}, but its facts give {plain(follows)!r}",
        )
        for name in _DERIVED
        if (said := getattr(receipt, name)) != (follows := getattr(derived, name))
    ]
    for task in receipt.tasks:
        outcome = derived.outcomes[task.id]
        if task.outcome is not outcome:
            found.append(
                differs(
                    DifferenceCode.TASK_OUTCOME,
                    task.key,
                    f"the outcome of task {task.key!r} is {task.outcome.value!r}, but its facts give {outcome.value!r}",
                )
            )
    return found


def _row_differences(receipt: Receipt, rows: Receipt) -> list[Difference]:
    """Name where the home's rows differ from a receipt, except for what only git knows."""
    found = [
        differs(DifferenceCode.ROWS, part, f"the {part} differs from the home's rows: {wrong}")
        for part in ("project", "plan")
        if (wrong := _differing(getattr(receipt, part), getattr(rows, part)))
    ]
    # Without a tree, the result is not available and its commits are unknown.
    if rows.plan.result_tree is not None and receipt.plan.not_ours != rows.plan.not_ours:
        found.append(
            differs(
                DifferenceCode.FOREIGN_COMMITS,
                "",
                "the commits that no task made differ from the branch",
            )
        )
    if receipt.overrides != rows.overrides:
        found.append(
            differs(DifferenceCode.OVERRIDES, "", "the decisions of people differ from the home's events")
        )
    if receipt.checkout_changes != rows.checkout_changes:
        found.append(
            differs(
                DifferenceCode.CHECKOUT_CHANGES,
                "",
                "the changes of the checkout differ from the home's events",
            )
        )
    for part in _LISTS:
        mine, theirs = ({one.id: one for one in getattr(whole, part)} for whole in (receipt, rows))
        found += [
            differs(DifferenceCode.ROWS, row, f"{row} differs from the home's rows: {wrong}")
            for row in dict.fromkeys((*mine, *theirs))
            if (wrong := _differing(mine.get(row), theirs.get(row)))
        ]
    return found


def _differing(mine: Any, theirs: Any) -> str:
    """Name the fields in which two entries differ."""
    if mine is None or theirs is None:
        return "the receipt does not have it" if mine is None else "the home does not have it"
    return ", ".join(
        sorted(one.name for one in fields(mine) if _told(mine, one.name) != _told(theirs, one.name))
    )


def _told(entry: Any, name: str) -> Any:
    from_git = {PlanEntry: ("result_tree", "diff_sha256", "not_ours"), TaskEntry: ("diff_sha256",)}
    return None if name in from_git.get(type(entry), ()) else getattr(entry, name)


def _review_differences(receipt: Receipt, facts: Facts) -> list[Difference]:
    """Name where a review does not fit its findings, its run, or what landed because of it."""
    said = {one.id: one for one in receipt.claims}
    runs = {one.id: one for one in receipt.runs}
    found = []
    for review in receipt.reviews:
        claim = said.pop(review.id, None)
        findings = claim.findings if claim else ()
        if said_hash(claim.summary if claim else "", findings) != review.said_sha256:
            found.append(
                differs(
                    DifferenceCode.REVIEW_HASH,
                    review.id,
                    f"the findings of {review.id} do not match their hash",
                )
            )
        if len(blocking(findings)) != review.blocking:
            found.append(
                differs(
                    DifferenceCode.REVIEW_COUNT,
                    review.id,
                    f"the number of blocking findings of {review.id} is wrong",
                )
            )
        run = runs.get(review.run_id)
        if run is None or run.role is not Role.REVIEWER:
            found.append(
                differs(
                    DifferenceCode.REVIEW_RUN,
                    review.id,
                    f"{review.id} names {review.run_id}, which is not the run of a reviewer",
                )
            )
    found += [
        differs(
            DifferenceCode.REVIEW_MISSING, one, f"there are findings of {one}, but that review is missing"
        )
        for one in said
    ]
    for task in receipt.tasks:
        landed = receipt.review_of(task)
        patch = facts.patches.get(task.id)
        if landed is not None and patch is not None and patch != landed.patch_sha256:
            found.append(
                differs(
                    DifferenceCode.REVIEWED_CHANGE,
                    task.key,
                    f"what task {task.key!r} landed is not what {landed.id} looked at",
                )
            )
    return found


def _qa_differences(receipt: Receipt) -> list[Difference]:
    """Name where a QA review does not fit its report."""
    said = {one.id: one for one in receipt.reports}
    found = []
    for look in receipt.looks:
        one = said.pop(look.id, None)
        issues = tuple(QaIssue(**plain(issue)) for issue in one.issues) if one else ()
        if (
            one is None
            or QaReport(mode=look.mode, summary=one.summary, checked=one.checked, issues=issues).sha256
            != look.report_sha256
        ):
            found.append(
                differs(DifferenceCode.QA_HASH, look.id, f"the report of {look.id} does not match its hash")
            )
        elif len(issues) + look.by_gate != look.issues:
            found.append(
                differs(DifferenceCode.QA_COUNT, look.id, f"the number of issues of {look.id} is wrong")
            )
    return found + [
        differs(DifferenceCode.QA_MISSING, one, f"there is a report of {one}, but that QA review is missing")
        for one in said
    ]


def _red_differences(receipt: Receipt) -> list[Difference]:
    """Name where an attempt's red proof does not follow from a verdict of the receipt."""
    said = {
        (one.tree, one.gate_key, is_red(one.status, [ran.exit_code for ran in one.commands]))
        for one in receipt.verdicts
    }
    any_failed = any(ran.exit_code for one in receipt.verdicts for ran in one.commands)
    found = []
    for task in receipt.tasks:
        key = gate_key(acceptance_commands(receipt.plan, task) or gate_commands(receipt.plan))
        for facts in (one.gate_files for one in task.attempts if one.gate_files is not None):
            if facts.red_seen and not any_failed:
                found.append(
                    differs(
                        DifferenceCode.FAILED_BEFORE,
                        task.key,
                        f"no verdict shows that tests of task {task.key!r} failed before its work",
                    )
                )
            if facts.red_proof is None:
                continue
            if (facts.red_tree, key, facts.red_proof) not in said:
                how = "failed" if facts.red_proof else "passed"
                found.append(
                    differs(
                        DifferenceCode.RED_PROOF,
                        task.key,
                        f"no verdict shows that the checks of task {task.key!r} {how} without its work",
                    )
                )
    return found


def _sandbox_differences(receipt: Receipt) -> list[Difference]:
    """Name the runs whose sandbox does not fit what it was made with."""
    return [
        differs(
            DifferenceCode.SANDBOX,
            run.id,
            f"{run.id} had the sandbox {run.sandbox or Containment.NONE.value}, {wrong}",
        )
        for run in receipt.runs
        if (wrong := _wrong_sandbox(run))
    ]


def _wrong_sandbox(run: RunEntry) -> str:
    level, made = run.sandbox, run.sandbox_made_with
    if level in (None, Containment.NONE.value):
        return "but names the program that made it" if made is not None else ""
    if made is None or not made.program:
        return "but does not name the program that made it"
    images = bool(made.image and made.image_id)
    if images != (level == Containment.CONTAINER.value):
        return "but does not name its image" if not images else "which needs no image"
    return ""


def _override_differences(receipt: Receipt, found: Mapping[str, Sequence[str]] | None) -> list[Difference]:
    """Compare the rollbacks in the receipt with those on the branch; None without a branch."""
    if found is None:
        return []
    said = {
        one.commit: sorted(removed.sha for removed in one.took_out)
        for one in receipt.overrides
        if one.commit is not None
    }
    return [
        differs(
            DifferenceCode.ROLLBACK,
            sha,
            f"commit {sha} reverts {', '.join(sorted(found.get(sha, ()))) or 'nothing'}, but the receipt says: "
            + (", ".join(said.get(sha, ())) or "nothing"),
        )
        for sha in dict.fromkeys((*said, *found))
        if said.get(sha, []) != sorted(found.get(sha, ()))
    ]


def _finish_differences(receipt: Receipt, facts: Facts) -> Iterator[Difference]:
    """Yield what is wrong with the finishes of a plan."""
    for one in receipt.finishes:
        name, commit = f"finish {one.id}", one.commit_sha
        text = facts.frozen.get(one.id)
        if text is not None and receipt_hash(text) != one.receipt_sha256:
            yield differs(
                DifferenceCode.FINISH_RECEIPT,
                one.id,
                f"the receipt that {name} names is not the stored one",
            )
        if one.state is not FinishState.FINISHED or commit is None:
            continue
        if one.tree is not None and commit != one.target_sha and not finish_passed(receipt, one):
            yield differs(
                DifferenceCode.FINISH_NOT_PASSED,
                one.id,
                f"{name} delivered the tree {one.tree}, which passed no gate",
            )
        if facts.trees.get(commit) is None:
            yield differs(DifferenceCode.COMMIT_MISSING, commit, f"commit {commit} does not exist")
            continue
        if one.tree is not None and facts.trees[commit] != one.tree:
            yield differs(
                DifferenceCode.FINISH_TREE,
                one.id,
                f"{name} has the tree {facts.trees[commit]}, but {one.tree} was judged",
            )
        if commit in facts.commits:
            yield from _commit_differences(one, name, facts.commits[commit])


def _commit_differences(one: FinishEntry, name: str, facts: CommitFacts) -> Iterator[Difference]:
    if one.carries_hash:
        for key, value in ((FINISH_TRAILER, one.id), (RECEIPT_TRAILER, f"sha256:{one.receipt_sha256}")):
            if facts.trailers.get(key) != value:
                text = f"the commit of {name} has the trailer {key}: {facts.trailers.get(key)!r}, expected {value!r}"
                yield differs(DifferenceCode.FINISH_TRAILER, one.id, text)
    if one.is_made and one.target_sha not in facts.parents:
        yield differs(
            DifferenceCode.FINISH_PARENT,
            one.id,
            f"the parent of the commit of {name} is not {one.target_sha}",
        )
    if one.signed and not facts.signed:
        yield differs(DifferenceCode.FINISH_SIGNATURE, one.id, f"the commit of {name} has no signature")


def _event_differences(head: str | None, events: EventFacts | None) -> list[Difference]:
    if events is None:
        return []
    found = []
    if events.broken_at is not None:
        found.append(
            differs(
                DifferenceCode.EVENT_CHAIN,
                str(events.broken_at),
                f"the chain of events is broken at event {events.broken_at}",
            )
        )
    # Events may have been added since: the receipt's last one must only be among them.
    if head is not None and head not in events.hashes:
        found.append(
            differs(
                DifferenceCode.EVENT_MISSING,
                head,
                "the last event of the receipt is not in the home's chain of events",
            )
        )
    return found


def _git_differences(receipt: Receipt, facts: Facts) -> list[Difference]:
    plan = receipt.plan
    named = [plan.base_sha, plan.result_sha, *(task.landed_sha for task in receipt.tasks)]
    commits = [sha for sha in dict.fromkeys(named) if sha is not None]
    found = [
        differs(DifferenceCode.COMMIT_MISSING, sha, f"commit {sha} does not exist")
        for sha in commits
        if facts.trees.get(sha) is None and sha not in facts.cleaned
    ]
    result = plan.result_sha
    if result is None or result in facts.cleaned:
        return found
    if facts.trees.get(result) not in (None, plan.result_tree):
        found.append(
            differs(
                DifferenceCode.RESULT_TREE,
                result,
                f"the result's tree is {facts.trees[result]}, not {plan.result_tree}",
            )
        )
    if facts.damage is not None:
        found.append(
            differs(DifferenceCode.REPOSITORY_DAMAGED, "", f"the repository is damaged: {facts.damage}")
        )
    if not facts.contains_base:
        found.append(
            differs(
                DifferenceCode.BASE_NOT_CONTAINED,
                plan.base_sha,
                "the result does not contain the base commit",
            )
        )
    if plan.diff_sha256 is not None and facts.diffs.get(plan.id) != plan.diff_sha256:
        found.append(
            differs(
                DifferenceCode.RESULT_DIFF,
                result,
                "the diff from base to result is not the one in the receipt",
            )
        )
    return found


def _landing_differences(task: TaskEntry, facts: Facts, *, has_result: bool) -> list[Difference]:
    name, landed = repr(task.key), task.landed_sha
    landings = list(facts.landings.get(task.id, ()))
    if landed is None:
        return [
            differs(
                DifferenceCode.TASK_DID_NOT_LAND,
                task.key,
                f"task {name} did not land, but {sha} carries its trailer",
            )
            for sha in landings
        ]
    if landed in facts.cleaned:
        return []
    found = []
    # Without a result, the branch has no line to search for the landing.
    if has_result and landings != [landed]:
        text = f"task {name} should have landed once, as {landed}; found: {', '.join(landings) or 'nothing'}"
        found.append(differs(DifferenceCode.LANDINGS, task.key, text))
    if facts.trees.get(landed) not in (None, task.tree):
        found.append(
            differs(
                DifferenceCode.LANDED_TREE,
                task.key,
                f"task {name} landed the tree {facts.trees[landed]}, but {task.tree} was judged",
            )
        )
    if facts.parents.get(landed) != task.parent_sha:
        found.append(
            differs(
                DifferenceCode.LANDED_PARENT,
                task.key,
                f"task {name} landed on {facts.parents.get(landed)}, not on {task.parent_sha}",
            )
        )
    if facts.diffs.get(task.id) != task.diff_sha256:
        found.append(
            differs(
                DifferenceCode.TASK_DIFF, task.key, f"the diff of task {name} is not the one in the receipt"
            )
        )
    return found

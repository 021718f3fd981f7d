"""Receipts: the record of a plan that a stranger can check against the repository.

A receipt is plain JSON. Outcomes, sums and gaps are derived from the facts in it and from nothing else, by the
same function when it is written and when it is verified. What lowers the outcome is under `gaps`, everything else that
is worth telling under `notes`; `not_checked` has both as plain sentences.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

from loopwright.core.gates.gates import setup_command
from loopwright.core.gates.verdicts import is_bad
from loopwright.core.receipts.receipt_checkout import kept_patches
from loopwright.core.receipts.receipt_facts import USAGE, Json, gate_files, gate_outputs, review_of
from loopwright.core.receipts.receipt_finishes import CommitFacts, finish_differences, finish_entry, told_once
from loopwright.core.receipts.receipt_landings import landing_hash_differences, landing_text
from loopwright.core.receipts.receipt_opinions import opinions
from loopwright.core.receipts.receipt_outcomes import derive
from loopwright.core.receipts.receipt_overrides import override_differences
from loopwright.core.receipts.receipt_qa import look_differences, looks, reports
from loopwright.core.receipts.receipt_red import known_of_base, red_differences
from loopwright.core.receipts.receipt_sandboxes import sandbox_differences
from loopwright.core.receipts.receipt_shape import SCHEMA, shape_problems
from loopwright.core.replies.reviews import Finding, Severity, blocking, said_hash
from loopwright.core.rows.model import Attempt, Finish, Plan, Project, Review, Role, Run, Task, VerdictRecord
from loopwright.core.values.criteria import in_words
from loopwright.core.values.documents import plain, readable
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import CheckStatus, CommandResult

__all__ = [
    "SCHEMA",
    "Facts",
    "GitFacts",
    "build_receipt",
    "fingerprint",
    "recorded",
    "render",
    "shape_problems",
    "verify_receipt",
]

_MAX_BAD: Final = 100
_DERIVED: Final = ("outcome", "cost", "usage", "gaps", "notes", "not_checked")
_FROM_GIT: Final = ("result_tree", "diff_sha256", "not_ours")


_POLICY: Final = (
    *("agent", "model", "permission_mode", "max_attempts", "allow_unverified", "unseen_proof", "red_proof"),
    *("gate_files", "may_change", "test_changes", "installed_gates"),
)
"""The settings of a plan that decide what its outcome is worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFacts:
    """What only the repository knows when a receipt is written."""

    result_tree: str | None
    diff_sha256: str | None = None
    """Of the whole diff from base to result."""
    task_diff_sha256: Mapping[str, str] = field(default_factory=dict)
    """Of what each landed task changed, by task id."""
    not_ours: Sequence[Mapping[str, Any]] = ()
    """The commits between base and result that neither landed a task nor took one back, each with the gate's files
    among what it changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFacts:
    """What a home's database still says of a plan's events."""

    hashes: frozenset[str]
    head: str
    """The hash of the last one."""
    current: frozenset[str] = frozenset()
    """The hash of the last one after which the plan's rows may be different, and of all after it."""
    cleaned: frozenset[str] = frozenset()
    """Commits of the plan's branch of which a person let go with `clean`."""
    broken_at: int | None = None
    """The number of the first event that was changed, moved or torn out; None when the chain is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was found again when a receipt is verified."""

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
    """By task id, the hash of what a reviewed task landed, as `core.values.patches` computes it."""
    carried: Mapping[str, str] = field(default_factory=dict)
    """What the commits on that line carry of the receipt's hash, nothing included."""
    taken_out: Mapping[str, Sequence[str]] | None = None
    """The commits on that line that take landings back, each with those; None when there is no such line."""
    commits: Mapping[str, CommitFacts] = field(default_factory=dict)
    """What is known of the commits with which the plan ended."""
    frozen: Mapping[str, str] = field(default_factory=dict)
    """The receipts that those commits name, by the id of the end, where they were kept."""
    damage: str | None = None
    """What is wrong with an object of git between base and result."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Hashes of what was recorded and could be read whole: by `<run id>/<position>` the output of a gate's command,
    by `<run id>/output` all that a run said, by `<run id>/prompt` what its agent was told; see `Recorded.key`."""
    script: str | None = None
    """The script beside the receipt; None when there is none."""
    expected_script: str | None = None
    """What that script should be."""
    rows: Mapping[str, Any] | None = None
    """The receipt that the home's rows give now, when nothing has happened to the plan since; None otherwise."""
    events: EventFacts | None = None
    """None when the home in which the plan ran is not at hand."""
    unchecked: Sequence[str] = ()
    """What could not be looked at here, in plain words."""

    @property
    def cleaned(self) -> frozenset[str]:
        """The commits that are gone because `clean` let go of them.

        Nobody but the home can say so: its chain of events must be whole, and its rows must be at hand.
        """
        if self.events is None or self.events.broken_at is not None or self.rows is None:
            return frozenset()
        return frozenset(sha for sha in self.events.cleaned if sha in self.trees and self.trees[sha] is None)


def build_receipt(
    *,
    project: Project,
    plan: Plan,
    tasks: Sequence[Task],
    attempts: Sequence[Attempt],
    runs: Sequence[Run],
    verdicts: Sequence[VerdictRecord],
    reviews: Sequence[Review] = (),
    finishes: Sequence[Finish] = (),
    git: GitFacts,
    overrides: Sequence[Json] = (),
    checkout_changes: Sequence[Json] = (),
    ended: Mapping[str, str] | None = None,
    event_head: str | None,
    made_by: str,
) -> Json:
    """Build the receipt of a plan from its rows; the same rows always give the same bytes.

    `ended` has the hash of the event with which each run ended, by the run's id.
    """
    asked = sorted(reviews, key=lambda r: (r.created_at, r.id))
    body: Json = {
        "schema": SCHEMA,
        "made_by": made_by,
        "project": {"id": project.id, "name": project.name, "subfolder": project.subfolder},
        "plan": _plan(plan, git),
        "tasks": [
            _task(task, [a for a in attempts if a.task_id == task.id], git)
            for task in sorted(tasks, key=lambda t: (t.position, t.id))
        ],
        "verdicts": [_verdict(v) for v in sorted(verdicts, key=lambda v: (v.created_at, v.id))],
        "reviews": [_review(one) for one in asked],
        "claims": [_said(one) for one in asked],
        "opinions": opinions(plan),
        "looks": looks(tasks, attempts),
        "reports": reports(attempts),
        "overrides": list(overrides),
        "checkout_changes": list(checkout_changes),
        "runs": [
            _run(run, (ended or {}).get(run.id)) for run in sorted(runs, key=lambda r: (r.created_at, r.id))
        ],
        "finishes": [finish_entry(one) for one in told_once(finishes)],
        "events": {"head": event_head},
    }
    derived = derive(body)
    for entry in body["tasks"]:
        entry["outcome"] = derived["outcomes"][entry["id"]]
    body |= {key: derived[key] for key in _DERIVED}
    return body | {"sha256": fingerprint(body)}


def landing_part(
    plan: Plan, task: Task, attempt: Attempt, runs: Sequence[Run], ended: Mapping[str, str]
) -> str:
    """Return what a receipt will say of work that is about to land."""
    entry = _task(task, [attempt], GitFacts(result_tree=None))
    told = {"id": plan.id, "base_sha": plan.base_sha}
    return landing_text(told, entry, entry["attempts"][0], [_run(run, ended.get(run.id)) for run in runs])


def fingerprint(receipt: Mapping[str, Any]) -> str:
    """Return the hash of everything in a receipt but its own hash."""
    return _hash_of({key: value for key, value in receipt.items() if key != "sha256"})


def _hash_of(value: Any) -> str:
    """Return the hash of a JSON value, however it is written down."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def render(receipt: Mapping[str, Any]) -> str:
    """Return the text of a receipt's file."""
    return readable(receipt)


def verify_receipt(receipt: Any, facts: Facts) -> list[str]:
    """Compare a receipt with itself and with what was found again; return every difference."""
    problems = shape_problems(receipt)
    if problems:
        return problems
    found: list[str] = []
    if receipt["sha256"] != fingerprint(receipt):
        found.append("the receipt was changed: its own hash does not match")
    found += _derived_differences(receipt)
    found += _git_differences(receipt, facts)
    for task in receipt["tasks"]:
        found += _landing_differences(
            task, facts, has_result=receipt["plan"]["result_sha"] not in (None, *facts.cleaned)
        )
    found += _review_differences(receipt, facts)
    found += look_differences(receipt)
    found += red_differences(receipt)
    found += sandbox_differences(receipt)
    found += override_differences(receipt, facts.taken_out)
    found += landing_hash_differences(receipt, facts.carried, facts.events.hashes if facts.events else None)
    found += finish_differences(receipt, trees=facts.trees, commits=facts.commits, frozen=facts.frozen)
    for one in recorded(receipt):
        if facts.outputs.get(one.key, one.sha256) != one.sha256:
            found.append(f"{one.what} ({one.key}) is not the one in the receipt")
    if facts.script != facts.expected_script:
        found.append("the script beside the receipt is not the one that belongs to it")
    if facts.rows is not None:
        found += _row_differences(receipt, facts.rows)
    return found + _event_differences(receipt["events"]["head"], facts.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Something that was recorded while the plan ran, and is in the home's run files."""

    key: str
    """`<run id>/<position>` for the output of a gate's command, with a folder between where it was run again, and
    with `.kept`, `.seen` or `.xml` behind it for what else is known of it; `<run id>/output`, `<run id>/prompt`,
    `<run id>/files` for all else that is written down of a run, `<run id>/patch` for what changed in the checkout
    meanwhile; `held_out/<hash>` for a file of held-out checks."""
    what: str
    """In plain words."""
    sha256: str
    size: int | None = None
    """Of the whole, of which perhaps only parts were kept."""
    of_gate: bool = False
    """Whether a gate's runner wrote it: what agents were told and said is nobody else's business."""


def recorded(receipt: Mapping[str, Any]) -> Iterator[Recorded]:
    """Yield what the receipt knows of the recordings of its runs."""
    for verdict in receipt["verdicts"]:
        for directory, n, command in gate_outputs(verdict):
            yield Recorded(
                key=f"{directory}/{n}",
                what=f"the recorded output of {command['name']!r}",
                sha256=command["output_sha256"],
                size=command["output_bytes"],
                of_gate=True,
            )
            for suffix, what, sha256 in gate_files(command):
                yield Recorded(key=f"{directory}/{n}{suffix}", what=what, sha256=sha256, of_gate=True)
    for run in receipt["runs"]:
        for part, said in (("output", "said"), ("prompt", "was told")):
            if sha256 := run[f"{part}_sha256"]:
                yield Recorded(
                    key=f"{run['id']}/{part}", what=f"what the {run['role']} {said}", sha256=sha256
                )
        if run["files_sha256"]:
            what = f"what is written down of the {run['role']}"
            yield Recorded(key=f"{run['id']}/files", what=what, sha256=run["files_sha256"])
    held = {
        file["sha256"]: file for task in receipt["tasks"] for one in task["held_out"] for file in one["files"]
    }
    for sha256, file in held.items():
        yield Recorded(key=f"held_out/{sha256}", what=f"the held-out file {file['path']}", sha256=sha256)
    for change in kept_patches(receipt):
        what = f"the patch of what changed in the checkout during {change['run']}"
        yield Recorded(key=f"{change['run']}/patch", what=what, sha256=change["patch_sha256"])


# --- rows to entries -------------------------------------------------------------------------------


def _plan(plan: Plan, git: GitFacts) -> Json:
    return {
        "id": plan.id,
        "title": plan.title,
        "status": plan.status.value,
        "reason": plan.reason,
        "source_sha256": plan.source_sha256,
        "branch": plan.branch,
        "base_ref": plan.base_ref,
        "base_sha": plan.base_sha,
        "result_sha": plan.result_sha,
        "result_tree": git.result_tree,
        "diff_sha256": git.diff_sha256,
        "not_ours": [dict(one) for one in git.not_ours],
        "fix_cycles": plan.fix_cycles,
        "doc_sync": [asdict(one) for one in plan.doc_sync],
        **known_of_base(plan),
        "setup": asdict(setup) if (setup := setup_command(plan.policy)) else None,
        "gates": [asdict(gate) for gate in plan.gates],
        "policy_sha256": _hash_of(plain(plan.policy)),
        "policy": {name: plain(getattr(plan.policy, name)) for name in _POLICY},
        **_moments(plan, "created_at", "executed_at", "completed_at", "verified_at"),
    }


def _task(task: Task, attempts: Sequence[Attempt], git: GitFacts) -> Json:
    ordered = sorted(attempts, key=lambda a: (a.n, a.id))
    if task.landed_sha is not None:
        judged = next((a for a in ordered if a.candidate_sha == task.landed_sha), None)
    else:
        judged = next((a for a in ordered if a.id == task.attempt_id), None)
    return {
        "id": task.id,
        "key": task.key,
        "title": task.title,
        "origin": task.origin,
        "type": task.type,
        "prove": task.prove,
        "manual": task.manual,
        "status": task.status.value,
        "failure": _value(task.failure),
        "reason": task.reason,
        "depends_on": list(task.depends_on),
        "described_sha256": _hash_of([task.description, *task.criteria]),
        "criteria": len(in_words(task.criteria, [one.command for one in task.acceptance])),
        "scope": list(task.scope),
        "approved": list(task.approved),
        "acceptance": [asdict(one) for one in task.acceptance],
        "held_out": [plain(one) for one in task.held_out],
        "landed_sha": task.landed_sha,
        "tree": judged.candidate_tree if judged else None,
        "parent_sha": judged.candidate_parent if judged else None,
        "diff_sha256": git.task_diff_sha256.get(task.id),
        "attempts": [
            {
                "id": a.id,
                "n": a.n,
                "state": a.state.value,
                "failure": _value(a.failure),
                "detail": a.detail[:500],
                "wait_reason": a.wait_reason,
                "agent": a.agent,
                "model": a.model,
                "base_sha": a.base_sha,
                "tip_sha": a.tip_sha,
                "touched": list(a.touched),
                "candidate_sha": a.candidate_sha,
                "candidate_tree": a.candidate_tree,
                "verdict_id": a.verdict_id,
                "gate_files": asdict(a.gate_files) if a.gate_files else None,
                "review_id": a.review_id,
                "fix_turns": a.fix_turns,
                **_moments(a, "created_at", "ended_at"),
            }
            for a in ordered
        ],
    }


def _verdict(record: VerdictRecord) -> Json:
    verdict = record.verdict
    bad = [check for check in verdict.checks if is_bad(check)]
    return {
        "id": record.id,
        "tree": record.tree,
        "gate_key": record.gate_key,
        "run_id": record.run_id,
        "status": verdict.status.value,
        "reason": verdict.reason,
        "unknown_before": verdict.unknown_before,
        "left_open": list(verdict.left_open),
        "notes": list(verdict.notes),
        "sha256": _hash_of(plain(verdict)),
        "checks": {s.value: sum(c.status is s for c in verdict.checks) for s in CheckStatus},
        "bad": [
            {"name": c.name, "status": c.status.value, "message": c.message.partition("\n")[0][:200]}
            for c in bad[:_MAX_BAD]
        ],
        "commands": [_ran(command) for command in verdict.commands],
        "reruns": [
            {
                "folder": rerun.folder,
                "alone": rerun.alone,
                "commands": [_ran(command) for command in rerun.commands],
            }
            for rerun in verdict.reruns
        ],
        **_moments(record, "created_at"),
    }


def _ran(command: CommandResult) -> Json:
    return {key: value for key, value in plain(command).items() if key != "tail"}


def _review(review: Review) -> Json:
    """Return the facts of a review: that somebody looked, at what, and how many findings there are."""
    copied = (
        "id task_id attempt_id n run_id agent model parent_sha candidate_sha patch_sha256 "
        "shown_whole tries problem"
    )
    return {
        **{name: getattr(review, name) for name in copied.split()},
        "state": review.state.value,
        "reasons": list(review.reasons),
        "contradicted": list(review.contradicted),
        "blocking": len(blocking(review.findings)),
        "opinions": len(review.findings) - len(blocking(review.findings)),
        "said_sha256": said_hash(review.summary, review.findings),
        **_moments(review, "created_at", "ended_at"),
    }


def _said(review: Review) -> Json:
    """Return what a reviewer says: nobody has checked whether it is true."""
    return {"id": review.id, "summary": review.summary, "findings": [plain(one) for one in review.findings]}


def _run(run: Run, ended_event: str | None) -> Json:
    copied = (
        "id task_id attempt_id label agent account agent_version model permission_mode sandbox prompt_sha256 "
        "exit_code ended_by cost_micros cost_estimated output_sha256 output_bytes files_sha256 reused_run_id"
    )
    return {
        **{name: getattr(run, name) for name in copied.split()},
        **{name: plain(getattr(run, name)) for name in ("sandbox_made_with", "template")},
        "ended_event": ended_event,
        "role": run.role.value,
        "state": run.state.value,
        "failure": _value(run.failure),
        "usage": asdict(run.usage) if run.usage else dict.fromkeys(USAGE),
        **_moments(run, "created_at", "started_at", "ended_at"),
    }


def _value(failure: Failure | None) -> str | None:
    return failure.value if failure else None


def _moments(row: object, *names: str) -> Json:
    values: dict[str, datetime | None] = {name: getattr(row, name) for name in names}
    return {name: at.isoformat() if at else None for name, at in values.items()}


# --- differences -----------------------------------------------------------------------------------


def _derived_differences(receipt: Mapping[str, Any]) -> list[str]:
    derived = derive(receipt)
    found = [
        f"{name} does not follow from the facts: it says {receipt[name]!r}, they say {derived[name]!r}"
        for name in _DERIVED
        if receipt[name] != derived[name]
    ]
    for task in receipt["tasks"]:
        outcome = derived["outcomes"][task["id"]]
        if task["outcome"] != outcome:
            found.append(f"task {task['key']!r} says {task['outcome']!r}, the facts say {outcome!r}")
    return found


def _row_differences(receipt: Mapping[str, Any], rows: Mapping[str, Any]) -> list[str]:
    """Say where the home's rows differ from a receipt; what git tells is compared with git."""
    found = []
    for part in ("project", "plan"):
        mine, theirs = ({**one[part], **dict.fromkeys(_FROM_GIT)} for one in (receipt, rows))
        if mine != theirs:
            found.append(f"the home's rows say otherwise of the {part}: {_named(mine, theirs)}")
    # Without a tree the result is not at hand, and nothing is known of what is on its way.
    if rows["plan"]["result_tree"] is not None and receipt["plan"]["not_ours"] != rows["plan"]["not_ours"]:
        found.append("the branch says otherwise of the commits that no task made")
    if receipt["overrides"] != rows["overrides"]:
        found.append("the home's events say otherwise of what people decided")
    if receipt["checkout_changes"] != rows["checkout_changes"]:
        found.append("the home's events say otherwise of what changed in the checkout")
    for part in (
        "tasks",
        "verdicts",
        "reviews",
        "claims",
        "opinions",
        "looks",
        "reports",
        "runs",
        "finishes",
    ):
        mine, theirs = (
            {one["id"]: {**one, **dict.fromkeys(_FROM_GIT)} for one in whole[part]}
            for whole in (receipt, rows)
        )
        for row in dict.fromkeys((*mine, *theirs)):
            if mine.get(row) != theirs.get(row):
                differing = _named(mine.get(row, {}), theirs.get(row, {}))
                found.append(f"the home's rows say otherwise of {row}: {differing}")
    return found


def _named(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    return ", ".join(sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name)))


def _review_differences(receipt: Mapping[str, Any], facts: Facts) -> list[str]:
    """Say where a review does not fit what was said in it, its run, or what landed because of it."""
    said = {one["id"]: one for one in receipt["claims"]}
    runs = {one["id"]: one for one in receipt["runs"]}
    found = []
    for review in receipt["reviews"]:
        claims = said.pop(review["id"], {"summary": "", "findings": []})
        findings = tuple(
            Finding(**{**one, "severity": Severity(one["severity"])}) for one in claims["findings"]
        )
        if said_hash(claims["summary"], findings) != review["said_sha256"]:
            found.append(f"what was said in {review['id']} is not what its hash stands for")
        if len(blocking(findings)) != review["blocking"]:
            found.append(f"{review['id']} has another number of blocking findings than it says")
        run = runs.get(review["run_id"])
        if run is None or run["role"] != Role.REVIEWER.value:
            found.append(f"{review['id']} names a run that no reviewer made: {review['run_id']}")
    found += [f"{one} has findings, and there is no such review" for one in said]
    for task in receipt["tasks"]:
        review = review_of(receipt, task)
        patch = facts.patches.get(task["id"])
        if review is not None and patch is not None and patch != review["patch_sha256"]:
            found.append(f"what task {task['key']!r} landed is not what {review['id']} looked at")
    return found


def _event_differences(head: str | None, events: EventFacts | None) -> list[str]:
    if events is None:
        return []
    found = []
    if events.broken_at is not None:
        found.append(f"the chain of events is broken at event {events.broken_at}")
    # Events may have been added since: the receipt's last one must only be among them.
    if head is not None and head not in events.hashes:
        found.append("the event that was the last one is not in the home's chain of events")
    return found


def _git_differences(receipt: Mapping[str, Any], facts: Facts) -> list[str]:
    plan = receipt["plan"]
    named = [plan["base_sha"], plan["result_sha"], *(task["landed_sha"] for task in receipt["tasks"])]
    commits = [sha for sha in dict.fromkeys(named) if sha is not None]
    found = [
        f"commit {sha} does not exist"
        for sha in commits
        if facts.trees.get(sha) is None and sha not in facts.cleaned
    ]
    result = plan["result_sha"]
    if result is None or result in facts.cleaned:
        return found
    if facts.trees.get(result) not in (None, plan["result_tree"]):
        found.append(f"the result's tree is {facts.trees[result]}, not {plan['result_tree']}")
    if facts.damage is not None:
        found.append(f"the repository is damaged: {facts.damage}")
    if not facts.contains_base:
        found.append("the result does not contain the base commit")
    if plan["diff_sha256"] is not None and facts.diffs.get(plan["id"]) != plan["diff_sha256"]:
        found.append("the diff from base to result is not the one in the receipt")
    return found


def _landing_differences(task: Mapping[str, Any], facts: Facts, *, has_result: bool) -> list[str]:
    name, landed = repr(task["key"]), task["landed_sha"]
    landings = list(facts.landings.get(task["id"], ()))
    if landed is None:
        return [f"task {name} did not land, but {sha} carries its trailer" for sha in landings]
    if landed in facts.cleaned:
        return []
    found = []
    # Without a result there is no line yet on which to look for the landing.
    if has_result and landings != [landed]:
        seen = ", ".join(landings) or "nothing"
        found.append(f"task {name} should have landed once, as {landed}; found: {seen}")
    if facts.trees.get(landed) not in (None, task["tree"]):
        found.append(f"task {name} landed the tree {facts.trees[landed]}, but {task['tree']} was judged")
    if facts.parents.get(landed) != task["parent_sha"]:
        found.append(f"task {name} landed on {facts.parents.get(landed)}, not on {task['parent_sha']}")
    if facts.diffs.get(task["id"]) != task["diff_sha256"]:
        found.append(f"the diff of task {name} is not the one in the receipt")
    return found

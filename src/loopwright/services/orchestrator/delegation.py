"""Delegate one stage to one role: a plan of one task in a clone of the round's branch, and its result."""

import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

from loopwright.adapters.git import GitRepository
from loopwright.adapters.git.branches.round_branches import RoundBranches
from loopwright.config.resolve import Settings
from loopwright.core.orchestrator.manifest import CONTRACT_FILE, foreign_to, role_file
from loopwright.core.orchestrator.records import Retry
from loopwright.core.policy.graph import strayed
from loopwright.core.rows.model import Plan, Task
from loopwright.core.values.policy import GateCommand, Policy, ReviewPolicy
from loopwright.core.values.round_states import STAGE_KIND, RoundRole
from loopwright.core.values.states import PlanState
from loopwright.engine.intake.submit import Submission, Submitted, plan_of_source
from loopwright.ports import Base, PlannedTask, PlannedWork, Tx
from loopwright.prompts import packaged
from loopwright.services.driving.driver import Drive
from loopwright.services.driving.recorded_environments import submitting, with_environment
from loopwright.services.homes.caller import caller_bounds
from loopwright.services.homes.context import Place, actor
from loopwright.services.homes.session import Session
from loopwright.services.orchestrator.control_plane import ControlError, ControlPlane
from loopwright.services.orchestrator.controller_files import ControllerFiles
from loopwright.services.orchestrator.record_check import MODULE
from loopwright.services.plans.agent_answers import found_wrong, submitted_for, who

KIND: Final = STAGE_KIND
_CHECK_S: Final = 60.0
_CYCLES: Final = (("plan", "implement", "review"), ("update-roadmap", "update-review"))
"""Stages that repeat until one of them leads on."""
_TRIES: Final = 2
"""The first, and one more with the problems that its check found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Everything that the controller works with."""

    at: Session
    place: Place
    settings: Settings
    repository: GitRepository
    branches: RoundBranches
    plane: ControlPlane
    writer: ControllerFiles
    drive: Drive
    tell: Callable[[str], None]
    base_branch: str
    project_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One stage for one role."""

    subject_id: str
    stage: str
    role: RoundRole
    branch: str
    worktree_path: str
    began: str
    """The commit whose role files count: the start of the round."""
    files: tuple[str, ...]
    lineage: Mapping[str, str]
    check: tuple[str, ...]
    """The arguments of the record check."""
    gates: tuple[GateCommand, ...] = ()
    acceptance: tuple[GateCommand, ...] = ()
    """Further commands that the result of this stage has to pass."""
    told: Mapping[str, str] = field(default_factory=dict)
    """Further variables of the template, such as the review's requests."""
    retry: Retry | None = None
    revision: str = ""
    """The folder of a new roadmap revision that the planner may write."""
    slices: tuple[PlannedTask, ...] = ()
    """Further tasks beside this one, which integrates them; empty without a fan-out."""
    needs: tuple[str, ...] = ()
    """The slices that have to be complete before this stage begins."""

    @property
    def source(self) -> str:
        """Identifies the stage's plans."""
        return f"{KIND}:{self.subject_id}/{self.stage}"

    @property
    def attempt(self) -> int:
        """The number of the try."""
        return self.retry.attempt if self.retry is not None else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegated:
    """The result of a stage."""

    plan_id: str
    sha: str | None = None
    """What its plan landed; None if it has no usable result."""
    problem: str = ""
    interrupted: bool = False
    """Whether the plan is unfinished: the user paused it, or it waits for the user or for an account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A stage whose plan was submitted."""

    assignment: Assignment
    tip: str
    submitted: Submitted
    submitter: str


async def begin(desk: Desk, asked: Assignment, held: ExitStack) -> Begun:
    """Submit a stage's plan; the same try of the same stage on the same commit is the same plan."""
    tip = await desk.branches.keep(asked.worktree_path, f"Keep what the worktree of {asked.subject_id} holds")
    text = await brief(desk, asked, tip)
    submitter = held.enter_context(submitting(desk.at.home))
    submission = Submission(
        root=desk.place.root,
        subfolder=desk.place.subfolder,
        source_kind=KIND,
        source_path=asked.source,
        work=_work(asked, text, tip),
        base=Base(ref=asked.branch, sha=tip),
        policy=_policy(desk, asked),
        gates=asked.gates,
        actor=actor(),
        bounds=caller_bounds(),
    )
    made = await submitted_for(desk.at, with_environment(desk.at.home, submission, submitter), again=False)
    return Begun(assignment=asked, tip=tip, submitted=made, submitter=submitter)


async def end(desk: Desk, begun: Begun) -> Delegated:
    """Drive a stage's plan until it rests, and move an allowed result to the round's branch."""
    asked = begun.assignment
    rested = await desk.drive(desk.at, begun.submitted.plan, begun.submitter)
    store = desk.at.home.store
    plan = await store.read(lambda tx: tx.get(Plan, rested.plan_id))
    assert plan is not None, "a plan that was driven is there"
    if plan.status is PlanState.VERIFIED and plan.result_sha is not None:
        foreign = await _foreign(desk, asked, plan, begun.tip)
        if foreign:
            return Delegated(
                plan_id=plan.id,
                problem=f"the {asked.role} changed files that it does not own: {', '.join(foreign[:5])}",
            )
        if not await desk.branches.forward(asked.worktree_path, plan.result_sha):
            return Delegated(plan_id=plan.id, problem=f"{asked.branch} moved while the {asked.role} worked")
        return Delegated(plan_id=plan.id, sha=plan.result_sha)
    if plan.status in (PlanState.FAILED, PlanState.CANCELLED):
        wrong = await store.read(lambda tx: found_wrong(tx, plan.id))
        said = "; ".join(wrong) or plan.reason or f"the {asked.role} left no result"
        return Delegated(plan_id=plan.id, problem=f"{asked.stage}: {said}"[:2_000])
    return Delegated(plan_id=plan.id, interrupted=True)


async def _foreign(desk: Desk, asked: Assignment, plan: Plan, tip: str) -> tuple[str, ...]:
    """Return the forbidden changes of a stage: those of another role, or outside a worker's write scope."""
    result = plan.result_sha or tip
    changed = await desk.repository.changed(tip, result)
    found = foreign_to(asked.role, tuple(changed), asked.subject_id, revision=asked.revision)
    if found or not asked.slices:
        return found
    tasks = await desk.at.home.store.read(lambda tx: tx.find(Task, plan_id=plan.id))
    scopes = {one.id: one.scope for one in tasks if one.scope}
    for landing in await desk.repository.steps(result, since=tip):
        scope = next((scopes[one] for one in landing.tasks if one in scopes), ())
        found += strayed(await desk.repository.changed(landing.parent, landing.sha), scope)
    return found


async def has_result(desk: Desk, subject_id: str, stage: str, tip: str) -> bool:
    """Return whether the tip of a round's branch is what this stage landed, and no other stage came after it.

    A review with unchanged output lands nothing: the tip is still that of the stage before it.
    """
    place = desk.place

    def load(tx: Tx) -> Plan | None:
        found = {
            one: plan_of_source(tx, place.root, place.subfolder, f"{KIND}:{subject_id}/{one}")
            for one in next((cycle for cycle in _CYCLES if stage in cycle), (stage,))
        }
        mine = found[stage]
        newer = (one for one in found.values() if one and mine and one.created_at > mine.created_at)
        return mine if not any(newer) else None

    plan = await desk.at.home.store.read(load)
    return plan is not None and plan.status is PlanState.VERIFIED and plan.result_sha == tip


async def brief(desk: Desk, asked: Assignment, tip: str) -> str:
    """Return the role's prompt: the contract and its role file as committed when the round began, and the stage."""
    files = []
    for path in (CONTRACT_FILE, role_file(asked.role)):
        text = await role_text(desk, asked.began, path)
        if not text:
            raise ControlError(
                f"{path} is missing in commit {asked.began[:10]}, with which {asked.subject_id} began, and on "
                f"{desk.base_branch}; commit it there"
            )
        files.append(text)
    told = dict.fromkeys(("foreign", "request", "changes", "diagnosis", "refresh"), "") | dict(asked.told)
    return packaged("parts/round").fill(
        {
            "role": asked.role.value,
            "contract": files[0],
            "prompt": files[1],
            "round_id": asked.subject_id,
            "stage": asked.stage,
            "branch": asked.branch,
            "base": tip,
            "lineage": "\n".join(f"- {key}: {value}" for key, value in asked.lineage.items()),
            "files": "\n".join(f"- {one}" for one in asked.files),
            **told,
        }
    )


async def role_text(desk: Desk, began: str, path: str) -> str:
    """Return a file of a role as committed when its round began; if there was none, as the user committed it later."""
    for sha in (began, await desk.branches.tip(desk.base_branch)):
        if text := (await desk.repository.file_at(sha, path) or "").strip():
            return text
    return ""


def record_check(*arguments: str) -> GateCommand:
    """Return the command that checks a stage's files."""
    # Not from its working folder, which is the project's: modules there may have the names of Loopwright's.
    words = (sys.executable, "-P", "-m", MODULE, *arguments)
    return GateCommand(name="records", command=shlex.join(words), timeout_s=_CHECK_S)


def _work(asked: Assignment, text: str, tip: str) -> PlannedWork:
    last = PlannedTask(
        key=asked.stage,
        title=f"{asked.subject_id}: {asked.stage} by the {asked.role}"[:200],
        description=text,
        acceptance=(*asked.acceptance, record_check(*asked.check)),
        depends_on=asked.needs,
    )
    identity = f"{asked.source} {tip} {asked.attempt} {asked.check} {text}"
    return PlannedWork(
        title=last.title,
        tasks=(*asked.slices, last),
        sha256=sha256(identity.encode()).hexdigest(),
    )


def _policy(desk: Desk, asked: Assignment) -> Policy:
    policy, values = desk.settings.policy(), desk.settings.values
    named, model = {
        RoundRole.PLANNER: (values.planner.agent, values.planner.model),
        RoundRole.REVIEWER: (policy.review.agent, policy.review.model),
    }.get(asked.role, (None, None))
    if asked.retry is not None and asked.retry.mechanism == "fresh-agent" and policy.fallback:
        named, _, other = policy.fallback[(asked.retry.same_mechanism - 1) % len(policy.fallback)].partition(
            ":"
        )
        model = other or None
    by = who(desk.settings, named, model, fallback=True)
    works = asked.role is RoundRole.IMPLEMENTER
    return replace(
        policy,
        agent=by.agent,
        model=by.model,
        max_attempts=policy.max_attempts if works else _TRIES,
        fix_cycles=policy.fix_cycles if works else 0,
        on_task_error="fail",
        autonomy="auto",
        finish="leave",
        allow_unverified=False,
        # The reviewer of the round has its own stage.
        review=ReviewPolicy(),
    )

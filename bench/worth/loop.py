"""Loopwright at one task after the other: each decision is made by the function that the product makes it with."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bench.worth import rows
from bench.worth.agents import Nature, Work, work
from bench.worth.assumptions import Values
from bench.worth.learning import Lessons
from bench.worth.plain import Ended, minutes
from loopwright.core.healing.diagnosis import Diagnosis, Seen, diagnose
from loopwright.core.healing.earlier_tries import Try
from loopwright.core.healing.steps import LADDER, SPLIT_ORIGIN, may_heal, next_step, told_by, useless
from loopwright.core.policy import fallback
from loopwright.core.policy.landing import (
    Alone,
    AskReviewer,
    Decided,
    Found,
    Land,
    Objection,
    Reject,
    SendBack,
    Want,
    judge_candidate,
)
from loopwright.core.policy.red_first import RedFound
from loopwright.core.policy.retry import Again, Failed, after_failure
from loopwright.core.replies.investigations import Investigation
from loopwright.core.rows.healing_rows import Healing
from loopwright.core.rows.model import Attempt, Plan, Review, Task
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict
from loopwright.core.values.healing import Cause, HealStep
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import HealingState, LessonState

PARTS = 2
"""So many parts a task is split into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanisms:
    """What is switched on."""

    policy: Policy
    gates: bool = True
    evidence: bool = True
    clean: bool = True
    """Retries begin on a clean base: the product has no switch for that."""
    held_out: bool = False
    lessons: bool = False
    steps: frozenset[HealStep] = frozenset(HealStep)
    """The healing steps that may be chosen."""


@dataclass
class Spent:
    """What one task has cost so far."""

    dollars: float = 0.0
    gates: int = 0


@dataclass
class Project:
    """One project: what is learned at one task counts for the next."""

    a: Values
    on: Mechanisms
    learned: Lessons = field(default_factory=Lessons)
    healings: list[Healing] = field(default_factory=list)

    def run(self, of: Nature) -> Ended:
        """Bring one task to its end."""
        return _Course(self, of).run()


class _Course:
    """The attempts at one task."""

    def __init__(self, project: Project, of: Nature) -> None:
        self._project, self._of, self._a, self._on = project, of, project.a, project.on
        self._plan = rows.plan(project.on.policy)
        self._task = rows.task(of, self._plan, held_out=project.on.held_out)
        self._spent = Spent()
        self._seen: list[Seen] = []
        self._steps: list[HealStep] = []
        self._healing: list[int] = []
        """Which steps of the project are being tried."""
        self._cause: Cause | None = None

    def run(self) -> Ended:
        n = 0
        while True:
            n += 1
            found, attempt = self._attempt(n)
            failed = self._judged(found, attempt)
            if failed is None:
                self._settle(HealingState.HEALED)
                if self._on.lessons:
                    self._project.learned.landed(attempt)
                return self._ended(is_done=True, is_right=found.is_right)
            if not self._continues(failed):
                self._settle(HealingState.FAILED)
                return self._ended(is_done=False, is_right=False)

    def _ended(self, *, is_done: bool, is_right: bool) -> Ended:
        spent = self._spent
        took = minutes(self._a, spent.dollars, spent.gates)
        return Ended(is_done=is_done, is_right=is_right, dollars=spent.dollars, minutes=took)

    # --- working --------------------------------------------------------------------------------------

    def _attempt(self, n: int) -> tuple[Work, Attempt]:
        a, step = self._a, self._steps[-1] if self._steps else None
        agent, model = fallback.meant(self._task, self._plan.policy)
        attempt = rows.attempt(self._task, n, agent)
        lifts, factor = [a["workspace_pp"], a["contract_pp"]], a["workspace_cost"]
        if n > 1 and self._on.evidence and step not in (HealStep.FRESH, HealStep.PRUNE):
            lifts.append(a["evidence_pp"])
        if n > 1 and not self._on.clean:
            lifts.append(a["dirty_pp"])
        if self._on.lessons:
            told = self._project.learned.told(self._task, attempt)
            lifts += [a["lesson_pp"] for one in told if one.state is not LessonState.REMOVED]
        match step:
            case HealStep.RESTATE if self._of.cause is Cause.UNCLEAR:
                lifts.append(a["restate_pp"])
            case HealStep.SPLIT:
                factor *= PARTS
                if self._of.cause is Cause.TOO_LARGE:
                    lifts.append(a["split_good_pp" if self._of.is_divisible else "split_bad_pp"])
            case _:
                pass
        if model == "strong":
            lifts.append(a["stronger_pp"])
            factor *= a["stronger_cost"]
        self._spent.dollars += a["cost"] * factor
        # Another model of the same make finds the same tasks hard.
        return work(self._of, a, n=n, agent=agent, lifts_pp=lifts), attempt

    # --- judging --------------------------------------------------------------------------------------

    def _judged(self, found: Work, attempt: Attempt) -> Failed | None:
        """Return why the work does not land; None if it does."""
        if found.is_refused:
            return self._failed(attempt, Failure.REFUSAL, "the model refused", None)
        if not self._on.gates:
            return None if found.is_claimed else self._failed(attempt, Failure.AGENT_ERROR, "I cannot", None)
        early = rows.failure(self._of, tells=found.tells)
        if not found.is_right and not found.passes and early is not Failure.GATE:
            return self._failed(attempt, early, early.value, None)
        decision = self._decided(found, attempt)
        if isinstance(decision, Land):
            self._spent.gates += 1  # two runs per landing, as the benchmark counts them
            return None
        verdict = rows.verdict(self._of, passes=found.passes, tells=found.tells)
        return self._failed(attempt, decision.failure, decision.detail, verdict)

    def _decided(self, found: Work, attempt: Attempt) -> Land | Reject:
        facts = Found(plan=self._plan, task=self._task, attempt=attempt)
        reviews: tuple[Review, ...] = ()
        while True:
            decision = judge_candidate(facts)
            match decision:
                case Want.VERDICT:
                    self._spent.gates += 1
                    verdict = rows.verdict(self._of, passes=found.passes, tells=found.tells)
                    facts = replace(facts, verdict=verdict)
                case Want.HELD_OUT:
                    verdict = rows.verdict(self._of, passes=not found.is_found_held_out, tells=False)
                    facts = replace(facts, held_out=verdict)
                case Want.ALONE:
                    facts = replace(facts, alone=Alone(passes=False, evidence="it fails"))
                case Want.RED_PROOF:
                    facts = replace(facts, red=RedFound())
                case Want.DECISIONS | AskReviewer():
                    if isinstance(decision, AskReviewer):
                        reviews = (self._review(found, attempt),)
                    patch = rows.patch(self._of, attempt.n)
                    facts = replace(facts, decided=Decided(patch=patch, reviews=reviews))
                case SendBack():
                    # That the agent fixes it in the same attempt is not assumed: another attempt follows.
                    blocked = Objection(failure=Failure.REVIEW, detail="a reviewer blocks it")
                    return Reject(objections=(blocked,))
                case Land() | Reject():
                    return decision
                case _:
                    raise AssertionError(f"a simulated candidate never leads to {decision}")

    def _review(self, found: Work, attempt: Attempt) -> Review:
        a, chance = self._a, self._of.chance("review", attempt.n)
        self._spent.dollars += a["cost"] * a["review_cost"]
        blocks = chance.random() < (a["review_refuses"] if found.is_right else a["review_finds"])
        return rows.review(attempt, 1, blocks=blocks)

    def _failed(self, attempt: Attempt, failure: Failure, detail: str, verdict: Verdict | None) -> Failed:
        tried = Try(n=attempt.n, agent=attempt.agent, failure=failure, touched=("a.py",), found=detail)
        seen = Seen(tried=tried, verdict=verdict)
        self._seen.append(seen)
        if self._on.lessons:
            self._project.learned.failed(attempt, seen)
        return Failed(failure=failure, detail=detail)

    # --- what follows ---------------------------------------------------------------------------------

    def _continues(self, failed: Failed) -> bool:
        policy = self._plan.policy
        if fallback.handed_on(self._task, failed.failure, policy):
            self._task = replace(self._task, passed_over=self._task.passed_over + 1)
        after = after_failure(self._task, failed, policy, now=rows.AT)
        self._task = replace(self._task, attempts=after.attempts, call_failures=after.call_failures)
        if isinstance(after, Again):
            return True
        self._settle(HealingState.FAILED)
        return may_heal(self._plan, self._task, failed) and self._heals()

    def _heals(self) -> bool:
        found = diagnose(self._seen, name="t", title="t")
        assert found is not None, "an attempt failed"
        if self._cause is not None:
            found = replace(found, cause=self._cause)
        chosen = self._next(found)
        if chosen is HealStep.INVESTIGATE:
            self._cause = self._named()
            said = Investigation(cause=self._cause, why="it says so")
            chosen = self._next(told_by(found, said))
        if chosen is None:
            return False
        changes: dict[str, object] = {"max_attempts": max(self._task.max_attempts, self._task.attempts + 1)}
        if chosen is HealStep.OTHER_AGENT:
            changes["passed_over"] = self._task.passed_over + 1
        elif chosen is HealStep.STRONGER:
            agent, model = fallback.named(self._plan.policy.heal.stronger or "")
            changes |= {"agent": agent, "model": model, "passed_over": 0}
        elif chosen is HealStep.SPLIT:
            changes["origin"] = SPLIT_ORIGIN
        self._task = replace(self._task, **changes)  # type: ignore[arg-type]
        return True

    def _next(self, found: Diagnosis) -> HealStep | None:
        off = frozenset(HealStep) - self._on.steps
        in_vain = useless(self._project.healings, rows.AT)
        chosen = next_step(self._plan, self._task, found, self._steps, off | in_vain)
        if chosen is None:
            return None
        assert chosen.step in LADDER[found.cause], "a step is one of the ladder"
        self._steps.append(chosen.step)
        self._healing.append(len(self._project.healings))
        self._project.healings.append(_row(self._task, self._plan, found, chosen.step, len(self._steps)))
        return chosen.step

    def _named(self) -> Cause:
        """Let an investigator name a cause."""
        a, chance = self._a, self._of.chance("investigator")
        self._spent.dollars += a["cost"] * a["review_cost"]
        if chance.random() < a["named_right"]:
            return self._of.cause
        return chance.choice([one for one in Cause if one is not self._of.cause])

    def _settle(self, state: HealingState) -> None:
        for n in self._healing:
            self._project.healings[n] = replace(self._project.healings[n], state=state, ended_at=rows.AT)
        self._healing = []


def _row(task: Task, plan: Plan, found: Diagnosis, step: HealStep, n: int) -> Healing:
    return Healing(
        id=f"heal_{task.id}_{n}",
        project_id="project",
        plan_id=plan.id,
        task_id=task.id,
        n=n,
        step=step,
        cause=found.cause,
        signature=found.signature.id,
        because=found.because,
        created_at=rows.AT,
    )


def tasks_of(project: Project, natures: Sequence[Nature]) -> list[Ended]:
    """Bring the tasks of a project to their ends, one after the other."""
    return [project.run(one) for one in natures]

"""The evaluation of a plan: begun once, then completed with facts about the project and an agent's opinion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from loopwright.core.plans.evaluating import OVERRIDABLE, Finding, Weight, findings
from loopwright.core.plans.plan_evaluators import Judgement, as_findings
from loopwright.core.policy import graph
from loopwright.core.values.documents import document
from loopwright.core.values.errors import BadPlan, Refused
from loopwright.engine.rows.source_marks import SETTLED
from loopwright.ports import PlannedTask, PlannedWork


def to_do(work: PlannedWork) -> tuple[PlannedTask, ...]:
    """Return the items of a source that are not done."""
    return tuple(task for task in work.tasks if task.mark not in SETTLED)


def edges_of(tasks: Sequence[PlannedTask]) -> dict[str, tuple[str, ...]]:
    """Return the predecessors of each task; items that were done before count as none."""
    known = {task.key for task in tasks}
    return {task.key: tuple(dict.fromkeys(key for key in task.depends_on if key in known)) for task in tasks}


def order_of(
    items: Sequence[PlannedTask], tasks: Sequence[PlannedTask], edges: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the tasks that come before each task in the source's order; it leads through settled ones."""
    named = {item.key: item.after for item in items}
    kept, _ = graph.ordered(edges, graph.order_among([task.key for task in tasks], named))
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What is known about a plan before it runs, and whether it may run."""

    source: str
    """The name of the plan in messages."""
    despite: str
    """The user's reason to run it although it is refused."""
    tasks: int
    critical_path: int
    without_acceptance: int
    own: tuple[Finding, ...]
    """Findings about the plan itself."""
    reported: tuple[Finding, ...]
    """Findings of an evaluation report in the source."""
    is_passed: bool
    """Whether an evaluation report in the source approves it."""
    seen: tuple[Finding, ...] = ()
    """Findings about the project, and about earlier work in it."""
    wanted: tuple[str, ...] = ()
    """Why an agent has to evaluate the plan before it runs."""
    judgement: Judgement | None = None
    """That agent's judgement."""
    rests: bool = False
    """Whether it is for a draft: nothing runs before the user has seen the objections."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings."""
        found = (*self.own, *self.seen, *self.reported, *as_findings(self.judgement))
        if not self.wanted or self.judgement is not None or self.is_passed:
            return found
        text = f"it needs an evaluation and has none ({'; '.join(self.wanted)})"
        return (*found, Finding(check="unevaluated", weight=Weight.OBJECTED, text=text))

    @property
    def against(self) -> tuple[str, ...]:
        """Why it is refused, unless the user gives a reason to run it."""
        return tuple(one.text for one in self.findings if one.weight in OVERRIDABLE)

    def with_seen(self, seen: Sequence[Finding]) -> "Evaluation":
        """Add findings about more than the plan itself; raise if it may not run."""
        return replace(self, seen=tuple(seen)).checked()

    def with_judgement(self, wanted: Sequence[str], judgement: Judgement | None) -> "Evaluation":
        """Add why an agent had to evaluate it, and its judgement; raise if it may not run."""
        return replace(self, wanted=tuple(wanted), judgement=judgement).checked()

    def checked(self) -> "Evaluation":
        """Return it; raise `BadPlan` if nothing could run, `Refused` if the user has to give a reason."""
        impossible = tuple(one.text for one in self.findings if one.weight is Weight.IMPOSSIBLE)
        if impossible:
            raise BadPlan(self.source, impossible)
        if self.against and not self.despite and not self.rests:
            raise Objected(self)
        return self

    def record(self) -> dict[str, Any]:
        """Return what is stored with the plan."""
        return {
            "tasks": self.tasks,
            "critical_path": self.critical_path,
            "without_acceptance": self.without_acceptance,
            "findings": [
                {"check": one.check, "weight": one.weight.value, "text": one.text} for one in self.findings
            ],
            "evaluator": document(self.judgement) if self.judgement is not None else None,
            "despite": self.despite if self.against else "",
            "passed": not self.against,
        }


class Objected(Refused):
    """A plan may not run because its evaluation objects to it."""

    def __init__(self, evaluation: Evaluation) -> None:
        super().__init__(
            f"{evaluation.source}: {'; '.join(evaluation.against)}",
            code="plan_objected",
            hint='fix that, or say why the plan is to run all the same: --despite "..."',
        )
        self.evaluation = evaluation


UNEVALUATED: Final = Evaluation(
    source="",
    despite="",
    tasks=0,
    critical_path=0,
    without_acceptance=0,
    own=(Finding(check="unevaluated", weight=Weight.OBJECTED, text="its tasks are not written yet"),),
    reported=(),
    is_passed=False,
    rests=True,
)
"""For a draft whose tasks an agent still has to write."""


def evaluate(work: PlannedWork, source: str, *, despite: str = "", rests: bool = False) -> Evaluation:
    """Evaluate a plan by itself; raise `BadPlan` or `Refused` if it may not run.

    `despite` is the user's reason to run a plan that would be refused; a draft (`rests`) is not refused
    before it is dispatched.
    """
    settled = {task.key for task in work.tasks if task.mark in SETTLED}
    own = tuple(findings(work.tasks, settled=settled))
    if impossible := tuple(one.text for one in own if one.weight is Weight.IMPOSSIBLE):
        raise BadPlan(source, impossible)
    tasks = to_do(work)
    return Evaluation(
        source=source,
        despite=despite,
        tasks=len(tasks),
        critical_path=len(graph.critical_path(waits_of(work.tasks, tasks))),
        without_acceptance=sum(not task.acceptance and not task.manual for task in tasks),
        own=own,
        reported=_reported(work),
        is_passed=work.evaluated == "passed",
        rests=rests,
    ).checked()


def waits_of(items: Sequence[PlannedTask], tasks: Sequence[PlannedTask]) -> dict[str, tuple[str, ...]]:
    """Return the predecessors of each task, by dependency or by order."""
    edges = edges_of(tasks)
    order = order_of(items, tasks, edges)
    return {key: tuple(dict.fromkeys((*deps, *order[key]))) for key, deps in edges.items()}


def _reported(work: PlannedWork) -> tuple[Finding, ...]:
    """Return the objections of the evaluation report in the source."""
    said = []
    if work.evaluated == "failed":
        said.append(("evaluated", "its evaluation report says that it failed"))
    if work.track is not None and work.track.stopped:
        said.append(("stopped", work.track.stopped))
    return tuple(Finding(check=check, weight=Weight.OBJECTED, text=text) for check, text in said)

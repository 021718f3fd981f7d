"""The agent that evaluates a plan before it runs: when it is needed, its prompt, and the effect of its answer.

It did not write the plan, and its answer is a claim. Only findings that it calls blocking, about a task of
the plan, keep the plan from running. The user may run it anyway.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from loopwright.core.plans.evaluating import Finding, Weight
from loopwright.core.policy.complexity import complexity_of
from loopwright.core.replies.answers import clean, findings_schema
from loopwright.core.replies.reviews import Severity
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.templates import Template

KEY: Final = "evaluate"
"""The key of the only task of a plan that evaluates another plan."""
CHECK: Final = "plan_evaluation"
"""The name of the check that its answer has to pass."""
FILE: Final = "loopwright.evaluation.json"
FENCE: Final = "loopwright-evaluation"
MANY: Final = 5
"""A plan with at least this many tasks is complex."""
MOST: Final = 100
_LONGEST: Final = 2000
_SHOWN: Final = 200_000
_BRIEF: Final = 500
_NAMED: Final = 5

SCHEMA: Final = findings_schema(
    {"task": {"type": "string", "description": "The id of a task, as the plan has it."}},
    (one.value for one in Severity),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One remark of an evaluator about a plan."""

    task: str
    severity: Severity
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The result of an evaluation."""

    plan_id: str
    """The plan of the evaluation, which has its run, its cost and its receipt."""
    agent: str
    model: str | None
    summary: str
    findings: tuple[Remark, ...]

    @property
    def blocking(self) -> tuple[Remark, ...]:
        """The findings that keep the plan from running."""
        return tuple(one for one in self.findings if one.severity is Severity.BLOCKING)


# --- when ------------------------------------------------------------------------------------------------


def reasons(mode: str, tasks: Sequence[Any]) -> tuple[str, ...]:
    """Return why a plan needs an evaluation; empty if it does not. `tasks` are as their source gives them."""
    if mode == "off":
        return ()
    if mode == "always":
        return ("every plan is evaluated",)
    found = [f"it has {len(tasks)} tasks"] if len(tasks) >= MANY else []
    hard = [task.key for task in tasks if _is_hard(task)]
    if hard:
        more = f" and {len(hard) - _NAMED} more" if len(hard) > _NAMED else ""
        found.append(f"these tasks are complex: {', '.join(hard[:_NAMED])}{more}")
    return tuple(found)


def _is_hard(task: Any) -> bool:
    found = complexity_of(
        title=task.title,
        description=task.description,
        kind=task.type,
        dependencies=len(task.depends_on),
        checks=len(task.acceptance) + len(task.criteria),
        said=task.complexity,
    )
    return found.level == "high"


# --- its prompt ------------------------------------------------------------------------------------------


def instructions(
    template: Template, title: str, tasks: Sequence[Any], gates: Sequence[GateCommand], *, goal: str
) -> str:
    """Return the task of an evaluator."""
    return template.fill({"goal": _indented(goal), "plan": _indented(_shown(title, tasks, gates))})


def _shown(title: str, tasks: Sequence[Any], gates: Sequence[GateCommand]) -> str:
    whole = _as_text(title, tasks, gates, None)
    return whole if len(whole) <= _SHOWN else _as_text(title, tasks, gates, _BRIEF)[:_SHOWN]


def _as_text(title: str, tasks: Sequence[Any], gates: Sequence[GateCommand], brief: int | None) -> str:
    told = [
        {
            "id": task.key,
            "title": task.title,
            "description": task.description[:brief],
            "depends_on": list(task.depends_on),
            "acceptance": [one.command for one in task.acceptance],
            "criteria": list(task.criteria),
            "scope": list(task.scope),
        }
        for task in tasks
    ]
    plan = {"title": title, "gates": [one.command for one in gates], "tasks": told}
    return json.dumps(plan, indent=1, ensure_ascii=False)


# --- its answer ------------------------------------------------------------------------------------------


def read_findings(text: str, keys: Sequence[str]) -> tuple[str, tuple[Remark, ...]] | str:
    """Return the summary and the findings of an answer, or what is wrong with it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "it is not a JSON object"
    listed = value.get("findings") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        return "`findings` is not a list"
    found: list[Remark] = []
    for n, one in enumerate(listed, 1):
        remark = _remark(one, keys)
        if isinstance(remark, str):
            return f"finding {n}: {remark}"
        found.append(remark)
    ranked = sorted(dict.fromkeys(found), key=lambda one: one.severity is not Severity.BLOCKING)
    return clean(value.get("summary"), _LONGEST), tuple(ranked[:MOST])


def _remark(value: object, keys: Sequence[str]) -> Remark | str:
    if not isinstance(value, dict):
        return "not an object"
    text, severity = clean(value.get("text"), _LONGEST), value.get("severity")
    if not text:
        return "`text` is missing"
    if severity not in tuple(Severity):
        return f"`severity` must be {' or '.join(Severity)}"
    task = clean(value.get("task"), _LONGEST)
    return Remark(task=task, severity=Severity(severity) if task in keys else Severity.OPINION, text=text)


def as_findings(judgement: Judgement | None) -> list[Finding]:
    """Return an evaluator's findings as findings of the plan's evaluation."""
    if judgement is None:
        return []
    return [
        Finding(
            check="evaluator",
            weight=Weight.OBJECTED if one.severity is Severity.BLOCKING else Weight.TOLD,
            text=in_words(one),
        )
        for one in judgement.findings
    ]


def in_words(remark: Remark) -> str:
    """Return a finding on one line."""
    said = " ".join(remark.text.split())
    return f"task {remark.task}: {said}" if remark.task else said


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.strip("\n").split("\n"))

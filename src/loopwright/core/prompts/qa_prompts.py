"""What an agent is told for a QA review, from rows and a template: the same attempt always gets the same words."""

from loopwright.core.prompts.prompts import answered, indented, listed, told
from loopwright.core.replies.qa import AREAS, PRIORITIES, RESULTS
from loopwright.core.rows.model import Attempt, Plan, Task
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.templates import Template


def look_prompt(
    template: Template,
    plan: Plan,
    task: Task,
    attempt: Attempt,
    *,
    gates: tuple[GateCommand, ...],
    resumed: bool,
    answers: tuple[tuple[str, str], ...],
    asks_by_tool: bool,
    by_schema: bool,
) -> str:
    """Return the prompt for one QA review."""
    mode = plan.policy.qa_mode
    return template.fill(
        {
            "plan": plan.title,
            **told(task, attempt),
            "mode": mode,
            "criteria": listed(task.criteria),
            "areas": listed([f"{name}: {what}" for name, what in AREAS[mode].items()]),
            "resumed": resumed,
            "context": indented(plan.context),
            "answers": answered(answers),
            "gates": listed([one.command for one in gates]),
            # What an earlier review found is a list of its own.
            "evidence": attempt.evidence,
            "results": ", ".join(RESULTS),
            "severities": ", ".join(PRIORITIES),
            "asks_by_tool": asks_by_tool,
            "asks_by_block": not asks_by_tool,
            "by_schema": by_schema,
            "by_block": not by_schema,
        }
    )

"""What an agent is told that looks at the whole. Built from rows alone: the same attempt always gets the same words."""

from typing import Final

from loopwright.core.model import Attempt, Plan, Task
from loopwright.core.policy import GateCommand
from loopwright.core.prompts import answered, asking, indented, listed
from loopwright.core.qa import AREAS, FENCE, PRIORITIES, RESULTS

_TASK: Final = (
    "You look at the whole of a project as a tester does: start it, use it, and write down what is wrong. Mend "
    "nothing: whatever you change here is thrown away, and only what you report counts. Each issue becomes a task for "
    "somebody else, who sees your words and nothing more; then the whole is looked at again."
)


def look_prompt(
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
    """Return the prompt for one look at the whole."""
    mode = plan.policy.qa_mode
    parts = [
        f"{_TASK}\n\nPlan: {plan.title}\nTask: {task.key}\nAttempt: {attempt.n}\nMode: {mode}\nTitle: {task.title}"
    ]
    if resumed:
        parts.append("You were interrupted. Carry on with your look, and report on all of it.")
    if answers:
        parts.append("\n\n".join(["You asked a person, who answered:", *map(answered, answers)]))
    if plan.context:
        parts.append("About the whole, for your orientation only:\n\n" + indented(plan.context))
    if task.description:
        parts.append(task.description.strip())
    if task.criteria:
        parts.append(listed("It has to be true that", task.criteria))
    parts.append(
        listed("Go through each of these areas", [f"{name}: {what}" for name, what in AREAS[mode].items()])
    )
    if gates:
        parts.append(
            listed(
                "These commands are run besides; what they find need not be reported",
                [one.command for one in gates],
            )
        )
    if attempt.evidence:
        parts.append(attempt.evidence)
    if attempt.note:
        parts.append("A note from the person in charge:\n\n" + indented(attempt.note))
    parts += [asking(by_tool=asks_by_tool), _answer(by_schema=by_schema)]
    return "\n\n".join(parts) + "\n"


def _answer(*, by_schema: bool) -> str:
    rules = (
        f"`checked` has an entry for every area: `result` is one of {', '.join(RESULTS)}, and `how` says what you did "
        f"and saw, or why the area does not apply. `severity` is one of {', '.join(PRIORITIES)}. Without issues the "
        "list is empty; a report that leaves an area out does not count."
    )
    if by_schema:
        return f"Give your report as the structured result that you were asked for. {rules}"
    return (
        "End your last message with your report in a block like this one, and say nothing after it:\n\n"
        f"```{FENCE}\n"
        '{"summary": "...",\n'
        ' "checked": [{"area": "...", "result": "...", "how": "..."}],\n'
        ' "issues": [{"what": "...", "where": "...", "steps": "...", "expected": "...", "actual": "...",\n'
        '             "severity": "...", "screenshot": ""}]}\n'
        f"```\n\n{rules}"
    )

"""What an agent is told. The text is built from rows alone, so the same attempt always gets the same words."""

import json
from collections.abc import Sequence

from loopwright.core import doc_sync
from loopwright.core.contradictions import turn_prompt
from loopwright.core.discoveries import DISCOVERED_FENCE
from loopwright.core.model import Attempt, Plan, Task
from loopwright.core.policy import Answering, GateCommand
from loopwright.core.questions import FENCE
from loopwright.core.reviews import Finding, in_words
from loopwright.core.rounds import is_carried_on, loops
from loopwright.core.tdd import is_asked, why_skipped

EVIDENCE_LIMIT = 20_000
"""Enough for both sides of a conflict, which are what the next attempt has to bring together."""

_ROUNDS = (
    "You are called with this same prompt round after round, each time without a memory of the rounds before: what "
    "they did is in the repository and its history. Look at what is there, and do the next part of what is left. "
    "If nothing is left to do, change nothing and say so."
)


_TEST_FIRST = "So write the test first, see it fail, then make it pass, then tidy up while it passes."
_RED = (
    "Its own checks are also run without your work, with the tests that you add or change laid over the tree as it "
    f"was: there they must fail. {_TEST_FIRST}"
)
_RED_TESTS = (
    "Show by a test what was wrong. The tests that you add or change are also run on the tree as it was: there they "
    f"must fail. {_TEST_FIRST}"
)


_RULE = (
    "They also run with your code and with every existing test, fixture and test configuration as it was before. "
    "You may add, rewrite or move tests as long as the old ones still pass with your code. If the task asks for "
    "behaviour that an existing test forbids, do it and say so: a person decides."
)


_FLAGGING = (
    f"If your change alters {doc_sync.CHANGES}, and documents of this repository for people who sell or plan speak of "
    "that, name them in your last message in a block like this one; they are brought up to date afterwards:\n\n"
    f'```{doc_sync.FENCE}\n{{"reason": "...", "documents": ["..."]}}\n```'
)


def implementer(
    plan: Plan,
    task: Task,
    attempt: Attempt,
    *,
    gates: tuple[GateCommand, ...],
    resumed: bool = False,
    answers: Sequence[tuple[str, str]] = (),
    asks_by_tool: bool = False,
    findings: Sequence[Finding] = (),
    contradicted: Sequence[str] = (),
) -> str:
    """Return the prompt for one attempt at one task: this task only, never the rest of the plan."""
    parts = [_opening(plan, task, attempt)]
    if resumed:
        parts.append(
            "You were interrupted. The workspace is as you left it: look at what is there and carry on."
        )
    if answers:
        parts.append("\n\n".join(["You asked a person, who answered:", *map(answered, answers)]))
    if plan.context:
        parts.append("About the whole, for your orientation only:\n\n" + indented(plan.context))
    if task.description:
        parts.append(task.description.strip())
    if task.criteria:
        parts.append(listed("It is done when", task.criteria))
    if task.scope:
        parts.append(listed("Change only these paths", task.scope))
    if task.approved:
        parts.append(
            listed("A person allowed you to change these files, which judge the work", task.approved)
        )
    if loops(plan, task):
        parts.append(_ROUNDS)
    parts.append(_checks(gates))
    if is_asked(plan, task) and not why_skipped(task) and gates:
        parts.append(_RED if task.acceptance else _RED_TESTS)
    if findings:
        parts.append(
            "An independent reviewer looked at what you did in this workspace. What it found must be mended before the "
            "work can land; leave everything else as it is:\n\n" + indented(in_words(findings))
        )
    if contradicted:
        parts.append(turn_prompt(contradicted))
    if attempt.evidence:
        before = "The previous attempt was not accepted. You start again from a clean tree."
        if is_carried_on(plan, task, attempt):
            before = (
                "The workspace is as the round before left it. That has not landed yet: go on from there."
            )
        parts.append(f"{before} What was found:\n\n" + indented(attempt.evidence[:EVIDENCE_LIMIT]))
    if attempt.note:
        parts.append("A note from the person in charge:\n\n" + indented(attempt.note))
    parts.append(_discovering(by_tool=asks_by_tool))
    if plan.policy.business_docs and task.origin != doc_sync.ORIGIN:
        parts.append(_FLAGGING)
    parts.append(asking(by_tool=asks_by_tool))
    parts.append(_closing())
    return "\n\n".join(parts) + "\n"


def answering(
    task: Task,
    attempt: Attempt,
    answer: Answering,
    *,
    by_schema: bool,
    last: str = "",
    resumed: bool = False,
    answers: Sequence[tuple[str, str]] = (),
    asks_by_tool: bool = False,
) -> str:
    """Return the prompt for one who answers and changes nothing; `last` is the answer that was not accepted."""
    parts = [f"Task: {task.key}\nAttempt: {attempt.n}\nTitle: {task.title}"]
    if resumed:
        parts.append("You were interrupted. Carry on.")
    if answers:
        parts.append("\n\n".join(["You asked a person, who answered:", *map(answered, answers)]))
    parts.append(task.description.strip())
    if attempt.evidence:
        parts.append(
            "An earlier answer was not accepted. Mend it; what was found is:\n\n"
            + indented(attempt.evidence[:EVIDENCE_LIMIT])
        )
    if last:
        parts.append("That answer was:\n\n" + indented(last[:EVIDENCE_LIMIT]))
    if attempt.note:
        parts.append("A note from the person in charge:\n\n" + indented(attempt.note))
    parts.append(
        "Read whatever you need in the current directory. You change nothing: only your answer counts."
    )
    if answer.asks:
        parts.append(asking(by_tool=asks_by_tool))
    parts.append(_answer(answer, by_schema=by_schema))
    return "\n\n".join(parts) + "\n"


def _answer(answer: Answering, *, by_schema: bool) -> str:
    if by_schema:
        return "Give your answer as the structured result that you were asked for."
    schema = json.dumps(answer.schema, ensure_ascii=False)
    form = "JSON" if answer.file.endswith(".json") else "YAML or JSON"
    return (
        f"End your last message with your answer, as {form} in a block like this one, and say nothing after it:\n\n"
        f"```{answer.fence}\n...\n```\n\nIt has to fit this JSON Schema:\n\n{indented(schema)}"
    )


def answered(pair: tuple[str, str]) -> str:
    """Return a question and its answer."""
    question, answer = pair
    return f"{indented(question)}\n\nThe answer:\n\n{indented(answer)}"


def _discovering(*, by_tool: bool) -> str:
    if by_tool:
        how = "note it with the tool `discovered` (of the server `loopwright`), and go on"
    else:
        how = (
            "leave it, and put a block like this one into your last message, one for each:\n\n"
            f'```{DISCOVERED_FENCE}\n{{"title": "...", "reason": "...", "recommendation": "current"}}\n```\n\n'
            "(`new` instead of `current` if this plan does not need it)"
        )
    return f"Do this task and nothing else. If you come upon other work that ought to be done, do not do it: {how}."


def asking(*, by_tool: bool) -> str:
    """Say how a person is asked."""
    if by_tool:
        how = "use the tool `ask` (of the server `loopwright`), then stop"
    else:
        how = (
            "end your last message with a block like this one, then stop:\n\n"
            f'```{FENCE}\n{{"question": "...", "options": ["...", "..."], "default": "..."}}\n```\n\n'
            "(options and default may be left out)"
        )
    return f"If you cannot go on without a decision that only a person can make, {how}."


def _opening(plan: Plan, task: Task, attempt: Attempt) -> str:
    return (
        f"You are working on one task of a larger plan ({plan.title}), in a git repository of your own.\n\n"
        f"Task: {task.key}\nAttempt: {attempt.n}\nTitle: {task.title}"
    )


def _checks(gates: tuple[GateCommand, ...]) -> str:
    if not gates:
        return "No automatic check is configured for this task; say plainly what you did and did not verify."
    commands = [
        gate.command if gate.name == gate.command else f"{gate.name}: {gate.command}" for gate in gates
    ]
    return f"{listed('Afterwards these commands run on your result, and all of them must pass', commands)}\n\n{_RULE}"


def _closing() -> str:
    return (
        "Work in the current directory only. Leave the files in their final state; committing is optional, "
        "everything you leave is recorded. What you say is not believed: only the checks count. "
        "If the task cannot be done, say why and change nothing."
    )


def listed(heading: str, items: tuple[str, ...] | list[str]) -> str:
    """Return a list with its heading."""
    return "\n".join([f"{heading}:", *(f"- {item}" for item in items)])


def indented(text: str) -> str:
    """Return a text that is set apart from the rest."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines())

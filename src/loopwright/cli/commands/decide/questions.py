"""`answer`: list the open questions, and answer one."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.markup import escape

from loopwright.cli.screens.question import picture
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.ids import short_id
from loopwright.services.questions import list_questions, show_question

if TYPE_CHECKING:
    from loopwright.services.questions import Scope


def questions(*, all: bool = False, json: bool = False) -> int:
    """List what waits for your answer in this repository (outside of one, in all).

    Parameters
    ----------
    all
        List the questions of every repository, and the settled ones too.
    json
        Print them as JSON.
    """
    found = list_questions(everything=all)
    if json:
        print_json({"questions": found})
        return ExitCode.VERIFIED
    out = console()
    if not found:
        out.print("nothing waits for an answer")
    for one in found:
        out.print(picture(one, whole=True))
    return ExitCode.VERIFIED


def _show(question: str, *, as_json: bool) -> int:
    """Print one question in full."""
    found = show_question(question)
    if as_json:
        print_json({"questions": [found]})
    else:
        console().print(picture(found, whole=True))
    return ExitCode.VERIFIED


def answer(
    question: str | None = None,
    text: str | None = None,
    /,
    *,
    all: bool = False,
    hold: Annotated[Literal["run", "loop", "project"], Parameter(name="--for", show_default=True)] = "run",
    other: bool = False,
    json: bool = False,
) -> int:
    """Answer a question, so that every task that waits for it continues. Without arguments, list the open questions.

    Parameters
    ----------
    question
        Which one: its id or the beginning of it (default: list them).
    text
        The answer, or the number of an option (default: show the question).
    all
        List the questions of every repository, and the settled ones too.
    hold
        How far the answer to a permission request goes: only the attempts that asked, every run of this plan file (the
        loop), or every run in this repository.
    other
        Accept an answer that is not one of the options.
    json
        Print the result as JSON.
    """
    if question is None:
        return questions(all=all, json=json)
    if text is None:
        return _show(question, as_json=json)
    return asyncio.run(_answer(question, text, hold, other=other, as_json=json))


async def _answer(question: str, text: str, hold: "Scope", *, other: bool, as_json: bool) -> int:
    # Listing questions loads neither the settings nor a worker's parts.
    from loopwright.cli.screens.command_effects import print_effect
    from loopwright.services import questions
    from loopwright.services.homes.session import session

    async with session() as at:
        done = await questions.answer(at, question, text, scope=hold, other=other)
    if as_json:
        print_json({"command": done.command, "exit_code": 0})
        return ExitCode.VERIFIED
    console().print(escape(done.command.result))
    print_effect("answer")
    if done.needs_worker:
        console().print(
            f"no worker is running: `loopwright resume {short_id(done.plan_id)}` continues the plan"
        )
    return ExitCode.VERIFIED

"""`questions` and `answer`: what runs need a person for."""

import asyncio
from typing import Annotated, Literal

from cyclopts import Parameter

from loopwright.cli.screens.question import picture
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.engine.views.question_views import list_questions
from loopwright.services.homes.read_only_home import glancing, project_here


def questions(*, all: bool = False, json: bool = False) -> int:
    """List what waits for your answer in this repository (in every one, outside of a repository).

    Parameters
    ----------
    all
        List the questions of every repository, and those that are settled too.
    json
        Print them as JSON.
    """
    project = None if all else project_here()
    with glancing() as look:
        found = look.store.read_sync(lambda tx: list_questions(tx, project_path=project, closed=all))
    if json:
        print_json({"questions": found})
        return ExitCode.VERIFIED
    out = console()
    if not found:
        out.print("nothing waits for an answer")
    for one in found:
        out.print(picture(one, whole=True))
    return ExitCode.VERIFIED


def answer(
    question: str,
    text: str,
    /,
    *,
    hold: Annotated[Literal["run", "loop", "project"], Parameter(name="--for", show_default=True)] = "run",
    other: bool = False,
    json: bool = False,
) -> int:
    """Answer a question: everyone who waits for it goes on.

    Parameters
    ----------
    question
        Which one: its id or the beginning of it.
    text
        The answer, or the number of an option.
    hold
        How far the answer to a permission goes: only the attempts that asked, every run of this plan file (the
        loop), or every run in this repository.
    other
        Take the answer as it is, though it is none of the options.
    json
        Print the result as JSON.
    """
    from loopwright.cli.commands.decide.control import control_question

    return asyncio.run(
        control_question(question, {"answer": text, "for": hold, "other": other}, as_json=json)
    )

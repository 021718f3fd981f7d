"""`lessons`: list and decide on the lessons that agents of this project get."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cyclopts import App
from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.access import OWNER, Caller
from loopwright.core.values.wording import counted, to_type
from loopwright.services.homes.context import look_settings
from loopwright.services.homes.session import Session, opened
from loopwright.services.projects import projects
from loopwright.services.remote import lessons as service
from loopwright.services.remote.lessons import LessonState, LessonView

T = TypeVar("T")

app = App(
    name="lessons",
    help="List the lessons for agents of this project, or approve, add and remove them.",
    help_format="plaintext",
)


@app.default
def lessons(*, all: bool = False, json: bool = False) -> int:
    """List the lessons of this project, each with its measurement.

    Parameters
    ----------
    all
        Also those that were removed.
    json
        Print them as JSON.
    """
    here = projects.known_here()
    found = _with_home(lambda at, who: service.list_lessons(at, who, here.id, everything=all)) if here else ()
    none = "there are no lessons; `loopwright lessons suggest` drafts some from failures"
    return _print(found, as_json=json, none=none)


@app.command
def suggest(*, json: bool = False) -> int:
    """Draft a lesson for each failure that several tasks of this project had in common.

    Parameters
    ----------
    json
        Print them as JSON.
    """
    return _print(
        _with_project(service.propose_lessons),
        as_json=json,
        none="no two tasks failed in a way that no lesson is about yet",
    )


@app.command
def add(text: str, /, *, file: tuple[str, ...] = (), type: str = "", json: bool = False) -> int:
    """Add your own lesson. It is on trial at once.

    Parameters
    ----------
    text
        What agents should know.
    file
        Only for tasks that name or may change such files; repeat it for several patterns.
    type
        Only for tasks of this type.
    json
        Print it as JSON.
    """
    made = _with_project(
        lambda at, who, here: service.add_lesson(at, who, here, text, files=file, task_type=type)
    )
    return _print((made,), as_json=json)


@app.command
def approve(lesson: str, /, *, text: str | None = None, json: bool = False) -> int:
    """Put a proposed lesson on trial: half of the tasks that it is meant for get it.

    Parameters
    ----------
    lesson
        Which: its id.
    text
        The new text.
    json
        Print it as JSON.
    """
    return _print((_with_home(lambda at, who: service.approve_lesson(at, who, lesson, text)),), as_json=json)


@app.command
def diff(lesson: str, /, *, text: str | None = None) -> int:
    """Show what approving a lesson would add to the prompts of agents.

    Parameters
    ----------
    lesson
        Which: its id.
    text
        Use this text instead of the proposed one.
    """
    shown = _with_home(lambda at, who: service.diff_lesson(at, who, lesson, text))
    console().print(escape(shown), end="", soft_wrap=True)
    return ExitCode.VERIFIED


@app.command
def promote(lesson: str, project: str, /, *, json: bool = False) -> int:
    """Put a lesson of this project on trial in another project, where it is measured from the beginning.

    Parameters
    ----------
    lesson
        Which: its id.
    project
        The other project: its name, path or id (`loopwright projects`).
    json
        Print it as JSON.
    """
    there = projects.named(project).id
    return _print((_with_home(lambda at, who: service.promote_lesson(at, who, lesson, there)),), as_json=json)


@app.command
def remove(lesson: str, /, *, json: bool = False) -> int:
    """Remove a lesson from all prompts.

    Parameters
    ----------
    lesson
        Which: its id.
    json
        Print it as JSON.
    """
    return _print((_with_home(lambda at, who: service.remove_lesson(at, who, lesson)),), as_json=json)


def _with_home(work: Callable[[Session, Caller], Awaitable[T]]) -> T:
    async def call() -> T:
        async with opened(look_settings()) as at:
            return await work(at, OWNER)

    return asyncio.run(call())


def _with_project(work: Callable[[Session, Caller, str], Awaitable[T]]) -> T:
    here = projects.known_here() or asyncio.run(projects.add_here())
    return _with_home(lambda at, who: work(at, who, here.id))


def _print(found: tuple[LessonView, ...], *, as_json: bool, none: str = "") -> int:
    if as_json:
        print_json({"lessons": found})
        return ExitCode.VERIFIED
    out = console()
    if not found:
        out.print(escape(none))
    for one in found:
        for line in _lines(one):
            out.print(escape(line), soft_wrap=True)
    return ExitCode.VERIFIED


def _lines(view: LessonView) -> list[str]:
    lesson, found = view.lesson, view.measured
    lines = [f"{lesson.id}  {lesson.state.value.lower()}", f"  {lesson.text}"]
    if lesson.state is LessonState.PROPOSED:
        lines += [
            f"  {to_type('lessons', 'diff', lesson.id)}",
            f"  {to_type('lessons', 'approve', lesson.id)}",
        ]
    elif found.judged:
        lines.append(
            f"  passed at once: {found.with_passed} of {found.with_all} with it, "
            f"{found.without_passed} of {found.without_all} without; "
            f"{found.confidence:.0%} sure that it helps"
        )
    if view.elsewhere:
        lines.append(f"  {counted(view.elsewhere, 'other project')} had this failure too")
    if lesson.state is LessonState.REMOVED:
        lines.append(f"  {lesson.reason}")
    return lines

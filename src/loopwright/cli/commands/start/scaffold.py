"""`scaffold`: write the files that a way of working starts with."""

import asyncio
import sys
from typing import Annotated

from cyclopts import App, Parameter
from rich.markup import escape

from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.errors import Refused
from loopwright.core.values.wording import to_type
from loopwright.services.orchestrator.migration import migrate as migrated
from loopwright.services.orchestrator.scaffolding import Alignment, Scaffolded, scaffold

app = App(
    name="scaffold",
    help="Write the files that a way of working starts with.",
    help_format="plaintext",
)


@app.command
def orchestrator(
    goal: str | None = None,
    /,
    *,
    milestone: tuple[str, ...] = (),
    out_of_scope: tuple[str, ...] = (),
    check: tuple[str, ...] = (),
    migrate: bool = False,
    yes: Annotated[bool, Parameter(alias="-y")] = False,
    json: bool = False,
) -> int:
    """Write an orchestrator folder for a goal, or the next roadmap of one that is finished.

    With --migrate, add what a folder of an older contract lacks.

    Parameters
    ----------
    goal
        What the roadmap is for, in words. --migrate needs none.
    milestone
        A milestone; repeat it for more, in their order (default: one milestone that is the goal).
    out_of_scope
        What the rounds must not do; repeat it for more.
    check
        A command that every round has to pass; repeat it for more (default: the gates of the project).
    migrate
        Add the files that the contract has and this folder lacks, and change none that it has.
    yes
        Ask nothing, and write what the flags say.
    json
        Print the result as JSON, and nothing else.
    """
    if migrate:
        return _written(asyncio.run(migrated()), "Migrate the roadmap", json=json)
    if goal is None:
        raise Refused(
            "a roadmap is for a goal, and there is none",
            code="goal_missing",
            hint=f"name it: `{to_type('scaffold', 'orchestrator', 'GOAL')}`",
        )
    asked = Alignment(goal=goal, milestones=milestone, out_of_scope=out_of_scope, checks=check)
    if not yes:
        if json or not sys.stdin.isatty():
            raise Refused(
                "a roadmap is written after a few questions, and there is no terminal to ask them on",
                code="confirmation_needed",
                hint=f"`{to_type('scaffold', 'orchestrator', goal, yes=True)}` asks nothing; --milestone names one",
            )
        asked = _aligned(asked)
    return _written(asyncio.run(scaffold(asked)), "Add a roadmap", json=json)


def _written(made: Scaffolded, subject: str, *, json: bool) -> int:
    if json:
        print_json({"roadmap_id": made.roadmap_id, "base_branch": made.base_branch, "files": made.files})
        return 0
    out = console()
    out.print(
        f"Roadmap {escape(made.roadmap_id)}: rounds start from {escape(made.base_branch)} and merge into it."
    )
    for path in made.files:
        out.print(f"  {escape(path)}")
    out.print(f"read it, commit it:  git add orchestrator .gitignore && git commit -m '{subject}'")
    out.print(f"run its rounds:  {to_type('run', 'orchestrator')}")
    return 0


def _aligned(asked: Alignment) -> Alignment:
    """Ask what the flags do not say, one question after the other, and let the user confirm the answers."""
    milestones = asked.milestones or _lines("Which milestones lead there, in their order?")
    scope = asked.out_of_scope or _lines("What is out of scope?")
    checks = asked.checks or _lines("Which commands must always pass? None: the gates of the project.")
    answers = Alignment(goal=asked.goal, milestones=milestones, out_of_scope=scope, checks=checks)
    for title, lines in (
        ("goal", (answers.goal,)),
        ("milestones", milestones or (answers.goal,)),
        ("out of scope", scope),
        ("checks", checks),
    ):
        sys.stdout.write(f"{title}: {'; '.join(lines) or 'none'}\n")
    if input("Write this roadmap? [y/N] ").strip().lower() not in ("y", "yes"):
        raise Refused("nothing was written", code="declined", hint="say what to change with the flags")
    return answers


def _lines(question: str) -> tuple[str, ...]:
    sys.stdout.write(f"{question} One on each line, an empty line ends.\n")
    found = []
    while line := input("> ").strip():
        found.append(line)
    return tuple(found)

"""Make the reference page of the commands from the argument parser."""

import re
from collections.abc import Iterator

from cyclopts import App

from loopwright.cli.screens.command_effects import effects_table
from loopwright.cli.shell.command_table import build, optional_arguments

INTRODUCTION = """\
# Commands

Every command takes `--help`. A command that prints facts also takes `--json`.
[Exit codes](exit-codes.md) are the same for all commands.
"""

EFFECTS = """\
## What a command does to running agents

Each of these commands prints its row of the table.
"""


def commands_page() -> str:
    """Return the page: an overview, each command with its flags, and what commands do to running agents."""
    app = build()
    pages = list(_commands(app, ()))
    overview = [f"- [`{name}`](#{_anchor(name)}): {_summary(command)}" for name, command in pages]
    parts = [INTRODUCTION, "\n".join(overview) + "\n", f"{EFFECTS}\n{effects_table()}\n"]
    parts += [_section(name, command, app) for name, command in pages]
    return "\n".join(parts)


def _commands(app: App, path: tuple[str, ...]) -> Iterator[tuple[str, App]]:
    """Yield every visible command below an app with its full name, in the order in which it was added."""
    for name in app:
        if name.startswith("-"):
            continue
        command = app[name]
        if command.show:
            yield " ".join((*path, name)), command
            yield from _commands(command, (*path, name))


def _section(name: str, command: App, app: App) -> str:
    """Return what `--help` of one command says, as Markdown."""
    # Commands are loaded without the settings of the app that they belong to.
    command.default_parameter = app.default_parameter
    text = command.generate_docs(recursive=False, heading_level=2, usage_name=f"loopwright {name}")
    text = re.sub(r"^## .*\n", f"## loopwright {name}\n", text, count=1)
    text = text.split("\n### ")[0]
    # The name of the program depends on how this script was started; what follows it does not.
    text = re.sub(
        r"```console\n.*?((?: \[[A-Z.]+\]| [A-Z_.]+)*)\n", rf"```text\nloopwright {name}\1\n", text, count=1
    )
    text = re.sub(r"\[ARGS(\.\.\.)?\]", optional_arguments(command), text, count=1)
    text = re.sub(r"^## Table of Contents\n\n( *- .*\n)+\n?", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[`([\w-]+)`\]\(#[\w-]+\)", lambda one: f"[`{one[1]}`](#{_anchor(name)}-{one[1]})", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _anchor(name: str) -> str:
    return f"loopwright-{name.replace(' ', '-')}"


def _summary(command: App) -> str:
    return command.help.strip().splitlines()[0]

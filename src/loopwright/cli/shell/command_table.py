"""The command table. Commands are loaded when they are called, so that `--help` costs next to nothing."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import App, Group, Parameter
from cyclopts.help import DefaultFormatter

from loopwright import __version__

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions


# How `--help` reads: arguments by their own names, and lines that break where the terminal does.

_ANY: Final = re.compile(r"\[ARGS(\.\.\.)?\]")
_BREAK: Final = re.compile(r"(?<!\n)\n(?!\n)")


def optional_arguments(command: App) -> str:
    """Return the arguments that may be left out, as the usage line has them."""
    if command.default_command is None:
        return ""
    found = [
        one for one in command.assemble_argument_collection() if one.index is not None and not one.required
    ]
    return " ".join(
        f"[{one.name.lstrip('-').upper()}{'...' * (one.field_info.kind is one.field_info.VAR_POSITIONAL)}]"
        for one in found
    )


class HelpPages(DefaultFormatter):
    """Renders help, and wraps docstrings for the screen."""

    def __init__(self, optional: str) -> None:
        super().__init__()
        self._optional = optional

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: Any) -> None:
        """Print how the command is called."""
        super().render_usage(console, options, _ANY.sub(self._optional, str(usage)))

    def render_description(self, console: "Console", options: "ConsoleOptions", description: Any) -> None:
        """Print what the command does."""
        _join(description)
        super().render_description(console, options, description)

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print one box of commands, arguments or flags."""
        for entry in panel.entries:
            _join(entry.description)
        super().__call__(console, options, panel)


def _join(described: Any) -> None:
    """Let paragraphs be, and join the lines in each of them."""
    text = getattr(described, "primary_renderable", None)
    if text is not None and "\n" in text.plain:
        text.plain = _BREAK.sub(" ", text.plain)


_START: Final = "loopwright.cli.commands.start"
_WATCH: Final = "loopwright.cli.commands.watch"
_DECIDE: Final = "loopwright.cli.commands.decide"
_INSPECT: Final = "loopwright.cli.commands.inspect"
_MAINTAIN: Final = "loopwright.cli.commands.maintain"

GROUPS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "Start": {
        "run": (f"{_START}.run:run", "Run agents on a plan until your checks pass."),
        "plan": (f"{_START}.plans:app", "Write a plan for a goal, or check a plan."),
        "init": (f"{_START}.init:init", "Write loopwright.toml and a sample plan for this project."),
        "scaffold": (f"{_START}.scaffold:app", "Write the files that a way of working starts with."),
        "delegate": (
            f"{_START}.delegate:delegate",
            "Give a goal to an orchestrator, which makes loops of it.",
        ),
        "demo": (f"{_START}.demo:demo", "Try Loopwright on a sample project, without an account."),
        "worker": (f"{_START}.worker:worker", "Run plans of every project until you stop it."),
        "up": (f"{_START}.daemon:up", "Start the daemon: workers for all projects, and the API."),
        "down": (f"{_START}.daemon:down", "End the daemon; agents continue."),
        "restart": (f"{_START}.daemon:restart", "End the daemon and start it again."),
        "serve": (f"{_START}.daemon:serve", "Run the daemon in this terminal."),
        "service": (f"{_START}.daemon:service", "Let the system start the daemon at every login."),
        "mcp": (f"{_START}.mcp:mcp", "Let another agent drive loops with MCP tools."),
    },
    "Watch": {
        "status": (f"{_WATCH}.status:status", "Show what happens now, or one plan or task in detail."),
        "watch": (f"{_WATCH}.watch:watch", "Follow a plan live."),
        "open": (f"{_WATCH}.open_page:open_page", "Open the dashboard in your browser."),
        "report": (f"{_WATCH}.report:report", "Report a night on one page: done, waiting, failed, spent."),
        "logs": (f"{_WATCH}.logs:logs", "Show what an agent or a check printed."),
        "diff": (f"{_WATCH}.diff:diff", "Show what a plan or a task changed."),
        "stats": (f"{_WATCH}.stats:app", "Show cost, time, usage limits and flaky tests."),
    },
    "Decide": {
        "answer": (f"{_DECIDE}.questions:answer", "List the open questions, or answer one."),
        "accept": (f"{_DECIDE}.finishing:accept", "Merge the work of a plan, or of some of its tasks."),
        "retry": (f"{_DECIDE}.control:retry", "Give a failed task another attempt."),
        "reject": (f"{_DECIDE}.reject:reject", "Send work back with your comments."),
        "pause": (f"{_DECIDE}.control:pause", "Start no more agents; running ones may finish."),
        "resume": (f"{_DECIDE}.control:resume", "Continue a paused or stopped plan."),
        "stop": (f"{_DECIDE}.control:stop", "Stop a plan now; all work is kept."),
        "cancel": (f"{_DECIDE}.control:cancel", "Give up a task or a plan; its commits are kept."),
        "take-over": (f"{_DECIDE}.handover:take_over", "Do a task yourself, and hand your work in."),
        "rollback": (f"{_DECIDE}.reject:rollback", "Take landed work back out of the plan branch."),
        "reviewed": (f"{_DECIDE}.handover:reviewed", "Confirm that you have looked at landed work."),
        "discovered": (f"{_DECIDE}.discovered:app", "List extra work that agents found, or decide on it."),
        "actions": (f"{_DECIDE}.actions:app", "List what agents did to loops with their tools, or undo it."),
        "locks": (f"{_DECIDE}.locks:app", "List files and locks that loops hold, take or release one."),
        "lessons": (
            f"{_DECIDE}.lessons:app",
            "List lessons from earlier work, or decide on them.",
        ),
        "reverify": (
            f"{_DECIDE}.control:reverify",
            "Run the complete gate of a plan that waits for it, or again.",
        ),
    },
    "Inspect": {
        "receipt": (f"{_INSPECT}.receipts:app", "Show, verify, replay or export the record of a plan."),
        "audit": (f"{_INSPECT}.audit:audit", "Check whether finished items really are finished."),
        "inspect": (f"{_INSPECT}.inspect:inspect", "Collect all evidence on a run or a project."),
    },
    "Maintain": {
        "doctor": (f"{_MAINTAIN}.doctor:doctor", "Check this machine: git, agents, disk, database."),
        "config": (f"{_MAINTAIN}.config:app", "Show or check every setting, with its origin."),
        "clean": (f"{_MAINTAIN}.clean:clean", "Delete what ended plans left behind."),
        "tokens": (f"{_MAINTAIN}.tokens:app", "List, make or revoke tokens for the daemon's API."),
        "webhooks": (f"{_MAINTAIN}.webhooks:app", "List, make, replay or remove webhooks for events."),
        "projects": (f"{_MAINTAIN}.projects:app", "List the projects of this home, or import plans."),
        "completion": (f"{_MAINTAIN}.helping:completion", "Print the completion script for your shell."),
        "help": (f"{_MAINTAIN}.helping:help_", "Show what a command does, as --help does."),
    },
}
"""The groups of `--help`, with the commands that people need most often first."""

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    name: command for group in GROUPS.values() for name, command in group.items()
}

HIDDEN: Final[Mapping[str, tuple[str, str]]] = {
    "show": (f"{_WATCH}.status:show", "The same as `status TARGET`."),
    "questions": (f"{_DECIDE}.questions:questions", "The same as `answer`."),
    "hand-back": (f"{_DECIDE}.handover:hand_back", "The same as `take-over --done`."),
    "metrics": (f"{_WATCH}.stats:metrics", "The same as `stats`."),
    "flaky": (f"{_WATCH}.stats:flaky", "The same as `stats flaky`."),
    "quota": (f"{_WATCH}.quota:alias", "The same as `stats quota`."),
}
"""Commands under another name, which `--help` does not list."""

_EPILOGUE = "Every command takes --help. Most take --json."


class CommandLine(App):
    """The command line, with help that calls what a command takes by its name."""

    def help_print(
        self,
        tokens: Annotated[str | Iterable[str] | None, Parameter(show=False)] = None,
        *,
        console: Annotated[Any, Parameter(parse=False)] = None,
    ) -> None:
        """Print the help of a command."""
        # Only help needs it.
        from rich.console import Console

        _, apps, _ = self.parse_commands(tokens)
        self.help_formatter = HelpPages(optional_arguments(apps[-1]))
        # A command keeps the console of the first call that needed one, as wide as the terminal was then.
        console = Console()
        super().help_print(tokens, console=console)


def build() -> CommandLine:
    """Return the command line."""
    app = CommandLine(
        name="loopwright",
        help="Drive coding agents over a plan until your project's own checks pass.\n\n" + _EPILOGUE,
        version=f"loopwright {__version__}",
        version_flags=("--version", "-V"),
        help_format="plaintext",
        # A switch is off unless it is given: no `--no-json`, and no `[default: False]`.
        default_parameter=Parameter(negative=(), show_default=False),
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
    )
    for n, (title, commands) in enumerate(GROUPS.items()):
        group = Group(title, sort_key=n)
        for position, (name, (place, text)) in enumerate(commands.items()):
            app.command(place, name=name, help=text, group=group, sort_key=position)
    for name, (place, text) in HIDDEN.items():
        app.command(place, name=name, help=text, show=False)
    flags = Group("Options", sort_key=len(GROUPS))
    for flag in (*app.help_flags, *app.version_flags):
        app[flag].group = flags
    return app

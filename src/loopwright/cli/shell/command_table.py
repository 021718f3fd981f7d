"""The command table. Commands are loaded when they are called, so that `--help` costs next to nothing."""

from collections.abc import Iterable
from typing import Annotated, Any

from cyclopts import App, Parameter

from loopwright import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "init": (
        "loopwright.cli.commands.start.init:init",
        "Look at this repository and write a loopwright.toml.",
    ),
    "run": ("loopwright.cli.commands.start.run:run", "Do a plan: run agents until its checks pass."),
    "worker": ("loopwright.cli.commands.start.worker:worker", "Join a home as one more worker and stay."),
    "plan": ("loopwright.cli.commands.start.plans:app", "Have a plan written for a goal, or check one."),
    "status": ("loopwright.cli.commands.watch.status:status", "Show what is going on."),
    "watch": ("loopwright.cli.commands.watch.status:watch", "Follow a plan live."),
    "logs": ("loopwright.cli.commands.watch.logs:logs", "Show what an agent or a gate printed."),
    "show": (
        "loopwright.cli.commands.watch.show:show",
        "Show one task: what was expected, what failed, what to do next.",
    ),
    "inspect": (
        "loopwright.cli.commands.inspect.inspect:inspect",
        "Gather what is known of a run, or of the project, in one packet.",
    ),
    "audit": (
        "loopwright.cli.commands.inspect.audit:audit",
        "Say of finished items whether they really are.",
    ),
    "metrics": (
        "loopwright.cli.commands.watch.metrics:metrics",
        "Show how well plans went: attempts, time, cost.",
    ),
    "flaky": (
        "loopwright.cli.commands.watch.flaky:flaky",
        "List checks that failed and passed on the same tree.",
    ),
    "questions": ("loopwright.cli.commands.decide.questions:questions", "List what waits for your answer."),
    "answer": ("loopwright.cli.commands.decide.questions:answer", "Answer a question of a run."),
    "discovered": (
        "loopwright.cli.commands.decide.discovered:app",
        "List work that agents came upon and left to others, or decide about it.",
    ),
    "pause": (
        "loopwright.cli.commands.decide.control:pause",
        "Start nothing more; running agents may finish.",
    ),
    "resume": ("loopwright.cli.commands.decide.control:resume", "Go on with a paused or stopped plan."),
    "stop": ("loopwright.cli.commands.decide.control:stop", "Stop a plan now; all work is kept."),
    "retry": ("loopwright.cli.commands.decide.control:retry", "Give a failed task another attempt."),
    "reject": (
        "loopwright.cli.commands.decide.reject:reject",
        "Send work back with your words, also work that has landed.",
    ),
    "rollback": (
        "loopwright.cli.commands.decide.reject:rollback",
        "Take landed work back out of the plan branch.",
    ),
    "take-over": (
        "loopwright.cli.commands.decide.handover:take_over",
        "Do a task yourself, in a checkout of its own.",
    ),
    "hand-back": (
        "loopwright.cli.commands.decide.handover:hand_back",
        "Send what you did through the same checks.",
    ),
    "reviewed": (
        "loopwright.cli.commands.decide.handover:reviewed",
        "Say that you have looked at what landed.",
    ),
    "cancel": (
        "loopwright.cli.commands.decide.control:cancel",
        "Give up a task or a plan for good; all work stays pinned.",
    ),
    "quota": (
        "loopwright.cli.commands.watch.quota:app",
        "Show what is left of the agents' accounts, or reopen one.",
    ),
    "accept": (
        "loopwright.cli.commands.decide.finishing:accept",
        "Take a plan's work over, or some tasks of it.",
    ),
    "reverify": (
        "loopwright.cli.commands.decide.control:reverify",
        "Run the complete gate of a failed plan once more.",
    ),
    "receipt": (
        "loopwright.cli.commands.inspect.receipts:app",
        "Show, verify, replay or hand on the record of a plan.",
    ),
    "clean": (
        "loopwright.cli.commands.maintain.clean:clean",
        "Delete what ended plans left in git and you have elsewhere.",
    ),
    "doctor": (
        "loopwright.cli.commands.maintain.doctor:doctor",
        "Check this machine: git, agents, disk, database.",
    ),
    "projects": (
        "loopwright.cli.commands.maintain.projects:app",
        "List the repositories of this home, or take up plans that it does not know.",
    ),
    "config": (
        "loopwright.cli.commands.maintain.config:app",
        "Show or check every setting, with its origin.",
    ),
    "help": ("loopwright.cli.commands.maintain.helping:help_", "Show what a command does, as --help does."),
    "demo": ("loopwright.cli.commands.start.demo:demo", "See the whole thing work, with a scripted agent."),
}


_EPILOGUE = "Every command takes --help, and --json where it prints something a program may want."


class CommandLine(App):
    """The command line, with help that calls what a command takes by its name."""

    def help_print(
        self,
        tokens: Annotated[str | Iterable[str] | None, Parameter(show=False)] = None,
        *,
        console: Annotated[Any, Parameter(parse=False)] = None,
    ) -> None:
        """Print the help of a command."""
        from rich.console import Console

        from loopwright.cli.shell.help_pages import HelpPages, optional_arguments

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
    for name, (place, text) in COMMANDS.items():
        app.command(place, name=name, help=text)
    return app

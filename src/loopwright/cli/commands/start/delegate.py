"""`delegate`: give a goal to the orchestrator of this project."""

from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import to_type
from loopwright.services.daemon.links import ask_daemon
from loopwright.services.homes.context import look_settings
from loopwright.services.projects import projects


def delegate(goal: str, /, *, json: bool = False) -> int:
    """Give a goal to the orchestrator of this project. It turns the goal into loops with the tools for agents.

    The daemon must run, and `orchestrator.agent` has to name an agent. `loopwright actions` shows what it does and why.

    Parameters
    ----------
    goal
        What shall be true, in words.
    json
        Print it as JSON.
    """
    home = look_settings().home
    project = projects.needed_here()
    made = ask_daemon(home, f"/api/projects/{project.id}/delegate", {"goal": goal})
    if json:
        print_json(made)
        return ExitCode.VERIFIED
    plan = str(made["plan_id"])
    console().print(escape(f"the orchestrator works in {short_id(plan)}"))
    console().print(escape(f"  {to_type('status', short_id(plan))}"))
    console().print(escape(f"  {to_type('actions')}"))
    return ExitCode.VERIFIED

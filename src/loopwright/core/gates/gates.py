"""Which commands check a task, a plan and a setup."""

from collections.abc import Iterable

from loopwright.core.gates.dependencies import install_step
from loopwright.core.rows.model import Plan, Task
from loopwright.core.values.policy import GateCommand, Policy

Commands = tuple[GateCommand, ...]


def task_commands(plan: Plan, task: Task) -> Commands:
    """Return what must pass on a task's candidate: its acceptance first, then the project's gates."""
    return each_once(task.acceptance, plan.gates)


def plan_commands(plan: Plan, acceptance: Commands) -> Commands:
    """Return the complete gate: the project's gates, then every acceptance command again on the integrated tree."""
    return each_once(plan.gates, acceptance)


def each_once(*lists: Iterable[GateCommand]) -> Commands:
    """Return the commands of several lists in order, none of them twice."""
    seen: dict[str, GateCommand] = {}
    for commands in lists:
        for command in commands:
            seen.setdefault(command.command, command)
    return tuple(seen.values())


def setup_command(policy: Policy) -> GateCommand | None:
    """Return the setup command as a gate runs it, dependencies first; None if there is none."""
    own = policy.setup or ""
    if install := install_step(policy):
        own = f"{install} && {{\n{own}\n}}" if own else install
    return GateCommand(name="setup", command=own, timeout_s=policy.setup_timeout) if own else None


def setup_settings(policy: Policy) -> tuple[str, ...]:
    """Return the names of the settings that form the setup command; empty if there are none."""
    return tuple(name for name in ("dependencies", "setup") if getattr(policy, name))


def after_setup(setup: GateCommand | None, commands: Commands) -> Commands:
    """Put the setup command first: a gate's tree is as bare as a new clone."""
    return (setup, *commands) if setup is not None and commands else commands


def with_setup(plan: Plan, commands: Commands) -> Commands:
    """Return everything that a gate of this plan runs for these commands."""
    return after_setup(setup_command(plan.policy), commands)

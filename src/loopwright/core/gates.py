"""Which commands judge what."""

from loopwright.core.model import GateCommand, Plan, Task


def task_commands(plan: Plan, task: Task) -> tuple[GateCommand, ...]:
    """Return what must pass on a task's candidate: its own acceptance first, then the project's gates."""
    return _unique((*task.acceptance, *plan.gates))


def plan_commands(plan: Plan, acceptance: tuple[GateCommand, ...]) -> tuple[GateCommand, ...]:
    """Return gate:all: the project's gates, then every acceptance command again on the integrated tree."""
    return _unique((*plan.gates, *acceptance))


def _unique(commands: tuple[GateCommand, ...]) -> tuple[GateCommand, ...]:
    seen: dict[str, GateCommand] = {}
    for command in commands:
        seen.setdefault(command.command, command)
    return tuple(seen.values())


def with_setup(plan: Plan, commands: tuple[GateCommand, ...]) -> tuple[GateCommand, ...]:
    """Put the setup command in front: a gate's tree is as bare as a new clone."""
    policy = plan.policy
    if not commands or not policy.setup:
        return commands
    return (GateCommand(name="setup", command=policy.setup, timeout_s=policy.setup_timeout_s), *commands)

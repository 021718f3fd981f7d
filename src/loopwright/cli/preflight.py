"""What is looked at before any money is spent: the agents that a plan will really use, its folder and its checks."""

import os
from pathlib import Path

from loopwright.adapters import registry
from loopwright.adapters.git import GitRepository
from loopwright.adapters.git.environment import user_env
from loopwright.app import accounts, chosen_sandbox
from loopwright.cli.checkup_accounts import check
from loopwright.cli.context import Place
from loopwright.cli.lines import listed
from loopwright.cli.probes import FoundAgent, find_agent
from loopwright.config.nearest import did_you_mean
from loopwright.config.resolve import Settings
from loopwright.core.errors import BadConfig, Refused, UserError
from loopwright.core.fallback import named
from loopwright.ports import Base, PlannedWork


def agents_of(work: PlannedWork, settings: Settings) -> tuple[FoundAgent, ...]:
    """Look at every agent of a plan; raise `BadConfig` when its options are wrong, whoever would start it."""
    policy = settings.policy()
    models: dict[str, list[str | None]] = {}
    for task in work.tasks:
        asked = models.setdefault(task.agent or policy.agent, [])
        if (model := task.model or policy.model) not in asked:
            asked.append(model)
    found = tuple(find_agent(name, settings, models=wanted) for name, wanted in models.items())
    if wrong := [one for one in found if one.wrong_options]:
        raise BadConfig("\n".join(one.problem for one in wrong), hint=wrong[0].hint)
    return found


def check_agents(settings: Settings, work: PlannedWork) -> tuple[str, ...]:
    """Refuse a plan none of whose agents is there; return what to say of one that is missing among several."""
    found = agents_of(work, settings)
    missing = [one for one in found if not one.usable]
    told = tuple(f"the agent {one.name} cannot be used: {one.problem}" for one in missing)
    if len(missing) == len(found):
        hints = dict.fromkeys(one.hint for one in missing)
        raise UserError("; ".join(told), hint="; ".join([*hints, "`loopwright doctor` shows more"]))
    return tuple(f"{one}; its tasks will fail" for one in told)


def check_fallback(settings: Settings) -> None:
    """Refuse an agent that could not take over: that should be known before the night, not in it."""
    if unknown := _unknown_fallback(settings):
        raise BadConfig("\n".join(unknown), hint=f"the agents are: {', '.join(registry.known_agents())}")
    for agent, model in map(named, settings.values.fallback):
        found = find_agent(agent, settings, models=[model])
        if not found.usable:
            problem = (
                f"{settings.origin('fallback')}: fallback: the agent {agent} cannot be used: {found.problem}"
            )
            raise UserError(
                problem, hint="; ".join(filter(None, (found.hint, "`loopwright doctor` shows more")))
            )


def _unknown_fallback(settings: Settings) -> list[str]:
    known = registry.known_agents()
    names = dict.fromkeys(named(entry)[0] for entry in settings.values.fallback)
    origin = settings.origin("fallback")
    return [
        f"{origin}: fallback: there is no agent named {name!r}{did_you_mean(name, known)}"
        for name in names
        if name not in known
    ]


def check_accounts(settings: Settings) -> None:
    """Refuse an account that no agent could be started with, before anything is spent."""
    known = registry.known_agents()
    for agent, several in accounts(settings, os.environ).items():
        if agent not in known:
            raise BadConfig(
                f"agents.{agent}.accounts: there is no agent named {agent!r}{did_you_mean(agent, known)}",
                hint=f"the agents are: {', '.join(known)}",
            )
        for one in several:
            check(agent, one, settings)


def check_options(settings: Settings) -> None:
    """Refuse options of agents that do not exist, or that the agent does not know: each with its place."""
    check_accounts(settings)
    known = registry.known_agents()
    problems: list[str] = []
    for name, options in settings.values.agents.items():
        if name not in known:
            place = next(settings.origin(f"agents.{name}.{option}") for option in options)
            guess = did_you_mean(name, known)
            problems.append(f"{place}: agents.{name}: there is no agent of this name{guess}")
        elif (found := find_agent(name, settings)).wrong_options:
            problems.append(f"{found.problem} ({found.hint})")
    if settings.values.agent not in known:
        guess = did_you_mean(settings.values.agent, known)
        problems.append(f"{settings.origin('agent')}: agent: there is no agent of this name{guess}")
    problems += _unknown_fallback(settings)
    if problems:
        raise BadConfig("\n".join(problems), hint=f"the agents are: {', '.join(known)}")


def check_gates(settings: Settings, work: PlannedWork) -> None:
    """Say before any money is spent that nothing would check the result."""
    if settings.gates or settings.policy().allow_unverified:
        return
    if bare := [task.key for task in work.tasks if not task.acceptance]:
        raise Refused(
            f"nothing would check the work of: {listed(bare)}",
            hint="`loopwright init` finds your project's checks; or give the tasks acceptance commands; "
            "or --allow-unverified to land unchecked work",
        )


def check_sandbox(settings: Settings) -> None:
    """Refuse to start without the sandbox that was asked for by name."""
    wanted = settings.values.sandbox
    if wanted.level == "bubblewrap" or (wanted.level == "auto" and wanted.network != "on"):
        chosen_sandbox(settings, os.environ, refuse=True)


async def check_folder(repository: GitRepository, start: Base, place: Place) -> None:
    """Refuse a sub-folder that the starting commit does not have: nothing could run there."""
    if not place.subfolder:
        return
    name = f"{start.sha}:{place.subfolder}"
    found = await repository.git.run("cat-file", "-t", name, env=user_env(), cwd=place.root, ok=(0, 128))
    if found.text != "tree":
        raise Refused(
            f"the folder {place.subfolder} is not in {start.sha[:7]}, the commit that the plan would start from",
            hint="commit what is in it first, or run from the top of the repository",
        )


def uncommitted(start: Base, settings_file: str | None, *, committed: bool, plan: str) -> tuple[str, ...]:
    """Say in plain words what of the checkout is not part of the work, and whose settings count.

    `settings_file` is the project file that was read, relative to the repository; `committed` says whether it
    was read from the starting commit or, because that has none, from the checkout.
    """
    told: list[str] = []
    if settings_file is not None and not committed:
        told.append(
            f"{settings_file} is not committed, so its settings are taken from your checkout; once a commit has "
            "it, only the committed one counts"
        )
    elif settings_file in start.dirty:
        told.append(
            f"{settings_file} has uncommitted changes that do not count: the one of {start.sha[:7]} is used"
        )
    known = {settings_file, plan}
    rest = [name for name in start.dirty if name not in known]
    if rest:
        told.append(f"not committed, so not part of the work: {listed(rest)}")
    return tuple(told)


def relative(path: Path, root: Path) -> str:
    """Return a path as git names it in a repository, or as it is when it lies elsewhere."""
    whole = path.resolve()
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else str(path)

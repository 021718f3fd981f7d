"""The checks of the project around the current folder: its accounts, its installation, its pull requests."""

import asyncio
import os
from pathlib import Path

from loopwright.adapters import registry
from loopwright.adapters.agents.environment import agent_environment
from loopwright.adapters.git import GitRepository
from loopwright.adapters.home.own_sources import editable_roots, installed_from
from loopwright.adapters.traces import otlp
from loopwright.app import accounts as named_accounts
from loopwright.config.home import shorten
from loopwright.config.resolve import Settings
from loopwright.core.policy.finishing import PULL_REQUEST
from loopwright.core.policy.quotas import envelope_id
from loopwright.core.values.accounts import Account
from loopwright.core.values.errors import BadConfig, LoopwrightError, Refused, UserError
from loopwright.core.values.wording import to_type
from loopwright.engine.money.quotas import drawing
from loopwright.services.doctor.checkup_machine import Finding, Status
from loopwright.services.doctor.probes import invocation_of
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import glance_at, here
from loopwright.services.notifications.targets import check_targets, name_of

# The accounts that the settings name for agents, each with its login.


def accounts(settings: Settings) -> list[Finding]:
    """Check each account: whether its agent supports accounts, its home exists, and its variables are set."""
    try:
        known = named_accounts(settings, environment())
    except BadConfig as bad:
        return [Finding(name="accounts", status=Status.FAIL, text=str(bad), fix=bad.hint or "")]
    return [_account(agent, one, settings) for agent, several in known.items() for one in several]


def _account(agent: str, account: Account, settings: Settings) -> Finding:
    name = f"account {envelope_id(agent, account.name)}"
    try:
        check(agent, account, settings)
    except UserError as wrong:
        return Finding(name=name, status=Status.FAIL, text=str(wrong), fix=wrong.hint or "")
    parts = []
    if account.home:
        shown = shorten(Path(account.home), environment())
        if not Path(account.home).is_dir():
            probe = f"`{to_type('doctor', probe=True, agent=agent, account=account.name)}`"
            return Finding(
                name=name,
                status=Status.FAIL,
                text=f"its home {shown} does not exist, so no login is stored there",
                fix=f"log in once with {_variable(agent, settings)}={shown}, then {probe}",
            )
        parts.append(f"home {shown}")
    parts += [f"{variable} from {source}" for variable, source in account.variables.items()]
    return Finding(name=name, status=Status.OK, text=", ".join(parts) or "the usual login of the agent")


# `doctor`: the targets of `notify`. No notice is sent.


def notices(settings: Settings) -> list[Finding]:
    """Look whether Apprise is installed and can use each target."""
    found: dict[str, Finding] = {}
    for url in settings.values.notify:
        try:
            check_targets((url,), settings, environment())
        except LoopwrightError as wrong:
            one = Finding(
                name="notify", status=Status.WARN, text=str(wrong), fix=getattr(wrong, "hint", None) or ""
            )
        else:
            one = Finding(name="notify", status=Status.OK, text=f"Apprise can use {name_of(url)}")
        found[one.text] = one
    return list(found.values())


def traces(settings: Settings) -> list[Finding]:
    """Look whether traces can be made, if a collector is set. None is sent."""
    endpoint = settings.values.otlp_endpoint
    if not endpoint:
        return []
    try:
        otlp.check_installed()
    except UserError as wrong:
        return [Finding(name="traces", status=Status.WARN, text=str(wrong), fix=wrong.hint or "")]
    return [Finding(name="traces", status=Status.OK, text=f"spans go to {otlp.address(endpoint)}")]


def _variable(agent: str, settings: Settings) -> str:
    home = invocation_of(registry.agent(agent), settings).home
    return next(one.moved_by for one in home if one.moved_by)


def check(agent: str, account: Account, settings: Settings) -> None:
    """Raise, with what to do, if an agent could not be started with an account."""
    invocation = invocation_of(registry.agent(agent), settings)
    agent_environment(environment(), drawing(invocation, agent, account))


# The check of pull requests, if a plan of this repository would end in one: remote, host and token.


async def _address(repository: GitRepository, remote: str) -> str | None:
    return await (await repository.ends()).remote(remote)


def forge(settings: Settings) -> list[Finding]:
    """Return where pull requests go, without a network request; nothing if plans end otherwise."""
    place, wanted = here(), settings.values.forge
    if settings.values.finish != PULL_REQUEST or place is None:
        return []
    # Its library takes long to import, and a project without a remote does not need it.
    from loopwright.adapters.forge.choosing import choose

    try:
        with glance_at(place.root) as repository:
            address = asyncio.run(_address(repository, wanted.remote))
        if address is None:
            raise Refused(
                f"there is no git remote {wanted.remote!r}",
                code="no_remote",
                hint="add it, or set forge.remote",
            )
        chosen = choose(address, hosts=wanted.hosts, token_file=wanted.token_file, env=environment())
    except LoopwrightError as trouble:
        fix = getattr(trouble, "hint", None) or "see to it, or set finish to leave"
        return [Finding(name="forge", status=Status.FAIL, text=str(trouble), fix=fix)]
    text = (
        f"pull requests go to {chosen.remote.path} on {chosen.name} ({chosen.url}), with the token in "
        f"{chosen.token_from}; whether it is valid was not asked"
    )
    return [Finding(name="forge", status=Status.OK, text=text)]


def installed(settings: Settings) -> list[Finding]:  # noqa: ARG001 - every look gets them
    """Return whether the project is installed in the active Python environment, and what gates load then."""
    place = here()
    if place is None:
        return []
    findings = []
    if roots := editable_roots(environment(), place.root):
        named = ", ".join(os.path.relpath(root, place.root.resolve()) for root in roots)
        text = f"installed editable from this checkout: gates and agents load {named} of their own workspace instead"
        findings.append(Finding(name="project", status=Status.OK, text=text))
    for one in installed_from(environment(), place.root):
        if not one.editable:
            text = f"a copy of {one.name} is installed in {one.place}: tests may load it instead of the work"
            fix = "install it editable with `python -m pip install -e .`, or uninstall it; `plan check` tries the gates"
            findings.append(Finding(name="project", status=Status.WARN, text=text, fix=fix))
    return findings

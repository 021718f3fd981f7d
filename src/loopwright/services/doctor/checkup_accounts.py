"""`doctor`: the accounts that the settings name for agents, each with the login that it should have."""

from pathlib import Path

from loopwright.adapters import registry
from loopwright.adapters.agents.environment import agent_environment
from loopwright.app import accounts as named_accounts
from loopwright.config.home import shorten
from loopwright.config.resolve import Settings
from loopwright.core.policy.quotas import envelope_id
from loopwright.core.values.accounts import Account
from loopwright.core.values.errors import BadConfig, UserError
from loopwright.core.values.shell_hints import to_type
from loopwright.engine.money.accounts import drawing
from loopwright.services.doctor.checkup_machine import Finding, Status
from loopwright.services.doctor.probes import invocation_of
from loopwright.services.homes.caller import environment


def accounts(settings: Settings) -> list[Finding]:
    """Look at each account: whether its agent can be given it, its home is there, and its variables are set."""
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


def _variable(agent: str, settings: Settings) -> str:
    home = invocation_of(registry.agent(agent), settings).home
    return next(one.moved_by for one in home if one.moved_by)


def check(agent: str, account: Account, settings: Settings) -> None:
    """Raise, with what to do, where an agent could not be started with an account."""
    invocation = invocation_of(registry.agent(agent), settings)
    agent_environment(environment(), drawing(invocation, agent, account))

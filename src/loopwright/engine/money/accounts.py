"""What an account changes about how an agent is started."""

from dataclasses import replace

from loopwright.core.values.accounts import Account, Accounts, account_named
from loopwright.core.values.errors import BadConfig
from loopwright.ports import Invocation


def account(accounts: Accounts, agent: str, name: str | None) -> Account:
    """Return the account that a run draws from; raise when the settings of this machine do not have it."""
    found = account_named(accounts, agent, name)
    if found is None:
        raise BadConfig(
            f"the agent {agent} has no account named {name} on this machine",
            code="account_unknown",
            hint=f"name it in your config.toml as [agents.{agent}.accounts.{name}]",
        )
    return found


def drawing(invocation: Invocation, agent: str, account: Account) -> Invocation:
    """Return how an agent is started that draws from this account."""
    if not account.home and not account.variables:
        return invocation
    variable = next((one.moved_by for one in invocation.home if one.moved_by), None)
    if account.home and variable is None:
        raise BadConfig(
            f"the agent {agent} cannot be given another config home: account {account.name} has one",
            code="account_home_conflict",
            hint=f"give the account `variables` instead, such as its key, or take out "
            f"agents.{agent}.accounts.{account.name}.home",
        )
    # What the user is logged in with elsewhere would win over the login in the account's own home.
    given = tuple(name for name in invocation.inherit if name not in invocation.credentials)
    invocation = replace(invocation, inherit=given, renamed=account.variables)
    if variable is None or not account.home:
        return invocation
    return replace(invocation, env={**invocation.env, variable: account.home})

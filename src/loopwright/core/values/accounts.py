"""An account of an agent: where its login lives. Never a secret itself, only the names of variables that have one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

ACCOUNT: Final = "default"
"""The account that an agent's own program is logged in with, where the settings name no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One of the accounts that the settings name for an agent, in their order."""

    name: str = ACCOUNT
    home: str = ""
    """Its own config home, as an absolute path; empty: the agent's usual one."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables that the agent is given, each with the name that the user's environment has it under."""


def called(agent: str, account: str | None) -> str:
    """Return what people call an account: the agent alone where it is its usual one."""
    return agent if account in (None, ACCOUNT) else f"{agent}/{account}"


Accounts = Mapping[str, tuple[Account, ...]]
"""The accounts of each agent for which the settings name any."""

USUAL: Final = Account()


def usual(accounts: Accounts, agent: str) -> str:
    """Return the name of an agent's first account."""
    return accounts.get(agent, (USUAL,))[0].name


def account_named(accounts: Accounts, agent: str, name: str | None) -> Account | None:
    """Return an account of an agent; None when the settings do not have it any more."""
    return next((one for one in accounts.get(agent, (USUAL,)) if one.name == (name or ACCOUNT)), None)

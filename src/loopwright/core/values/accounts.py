"""An account of an agent: where its login is.

Never a secret itself, only the names of variables that contain one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

ACCOUNT: Final = "default"
"""The default account: the login that the agent's own program uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account that the settings name for an agent, in their order."""

    name: str = ACCOUNT
    home: str = ""
    """Its own config home, as an absolute path; empty for the agent's usual one."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables for the agent, each with its name in the user's environment."""


def called(agent: str, account: str | None) -> str:
    """Return the name of an account for people: the agent alone for its usual one."""
    return agent if account in (None, ACCOUNT) else f"{agent}/{account}"


Accounts = Mapping[str, tuple[Account, ...]]
"""The accounts of each agent that has any in the settings."""

USUAL: Final = Account()


def usual(accounts: Accounts, agent: str) -> str:
    """Return the name of an agent's first account."""
    return accounts.get(agent, (USUAL,))[0].name


def account_named(accounts: Accounts, agent: str, name: str | None) -> Account | None:
    """Return an account of an agent; None if the settings do not contain it any more."""
    return next((one for one in accounts.get(agent, (USUAL,)) if one.name == (name or ACCOUNT)), None)

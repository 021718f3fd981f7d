"""Several accounts of one agent: the settings of each, and all of them as values with their paths made whole."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from loopwright.config.home import expand
from loopwright.config.kinds import Kind, text
from loopwright.core.values.accounts import Account, Accounts
from loopwright.core.values.errors import BadConfig

ACCOUNT_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_VARIABLE: Final = r"(?!LOOPWRIGHT_)[A-Za-z_][A-Za-z0-9_]{0,127}"
_PAIR: Final = rf"^{_VARIABLE}={_VARIABLE}$"
_EXPECTED: Final = (
    'a list such as "ANTHROPIC_API_KEY=WORK_KEY": a variable that the agent needs, then the name that your '
    "environment has it under, never the secret itself"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSetting:
    """One key of an account's table."""

    kind: Kind
    description: str


def _read_variables(value: object) -> tuple[str, ...]:
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(
        isinstance(one, str) and re.fullmatch(_PAIR, one.strip()) for one in listed
    ):
        # Without the value: it may be the secret itself.
        raise ValueError(f"expected {_EXPECTED}")
    return tuple(one.strip() for one in listed)


ACCOUNT_SETTINGS: Final[Mapping[str, AccountSetting]] = MappingProxyType(
    {
        "home": AccountSetting(
            kind=text(
                what="an absolute path, or one that starts with ~/",
                pattern=r"(/|~/).+",
                optional=True,
                limit=1000,
            ),
            description="The config home of an account of the agent; its usual one when empty.",
        ),
        "variables": AccountSetting(
            kind=Kind(
                name="list of texts",
                expected=_EXPECTED,
                read=_read_variables,
                show=list,
                schema={"type": "array", "items": {"type": "string", "pattern": _PAIR}},
            ),
            description="Variables for the agent, each with the name that your environment has it under.",
        ),
    }
)


def accounts(
    given: Mapping[str, Mapping[str, Mapping[str, Any]]], env: Mapping[str, str], origins: Mapping[str, str]
) -> Accounts:
    """Return the accounts of each agent in the order of the settings; raise when two of them are one."""
    found: dict[str, tuple[Account, ...]] = {}
    for agent, named in given.items():
        homes: dict[str, str] = {}
        made = []
        for name, table in named.items():
            home = str(expand(Path(table["home"]), env)) if table.get("home") else ""
            pairs = (one.split("=", 1) for one in table.get("variables", ()))
            account = Account(name=name, home=home, variables=dict(pairs))
            # Two with one home and different keys may well be two accounts.
            if not account.variables and home in homes:
                place = origins.get(f"agents.{agent}.accounts.{name}.home", "")
                raise BadConfig(
                    f"{place}: agents.{agent}.accounts.{name}: it has the same home as {homes[home]}, so they are "
                    "one account",
                    code="account_home_shared",
                    hint="give each account its own home, and log in once with each",
                )
            if not account.variables:
                homes[home] = name
            made.append(account)
        found[agent] = tuple(made)
    return found

"""The kinds of lists that settings take."""

import re
from ipaddress import ip_network
from typing import Final

from loopwright.config.accounts import ACCOUNT_NAME
from loopwright.config.groups import AGENT_NAME, WITH_MODEL
from loopwright.config.kinds import Kind, is_inside, items
from loopwright.core.policy.prices import read_price

_SLOTS: Final = rf"^{AGENT_NAME}(/{ACCOUNT_NAME})? [1-9][0-9]{{0,3}}$"
_TARGET: Final = r"^[A-Za-z][A-Za-z0-9]*://\S+$"
_NAME: Final = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}


def _is_fallback(text: str) -> bool:
    return re.fullmatch(WITH_MODEL, text) is not None


def _is_slots(text: str) -> bool:
    return re.fullmatch(_SLOTS, text) is not None


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


def _is_target(url: str) -> bool:
    return re.fullmatch(_TARGET, url) is not None and len(url) <= 2000


def _is_command(text: str) -> bool:
    return bool(text.strip()) and len(text) <= 1000


def _is_price(text: str) -> bool:
    try:
        return len(text) <= 300 and read_price(text) is not None
    except ValueError:
        return False


def _is_document(entry: str) -> bool:
    return is_inside(entry.partition(":")[0].strip()) and len(entry) <= 1000


def _is_variable(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name) is not None


VARIABLES: Final = items(what="a list of names of environment variables", each=_is_variable, schema=_NAME)
COMMANDS: Final = items(
    what='a list of commands, such as "pytest *"',
    each=_is_command,
    schema={"minLength": 1, "maxLength": 1000},
)
SLOTS: Final = items(
    what='a list such as "claude 2" or "claude/work 1": an agent or an account, and a number',
    each=_is_slots,
    schema={"pattern": _SLOTS},
)
DOCUMENTS: Final = items(
    what='a list such as "prices.md: prices and tiers": a path in the project, perhaps with a remark',
    each=_is_document,
    schema={"maxLength": 1000},
)
NETWORKS: Final = items(
    what='a list of networks such as "127.0.0.0/8"',
    each=_is_network,
    schema={"minLength": 2, "maxLength": 50},
)
TARGETS: Final = items(
    what='a list of URLs of Apprise, such as "ntfy://my-topic"',
    each=_is_target,
    schema={"pattern": _TARGET, "maxLength": 2000},
)
PRICES: Final = items(
    what='a list such as "gpt-5* 1.25 10 0.125": model, then dollars for a million tokens of input, output, '
    "cache read and cache write",
    each=_is_price,
    schema={"pattern": r"^\s*\S+(\s+[0-9]+(\.[0-9]{1,6})?){2,4}\s*$", "maxLength": 300},
)
FALLBACKS: Final = items(
    what='a list of agents, such as "codex" or "claude:some-model"',
    each=_is_fallback,
    schema={"pattern": f"^{WITH_MODEL}$"},
)


def paths(what: str) -> Kind:
    """Return the kind of a list of paths inside the project."""
    return items(what=what, each=is_inside, schema={"maxLength": 1000})

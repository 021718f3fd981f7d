"""Secrets by their names, from the system's keyring or from a command. No value is stored."""

import shlex
import subprocess
import sys
from collections.abc import Collection, Mapping
from typing import Final

from loopwright.core.values.errors import NoEnvironment

KEYRING: Final = "keyring"
SERVICE: Final = "loopwright"
"""The service under which the keyring has them."""
_NAME: Final = "{name}"
_LONGEST_S: Final = 20.0
_LARGEST: Final = 65_536


def provided(
    provider: str, names: Collection[str], env: Mapping[str, str], platform: str = sys.platform
) -> dict[str, str]:
    """Return those of these secrets that the provider has; raise `NoEnvironment` if it cannot be asked."""
    found = {}
    for name in sorted(names):
        value = _ask(_words(provider, name, platform), env)
        if value is not None:
            found[name] = value
    return found


def _words(provider: str, name: str, platform: str) -> list[str]:
    if provider != KEYRING:
        words = shlex.split(provider)
        return [one.replace(_NAME, name) for one in words] if _NAME in provider else [*words, name]
    if platform == "darwin":
        return ["security", "find-generic-password", "-s", SERVICE, "-a", name, "-w"]
    return ["secret-tool", "lookup", "service", SERVICE, "name", name]


def _ask(words: list[str], env: Mapping[str, str]) -> str | None:
    try:
        # No shell: a name cannot become a command. What it prints on stderr may quote the secret, so it is dropped.
        done = subprocess.run(
            words,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoEnvironment(
            f"{words[0]}, which the setting secrets_from names, did not answer within {_LONGEST_S:.0f} s"
        ) from None
    except OSError as missing:
        raise NoEnvironment(
            f"{words[0]}, which the setting secrets_from names, cannot be started: {missing.strerror}"
        ) from missing
    value = done.stdout[:_LARGEST].decode(errors="replace").removesuffix("\n")
    return value if done.returncode == 0 and value else None

"""The targets of the setting `notify`: their names, which hide secrets, and their URLs, which have them."""

import hashlib
import re
from collections.abc import Collection, Mapping
from typing import Final

from loopwright.adapters.agents.environment import with_secrets
from loopwright.adapters.notify.apprise_target import check_target
from loopwright.config.resolve import Settings
from loopwright.core.values.errors import BadConfig
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import settings_for

_NAME: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def name_of(url: str) -> str:
    """Return the public name of a target: its scheme and a mark that distinguishes it."""
    mark = hashlib.sha256(url.encode()).hexdigest()[:8]
    return f"{url.partition('://')[0]}:{mark}"


def row_of(url: str, loop: str | None) -> str:
    """Return the id of the row of a target, perhaps one for a single loop."""
    named = f"{url} {loop or ''}"
    return f"notify_{hashlib.sha256(named.encode()).hexdigest()[:24]}"


def full_url(url: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return the URL of a target with the secrets that it names as `${NAME}`."""
    names = set(_NAME.findall(url))
    values = settings.values
    known = with_secrets(env, values.env_file, values.secrets_from, names, env) if names else {}
    if missing := sorted(name for name in names if not known.get(name)):
        raise BadConfig(
            f"the target {name_of(url)} of notify needs {', '.join(missing)}, which is not set",
            code="notify_secret_missing",
            hint=f"set {missing[0]} where Loopwright is started, or in the file of the setting env_file",
        )
    return _NAME.sub(lambda found: known[found[1]], url)


def check_targets(urls: Collection[str], settings: Settings, env: Mapping[str, str]) -> None:
    """Refuse targets that cannot be used."""
    for url in urls:
        check_target(full_url(url, settings, env), name_of(url))


def check_flag(urls: Collection[str]) -> None:
    """Refuse targets of `run --notify` that cannot be used."""
    check_targets(urls, settings_for(flags={"notify": list(urls)}), environment())

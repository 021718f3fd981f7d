"""One target of Apprise: check its URL, and send a notice to it."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote

from loopwright.adapters.machine.foreign_logs import Heard
from loopwright.adapters.processes.redaction import redacted
from loopwright.core.integrations.notices import Notice, Topic
from loopwright.core.integrations.webhooks import Delivery, Reply
from loopwright.core.values.errors import UserError

INSTALL: Final = "pip install 'loopwright[notify]'"
_TYPES: Final[Mapping[Topic, str]] = MappingProxyType(
    {
        Topic.DONE: "success",
        Topic.NEEDS_YOU: "warning",
        Topic.FAILED: "failure",
        Topic.BUDGET: "warning",
        Topic.ALERT: "warning",
    }
)
_LONGEST: Final = 300
_SHORTEST: Final = 4
"""A shorter part of a URL hides nothing, and would blank out other words."""


def is_installed() -> bool:
    """Return whether Apprise is there."""
    return find_spec("apprise") is not None


def check_target(url: str, name: str) -> None:
    """Refuse a URL that Apprise cannot use; `name` is what may be said of it."""
    if not is_installed():
        raise UserError(
            "notify is set, and Apprise, which sends notices, is not installed",
            code="notify_not_installed",
            hint=INSTALL,
        )
    with Heard("apprise"):
        usable = _opened(url) is not None
    if not usable:
        raise UserError(
            f"Apprise cannot use the target {name}",
            code="notify_url_wrong",
            hint="compare it with the URLs of https://appriseit.com/services/",
        )


def send(url: str, name: str, notice: Notice) -> Delivery:
    """Send a notice once, in this thread, and return what became of it; the URL is in no part of that."""
    check_target(url, name)
    with Heard("apprise") as heard:
        taken = _opened(url).notify(
            title=notice.title, body=notice.body, notify_type=_TYPES[notice.topic], body_format="text"
        )
    if taken:
        return Delivery(reply=Reply.TAKEN)
    said = redacted("; ".join(heard.lines), _parts(url)) or "the target did not take it"
    return Delivery(reply=Reply.AWAY, detail=said[:_LONGEST])


def _opened(url: str) -> Any:
    # It is an extra, and takes a while to load.
    import apprise

    target = apprise.Apprise()
    return target if target.add(url) else None


def _parts(url: str) -> list[str]:
    """Return everything behind the scheme of a URL: any of it may be a secret."""
    found = re.split(r"[/:@?&=,;#]+", url.partition("://")[2])
    both = {one for part in found for one in (part, unquote(part)) if len(one) >= _SHORTEST}
    return sorted(both, key=len, reverse=True)

"""Turn values into HTML: the template environment, the words and icons of states, and safe text."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from loopwright import __version__
from loopwright.core.values.errors import LoopwrightError
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import advised, capitalized, sentence
from loopwright.server.pages.files import tag
from loopwright.server.pages.timeline import duration
from loopwright.services.reports.alerts import Alert

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""The Content-Security-Policy of every page: nothing inline, nothing from elsewhere."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

THEME: Final = "loopwright_theme"
"""The cookie with the theme that was chosen; without one, a page follows the browser."""
_THEMES: Final = frozenset({"light", "dark"})

MENU: Final = (
    (
        "",
        (
            ("/", "Home", "home"),
            ("/board", "Board", "board"),
            ("/questions", "Questions", "question"),
        ),
    ),
    ("Work", (("/projects", "Projects", "project"), ("/loops", "Loops", "loop"))),
    (
        "Watch",
        (
            ("/costs", "Costs", "cost"),
            ("/agents", "Agents", "agent"),
            ("/alerts", "Alerts", "alert"),
            ("/lessons", "Lessons", "lesson"),
        ),
    ),
    (
        "System",
        (
            ("/workers", "Workers", "worker"),
            ("/quota", "Quota", "quota"),
            ("/settings", "Settings", "settings"),
            ("/tokens", "Tokens", "token"),
            ("/webhooks", "Webhooks", "webhook"),
        ),
    ),
)
"""The menu: titles of groups with their addresses, names and icons."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a state is shown: a word, a colour and an icon, because some readers cannot tell colours apart."""

    word: str
    tone: str
    icon: str


_LOOKS: Final[Mapping[str, Look]] = {
    "DRAFT": Look("Draft", "idle", "draft"),
    "CREATED": Look("Not started", "idle", "queued"),
    "IDLE": Look("Not started", "idle", "queued"),
    "QUEUED": Look("Queued", "idle", "queued"),
    "NOT_STARTED": Look("Could not start", "bad", "failed"),
    "STARTING": Look("Starting", "run", "running"),
    "DISPATCHING": Look("Starting", "run", "running"),
    "PREPARING": Look("Preparing", "run", "running"),
    "RUNNING": Look("Running", "run", "running"),
    "WORKING": Look("Working", "run", "running"),
    "CHECKING": Look("Checking", "check", "checking"),
    "LANDING": Look("Landing", "check", "checking"),
    "VERIFYING": Look("Verifying", "check", "checking"),
    "WAITING": Look("Waiting", "wait", "waiting"),
    "WAITING_CHILDREN": Look("Waiting", "wait", "waiting"),
    "TRYING": Look("Trying", "run", "running"),
    "HEALED": Look("Healed", "good", "done"),
    "PAUSED": Look("Paused", "wait", "paused"),
    "STOPPED": Look("Stopped", "wait", "paused"),
    "NO_WORKER": Look("No worker", "wait", "paused"),
    "READY_TO_VERIFY": Look("Ready to verify", "ask", "asks"),
    "AWAITING_RESPONSE": Look("Needs you", "ask", "asks"),
    "NEEDS_YOU": Look("Needs you", "ask", "asks"),
    "OPEN": Look("Open", "ask", "asks"),
    "COMPLETE": Look("Done", "good", "done"),
    "COMPLETED": Look("Done", "good", "done"),
    "LANDED": Look("Landed", "good", "done"),
    "VERIFIED": Look("Verified", "good", "done"),
    "verified": Look("Verified", "good", "done"),
    "no_change_proven": Look("No change needed", "good", "done"),
    "passed": Look("Passed", "good", "done"),
    "VERIFIED_WITH_GAPS": Look("Verified with gaps", "warn", "gaps"),
    "verified_with_gaps": Look("Verified with gaps", "warn", "gaps"),
    "UNVERIFIED": Look("Unverified", "warn", "gaps"),
    "unverified": Look("Unverified", "warn", "gaps"),
    "inconclusive": Look("Inconclusive", "warn", "gaps"),
    "skipped": Look("Skipped", "idle", "cancelled"),
    "ERROR": Look("Failed", "bad", "failed"),
    "FAILED": Look("Failed", "bad", "failed"),
    "WITHDRAWN": Look("Withdrawn", "idle", "paused"),
    "failed": Look("Failed", "bad", "failed"),
    "error": Look("Error", "bad", "failed"),
    "REJECTED": Look("Rejected", "bad", "failed"),
    "not_verified": Look("Not verified", "bad", "failed"),
    "BROKEN": Look("Broken", "bad", "failed"),
    "critical": Look("Critical", "bad", "failed"),
    "warning": Look("Warning", "warn", "asks"),
    "info": Look("Note", "idle", "note"),
    "dispatch-rounds": Look("Dispatching rounds", "run", "running"),
    "update-roadmap": Look("Updating the roadmap", "check", "checking"),
    "done": Look("Done", "good", "done"),
    "blocked": Look("Blocked", "bad", "failed"),
    "round_plan": Look("Plan", "run", "running"),
    "round_implement": Look("Implement", "run", "running"),
    "round_review": Look("Review", "check", "checking"),
    "round_finalize-round": Look("Finalize", "check", "checking"),
    "round_done": Look("Done", "good", "done"),
    "round_blocked": Look("Blocked", "bad", "failed"),
    "milestone_pending": Look("Pending", "idle", "queued"),
    "milestone_in-progress": Look("In progress", "run", "running"),
    "milestone_done": Look("Done", "good", "done"),
    "webhook_on": Look("On", "good", "done"),
    "webhook_retrying": Look("Retrying", "wait", "waiting"),
    "webhook_off": Look("Off", "bad", "failed"),
    "delivery_taken": Look("Taken", "good", "done"),
    "delivery_refused": Look("Refused", "bad", "failed"),
    "delivery_waiting": Look("Waiting", "idle", "queued"),
    "CLOSED": Look("Closed", "wait", "paused"),
    "PROPOSED": Look("Proposed", "ask", "asks"),
    "TRIED": Look("On trial", "run", "checking"),
    "KEPT": Look("Kept", "good", "done"),
    "REMOVED": Look("Removed", "idle", "cancelled"),
    "CANCELLED": Look("Cancelled", "idle", "cancelled"),
}


def look(state: Any) -> Look:
    """Return how a state is shown."""
    name = str(getattr(state, "value", state))
    return _LOOKS.get(name) or Look(name.replace("_", " ").capitalize(), "idle", "queued")


_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CODE: Final = re.compile(r"`([^`\n]+)`")
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)


def plain(text: Any) -> str:
    """Return text that shows what it holds: terminal colours removed, invisible characters as their numbers."""
    whole = str(text)
    if whole.isprintable():
        return whole
    without = _ANSI.sub("", whole).replace("\r\n", "\n").replace("\r", "\n")
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", without)


def coded(text: Any) -> Markup:
    """Return a text with the parts in backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(plain(text)))))  # noqa: S704 - escaped before


def money(micros: int | None, *, estimated: bool = False) -> str:
    """Return an amount in dollars."""
    if micros is None:
        return "unknown"
    dollars = micros / 1_000_000
    shown = f"${dollars:,.2f}" if dollars >= 0.01 or not micros else "<$0.01"
    return f"~{shown}" if estimated else shown


def exact(at: datetime) -> str:
    """Return a time for the attribute of a `<time>` element."""
    return at.isoformat(timespec="seconds")


def clock(at: datetime) -> str:
    """Return a time in words; the browser replaces it with the local time."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def ago(at: datetime, now: datetime) -> str:
    """Return the time since or until a moment, in words."""
    seconds = (now - at).total_seconds()
    if abs(seconds) < 5:
        return "just now"
    whole = round(abs(seconds))
    unit = next((unit for unit in (86400, 3600, 60) if whole >= unit), 1)
    words = duration(whole - whole % unit)
    return f"{words} ago" if seconds > 0 else f"in {words}"


def address(name: str) -> str:
    """Return a name as a part of an address."""
    return quote(name, safe="")


def inside(path: str) -> str:
    """Return a path of this server, so that a redirect never leaves it."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


def words_of(refused: LoopwrightError) -> str:
    """Return an error with what to do about it."""
    return capitalized(advised(str(refused), getattr(refused, "hint", None) or ""))


def written(value: Any) -> str:
    """Return the value of a setting as a settings file has it; a text without its quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def with_query(path: str, kept: Mapping[str, Any], **more: Any) -> str:
    """Return an address with the filters that are set."""
    chosen = {name: value for name, value in {**kept, **more}.items() if value}
    return f"{path}?{urlencode(chosen)}" if chosen else path


def relative(path: Path, folder: str) -> str:
    """Return a path relative to a folder."""
    return path.relative_to(folder).as_posix()


def about(problems: Sequence[str], place: str) -> str:
    """Return the problem at a place; empty if there is none."""
    found = (one.removeprefix(f"{place}: ") for one in problems if one.startswith(f"{place}: "))
    return "; ".join(found)


def target(alert: Alert) -> str:
    """Return the page on which you can handle an alert."""
    if alert.task_id and alert.plan_id:
        return f"/plans/{alert.plan_id}/tasks/{alert.task_id}"
    if alert.plan_id:
        return f"/plans/{alert.plan_id}"
    if alert.loop_id:
        return f"/loops/{alert.loop_id}"
    if alert.kind == "webhook_stuck":
        return f"/webhooks/{alert.id.split(':')[1]}"
    return {"account_closed": "/quota", "no_worker": "/workers"}.get(alert.kind, "/alerts")


def _shown(value: Any) -> Any:
    """Make every text plain before it is escaped, so that each template does not have to."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@lru_cache(1)
def environment() -> Environment:
    """Return the templates, with everything escaped and plain."""
    made = Environment(
        loader=PackageLoader("loopwright.server.pages"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "look": look,
        "plain": plain,
        "coded": coded,
        "address": address,
        "money": money,
        "exact": exact,
        "clock": clock,
        "duration": duration,
        "sentence": sentence,
        "written": written,
        "short": short_id,
        "with_query": with_query,
        "relative": relative,
        "about": about,
        "target": target,
        "shell": shlex.join,
    }
    made.globals |= {"ago": ago, "version": __version__, "menu": MENU, "files": tag()}
    return made


def page(
    request: Request, name: str, *, status: HTTPStatus = HTTPStatus.OK, shown_at: str = "", **values: Any
) -> HTMLResponse:
    """Return a page; `shown_at` is its address for reloading, if that differs from the request's."""
    path = shown_at or request.url.path
    if request.method == "POST" and not shown_at:
        # A refused form is shown again on its own page.
        path = path.rpartition("/")[0]
    query = request.url.query if request.method == "GET" else ""
    theme = request.cookies.get(THEME, "")
    values |= {"path": quote(path, safe="/"), "query": query, "theme": theme if theme in _THEMES else ""}
    text = environment().get_template(name).render(**values)
    return HTMLResponse(text, status_code=int(status), headers=HEADERS)

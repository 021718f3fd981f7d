"""A report as Markdown, and as one HTML file without network access."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Final, Literal

from loopwright.core.values.documents import document, readable
from loopwright.core.values.wording import counted, duration, money, one_line
from loopwright.services.reports.costs import PRICES_AS_OF, Cost
from loopwright.services.reports.report import PlanLine, WorkReport

Format = Literal["markdown", "html", "json"]

_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "li{overflow-wrap:anywhere}h2{margin-bottom:.3rem}"
)
_LONGEST: Final = 300
_SIGNS: Final = frozenset("\\`*_[]<>#|")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    title: str
    lines: Sequence[str]
    empty: str


def as_text(report: WorkReport, form: Format) -> str:
    """Return a report in a format."""
    if form == "json":
        return readable(document(report))
    return markdown(report) if form == "markdown" else html(report)


def markdown(report: WorkReport) -> str:
    """Return a report as Markdown."""
    blocks = [f"# {_title(report)}", _in_short(report)]
    for part in _parts(report):
        lines = [f"- {_plain(one)}" for one in part.lines] or [part.empty]
        blocks.append(f"## {part.title}\n\n" + "\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def html(report: WorkReport) -> str:
    """Return a report as one HTML file."""
    parts = []
    for part in _parts(report):
        items = "".join(f"<li>{escape(one)}</li>" for one in part.lines)
        body = f"<ul>{items}</ul>" if items else f"<p>{escape(part.empty)}</p>"
        parts.append(f"<h2>{escape(part.title)}</h2>{body}")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(_title(report))}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(_title(report))}</h1><p>{escape(_in_short(report))}</p>{''.join(parts)}</body></html>\n"
    )


def _title(report: WorkReport) -> str:
    return f"Loopwright: {_moment(report.since)} to {_moment(report.until)}"


def _in_short(report: WorkReport) -> str:
    return (
        f"{counted(len(report.verified), 'plan')} verified, {len(report.failed)} failed, "
        f"{counted(len(report.waiting), 'matter')} waiting for you, {_spent(report)}."
    )


def _parts(report: WorkReport) -> Iterator[_Part]:
    yield _Part(
        title="Waiting for you",
        lines=[f"{one.severity.value}: {_cut(one.message)} ({one.hint})" for one in report.waiting],
        empty="Nothing waits for you.",
    )
    yield _Part(
        title="Failed",
        lines=[_line(one, one.reason or "its verification failed") for one in report.failed],
        empty="No plan failed.",
    )
    yield _Part(
        title="Verified",
        lines=[_line(one, one.branch) for one in report.verified],
        empty="No plan was verified.",
    )
    yield _Part(
        title="Spent",
        lines=[
            f"{one.name}: {money(one.cost_micros)} in {counted(one.runs, 'run')}, {duration(one.seconds)}"
            + _left_open(one)
            for one in report.spent_by_agent
        ],
        empty="No agent ran.",
    )
    yield _Part(
        title="Quota waits",
        lines=[
            f"{one.account}: {_moment(one.since)} to {_moment(one.until) if one.until else 'now, still closed'}"
            for one in report.quota_waits
        ],
        empty="No account was closed.",
    )
    yield _Part(
        title="Next",
        lines=[_line(one, one.reason or one.status.value.lower()) for one in report.next],
        empty="Every plan has ended.",
    )


def _line(plan: PlanLine, more: str) -> str:
    where = f"{plan.project}: " if plan.project else ""
    return f"{where}{_cut(plan.title)} ({plan.passed} of {plan.total} tasks passed): {_cut(more)}"


def _spent(report: WorkReport) -> str:
    return f"{money(report.spent.cost_micros)} spent" + _left_open(report.spent)


def _left_open(cost: Cost) -> str:
    unknown = f" and the unknown cost of {counted(cost.unknown_costs, 'run')}" if cost.unknown_costs else ""
    if not cost.estimated_costs:
        return unknown
    runs = counted(cost.estimated_costs, "run")
    return f"{unknown} (the cost of {runs} is estimated with model prices of {PRICES_AS_OF})"


def _cut(text: str) -> str:
    return one_line(text, _LONGEST)


def _plain(text: str) -> str:
    """Return text in which Markdown finds no markup: agents and sources wrote parts of it."""
    return "".join(f"\\{one}" if one in _SIGNS else one for one in text)


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")

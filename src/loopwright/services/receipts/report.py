"""A receipt as one HTML file: no script, no network, readable on a phone and on paper."""

from collections.abc import Iterable
from datetime import datetime
from html import escape
from importlib.resources import files
from typing import Final

from loopwright.core.receipts.events import decided
from loopwright.core.receipts.model import Receipt, TaskEntry, VerdictEntry
from loopwright.core.rows.model import Outcome
from loopwright.core.values.findings import CommandFacts
from loopwright.core.values.states import AttemptState
from loopwright.core.values.wording import counted, duration, money, to_type, visible

_GOOD: Final = frozenset({Outcome.VERIFIED, Outcome.NO_CHANGE_PROVEN})
_MEANING: Final = {
    Outcome.VERIFIED: "All checks passed on exactly this result, and the work did not weaken them.",
    Outcome.NO_CHANGE_PROVEN: "The checks pass without a change.",
    Outcome.VERIFIED_WITH_GAPS: "The checks passed. The gaps below say what they do not prove.",
}


def report(receipt: Receipt) -> str:
    """Return the report of a plan."""
    plan, tone = receipt.plan, _tone(receipt.outcome)
    verdicts = {one.id: one for one in receipt.verdicts}
    keys = {task.id: task.key for task in receipt.tasks}
    meaning = _MEANING.get(receipt.outcome, plan.reason)
    body = [
        f"<header><p class=small>{_text(receipt.project.name)}</p><h1>{_text(plan.title)}</h1>",
        f"<p class='verdict {tone}'><b>{_words(receipt.outcome)}</b> {_text(meaning)}</p></header>",
        _facts(receipt),
        _list("Gaps", [f"{_about(one.task)}{_text(one.cause)} {_text(one.remedy)}" for one in receipt.gaps]),
        "<h2>Tasks</h2>",
        *(_task(task, verdicts) for task in receipt.tasks),
        _result(receipt),
        _list("Decisions of people", [_text(decided(one, keys)) for one in receipt.overrides]),
        _list("Notes", [f"{_about(one.task)}{_text(one.text)}" for one in receipt.notes]),
        (
            "<footer><h2>Check it yourself</h2>"
            f"<p>The branch is <code>{_text(plan.branch)}</code>, from <code>{_text(plan.base_sha[:12])}</code>"
            f" to <code>{_text((plan.result_sha or 'no result')[:12])}</code>. In the repository:</p>"
            f"<pre>{_text(to_type('receipt', 'verify', plan.id))}</pre>"
            f"<p class=small>Receipt <code>{receipt.sha256}</code>, made by {_text(receipt.made_by)}.</p></footer>"
        ),
    ]
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<meta name=color-scheme content='light dark'><title>{_text(plan.title)}: {_words(receipt.outcome)}</title>"
        f"<style>\n{_style()}</style></head>\n<body><main>\n"
        + "\n".join(filter(None, body))
        + "\n</main></body></html>\n"
    )


def _facts(receipt: Receipt) -> str:
    plan = receipt.plan
    landed = sum(task.landed_sha is not None for task in receipt.tasks)
    cost = "unknown" if receipt.cost.total is None else money(receipt.cost.total)
    shown = (
        ("Tasks", f"{landed} of {len(receipt.tasks)} landed"),
        ("Attempts", str(sum(len(task.attempts) for task in receipt.tasks))),
        ("Agents", ", ".join(sorted({run.agent for run in receipt.runs if run.agent}))),
        ("Cost", cost if receipt.cost.complete else f"{cost} or more"),
        ("Time", _lasted(plan.executed_at, plan.verified_at or plan.completed_at)),
        ("Ended", (plan.verified_at or plan.completed_at or "")[:16].replace("T", " ")),
    )
    cells = "".join(f"<div><dt>{name}</dt><dd>{_text(value)}</dd></div>" for name, value in shown if value)
    return f"<dl>{cells}</dl>"


def _task(task: TaskEntry, verdicts: dict[str, VerdictEntry]) -> str:
    attempts = "".join(
        f"<li><b>Attempt {one.n}</b> {_words(one.state)}{_reason(one.detail)}"
        + _evidence(verdicts.get(one.verdict_id or ""), landed=one.state is AttemptState.LANDED)
        + "</li>"
        for one in task.attempts
    )
    commit = f" <code>{_text(task.landed_sha[:10])}</code>" if task.landed_sha else ""
    return (
        f"<details class=card><summary><span class='dot {_tone(task.outcome)}'></span><span class=grow>"
        f"<b>{_text(task.key)}</b> {_text(task.title)}</span><span class=small>{_words(task.outcome)}</span></summary>"
        + (f"<p class=small>{_text(task.reason)}</p>" if task.reason else "")
        + f"<ol>{attempts or '<li>No attempt was made.</li>'}</ol>"
        + (f"<p class=small>Landed as{commit}.</p>" if commit else "")
        + "</details>"
    )


def _evidence(verdict: VerdictEntry | None, *, landed: bool) -> str:
    if verdict is None:
        return ""
    bad = "".join(
        f"<li class=bad>{_text(one.name)}<pre>{_text(one.message[:2_000])}</pre></li>" for one in verdict.bad
    )
    commands = "".join(map(_command, verdict.commands)) if landed or not bad else ""
    return f"<ul>{bad}{commands}</ul>"


def _command(one: CommandFacts) -> str:
    tests = f", {counted(one.tests, 'test')}" if one.tests else ""
    said = "timed out" if one.timed_out else f"exit {one.exit_code}"
    tone = "bad" if one.refused else "good"
    return (
        f"<li class={tone}><code>{_text(one.command)}</code> <span class=small>{said}{tests}, "
        f"{duration(one.duration_s)}</span></li>"
    )


def _result(receipt: Receipt) -> str:
    """Return the complete gate's verdict on the result."""
    tree = receipt.plan.result_tree
    found = [one for one in receipt.verdicts if tree is not None and one.tree == tree]
    commands = {command.command: command for one in found for command in one.commands}
    if not commands:
        return ""
    return f"<h2>Checks of the result</h2><ul class=card>{''.join(map(_command, commands.values()))}</ul>"


def _list(title: str, lines: Iterable[str]) -> str:
    made = "".join(f"<li>{line}</li>" for line in lines)
    return f"<h2>{title}</h2><ul class=card>{made}</ul>" if made else ""


def _about(task: str | None) -> str:
    return f"<b>{_text(task)}</b> " if task else ""


def _reason(detail: str) -> str:
    return f": {_text(detail)}" if detail else ""


def _tone(outcome: Outcome) -> str:
    if outcome in _GOOD:
        return "good"
    return "warn" if outcome in (Outcome.VERIFIED_WITH_GAPS, Outcome.UNVERIFIED) else "bad"


def _lasted(began: str | None, ended: str | None) -> str:
    if began is None or ended is None:
        return ""
    return duration((datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds())


def _words(state: str) -> str:
    return _text(str(state).replace("_", " ").lower())


def _text(text: str) -> str:
    """Return external text as HTML that shows its exact content."""
    return escape(visible(text))


def _style() -> str:
    return (files("loopwright.services.receipts") / "report.css").read_text(encoding="utf-8")

"""One task on one screen: what was expected, what failed, what each attempt changed, and what to do next."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from loopwright.cli.screens.plan_table import mark, tries, word
from loopwright.cli.shell.lines import Wrapped
from loopwright.core.values.failures import RULES, Failure
from loopwright.core.values.findings import Check, CommandResult, is_sentence
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import clean, duration, money
from loopwright.services.views.tasks import (
    AttemptView,
    Diagnosis,
    Finding,
    Known,
    Names,
    Severity,
    Step,
    TaskDetail,
    diff_command,
    next_steps,
    objecting_commands,
    place,
    what_stays,
)

if TYPE_CHECKING:  # the list of tasks asks git for nothing
    from loopwright.services.views.changes import Change

_LEAST: Final = 3
_MOST: Final = 14
_STEPS: Final = 3
"""So many commands are shown where there is little room, and the last one."""
_NARROW: Final = 70
"""On fewer columns a cut line hides what matters: there a screen may grow longer."""
_FRAME: Final = 4
"""Lines around what failed and around the commands to type."""

_SIGNS: Final = {
    "passed": ("✔", "green"),
    "failed": ("✘", "red"),
    "error": ("✘", "red"),
    "skipped": ("–", "dim"),
}

_SEVERITY: Final = {Severity.BLOCKING: "✘", Severity.OPINION: "·"}

Lines = list[Text]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """How much is shown when there is so much room."""

    commands: int
    criteria: int
    attempts: int


_LEVELS: Final = (
    _Level(commands=6, criteria=3, attempts=3),
    _Level(commands=4, criteria=2, attempts=2),
    _Level(commands=2, criteria=1, attempts=1),
)


def task_screen(
    detail: TaskDetail,
    changes: "Mapping[int, Change | None]",
    *,
    names: Names,
    height: int,
) -> tuple[Lines, list[Step]]:
    """Return the screen as lines, each of which fits one line of a terminal, and the commands to type."""
    unchanged = frozenset(n for n, change in changes.items() if change is not None and not change.files)
    steps = list(next_steps(detail, Known(names=names, unchanged=unchanged)))
    if detail.task.status == "COMPLETE":
        return [*_head(detail, names), *_decided(detail), *_landed(detail, changes)], steps
    head, room = [*_head(detail, names), *_decided(detail)], 0
    for level in _LEVELS:
        upper = [*head, Text(), *_expected(detail, level)]
        lower = [Text(), *_attempts(detail, changes, level.attempts)] if detail.attempts else []
        if level is _LEVELS[-1]:
            # The attempts above name the same diff.
            steps = [step for step in steps if step.command[:2] != ("git", "diff")]
            steps = [*steps[:_STEPS], *steps[_STEPS:][-1:]]  # giving it up comes last
            upper = [*_head(detail, names, whole=False), *_decided(detail), Text(), *_expected(detail, level)]
        room = height - len(upper) - len(lower) - len(steps) - _FRAME
        if room >= _LEAST:
            break
    return [*upper, *_failing(detail, max(_LEAST, min(_MOST, room))), *lower], steps


def print_lines(out: Console, lines: Sequence[Text]) -> None:
    """Print each line on one line: cut on a terminal, wrapped on one that is too narrow, whole in a file."""
    for line in lines:
        if out.is_terminal and out.width < _NARROW:
            out.print(Wrapped(line, indent="    "))
        elif out.is_terminal:
            out.print(line, soft_wrap=False, no_wrap=True, overflow="ellipsis", crop=True)
        else:
            out.print(line)


def _title(text: str) -> Text:
    return Text(text, style="bold")


def _head(detail: TaskDetail, names: Names, *, whole: bool = True) -> Lines:
    task = detail.task
    first = mark(task).append(f"  {task.key}", style="bold").append(f"  {task.title}")
    plan = Text(f"task {short_id(task.id)} of {detail.plan_title} ({short_id(detail.plan_id)})", style="dim")
    lines = [first, plan]
    if task.status == "ERROR":
        found = detail.diagnosis
        why = _advice(detail) if whole or found is None else found.because
        lines.append(Text(f"{word(task)}: {why} ({_tries(detail)})", style="red"))
        lines += _diagnosis(found) if whole and found is not None else []
    elif task.manual and task.status == "CANCELLED":
        lines.append(Text(clean(task.reason) or "skipped", style="yellow"))
    elif task.status == "CANCELLED":
        lines.append(Text(f"cancelled after {_tries(detail)}; {what_stays(detail)}", style="yellow"))
        lines.append(Text(f"  {_ways_on(names)}", style="yellow"))
    elif task.status != "COMPLETE":
        doing = f": {clean(task.doing)}" if task.doing else ""
        which = f" ({tries(task)})" if task.status == "RUNNING" else ""
        lines.append(Text(f"{word(task)}{which}{doing}", style="cyan"))
    lines += [
        Text(f"healing {one.n}: {one.step.replace('_', ' ')}, {one.state.lower()}", style="yellow")
        for one in detail.healing[-_LEAST:]
    ]
    if detail.note:
        lines.append(Text(f"note for the agent: {_flat(detail.note)}", style="yellow"))
    return lines


def _diagnosis(found: Diagnosis) -> Lines:
    """Return why a task most likely failed, and where."""
    at = found.signature
    where = " > ".join(filter(None, (at.step, at.file, at.test)))
    again = f", {found.repeated} times in a row" if found.repeated > 1 else ""
    return [
        Text(f"likely cause: {found.because}", style="yellow"),
        Text(f"  {_flat(where)}: {_flat(at.error)}{again}", style="dim"),
    ]


def _decided(detail: TaskDetail) -> Lines:
    """Return the newest decisions of people about it."""
    shown = detail.decisions[-_LEAST:]
    earlier = len(detail.decisions) - len(shown)
    lines = [_title("decided by people" + (f" (and {earlier} earlier)" if earlier else ""))] if shown else []
    return [
        *lines,
        *(Text(f"  {one.at[:16].replace('T', ' ')} {one.actor}: {_flat(one.words)}") for one in shown),
    ]


def _ways_on(names: Names) -> str:
    if names.retry_refused:
        return f"it cannot be tried again: {names.retry_refused}"
    if names.may_leave_out:
        return "its plan waits for you: try it again, verify the plan without it, or cancel the plan"
    if names.stuck:
        them = names.stuck[0] if len(names.stuck) == 1 else "them"
        who = (
            f"{them} waits"
            if len(names.stuck) == 1
            else f"{names.stuck[0]} and {len(names.stuck) - 1} more wait"
        )
        return f"{who} for it and cannot start: retry it; or cancel {them} too, then reverify"
    return "its plan is not finished without it: try it again, or cancel the plan"


def _tries(detail: TaskDetail) -> str:
    task = detail.task
    if task.rounds:
        return f"{task.rounds - task.max_attempts + task.attempts_used} of {task.rounds} rounds"
    # What a machine, a service or a person ended uses none up.
    return f"{task.attempts_used} of {task.max_attempts} attempts"


def _advice(detail: TaskDetail) -> str:
    failure = detail.task.failure
    return RULES[Failure(failure)].advice if failure else _flat(detail.task.reason)


def _expected(detail: TaskDetail, level: _Level) -> Lines:
    judged = _judged(detail)
    results = {one.command: one for one in judged.commands} if judged else {}
    against = objecting_commands(judged) if judged else set()
    lines = [_title("expected")]
    for command in detail.commands[: level.commands]:
        sign, style = _signed(results.get(command.command))
        if command.command in against:
            sign, style = "✘", "red"
        # A gate without a name of its own is called by its command.
        named = "" if command.name == command.command else f"{command.name}: "
        lines.append(
            Text("  ")
            .append(sign, style=style)
            .append(f" {named}")
            .append("" if _is_own(command.command) else _flat(command.command), "dim" if named else "")
        )
    if len(detail.commands) > level.commands:
        lines.append(Text(f"  and {len(detail.commands) - level.commands} more commands", style="dim"))
    if not detail.commands:
        lines.append(Text("  nothing checks this task: add acceptance commands or a gate", style="yellow"))
    lines += [Text(f"  · {_flat(text)}") for text in detail.criteria[: level.criteria]]
    if len(detail.criteria) > level.criteria:
        lines.append(Text(f"  and {len(detail.criteria) - level.criteria} more criteria", style="dim"))
    return lines


def _is_own(command: str) -> bool:
    """Return whether it is a check of Loopwright itself, whose name says more than its command."""
    return re.search(r" -m loopwright\.services\.plans\.\w+_check\b", command) is not None


def _signed(result: CommandResult | None) -> tuple[str, str]:
    if result is None:
        return "·", "dim"
    return ("✔", "green") if not result.refused else ("✘", "red")


def _judged(detail: TaskDetail) -> AttemptView | None:
    """Return the newest attempt whose tree a gate was run on: an identical later tree is not judged again."""
    return next((one for one in reversed(detail.attempts) if one.commands), None)


def _failing(detail: TaskDetail, room: int) -> Lines:
    """Return the last lines of what failed; nothing when nothing has failed yet."""
    if not detail.attempts:
        return []
    latest, judged = detail.attempts[-1], _judged(detail)
    over = [one for one in detail.attempts if one.failure]
    latest = over[-1] if over else latest
    if latest.failure == "review" and latest.reviews:
        return [Text(), _title("failed: review"), *_findings(latest.reviews[-1].findings, room)]
    if judged is not None and latest.failure in ("gate", "no_change", "setup"):
        bad = next((one for one in judged.commands if one.refused), None)
        if bad is not None:
            how = "ran out of time" if bad.timed_out else f"exit code {bad.exit_code}"
            told = _tail(bad.tail, room) or [Text("  (it printed nothing)", style="dim")]
            lines = [Text(), _title(f"failed: {bad.name} ({how}), last lines"), *told]
            seen = [one for one in judged.failing_checks if is_sentence(one)]
            return [*lines, *_checks(seen, _LEAST + 1)]
        if judged.failing_checks:
            return [Text(), _title("failed checks"), *_checks(judged.failing_checks, room)]
    text = latest.detail or detail.task.reason
    if not latest.failure or not text.strip():
        return []
    words = _flat(re.sub(r"^\s*```.*$", "", latest.summary, flags=re.MULTILINE))
    said = [Text(f"  it said: {words}", style="dim")] if words else []
    return [
        Text(),
        _title(f"failed: {latest.failure.replace('_', ' ')}"),
        *_tail(text, room - len(said)),
        *said,
    ]


def _tail(text: str, room: int) -> Lines:
    lines = [line.rstrip() for line in clean(text).split("\n") if line.strip()]
    return [Text("  " + line) for line in lines[-room:]]


def _checks(checks: Sequence[Check], room: int) -> Lines:
    shown = checks[: room - 1]
    lines = [line for one in shown for line in _check(one)]
    if len(checks) > len(shown):
        lines.append(Text(f"  and {len(checks) - len(shown)} more", style="dim"))
    return lines


def _check(check: Check) -> Lines:
    """Return what is wrong; a sentence of Loopwright is shown in full on any terminal."""
    if not is_sentence(check):
        return [Text(f"  ✘ {check.name}: {_flat(check.message)}".rstrip(": "))]
    return [
        Text(line)
        for line in wrap(f"✘ {_flat(check.name)}", 78, initial_indent="  ", subsequent_indent="    ")
    ]


def _attempts(detail: TaskDetail, changes: "Mapping[int, Change | None]", most: int) -> Lines:
    shown = detail.attempts[-most:]
    earlier = len(detail.attempts) - len(shown)
    lines = [_title("attempts" + (f" (and {earlier} earlier)" if earlier else ""))]
    for one in shown:
        why = f" ({one.failure.replace('_', ' ')})" if one.failure else ""
        parts = (
            f"{one.n}  {one.state.lower()}{why}",
            " ".join(filter(None, (one.agent, one.model))),
            duration(one.lasted_s),
            money(one.cost_micros, estimated=one.cost_estimated) if one.cost_micros is not None else "",
        )
        lines.append(Text("  " + "  ".join(part for part in parts if part)))
        if one.tip_sha:
            change = changes.get(one.n)
            told = change.in_words() if change else "its commits are not in this repository"
            lines[-1].append(f"  {told}")
            if change is None or change.files:
                lines.append(Text(f"     {shlex.join(diff_command(one.base_sha, one.tip_sha))}", style="dim"))
        lines += _outside(one)
        lines += _who_worked(one)
        lines += _who_looked(one)
        lines += _seen_of_all(one)
    return lines


def _seen_of_all(attempt: AttemptView) -> Lines:
    """Return what a QA review found."""
    if attempt.qa is None:
        return []
    issues = attempt.qa.issues
    lines = [
        Text(f"     {attempt.qa.in_words}, at {(attempt.base_sha or '')[:10]}", style="cyan"),
        *(Text(f"       {one.severity}  {_flat(one.title).removeprefix('Fix: ')}") for one in issues[:_MOST]),
    ]
    for line, one in zip(lines[1:], issues, strict=False):
        line.append(f"  {one.fix}" if one.fix else "", style="dim")
    if len(issues) > _MOST:
        lines.append(Text(f"       and {len(issues) - _MOST} more", style="dim"))
    return lines


def _outside(attempt: AttemptView) -> Lines:
    """Return the files that it changed outside of the declared scope."""
    if not attempt.outside:
        return []
    more = f" and {len(attempt.outside) - _LEAST} more" if len(attempt.outside) > _LEAST else ""
    named = ", ".join(map(_flat, attempt.outside[:_LEAST]))
    return [Text(f"     outside its scope: {named}{more}", style="yellow")]


def _who_looked(attempt: AttemptView) -> Lines:
    """Return what reviewers said about an attempt, with the first findings of each round."""
    lines = []
    for review in attempt.reviews:
        lines.append(Text(f"     review {review.n}: {_flat(review.in_words)}", style="cyan"))
        lines += [Text(f"       {line.plain.strip()}") for line in _findings(review.findings, _LEAST)]
    return lines


def _findings(findings: Sequence[Finding], room: int) -> Lines:
    shown = findings if len(findings) <= room else findings[: room - 1]
    lines = [Text(f"  {_SEVERITY[one.severity]} {place(one)}: {_flat(one.text)}") for one in shown]
    if len(findings) > len(shown):
        lines.append(Text(f"  and {len(findings) - len(shown)} more", style="dim"))
    return lines


def _who_worked(attempt: AttemptView) -> Lines:
    """Return which other agent, model or account worked on the attempt."""
    lines = []
    if len(attempt.drew) > 1:
        lines.append(Text(f"     worked on by {', then '.join(attempt.drew)}", style="yellow"))
    if attempt.stands_in:
        who = " ".join(filter(None, (attempt.agent, attempt.model)))
        lines.append(Text(f"     {who} replaces it: {_flat(attempt.stands_in)}", style="yellow"))
    return lines


def _landed(detail: TaskDetail, changes: "Mapping[int, Change | None]") -> Lines:
    task = detail.task
    if task.manual:
        return [Text(clean(task.reason) or "done by hand")]
    outcome = (task.outcome or "").replace("_", " ")
    lines = [Text(outcome, style="green" if task.outcome in ("verified", "no_change_proven") else "yellow")]
    last = detail.attempts[-1] if detail.attempts else None
    if task.commit:
        change = changes.get(0)
        lines += [
            Text(),
            _title("landed"),
            Text(f"  {task.commit[:10]} on {detail.plan_branch}"),
            *([Text(f"  {change.in_words(names=6)}")] if change else []),
        ]
    elif last is not None and last.qa is not None and last.state == "LANDED":
        lines += [Text(), Text(f"{last.qa.in_words}: that is what its agent says, and nothing more")]
    elif last is None or last.state != "LANDED":
        lines += [Text(), Text(_flat(task.reason) or "nothing was checked", style="yellow")]
    else:
        lines += [Text(), Text("nothing had to be changed: the checks passed on the tree as it was")]
    lines += [Text(), _title("checks")]
    for check in last.checks[:_MOST] if last else ():
        sign, style = _SIGNS[check.status.value]
        lines.append(Text("  ").append(sign, style=style).append(f" {check.name}"))
        if check.duration_s is not None:
            lines[-1].append(f"  {check.duration_s:.1f} s", style="dim")
    if last is None or not last.checks:
        lines.append(Text("  none: it landed without proof", style="yellow"))
    elif len(last.checks) > _MOST:
        lines.append(Text(f"  and {len(last.checks) - _MOST} more", style="dim"))
    flaky = [name for one in last.commands for name in one.flaky] if last else []
    if flaky:
        more = f" and {len(flaky) - 3} more" if len(flaky) > 3 else ""
        told = f"flaky, failed and then passed on the same tree: {', '.join(map(_flat, flaky[:3]))}{more}"
        lines.append(Text(f"  {told}", style="yellow"))
    return [*lines, Text(), *_attempts(detail, changes, _LEVELS[0].attempts)]


def _flat(text: str) -> str:
    return " ".join(clean(text).split())

"""`logs`: what an agent, a gate or a setup printed, afterwards or while it runs."""

import json as jsonlib
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Final

from cyclopts import Parameter
from rich.text import Text

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import local_time
from loopwright.cli.shell.output import console, tell_chosen
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import PROCESS_OVER
from loopwright.core.values.wording import clean, duration, money
from loopwright.services.recordings import output
from loopwright.services.recordings.log_runs import NAMES, RoleName
from loopwright.services.recordings.output import (
    Output,
    OutputLine,
    RunBegins,
    RunEnds,
    Shown,
    TaskEnds,
    Transcript,
)
from loopwright.services.views.events import Role, Run

# What an agent or a gate printed, as lines for people.

_TOOL_LINES: Final = 6
_SIGNS: Final = {"created": "+", "deleted": "-"}


def readable_lines(shown: Shown) -> Iterator[tuple[str, str]]:
    """Yield the lines that tell people of one event, each with its style; nothing for mere protocol."""
    lines = clean(shown.text).rstrip("\n").split("\n")
    match shown.kind:
        case "Line":
            yield from ((line, _gate_style(line)) for line in lines)
        case "Text":
            style = "italic dim" if shown.data.get("thinking") else ""
            yield from ((line, style) for line in lines)
        case "Started":
            told = [str(shown.data[name]) for name in ("model", "version") if shown.data.get(name)]
            yield f"started {' '.join(told)}".rstrip(), "dim"
        case "ToolStart":
            first, *rest = lines
            yield f"▸ {first}", "cyan"
            yield from (("  " + line, "cyan") for line in rest[: _TOOL_LINES - 1])
        case "ToolEnd":
            yield from _tool_end(shown, lines)
        case "FileChange":
            change = str(shown.data.get("change") or "changed")
            yield f"{_SIGNS.get(change, '±')} {change} {lines[0]}", "green"
        case "Usage" if "input_tokens" not in shown.data:
            return  # only a sum so far
        case "Usage":
            tokens = (shown.data.get("input_tokens"), shown.data.get("output_tokens"))
            counts = ["?" if count is None else f"{count:,}" for count in tokens]
            yield f"tokens: {counts[0]} in, {counts[1]} out", "dim"
        case "Retry":
            yield f"! tries again: {lines[0] or 'no reason given'}", "yellow"
        case "RateLimit" if lines[0] != "allowed":
            at = shown.data.get("resets_at")
            until = f" until {local_time(datetime.fromisoformat(at))}" if at else ""
            yield f"! limit of the service: {lines[0]}{until}", "yellow"
        case "RateLimit":
            return
        case "Error":
            yield f"✘ {lines[0]}", "red"
            yield from (("  " + line, "red") for line in lines[1:])
        case "Finished":
            ok = shown.data.get("ok") is True
            word = "said that it is done" if ok else f"gave up ({shown.data.get('reason')})"
            yield f"■ {word}: {lines[0]}".rstrip(": "), "bold" if ok else "bold red"
            yield from (("  " + line, "") for line in lines[1:])
        case _:
            # A codec names the type of a line that is only part of the protocol; other lines were printed for people.
            if "type" not in shown.data and "block" not in shown.data:
                yield from ((line, "dim") for line in lines)


def _tool_end(shown: Shown, lines: list[str]) -> Iterator[tuple[str, str]]:
    ok = shown.data.get("ok") is not False
    kept = [line for line in lines if line.strip()]
    if not ok and not kept:
        yield "  ✘ failed", "red"
    for line in kept[:_TOOL_LINES]:
        yield "  " + line, "dim" if ok else "red"
    if len(kept) > _TOOL_LINES:
        yield f"  … {len(kept) - _TOOL_LINES} more lines (--raw shows all)", "dim"


def _gate_style(line: str) -> str:
    if line.startswith("=== "):
        return "bold"
    return "red" if line.lstrip().startswith(("[FAIL]", "[ERROR]")) else ""


def logs(
    target: str | None = None,
    /,
    *,
    follow: Annotated[bool, Parameter(alias="-f")] = False,
    raw: bool = False,
    role: RoleName | None = None,
    attempt: int | None = None,
    json: bool = False,
) -> int:
    """Show what an agent, a gate or a setup printed.

    Parameters
    ----------
    target
        A run, a task (the runs of its newest attempt) or a plan (its verification); default: the task that
        needs you, else the one that is running, else what ran last.
    follow
        Keep printing until the target is finished.
    raw
        Print the lines exactly as they were recorded.
    role
        Only runs of this kind.
    attempt
        Which attempt at the task (default: the newest that has run).
    json
        Print one JSON document per line for each event, or with --raw for each line.
    """
    printer = _Printer(raw=raw, as_json=json, following=follow)
    if follow:
        import asyncio  # only following waits for anything

        asyncio.run(_follow(printer, target, role, attempt))
        return ExitCode.VERIFIED
    for one in output.printed(target, role=role, attempt=attempt, tell=tell_chosen):
        printer.take(one)
    return ExitCode.VERIFIED


async def _follow(
    printer: "_Printer", target: str | None, role: RoleName | None, attempt: int | None
) -> None:
    async for one in output.followed(target, role=role, attempt=attempt, tell=tell_chosen):
        printer.take(one)


# --- printing --------------------------------------------------------------------------------------


class _Printer:
    """Prints one run after the other; what is only about a run, not of it, is dim and never in `--raw`."""

    def __init__(self, *, raw: bool, as_json: bool, following: bool) -> None:
        self._console = console()
        self._raw = raw
        self._json = as_json
        self._following = following
        self._run: Run | None = None
        self._transcript: Transcript | None = None

    def take(self, one: Output) -> None:
        """Print one piece of the output."""
        match one:
            case RunBegins():
                self._begin(one)
            case RunEnds():
                self._end(one)
            case TaskEnds():
                self._about(f"── {one.became}")
            case OutputLine():
                self._line(one)

    def _begin(self, one: RunBegins) -> None:
        run = one.run
        self._run, self._transcript = run, Transcript(run)
        who = " ".join(filter(None, (NAMES[run.role], run.agent, run.model)))
        tries = f"  attempt {one.attempt}" if one.attempt else ""
        if one.reused:
            self._about("── the gate was not run again: exactly this tree was judged before")
            tries = f"  {one.reused}, used again"
        why = ": what the checks say without this work" if run.role is Role.BASELINE else ""
        self._about(f"── {who}{tries}  {short_id(run.id)}{why}")

    def _line(self, line: OutputLine) -> None:
        assert self._run is not None
        assert self._transcript is not None
        if self._raw:
            if self._json:
                about = {"offset": line.offset, "stream": line.stream, "text": line.text}
                self._document({"run": self._run.id, **about})
            else:
                self._plain(line.text)
            return
        for shown in self._transcript.take(line):
            if self._json:
                about = {"run": self._run.id, "role": NAMES[self._run.role]}
                self._document({**about, "kind": shown.kind, "text": shown.text, "data": shown.data})
                continue
            for text, style in readable_lines(shown):
                self._styled(text, style)

    def _end(self, one: RunEnds) -> None:
        """Print how a run ended, or why there is no output of it."""
        run = one.run
        if one.missing:
            where = "it ran on another machine" if one.missing == "elsewhere" else "its files are gone"
            self._about(f"   nothing to show: {where}")
            return
        if one.forgotten:
            self._about(f"   its recording is no longer kept since {one.forgotten} (disk.keep_recordings)")
        if run.state not in PROCESS_OVER:
            hint = "" if self._following else "; --follow waits for the rest"
            self._about(f"── still running{hint}")
            return
        lasted = (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else None
        parts = (
            run.verdict.status.value if run.verdict else run.state.value.lower().replace("_", " "),
            (run.failure.value.replace("_", " ") if run.failure else ""),
            f"exit code {run.exit_code}" if run.exit_code is not None else "",
            duration(lasted),
            money(run.cost_micros, estimated=run.cost_estimated) if run.cost_micros is not None else "",
        )
        self._about("── " + "  ".join(part for part in parts if part))

    def _about(self, text: str) -> None:
        if not self._raw and not self._json:
            self._styled(text, "dim")

    def _styled(self, text: str, style: str) -> None:
        if style and self._console.is_terminal:
            self._console.print(Text(text, style=style))
        else:
            self._plain(text)

    def _plain(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        if self._following:
            sys.stdout.flush()

    def _document(self, value: dict[str, Any]) -> None:
        self._plain(jsonlib.dumps(value, ensure_ascii=False, default=str))

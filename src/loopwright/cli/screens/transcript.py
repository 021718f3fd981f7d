"""What an agent or a gate printed, as lines for people."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from loopwright.cli.shell.times import local_time
from loopwright.core.values.wording import clean
from loopwright.services.recordings.output import Shown

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

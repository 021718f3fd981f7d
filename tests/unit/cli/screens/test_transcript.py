"""What recorded streams of a real agent look like to people."""

import json
from datetime import UTC, datetime
from pathlib import Path

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.cli.commands.watch.logs import readable_lines
from loopwright.core.rows.model import Role, Run
from loopwright.core.values.states import RunState
from loopwright.ports import OutputLine
from loopwright.services.recordings.output import Shown, Transcript

STREAMS = Path(__file__).parents[3] / "data" / "streams"


def told(name: str, agent: str | None = "claude") -> list[str]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    run = Run(
        id="r", plan_id="p", role=Role.IMPLEMENTER, state=RunState.COMPLETE, agent=agent, created_at=now
    )
    transcript = Transcript(run)
    lines = (STREAMS / name).read_text(errors="replace").splitlines()
    return [
        text
        for line in lines
        for shown in transcript.take(OutputLine(offset=0, stream="out", text=line))
        for text, _ in readable_lines(shown)
    ]


def test_tools_changes_and_the_end_are_told_in_order() -> None:
    lines = told("c_par1.out")
    wanted = [
        "started ",
        "I will read it.",
        "▸ Read ",
        "  1",
        "▸ Edit ",
        "± changed ",
        "■ said that it is done: Done.",
    ]
    places = [next(n for n, line in enumerate(lines) if line.startswith(start)) for start in wanted]
    assert places == sorted(places)


def test_trouble_with_the_service_is_told() -> None:
    lines = told("c_429.out")
    assert "! tries again: rate_limit" in lines
    assert any(line.startswith("✘ API Error: Request rejected (429)") for line in lines)
    assert any(line.startswith("■ gave up (api_error)") for line in lines)


def test_a_used_up_window_is_told_with_its_end_and_an_open_one_is_not() -> None:
    assert any(line.startswith("! limit of the service: rejected until 20") for line in told("c_429sub.out"))
    assert not any("allowed" in line for line in told("c_429sub.out"))


@each_case("path", sorted(STREAMS.glob("c_*.out")), ids=lambda path: path.stem)
def test_no_line_of_the_protocol_reaches_people(path: Path) -> None:
    for line in told(path.name):
        assert not line.startswith('{"type"'), line


def test_the_output_of_an_agent_nobody_knows_any_more_is_shown_as_it_is() -> None:
    lines = told("c_par1.out", agent="vanished")
    assert json.loads(lines[0])


def test_a_long_tool_output_is_shortened_and_says_so(wording: Wording) -> None:
    shown = Shown(kind="ToolEnd", text="\n".join(f"line {n}" for n in range(30)), data={"ok": True})
    lines = [text for text, _ in readable_lines(shown)]
    wording(lines[-1])
    assert len(lines) == 7


def test_a_tool_that_failed_silently_is_still_told() -> None:
    assert list(readable_lines(Shown(kind="ToolEnd", text="", data={"ok": False}))) == [("  ✘ failed", "red")]

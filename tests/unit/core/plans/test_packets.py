"""Inspection packets: what is in them, in an order that a reader can follow, and what was cut."""

import json
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.plans.inspection_packets import (
    LARGEST,
    LONGEST_LINE,
    LONGEST_TEXT,
    MOST_ENTRIES,
    MOST_LINES,
    LogLine,
    Packet,
    PacketProject,
    PacketTask,
    bounded,
    cleaned,
    fitted,
    in_markdown,
    last_lines,
    layout,
    moment_in,
)
from loopwright.core.receipts.schemas import PACKET
from loopwright.core.values.documents import document

BARE: dict[str, Any] = {
    "packet_id": "packet_1",
    "generated_at": datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    "generated_by": "loopwright 1.0",
}


def line(n: int) -> LogLine:
    return LogLine(stream="stdout", line=f"line {n}")


def test_a_packet_says_only_what_there_is() -> None:
    assert in_markdown(Packet(type="project", **BARE)) == (
        "# Inspection packet packet_1\n\nMade 2026-01-02 03:04 UTC.\n"
    )


def test_a_packet_about_a_run_tells_its_task_what_happened_and_what_was_cut() -> None:
    packet = Packet(
        type="task",
        **BARE,
        goal="Make it fast",
        task=PacketTask(
            task_id="ptask_1", key="t1", title="Cache it", prompt="Do it.\n", state="FAILED", result=""
        ),
        errors=("run: gate\n  1 of 2 failed",),
        clarifications=({"question": "Which cache?", "answer": "The small one"},),
        events=({"at": "2026-01-02T03:00:00", "type": "run_ended"},),
        logs=(line(1), line(2)),
        cut=("7 lines of the log",),
    )
    assert in_markdown(packet).split("\n\n")[2:] == [
        "## Goal",
        "Make it fast",
        "## Task t1: Cache it",
        "- state: FAILED",
        "### Prompt",
        "```\nDo it.\n```",
        "## Errors",
        "- run: gate 1 of 2 failed",
        "## Asked and answered",
        "- Which cache? -> The small one",
        "## Events",
        "- 2026-01-02T03:00:00 run_ended",
        "## Log",
        "```\nline 1\nline 2\n```",
        "## Not in here",
        "- 7 lines of the log\n",
    ]


def test_a_packet_about_a_project_tells_what_would_check_it_and_what_is_open() -> None:
    project = PacketProject(
        name="demo",
        languages=("python", "go"),
        setup="make setup",
        gates=({"name": "tests", "command": "pytest", "why": "there is a pytest.ini"},),
        layout=("src/ (2)", "README.md"),
        texts={"README.md": "# Demo\n"},
        history=("1a2b3c first",),
    )
    packet = Packet(type="project", **BARE, project=project, open_questions=("For whom?",))
    assert in_markdown(packet).split("\n\n")[2:] == [
        "## Project demo",
        "- languages: python, go\n- setup: `make setup`\n- gate tests: `pytest` (there is a pytest.ini)",
        "### Layout",
        "```\nsrc/ (2)\nREADME.md\n```",
        "### README.md",
        "```\n# Demo\n```",
        "### Newest commits",
        "```\n1a2b3c first\n```",
        "## Open questions",
        "- For whom?\n",
    ]


def test_a_project_of_which_nothing_is_known_says_so() -> None:
    text = in_markdown(Packet(type="project", **BARE, project=PacketProject(name="demo")))
    assert "- languages: none was recognised\n" in text
    assert "commits" not in text


@each_case(("text", "fence"), [("a ` b", "```"), ("```\ncode\n```", "````"), ("ends with `````", "``````")])
def test_no_text_ends_the_fence_that_it_stands_in(text: str, fence: str) -> None:
    packet = Packet(type="task", **BARE, logs=(LogLine(stream="stdout", line=text),))
    assert in_markdown(packet).endswith(f"## Log\n\n{fence}\n{text}\n{fence}\n")


def test_of_a_long_log_the_end_is_kept_and_what_was_cut_is_counted(wording: Wording) -> None:
    assert last_lines([]) == ((), "")
    assert last_lines([line(1), line(2)]) == ((line(1), line(2)), "")
    kept, cut = last_lines(line(n) for n in range(MOST_LINES + 3))
    assert (len(kept), kept[0], kept[-1]) == (MOST_LINES, line(3), line(MOST_LINES + 2))
    wording(cut)


def test_a_long_text_is_cut_and_says_so() -> None:
    assert bounded("x" * LONGEST_TEXT) == "x" * LONGEST_TEXT
    assert bounded("abcd", 3) == "abc\n[cut]"


def test_a_layout_has_two_levels_of_folders_and_the_files_at_the_top(wording: Wording) -> None:
    paths = ["setup.py", "src/a/b/c.py", "src/a/d.py", "src/e.py", "README.md"]
    assert layout(paths) == (("src/ (3)", "src/a/ (2)", "README.md", "setup.py"), "")
    rows, cut = layout(f"{n}.py" for n in range(MOST_ENTRIES + 1))
    assert len(rows) == MOST_ENTRIES
    wording(cut)


def test_a_packet_that_is_too_large_as_a_whole_lets_the_oldest_go_and_says_so(wording: Wording) -> None:
    events = tuple({"type": "noted", "n": n, "data": "x" * 20_000} for n in range(500))
    asked = tuple({"question": "x" * 20_000, "answer": "x" * 20_000} for _ in range(100))
    packet = Packet(type="task", **BARE, events=events, clarifications=asked, logs=(line(1),))
    made = cleaned(packet, lambda text: text)
    assert len(json.dumps(document(made))) <= LARGEST
    assert made.events == ()
    assert 0 < len(made.clarifications) < 100
    assert made.logs == (line(1),), "what makes room first is what is looked at least"
    wording(made.cut[0])
    few = fitted(replace(packet, clarifications=()), 100_000)
    assert [one["n"] for one in few.events] == [496, 497, 498, 499]
    assert fitted(few) == few


@pytest.mark.capability("C006")
@each_case("kind", [Packet, PacketTask, PacketProject, LogLine])
def test_the_published_schema_has_every_name_of_a_packet(kind: type[Any]) -> None:
    task, project = (PACKET["properties"][name]["anyOf"][0] for name in ("task", "project"))
    schemas = {
        Packet: PACKET,
        PacketTask: task,
        PacketProject: project,
        LogLine: PACKET["properties"]["logs"]["items"],
    }
    assert list(schemas[kind]["properties"]) == [one.name for one in fields(kind)]


@each_case(
    ("text", "moment"),
    [
        ('{"type": "say", "timestamp": "2026-01-02T03:04:05Z"}', "2026-01-02T03:04:05+00:00"),
        ('{"timestamp": 17}', ""),
        ('{"timestamp": "yesterday"}', ""),
        ('{"timestamp": ', ""),
        ("[" * 100_000 + '"timestamp"', ""),
        ("at 2026-01-02T03:04:05Z", ""),
    ],
)
def test_a_line_has_the_time_that_it_says_itself(text: str, moment: str) -> None:
    assert moment_in(text) == moment


def test_every_text_is_cleaned_before_it_is_cut() -> None:
    """A secret on the edge of what is kept must not stay there by half, in whichever part it is."""
    secret = "hunter2-" * 4
    edge = "x" * (LONGEST_TEXT - 10) + secret
    packet = Packet(
        type="task",
        **BARE,
        goal=edge,
        task=PacketTask(task_id=None, key="t1", title=secret, prompt=edge, state="DONE", result=edge),
        project=PacketProject(name="demo", texts={"README.md": edge}, history=(secret,)),
        events=({"type": "noted", "data": {"said": [edge, 3]}},),
        logs=(LogLine(stream="err", line="y" * (LONGEST_LINE - 10) + secret + "z" * 50),),
        errors=(edge,),
        clarifications=({"question": secret, "answer": edge},),
        open_questions=(edge,),
        cut=("7 lines",),
    )
    made = cleaned(packet, lambda text: text.replace(secret, "[gone]"))
    told = repr(made)
    assert "hunter" not in told
    assert told.count("[gone]") == 12
    assert made.generated_at == packet.generated_at
    assert made.events[0]["data"]["said"][1] == 3
    assert made.task is not None
    assert made.task.prompt == edge.replace(secret, "[gone]")
    assert made.logs[0].line == "y" * (LONGEST_LINE - 10) + "[gone]" + "zzzz\n[cut]"
    long = cleaned(replace(packet, errors=("e" * (LONGEST_TEXT + 1),)), str)
    assert long.errors == ("e" * LONGEST_TEXT + "\n[cut]",)

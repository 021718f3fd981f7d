"""The tool by which an agent asks a person, as the process that it is: real JSON-RPC lines, and garbage."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import eventually
from tests.wording_plugin import Wording

from loopwright.adapters.agents import asking
from loopwright.adapters.agents.asked import ask_tool, asked_by_tool, discovered_by_tool
from loopwright.core.replies.discoveries import MOST_DISCOVERED, Noticed
from loopwright.core.replies.questions import MOST_QUESTIONS, Asking, asking_of


class Server:
    """One started server."""

    def __init__(self, directory: Path, **options: Any) -> None:
        (tool,) = ask_tool(directory).values()
        self.process = subprocess.Popen(
            [tool.command, *tool.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **tool.env},
            **options,
        )
        self.number = 0

    def send(self, line: bytes | object) -> None:
        assert self.process.stdin
        self.process.stdin.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def asks(self, method: str, **params: Any) -> Any:
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        answer = self.hear()
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", self.number)
        return answer

    def calls(self, tool: str = "ask", /, **arguments: Any) -> tuple[str, bool]:
        result = self.asks("tools/call", name=tool, arguments=arguments)["result"]
        return result["content"][0]["text"], result["isError"]

    def close(self) -> tuple[int, str]:
        _, err = self.process.communicate(timeout=20)
        return self.process.returncode, err.decode()


Start = Callable[..., Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Server] = []

    def start(directory: Path = tmp_path, **options: Any) -> Server:
        started.append(Server(directory, **options))
        return started[-1]

    yield start
    for server in started:
        server.process.kill()
        server.process.communicate()


def noted(directory: Path) -> list[str]:
    return [one.text for one in asked_by_tool(directory, ())]


def test_a_client_shakes_hands_finds_the_tool_and_asks(start: Start, tmp_path: Path) -> None:
    server = start()
    hello = server.asks("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})["result"]
    assert hello["protocolVersion"] == "2025-06-18"
    assert "tools" in hello["capabilities"]
    server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert server.asks("ping")["result"] == {}, "and the notification got no answer"
    tool, other = server.asks("tools/list")["result"]["tools"]
    assert (tool["name"], other["name"]) == ("ask", "discovered")
    assert tool["inputSchema"]["required"] == ["question"]
    answer = server.calls(question=" Which port? ", options=["80", "8080"], default="80", kind="escalation")
    assert answer == (
        "A person has been asked. Stop here now; you will be started again with the answer.",
        False,
    )
    assert asked_by_tool(tmp_path, ()) == (
        Asking(kind="escalation", text="Which port?", options=("80", "8080"), default="80"),
    )
    assert server.close() == (0, "")


@pytest.mark.parametrize("wanted", [*asking.VERSIONS, "2099-01-01", None, 5])
def test_versions_that_are_known_are_spoken_and_for_others_the_newest_is_offered(
    start: Start, wanted: object
) -> None:
    hello = start().asks("initialize", protocolVersion=wanted)["result"]
    assert hello["protocolVersion"] == (wanted if wanted in asking.VERSIONS else asking.VERSIONS[0])


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"garbage\n", asking.PARSE_ERROR),
        (b'{"jsonrpc": "2.0", "id": 1, "meth\n', asking.PARSE_ERROR),
        (b"\xff\xfe\x00\n", asking.PARSE_ERROR),
        (b"[" * 100_000 + b"\n", asking.PARSE_ERROR),
        (b"x" * (3 * 1024 * 1024) + b"\n", asking.PARSE_ERROR),
        (b"[]\n", asking.INVALID_REQUEST),
        (b"7\n", asking.INVALID_REQUEST),
        (b"{}\n", asking.INVALID_REQUEST),
        (b'{"id": 1, "method": 5}\n', asking.INVALID_REQUEST),
        (b'{"id": null, "method": "ping"}\n', asking.INVALID_REQUEST),
        (b'{"id": true, "method": "ping"}\n', asking.INVALID_REQUEST),
        (b'{"id": "a", "method": "resources/list"}\n', asking.UNKNOWN_METHOD),
        (b'{"id": "a", "method": "tools/call", "params": {"name": "other"}}\n', asking.INVALID_PARAMS),
        (b'{"id": "a", "method": "tools/call", "params": []}\n', asking.INVALID_PARAMS),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_request_gets_the_protocols_own_error_and_the_server_goes_on(
    start: Start, line: bytes, code: int
) -> None:
    server = start()
    server.send(line)
    assert server.hear()["error"]["code"] == code
    assert server.asks("ping")["result"] == {}


def test_what_needs_no_answer_gets_none(start: Start) -> None:
    server = start()
    for line in (
        b"\n",
        b" \n",
        b'{"method": "notifications/cancelled"}\n',
        b'{"id": 5, "result": {}}\n',
        b'{"id": 5, "error": {}}\n',
        b'[{"method": "notifications/progress"}]\n',
    ):
        server.send(line)
    assert server.asks("ping")["result"] == {}


def test_several_requests_in_one_line_are_answered_in_one(start: Start) -> None:
    server = start()
    server.send([{"id": 1, "method": "ping"}, {"method": "x"}, {"id": "b", "method": "ping"}, 7])
    assert [one.get("id") for one in server.hear()] == [1, "b", None]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "question must be a text that is not empty"),
        ({"question": "  "}, "question must be a text that is not empty"),
        ({"question": ["x"]}, "question must be a text of at most 4000"),
        ({"question": "x" * 4001}, "question must be a text of at most 4000"),
        ({"question": "x", "options": "a,b"}, "options must be a list"),
        ({"question": "x", "options": [str(n) for n in range(13)]}, "at most 12"),
        ({"question": "x", "options": ["y" * 501]}, "at most 500"),
        ({"question": "x", "options": [5]}, "options must be a text"),
        ({"question": "x", "default": 5}, "default must be a text"),
        ({"question": "x", "kind": "joke"}, "kind must be question or escalation"),
        ({"question": "x", "colour": "red"}, "there is no colour"),
    ],
    ids=str,
)
def test_the_agent_is_told_what_is_wrong_with_its_question(
    start: Start, tmp_path: Path, arguments: dict[str, Any], words: str
) -> None:
    said, is_error = start().calls(**arguments)
    assert is_error
    assert words in said
    assert noted(tmp_path) == []


def test_no_more_questions_are_noted_than_may_be_asked(
    start: Start, tmp_path: Path, wording: Wording
) -> None:
    server = start()
    assert asking.MOST_QUESTIONS == MOST_QUESTIONS
    longest = "\u4e2d" * asking.LONGEST_QUESTION
    answers = [
        server.calls(question=f"{n:02}{longest[2:]}", options=[longest[:500]] * 12, default=longest[:500])
        for n in range(MOST_QUESTIONS + 2)
    ]
    assert [is_error for _, is_error in answers] == [False] * MOST_QUESTIONS + [True] * 2
    wording(answers[-1][0])
    assert [text[:2] for text in noted(tmp_path)] == [f"{n:02}" for n in range(MOST_QUESTIONS)]
    again = start()
    assert again.calls(question="one more")[1], "nor by one that is started anew"
    assert (tmp_path / asking.FILE).stat().st_size <= MOST_QUESTIONS * asking.LONGEST_LINE


def test_the_same_question_is_one_question(start: Start, tmp_path: Path) -> None:
    server = start()
    assert [server.calls(question="Why?")[1] for _ in range(30)] == [False] * 30
    assert noted(tmp_path) == ["Why?"]


def test_half_a_line_of_one_that_was_killed_spoils_nothing(start: Start, tmp_path: Path) -> None:
    (tmp_path / asking.FILE).write_bytes(b'{"question": "first"}\n{"question": "ha')
    assert noted(tmp_path) == ["first"]
    start().calls(question="second")
    assert noted(tmp_path) == ["first", "second"]


def test_two_servers_at_once_lose_nothing(start: Start, tmp_path: Path) -> None:
    servers = [start(), start()]
    for n in range(10):
        for at, server in enumerate(servers):
            server.send(
                {
                    "id": n,
                    "method": "tools/call",
                    "params": {"name": "ask", "arguments": {"question": f"{at} {n} " + "x" * 3_000}},
                }
            )
    for server in servers:
        assert all(not server.hear()["result"]["isError"] for _ in range(10))
    assert sorted(text[:3] for text in noted(tmp_path)) == [f"{at} {n}" for at in (0, 1) for n in range(10)]


def test_a_question_that_cannot_be_written_whole_is_not_written_at_all(
    start: Start, tmp_path: Path, wording: Wording
) -> None:
    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60, 60))

    server = start(preexec_fn=little_room)
    assert not server.calls(question="short")[1]
    said, is_error = server.calls(question="x" * 100)
    assert is_error
    wording(said)
    assert noted(tmp_path) == ["short"]
    assert (tmp_path / asking.FILE).read_bytes() == b'{"question": "short"}\n'


def test_a_run_that_is_gone_is_said(start: Start, tmp_path: Path, wording: Wording) -> None:
    said, is_error = start(tmp_path / "nowhere").calls(question="x")
    assert is_error
    wording(said)
    assert asked_by_tool(tmp_path / "nowhere", ()) == ()


def test_whatever_an_agent_writes_there_itself_is_read_with_care(tmp_path: Path) -> None:
    (tmp_path / asking.FILE).write_bytes(b'\xff\n[]\n{"question": "a\\u0000\\ud800b"}\n' + b"x" * 3_000_000)
    assert noted(tmp_path) == ["a?b"]


def test_an_interrupt_ends_it_without_a_word(start: Start) -> None:
    server = start()
    assert server.asks("ping")["result"] == {}
    server.process.send_signal(signal.SIGINT)
    assert eventually(server.process.poll) == -signal.SIGINT
    assert server.close()[1] == ""


def test_it_loads_next_to_nothing(tmp_path: Path) -> None:
    """It is started with every run: what it loads, every run waits for."""
    (tool,) = ask_tool(tmp_path).values()
    done = subprocess.run(
        [tool.command, "-X", "importtime", *tool.args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "json" in loaded
    assert not {"typing", "asyncio", "socket", "dataclasses", "loopwright", "pathlib"} & loaded


def test_it_says_how_it_is_used() -> None:
    done = subprocess.run([sys.executable, "-I", "-S", asking.__file__], capture_output=True, text=True)
    assert done.returncode == 1
    assert "RUN_DIRECTORY" in done.stderr


def test_what_the_server_notes_is_what_is_read() -> None:
    longest = {"question": "q" * 4_000, "options": ["o" * 500] * 12, "default": "d" * 500, "kind": "question"}
    asked = asking_of(longest)
    assert asked is not None
    assert [len(asked.text), len(asked.options), len(asked.default or "")] == [4_000, 12, 500]


@pytest.mark.capability("C040")
def test_work_that_is_not_the_tasks_is_noted_once_and_the_agent_goes_on(start: Start, tmp_path: Path) -> None:
    server = start()
    work = {
        "title": " Mend the\tclock ",
        "reason": "It is late: key-0123456789.",
        "recommendation": "current",
    }
    for _ in range(2):
        said = server.calls("discovered", **work)
        assert said == (
            "It is noted for the user. Do not do it; continue your own task.",
            False,
        )
    assert server.calls("discovered", title="Another", reason="why")[1] is False
    assert discovered_by_tool(tmp_path, ("key-0123456789",)) == (
        Noticed(title="Mend the clock", reason="It is late: [redacted].", recommendation="current"),
        Noticed(title="Another", reason="why"),
    )
    assert b"key-0123456789" not in (tmp_path / asking.DISCOVERED_FILE).read_bytes()
    assert asked_by_tool(tmp_path, ()) == (), "that asks nobody anything"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"reason": "why"}, "title must be a text that is not empty"),
        ({"title": "a"}, "reason must be a text that is not empty"),
        ({"title": "a" * 201, "reason": "why"}, "title must be a text of at most 200 characters"),
        ({"title": "a", "reason": "why", "recommendation": "later"}, "recommendation must be current or new"),
        (
            {"title": "a", "reason": "why", "file": "x"},
            "there is no file; give title, reason and recommendation only",
        ),
    ],
)
def test_work_that_cannot_be_noted_is_refused_with_the_reason(
    start: Start, tmp_path: Path, arguments: dict[str, Any], said: str
) -> None:
    assert start().calls("discovered", **arguments) == (f"The work was not noted: {said}", True)
    assert discovered_by_tool(tmp_path, ()) == ()


def test_only_so_much_work_is_noted_in_one_run(start: Start, tmp_path: Path, wording: Wording) -> None:
    server = start()
    for n in range(MOST_DISCOVERED):
        assert server.calls("discovered", title=f"work {n}", reason="why")[1] is False
    said, is_error = server.calls("discovered", title="one more", reason="why")
    assert is_error
    wording(said)
    assert len(discovered_by_tool(tmp_path, ())) == MOST_DISCOVERED == asking.MOST_DISCOVERED

"""Seven agents that edited a file through the protocol's own library, recorded one level above the wire."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each_case
from tests.unit.agents.acp.recordings import FOLDER, Read, ended, fold, request, wire

from loopwright.adapters.agents.acp import rpc
from loopwright.adapters.agents.acp.agent import AcpAgent
from loopwright.adapters.agents.acp.profiles import ACP, PROFILES
from loopwright.core.rows.model import Usage
from loopwright.core.values.failures import Failure
from loopwright.ports import OutputLine, Spent

AGENTS = sorted(path.stem for path in (FOLDER / "recorded").glob("*.jsonl") if "_" not in path.stem)
OLD = "an-old-conversation"


def agent(name: str) -> AcpAgent:
    # There is no profile for codex-acp: any program may speak the protocol.
    return AcpAgent(profile={**PROFILES, "claude": PROFILES["claude-acp"]}.get(name, ACP))


def message(**facts: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", **facts}, separators=(",", ":"))


def as_lines(name: str, first: str, last: str, *, without: str = "") -> Iterator[OutputLine]:
    """Put the messages between two kinds of answers back on the wire, with the handshake before them."""
    told = list(wire(name))
    kinds = [kind for kind, _ in told]
    session = dict(told)["new"]["sessionId"] if first == "new" else OLD
    # A conversation is repeated before the answer that it was found.
    begin = kinds.index(first) if first == "new" else kinds.index("cancel") + 1
    texts = [message(id=rpc.INITIALIZE, result=dict(told)["init"])]
    for number, (kind, facts) in enumerate(told[begin : kinds.index(last) + 1]):
        match kind:
            case _ if kind == without:
                continue
            case "new" | "load":
                texts.append(message(id=rpc.SESSION, result=facts))
            case "update":
                texts.append(message(method="session/update", params={"sessionId": session, "update": facts}))
            case "request_permission":
                asked = {"sessionId": session, "toolCall": facts["tool_call"], "options": facts["options"]}
                texts.append(message(id=number, method="session/request_permission", params=asked))
            case "write":
                texts.append(message(id=number, method="fs/write_text_file", params={"path": facts}))
            case "errexc":
                error = {"code": facts["code"], "message": facts["e"].partition("'")[2].rstrip("')")}
                texts.append(message(id=rpc.PROMPT, error={**error, "data": facts["data"]}))
            case "extn":
                ((method, params),) = facts.items()
                texts.append(message(method=f"_{method}", params=params))
            case _:
                texts.append(message(id=rpc.PROMPT, result=facts))
    return (OutputLine(offset=n, stream="out", text=text) for n, text in enumerate(texts))


def edited(name: str) -> Read:
    workspace = Path(f"/sandbox/work/acp_{name}")
    return fold(agent(name), list(as_lines(name, "new", "prompt")), request(workspace=workspace))


def test_all_seven_are_there() -> None:
    assert AGENTS == ["claude", "codex", "copilot", "gemini", "goose", "opencode", "qwen"]


@pytest.mark.capability("C025")
@each_case("name", AGENTS)
def test_an_edit_is_allowed_told_and_claimed(name: str) -> None:
    run = edited(name)
    result = run.result()
    assert result.claimed, result
    assert result.summary.strip() == "Done. I changed hello.txt."
    assert run.told("FileChange") == ["hello.txt"]
    chosen = [one["result"]["outcome"]["optionId"] for one in run.answered() if "result" in one]
    assert chosen == [
        {
            "claude": "allow-once",
            "codex": "approved",
            "copilot": "allow_once",
            "gemini": "proceed_once",
            "goose": "allow_once",
            "opencode": "once",
            "qwen": "proceed_once",
        }[name]
    ]


def test_a_file_is_not_written_for_an_agent_that_was_told_so_before() -> None:
    (refused,) = [one for one in edited("opencode").answered() if "error" in one]
    assert refused["error"]["code"] == -32601


@each_case("name", [name for name in AGENTS if name != "gemini"])
def test_a_conversation_goes_on_and_what_it_repeats_is_not_counted(name: str) -> None:
    lines = list(as_lines(name, "load", "prompt2"))
    spent = {"opencode": 1800, "claude": 5200}.get(name, 0)
    before = Spent(cost_micros=spent)
    run = fold(agent(name), lines, request(session_ref=OLD), before=before)
    result = run.result()
    assert result.claimed, result
    assert result.session_ref == OLD
    assert [text.strip() for text in run.told("Text")] == ["default reply"]
    assert run.told("ToolStart") == []
    assert result.cost_micros == {"opencode": 600, "claude": 2080}.get(name)
    if name == "qwen":
        assert result.usage == Usage(input_tokens=70, output_tokens=25, cache_read_tokens=50)


FAILED = {
    "codex": Failure.AUTH,
    "copilot": Failure.AUTH,
    "goose": Failure.AUTH,
    "opencode": Failure.AGENT_ERROR,
    "qwen": Failure.AUTH,
}


@each_case("name", FAILED)
def test_a_refused_key_is_known_however_it_is_told(name: str) -> None:
    last = "err" if name == "copilot" else "errexc"
    lines = list(as_lines(name, "load", last, without="prompt2"))
    result = fold(agent(name), lines, request(session_ref=OLD)).result()
    # "bad key" alone says too little to be sure.
    assert result.failure is FAILED[name], result


def test_a_used_up_window_says_when_it_opens_again() -> None:
    (line,) = (FOLDER / "recorded" / "claude_limit.jsonl").read_text("utf-8").splitlines()
    words = json.loads(line)["content"]["text"]
    start = list(as_lines("claude", "new", "new"))
    error = {"code": -32603, "message": f"Internal error: {words}", "data": {"errorKind": "rate_limit"}}
    end = OutputLine(offset=9, stream="out", text=message(id=rpc.PROMPT, error=error))
    result = fold(agent("claude"), [*start, end], request()).result(ended())
    assert result.failure is Failure.USAGE_LIMIT
    assert result.retry_at is not None
    assert result.retry_at.isoformat() == "2026-11-15T21:44:00+00:00"

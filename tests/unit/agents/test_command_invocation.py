"""Any program as an agent: how it is started, and how its end is judged."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.adapters.agents.command import CommandAgent, CommandState
from loopwright.core.replies.reviews import Answer, read_answer
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.failures import Failure
from loopwright.core.values.patches import Patch
from loopwright.ports import AgentRequest, AgentResult, Exit, OutputLine

AGENT = CommandAgent()


def argv(*, prompt: str = "do it", model: str | None = None, **options: Any) -> tuple[str, ...]:
    request = AgentRequest(
        prompt=prompt, workspace=Path("/w"), run_directory=Path("/r"), model=model, options=options
    )
    return AGENT.invocation(request).argv


def test_a_list_is_run_as_it_is() -> None:
    assert argv(command=["tool", "{prompt_file}", "{workspace}", "{model}"], model="m")[-4:] == (
        "tool",
        "/r/prompt.md",
        "/w",
        "m",
    )


def test_a_text_is_run_by_the_shell_with_quoted_values() -> None:
    request = AgentRequest(
        prompt="it's $HOME; rm -rf {model}",
        workspace=Path("/w"),
        run_directory=Path("/r"),
        options={"command": "tool {prompt} | tee log", "prompt": "argument"},
    )
    shell, flag, line = AGENT.invocation(request).argv
    assert (shell, flag) == ("/bin/sh", "-c")
    assert line == "tool 'it'\"'\"'s $HOME; rm -rf {model}' | tee log"


def test_a_prompt_without_a_place_becomes_the_last_argument() -> None:
    request = AgentRequest(
        prompt="do it",
        workspace=Path("/w"),
        run_directory=Path("/r"),
        options={"command": ["tool"], "prompt": "argument"},
    )
    assert AGENT.invocation(request).argv == ("tool", "do it")


def test_the_prompt_file_is_always_written() -> None:
    request = AgentRequest(
        prompt="do it", workspace=Path("/w"), run_directory=Path("/r"), options={"command": "x"}
    )
    assert AGENT.invocation(request).files == {"prompt.md": "do it"}


@each_case(
    "options",
    [
        {},
        {"command": ""},
        {"command": []},
        {"command": [1]},
        {"command": "x", "prompt": "telepathy"},
        {"command": "x", "prompt": "file"},
        {"command": "x {prompt}", "prompt": "stdin"},
        {"command": "x {model}"},
        {"command": "x", "timeout": 3},
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any]) -> None:
    request = AgentRequest(prompt="p", workspace=Path("/w"), run_directory=Path("/r"), options=options)
    with pytest.raises(BadConfig, match="agent command"):
        AGENT.invocation(request)


def test_a_prompt_that_is_too_long_for_an_argument_is_refused_with_a_way_out(wording: Wording) -> None:
    request = AgentRequest(
        prompt="x" * 200_000,
        workspace=Path("/w"),
        run_directory=Path("/r"),
        options={"command": "x", "prompt": "argument"},
    )
    with pytest.raises(BadConfig) as caught:
        AGENT.invocation(request)
    wording(caught.value.hint)


def judged(code: int | None, ended_by: Any = "itself") -> AgentResult:
    state = AGENT.fold(AGENT.initial(), OutputLine(offset=1, stream="out", text="last words")).state
    return ended(state, code, ended_by)


def ended(state: CommandState, code: int | None, ended_by: Any = "itself") -> AgentResult:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    how = Exit(code=code, ended_by=ended_by, started_at=at, ended_at=at, output_bytes=0, output_sha256="")
    return AGENT.result(state, how)


@pytest.mark.capability("C029")
@each_case(
    ("code", "ended_by", "failure"),
    [
        (1, "itself", Failure.AGENT_ERROR),
        (127, "itself", Failure.CANNOT_START),
        (126, "itself", Failure.CANNOT_START),
        (-9, "itself", Failure.CRASH),
        (137, "itself", Failure.CRASH),
        (139, "itself", Failure.CRASH),
        (143, "itself", Failure.CRASH),
        # Gemini CLI exits with the status of its service, of which 8 bits are left: 400, 401, 403, 404.
        (144, "itself", Failure.AGENT_ERROR),
        (145, "itself", Failure.AGENT_ERROR),
        (147, "itself", Failure.AGENT_ERROR),
        (148, "itself", Failure.AGENT_ERROR),
        (None, "not_started", Failure.CANNOT_START),
        (0, "deadline", Failure.TIMEOUT),
        (0, "idle", Failure.HANG),
        (0, "asked", Failure.CANCELLED),
    ],
)
def test_the_exit_decides(code: int | None, ended_by: str, failure: Failure) -> None:
    result = judged(code, ended_by)
    assert result.failure is failure
    assert result.detail.endswith("last words")
    chose = ended_by == "itself" and failure is not Failure.CRASH
    assert result.by_work is chose, "a code of its own says nothing of its work"


def test_a_clean_exit_is_a_claim() -> None:
    result = judged(0)
    assert result.claimed
    assert result.summary == "last words"
    assert result.cost_micros is None


def test_what_it_prints_last_can_be_a_question_and_what_it_prints_on_stderr_is_none() -> None:
    state = AGENT.initial()
    block = ("```loopwright-ask", '{"question": "Which port?", "options": ["80", "8080"]}', "```")
    for n, text in enumerate(("I wonder.", *block)):
        state = AGENT.fold(state, OutputLine(offset=n, stream="out", text=text)).state
    state = AGENT.fold(state, OutputLine(offset=9, stream="err", text="a warning")).state
    result = ended(state, 0)
    assert [(one.text, one.options) for one in result.asked] == [("Which port?", ("80", "8080"))]
    assert (result.claimed, result.failure) == (False, None)
    assert ended(state, 1).failure is Failure.AGENT_ERROR, "one that failed asks nothing"
    assert ended(state, 1).asked == ()
    for n, text in enumerate(block):
        state = AGENT.fold(AGENT.initial(), OutputLine(offset=n, stream="err", text=text)).state
    assert ended(state, 0).asked == ()


def test_a_program_that_reviews_is_heard_by_its_last_lines() -> None:
    state = AGENT.initial()
    said = ["noise"] * 3000 + ["```loopwright-review", '{"summary": "s",', '"findings": []}', "```"]
    for n, text in enumerate(said):
        state = AGENT.fold(state, OutputLine(offset=n, stream="out", text=text)).state
    state = AGENT.fold(state, OutputLine(offset=9999, stream="err", text="a warning")).state
    now = datetime.now(UTC)
    end = Exit(code=0, ended_by="itself", started_at=now, ended_at=now, output_bytes=0, output_sha256="")
    result = AGENT.result(state, end)
    patch = Patch(sha256="", files=(), text="", is_whole=True)
    assert read_answer(result.structured, result.last_words, patch) == Answer(summary="s", findings=())
    assert len(result.last_words) < 20_000

"""Any program as an agent, really run."""

from pathlib import Path
from typing import Any

import pytest
from tests.wording_plugin import Wording

from loopwright.adapters.agents.command import CommandAgent
from loopwright.core.values.failures import Failure

AGENT = CommandAgent()
PROMPT = 'Write it\'s "name" and $HOME;\n{model} stays as it is.'


@pytest.mark.capability("C025")
@pytest.mark.parametrize(
    "options",
    [
        {"command": "cat > got"},
        {"command": ["tee", "got"]},
        {"command": "cp {prompt_file} {workspace}/got", "prompt": "file"},
        {"command": ["cp", "{prompt_file}", "{workspace}/got"], "prompt": "file"},
        {"command": "printf %s {prompt} > got", "prompt": "argument"},
        {"command": ["sh", "-c", 'printf %s "$1" > got', "sh"], "prompt": "argument"},
    ],
    ids=str,
)
async def test_the_prompt_arrives_unchanged_in_every_way(
    run_agent: Any, workspace: Path, options: dict[str, Any]
) -> None:
    ran = await run_agent(AGENT, PROMPT, options=options)
    assert ran.result.claimed, ran
    assert (workspace / "got").read_text() == PROMPT


async def test_what_it_prints_is_told(run_agent: Any, wording: Wording) -> None:
    ran = await run_agent(AGENT, "p", options={"command": "echo working; echo trouble >&2; exit 4"})
    assert ran.kinds() == ["Text", "Raw"]
    assert ran.result.failure is Failure.AGENT_ERROR
    wording(ran.result.detail)


@pytest.mark.capability("C029")
@pytest.mark.parametrize("command", ["no-such-program", ["no-such-program"]], ids=str)
async def test_a_program_that_is_not_there_cannot_start(run_agent: Any, command: str | list[str]) -> None:
    ran = await run_agent(AGENT, "p", options={"command": command})
    assert ran.result.failure is Failure.CANNOT_START

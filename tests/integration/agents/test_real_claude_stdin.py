"""Claude Code waits three seconds for more on a stdin that stays open, unless it is spoken to there from the start."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.agent_binaries import bundled_claude
from tests.integration.agents.conftest import BY_KEY

from loopwright.adapters.processes.keeper_files import OutputReader
from loopwright.testing import scenarios
from loopwright.testing.model_server import ModelServer

WAITED = "no stdin data received"
"""What it says of that on stderr."""


async def test_no_run_waits_for_more_input_before_it_begins(run_claude: Any) -> None:
    ran, _ = await run_claude(scenarios.answer("Done."))
    assert ran.result.claimed, ran.result
    said = [line.text for line in OutputReader(ran.directory, 0).all()]
    assert any('"type":"result"' in text for text in said)
    assert not any(WAITED in text for text in said), said


@pytest.mark.agents
def test_who_leaves_its_stdin_open_and_silent_is_waited_for(tmp_path: Path) -> None:
    """The test above would notice: these are the words of this version."""
    program = bundled_claude()
    if program is None:
        pytest.skip("the claude-agent-sdk wheel is not installed")
    with ModelServer(scenarios.answer("Done.")) as server:
        env = {
            **BY_KEY,
            "ANTHROPIC_BASE_URL": server.url,
            "HOME": str(tmp_path),
            "TMPDIR": str(tmp_path),
            "PATH": os.environ["PATH"],
            "NO_PROXY": "127.0.0.1",
        }
        process = subprocess.Popen(
            [program, "-p", "do it"],
            cwd=tmp_path,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        with process:
            try:
                said = process.stderr.read()
            finally:
                process.kill()
    assert WAITED in said

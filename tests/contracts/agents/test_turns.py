"""A number of turns is for agents that can keep it."""

from pathlib import Path

import pytest
from tests.contracts.agents.subjects import SUBJECTS
from tests.refusals import raises_code

from loopwright.ports import AgentRequest
from loopwright.testing.conformance import Subject


@pytest.mark.parametrize("subject", SUBJECTS, ids=[subject.name for subject in SUBJECTS])
def test_only_an_agent_that_ends_at_a_number_of_turns_takes_one(subject: Subject, tmp_path: Path) -> None:
    options = {**subject.options, "max_turns": 3}
    request = AgentRequest(prompt="Go.", workspace=tmp_path, run_directory=tmp_path, options=options)
    if "turns" in subject.can:
        assert subject.agent.invocation(request).argv
        return
    with raises_code("agent_option_unknown"):
        subject.agent.invocation(request)

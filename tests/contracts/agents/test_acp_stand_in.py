"""The protocol's own models judge what the stand-in for its agents says."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.agents.subjects import SUBJECTS

from loopwright.adapters.agents.acp import rpc
from loopwright.adapters.agents.acp.profiles import PROFILES
from loopwright.testing.conformance import Played, play


@pytest.mark.parametrize("name", PROFILES)
async def test_the_stand_in_speaks_the_protocol(name: str, tmp_path: Path) -> None:
    (subject,) = [one for one in SUBJECTS if one.name == name]
    for behaviour in ("done", "permission"):
        (played,) = await play(subject, behaviour, tmp_path / behaviour)
        _is_of_the_protocol(played)


def _is_of_the_protocol(played: Played) -> None:
    from acp import schema  # a second of loading: not for every process that only collects

    answers: dict[int, Any] = {
        rpc.INITIALIZE: schema.InitializeResponse,
        rpc.SESSION: schema.NewSessionResponse,
        rpc.MODE: schema.SetSessionModeResponse,
        rpc.PROMPT: schema.PromptResponse,
    }
    for line in played.lines:
        message = json.loads(line.text)
        match message.get("method"):
            case "session/update":
                schema.SessionNotification.model_validate(message["params"])
            case "session/request_permission":
                schema.RequestPermissionRequest.model_validate(message["params"])
            case "fs/write_text_file":
                schema.WriteTextFileRequest.model_validate(message["params"])
            case None:
                answers[message["id"]].model_validate(message["result"])
            case other:
                pytest.fail(f"nobody knows {other}")

"""What the app server says, made for tests, and the state in the middle of a turn."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loopwright.adapters.agents.codex.agent import CodexAgent
from loopwright.core.rows.model import Usage
from loopwright.core.values.permissions import Permissions
from loopwright.ports import AgentRequest, Exit, OutputLine, Spent

AGENT = CodexAgent()
WORKSPACE = "/home/x/workspace"

Message = dict[str, Any]


def ended(code: int | None, ended_by: str = "itself") -> Exit:
    return Exit(
        code=code,
        ended_by=ended_by,  # type: ignore[arg-type]
        started_at=None,
        ended_at=datetime(2026, 1, 1, tzinfo=UTC),
        output_bytes=0,
        output_sha256="",
    )


def message(method: str, id: object = None, **params: Any) -> OutputLine:
    value: Message = {"method": method, "params": {"threadId": "T", "turnId": "U", **params}}
    return OutputLine(offset=0, stream="out", text=json.dumps(value if id is None else {**value, "id": id}))


def answered(id: str, **result: Any) -> OutputLine:
    return OutputLine(offset=0, stream="out", text=json.dumps({"id": id, "result": result}))


def begun(permissions: Permissions, *before: OutputLine, spent: Usage | None = None, **changes: Any) -> Any:
    """Return the state in the middle of a turn, after these lines."""
    values = {"prompt": "go", "workspace": Path(WORKSPACE), "run_directory": Path("/run"), **changes}
    request = AgentRequest(permissions=permissions, **values)
    state = AGENT.initial(request, before=Spent(usage=spent or Usage()))
    start = (
        answered("initialize", userAgent="x/1"),
        answered("thread", thread={"id": "T"}),
        answered("turn", turn={"id": "U"}),
    )
    for line in (*start, *before):
        state = AGENT.fold(state, line).state
    return state

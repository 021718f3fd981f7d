"""The state folder of a project: its layout, its schemas, and the rows that are made again from it."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.acceptance.control.workshop import send
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

import loopwright
from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.model import (
    Attempt,
    Finish,
    Loop,
    Plan,
    Project,
    Review,
    Role,
    Run,
    Task,
    VerdictRecord,
)
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.documents import document

SCHEMAS = Path(loopwright.__file__).parent / "schemas"
KINDS = {
    "projects": ("state_project", r"proj_[0-9a-f-]{36}\.json"),
    "sessions": ("state_session", r"[A-Za-z0-9_-]+\.json"),
    "runs": ("state_run", r"run_[0-9a-f-]{36}\.json"),
    "verdicts": ("state_verdict", r"verdict_[0-9a-f-]{36}\.json"),
    "events": ("state_event", r"events-\d{4}-\d\d-\d\d\.jsonl"),
    "plans": ("state_plan", r"plan_[0-9a-f-]{36}\.json"),
    "inspection-packets": ("packet", r"pkt_[0-9a-f-]{36}\.(json|md)"),
    "health": ("loop_health", r"loop_[0-9a-f-]{36}\.json"),
}
"""The folders, each with the schema of its files and their names."""
ROWS = (Project, Loop, Plan, Task, Attempt, Run, VerdictRecord, Review, Question, Finish)


def _rows(home: Path) -> dict[str, Any]:
    """Return all rows of a home that belong to projects, by their ids, without the environments."""
    store = SqlStore.open(home / "loopwright.db", create=False)
    try:
        found = store.read_sync(lambda tx: [row for kind in ROWS for row in tx.find(kind)])
    finally:
        store.close_sync()
    return {row.id: {**document(row), "environment": None} for row in found}


def _documents(file: Path) -> list[Any]:
    text = file.read_text()
    return [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else [json.loads(text)]


@pytest.mark.capability("C006")
@pytest.mark.capability("C115")
@pytest.mark.capability("C117")
def test_a_project_is_made_again_from_its_state_folder_when_the_database_is_gone(served: Served) -> None:
    (served.repository / "loopwright.toml").write_text('state_folder = ".claude/state"\n')
    (served.repository / "idle.yaml").write_text("title: Idle\ntasks:\n- {id: one, title: One}\n")
    served.git("add", "loopwright.toml", "idle.yaml")
    served.git("commit", "-qm", "settings")
    served.play({"first": [[{"claim": "done"}], [{"write": "first", "text": "1\n"}]]})
    done = served.run(served.plan("first", [task("first", "test -s first")]))
    assert done.code == 0, done.out + done.err
    (project,) = served.rows(Project)
    daemon = served.serve()
    run = served.rows(Run, role=Role.IMPLEMENTER)[-1]
    assert served.post(f"/api/inspection/run/{run.id}").status_code == 200
    made = served.post("/api/loops", {"project_id": project.id, "source": "idle.yaml", "priority": 3})
    assert made.status_code == 201, made.text
    own = served.repository / ".claude" / "state"
    about = own / "projects" / f"{project.id}.json"
    eventually(lambda: made.json()["id"] in about.read_text(), timeout=60)
    send(daemon, signal.SIGTERM)
    assert daemon.end() == 0
    assert not (served.repository / ".loopwright").exists()
    assert served.git("status", "--porcelain") == "", "git ignores the folder"
    assert KINDS.keys() | {"receipts"} == {one.name for one in own.iterdir() if one.is_dir()}
    assert not list(own.rglob(".*.json.*")), "no draft of a file is left"
    for folder, (schema, name) in KINDS.items():
        shape = json.loads((SCHEMAS / f"{schema}.schema.json").read_text())
        for file in (own / folder).iterdir():
            assert re.fullmatch(name, file.name), file
            for one in _documents(file) if file.suffix != ".md" else ():
                jsonschema.validate(one, shape, format_checker=jsonschema.FormatChecker())
    assert "environment" not in json.loads(about.read_text())

    before = _rows(served.home)
    for file in served.home.glob("loopwright.db*"):
        file.unlink()
    said = served("projects", "import")
    assert said.code == 0, said.out + said.err
    assert "loops made again: greeter/idle" in said.out
    assert _rows(served.home) == before
    assert served("projects", "env").code == 0, "the terminal of the import is recorded"
    again = served("projects", "import")
    assert "knows all plans and loops" in again.out, again.out + again.err
    assert served("receipt", "verify", served.newest_plan()).code == 0

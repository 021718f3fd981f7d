"""Any program that speaks the Agent Client Protocol, driven by `loopwright run`."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from tests.acceptance.cli.program import repository
from tests.acceptance.control.workshop import Workshop
from tests.fakes import stand_ins

from loopwright.core.rows.model import Plan, Role, Run
from loopwright.keeper import places

STAND_IN = Path(stand_ins.__file__).parent / "acp.py"


@pytest.mark.capability("C025")
def test_a_program_given_by_its_command_does_a_plan_where_the_project_is(shop: Workshop) -> None:
    shop.repository = repository(
        shop.place / "many", {"top.txt": "top\n", "services/api/loopwright.toml": ""}
    )
    folder = shop.repository / "services" / "api"
    (folder / "plan.yaml").write_text(
        "title: inside\ntasks:\n  - {id: one, title: One, acceptance: ['grep -q made made.txt']}\n"
    )
    shop.program.env |= {
        "LOOPWRIGHT_AGENT": "acp",
        "LOOPWRIGHT_AGENTS__ACP__COMMAND": shlex.join((sys.executable, "-S", "-I", str(STAND_IN), "done")),
    }
    said = shop("run", "plan.yaml", cwd=folder, timeout=90)
    assert said.code == 0, said.out + said.err
    plan = shop.row(Plan)
    assert shop.git("show", f"{plan.branch}:services/api/made.txt") == "made\n"
    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert run.summary == "made.txt is made"
    (log,) = shop.home.rglob(f"{run.id}/{places.WRITES}")
    new = json.loads(json.loads(log.read_text().splitlines()[0])["data"])
    assert new["method"] == "session/new"
    assert new["params"]["cwd"].endswith("/services/api"), "its conversation is there too"

"""Any program as an agent, through `loopwright run`: judged by what it changed, and its exit code is kept."""

import json

from tests.acceptance.cli.program import executable
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Role, Run, Task
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import RunState

PROGRAM = """
case "$(cat)" in
*"Task: right"*) echo right > "$LOOPWRIGHT_TASK_NAME"; echo "done, with a complaint"; exit 3 ;;
*"Task: wrong"*) echo wrong > wrong; exit 3 ;;
*"Task: idle"*) echo "no idea"; exit 3 ;;
*"Task: killed"*) echo right > killed; kill -9 $$ ;;
*"Task: unchecked"*) echo right > unchecked; exit 3 ;;
esac
"""


def test_what_a_program_changed_is_judged_whatever_its_exit_code(shop: Workshop) -> None:
    program = executable(shop.place / "bin" / "program", PROGRAM)
    shop.program.env |= {
        "LOOPWRIGHT_AGENT": "command",
        "LOOPWRIGHT_AGENTS__COMMAND__COMMAND": json.dumps([str(program)]),
        "LOOPWRIGHT_MAX_ATTEMPTS": "1",
        "LOOPWRIGHT_MAX_CALL_RETRIES": "0",
    }
    checked = [task(key, f"grep -q right {key}") for key in ("right", "wrong", "idle", "killed")]
    shop.run(shop.plan("made", [*checked, task("unchecked")], gates=[]), "--allow-unverified")
    tasks = {one.key: one for one in shop.rows(Task)}
    runs = {one.task_id: one for one in shop.rows(Run, role=Role.IMPLEMENTER)}
    right = runs[tasks["right"].id]
    assert tasks["right"].landed_sha
    assert (right.state, right.failure, right.exit_code) == (RunState.ERROR, Failure.AGENT_ERROR, 3)
    assert right.summary.endswith("exited with code 3: done, with a complaint"), "its word is kept"
    failed = {key: one.failure for key, one in tasks.items() if one.failure}
    assert failed == {
        "wrong": Failure.GATE,
        "idle": Failure.AGENT_ERROR,
        "killed": Failure.CRASH,
        "unchecked": Failure.AGENT_ERROR,
    }
    assert "exited with code 3: no idea" in shop("show", "idle").out
    receipt = shop("receipt", "show", "--json").document
    (kept,) = (one for one in receipt["runs"] if one["id"] == right.id)
    assert (kept["exit_code"], kept["failure"]) == (3, "agent_error")

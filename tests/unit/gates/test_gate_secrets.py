"""What must not be printed is kept out of a gate's records as well."""

import json
from pathlib import Path

from loopwright.adapters.gates.commands import CommandGate
from loopwright.core.values.policy import GateCommand
from loopwright.ports import GateRequest


def test_the_secrets_of_a_request_are_redacted_by_keeper_and_runner(tmp_path: Path) -> None:
    request = GateRequest(
        run_id="run_x",
        directory=tmp_path,
        tree=tmp_path,
        commands=(GateCommand(name="a", command="true"),),
        env={"DB_PASSWORD": "hunter2-hunter2", "PLAIN": "value"},
        secrets=("hunter2-hunter2",),
    )
    spec = CommandGate().spec(request)
    job = (tmp_path / "gate" / "job.json").read_text()
    assert spec.secrets == ("hunter2-hunter2",)
    assert json.loads(job)["secrets_told"] is True
    assert (spec.stdin, json.loads(spec.stdin_data)) == ("pipe", ["hunter2-hunter2"]), "on its stdin alone"
    assert "hunter2" not in job

"""`otlp_endpoint`: a real run sends one trace, with a span for each attempt, agent and gate."""

from pathlib import Path

import pytest
from tests.acceptance.sandbox import COST, Sandbox, task
from tests.integration.tracing.collector import Taken, listening


def test_a_run_is_one_trace_with_a_span_for_each_attempt_agent_and_gate(sandbox: Sandbox) -> None:
    done = {"write": "made.txt", "text": "made\n"}
    sandbox.play({"t1": [[{"write": "made.txt", "text": ""}, COST], [done, COST]]})
    with listening() as collector:
        sandbox.program.env["LOOPWRIGHT_OTLP_ENDPOINT"] = collector.url
        ran = sandbox.run(sandbox.plan("todo", [task("t1", "test -s made.txt")]))
        assert ran.code == 0, ran.err
    spans = {one.id: one for one in collector.spans}
    [root] = [one for one in spans.values() if not one.parent]
    assert (len(spans), len({one.trace for one in spans.values()})) == (len(collector.spans), 1)
    assert (root.name, root.failed) == ("plan", False)
    assert root.attributes["loopwright.plan.status"] == "VERIFIED"

    def below(one: Taken) -> list[str]:
        return sorted(each.name for each in spans.values() if each.parent == one.id)

    rejected, landed = collector.named("attempt t1")
    assert [(one.parent, one.failed) for one in (rejected, landed)] == [(root.id, True), (root.id, False)]
    assert rejected.why.startswith("gate")
    assert {"invoke_agent scripted", "gate"} <= {*below(rejected)} & {*below(landed)}
    [red] = [one for one in collector.named("gate") if one.parent == rejected.id]
    assert (red.failed, red.attributes["loopwright.gate.refused"]) == (True, ["test -s made.txt"])
    agent = next(one for one in collector.named("invoke_agent") if one.parent == landed.id)
    assert agent.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert agent.attributes["loopwright.cost_usd"] > 0
    assert below(root) == ["attempt t1", "attempt t1", "evaluation"]
    runs = sandbox("stats", "--per", "run", "--json").document["runs"]
    assert len(spans) == len(runs) + 3, "each run, both attempts and the plan"
    assert all(one.lasted_s >= 0 for one in spans.values())


@pytest.mark.more
def test_doctor_says_how_to_install_what_traces_need(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.program.env["LOOPWRIGHT_OTLP_ENDPOINT"] = "http://localhost:4318"

    def finding() -> tuple[str, str]:
        found = sandbox("doctor", "--json", fresh=True).document["findings"]
        [one] = [one for one in found if one["name"] == "traces"]
        return one["status"], one["text"] + one["fix"]

    assert finding() == ("ok", "spans go to http://localhost:4318/v1/traces")
    # A package that cannot be found, as far as the program knows.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['opentelemetry'] = None\n")
    sandbox.program.env["PYTHONPATH"] = str(tmp_path)
    status, text = finding()
    assert (status, "pip install 'loopwright[otel]'" in text) == ("warn", True)

"""The benchmark runs from end to end: the product and its baseline do the same plan and are held to its result."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bench.yard import Yard, independent

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.serial
def test_product_and_baseline_do_the_same_plan_and_every_process_is_accounted_for(tmp_path: Path) -> None:
    jobs = independent(2, 0.1)
    product = Yard(root=tmp_path / "product", jobs=jobs).make()
    took = product.run()
    roles = product.roles()
    kinds = ["gate", "gate", "implementer", "implementer"]
    assert sorted(one for one in roles.values() if one in ("gate", "implementer")) == kinds
    assert set(roles) <= {one.pid for one in took.others}, "a keeper ended unseen"
    assert took.memory_bytes > 10_000_000
    assert took.main.own_cpu_s > 0
    assert took.main.peak_bytes > 10_000_000
    script = Yard(root=tmp_path / "script", jobs=jobs).make()
    base = script.baseline()
    assert 0.1 <= base.wall_s < took.wall_s
    for yard, branch in ((product, "HEAD"), (script, "integration")):
        assert yard.git("rev-parse", branch)


def test_a_case_is_chosen_by_name_and_its_result_is_written(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", "--cases", "history", "--out", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert list(result) == ["history"]
    assert result["history"]["quick"] is True
    assert {one["case"] for one in result["history"]["measurements"]} == {"history"}
    assert "git work of a task" in done.stdout
    wrong = subprocess.run(
        [sys.executable, "-m", "bench", "--cases", "nothing"], cwd=ROOT, capture_output=True, text=True
    )
    assert wrong.returncode == 2
    assert "there is no case 'nothing'" in wrong.stderr


@pytest.mark.more
def test_ctrl_c_ends_it_in_one_line_and_keeps_what_was_measured(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    arguments = [sys.executable, "-m", "bench", "--quick", "--cases", "sources,history", "--out", str(out)]
    with subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.PIPE, text=True) as going:
        assert going.stderr is not None
        assert any("history" in line for line in going.stderr)
        going.send_signal(signal.SIGINT)
        said = going.stderr.read()
    assert going.returncode == 130
    assert said.endswith("interrupted; the cases that were measured by then are written down\n")
    assert "Traceback" not in said
    assert list(json.loads(out.read_text())) == ["sources"]

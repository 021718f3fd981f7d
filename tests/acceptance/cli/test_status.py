"""`loopwright status`: who works, which plans there are, how the newest one stands."""

import subprocess
import sys
from pathlib import Path

from tests.acceptance.cli.conftest import Live
from tests.acceptance.sandbox import Sandbox


def test_status_shows_every_plan_and_the_newest_in_full(finished: Sandbox) -> None:
    said = finished("status")
    assert said.code == 0
    assert "no worker is running" in said.out
    assert "NEEDS YOU" in said.out
    assert "VERIFIED" in said.out
    assert "loopwright status broken" in said.out
    assert "waits for broken" in said.out
    assert said.out.index("bad") < said.out.index("good")


def test_no_line_of_a_piped_status_is_cut_or_padded(finished: Sandbox) -> None:
    lines = finished("status").out.splitlines()
    assert not any(line.endswith(" ") or "…" in line for line in lines)


def test_a_plan_is_found_by_the_beginning_of_its_id_and_gives_its_exit_code(
    finished: Sandbox, good_plan: str
) -> None:
    assert finished("status", good_plan[:13], "--exit-code").code == 0
    assert finished("status", "--exit-code").code == 1
    assert finished("status").code == 0


def test_the_json_status_has_workers_plans_and_tasks(finished: Sandbox) -> None:
    found = finished("status", "--json").document
    assert found["workers"] == []
    assert [plan["title"] for plan in found["plans"]] == ["bad", "good"]
    assert [(task["key"], task["status"]) for task in found["plan"]["tasks"]] == [
        ("fine", "COMPLETE"),
        ("broken", "ERROR"),
        ("after", "QUEUED"),
    ]
    assert found["plan"]["done"] == 1


def test_a_resting_plan_does_not_grow_older(finished: Sandbox) -> None:
    first, second = (finished("status", "--json").document["plan"]["elapsed_s"] for _ in range(2))
    assert first == second


def test_another_repository_sees_only_its_own_plans_unless_asked_for_all(
    finished: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/trunk\n")
    assert "no plan of this repository yet" in finished("status", cwd=tmp_path).out
    everything = finished("status", "--all", cwd=tmp_path).out
    assert f"good  ({finished.repository})" in everything
    assert "no plan of this repository" not in everything


def test_an_unknown_plan_is_an_error_that_says_what_to_do(finished: Sandbox) -> None:
    said = finished("status", "nonsense")
    assert said.code == 2
    assert "nothing here is called 'nonsense'" in said.err
    assert "to do" in said.err
    assert finished("status", "nonsense", "--json").document["error"]["code"] == "target_not_found"


def test_status_without_a_home_says_how_to_begin(sandbox: Sandbox) -> None:
    said = sandbox("status")
    assert said.code == 2
    assert "nothing has run here yet" in said.err
    assert "loopwright run" in said.err
    assert not sandbox.home.exists()


def test_a_home_of_the_users_own_file_is_found_without_an_environment(finished: Sandbox) -> None:
    folder = finished.program.user / ".config" / "loopwright"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(f'home = "{finished.home}"\n')
    try:
        assert finished("status", env={"LOOPWRIGHT_HOME": ""}).code == 0
        (folder / "config.toml").write_text("home = 7\n")
        wrong = finished("status", env={"LOOPWRIGHT_HOME": ""})
    finally:
        (folder / "config.toml").unlink()
    assert wrong.code == 2
    assert "config.toml:1: home: expected an absolute path" in wrong.err


def test_status_names_the_process_that_works(live: Live) -> None:
    assert f"working: process {live.worker.process.pid}" in live("status").out
    found = live("status", "--json").document
    assert found["workers"][0]["pid"] == live.worker.process.pid
    assert found["alive"] == 1
    assert found["plan"]["tasks"][0]["doing"] == "first words"


def test_after_the_worker_was_killed_status_says_that_its_agent_lives_on(tmp_path: Path) -> None:
    live = Live(tmp_path)
    live.begin()
    live.worker.kill()
    out = live("status").out
    assert "no worker is running" in out
    assert "1 run still going without a worker" in out
    assert "loopwright resume" in out
    live.release()
    assert live("resume").code == 0


def test_status_loads_nothing_that_only_working_needs(finished: Sandbox) -> None:
    script = (
        "import sys; from loopwright.cli.main import call; code = call(['status']);"
        "heavy = {'pydantic', 'alembic', 'dbos', 'fastapi', 'psutil', 'ruamel', 'loopwright.app', 'rich.live'};"
        "print(sorted(heavy & set(sys.modules)), code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=finished.repository,
        env=finished.program.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[] 0"

"""The files with which others install Loopwright name what is there, and do what they say."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.acceptance.cli.program import repository

ROOT = Path(__file__).resolve().parents[2]
GOOD = """\
title: T
gates: [{name: g, run: test -d .}]
tasks: [{id: one, title: One, acceptance: [test -s one]}]
"""
BAD = GOOD.replace("title: One", "depends_on: [nothing]")


def _yaml(name: str) -> Any:
    return YAML(typ="safe").load(ROOT / name)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "repository"
    repository(made, {"plan.yaml": GOOD, "plans/two words.yaml": GOOD, "plans/bad.yaml": BAD})
    return made


def _done(
    words: list[str], place: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(place.parent)}
    return subprocess.run(words, cwd=place, env={**own, **(env or {})}, capture_output=True, text=True)


def test_the_hook_checks_every_plan_that_changed(place: Path) -> None:
    [hook] = _yaml(".pre-commit-hooks.yaml")
    names = ("plan.yaml", "plans/two words.yaml", "plans/bad.yaml", "src/plan.yaml", "plans/old/x.yaml")
    assert [bool(re.search(hook["files"], name)) for name in names] == [True, True, True, False, False]
    both = _done([*shlex.split(hook["entry"]), "plans/bad.yaml", "plans/two words.yaml"], place)
    assert both.returncode == 1, both.stdout + both.stderr
    assert "nothing" in both.stdout + both.stderr
    assert "One" in both.stdout, "the second is checked too"


def test_the_action_runs_its_command_and_takes_no_input_for_code(place: Path, tmp_path: Path) -> None:
    action = _yaml("action.yml")
    install, run = action["runs"]["steps"]
    assert "${{" not in install["run"] + run["run"], "inputs come from the environment"
    assert {one.split(".")[1].split()[0] for one in re.findall(r"inputs\.\w+", str(run["env"]))} == set(
        action["inputs"]
    )
    binaries = tmp_path / "loopwright/bin"
    binaries.mkdir(parents=True)
    (binaries / "loopwright").symlink_to(Path(sys.executable).parent / "loopwright")
    env = {"RUNNER_TEMP": str(tmp_path), "ARGUMENTS": "--no-run --json"}

    def ran(**more: str) -> subprocess.CompletedProcess[str]:
        return _done(["bash", "-e", "-c", run["run"]], place, {**env, **more})

    good = ran(COMMAND="check", PLAN="plans/two words.yaml")
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout)
    assert ran(COMMAND="delete", PLAN="plan.yaml").returncode == 2


def test_the_container_copies_what_the_build_needs() -> None:
    text = (ROOT / "Containerfile").read_text()
    copied = [name for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE) for name in line.split()[:-1]]
    assert {"pyproject.toml", "hatch_build.py", "src", "README.md", "LICENSE"} <= set(copied)
    assert [name for name in copied if not (ROOT / name).exists()] == []
    [asked] = re.findall(r'"/source\[(.*)\]"', text)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"server"} < set(asked.split(",")) <= extras.keys()


def test_the_development_container_calls_targets_that_exist() -> None:
    found = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    targets = re.findall(r"make (\w+)", found["postCreateCommand"])
    assert targets
    assert [one for one in targets if f"\n{one}:" not in (ROOT / "Makefile").read_text()] == []

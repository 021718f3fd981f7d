"""More real agent programs against the model server, each in its own protocol: run by `make test-agents`."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agent_programs import PLACES, installed

from loopwright.testing import scenarios
from loopwright.testing.model_server import Flaky, ModelServer, Reply, Scenario, Trouble

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]


def gemini(home: Path, url: str) -> tuple[list[str], dict[str, str]]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    write(home / ".gemini/settings.json", settings)
    env = {
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "true",
    }
    return ["-m", "gemini-2.5-pro", "-p", "do it", "-o", "stream-json", "--approval-mode", "yolo"], env


def goose(home: Path, url: str) -> tuple[list[str], dict[str, str]]:
    env = {
        "GOOSE_PROVIDER": "openai",
        "OPENAI_HOST": url,
        "OPENAI_API_KEY": "none",
        "GOOSE_MODEL": "any",
        "GOOSE_MODE": "auto",
        "GOOSE_DISABLE_KEYRING": "1",
    }
    return ["run", "-t", "do it", "--with-builtin", "developer", "--output-format", "stream-json"], env


def opencode(home: Path, url: str) -> tuple[list[str], dict[str, str]]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"any": {"limit": {"context": 100_000, "output": 8_000}}},
    }
    settings = {
        "provider": {"local": provider},
        "model": "local/any",
        "small_model": "local/any",
        "autoupdate": False,
        "share": "disabled",
    }
    write(home / ".config/opencode/opencode.json", settings)
    env = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    return ["run", "--format", "json", "do it"], env


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(value))


PROGRAMS: dict[str, Callable[[Path, str], tuple[list[str], dict[str, str]]]] = {
    "gemini": gemini,
    "goose": goose,
    "opencode": opencode,
}
PATHS = {
    "gemini": "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
    "goose": "/v1/chat/completions",
    "opencode": "/v1/chat/completions",
}


def run(name: str, scenario: Scenario, place: Path) -> tuple[int, str, set[str]]:
    """Run a program to its end; return its exit code, what it printed, and where it asked."""
    program = installed(name)
    if program is None:
        pytest.skip(f"{name} is not installed: `make test-agents` does it")
    folders = {one: place / one for one in ("home", "tmp", "work")}
    for folder in folders.values():
        folder.mkdir()
    with ModelServer(scenario) as server:
        arguments, env = PROGRAMS[name](folders["home"], server.url)
        env |= {"PATH": os.environ["PATH"], "HOME": str(folders["home"]), "TMPDIR": str(folders["tmp"])}
        done = subprocess.run(
            [program, *arguments],
            cwd=folders["work"],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=500,
        )
        return done.returncode, done.stdout + done.stderr, {asked.path for asked in server.asked}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_asks_again_after_an_overload_writes_a_file_and_runs_a_command(name: str, tmp_path: Path) -> None:
    """All in one go: to start such a program takes longer than all that it does."""
    write = Reply(tools=(scenarios.WRITES[name]("made.txt", "x\n"),))
    turns = (
        Flaky(fails=Trouble(kind="overloaded"), times=1, then=write),
        Reply(tools=(scenarios.RUNS[name]("echo hi > run.txt"),)),
        Reply(text="Recovered."),
    )
    code, said, paths = run(name, Scenario(turns=turns), tmp_path)
    assert code == 0, said
    assert "Recovered." in said
    assert (tmp_path / "work/made.txt").read_text() == "x\n"
    assert (tmp_path / "work/run.txt").read_text() == "hi\n"
    assert paths == {PATHS[name]}


def test_the_programs_that_can_be_found_are_the_ones_that_are_tested() -> None:
    assert PLACES.keys() == PROGRAMS.keys()

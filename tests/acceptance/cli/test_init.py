"""`loopwright init` on repositories of several kinds: what it finds, what it tries, what it writes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest
from ruamel.yaml import YAML
from tests.acceptance.cli.program import Program, executable, git, repository
from tests.waiting import eventually

PYTHON_TEST = """\
import pathlib
import unittest
class T(unittest.TestCase):
    def test_settings_are_there(self):
        self.assertEqual(pathlib.Path(".env").read_text(), "MODE=test")
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program on a machine that has git, Python and make, and nothing else."""
    program = Program(tmp_path)
    folder = program.user / "bin"
    folder.mkdir()
    # Not whatever `python3` means here: it may be a script that needs more programs.
    (folder / "python3").symlink_to(Path(sys.executable).resolve())
    for name in ("git", "make", "cat", "touch", "mkdir"):
        found = shutil.which(name)
        assert found, f"these tests need {name}"
        (folder / name).symlink_to(Path(found).resolve())
    program.env["PATH"] = str(folder)
    return program


def gates_of(said: Any) -> dict[str, tuple[str, str]]:
    return {gate["name"]: (gate["result"], gate["reason"]) for gate in said.document["gates"]}


def written(project: Path) -> dict[str, Any]:
    return tomllib.loads((project / "loopwright.toml").read_text())


def test_a_python_project_gets_its_tests_as_a_gate_after_they_passed_in_a_clean_clone(
    program: Program, tmp_path: Path
) -> None:
    project = repository(
        tmp_path / "project",
        {"tests/__init__.py": "", "tests/test_it.py": PYTHON_TEST, ".gitignore": ".env\n"},
    )
    (project / ".env").write_text("MODE=test")
    said = program("init", "--agent", "scripted", cwd=project)
    assert said.code == 0, said.err
    assert "passed  test  python3 -m unittest discover" in said.out
    assert "no gate is in force" not in said.out
    assert "default branch  trunk" in said.out
    assert "git add loopwright.toml && git commit" in said.out
    assert "loopwright run plan.yaml" in said.out
    found = written(project)
    assert found["agent"] == "scripted"
    assert found["copy_files"] == [".env"]
    assert [gate["run"] for gate in found["gates"]] == ["python3 -m unittest discover"]
    assert git(project, "status", "--porcelain").split() == ["??", "loopwright.toml", "??", "plan.yaml"]
    assert [one.name for one in program.home.iterdir()] == ["gate-caches"], "the clean clone is gone"
    shown = program("config", "show", cwd=project)
    assert shown.code == 0, "the file that was written is one that is read"
    checked = program("plan", "check", "plan.yaml", cwd=project)
    assert checked.code == 0, "the sample plan is a good one"
    (project / "loopwright.toml").unlink()
    (project / "plan.yaml").write_text("title: mine\n")
    assert program("init", "--no-run", "--json", cwd=project).document["sample"] is None
    assert (project / "plan.yaml").read_text() == "title: mine\n", "a plan that is there is kept"


def test_the_scripts_of_an_npm_project_become_gates_and_a_failing_one_is_left_out_with_its_reason(
    program: Program, tmp_path: Path
) -> None:
    executable(program.user / "bin" / "node", "exit 0")
    executable(
        program.user / "bin" / "npm",
        'case "$1" in ci) mkdir node_modules;; test) test -d node_modules;; *) echo "3 style errors"; exit 3;; esac',
    )
    scripts = '{"test": "node t.js", "lint": "eslint ."}'
    files = {
        "package.json": f'{{"scripts": {scripts}}}',
        "package-lock.json": "{}",
        ".gitignore": "node_modules\n",
    }
    project = repository(tmp_path / "project", files)
    said = program("init", "--json", cwd=project)
    assert said.code == 0
    assert said.document["languages"] == ["node"]
    assert said.document["setup"]["command"] == "npm ci"
    assert said.document["setup"]["tried"]["passed"] is True
    assert gates_of(said) == {"test": ("passed", ""), "lint": ("failed", "exit code 3: 3 style errors")}
    found = written(project)
    assert found["dependencies"] == "npm ci"
    assert [gate["name"] for gate in found["gates"]] == ["test"]
    assert "# Left out: exit code 3: 3 style errors" in said.document["text"]
    assert said.document["notes"] == ["Only a comment in loopwright.toml, and not in force: lint."]
    assert not (project / "node_modules").exists(), "nothing is run in the checkout"


def test_a_setup_that_fails_is_told_and_left_out_together_with_the_gates_that_need_it(
    program: Program, tmp_path: Path
) -> None:
    executable(program.user / "bin" / "node", "exit 0")
    executable(program.user / "bin" / "npm", "echo no network; exit 7")
    project = repository(
        tmp_path / "project",
        {"package.json": '{"scripts": {"test": "node t.js"}}', "package-lock.json": "{}"},
    )
    said = program("init", cwd=project)
    assert said.code == 0
    assert "the setup command failed: exit code 7: no network" in said.out
    assert "not run  test" in said.out
    assert not {"dependencies", "setup"} & written(project).keys()
    assert "gates" not in written(project)
    assert "# Left out, because it did not work here: npm ci" in (project / "loopwright.toml").read_text()


def test_programs_that_are_missing_are_reported_and_are_no_error(program: Program, tmp_path: Path) -> None:
    files = {"go.mod": "module example.invalid/x\n", "x.go": "package x\n", "x_test.go": "package x\n"}
    project = repository(tmp_path / "project", files)
    said = program("init", cwd=project)
    assert said.code == 0
    assert "not run  test   go test ./...   not installed here: go" in said.out
    assert "agent claude: the program 'claude' was not found" in said.out
    assert "gates" not in written(project)
    assert "# Left out: not installed here: go" in (project / "loopwright.toml").read_text()


def test_a_makefile_speaks_for_a_project_and_what_it_writes_stays_out_of_the_checkout(
    program: Program, tmp_path: Path
) -> None:
    makefile = 'test:\n\ttouch made-by-the-test\n\ttest -z "$$LOOPWRIGHT_HOME"\nlint:\n\tfalse\n'
    project = repository(tmp_path / "project", {"Makefile": makefile})
    said = program("init", "--json", cwd=project)
    assert said.code == 0
    assert gates_of(said)["test"][0] == "passed"
    assert gates_of(said)["lint"][0] == "failed"
    assert git(project, "status", "--porcelain").split() == ["??", "loopwright.toml", "??", "plan.yaml"]


def test_where_no_check_passes_it_is_told_that_nothing_checks_the_work(
    program: Program, tmp_path: Path
) -> None:
    project = repository(tmp_path / "project", {"Makefile": "test:\n\texit 2\n"})
    said = program("init", cwd=project)
    assert said.code == 0
    assert (
        "no gate is in force: only a comment in loopwright.toml: test. Nothing checks what agents make."
        in said.out
    )
    assert "1. remove the # from a gate: fix test first, or let the plan make it pass" in said.out
    assert "docs/" not in said.out, "who installed the package has no such folder"
    file = project / "loopwright.toml"
    left_out = file.read_text().partition("in front of these lines:\n")[2]
    file.write_text(left_out.replace("# ", ""))
    assert [gate["run"] for gate in written(project)["gates"]] == ["make test"], "that is all it takes"


def test_a_project_without_tests_is_told_so_plainly(program: Program, tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"README.md": "# words\n"})
    said = program("init", cwd=project)
    assert said.code == 0
    assert "no tests: There are no tests here that could be found." in said.out
    assert "add tests, or write the command that checks this project" in said.out
    assert "gates" not in written(project)
    assert '# run = "the command that runs your tests"' in (project / "loopwright.toml").read_text()


def test_the_commit_is_tried_and_not_what_happens_to_lie_in_the_checkout(
    program: Program, tmp_path: Path
) -> None:
    project = repository(tmp_path / "project", {"Makefile": "test:\n\ttest ! -e broken\n"})
    (project / "broken").write_text("only here")
    said = program("init", cwd=project)
    assert "passed  test  make test" in said.out
    assert "Not committed, so not looked at in the clean clone: broken." in said.out


def test_a_file_that_is_there_is_replaced_only_when_asked(program: Program, tmp_path: Path) -> None:
    mine = "parallel = = broken"
    project = repository(tmp_path / "project", {"Makefile": "test:\n\ttrue\n", "loopwright.toml": mine})
    refused = program("init", cwd=project)
    assert refused.code == 2
    assert "exists already" in refused.err
    assert "--force replaces it" in refused.err
    dry = program("init", "--dry-run", "--no-run", cwd=project)
    assert dry.code == 0
    assert 'run = "make test"' in dry.out
    assert (project / "loopwright.toml").read_text() == mine
    assert program("init", "--force", "--no-run", cwd=project).code == 0
    assert [gate["run"] for gate in written(project)["gates"]] == ["make test"]


def test_without_running_the_gates_are_written_down_untried(program: Program, tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"Makefile": "test:\n\tfalse\n"})
    said = program("init", "--no-run", "--json", cwd=project)
    assert gates_of(said) == {"test": ("not run", "--no-run")}
    assert [gate["name"] for gate in written(project)["gates"]] == ["test"]
    assert not program.home.exists()


def test_in_a_subfolder_the_file_is_written_for_the_whole_repository(
    program: Program, tmp_path: Path
) -> None:
    project = repository(tmp_path / "project", {"Makefile": "test:\n\ttrue\n", "docs/a.md": "a"})
    said = program("init", "--no-run", cwd=project / "docs")
    assert said.code == 0
    assert (project / "loopwright.toml").exists()
    assert "loopwright.toml is for the whole repository, not only for docs." in said.out


def test_a_project_in_a_subfolder_is_tried_there_with_its_own_files(program: Program, tmp_path: Path) -> None:
    files = {
        "Makefile": "test:\n\tfalse\n",
        ".gitignore": ".env\n",
        "app/package.json": '{"name": "app"}',
        "app/Makefile": "test:\n\ttest -f .env && test -f package.json\n",
    }
    project = repository(tmp_path / "project", files)
    (project / "app" / ".env").write_text("A=1\n")
    said = program("init", "--json", cwd=project / "app")
    assert said.code == 0, said.out
    found = said.document
    assert (found["subfolder"], found["file"]) == ("app", str(project / "app" / "loopwright.toml"))
    assert found["env_files"] == [".env"]
    ran = [gate for gate in found["gates"] if gate["result"] != "not run"]
    assert ran, found["gates"]
    assert {gate["result"] for gate in ran} == {"passed"}, ran
    assert not (project / "loopwright.toml").exists()
    assert any("run loopwright in that folder" in note for note in found["notes"])


def test_a_folder_that_is_no_repository_or_has_no_commit_gets_a_clear_error(
    program: Program, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    outside = program("init", cwd=folder)
    assert outside.code == 2
    assert "is not in a git repository" in outside.err
    assert "git init" in outside.err
    git(folder, "init", "-q")
    empty = program("init", "--json", cwd=folder)
    assert empty.code == 2
    assert empty.document["error"]["code"] == "no_commit"
    assert "has no commit yet" in empty.document["error"]["message"]
    assert not (folder / "loopwright.toml").exists()


def test_an_unknown_agent_is_refused_before_anything_is_run(program: Program, tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"Makefile": "test:\n\ttrue\n"})
    said = program("init", "--agent", "clod", cwd=project)
    assert said.code == 2
    assert "there is no agent named 'clod'" in said.err
    assert "known are: acp, claude" in said.err


def test_ctrl_c_ends_a_gate_that_is_being_tried(program: Program, tmp_path: Path) -> None:
    makefile = f"test:\n\techo $$PPID > {program.user}/pid\n\tsleep 600\n"
    (program.user / "bin" / "sleep").symlink_to(shutil.which("sleep") or "")
    project = repository(tmp_path / "project", {"Makefile": makefile})
    process = subprocess.Popen(
        [sys.executable, "-m", "loopwright.cli", "init"],
        cwd=project,
        env=program.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    note = program.user / "pid"
    try:
        make = int(eventually(lambda: note.exists() and note.read_text().strip(), timeout=30))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    still_there = psutil.pid_exists(make)
    if still_there:
        os.kill(make, signal.SIGKILL)
    assert not still_there
    assert process.returncode == 130, out + err
    assert "Traceback" not in err
    assert not (project / "loopwright.toml").exists()
    assert [one.name for one in program.home.iterdir()] == ["gate-caches"], "the clean clone is gone"


def test_editors_find_the_schemas_that_the_files_name(program: Program, tmp_path: Path) -> None:
    project = tmp_path / "project"
    repository(project, {"README.md": "# Project\n"})
    assert program("init", "--no-run", cwd=project).code == 0
    settings, plan = (project / "loopwright.toml").read_text(), (project / "plan.yaml").read_text()
    of_settings = json.loads((project / _named(settings, r"#:schema (\S+)")).read_text())
    of_plan = json.loads((project / _named(plan, r"# yaml-language-server: \$schema=(\S+)")).read_text())
    jsonschema.validate(tomllib.loads(settings), of_settings)
    jsonschema.validate(YAML(typ="safe").load(plan), of_plan)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"gatez": []}, of_settings)
    assert ".loopwright" not in git(project, "status", "--short")


def _named(text: str, pattern: str) -> str:
    """Return what the first line of a file names."""
    found = re.fullmatch(pattern, text.splitlines()[0])
    assert found is not None, text[:100]
    return found[1]

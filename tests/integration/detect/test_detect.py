"""What is proposed for a repository, from its files alone."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.wording_plugin import Wording

from loopwright.adapters.detect import Detected, detect
from loopwright.adapters.detect.survey import NO_TESTS

Make = Callable[..., Detected]
QUIET = {".gitignore": "node_modules\n__pycache__\n*.egg-info\n"}


@pytest.fixture
def look(tmp_path: Path) -> Make:
    """Write files and look at them; only the named programs are installed."""

    def look(
        files: dict[str, str], *, installed: tuple[str, ...] = ("python3",), tracked: bool = True
    ) -> Detected:
        for name, text in {**QUIET, **files}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return detect(
            tmp_path,
            tracked=[*QUIET, *files] if tracked else None,
            which=lambda name: f"/bin/{name}" if name in installed else None,
        )

    return look


def commands(detected: Detected) -> dict[str, str]:
    return {gate.name: gate.command for gate in detected.gates}


TEST = "def test_it():\n    assert True\n"
PYTEST = "-m pytest -q --junitxml=.pytest_cache/junit.xml"
VENV = "python3 -m venv .venv && printf '*' > .venv/.gitignore && "
PIP = ".venv/bin/python -m pip install -q"


def test_an_empty_repository_proposes_nothing_and_says_so(look: Make) -> None:
    found = look({"README.md": "hello"})
    assert found.gates == ()
    assert found.languages == ()
    assert found.preparation == ""
    assert found.notes == (NO_TESTS,)
    assert not found.has_tests


def test_python_without_tests_proposes_no_test(look: Make) -> None:
    found = look({"calc.py": "x = 1\n", "pyproject.toml": "[tool.ruff]\n"}, installed=("python3", "ruff"))
    assert commands(found) == {"lint": "ruff check ."}
    assert NO_TESTS in found.notes


def test_bare_pytest_tests_use_the_pytest_that_is_installed(look: Make) -> None:
    found = look({"calc.py": "", "tests/test_calc.py": TEST}, installed=("python3", "pytest"))
    assert found.preparation == ""
    assert commands(found) == {"test": f"python3 {PYTEST}"}
    assert found.gates[0].why == "tests/test_calc.py"
    assert found.gates[0].programs == ("python3", "pytest")


def test_a_pytest_that_belongs_to_another_python_is_run_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(TEST)
    places = {"python3": "/usr/bin/python3", "pytest": "/home/x/.local/bin/pytest"}
    found = detect(tmp_path, which=places.get)
    assert commands(found)["test"].startswith("PYTHONPATH=. pytest ")


def test_bare_pytest_tests_get_an_environment_when_pytest_is_not_installed(look: Make) -> None:
    found = look({"tests/test_calc.py": TEST})
    assert found.dependencies == f"{VENV}{PIP} pytest"
    assert commands(found) == {"test": f".venv/bin/python {PYTEST}"}
    assert found.gates[0].missing == ()


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "pyproject.toml has [tool.pytest]"),
        ({"pytest.ini": "[pytest]\n"}, "pytest.ini has [pytest]"),
        ({"setup.cfg": "[tool:pytest]\n"}, "setup.cfg has [tool:pytest]"),
        ({"tox.ini": "[pytest]\n"}, "tox.ini has [pytest]"),
        ({"tests/conftest.py": ""}, "tests/conftest.py"),
        ({"requirements-dev.txt": "PyTest>=8\n"}, "pytest is among the dependencies"),
        ({"tests/test_a.py": "import pytest\n"}, "tests/test_a.py"),
        ({"pkg/calc_test.py": TEST}, "pkg/calc_test.py"),
    ],
)
def test_what_says_that_pytest_is_used_is_named(look: Make, files: dict[str, str], why: str) -> None:
    found = look({"tests/test_z.py": "import unittest\n", **files})
    assert found.gates[0].why == why
    assert "pytest" in found.gates[0].command


def test_unittest_needs_nothing_but_python(look: Make) -> None:
    found = look(
        {"tests/test_a.py": "import unittest\n\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"}
    )
    assert found.preparation == ""
    assert commands(found) == {"test": "python3 -m unittest discover"}


@pytest.mark.parametrize(
    ("files", "command"),
    [({"tox.ini": "[testenv]\n", "x.py": ""}, "tox"), ({"noxfile.py": ""}, "nox")],
)
def test_tox_and_nox_are_used_when_no_tests_can_be_seen(
    look: Make, files: dict[str, str], command: str
) -> None:
    found = look(files)
    assert commands(found) == {"test": command}
    assert found.gates[0].missing == (command,)


PROJECT = '[project]\nname = "x"\n'
BUILD = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'


POETRY = "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install"


@pytest.mark.parametrize(
    ("files", "setup", "command"),
    [
        (
            {
                "uv.lock": "",
                "pyproject.toml": PROJECT + '[project.optional-dependencies]\ntest = ["pytest"]\n',
            },
            "uv sync --frozen --no-install-project --extra test && uv sync --frozen --extra test",
            f"uv run --frozen python {PYTEST}",
        ),
        (
            {"poetry.lock": "", "pyproject.toml": "[tool.poetry.group.dev.dependencies]\npytest = '*'\n"},
            f"{POETRY} --no-root && {POETRY}",
            f"poetry run python {PYTEST}",
        ),
        (
            {
                "requirements.txt": "flask\n",
                "requirements-dev.txt": "pytest\n",
                "requirements-docs.txt": "x\n",
            },
            f"{VENV}{PIP} -r requirements.txt -r requirements-dev.txt",
            f".venv/bin/python {PYTEST}",
        ),
        (
            {"requirements.txt": "flask\n"},
            f"{VENV}{PIP} -r requirements.txt pytest",
            f".venv/bin/python {PYTEST}",
        ),
        (
            {
                "pyproject.toml": PROJECT
                + BUILD
                + '[project.optional-dependencies]\ndev = ["pytest"]\ndocs = []\n'
            },
            f"{VENV}{PIP} -e '.[dev]' && {PIP} --no-deps -e .",
            f".venv/bin/python {PYTEST}",
        ),
        (
            {"pyproject.toml": PROJECT + BUILD + '[dependency-groups]\ndev = ["pytest"]\n'},
            f"{VENV}{PIP} -U pip && {PIP} -e . --group dev && {PIP} --no-deps -e .",
            f".venv/bin/python {PYTEST}",
        ),
        (
            {"pyproject.toml": '[project]\nname = "x"\ndependencies = ["flask>=3", "pytest"]\n'},
            f"{VENV}{PIP} 'flask>=3' pytest",
            f".venv/bin/python {PYTEST}",
        ),
        (
            {"pyproject.toml": PROJECT + "[project.optional-dependencies]\ntest = ['pytest', \"it's\"]\n"},
            f"{VENV}{PIP} pytest 'it'\"'\"'s'",
            f".venv/bin/python {PYTEST}",
        ),
        (
            {"setup.py": "", "setup.cfg": ""},
            f"{VENV}{PIP} -e . pytest && {PIP} --no-deps -e .",
            f".venv/bin/python {PYTEST}",
        ),
    ],
)
def test_python_dependencies_are_installed_as_the_project_declares_them(
    look: Make, files: dict[str, str], setup: str, command: str
) -> None:
    found = look({"tests/test_a.py": TEST, **files})
    assert found.preparation == setup
    assert commands(found)["test"] == command
    assert found.setup_why


def test_linters_are_run_from_the_environment_only_when_it_has_them(look: Make) -> None:
    text = (
        PROJECT
        + BUILD
        + "[tool.ruff]\n[tool.mypy]\nfiles = ['src']\n[project.optional-dependencies]\ndev = ['mypy']\n"
    )
    found = look({"pyproject.toml": text, "src/x.py": ""})
    assert commands(found) == {"lint": "ruff check .", "types": ".venv/bin/mypy"}
    assert [gate.missing for gate in found.gates] == [("ruff",), ()]


def test_flake8_is_proposed_where_it_is_configured(look: Make) -> None:
    assert commands(look({"setup.cfg": "[flake8]\n", "x.py": ""})) == {"lint": "flake8"}


def test_a_broken_pyproject_says_nothing_and_breaks_nothing(look: Make) -> None:
    found = look({"pyproject.toml": "[[[", "setup.cfg": "no section\n", "tests/test_a.py": TEST})
    assert "test" in commands(found)


def package(**fields: object) -> str:
    return json.dumps({"name": "x", **fields})


@pytest.mark.parametrize(
    ("lock", "manager", "setup"),
    [
        ("package-lock.json", "npm", "npm ci"),
        ("npm-shrinkwrap.json", "npm", "npm ci"),
        ("pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"),
        ("yarn.lock", "yarn", "yarn install --frozen-lockfile"),
    ],
)
def test_node_scripts_are_run_by_the_manager_of_the_lock_file(
    look: Make, lock: str, manager: str, setup: str, wording: Wording
) -> None:
    scripts = {"test": "vitest run", "lint": "eslint .", "build": "tsc", "typecheck": "tsc --noEmit"}
    found = look({"package.json": package(scripts=scripts), lock: ""}, installed=("node",))
    assert found.preparation == setup
    assert found.setup_why == lock
    assert commands(found) == {
        "test": f"CI=true {manager} test",
        "lint": f"CI=true {manager} run lint",
        "types": f"CI=true {manager} run typecheck",
        "build": f"CI=true {manager} run build",
    }
    wording(found.gates[0].why)
    assert found.gates[0].missing == (manager,)


def test_what_builds_the_project_while_it_installs_runs_in_every_workspace(look: Make) -> None:
    found = look({"package.json": package(scripts={"prepare": "tsc"}), "package-lock.json": ""})
    assert (found.dependencies, found.setup) == (None, "npm ci")


def test_newer_yarn_and_bun_are_known(look: Make) -> None:
    yarn = look({"package.json": package(scripts={"test": "jest"}), "yarn.lock": "", ".yarnrc.yml": ""})
    assert yarn.dependencies == "yarn install --immutable"


def test_bun_runs_its_scripts_by_run(look: Make) -> None:
    found = look({"package.json": package(scripts={"test": "vitest"}), "bun.lock": ""})
    assert found.dependencies == "bun install --frozen-lockfile"
    assert commands(found) == {"test": "CI=true bun run test"}


def test_the_placeholder_of_npm_init_is_not_a_test(look: Make) -> None:
    scripts = {"test": 'echo "Error: no test specified" && exit 1'}
    found = look({"package.json": package(scripts=scripts)})
    assert found.gates == ()
    assert NO_TESTS in found.notes
    assert found.preparation == ""


@pytest.mark.parametrize("script", ["jest --watch", "jest --watchAll", "vitest watch", "nodemon test.js"])
def test_a_test_that_never_ends_is_not_proposed(look: Make, script: str) -> None:
    found = look({"package.json": package(scripts={"test": script})})
    assert found.gates == ()
    assert any("never ends" in note for note in found.notes)


def test_a_test_that_says_not_to_watch_is_proposed(look: Make) -> None:
    assert look({"package.json": package(scripts={"test": "jest --watchAll=false"})}).has_tests


@pytest.mark.parametrize(
    ("fields", "setup"),
    [
        ({}, "npm install --no-package-lock"),
        ({"packageManager": "pnpm@9.0.0"}, "pnpm install --no-lockfile"),
        ({"packageManager": "yarn@4"}, "yarn install --no-lockfile"),
    ],
)
def test_without_a_lock_file_none_is_written(look: Make, fields: dict[str, str], setup: str) -> None:
    assert look({"package.json": package(dependencies={"x": "1"}, **fields)}).dependencies == setup


def test_what_git_would_take_for_work_is_named(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(package(dependencies={"x": "1"}))
    (tmp_path / "setup.py").write_text("")
    notes = " ".join(detect(tmp_path).notes)
    for name in ("node_modules", "__pycache__", "*.egg-info"):
        assert f"{name} is not in .gitignore" in notes


@pytest.mark.parametrize("text", ["not json", "[]", '{"scripts": []}', '{"scripts": {"test": 3}}'])
def test_an_odd_package_file_breaks_nothing(look: Make, text: str) -> None:
    assert look({"package.json": text}).gates == ()


@pytest.mark.parametrize(
    ("files", "language", "expected", "setup"),
    [
        (
            {"go.mod": "", "go.sum": "", "a_test.go": ""},
            "go",
            {"test": "go test ./...", "lint": "go vet ./...", "build": "go build ./..."},
            "go mod download",
        ),
        ({"go.mod": "", "a.go": ""}, "go", {"lint": "go vet ./...", "build": "go build ./..."}, None),
        (
            {"Cargo.toml": "", "Cargo.lock": "", "src/lib.rs": "#[test]\nfn a() {}", "clippy.toml": ""},
            "rust",
            {
                "test": "cargo test --locked",
                "lint": "cargo clippy --locked -- -D warnings",
                "build": "cargo build --locked",
            },
            "cargo fetch --locked",
        ),
        ({"Cargo.toml": "", "src/lib.rs": ""}, "rust", {"build": "cargo build"}, "cargo fetch"),
        ({"pom.xml": "", "src/test/java/A.java": ""}, "maven", {"test": "mvn -B -q test"}, None),
        ({"pom.xml": "", "mvnw": ""}, "maven", {"build": "./mvnw -B -q compile"}, None),
        (
            {"build.gradle.kts": "", "gradlew": "", "app/src/test/A.kt": ""},
            "gradle",
            {"test": "./gradlew --no-daemon -q test"},
            None,
        ),
        (
            {"Makefile": ".PHONY: all\nCC := gcc\ntest: build\n\t./t\nlint check-all:\n\tx\nbuilt := 1\n"},
            "make",
            {"test": "make test", "lint": "make lint"},
            None,
        ),
        ({"Makefile": "check:\n\tx\n"}, "make", {"test": "make check"}, None),
        ({"Makefile": "test := 1\nall:\n\tx\n"}, "make", {}, None),
    ],
)
def test_compiled_languages_and_make(
    look: Make, files: dict[str, str], language: str, expected: dict[str, str], setup: str | None
) -> None:
    found = look(files)
    assert found.languages == (language,)
    assert commands(found) == expected
    assert found.preparation == (setup or "")


def test_make_steps_back_where_a_language_has_its_own_command(look: Make) -> None:
    found = look({"Makefile": "test:\n\tpytest\nlint:\n\truff\n", "test_a.py": TEST})
    assert commands(found)["lint"] == "make lint"
    assert "pytest" in commands(found)["test"]
    assert any("Makefile has the target test as well" in note for note in found.notes)


def test_two_languages_are_set_up_one_after_the_other_with_gates_of_their_own(look: Make) -> None:
    files = {
        "requirements.txt": "pytest\n",
        "test_a.py": TEST,
        "package.json": package(scripts={"test": "jest"}),
        "package-lock.json": "",
    }
    found = look(files)
    assert found.languages == ("python", "node")
    assert found.dependencies == f"{VENV}{PIP} -r requirements.txt && npm ci"
    assert list(commands(found)) == ["test", "node-test"]


def test_projects_in_subfolders_are_named(look: Make) -> None:
    found = look({"web/package.json": "{}", "api/go.mod": ""})
    assert any("api/go.mod, web/package.json" in note for note in found.notes)


def test_untracked_environment_files_are_found_and_examples_are_not(tmp_path: Path) -> None:
    for name in (".env", ".env.local", ".env.example", ".env.test", ".envrc", ".environment"):
        (tmp_path / name).write_text("A=1\n")
    found = detect(tmp_path, tracked=[".env.test", ".env.example"])
    assert found.env_files == (".env", ".env.local", ".envrc")


def test_only_tracked_files_count_because_a_workspace_has_no_others(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(TEST)
    assert detect(tmp_path, tracked=["README.md"]).gates == ()
    assert detect(tmp_path).gates != ()


def test_a_tracked_file_that_is_deleted_or_a_pipe_says_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "package.json")
    found = detect(tmp_path, tracked=["pyproject.toml", "tests/test_a.py", "package.json"])
    assert found.languages == ("python", "node")


def test_folders_of_installed_packages_are_not_searched(tmp_path: Path) -> None:
    for folder in ("node_modules", ".venv", ".git"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_a.py").write_text(TEST)
    assert detect(tmp_path).languages == ()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_proposed_command_really_runs(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("test:\n\ttrue\n")
    (gate,) = detect(tmp_path).gates
    assert gate.missing == ()
    assert subprocess.run(gate.command, shell=True, cwd=tmp_path, capture_output=True).returncode == 0


def test_the_setup_keeps_its_environment_out_of_git(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(TEST)
    setup = detect(tmp_path, which=lambda name: None).dependencies
    assert setup is not None
    # Everything but the download.
    local = setup.rpartition(" && ")[0].replace("-m venv", "-m venv --without-pip")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(local, shell=True, cwd=tmp_path, check=True)
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert status.stdout.split() == ["??", "test_a.py"]

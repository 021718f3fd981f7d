"""Python: pytest or unittest, tox or nox; uv, poetry or its own virtual environment."""

import configparser
import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.detect.findings import Ecosystem, ProposedGate, Tree, table

_MANIFESTS: Final = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini")
_TEST_FILE: Final = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$")
_REQUIREMENTS: Final = re.compile(r"(?:requirements[^/]*|requirements/[^/]+)\.txt")
_TEST_EXTRAS: Final = ("test", "tests", "testing", "dev")
_JUNIT: Final = ".pytest_cache/junit.xml"
# Newer Pythons write this file themselves; without it a snapshot of the workspace would hold the environment.
_VENV: Final = "python3 -m venv .venv && printf '*' > .venv/.gitignore && "

_PIP: Final = ".venv/bin/python -m pip install -q"

# An older pip, as Python may bring it, does not know dependency groups.
_UPGRADE: Final = f"{_PIP} -U pip && "


@dataclass(frozen=True, slots=True, kw_only=True)
class _Environment:
    """How dependencies are installed and tools are run."""

    why: str
    prefix: str
    """Stands before a tool that the environment has."""
    python: str
    programs: tuple[str, ...]
    dependencies: str | None = None
    setup: str | None = None
    """Installs the project itself."""


def survey(tree: Tree) -> Ecosystem | None:
    """Return what the Python part of a repository looks like, or None."""
    tests = tree.matching(lambda name: _TEST_FILE.search(name) is not None)
    manifest = tree.has(*_MANIFESTS)
    if manifest is None and not any(name.endswith(".py") for name in tree.files):
        return None
    project = _toml(tree, "pyproject.toml")
    runner, why = _runner(tree, project, tests)
    environment = _environment(tree, project, runner)
    gates: list[ProposedGate] = []
    if runner is not None:
        gates.append(_test_gate(runner, why, environment))
    gates += _linters(tree, project, environment)
    return Ecosystem(
        language="python",
        why=manifest or "*.py",
        dependencies=environment.dependencies,
        setup=environment.setup,
        setup_why=environment.why,
        gates=tuple(gates),
        notes=_notes(tree, project, environment.setup),
    )


def _toml(tree: Tree, name: str) -> dict[str, Any]:
    if name not in tree.files:
        return {}
    try:
        return tomllib.loads(tree.read(name))
    except tomllib.TOMLDecodeError:
        # The project's own tools will complain about it; here it says nothing.
        return {}


def _sections(tree: Tree, name: str) -> frozenset[str]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(tree.read(name))
    except configparser.Error:
        return frozenset()
    return frozenset(parser.sections())


def _runner(tree: Tree, project: dict[str, Any], tests: list[str]) -> tuple[str | None, str]:
    """Return pytest, unittest, tox, nox or None, and which file says so."""
    if not tests:
        if "tox.ini" in tree.files and "testenv" in _sections(tree, "tox.ini"):
            return "tox", "tox.ini has [testenv]"
        if "noxfile.py" in tree.files:
            return "nox", "noxfile.py"
        return None, ""
    if table(project, "tool", "pytest"):
        return "pytest", "pyproject.toml has [tool.pytest]"
    for name, section in (("pytest.ini", "pytest"), ("setup.cfg", "tool:pytest"), ("tox.ini", "pytest")):
        if name in tree.files and section in _sections(tree, name):
            return "pytest", f"{name} has [{section}]"
    conftest = next(iter(tree.matching(lambda name: Path(name).name == "conftest.py")), None)
    if conftest is not None:
        return "pytest", conftest
    if "pytest" in _declared(tree, project):
        return "pytest", "pytest is among the dependencies"
    for name in tests[:20]:
        text = tree.read(name)
        if re.search(r"^\s*(?:import|from) pytest\b|^(?:async )?def test_", text, re.MULTILINE):
            return "pytest", name
        if re.search(r"^\s*(?:import|from) unittest\b", text, re.MULTILINE):
            return "unittest", name
    return "pytest", tests[0]


def _declared(tree: Tree, project: dict[str, Any]) -> frozenset[str]:
    """Return the names of all packages that the project asks for anywhere."""
    lines: list[str] = []
    for name in tree.matching(lambda name: _REQUIREMENTS.fullmatch(name) is not None):
        lines += tree.read(name).splitlines()
    lines += _texts(table(project, "project").get("dependencies"))
    for group in (table(project, "project", "optional-dependencies"), table(project, "dependency-groups")):
        for wanted in group.values():
            lines += _texts(wanted)
    lines += _texts(table(project, "tool", "uv").get("dev-dependencies"))
    poetry = table(project, "tool", "poetry")
    lines += [*table(poetry, "dependencies"), *table(poetry, "dev-dependencies")]
    for group in table(poetry, "group").values():
        lines += table(group, "dependencies")
    names = (re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", line) for line in lines)
    return frozenset(name[1].lower().replace("_", "-") for name in names if name is not None)


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _environment(tree: Tree, project: dict[str, Any], runner: str | None) -> _Environment:
    extras = _test_extras(project)
    if "uv.lock" in tree.files:
        named = "".join(f" --extra {name}" for name in extras)
        return _Environment(
            dependencies=f"uv sync --frozen --no-install-project{named}",
            setup=f"uv sync --frozen{named}",
            why="uv.lock",
            prefix="uv run --frozen ",
            python="uv run --frozen python",
            programs=("uv",),
        )
    if "poetry.lock" in tree.files:
        named = "".join(f" --extras {name}" for name in extras)
        return _Environment(
            dependencies=f"POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-root{named}",
            setup=f"POETRY_VIRTUALENVS_IN_PROJECT=true poetry install{named}",
            why="poetry.lock",
            prefix="poetry run ",
            python="poetry run python",
            programs=("poetry",),
        )
    wanted, why = _pip_arguments(tree, project)
    if runner == "pytest" and "pytest" not in _declared(tree, project):
        present = tree.which("pytest")
        if not wanted and present is not None:
            return _present_pytest(tree, present)
        wanted, why = f"{wanted} pytest".strip(), why or "the tests use pytest"
    if not wanted:
        return _Environment(why="", prefix="", python="python3", programs=("python3",))
    return _Environment(
        dependencies=f"{_VENV}{_UPGRADE if '--group' in wanted else ''}{_PIP} {wanted}",
        setup=f"{_PIP} --no-deps -e ." if wanted.startswith("-e ") else None,
        why=why,
        prefix=".venv/bin/",
        python=".venv/bin/python",
        programs=("python3",),
    )


def _present_pytest(tree: Tree, pytest: str) -> _Environment:
    """Use the pytest that is installed, when the project names no dependencies at all."""
    python = tree.which("python3")
    # `python3 -m pytest` finds the project's modules; it needs pytest to belong to that Python.
    if python is not None and Path(python).parent == Path(pytest).parent:
        return _Environment(why="", prefix="", python="python3", programs=("python3", "pytest"))
    return _Environment(why="", prefix="", python="", programs=("pytest",))


def _pip_arguments(tree: Tree, project: dict[str, Any]) -> tuple[str, str]:
    """Return what pip should install, and which file says so."""
    files = tree.matching(lambda name: _REQUIREMENTS.fullmatch(name) is not None)
    # Files for documentation or other machines are often there too: only the usual names are taken.
    files = [
        name
        for name in files
        if re.search(r"requirements(?:[-_/.](?:dev|tests?))?\.txt|/(?:dev|tests?|base)\.txt", name)
    ]
    if files:
        files.sort(key=lambda name: (name != "requirements.txt", name))
        return " ".join(f"-r {name}" for name in files), files[0]
    groups = [name for name in _TEST_EXTRAS if name in table(project, "dependency-groups")]
    grouped = "".join(f" --group {name}" for name in groups)
    extras = _test_extras(project)
    if "build-system" in project or "setup.py" in tree.files:
        target = f"'.[{','.join(extras)}]'" if extras else "."
        return f"-e {target}{grouped}", "pyproject.toml" if project else "setup.py"
    # Without a build system it is not a package: only what it asks for can be installed.
    packages = _texts(table(project, "project").get("dependencies"))
    for name in extras:
        packages += _texts(table(project, "project", "optional-dependencies").get(name))
    return (" ".join(shlex.quote(package) for package in packages) + grouped).strip(), "pyproject.toml"


def _test_extras(project: dict[str, Any]) -> list[str]:
    return [name for name in _TEST_EXTRAS if name in table(project, "project", "optional-dependencies")]


def _notes(tree: Tree, project: dict[str, Any], setup: str | None) -> tuple[str, ...]:
    """Warn of files that the tools leave behind and that git would take for work."""
    ignored = tree.read(".gitignore") if ".gitignore" in tree.files else ""
    notes = []
    if "__pycache__" not in ignored and "*.py[" not in ignored and "*.pyc" not in ignored:
        notes.append("__pycache__ is not in .gitignore: add it, or compiled files become part of the work.")
    backend = str(table(project, "build-system").get("build-backend", "setuptools"))
    if setup is not None and " -e " in setup and "setuptools" in backend and "egg-info" not in ignored:
        notes.append(
            "*.egg-info is not in .gitignore: add it, or what setup writes becomes part of the work."
        )
    return tuple(notes)


def _test_gate(runner: str, why: str, environment: _Environment) -> ProposedGate:
    if runner == "pytest":
        base = f"{environment.python} -m pytest" if environment.python else "PYTHONPATH=. pytest"
        command, junit, programs = f"{base} -q --junitxml={_JUNIT}", _JUNIT, environment.programs
    elif runner == "unittest":
        command, junit, programs = f"{environment.python} -m unittest discover", None, environment.programs
    else:
        command, junit, programs = runner, None, (runner,)
    return ProposedGate(
        purpose="test",
        name="test",
        command=command,
        why=why,
        programs=programs,
        timeout_s=1200.0,
        junit=junit,
    )


def _linters(tree: Tree, project: dict[str, Any], environment: _Environment) -> list[ProposedGate]:
    tools = table(project, "tool")
    declared = _declared(tree, project)
    found: list[ProposedGate] = []

    def propose(purpose: Any, tool: str, arguments: str, why: str | None) -> None:
        if why is None:
            return
        inside = bool(environment.prefix) and tool in declared
        command = f"{environment.prefix if inside else ''}{tool} {arguments}".strip()
        programs = environment.programs if inside else (tool,)
        found.append(ProposedGate(purpose=purpose, name=purpose, command=command, why=why, programs=programs))

    ruff = tree.has("ruff.toml", ".ruff.toml") or (
        "pyproject.toml has [tool.ruff]" if "ruff" in tools else None
    )
    propose("lint", "ruff", "check .", ruff)
    if ruff is None:
        in_setup = "setup.cfg" in tree.files and "flake8" in _sections(tree, "setup.cfg")
        propose("lint", "flake8", "", tree.has(".flake8") or ("setup.cfg has [flake8]" if in_setup else None))
    mypy = table(tools, "mypy")
    configured = tree.has("mypy.ini") or ("pyproject.toml has [tool.mypy]" if mypy else None)
    where = "" if {"files", "packages", "modules"} & set(mypy) else "."
    propose("types", "mypy", where, configured)
    return found

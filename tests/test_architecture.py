"""Rules about the shape of the code that no single module can see."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cases import each_case

from loopwright.core.values.states import MACHINES

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "loopwright"
MODULES = sorted(PACKAGE.rglob("*.py"))
LINE_LIMIT = 600
# Modules of the standard library that only some of the supported Pythons have.
STANDARD = sys.stdlib_module_names | {"_sha2", "_sha256"}
# A name such as `core.policy.quotas`, as docstrings write it.
DOTTED = re.compile(
    rf"`(?:loopwright\.)?((?:{'|'.join(sorted(one.name for one in PACKAGE.iterdir() if one.is_dir()))})(?:\.\w+)+)`"
)
LATE = re.compile(r"^[ \t]+(?:from|import) ", re.MULTILINE)
# Names of files and of git's settings look the same.
NO_MODULES = {"json", "toml", "autocrlf", "eol", "fsmonitor"}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "misc"}

# A path that exists on one machine or one person's account only.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|work|Users)(?:/|\b)")
TEXT_SUFFIXES = {".py", ".toml", ".md", ".txt", ".sh", ".yaml", ".yml", ".json", ".ini", ".mako", ".cfg", ""}


def module_name(path: Path) -> str:
    return path.relative_to(PACKAGE.parent).as_posix().removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Return the names of all modules that a file imports anywhere, relative ones resolved to the package."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("loopwright" if node.level else node.module or "")
    return found


def unexplained_imports(text: str) -> list[int]:
    """Return the lines of imports inside functions that no comment above or behind them explains."""
    if not LATE.search(text):
        return []
    lines, found = text.split("\n"), set[int]()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for function in (node for node in ast.walk(ast.parse(text)) if isinstance(node, functions)):
        explained = False
        late = (one for one in ast.walk(function) if isinstance(one, ast.Import | ast.ImportFrom))
        for node in sorted(late, key=lambda one: one.lineno):
            above = next((line.strip() for line in reversed(lines[: node.lineno - 1]) if line.strip()), "")
            follows = above.startswith(("from ", "import ")) or above == ")"
            explained = "#" in lines[node.lineno - 1] or above.startswith("#") or (follows and explained)
            if not explained:
                found.add(node.lineno)
    return sorted(found)


def test_an_import_inside_a_function_has_its_reason() -> None:
    """Imports stand at the top. One that comes late saves start-up time, or waits for what may be missing."""
    found = {
        module_name(path): lines
        for path in MODULES
        if not path.is_relative_to(PACKAGE / "adapters" / "sources")
        and (lines := unexplained_imports(path.read_text(encoding="utf-8")))
    }
    assert found == {}, "say why in a comment above, or move them to the top"


@each_case(
    ("body", "lines"),
    [
        ("import a", [2]),
        ("import a  # it is slow", []),
        ("# it is slow\n    import a\n    from b import c", []),
        ("x = 1\n    import a", [3]),
        ("# it is slow\n    import a\n    x = 1\n    import b", [5]),
    ],
)
def test_an_import_without_a_reason_is_found(body: str, lines: list[int]) -> None:
    assert unexplained_imports(f"def f():\n    {body}\n") == lines


def test_every_module_stays_short_enough_to_read() -> None:
    lines = {module_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > LINE_LIMIT} == {}, "split these"


def test_no_module_or_package_has_a_name_that_says_nothing() -> None:
    named = [path for path in PACKAGE.rglob("*") if path.stem in VAGUE_NAMES]
    assert named == []


def unknown_modules(source: str) -> list[str]:
    """Return the dotted names in the docstrings of a module that are neither modules nor names in one."""
    if not DOTTED.search(source):
        return []
    values = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr))
    texts = [one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return [name for text in texts for name in DOTTED.findall(text) if not is_defined(name)]


def is_defined(dotted: str) -> bool:
    *parents, last = dotted.split(".")
    if last in NO_MODULES or module_at(dotted) is not None:
        return True
    above = module_at(".".join(parents))
    return above is not None and re.search(rf"\b{last}\b", above.read_text(encoding="utf-8")) is not None


def module_at(dotted: str) -> Path | None:
    place = PACKAGE.joinpath(*dotted.split("."))
    found = (place.with_suffix(".py"), place / "__init__.py")
    return next((one for one in found if one.is_file()), None)


@each_case("path", MODULES, ids=module_name)
def test_every_module_that_a_docstring_names_exists(path: Path) -> None:
    assert unknown_modules(path.read_text(encoding="utf-8")) == []


def test_a_docstring_that_names_no_module_is_found() -> None:
    text = (
        '"""`core.policy.envelopes`, `core.policy.quotas.Envelope`."""\nx = 1\n"""See `engine.nothing`."""\n'
    )
    assert unknown_modules(text) == ["core.policy.envelopes", "engine.nothing"]


def test_importing_the_package_does_nothing() -> None:
    """Neither heavy imports nor a look at the disk or the environment."""
    script = """
import sys
before, touched = set(sys.modules), []
def watch(event, arguments):
    if event in {"open", "os.mkdir", "os.putenv", "subprocess.Popen", "socket.__new__"}:
        touched.append([event, str(arguments[:1])])
sys.addaudithook(watch)
import loopwright
new, seen = sorted(set(sys.modules) - before), list(touched)
import json
print(json.dumps({"modules": new, "touched": [t for t in seen if "__init__" not in t[1]]}))
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    seen = json.loads(done.stdout)
    assert seen == {"modules": ["loopwright"], "touched": []}


def test_the_core_imports_only_the_standard_library_and_itself() -> None:
    impure = {"asyncio", "subprocess", "socket", "time", "os", "random", "pathlib", "threading", "logging"}
    for path in (PACKAGE / "core").rglob("*.py"):
        for name in imports_of(path):
            top = name.split(".")[0]
            assert top in STANDARD or name.startswith("loopwright.core"), f"{path}: {name}"
            assert top not in impure, f"{path}: {name} is not pure"


def test_the_keeper_imports_only_the_standard_library_and_itself() -> None:
    for path in (PACKAGE / "keeper").rglob("*.py"):
        for name in imports_of(path):
            top = name.split(".")[0]
            assert top in STANDARD or name.startswith("loopwright.keeper"), f"{path}: {name}"


def test_only_its_own_adapters_know_a_heavy_library() -> None:
    homes = {
        "sqlalchemy": (
            "adapters/store/",
            "adapters/dispatch/dbos.py",
        ),  # DBOS takes an engine of SQLAlchemy's
        "alembic": ("adapters/store/",),
        "dbos": ("adapters/dispatch/dbos.py",),
    }
    for path in MODULES:
        place, text = path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")
        for name in imports_of(path) if any(one in text for one in homes) else ():
            home = homes.get(name.split(".")[0])
            assert home is None or place.startswith(home), f"{place} imports {name}"


def tracked_texts() -> list[Path]:
    """Return the text files of the project, tracked or about to be, without what git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
    )
    if listed.returncode == 0 and listed.stdout:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:  # an unpacked archive has no git
        paths = [
            path for folder in ("src", "tests", "scripts", "docs") for path in (ROOT / folder).rglob("*")
        ]
    return [path for path in paths if path.suffix in TEXT_SUFFIXES and path.is_file()]


def test_who_decides_asks_what_an_agent_can_do_with_its_options() -> None:
    """An agent's `capabilities` are all that it ever can: with its options it may be less, which `able` knows."""
    deciding = [path for part in ("engine", "services", "cli") for path in (PACKAGE / part).rglob("*.py")]
    asking = [path.name for path in deciding if ".capabilities" in path.read_text(encoding="utf-8")]
    assert asking == []


@pytest.mark.capability("C001")
def test_no_path_of_any_machine_is_written_in_the_project() -> None:
    found = []
    for path in tracked_texts():
        # Tests make up paths of imaginary people, and replay what real programs printed on their machines.
        if path.is_relative_to(ROOT / "tests"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if MACHINE_PATH.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert found == []


@each_case(
    "text", ['open("/home/ann/x")', "see /root/.config", "cd /work/project", "'/Users/ann'", "--dir=/root"]
)
def test_the_search_for_machine_paths_finds_them(text: str) -> None:
    assert MACHINE_PATH.search(text)


@each_case("text", ["~/.local/share", "tmp_path / 'home'", "/api/workers", "src/work/x", "/usr/bin/env"])
def test_the_search_for_machine_paths_leaves_others_alone(text: str) -> None:
    assert not MACHINE_PATH.search(text)


def test_the_pins_name_versions_and_no_hosts() -> None:
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.+!]*", line), line


def test_no_build_file_names_a_package_host() -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "scripts/setup.sh", ".ci/run"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"://|--index-url|--find-links|--trusted-host", text), name


@each_case("machine", MACHINES)
def test_every_state_has_a_row_in_its_table(machine: str) -> None:
    table = MACHINES[machine]
    states = set(type(next(iter(table))))
    assert set(table) == states
    assert {target for targets in table.values() for target in targets} <= states

"""The candidate with its judging files as they were before the work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.integration.git.branches.test_landing import candidate
from tests.integration.git.world import World, start_repository

from loopwright.core.values.policy import GateCommand
from loopwright.engine.integrity.gate_scripts import Judges
from loopwright.engine.integrity.old_checks import OldChecks, with_old_checks

PROJECT = """[project]
name = "calc"
dependencies = []

[tool.pytest.ini_options]
addopts = "-q"
"""
FILES = {
    "calc.py": "def add(a, b):\n    return a + b\n",
    "support/plugin.py": "X = 1\n",
    "tests/test_calc.py": "def test_add():\n    assert add(1, 2) == 3\n",
    "tests/test_old.py": "def test_old():\n    pass\n",
    "conftest.py": 'pytest_plugins = ["support.plugin"]\n',
    "pyproject.toml": PROJECT,
}
MakeWorld = Callable[..., World]


class Calc:
    """A small Python project, an agent's work on it, and what judges that."""

    def __init__(self, make_world: MakeWorld, tmp_path: Path, top: str = "") -> None:
        self.top = f"{top}/" if top else ""
        files = {f"{self.top}{path}": text for path, text in FILES.items()}
        self.world = make_world(start_repository(tmp_path / "user", files))

    async def after(self, work: str, *commands: str, **judges: Any) -> OldChecks:
        """Do the work and restore its judging files."""
        world = self.world
        await world.make()
        world.agent(f"cd {self.top or '.'}; {work}")
        made = await candidate(world, world.base_sha, (await world.snapshot()).sha)
        gates = tuple(GateCommand(name=one, command=one) for one in commands or ("pytest",))
        values: dict[str, Any] = {"acceptance": (), "setup": None, "patterns": ()} | judges
        found = await with_old_checks(
            world.repository, Judges(subfolder=self.top.rstrip("/"), gates=gates, **values), made
        )
        if found.restored is not None:
            await world.repository.checkout(self.tree, found.restored.sha)
        return found

    @property
    def tree(self) -> Path:
        """Where the restored tree is."""
        return self.world.home / "trees" / "restored"

    def text(self, path: str) -> str | None:
        """Return a file of the restored tree."""
        file = self.tree / self.top / path
        return file.read_text() if file.exists() else None


async def test_work_that_changes_no_judging_file_is_judged_once(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    found = await Calc(make_world, tmp_path).after("echo X = 1 >> calc.py; echo text > README.md")
    assert found.restored is None
    assert (found.facts.pinned, found.facts.pinned_tree) == ((), None)


async def test_changed_and_deleted_judging_files_are_restored_and_added_ones_absent(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    calc = Calc(make_world, tmp_path)
    found = await calc.after(
        "echo new > calc.py; echo weak > tests/test_calc.py; rm tests/test_old.py; echo own > tests/conftest.py; "
        "echo hook > sitecustomize.py; echo more > tests/test_new.py; echo Y = 2 > support/plugin.py"
    )
    assert found.facts.pinned == (
        "sitecustomize.py",
        "support/plugin.py",
        "tests/conftest.py",
        "tests/test_calc.py",
        "tests/test_new.py",
        "tests/test_old.py",
    )
    assert found.restored is not None
    assert (found.facts.pinned_tree, found.facts.added_tests) == (found.restored.tree, 1)
    for path in ("tests/test_calc.py", "tests/test_old.py", "support/plugin.py"):
        assert calc.text(path) == FILES[path]
    for path in ("sitecustomize.py", "tests/conftest.py", "tests/test_new.py"):
        assert calc.text(path) is None
    assert calc.text("calc.py") == "new\n", "the work itself stays"


async def test_in_pyproject_only_the_judging_keys_are_restored(make_world: MakeWorld, tmp_path: Path) -> None:
    calc = Calc(make_world, tmp_path)
    found = await calc.after(
        'sed -i \'s/dependencies = .*/dependencies = ["attrs"]/; s/"-q"/"-q --co"/\' pyproject.toml'
    )
    assert found.facts.pinned == ("pyproject.toml",)
    assert calc.text("pyproject.toml") == PROJECT.replace("[]", '["attrs"]')


async def test_a_new_dependency_alone_needs_no_second_run(make_world: MakeWorld, tmp_path: Path) -> None:
    found = await Calc(make_world, tmp_path).after(
        "sed -i 's/dependencies = .*/dependencies = [\"attrs\"]/' pyproject.toml"
    )
    assert (found.restored, found.facts.pinned) == (None, ())


async def test_test_files_that_may_change_are_restored_too_and_others_stay_as_the_work_has_them(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    calc = Calc(make_world, tmp_path)
    found = await calc.after(
        "echo weak > tests/test_calc.py; echo weak > tests/test_old.py; echo 1 > tests/page.snap; echo > conftest.py; "
        "echo > tests/a_test.go; echo > tests/test_utils.py",
        may_change=(
            "tests/test_calc.py",
            "tests/*.snap",
            "tests/test_old.py::test_old",
            "conftest.py",
            "tests/*.go",
            "tests/test_utils.py",
        ),
    )
    stay = ("conftest.py", "tests/a_test.go", "tests/page.snap", "tests/test_utils.py")
    assert found.facts.exempt == stay, "if these were restored, tests of other files would fail too"
    assert found.facts.pinned == ("tests/test_calc.py", "tests/test_old.py")
    assert calc.text("tests/page.snap") == "1\n"
    for path in found.facts.pinned:
        assert calc.text(path) == FILES[path]


async def test_a_build_file_is_noted_and_stays(make_world: MakeWorld, tmp_path: Path) -> None:
    found = await Calc(make_world, tmp_path).after("echo x > setup.py")
    assert (found.facts.build_files, found.facts.pinned, found.restored) == (("setup.py",), (), None)


NEW_TEST = (
    "echo > tests/test_new.py; printf '\\ndef test_more():\\n    pass\\n' >> tests/test_calc.py; "
    "printf '\\ndef test_more():\\n    pass\\n' > test_top.py"
)


async def test_a_command_that_needs_an_added_file_or_test_is_left_out(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    needs = (
        "pytest tests/test_new.py",
        "python -m unittest tests.test_new",
        "pytest tests/test_calc.py::test_more",
        "pytest tests/test_calc.py::test_ad",
        "pytest test_top.py",
    )
    judged = (
        "pytest",
        "pytest tests/test_calc.py",
        "pytest tests/test_calc.py::test_add",
        "pytest tests/test_old.py tests/test_calc.py::test_add",
        "python -m unittest tests.test_calc",
    )
    acceptance = tuple(GateCommand(name=one, command=one) for one in (*needs, *judged[1:]))
    found = await Calc(make_world, tmp_path).after(NEW_TEST, acceptance=acceptance)
    assert found.facts.pinned_without == needs


async def test_a_new_file_called_like_the_folder_of_tests_leaves_no_command_out(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    weak = "touch tests.py; echo 'def test_add(): pass' > tests/test_calc.py"
    acceptance = (GateCommand(name="own", command="python -m pytest tests"),)
    found = await Calc(make_world, tmp_path).after(weak, "pytest tests tests.py", acceptance=acceptance)
    assert found.facts.pinned_without == ()


async def test_a_changed_test_at_the_top_is_run_as_it_was(make_world: MakeWorld, tmp_path: Path) -> None:
    calc = Calc(make_world, tmp_path)
    world = calc.world
    (world.user / "test_top.py").write_text("def test_add():\n    assert add(1, 2) == 3\n")
    world.sh("git", "add", "-A")
    world.sh("git", "commit", "-q", "-m", "a test at the top")
    world.base_sha = world.sh("git", "rev-parse", "HEAD")
    found = await calc.after("echo weak > test_top.py", "pytest test_top.py", "python test_top.py")
    assert (found.facts.pinned, found.facts.pinned_without) == (("test_top.py",), ())


async def test_paths_are_those_of_a_project_in_a_folder(make_world: MakeWorld, tmp_path: Path) -> None:
    calc = Calc(make_world, tmp_path, "services/calc")
    found = await calc.after(
        f"echo weak > tests/test_old.py; {NEW_TEST}; echo other > ../test_beside.py",
        "pytest tests/test_old.py",
        acceptance=(GateCommand(name="own", command="pytest tests/test_calc.py::test_more"),),
    )
    assert {"tests/test_calc.py", "tests/test_old.py", "tests/test_new.py"} <= set(found.facts.pinned)
    assert found.facts.pinned_without == ("pytest tests/test_calc.py::test_more",)
    assert calc.text("tests/test_old.py") == FILES["tests/test_old.py"]
    assert calc.text("tests/test_calc.py") == FILES["tests/test_calc.py"]

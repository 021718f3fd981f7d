"""A tree whose modules cannot be loaded must be red, wherever the project is installed."""

from pathlib import Path

import pytest
from tests.acceptance.cli.program import executable, git
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.gates.bare_python import bare_python
from tests.acceptance.gates.calculator import NOT_OURS, write
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Plan

PYTEST = f"python -B -m pytest -q {NOT_OURS}"
CALC = "def add(a, b):\n    return a + b\n"
FILES = {
    "src/calc/__init__.py": CALC,
    "src/calc/__main__.py": "from calc import add\n\nprint(add(2, 2))\n",
    "tests/test_calc.py": "import subprocess\nimport sys\n\n\ndef test_four():\n"
    "    assert subprocess.check_output([sys.executable, '-m', 'calc']) == b'4\\n'\n",
    "pyproject.toml": '[project]\nname = "calc"\nversion = "1"\n',
}
"""Its only test loads the package in another process, as tests of console scripts do."""


class Installed(Workshop):
    """A project with a package below src, and a Python environment that may have it installed."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        programs = bare_python(place / "venv")
        executable(programs / "pytest", f'exec {programs}/python -m pytest "$@"')
        self.program.env["PATH"] = f"{programs}:{self.program.env['PATH']}"
        (self.site,) = (place / "venv").glob("lib/python3*/site-packages")
        for name, text in FILES.items():
            file = self.repository / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        git(self.repository, "add", "-A")
        git(self.repository, "commit", "-q", "-m", "a package")

    def install_editable(self) -> None:
        """Do what `pip install -e .` does."""
        (self.site / "__editable__.calc-1.pth").write_text(f"{self.repository}/src\n")

    def install_copy(self) -> None:
        """Do what `pip install .` does."""
        (self.site / "calc").mkdir()
        for name in ("__init__.py", "__main__.py"):
            (self.site / "calc" / name).write_text(FILES[f"src/calc/{name}"])

    def tests_plan(self, name: str, run: str = PYTEST, **more: object) -> Path:
        """Write a plan with one task and one gate."""
        return self.plan(name, [task(name, "true -s src")], gates=[{"name": "tests", "run": run}], **more)


@pytest.fixture
def project(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def words(text: str) -> str:
    """Return a text without its line breaks."""
    return " ".join(text.split())


def test_work_on_a_project_that_is_installed_editable_is_judged_itself(project: Installed) -> None:
    project.install_editable()
    new_test = FILES["tests/test_calc.py"].replace("four", "zero").replace("'calc']", "'calc', 'x']")
    prints = (
        FILES["src/calc/__main__.py"]
        .replace("import add\n", "import add, zero\n")
        .replace("add(2", "zero() + add(2")
    )
    project.play(
        {
            "broken": [[write("src/calc/__init__.py", f"{CALC}\nraise RuntimeError(1)\n")]],
            "honest": [
                [
                    write("src/calc/__init__.py", f"{CALC}\n\ndef zero():\n    return 0\n"),
                    write("src/calc/__main__.py", prints),
                    write("tests/test_zero.py", new_test),
                ]
            ],
        }
    )
    said = project.run(project.tests_plan("broken"), "--max-attempts", "1")
    assert said.code == 1, said.out + said.err
    said = project.run(project.tests_plan("honest"))
    assert said.code == 0, said.out + said.err
    assert "checking that a broken tree fails" not in said.out, "it was known from the first plan"
    assert "installed editable from this checkout" in words(project("doctor").out)


def test_a_gate_that_tests_an_installed_copy_is_refused_until_it_is_accepted(project: Installed) -> None:
    project.install_copy()
    project.play({"work": [[write("src/calc/__init__.py", f"{CALC}\nraise RuntimeError(1)\n")]]})
    plan = project.tests_plan("work")
    said = project.run(plan)
    assert said.code == 6, said.out + said.err
    told = words(said.err)
    assert "gate tests does not judge the tree" in told
    assert f"It loaded {project.site.resolve()}/calc/__init__.py instead of src/calc/__init__.py" in told
    assert "python -m pip install -e ." in told
    assert 'installed_gates = ["tests"]' in told
    assert project.journal() == [], "nothing was spent"
    assert project.rows(Plan) == []
    assert project("plan", "check", str(plan)).code == 6
    noted = words(project("init", "--dry-run").out)
    assert "does not judge the tree" in noted

    accepted = project.tests_plan("work", settings={"installed_gates": ["tests"]})
    said = project.run(accepted)
    assert said.code == 4, said.out + said.err
    assert "a broken tree would pass tests" in words(said.out)
    (receipt,) = (project.repository / ".loopwright" / "receipts").glob("*.json")
    assert "AGREES" in project("receipt", "verify", str(receipt)).out


def test_the_project_itself_belongs_into_setup_and_not_into_cached_dependencies(project: Installed) -> None:
    copies = "mkdir -p .deps && cp -R src/calc .deps"
    gate = f"PYTHONPATH=.deps {PYTEST}"
    said = project(
        "plan", "check", str(project.tests_plan("cached", gate, settings={"dependencies": copies}))
    )
    assert said.code == 6, said.out + said.err
    assert "It loaded .deps/calc/__init__.py instead of src/calc/__init__.py" in words(said.err)
    assert "not with `dependencies`" in words(said.err)
    said = project("plan", "check", str(project.tests_plan("built", gate, settings={"setup": copies})))
    assert said.code == 0, said.out + said.err


def test_tests_that_load_nothing_of_the_project_are_only_told_of(project: Installed) -> None:
    (project.repository / "tests" / "test_calc.py").write_text("def test_nothing():\n    pass\n")
    git(project.repository, "commit", "-qam", "test nothing")
    said = project("plan", "check", str(project.tests_plan("nothing")))
    assert said.code == 0, said.out + said.err
    assert "no test of the gate tests loads the project's code yet" in words(said.out)

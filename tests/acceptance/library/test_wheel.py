"""The wheel, installed beside another package that offers an agent and a source of its own."""

import json
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest
from tests.acceptance.cli.program import Program, git, repository

ROOT = Path(__file__).resolve().parents[3]

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "gardening"
version = "1.0"

[project.entry-points."loopwright.agents"]
gardener = "gardening:GardenerAgent"

[project.entry-points."loopwright.sources"]
beds = "gardening:BedsSource"
"""

MODULE = '''\
"""An agent and a source that know Loopwright by its ports alone."""

import hashlib

from loopwright.core.values.policy import GateCommand
from loopwright.ports import AgentEvent, AgentResult, Folded, Invocation, PlannedTask, PlannedWork, Source


class GardenerAgent:
    """Plants what its prompt names."""

    name = "gardener"
    capabilities = frozenset()

    def invocation(self, request):
        script = "grep -o 'Plant [a-z]*' prompt.txt | head -n 1 | cut -d ' ' -f 2 > \\"$1\\"/bed.txt && echo planted"
        argv = ("/bin/sh", "-c", f"cd {request.run_directory} && {script}", "sh", str(request.workspace))
        return Invocation(argv=argv, files={"prompt.txt": request.prompt})

    def initial(self, request=None, *, before=None):
        return ()

    def fold(self, state, line):
        event = AgentEvent(kind="Text", text=line.text, data={})
        return Folded(state=(*state, line.text), events=(event,))

    def interrupt(self, state):
        return ()

    def result(self, state, exit):
        return AgentResult(claimed=exit.code == 0 and state == ("planted",), summary="planted")

    def probe(self):
        return ("/bin/sh", "-c", "echo gardener 1.0")


class BedsSource(Source):
    """One task for each line of a beds.txt."""

    kind = "beds"

    def recognises(self, place):
        return place.name == "beds.txt"

    def files(self, place):
        return {place.name: place.read_bytes()}

    def parse(self, files, name):
        (content,) = files.values()
        tasks = tuple(
            PlannedTask(
                key=plant,
                title=f"Plant {plant}",
                description=f"Plant {plant} in bed.txt.",
                acceptance=(GateCommand(name="planted", command=f"grep -qx {plant} bed.txt"),),
            )
            for plant in content.decode().split()
        )
        return PlannedWork(title="Beds", tasks=tasks, sha256=hashlib.sha256(content).hexdigest())
'''


def pip(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def built(project: Path, wheels: Path) -> Path:
    """Build a wheel with what is installed here: no test needs the network."""
    before = set(wheels.glob("*.whl"))
    pip("wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(wheels), str(project))
    (wheel,) = set(wheels.glob("*.whl")) - before
    return wheel


@pytest.fixture
def installed(tmp_path: Path) -> Program:
    """Loopwright and the other package in an environment of their own, with this one's libraries."""
    other = tmp_path / "gardening"
    other.mkdir()
    (other / "pyproject.toml").write_text(PROJECT)
    (other / "gardening.py").write_text(MODULE)
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    return in_new_environment(tmp_path, built(ROOT, wheels), built(other, wheels))


def in_new_environment(tmp_path: Path, *wheels: Path) -> Program:
    """Return the program of wheels in a new environment, with the libraries of this one."""
    place = tmp_path / "venv"
    venv.create(place, symlinks=True)
    python = place / "bin" / "python"
    for wheel in wheels:
        pip("--python", str(python), "install", "-q", "--no-deps", "--no-index", str(wheel))
    (site,) = place.glob("lib/python*/site-packages")
    # A folder that a .pth file names is searched last, and no .pth file in it is read: this checkout is not found.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    program = Program(tmp_path)
    program.python = str(python)
    program.env["PATH"] = f"{python.parent}:/usr/local/bin:/usr/bin:/bin"
    return program


def unpacked(archive: Path, place: Path) -> Path:
    """Return the folder that a source distribution has."""
    with tarfile.open(archive) as opened:
        opened.extractall(place, filter="data")
    (folder,) = place.iterdir()
    return folder


@pytest.mark.more
def test_the_source_distribution_builds_a_wheel_that_runs_the_demo(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path / "dist")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = (tmp_path / "dist").iterdir()
    source = unpacked(archive, tmp_path / "source")
    program = in_new_environment(tmp_path, built(source, tmp_path))
    said = program("demo", cwd=tmp_path, timeout=120)
    assert said.code == 0, said.out + said.err


@pytest.mark.more
@pytest.mark.capability("C008")
def test_an_agent_and_a_source_of_another_package_do_a_plan_with_the_installed_wheel(
    installed: Program, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    repository(project, {"README.md": "# Garden\n", "beds.txt": "roses\n", ".gitignore": ".loopwright/\n"})
    where = subprocess.run(
        [installed.python, "-c", "import loopwright; print(loopwright.__file__)"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(tmp_path / "venv"), "the wheel, not this checkout"
    said = installed("run", "beds.txt", "--agent", "gardener", "--json", cwd=project, timeout=120)
    assert said.code == 0, said.out + said.err
    plan = json.loads(said.out)["plan"]
    assert (plan["status"], [task["key"] for task in plan["tasks"]]) == ("VERIFIED", ["roses"])
    assert git(project, "show", f"{plan['branch']}:bed.txt") == "roses\n"

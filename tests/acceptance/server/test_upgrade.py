"""Another version in the middle of a plan: a newer one adopts its agents, an older one refuses the database by name."""

import json
import shutil
import sqlite3
import sysconfig
import venv
from contextlib import closing
from pathlib import Path

import pytest
from tests.acceptance.library.test_wheel import ROOT, built, pip
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright import __version__
from loopwright.core.rows.model import Plan

NEWER = "99.0.0"


def _newer(place: Path) -> Path:
    """Return a copy of this project with a higher version, whose pipeline is newer too."""
    place.mkdir()
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place / name)
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for file, before, after in (
        ("__init__.py", f'"{__version__}"', f'"{NEWER}"'),
        ("app.py", 'PIPELINE_VERSION = "1"', 'PIPELINE_VERSION = "2"'),
    ):
        path = place / "src" / "loopwright" / file
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, after))
    return place


@pytest.mark.more
@pytest.mark.timeout(600)
def test_a_newer_wheel_adopts_the_agents_of_the_older_one_and_finishes_the_plan(
    served: Served, tmp_path: Path
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    older, newer = built(ROOT, wheels), built(_newer(tmp_path / "newer"), wheels)
    place = tmp_path / "venv"
    venv.create(place, symlinks=True)
    python = place / "bin" / "python"
    (site,) = place.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    served.program.python = str(python)
    served.program.env["PATH"] = f"{python.parent}:/usr/local/bin:/usr/bin:/bin"
    pip("--python", str(python), "install", "-q", "--no-deps", "--no-index", str(older))
    agent = served.gate("agent")
    plan = served.chain("one", "two", steps={"one": [[agent.step, {"write": "one", "text": "1\n"}]]})
    assert served("up", "--port", "0", "--json").code == 0
    assert _note(served)["version"] == __version__
    assert served.run(plan, "--detach").code == 0
    served.until_started("one")
    pip("--python", str(python), "install", "-q", "--no-deps", "--no-index", "--force-reinstall", str(newer))
    said = served("restart", "--json", timeout=120)
    assert said.code == 0, said.out + said.err
    try:
        assert _note(served)["version"] == NEWER
        agent.let_go()
        eventually(lambda: served.row(Plan).status == "VERIFIED", timeout=120)
        assert served.started() == [("one", 1), ("two", 1)], "the agent was adopted, not started again"
    finally:
        assert served("down", "--json").code == 0


def _note(served: Served) -> dict[str, str]:
    note: dict[str, str] = json.loads((served.home / "daemon.json").read_text())
    return note


def _set_schema(served: Served, version: str) -> str:
    """Give the database the version of another program; return the one that it had."""
    with closing(sqlite3.connect(served.home / "loopwright.db")) as raw, raw:
        (before,) = raw.execute("SELECT version_num FROM schema_version").fetchone()
        raw.execute("UPDATE schema_version SET version_num = ?", (version,))
    return str(before)


def test_an_older_program_refuses_the_database_by_name_and_leaves_agents_and_rows_alone(
    served: Served,
) -> None:
    agent = served.gate("agent")
    plan = served.chain("one", steps={"one": [[agent.step, {"write": "one", "text": "1\n"}]]})
    daemon = served.serve()
    assert served.run(plan, "--detach").code == 0
    served.until_started("one")
    daemon.kill()
    before = _set_schema(served, "9999")
    said = served("serve", "--port", "0", "--json")
    assert (said.code, said.document["error"]["code"]) == (6, "newer_database"), said.out + said.err
    said = served("up", "--port", "0")
    assert said.code != 0
    for named in ("was written by a newer Loopwright", "9999", "nothing was changed"):
        assert named in " ".join(said.err.split()), said.err
    for command in (("status",), ("projects", "import"), ("run", str(plan))):
        said = served(*command, "--json")
        assert said.document["error"]["code"] == "newer_database", (command, said.out)
    assert served.processes(), "its agent runs"
    assert _set_schema(served, before) == "9999"
    served.serve()
    agent.let_go()
    eventually(lambda: served.row(Plan).status == "VERIFIED", timeout=90)
    assert served.started() == [("one", 1)]

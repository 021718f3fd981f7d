"""Lays the witness beside a gate's command. Loaded by the gate's runner.

Standard library only. What a command does to its environment must not lose the witness, so it is reached in several
ways; `witnesses.py` says how each test runner is.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PYTHONS = ("python", "python3", *(f"python3.{n}" for n in range(8, 20)))
STARTED_BY_PYTHON = ("pytest", "py.test", "coverage", "tox", "nox", "uv", "poetry", "pdm", "hatch", "pipenv")
"""Programs that run tests, or start what does, with the PYTHONPATH that they were given."""


def witnessed(n: int, witness: dict[str, Any]) -> tuple[str, dict[str, str], Path]:
    """Lay the witness beside a command: return its text, its environment, and the folder that is written to.

    All of it lies in its own folder, so that the environment does not say where results are kept.
    """
    top = Path(tempfile.mkdtemp(prefix="w", dir=os.environ.get("TMPDIR")))
    name, how = witness["plugin"], witness["commands"][n - 1]
    info = top / "doors" / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n", encoding="ascii")
    (info / "entry_points.txt").write_text(f"[pytest11]\n{name} = {name}\n", encoding="ascii")
    for program, source in witness["programs"].items():
        shutil.copyfile(source, top / "doors" / program)
    seen = top / "seen"
    seen.mkdir()
    doors = str(top / "doors")
    path = top / "path"
    path.mkdir()
    told = json.dumps({"folder": str(seen), "path": str(path), "only": how["only"], **how["names"]})
    # Also beside the plugin, for a command that empties its environment.
    (top / "doors" / "told.json").write_text(told, encoding="utf-8")
    env = {**os.environ, witness["variable"]: told}
    env["PYTHONPATH"] = os.pathsep.join([doors, *filter(None, [os.environ.get("PYTHONPATH")])])
    if not os.environ.get("PYTHONPATH"):
        # tox keeps the variable from its environments, as it would with one of the user's own.
        env.setdefault("TOX_OVERRIDE", "testenv.pass_env+=PYTHONPATH")
    options = [os.environ.get("NODE_OPTIONS"), f'"--require={doors}/{witness["preload"]}"']
    if how["node_options"]:
        own = how["node_options"].replace("@LOOPWRIGHT_DOORS@", doors)
        if bears(" ".join(filter(None, [*options, own]))):
            options.append(own)
    env["NODE_OPTIONS"] = " ".join(filter(None, options))
    if go := shutil.which("go"):
        go_door(path, go, f"{doors}/{witness['go']}")
    preload, unittest = (f"{doors}/{witness[one]}" for one in ("preload", "unittest"))
    doors_in_front(path, doors, preload, unittest, witness["variable"])
    env["PATH"] = os.pathsep.join([str(path), os.environ.get("PATH", os.defpath)])
    return how["run"].replace("@LOOPWRIGHT_DOORS@", shlex.quote(doors)), env, seen


def doors_in_front(path: Path, doors: str, preload: str, unittest: str, variable: str) -> None:
    """Put a script in front of programs that run tests: it adds the witness to what a command sets itself."""
    plugin = [
        f'case ":${{PYTHONPATH-}}:" in *:{shlex.quote(doors)}:*) ;; *)',
        f"PYTHONPATH={shlex.quote(doors)}${{PYTHONPATH:+:$PYTHONPATH}}; export PYTHONPATH ;; esac",
    ]
    module = [
        f'if [ -n "${{{variable}-}}" ] && [ "${{1-}} ${{2-}}" = "-m unittest" ]; then',
        f'shift 2; set -- {shlex.quote(unittest)} "$@"; fi',
    ]
    loaded = shlex.quote(f'"--require={preload}"')
    reporter = [
        f'case "${{{variable}:+watched}} ${{NODE_OPTIONS-}}" in *{shlex.quote(preload)}*) ;; watched*)',
        f'NODE_OPTIONS="${{NODE_OPTIONS:+$NODE_OPTIONS }}"{loaded}; export NODE_OPTIONS ;; esac',
    ]
    ways = {name: [*plugin, *module] for name in PYTHONS} | dict.fromkeys(STARTED_BY_PYTHON, plugin)
    for name, lines in {**ways, "node": reporter}.items():
        if real := shutil.which(name):
            text = "\n".join(["#!/bin/sh", *lines, f'exec {shlex.quote(real)} "$@"'])
            (path / name).write_text(f"{text}\n", encoding="utf-8")
            (path / name).chmod(0o755)


@contextmanager
def led_to_plugin(tree: str, name: str, doors: str) -> Iterator[None]:
    """Have the virtual environments at the top of the tree find the plugin while a command runs."""
    laid = []
    for folder in Path(tree).glob("*/lib/python3*/site-packages"):
        top = folder.parents[2]
        linked = any(one.is_symlink() for one in (folder, *folder.parents) if one.is_relative_to(top))
        if linked or not (top / "pyvenv.cfg").is_file():
            continue
        try:
            (folder / f"{name}.pth").write_text(f"{doors}\n", encoding="utf-8")
        except OSError:
            continue  # it may not be written to: then a runner that is not watched is named
        laid.append(folder / f"{name}.pth")
    try:
        yield
    finally:
        for path in laid:
            path.unlink(missing_ok=True)


def go_door(door: Path, go: str, program: str) -> None:
    """Make the script that runs instead of the real go; without access to our Python, it only starts the real one."""
    python, real, ours = map(shlex.quote, (sys.executable, go, program))
    lines = [
        "#!/bin/sh",
        f"PATH=${{PATH#{shlex.quote(str(door))}:}}; export PATH",
        f'test -x {python} && exec {python} -I -S {ours} {real} "$@"',
        f'exec {real} "$@"',
    ]
    (door / "go").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (door / "go").chmod(0o755)


def bears(options: str) -> bool:
    """Return whether node takes these options from its environment: an older version refuses to start."""
    try:
        env = {**os.environ, "NODE_OPTIONS": options}
        quiet = subprocess.DEVNULL
        done = subprocess.run(
            ["node", "-e", "0"], env=env, stdin=quiet, stdout=quiet, stderr=quiet, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0

"""Processes in a real sandbox under real keepers."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.integration.keeper.conftest import MakeSpec, keepers, make_spec

from loopwright.adapters.sandbox.bubblewrap import Bubblewrap
from loopwright.adapters.sandbox.container import NOTES, Container, remove_abandoned
from loopwright.core.values.containment import HomeView, PrivatePath
from loopwright.ports import Reach, RunSpec, Sandbox

__all__ = ["keepers", "make_spec"]

MakeContained = Callable[..., RunSpec]
MakeWalls = Callable[..., Sandbox]
PATH = f"{Path(sys.executable).parent}:{os.defpath}"


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A user's folder: a tool chain, a login of an agent, and what is nobody's business."""
    folder = tmp_path / "user"
    for path, text in {
        ".gitconfig": "[user]\nname = Someone\n",
        ".cargo/config.toml": "[net]\n",
        ".cargo/credentials.toml": "token",
        ".ssh/id": "private",
        "Documents/diary": "dear diary",
        ".agent.json": '{"login": 1}',
        ".agent/settings": "mine",
        ".agent/talks/other": "of another run",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "own" / "workspaces" / "one"
    folder.mkdir(parents=True)
    return folder


ENGINES = [pytest.param(name, marks=pytest.mark.containers) for name in ("podman", "docker")]


@pytest.fixture(params=["bubblewrap", *ENGINES])
def walls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeWalls]:
    """Make sandboxes of a kind: each is held to the same. No container is left afterwards."""
    own = tmp_path / "own"
    if request.param == "bubblewrap":
        program = request.getfixturevalue("bwrap")
        yield lambda **more: Bubblewrap(program=program, own=(own,), **more)
        return
    container: Container = request.getfixturevalue(f"{request.param}_container")
    yield lambda **more: replace(container, own=(own,), notes=own / NOTES, **more)
    remove_abandoned(own / NOTES)


@pytest.fixture
def contained(
    make_spec: MakeSpec, tmp_path: Path, real: Path, workspace: Path, walls: MakeWalls
) -> MakeContained:
    """Make specs of contained runs: `own` is Loopwright's home, with the runs' directories in it."""
    made = []

    def make(
        *argv: str,
        network: bool = True,
        write: tuple[Path, ...] = (),
        read: tuple[Path, ...] = (),
        env: Mapping[str, str] = MappingProxyType({}),
        **more: Any,
    ) -> RunSpec:
        own = tmp_path / "own"
        directory = own / "runs" / str(len(made))
        made.append(directory)
        sandbox = walls(writable=write, readable=read)
        view = sandbox.view(
            HomeView(
                place=str(own / "users" / "one"),
                real=str(real),
                hidden=(".ssh", ".cargo/credentials.toml"),
                private=(
                    PrivatePath(path=".agent.json", source=f"{real}/.agent.json"),
                    PrivatePath(path=".agent/", source=f"{real}/.agent/", sessions=("talks",)),
                ),
            )
        )
        spec = make_spec(
            *argv, directory=directory, cwd=workspace, env={"PATH": PATH, **env}, home=view, **more
        )
        reach = Reach(
            directory=directory,
            cwd=workspace,
            env=spec.env,
            argv=spec.argv,
            writable=(workspace,),
            home=view,
            network=network,
        )
        return replace(spec, argv=(*sandbox.prefix(reach), *spec.argv), contained=True)

    return make

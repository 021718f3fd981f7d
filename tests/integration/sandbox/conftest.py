"""Processes in a real sandbox under real keepers."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.keeper.conftest import MakeSpec, keepers, make_spec

from loopwright.adapters.sandbox.bubblewrap import Bubblewrap
from loopwright.core.homes import HomeView
from loopwright.ports import Reach, RunSpec

__all__ = ["keepers", "make_spec"]

MakeContained = Callable[..., RunSpec]
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
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "own" / "workspaces" / "one"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def contained(make_spec: MakeSpec, tmp_path: Path, real: Path, workspace: Path, bwrap: str) -> MakeContained:
    """Make specs of contained runs: `own` is Loopwright's home, with the runs' directories in it."""
    made = []

    def make(
        *, network: bool = True, write: tuple[Path, ...] = (), read: tuple[Path, ...] = (), **more: Any
    ) -> RunSpec:
        own = tmp_path / "own"
        directory = own / "runs" / str(len(made))
        made.append(directory)
        sandbox = Bubblewrap(program=bwrap, own=(own,), writable=write, readable=read)
        view = sandbox.view(
            HomeView(
                place=str(own / "users" / "one"),
                real=str(real),
                hidden=(".ssh", ".cargo/credentials.toml"),
                kept=(".agent.json", ".agent/"),
            )
        )
        spec = make_spec(directory=directory, cwd=workspace, env={"PATH": PATH}, home=view, **more)
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

"""A real bubblewrap for tests: the one that comes with the tests' codex, the same everywhere, or the machine's own."""

import shutil
from pathlib import Path

import pytest
from tests.fakes.agent_binaries import bundled_codex

from loopwright.adapters.sandbox.proof import proof


def bubblewrap() -> str | None:
    """Return where a bwrap is."""
    codex = bundled_codex()
    bundled = codex.parent.parent / "codex-resources" / "bwrap" if codex else None
    return str(bundled) if bundled and bundled.is_file() else shutil.which("bwrap")


@pytest.fixture(scope="session")
def bwrap(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A bwrap that holds on this machine; without one the test is skipped, with the reason."""
    program = bubblewrap()
    if program is None:
        pytest.skip("no bwrap: neither on PATH nor with the tests' codex")
    found = proof(program, tmp_path_factory.mktemp("proof"))
    if not found.holds:
        pytest.skip(f"bubblewrap does not hold on this machine: {found.why_not}")
    return str(Path(program))

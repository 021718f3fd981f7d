"""Look at a repository as a whole."""

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final

from loopwright.adapters.detect import compiled, node, python
from loopwright.adapters.detect.findings import Detected, Ecosystem, ProposedGate, Tree, Which

NO_TESTS: Final = (
    "No tests were found, so no test gate is proposed. Add a gate to loopwright.toml; without one, "
    "work lands only with allow_unverified."
)
_SURVEYS: Final[tuple[Callable[[Tree], Ecosystem | None], ...]] = (
    python.survey,
    node.survey,
    compiled.go,
    compiled.rust,
    compiled.maven,
    compiled.gradle,
    compiled.make,
)
_MANIFESTS: Final = frozenset(
    {"pyproject.toml", "package.json", "go.mod", "Cargo.toml", "pom.xml", "build.gradle"}
)
_SKIPPED: Final = frozenset(
    {".git", ".hg", ".loopwright", ".venv", "venv", "node_modules", "target", "__pycache__"}
)
_ENV_EXAMPLES: Final = ("example", "sample", "template", "dist", "defaults")
_MAX_FILES: Final = 50_000


def is_project(names: Iterable[str]) -> bool:
    """Return whether the files of a folder, by name, make it its own project."""
    return not _MANIFESTS.isdisjoint(names)


def detect(root: Path, *, tracked: Collection[str] | None = None, which: Which = shutil.which) -> Detected:
    """Return how a repository is set up and checked.

    `tracked` are the paths that git knows, relative to the root: a workspace has those and nothing else.
    Without them, whatever lies in the folder is looked at.
    """
    files = frozenset(tracked) if tracked is not None else frozenset(_walk(root))
    tree = Tree(root=root, files=files, which=which)
    found = [each for each in (survey(tree) for survey in _SURVEYS) if each is not None]
    gates, notes = _combine(found)
    if not any(gate.purpose == "test" for gate in gates):
        notes.append(NO_TESTS)
    notes += _elsewhere(tree, found)
    prepared = [each for each in found if each.dependencies or each.setup]
    return Detected(
        languages=tuple(each.language for each in found),
        dependencies=" && ".join(filter(None, (each.dependencies for each in prepared))) or None,
        setup=" && ".join(filter(None, (each.setup for each in prepared))) or None,
        setup_why=", ".join(each.setup_why for each in prepared),
        env_files=_env_files(root, files if tracked is not None else frozenset()),
        gates=tuple(_with_missing(gate, which) for gate in gates),
        notes=tuple(notes),
    )


def _walk(root: Path) -> Iterator[str]:
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - _SKIPPED)
        for name in sorted(names):
            count += 1
            if count > _MAX_FILES:
                return
            yield (Path(folder) / name).relative_to(root).as_posix()


def _combine(found: list[Ecosystem]) -> tuple[list[ProposedGate], list[str]]:
    """Give each gate its own name, and let Make speak only where nothing else does."""
    gates: list[ProposedGate] = []
    notes: list[str] = []
    for each in found:
        notes += each.notes
        for gate in each.gates:
            taken = {other.purpose for other in gates}
            if each.language == "make" and gate.purpose in taken:
                notes.append(f"{gate.why} as well; a more direct {gate.purpose} command is proposed instead.")
                continue
            name = f"{each.language}-{gate.name}" if gate.purpose in taken else gate.name
            gates.append(replace(gate, name=name))
    order = ("test", "lint", "types", "build")
    return sorted(gates, key=lambda gate: order.index(gate.purpose)), notes


def _with_missing(gate: ProposedGate, which: Which) -> ProposedGate:
    return replace(gate, missing=tuple(program for program in gate.programs if which(program) is None))


def _elsewhere(tree: Tree, found: list[Ecosystem]) -> list[str]:
    """Name projects in subfolders when the top has none: their commands have to be written by hand."""
    if any(each.language != "make" for each in found):
        return []
    inner = tree.matching(lambda name: PurePosixPath(name).name in _MANIFESTS and "/" in name)
    if not inner:
        return []
    shown = ", ".join(inner[:5]) + (" and more" if len(inner) > 5 else "")
    return [f"There are projects in subfolders ({shown}): write their gates by hand, as in `cd folder && …`."]


def _env_files(root: Path, tracked: frozenset[str]) -> tuple[str, ...]:
    """Return untracked environment files at the top; examples are for people."""
    names = (path.name for path in root.glob(".env*") if path.is_file())
    return tuple(
        sorted(
            name
            for name in names
            if name not in tracked
            and (name == ".env" or name.startswith(".env.") or name == ".envrc")
            and not name.endswith(_ENV_EXAMPLES)
        )
    )

"""Look at a repository as a whole, and write what was found as a commented loopwright.toml."""

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from loopwright.adapters.detect import compiled, node, python
from loopwright.adapters.detect.findings import Detected, Ecosystem, ProposedGate, Tree, Trial, Which
from loopwright.config.gates import gate_table
from loopwright.config.publish import commented_toml, toml_table

# Write what was found as a commented loopwright.toml.

PROJECT_SCHEMA: Final = ".loopwright/project.schema.json"
_HEADER: Final = f"""\
#:schema {PROJECT_SCHEMA}
# Loopwright's settings for this project. Every line that is commented out shows a default.
# Inside a plan this file is read from the commit that the plan started from.
"""
_GATES: Final = """\
# Gates: the project's own checks, run in order on every result. All of them must pass.
# Every other setting goes above this line: what is below a [table] belongs to it.
"""
_PUT_IN: Final = "It checks nothing. To use it, remove the # in front of these lines:"
_MAX_REASON: Final = 300


def render_toml(detected: Detected, results: Mapping[str, Trial]) -> str:
    """Return the text of a project file; gates that did not pass, by name, are commented out with the reason."""
    chosen: dict[str, Any] = {}
    if detected.dependencies is not None:
        chosen["dependencies"] = detected.dependencies
    if detected.setup is not None:
        chosen["setup"] = detected.setup
    if detected.env_files:
        chosen["copy_files"] = list(detected.env_files)
    blocks = [
        _HEADER,
        *(_comment(_one_line(note)) + "\n" for note in detected.notes),
        commented_toml(chosen),
        _GATES,
    ]
    if not detected.gates:
        blocks.append(_comment('[[gates]]\nname = "test"\nrun = "the command that runs your tests"'))
    blocks += [_gate(gate, results.get(gate.name)) for gate in detected.gates]
    return "\n".join(block if block.endswith("\n") else f"{block}\n" for block in blocks)


def _gate(gate: ProposedGate, trial: Trial | None) -> str:
    text = toml_table("gates", gate_table(gate.gate()))
    because = _comment(f"Found: {_one_line(gate.why)}.")
    if trial is None and gate.missing:
        trial = Trial(passed=False, reason=f"not installed: {', '.join(gate.missing)}")
    if trial is not None and not trial.passed:
        reason = _one_line(trial.reason) or "it did not pass"
        return f"{because}\n{_comment(f'Left out: {reason}')}\n{_comment(_PUT_IN)}\n{_comment(text)}"
    return f"{because}\n{text}"


def _comment(text: str) -> str:
    return "\n".join(f"# {line}" for line in text.split("\n"))


def _one_line(text: str) -> str:
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= _MAX_REASON else line[: _MAX_REASON - 1] + "…"


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

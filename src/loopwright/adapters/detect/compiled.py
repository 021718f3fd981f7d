"""Go, Rust, Maven, Gradle and Make."""

import re
from typing import Final

from loopwright.adapters.detect.findings import Ecosystem, ProposedGate, Purpose, Tree

_TARGET: Final = re.compile(r"^([A-Za-z0-9_./-]+(?:[ \t]+[A-Za-z0-9_./-]+)*)[ \t]*::?(?!=)", re.MULTILINE)
_MAKE_TARGETS: Final[tuple[tuple[Purpose, tuple[str, ...]], ...]] = (
    ("test", ("test", "tests", "check")),
    ("lint", ("lint",)),
)
_RUST_FILES_READ: Final = 200


def _gate(
    purpose: Purpose, command: str, why: str, *programs: str, timeout_s: float = 1200.0
) -> ProposedGate:
    return ProposedGate(
        purpose=purpose, name=purpose, command=command, why=why, programs=programs, timeout_s=timeout_s
    )


def go(tree: Tree) -> Ecosystem | None:
    """Return what the Go part of a repository looks like, or None."""
    if "go.mod" not in tree.files:
        return None
    test = next(iter(tree.matching(lambda name: name.endswith("_test.go"))), None)
    gates = [_gate("build", "go build ./...", "go.mod", "go"), _gate("lint", "go vet ./...", "go.mod", "go")]
    if test is not None:
        gates.insert(0, _gate("test", "go test ./...", test, "go"))
    setup = "go mod download" if "go.sum" in tree.files else None
    return Ecosystem(
        language="go", why="go.mod", setup=setup, setup_why="go.sum" if setup else "", gates=tuple(gates)
    )


def rust(tree: Tree) -> Ecosystem | None:
    """Return what the Rust part of a repository looks like, or None."""
    if "Cargo.toml" not in tree.files:
        return None
    locked = " --locked" if "Cargo.lock" in tree.files else ""
    sources = tree.matching(lambda name: name.endswith(".rs"))
    # Integration tests by their place first: then no file has to be read.
    sources.sort(key=lambda name: not name.startswith("tests/"))
    test = next((name for name in sources[:_RUST_FILES_READ] if "#[test]" in tree.read(name)), None)
    gates = [_gate("build", f"cargo build{locked}", "Cargo.toml", "cargo")]
    if test is not None:
        gates.insert(0, _gate("test", f"cargo test{locked}", test, "cargo"))
    clippy = tree.has("clippy.toml", ".clippy.toml")
    if clippy is not None:
        gates.append(_gate("lint", f"cargo clippy{locked} -- -D warnings", clippy, "cargo"))
    return Ecosystem(
        language="rust",
        why="Cargo.toml",
        setup=f"cargo fetch{locked}",
        setup_why="Cargo.toml",
        gates=tuple(gates),
    )


def maven(tree: Tree) -> Ecosystem | None:
    """Return what the Maven part of a repository looks like, or None."""
    if "pom.xml" not in tree.files:
        return None
    program = "./mvnw" if "mvnw" in tree.files else "mvn"
    programs = ("java",) if program == "./mvnw" else ("mvn",)
    return _jvm(tree, "maven", "pom.xml", f"{program} -B -q", programs, ("test", "compile"))


def gradle(tree: Tree) -> Ecosystem | None:
    """Return what the Gradle part of a repository looks like, or None."""
    file = tree.has("build.gradle", "build.gradle.kts")
    if file is None:
        return None
    program = "./gradlew" if "gradlew" in tree.files else "gradle"
    programs = ("java",) if program == "./gradlew" else ("gradle",)
    return _jvm(tree, "gradle", file, f"{program} --no-daemon -q", programs, ("test", "classes"))


def _jvm(
    tree: Tree, language: str, file: str, program: str, programs: tuple[str, ...], goals: tuple[str, str]
) -> Ecosystem:
    test = next(iter(tree.matching(lambda name: "src/test/" in f"/{name}")), None)
    if test is not None:
        gate = _gate("test", f"{program} {goals[0]}", f"{file} and {test}", *programs)
    else:
        gate = _gate("build", f"{program} {goals[1]}", file, *programs)
    return Ecosystem(language=language, why=file, gates=(gate,))


def make(tree: Tree) -> Ecosystem | None:
    """Return which usual targets a Makefile has, or None."""
    file = tree.has("GNUmakefile", "makefile", "Makefile")
    if file is None:
        return None
    targets = {name for line in _TARGET.findall(tree.read(file)) for name in line.split()}
    gates = []
    for purpose, names in _MAKE_TARGETS:
        target = next((name for name in names if name in targets), None)
        if target is not None:
            gates.append(_gate(purpose, f"make {target}", f"{file} has the target {target}", "make"))
    return Ecosystem(language="make", why=file, gates=tuple(gates))

"""Node: the scripts of package.json, and the package manager that its lock file belongs to."""

import json
import re
from typing import Any, Final

from loopwright.adapters.detect.findings import Ecosystem, ProposedGate, Purpose, Tree, table

_PLACEHOLDER: Final = re.compile(r"no test specified")
_WATCHES: Final = re.compile(r"--watch(?:All)?(?![=\w]*=?false)\b|\bvitest (?:watch|dev)\b|\bnodemon\b")
_SCRIPTS: Final[tuple[tuple[Purpose, tuple[str, ...]], ...]] = (
    ("test", ("test",)),
    ("lint", ("lint",)),
    ("types", ("typecheck", "type-check", "types", "check-types", "tsc")),
    ("build", ("build",)),
)

_LIFECYCLE: Final = ("preinstall", "install", "postinstall", "prepare", "prepublish")


def survey(tree: Tree) -> Ecosystem | None:
    """Return what the Node part of a repository looks like, or None."""
    if "package.json" not in tree.files:
        return None
    try:
        package = json.loads(tree.read("package.json"))
    except (ValueError, RecursionError):
        return Ecosystem(
            language="node",
            why="package.json",
            notes=("package.json is not valid JSON; nothing was read from it.",),
        )
    manager, install, why = _manager(tree, package)
    notes: list[str] = []
    gates: list[ProposedGate] = []
    scripts = {name: text for name, text in table(package, "scripts").items() if isinstance(text, str)}
    for purpose, names in _SCRIPTS:
        script = next((name for name in names if scripts.get(name, "").strip()), None)
        if script is None or _PLACEHOLDER.search(scripts[script]):
            continue
        if _WATCHES.search(scripts[script]):
            notes.append(
                f'The script "{script}" of package.json watches for changes and never ends: not proposed.'
            )
            continue
        run = f"{manager} test" if script == "test" and manager != "bun" else f"{manager} run {script}"
        gates.append(
            ProposedGate(
                purpose=purpose,
                name=purpose,
                # Many runners wait for a key or for changes unless they know that there is no terminal.
                command=f"CI=true {run}",
                why=f'package.json has the script "{script}"',
                programs=("node", manager) if manager != "bun" else ("bun",),
                timeout_s=1200.0 if purpose == "test" else 600.0,
            )
        )
    if install is not None and not _ignores(tree, "node_modules"):
        notes.append(
            "node_modules is not in .gitignore: add it, or installed packages become part of the work."
        )
    # Managers run these scripts while they install: then installing builds the project as well.
    builds = any(scripts.get(name) for name in _LIFECYCLE)
    return Ecosystem(
        language="node",
        why="package.json",
        dependencies=None if builds else install,
        setup=install if builds else None,
        setup_why=why,
        gates=tuple(gates),
        notes=tuple(notes),
    )


def _manager(tree: Tree, package: Any) -> tuple[str, str | None, str]:
    """Return the package manager, the command that installs exactly what is locked, and which file says so."""
    if "pnpm-lock.yaml" in tree.files:
        return "pnpm", "pnpm install --frozen-lockfile", "pnpm-lock.yaml"
    if "yarn.lock" in tree.files:
        exact = "--immutable" if ".yarnrc.yml" in tree.files else "--frozen-lockfile"
        return "yarn", f"yarn install {exact}", "yarn.lock"
    bun = tree.has("bun.lock", "bun.lockb")
    if bun is not None:
        return "bun", "bun install --frozen-lockfile", bun
    lock = tree.has("package-lock.json", "npm-shrinkwrap.json")
    if lock is not None:
        return "npm", "npm ci", lock
    named = str(package.get("packageManager", "")) if isinstance(package, dict) else ""
    manager = next((name for name in ("pnpm", "yarn", "bun") if named.startswith(f"{name}@")), "npm")
    if not (table(package, "dependencies") or table(package, "devDependencies")):
        return manager, None, ""
    # Without a lock file nothing may write one: it would become part of the agent's work.
    unlocked = {
        "npm": "npm install --no-package-lock",
        "pnpm": "pnpm install --no-lockfile",
        "yarn": "yarn install --no-lockfile",
        "bun": "bun install --no-save",
    }
    return manager, unlocked[manager], "package.json has dependencies and no lock file"


def _ignores(tree: Tree, name: str) -> bool:
    lines = tree.read(".gitignore").splitlines() if ".gitignore" in tree.files else []
    return any(line.strip().strip("/").removeprefix("**/") == name for line in lines)

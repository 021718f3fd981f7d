"""Python projects that are installed from the user's checkout: let runs load the workspace's modules instead.

An editable install names a folder of the checkout in the environment's site-packages. Folders on PYTHONPATH come
before those, so the same folders of the workspace go there.
"""

import ast
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_SITE_PACKAGES: Final = ("lib/python3*/site-packages", "lib/python3*/dist-packages")
_MAPPING: Final = re.compile(r"^MAPPING\b[^=\n]*=\s*(\{.*\})\s*$", re.MULTILINE)
"""Where the import hook of a setuptools editable install keeps its modules, each with its path."""
_LARGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A distribution that was installed from a folder of the checkout."""

    name: str
    editable: bool
    place: Path
    """The folder of site-packages that it is in."""


def own_sources(env: Mapping[str, str], checkout: Path, workspace: Path) -> dict[str, str]:
    """Return an environment in which the workspace's modules are loaded where the checkout's would have been."""
    real = checkout.resolve()
    inside: dict[Path, None] = {}
    others = []
    for entry in filter(None, env.get("PYTHONPATH", "").split(os.pathsep)):
        path = Path(entry)
        if path.is_absolute() and path.resolve().is_relative_to(real):
            inside[path.resolve()] = None
        else:
            others.append(entry)
    roots = inside | dict.fromkeys(editable_roots(env, real))
    if not roots:
        return dict(env)
    own = [str(workspace / root.relative_to(real)) for root in roots]
    return {**env, "PYTHONPATH": os.pathsep.join((*own, *others))}


def editable_roots(env: Mapping[str, str], checkout: Path) -> tuple[Path, ...]:
    """Return the folders of a checkout that the environment's Python loads modules from."""
    found = {root.resolve(): None for folder in site_packages(env) for root in _roots_named_in(folder)}
    inside = (root for root in found if root.is_relative_to(checkout.resolve()))
    # The environment itself may be in the checkout.
    return tuple(root for root in inside if not {"site-packages", "dist-packages"} & set(root.parts))


def installed_from(env: Mapping[str, str], checkout: Path) -> tuple[Installed, ...]:
    """Return the distributions that were installed from this checkout, as their own records say."""
    found = []
    for folder in site_packages(env):
        for record in sorted(folder.glob("*.dist-info/direct_url.json")):
            try:
                said = json.loads(_text(record))
                source = Path(unquote(urlsplit(said["url"]).path)).resolve()
                editable = bool(said.get("dir_info", {}).get("editable"))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue  # written by a program that does not follow the standard, so it says nothing
            if "dir_info" in said and source.is_relative_to(checkout.resolve()):
                name = record.parent.name.partition("-")[0]
                found.append(Installed(name=name, editable=editable, place=folder))
    return tuple(found)


def site_packages(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return where the Pythons of an environment keep installed modules."""
    programs = (shutil.which(name, path=env.get("PATH", "")) for name in ("python", "python3"))
    prefixes = [env.get("VIRTUAL_ENV"), env.get("CONDA_PREFIX")]
    prefixes += [os.path.dirname(os.path.dirname(path)) for path in programs if path]  # noqa: PTH120 - not resolved
    folders = {
        folder.resolve(): None
        for prefix in prefixes
        if prefix
        for pattern in _SITE_PACKAGES
        for folder in sorted(Path(prefix).glob(pattern))
    }
    return tuple(folders)


def _roots_named_in(folder: Path) -> Iterator[Path]:
    """Yield the folders that a folder of site-packages adds to where modules are loaded from."""
    for entry in sorted(folder.iterdir()):
        if entry.suffix == ".pth":
            lines = (line.strip() for line in _text(entry).splitlines())
            yield from (
                folder / line for line in lines if line and not line.startswith(("#", "import ", "import\t"))
            )
        elif entry.name.startswith("__editable__") and entry.suffix == ".py":
            yield from _roots_mapped_in(_text(entry))
        elif entry.is_symlink():
            yield entry.resolve().parent


def _roots_mapped_in(text: str) -> Iterator[Path]:
    for literal in _MAPPING.findall(text):
        try:
            mapping = ast.literal_eval(literal)
        except (ValueError, SyntaxError):
            continue  # another form of this file: the gate that needs it fails the probe, and says so
        for module, place in mapping.items():
            parts = str(module).split(".")
            path = Path(str(place))
            if path.with_suffix("").parts[-len(parts) :] == tuple(parts):
                yield path.parents[len(parts) - 1]


def _text(path: Path) -> str:
    """Return the text of a small file; nothing where it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST)
    except OSError:
        return ""

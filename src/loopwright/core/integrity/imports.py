"""Find what Python or JavaScript source imports from its own project: paths without file endings."""

import posixpath
import re
from collections.abc import Iterator
from typing import Final

_PYTHON: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*|[^#\n]*)|import[ \t]+([\w.][\w., \t]*))",
    re.MULTILINE,
)
_NODE: Final = re.compile(
    r"(?:\brequire(?:\.resolve)?\(|\bfrom\s*|\bimport\s*\(?)\s*['\"`]([^'\"`\s]+)['\"`]"
)
_NODE_ENDS: Final = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
_INDEX: Final = ("__init__", "index", "__main__")


def imported(path: str, text: str) -> Iterator[str]:
    """Yield the possible paths of what a file imports, without endings; not every path need exist."""
    folder = posixpath.dirname(path)
    if path.endswith((".py", ".pyi")):
        yield from _of_python(text, folder)
    elif path.endswith(_NODE_ENDS):
        for name in _NODE.findall(text):
            if name.startswith("."):
                yield posixpath.normpath(posixpath.join(folder, name))
            elif "/" in name:
                yield name.lstrip("@~#/")  # by an alias for a folder of the project


def _of_python(text: str, folder: str) -> Iterator[str]:
    for module, names, whole in _PYTHON.findall(text):
        if whole:
            for each in whole.split(","):
                name = each.split()[0] if each.split() else ""
                yield from _places(name, folder)
            continue
        yield from _places(module, folder)
        for each in names.split(","):
            word = each.strip(" \t\n()").partition(" ")[0]
            if word.isidentifier():
                yield from _places(f"{module}{'' if module.endswith('.') else '.'}{word}", folder)


def _places(module: str, folder: str) -> Iterator[str]:
    name = module.lstrip(".")
    path = name.replace(".", "/")
    if up := len(module) - len(name):
        yield posixpath.normpath(posixpath.join(folder, *[".."] * (up - 1), path))
    elif path:
        yield path
        if folder:
            yield posixpath.join(folder, path)


def files_at(place: str) -> tuple[str, ...]:
    """Return the files that an import path may mean."""
    if place.endswith((".py", *_NODE_ENDS)):
        return (place,)
    node = tuple(place + end for end in _NODE_ENDS)
    return (
        *(f"{place}.py", f"{place}/__init__.py"),
        *node,
        *(f"{place}/index{end}" for end in _NODE_ENDS),
        place,
    )


def module_at(path: str) -> str:
    """Return the path by which a file is imported."""
    stem = posixpath.splitext(path)[0]
    return posixpath.dirname(stem) if posixpath.basename(stem) in _INDEX else stem


def means(place: str, path: str) -> bool:
    """Return whether an import path may mean this file, wherever modules are searched for."""
    found = posixpath.splitext(place)[0] if place.endswith((".py", *_NODE_ENDS)) else place
    mine = module_at(path)
    return mine == found or ("/" in found and mine.endswith(f"/{found}"))

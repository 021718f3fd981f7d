"""Write down from where a Python process loaded modules of some names; runs as the process's `sitecustomize`.

Below this file's folder, `names.json` lists the top-level names; each process writes one file when it ends.
"""

from __future__ import annotations  # older Pythons load it too

import atexit
import json
import os
import sys


def write(folder: str, names: frozenset[str]) -> None:
    """Write one file about this process."""
    loaded = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] in names and isinstance(file, str):
            loaded[name] = os.path.realpath(file)
    tests = "_pytest" in sys.modules or "unittest.main" in sys.modules
    with open(os.path.join(folder, f"{os.getpid()}.seen"), "w", encoding="utf-8") as out:  # noqa: PTH118, PTH123
        json.dump({"tests": tests, "loaded": loaded}, out)


def begin() -> None:
    """Arrange for it, in the folder that this file lies in."""
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - started before anything is loaded
    with open(os.path.join(folder, "names.json"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        atexit.register(write, folder, frozenset(json.load(file)))


if __name__ == "sitecustomize":
    begin()

"""Finding the keepers of a home from outside: they are forked from one process, so their command lines tell nothing."""

import json
from pathlib import Path

import psutil


def living_keepers(home: Path) -> list[psutil.Process]:
    """Return the keepers of a home's runs that are alive, as each of them wrote itself down."""
    found = []
    for status in home.glob("runs/*/status.json"):
        try:
            process = psutil.Process(json.loads(status.read_text())["keeper"]["pid"])
            if "keeper" in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (OSError, ValueError, KeyError, psutil.Error):
            continue  # not yet written, or over
    return found

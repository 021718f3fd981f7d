"""The machine that figures were measured on, without anything that names it."""

import os
import platform
import re
import sqlite3
import subprocess
from pathlib import Path


def describe() -> dict[str, str]:
    """Return what matters for the figures."""
    return {
        "processor": f"{os.cpu_count()} × {_processor()}",
        "memory": f"{_memory_gb():.0f} GB",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "git": _git(),
        "sqlite": sqlite3.sqlite_version,
        "load when it began": f"{os.getloadavg()[0]:.2f}",
    }


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _git() -> str:
    done = subprocess.run(["git", "version"], capture_output=True, text=True, check=True)
    return done.stdout.removeprefix("git version").strip()

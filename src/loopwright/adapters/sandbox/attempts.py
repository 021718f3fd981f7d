"""The program that tries to get out of a sandbox: `python -I -S attempts.py WHERE.json`, run inside of it.

Standard library only. It prints which of its attempts succeeded, as JSON; its parent looks from outside at what
really happened.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write(path: str) -> None:
    """Append to a file, or make it."""
    with Path(path).open("a") as file:
        file.write("written from inside\n")


def connect(port: int) -> None:
    """Connect to a port of the machine itself."""
    with socket.create_connection(("127.0.0.1", port), timeout=2):
        return


def through_a_link(link: str, target: str) -> None:
    """Write through a link that lies where writing is allowed."""
    Path(link).symlink_to(target)
    write(link)


def main(told: str) -> None:
    """Try everything, and say what could be done."""
    where: dict[str, Any] = json.loads(told)
    outside = where["outside"]
    attempts: dict[str, Callable[[], object]] = {
        "workspace": lambda: write(where["workspace"] + "/made"),
        "temporary": lambda: write(os.environ["TMPDIR"] + "/made"),
        "outside": lambda: write(outside),
        "link": lambda: through_a_link(where["workspace"] + "/link", outside),
        "secret": lambda: Path(where["secret"]).read_text(),
        "signal": lambda: os.kill(where["pid"], signal.SIGKILL),
        "root": lambda: list(Path("/proc", str(where["pid"]), "root").iterdir()),
        "network": lambda: connect(where["port"]),
    }
    done = {}
    for name, attempt in attempts.items():
        try:
            attempt()
            done[name] = ""
        except OSError as refused:
            done[name] = refused.strerror or str(refused)
    print(json.dumps(done))


if __name__ == "__main__":
    main(sys.argv[1])

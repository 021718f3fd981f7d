"""Record a command whose tests all ran inside a wider command of the same gate, without running it.

Standard library only: the gate's runner loads it by its path.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def tests_of(is_wanted: Callable[[str], bool], seen: bytes) -> set[str]:
    """Return the wanted tests that a witness saw; empty unless at least one passed."""
    ends: dict[str, set[str]] = {}
    for line in lines_of(seen):
        if line.get("e") == "report" and is_wanted(str(line.get("id"))):
            ends.setdefault(str(line["id"]), set()).add(str(line.get("outcome")))
    return set(ends) if {"passed"} in ends.values() else set()


def below(path: str, seen: bytes) -> Callable[[str], bool]:
    """Return a function that says whether a test is below a path that a command names.

    A test's id starts with the path of a file, a folder or another test. Go names tests by package: a path
    is one package, and the witness wrote down the package path of the folder that the command ran in.
    """
    package = next((str(line["at"]) for line in lines_of(seen) if line.get("at")), "")
    if package:
        start = f"{package if path == '.' else f'{package}/{path}'}::"
        return lambda test: test.startswith(start)
    return lambda test: test.startswith(path) and test[len(path) : len(path) + 1] in ("", "/", ":", "[")


def lines_of(seen: bytes) -> list[dict[str, Any]]:
    """Return the lines of a witness that have the right shape."""
    found = []
    for line in seen.split(b"\n"):
        try:
            read = json.loads(line)
        except ValueError:
            continue  # torn where the process was ended, or not ours
        if isinstance(read, dict):
            found.append(read)
    return found


def narrowed(seen: bytes, wanted: Callable[[str], bool], names: dict[str, str] | None = None) -> bytes:
    """Return what a witness saw of some tests; `names` are the canaries of the command that it is recorded for."""
    kept = []
    for line in lines_of(seen):
        if "id" in line and not wanted(str(line["id"])):
            continue
        if isinstance(line.get("ids"), list):
            line["ids"] = [one for one in line["ids"] if wanted(str(one))]
        if line.get("e") == "canary" and names is not None:
            line["name"] = names.get(str(line.get("kind")), "")
        kept.append(json.dumps(line).encode() + b"\n")
    return b"".join(kept)


def record(
    n: int, command: dict[str, Any], folder: Path, *, seen: bytes, tests: int, by: str
) -> dict[str, Any]:
    """Write the files of a command that was not run, and return its record."""
    text = f"not run separately: its {tests} tests passed on this tree in the command {by!r}\n"
    (folder / f"{n}.seen").write_bytes(seen)
    (folder / f"{n}.out").write_text(text, encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {
        "name": command["name"],
        "command": command["command"],
        "error": "",
        "exit_code": 0,
        "timed_out": False,
        "seen": {"file": f"{n}.seen", "sha256": hashlib.sha256(seen).hexdigest()},
        "unwatched": [],
        "duration_s": 0.0,
        "output_file": f"{n}.out",
        "output_sha256": digest,
        "output_bytes": len(text.encode()),
        "kept_sha256": digest,
        "kept_bytes": len(text.encode()),
        "lost": {},
        "tail": text,
        "junit": None,
        "changed": [],
        "touched": [],
    }


def within(n: int, job: dict[str, Any], records: dict[int, dict[str, Any]]) -> dict[str, Any] | None:
    """Return the record of a command whose tests all ran in a wider one that passed; None when it has to run."""
    asked = job["within"][n - 1]
    if asked is None:
        return None
    wide = records[asked["by"]]
    if wide["error"] or wide["exit_code"] != 0 or wide["timed_out"] or wide["unwatched"] or not wide["seen"]:
        return None
    folder = Path(job["directory"])
    seen = (folder / wide["seen"]["file"]).read_bytes()
    wanted = [below(path, seen) for path in asked["paths"]]
    found = [tests_of(each, seen) for each in wanted]
    if not all(found):
        return None
    tests = set().union(*found)
    names = job["witness"]["commands"][n - 1]["names"]
    kept = narrowed(seen, lambda test: any(each(test) for each in wanted), names)
    return record(n, job["commands"][n - 1], folder, seen=kept, tests=len(tests), by=wide["name"])

"""Run the suite against an adapter: `python -m loopwright.testing.conformance MODULE:SUBJECT [BEHAVIOUR ...]`."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from loopwright.testing.conformance import BEHAVIOURS, Subject, check


def main(arguments: Sequence[str]) -> int:
    """Play the behaviours one after the other, and tell about each."""
    parser = argparse.ArgumentParser(prog="python -m loopwright.testing.conformance", description=__doc__)
    parser.add_argument("subject", metavar="MODULE:SUBJECT", help="where the subject stands")
    parser.add_argument("behaviour", nargs="*", help="all of them unless given")
    given = parser.parse_args(arguments)
    module, _, name = given.subject.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        subject = getattr(import_module(module), name or "SUBJECT")
    except (ImportError, AttributeError) as problem:
        parser.error(f"no subject at {given.subject}: {problem}")
    if not isinstance(subject, Subject):
        parser.error(f"{given.subject} is not a Subject")
    if unknown := sorted(set(given.behaviour) - set(BEHAVIOURS)):
        parser.error(f"unknown behaviour {', '.join(unknown)}; known are: {', '.join(BEHAVIOURS)}")
    failed = [one for one in given.behaviour or BEHAVIOURS if not _passes(subject, one)]
    sys.stdout.write(
        f"{subject.name}: {len(failed)} failed\n" if failed else f"{subject.name}: all is well\n"
    )
    return 1 if failed else 0


def _passes(subject: Subject, behaviour: str) -> bool:
    if excuse := subject.excuse(behaviour):
        _tell(f"-       {behaviour}: {excuse}")
        return True
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        found = asyncio.run(check(subject, behaviour, Path(folder) / "place"))
    _tell(f"{'FAILED' if found else 'ok    '}  {behaviour} ({time.monotonic() - began:.1f} s)")
    for problem in found:
        _tell(f"          {problem}")
    return not found


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

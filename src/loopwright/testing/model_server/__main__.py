"""Play a scenario until interrupted: `python -m loopwright.testing.model_server SCENARIO.json [--port PORT]`.

The address is the first line on stdout; each request is told on stderr.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from loopwright.core.values.errors import UserError
from loopwright.testing.model_server.scenario import load
from loopwright.testing.model_server.server import Asked, ModelServer


def main(arguments: Sequence[str]) -> int:
    """Serve until a signal comes."""
    parser = argparse.ArgumentParser(prog="python -m loopwright.testing.model_server", description=__doc__)
    parser.add_argument("scenario", type=Path, help="a JSON file")
    parser.add_argument("--port", type=int, default=0, help="any free one unless given")
    given = parser.parse_args(arguments)
    try:
        server = ModelServer(load(given.scenario), port=given.port, heard=_tell)
    except UserError as problem:
        sys.stderr.write(f"{problem}{f' ({problem.hint})' if problem.hint else ''}\n")
        return 2
    except (OSError, OverflowError) as problem:
        sys.stderr.write(f"port {given.port} cannot be used: {problem}\n")
        return 2
    stops = {signal.SIGINT, signal.SIGTERM}
    # Blocked before any thread is started, so that all of them leave these signals to the wait below.
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    with server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        signal.sigwait(stops)
    return 0


def _tell(asked: Asked) -> None:
    words = " ".join(asked.prompt.split())[-60:]
    sys.stderr.write(f"{asked.path} {asked.model} turn {asked.answered + 1}: {words}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

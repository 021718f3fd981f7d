"""Loaded last by the server of `tests.loaded`: what each program would do once, done once for all that it forks.

It loads every adapter, and carries out a small plan. What that leaves behind are modules, statements that need not be
compiled again, and the like: no thread, no file, nothing of the plan.
"""

import gc
import json
import logging
import os
import sys
from contextlib import chdir, redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.acceptance.sandbox import Sandbox, task
from tests.keeping import living_keepers
from tests.loaded import PATH
from tests.waiting import eventually

from loopwright.adapters import registry
from loopwright.cli.main import call

_LATE = (
    "anyio._backends._asyncio",
    "encodings.ascii",
    "encodings.utf_8_sig",
    "getpass",
    "loopwright.adapters.processes.keepers",
    "loopwright.server.asgi",
    "loopwright.server.connections",
    "loopwright.server.daemon",
    "loopwright.server.mcp.endpoint",
    "psutil",
    "rich._emoji_codes",
    "rich._unicode_data.unicode17-0-0",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.h11_impl",
)
"""What commands load only when they come to need it."""
_COMMANDS = (
    ("status", "--json"),
    ("show", "warm", "--json"),
    ("logs", "warm"),
    ("receipt", "show", "--json"),
)


def warm() -> None:
    """Do it all."""
    sys.path[:] = json.loads(os.environ[PATH])
    for name in _LATE:
        import_module(name)
    registry.sources()
    for agent in registry.known_agents():
        registry.agent(agent)
    ours = dict(os.environ)
    with TemporaryDirectory(prefix="lw-warm-", ignore_cleanup_errors=True) as folder:
        sandbox = Sandbox(Path(folder))
        sandbox.play({"warm": [[{"write": "warm", "text": "warm\n"}]]})
        plan = sandbox.plan("warm", [task("warm", "test -s warm")])
        os.environ.clear()
        os.environ.update(sandbox.program.env)
        try:
            with chdir(sandbox.repository), redirect_stdout(StringIO()) as said:
                for words in (("run", str(plan)), *_COMMANDS):
                    assert call(words) == 0, (words, said.getvalue())
            eventually(lambda: not living_keepers(sandbox.home), timeout=100)
        finally:
            os.environ.clear()
            os.environ.update(ours)
            _forget_the_log()
    gc.collect()
    gc.freeze()


def _forget_the_log() -> None:
    log = logging.getLogger("loopwright")
    for handler in list(log.handlers):
        log.removeHandler(handler)
        handler.close()
    log.setLevel(logging.NOTSET)


warm()

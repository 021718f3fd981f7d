"""Loaded last by the server of `tests.loaded`: what each program would do once, done once for all that it forks."""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.loaded import PATH

from loopwright.adapters import registry
from loopwright.adapters.store.sql import SqlStore

_LATE = (
    "anyio._backends._asyncio",
    "encodings.ascii",
    "encodings.utf_8_sig",
    "getpass",
    "loopwright.adapters.dispatch.local",
    "loopwright.adapters.marked",
    "loopwright.adapters.sources.bounded_yaml",
    "loopwright.engine.underway",
    "psutil",
    "rich._emoji_codes",
    "rich._unicode_data.unicode17-0-0",
    "ruamel.yaml",
    "sqlalchemy.dialects.sqlite",
)
"""What commands load only when they come to need it."""


def warm() -> None:
    """Load every adapter, and make a database."""
    sys.path[:] = json.loads(os.environ[PATH])
    for name in _LATE:
        import_module(name)
    registry.sources()
    for agent in registry.known_agents():
        registry.agent(agent)
    registry.gate("commands")
    with TemporaryDirectory(prefix="lw-warm-") as folder:
        SqlStore.open(Path(folder) / "home.db").close_sync()


warm()

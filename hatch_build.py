"""Take htmx and its extension for server-sent events from a wheel: this repository keeps no copy."""

from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STATIC = "src/loopwright/server/pages/static"
TAKEN = {"htmx.min.js": "htmx-4.min.js", "hx-sse.min.js": "ext/hx-sse-4.min.js"}


class TakeHtmx(BuildHookInterface[Any]):
    """Copies the files beside the pages; files that are there already stay."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the hook's signature
        """Copy what is missing."""
        for name, source in TAKEN.items():
            target = Path(self.root, STATIC, name)
            if not target.exists():
                copyfile(_folder() / source, target)
            build_data["artifacts"].append(f"{STATIC}/{name}")


def _folder() -> Path:
    found = find_spec("django_htmx")
    if found is None or found.origin is None:
        raise RuntimeError("building needs the package django-htmx, which carries htmx; build with isolation")
    return Path(found.origin).parent / "static" / "django_htmx"

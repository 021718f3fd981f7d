"""The files of the pages: style sheets, scripts and icons."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from loopwright.server.problems import HttpProblem

router = APIRouter(prefix="/static", include_in_schema=False)

_KINDS: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_A_YEAR: Final = "public, max-age=31536000, immutable"
_TOGETHER: Final = {"pages.css": ("app.css", "reading.css", "lists.css")}
"""Files that are sent as one: a page is drawn as soon as all its style sheets are there."""


@cache
def tag() -> str:
    """Return what addresses of files end with: another text once any of them has changed."""
    found = sorted((one for one in _folder().iterdir() if one.is_file()), key=lambda one: one.name)
    return sha256(b"".join(one.read_bytes() for one in found)).hexdigest()[:12]


@router.get("/{name}")
async def file(name: str) -> Response:
    """Return one file."""
    kind = _KINDS.get(name.rpartition(".")[2])
    found = [_folder() / one for one in _TOGETHER.get(name, (name,))]
    if kind is None or "/" in name or not all(one.is_file() for one in found):
        raise HttpProblem("not_found", f"there is no file {name}")
    headers = {"Cache-Control": _A_YEAR, "X-Content-Type-Options": "nosniff"}
    return Response(b"\n".join(one.read_bytes() for one in found), media_type=kind, headers=headers)


def _folder() -> Traversable:
    return files("loopwright.server.pages") / "static"

"""The files of the pages: style sheets, scripts and icons."""

from importlib.resources import files
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from loopwright.server.problems import HttpProblem

router = APIRouter(prefix="/static", include_in_schema=False)

_KINDS: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_A_DAY: Final = "public, max-age=86400"


@router.get("/{name}")
async def file(name: str) -> Response:
    """Return one file; its address has the version, so that it can be kept."""
    found = files("loopwright.server.pages") / "static" / name
    kind = _KINDS.get(name.rpartition(".")[2])
    if kind is None or "/" in name or not found.is_file():
        raise HttpProblem("not_found", f"there is no file {name}")
    headers = {"Cache-Control": _A_DAY, "X-Content-Type-Options": "nosniff"}
    return Response(found.read_bytes(), media_type=kind, headers=headers)

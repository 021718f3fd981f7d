"""Templates that loops can be made from: those in the project's folder, and those that were registered in the home."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from loopwright.adapters.sources.spec.loop_template import LoopTemplate, Parameter, read_template
from loopwright.core.rows.model import Project
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import BadPlan, NotFound, UserError
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import seen_project

__all__ = [
    "LoopTemplate",
    "Parameter",
    "RegisteredTemplate",
    "find_template",
    "list_templates",
    "register_template",
    "remove_template",
]

FOLDER: Final = "loopwright.templates"
"""The folder of a project with its own templates; `templates` in the home has those of every project."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_LARGEST: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTemplate:
    """A template that loops of a project can be made from."""

    name: str
    place: Literal["project", "registered", "home"]
    """In the project's folder, registered for the project, or in the home for every project."""
    template: LoopTemplate | None
    """None if it cannot be used."""
    problems: tuple[str, ...] = ()
    """Why it cannot be used, each with its line."""


async def list_templates(at: Session, caller: Caller, project_id: str) -> tuple[RegisteredTemplate, ...]:
    """Return the templates of a project by name; of two with the same name, the project's own one."""
    project = await at.home.store.read(lambda tx: seen_project(tx, caller, project_id))
    found: dict[str, RegisteredTemplate] = {}
    for place, folder in _folders(at, project):
        for path in sorted(folder.glob("*.yaml")):
            if _NAME.fullmatch(path.stem) and path.stem not in found:
                found[path.stem] = _read(path, place)
    return tuple(found[name] for name in sorted(found))


def find_template(at: Session, project: Project, name: str) -> LoopTemplate:
    """Return a registered template of a project; raise what is wrong with it."""
    for _, folder in _folders(at, project) if _NAME.fullmatch(name) else ():
        path = folder / f"{name}.yaml"
        if path.is_file():
            return read_template(name, _content(path))
    raise NotFound(f"there is no template {name}", code="template_not_found")


async def register_template(
    at: Session, caller: Caller, project_id: str, name: str, text: str
) -> RegisteredTemplate:
    """Register a template for a project, or replace it; raise everything that is wrong with it."""
    project = await at.home.store.read(lambda tx: seen_project(tx, caller, project_id))
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{name!r} cannot be the name of a template",
            code="template_name_wrong",
            hint="use lowercase letters, digits and -",
        )
    template = read_template(name, text.encode())
    folder = _registered(at, project)
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{name}.{os.getpid()}"
    draft.write_text(text, encoding="utf-8")
    draft.replace(folder / f"{name}.yaml")
    return RegisteredTemplate(name=name, place="registered", template=template)


async def remove_template(at: Session, caller: Caller, project_id: str, name: str) -> None:
    """Remove a registered template; one that is not there is removed already."""
    project = await at.home.store.read(lambda tx: seen_project(tx, caller, project_id))
    if _NAME.fullmatch(name):
        (_registered(at, project) / f"{name}.yaml").unlink(missing_ok=True)


def _folders(
    at: Session, project: Project
) -> Iterator[tuple[Literal["project", "registered", "home"], Path]]:
    yield "project", Path(project.path) / project.subfolder / FOLDER
    yield "registered", _registered(at, project)
    yield "home", at.home.root / "templates"


def _registered(at: Session, project: Project) -> Path:
    return at.home.root / "templates" / project.id


def _read(path: Path, place: Literal["project", "registered", "home"]) -> RegisteredTemplate:
    try:
        return RegisteredTemplate(
            name=path.stem, place=place, template=read_template(path.stem, _content(path))
        )
    except BadPlan as wrong:
        return RegisteredTemplate(name=path.stem, place=place, template=None, problems=wrong.problems)


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise BadPlan(path.name, (f"{path.name}: it is larger than 1 MB",))
    return content

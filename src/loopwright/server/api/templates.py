"""Templates that loops can be made from."""

from http import HTTPStatus
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from loopwright.server.context import Admin, Home, Reader
from loopwright.server.shapes import SnakeRequest
from loopwright.services.remote import templates

router = APIRouter(prefix="/api/projects/{project_id}/templates", tags=["templates"])


class ParameterDocument(BaseModel):
    """A value that a template asks for."""

    description: str
    default: str | None
    pattern: str | None
    choices: list[str]


class TemplateDocument(BaseModel):
    """A template."""

    name: str
    place: Literal["project", "registered", "home"]
    description: str
    parameters: dict[str, ParameterDocument]
    problems: list[str] = Field(description="The problems of the template, each with its line.")


class TemplateText(SnakeRequest):
    """The YAML text of a template."""

    text: str = Field(max_length=500_000)


@router.get("")
async def list_templates(project_id: str, home: Home, caller: Reader) -> list[TemplateDocument]:
    """List the templates that loops of a project can be made from."""
    return [_document(one) for one in await templates.list_templates(home.at, caller, project_id)]


@router.put("/{name}")
async def register_template(
    project_id: str, name: str, wanted: TemplateText, home: Home, caller: Admin
) -> TemplateDocument:
    """Register a template for a project, or replace it."""
    return _document(await templates.register_template(home.at, caller, project_id, name, wanted.text))


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT)
async def remove_template(project_id: str, name: str, home: Home, caller: Admin) -> None:
    """Remove a registered template."""
    await templates.remove_template(home.at, caller, project_id, name)


def _document(registered: templates.RegisteredTemplate) -> TemplateDocument:
    template = registered.template
    return TemplateDocument(
        name=registered.name,
        place=registered.place,
        description=template.description if template else "",
        parameters={
            name: ParameterDocument(
                description=one.description,
                default=one.default,
                pattern=one.pattern,
                choices=list(one.choices),
            )
            for name, one in (template.parameters if template else {}).items()
        },
        problems=list(registered.problems),
    )

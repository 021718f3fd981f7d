"""Templates of plans: a plan with placeholders, and the parameters that fill them.

A value can never become a command or a path by itself. Where a placeholder is not prose, its parameter has to say
which values it takes, with `choices` or a `pattern`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopwright.adapters.sources.text.located import Located, inner
from loopwright.adapters.sources.text.plan_file import document
from loopwright.adapters.sources.text.problems import Problems, Unreadable, refuse
from loopwright.adapters.sources.text.reading import located_at
from loopwright.adapters.sources.text.schema_check import check_schema
from loopwright.config.nearest import did_you_mean, quoted
from loopwright.config.publish import SCHEMA_DIALECT
from loopwright.core.values.errors import BadPlan

LONGEST_VALUE: Final = 20_000
_PLACEHOLDER: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_PARAMETER_NAME: Final = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"
_PROSE: Final = frozenset({"title", "description", "criteria", "phase"})
"""Keys of a plan and of a task that an agent reads and no program executes."""

_PARAMETER: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "description": {"type": "string", "maxLength": 2_000},
        "default": {"type": "string", "maxLength": LONGEST_VALUE},
        "pattern": {"type": "string", "minLength": 1, "maxLength": 1_000},
        "choices": {"type": "array", "minItems": 1, "items": {"type": "string"}},
    },
}
_SHAPE: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["plan"],
    "properties": {
        "description": {"type": "string", "maxLength": 2_000},
        "parameters": {"type": "object"},
        "plan": {"type": "object"},
    },
}
TEMPLATE: Final[Mapping[str, Any]] = {
    "$schema": SCHEMA_DIALECT,
    "title": "Loopwright: a template of a plan",
    **_SHAPE,
    "properties": {
        **_SHAPE["properties"],
        "parameters": {
            "type": "object",
            "propertyNames": {"pattern": _PARAMETER_NAME},
            "additionalProperties": _PARAMETER,
        },
    },
}
"""The plan itself is checked when its placeholders are filled: only then is it one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A value that a template asks for."""

    description: str = ""
    default: str | None = None
    """Used if no value is given; without one, a value is required."""
    pattern: str | None = None
    """A regular expression that the whole value matches."""
    choices: tuple[str, ...] = ()

    def wrong(self, value: str) -> str:
        """Return what is wrong with a value; empty if it may be used."""
        if len(value) > LONGEST_VALUE or "\0" in value:
            return f"expected a text of at most {LONGEST_VALUE:,} characters"
        if self.choices and value not in self.choices:
            return f"expected one of {', '.join(map(quoted, self.choices))}"
        if self.pattern is not None and re.fullmatch(self.pattern, value) is None:
            return f"expected a text that matches {self.pattern}"
        return ""

    @property
    def is_limited(self) -> bool:
        """Return whether the author says which values it takes."""
        return bool(self.choices) or self.pattern is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTemplate:
    """A plan with placeholders."""

    name: str
    description: str
    parameters: Mapping[str, Parameter]
    plan: Mapping[str, Any]

    def filled(self, values: Mapping[str, str]) -> str:
        """Return the text of the plan file with these values, or raise `BadPlan` with what is wrong with them."""
        problems = [
            f"values.{name}: unknown parameter{did_you_mean(name, tuple(self.parameters))}"
            for name in values
            if name not in self.parameters
        ]
        used = {}
        for name, parameter in self.parameters.items():
            value = values.get(name, parameter.default)
            if value is None:
                problems.append(f"values.{name}: this value is required")
            elif wrong := parameter.wrong(value):
                problems.append(f"values.{name}: {wrong}")
            else:
                used[name] = value
        if problems:
            raise BadPlan(f"template {self.name}", tuple(problems))
        return json.dumps(_replaced(self.plan, used), indent=2, ensure_ascii=False) + "\n"


def read_template(name: str, content: bytes) -> LoopTemplate:
    """Return a template, or raise `BadPlan` with everything that is wrong with it, each with its line."""
    file = f"{name}.yaml"
    try:
        found = document(file, content)
    except Unreadable as broken:
        raise located_at(file, broken) from broken
    problems = Problems(file)
    check_schema(found, _SHAPE, problems)
    refuse(file, problems)
    parameters = _parameters(found, problems)
    plan = inner(found, "plan")
    assert plan is not None, "the schema requires it"
    for line, place, text, is_prose in _texts(plan, "plan", is_prose=False):
        for key in dict.fromkeys(_PLACEHOLDER.findall(text)):
            if key not in parameters:
                problems.note(
                    line, place, f"unknown placeholder {quoted(key)}{did_you_mean(key, tuple(parameters))}"
                )
            elif not is_prose and not parameters[key].is_limited:
                problems.note(
                    line,
                    place,
                    f"the parameter {quoted(key)} needs choices or a pattern, because this is not prose",
                )
    refuse(file, problems)
    description = inner(found, "description")
    return LoopTemplate(
        name=name,
        description=str(description.plain()) if description is not None else "",
        parameters=parameters,
        plan=plan.plain(),
    )


def _parameters(found: Located, problems: Problems) -> dict[str, Parameter]:
    table = inner(found, "parameters")
    parameters = {}
    for name, located in (table.value if table is not None and isinstance(table.value, dict) else {}).items():
        place, before = f"parameters.{quoted(name)[1:-1]}", problems.count
        if re.fullmatch(_PARAMETER_NAME, name) is None:
            problems.note(located.line, place, "the name of a parameter has letters, digits and _ only")
        check_schema(located, _PARAMETER, problems, place)
        if problems.count > before:
            continue
        said = located.plain()
        parameter = Parameter(**{**said, "choices": tuple(said.get("choices", ()))})
        try:
            wrong = parameter.wrong(parameter.default) if parameter.default is not None else ""
            re.compile(parameter.pattern or "")
        except re.error as broken:
            problems.note(located.line, f"{place}.pattern", f"this is not a regular expression: {broken}")
            continue
        if wrong:
            problems.note(located.line, f"{place}.default", wrong)
        parameters[name] = parameter
    return parameters


def _texts(located: Located, place: str, *, is_prose: bool) -> Iterator[tuple[int, str, str, bool]]:
    """Yield every text of a plan with its line and place, and whether it is prose."""
    if isinstance(located.value, dict):
        for key, value in located.value.items():
            yield located.line, place, key, False
            yield from _texts(value, f"{place}.{key}", is_prose=key in _PROSE)
    elif isinstance(located.value, list):
        for n, value in enumerate(located.value):
            yield from _texts(value, f"{place}[{n}]", is_prose=is_prose)
    elif isinstance(located.value, str):
        yield located.line, place, located.value, is_prose


def _replaced(value: Any, used: Mapping[str, str]) -> Any:
    """Return a tree with the placeholders in its texts filled; the values are not looked at again."""
    if isinstance(value, Mapping):
        return {key: _replaced(one, used) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, used) for one in value]
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda found: used[found[1]], value)
    return value

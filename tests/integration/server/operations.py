"""Every operation of the OpenAPI document, with the parts of its path."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCUMENT: Mapping[str, Any] = json.loads(Path("docs/reference/openapi.json").read_text())


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    body: Mapping[str, Any] | None
    """The schema of its body."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def names(self) -> list[str]:
        """The names in its path."""
        return re.findall(r"{(\w+)}", self.path)

    def fill(self, values: Mapping[str, str]) -> str:
        """Return its path with values for these names."""
        return re.sub(r"{(\w+)}", lambda found: values[found[1]], self.path)

    @property
    def fields(self) -> set[str]:
        """The names of all fields of its body, at any depth."""
        return _fields(self.body) if self.body else set()

    @property
    def names_in_body(self) -> set[str]:
        """The names of the fields that its body itself has."""
        return _own_fields(self.body) if self.body else set()


def _own_fields(schema: Mapping[str, Any]) -> set[str]:
    if "$ref" in schema:
        return _own_fields(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    either = {name for one in schema.get("anyOf", ()) for name in _own_fields(one)}
    return either | set(schema.get("properties", ()))


def _fields(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return {name for one in schema for name in _fields(one)}
    if not isinstance(schema, dict):
        return set()
    if "$ref" in schema:
        return _fields(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    inner = {name for one in schema.values() for name in _fields(one)}
    return inner | set(schema.get("properties", ()))


def _body(operation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    content = operation.get("requestBody", {}).get("content", {})
    schema: Mapping[str, Any] | None = content.get("application/json", {}).get("schema")
    return schema


OPERATIONS = [
    Operation(method=method.upper(), path=path, body=_body(operation))
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]

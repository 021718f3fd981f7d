"""The published JSON Schemas, by name."""

from typing import Any

from loopwright.adapters.sources.schemas import source_schemas
from loopwright.config.publish import configuration_schema
from loopwright.core.receipts.schemas import document_schemas


def published_schema(name: str) -> Any:
    """Return a schema by the name that `loopwright config schema` has for it."""
    if name in ("config", "user"):
        return configuration_schema(machine=name == "user")
    return {**source_schemas(), **document_schemas()}[name]

"""Schemas for editors, in the state folder of a project: of its loopwright.toml and of plan files."""

import json
from pathlib import Path
from typing import Final

from loopwright.adapters.detect.survey import PROJECT_SCHEMA
from loopwright.adapters.home.statefiles import ProjectStateFiles
from loopwright.services.settings import published_schema

PLAN_SCHEMA: Final = ".loopwright/plan.schema.json"


def write_schemas(folder: Path) -> None:
    """Write both schemas below the folder of a loopwright.toml; `#:schema` and `$schema=` lines name them."""
    files = ProjectStateFiles()
    for place, name in ((PROJECT_SCHEMA, "config"), (PLAN_SCHEMA, "plan")):
        file = folder / place
        text = json.dumps(published_schema(name), indent=2, ensure_ascii=False) + "\n"
        files.put_top(file.parent, file.name, text)

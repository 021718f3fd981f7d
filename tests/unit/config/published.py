"""The files that are made from code: `make docs` writes them, `make check` and the tests compare them.

With `--check`, this program changes nothing and names the files that are out of date.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from loopwright.adapters.sources.schemas import source_schemas
from loopwright.adapters.sources.spec.plan_format import (
    PLAN_KEYS,
    TASK_KEYS,
    render_gate_table,
    render_keys_table,
)
from loopwright.config.publish import configuration_schema, identified, render_settings_table
from loopwright.core.receipts.schemas import document_schemas
from loopwright.core.rows.loop_files import LOOP_FILES
from loopwright.core.rows.state_files import state_schemas

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "src" / "loopwright" / "schemas"


def between(text: str, name: str, body: str) -> str:
    """Return the text with what stands between two markers replaced."""
    start, end = f"<!-- {name}: generated, do not edit -->\n", f"<!-- /{name} -->"
    before, found, rest = text.partition(start)
    assert found, f"the marker {start!r} is missing"
    _, found, after = rest.partition(end)
    assert found, f"the marker {end!r} is missing"
    return f"{before}{start}{body}{end}{after}"


def published() -> dict[Path, str]:
    """Return each file that is made from code with the text that it should have."""
    reference = ROOT / "docs" / "reference"
    configuration, plan_format = reference / "settings.md", reference / "plan-format.md"
    settings = between(
        configuration.read_text(encoding="utf-8"), "settings", "\n" + render_settings_table() + "\n"
    )
    plan = between(
        plan_format.read_text(encoding="utf-8"), "plan", "\n" + render_keys_table(PLAN_KEYS) + "\n"
    )
    plan = between(plan, "task", "\n" + render_keys_table(TASK_KEYS) + "\n")
    schemas = {
        "project.schema.json": configuration_schema(machine=False),
        "user.schema.json": configuration_schema(machine=True),
        **{
            f"{name}.schema.json": schema
            for name, schema in {
                **source_schemas(),
                **document_schemas(),
                **state_schemas(),
                **LOOP_FILES,
            }.items()
        },
    }
    return {
        configuration: settings,
        plan_format: between(plan, "gate", "\n" + render_gate_table() + "\n"),
        **{
            SCHEMAS / name: json.dumps(identified(_id(name), schema), indent=2, ensure_ascii=False) + "\n"
            for name, schema in schemas.items()
        },
    }


def _id(name: str) -> str:
    return name.removesuffix(".schema.json")


def main(arguments: Sequence[str], files: Mapping[Path, str]) -> int:
    """Write the files, or with --check name those that differ."""
    stale = {
        path: text
        for path, text in files.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    }
    if stale and "--check" in arguments:
        sys.stderr.write(f"Out of date: {', '.join(path.name for path in stale)}. Run `make docs`.\n")
        return 1
    for path, text in stale.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(files)} files, {len(stale)} changed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], published()))

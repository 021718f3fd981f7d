"""The shape of a plan file, once: checks, JSON Schema and documentation read the same tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopwright.adapters.sources.spec.plan_versions import VERSION
from loopwright.adapters.sources.text.held_out import HELD_OUT_SCHEMA
from loopwright.config.gates import GATE_KEYS, GATE_SCHEMA
from loopwright.config.groups import AGENT_NAME
from loopwright.config.publish import SCHEMA_DIALECT, settings_properties
from loopwright.core.policy.complexity import LEVELS

MAX_ID: Final = 128
MAX_TITLE: Final = 500
MAX_DESCRIPTION: Final = 200_000
MAX_CRITERION: Final = 5_000
MAX_ATTEMPTS: Final = 100
MAX_PRIORITY: Final = 1000
STATUS: Final = r"^(open|running|skipped|done( in [0-9a-f]{7,64})?|blocked(: .*)?)$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a plan or a task."""

    type: str
    description: str
    required: bool = False
    schema: Mapping[str, Any]


_TEXT: Final = {"type": ["string", "number"]}
_IDS: Final = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_TEXTS: Final = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_COMMANDS: Final = {"anyOf": [*GATE_SCHEMA["anyOf"], {"type": "array", "items": GATE_SCHEMA}]}

TASK_KEYS: Final[Mapping[str, Key]] = {
    "id": Key(
        type="text",
        required=True,
        description=f"Your name for the task, once in the plan, at most {MAX_ID} characters.",
        schema={**_TEXT, "maxLength": MAX_ID},
    ),
    "title": Key(
        type="text",
        required=True,
        description="What is to be done, on one line.",
        schema={**_TEXT, "maxLength": MAX_TITLE},
    ),
    "description": Key(
        type="text",
        description="Everything the agent needs to know about it.",
        schema={"type": "string", "maxLength": MAX_DESCRIPTION},
    ),
    "depends_on": Key(
        type="id or list of ids",
        description="Tasks that must be complete before this one starts.",
        schema=_IDS,
    ),
    "after": Key(
        type="id or list of ids",
        description="Tasks that come first. Unlike a dependency, one that fails or waits for you holds up nothing.",
        schema=_IDS,
    ),
    "manual": Key(
        type="true or false",
        description="A step that you do by hand: Loopwright asks you when its turn comes, and no agent gets it.",
        schema={"type": "boolean", "default": False},
    ),
    "acceptance": Key(
        type="gate or list of gates",
        description="Commands that must pass on the result; without any, the plan's gates decide.",
        schema=_COMMANDS,
    ),
    "held_out": Key(
        type="held-out check or list of them",
        description="Checks that must pass on the result too, and that the agent is never shown.",
        schema={"anyOf": [HELD_OUT_SCHEMA, {"type": "array", "items": HELD_OUT_SCHEMA}]},
    ),
    "criteria": Key(
        type="text or list of texts",
        description="What must be true of the result, in words. The agent sees it.",
        schema=_TEXTS,
    ),
    "scope": Key(
        type="glob or list of globs",
        description="Paths that the task changes, relative to the project: tasks that overlap take turns.",
        schema=_TEXTS,
    ),
    "may_change": Key(
        type="glob or list of globs",
        description="Tests and other judging files that the task may change even if it contradicts them; "
        "`FILE::TEST` names one test.",
        schema=_TEXTS,
    ),
    "priority": Key(
        type="number",
        description="Among tasks that are ready, the lower number starts first; 50 when left out.",
        schema={"type": "integer", "minimum": 0, "maximum": MAX_PRIORITY, "default": 50},
    ),
    "complexity": Key(
        type="text",
        description="How hard it is: `low`, `medium` or `high`; worked out from its words when left out.",
        schema={"enum": list(LEVELS)},
    ),
    "prove": Key(
        type="true or false",
        description="Its checks must fail without the work; also asked of the types fix, bug, bugfix and regression.",
        schema={"type": "boolean", "default": False},
    ),
    "phase": Key(
        type="text",
        description="The group that it belongs to.",
        schema={**_TEXT, "maxLength": MAX_TITLE},
    ),
    "type": Key(
        type="text",
        description="What kind of work it is, such as code, fix, docs or qa.",
        schema={**_TEXT, "maxLength": MAX_ID},
    ),
    "max_attempts": Key(
        type="number",
        description="How many judged attempts this task has, instead of the setting's.",
        schema={"type": "integer", "minimum": 1, "maximum": MAX_ATTEMPTS},
    ),
    "agent": Key(
        type="text",
        description="The agent for this task, instead of the setting's.",
        schema={"type": "string", "pattern": f"^{AGENT_NAME}$"},
    ),
    "model": Key(
        type="text",
        description="The model for this task, instead of the setting's.",
        schema={"type": "string", "maxLength": 200},
    ),
    "status": Key(
        type="text",
        description="Its status: `open`, `running`, `done`, `done in COMMIT`, `blocked: WHY` or `skipped`.",
        schema={"type": "string", "pattern": STATUS},
    ),
}

PLAN_KEYS: Final[Mapping[str, Key]] = {
    "version": Key(
        type="number",
        description=f"The version of this format that the plan is written in: {VERSION}; 1 when left out.",
        schema={"type": "integer", "minimum": 1, "maximum": VERSION, "default": 1},
    ),
    "title": Key(
        type="text",
        required=True,
        description="What the whole plan is for, on one line.",
        schema={**_TEXT, "maxLength": MAX_TITLE},
    ),
    "settings": Key(
        type="table",
        description="Settings for this plan; they beat those of the loop and of the files.",
        schema={
            "type": "object",
            "additionalProperties": False,
            "properties": settings_properties(machine=False, leave_out=("gates",)),
        },
    ),
    "gates": Key(
        type="list of gates",
        description="The checks of this plan, instead of the project's.",
        schema=_COMMANDS,
    ),
    "write_status": Key(
        type="boolean",
        description="Whether Loopwright writes the `status` of each task back to this file; off when left out.",
        schema={"type": "boolean", "default": False},
    ),
    "tasks": Key(
        type="list of tasks",
        required=True,
        description="The work, at least one task.",
        schema={
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": [name for name, key in TASK_KEYS.items() if key.required],
                "properties": {
                    name: {"description": key.description, **key.schema} for name, key in TASK_KEYS.items()
                },
            },
        },
    ),
}


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of a plan file."""
    return {
        "$schema": SCHEMA_DIALECT,
        "title": "Loopwright: a plan",
        "type": "object",
        "additionalProperties": False,
        "required": [name for name, key in PLAN_KEYS.items() if key.required],
        "properties": {
            name: {"description": key.description, **key.schema} for name, key in PLAN_KEYS.items()
        },
    }


def render_keys_table(keys: Mapping[str, Key]) -> str:
    """Return the Markdown table of a plan's or a task's keys."""
    rows = ["| key | type | required | meaning |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | {key.type} | {'yes' if key.required else 'no'} | {key.description} |"
        for name, key in keys.items()
    ]
    return "\n".join(rows) + "\n"


def render_gate_table() -> str:
    """Return the Markdown table of a gate's keys."""
    rows = ["| key | required | meaning |", "|---|---|---|"]
    rows += [
        f"| `{name}` | {'yes' if name == 'run' else 'no'} | {description} |"
        for name, description in GATE_KEYS.items()
    ]
    return "\n".join(rows) + "\n"

"""What is made from the list of settings: the documentation's table, the JSON Schemas, a commented file."""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from loopwright.config.accounts import ACCOUNT_NAME, ACCOUNT_SETTINGS
from loopwright.config.groups import AGENT_NAME
from loopwright.config.kinds import OPTION
from loopwright.config.layers import LOOPS
from loopwright.config.settings import Setting, description_of, settings

SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID: Final = "urn:loopwright:schema:"
"""Begins the `$id` of every published schema: a name, which no editor fetches."""
_BARE_KEY_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def render_settings_table() -> str:
    """Return the Markdown table of every setting."""
    rows = [
        "| setting | type | default | environment variable | meaning |",
        "|---|---|---|---|---|",
    ]
    for setting in settings().values():
        mark = " ¹" if setting.machine else ""
        default = setting.kind.show(setting.default)
        shown = f"`{toml_value(default)}`" if default not in ("", [], ()) else "empty"
        rows.append(
            f"| `{setting.key}`{mark} | {setting.kind.name} | {shown} | `{setting.variable}` "
            f"| {setting.description} |"
        )
    rows.append(
        f"| `agents.NAME.OPTION` | {OPTION.name} | empty | `LOOPWRIGHT_AGENTS__NAME__OPTION` "
        f"| {description_of('agents')} |"
    )
    for name, one in ACCOUNT_SETTINGS.items():
        rows.append(
            f"| `agents.NAME.accounts.ACCOUNT.{name}` ¹ | {one.kind.name} | empty "
            f"| `LOOPWRIGHT_AGENTS__NAME__ACCOUNTS__ACCOUNT__{name.upper()}` | {one.description} |"
        )
    return "\n".join(rows) + "\n"


def settings_properties(*, machine: bool, leave_out: Collection[str] = ()) -> dict[str, Any]:
    """Return the JSON Schema properties of all settings, with or without those of a machine."""
    properties: dict[str, Any] = {}
    for setting in settings().values():
        if (setting.machine and not machine) or setting.key in leave_out:
            continue
        schema = {
            "description": setting.description,
            "default": setting.kind.show(setting.default),
            **setting.kind.schema,
        }
        group, dot, name = setting.key.partition(".")
        if not dot:
            properties[setting.key] = schema
            continue
        table = properties.setdefault(
            group,
            {
                "type": "object",
                "description": description_of(group),
                "additionalProperties": False,
                "properties": {},
            },
        )
        table["properties"][name] = schema
    properties["agents"] = {
        "type": "object",
        "description": description_of("agents"),
        "propertyNames": {"pattern": f"^{AGENT_NAME}$"},
        "additionalProperties": {
            "type": "object",
            "additionalProperties": dict(OPTION.schema),
            "properties": {"accounts": _accounts_schema() if machine else False},
        },
    }
    return properties


def _accounts_schema() -> dict[str, Any]:
    keys = {
        name: {"description": one.description, **one.kind.schema} for name, one in ACCOUNT_SETTINGS.items()
    }
    return {
        "type": "object",
        "description": "Accounts of the agent, each with its own config home or variables.",
        "propertyNames": {"pattern": f"^{ACCOUNT_NAME}$"},
        "additionalProperties": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": False,
            "properties": keys,
        },
    }


def identified(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a published schema with its `$id`, behind its dialect."""
    dialect = {key: schema[key] for key in ("$schema",) if key in schema}
    return {**dialect, "$id": f"{SCHEMA_ID}{name}", **schema}


def configuration_schema(*, machine: bool) -> dict[str, Any]:
    """Return the JSON Schema of a configuration file: the user's own when `machine`, else the project's."""
    return {
        "$schema": SCHEMA_DIALECT,
        "title": "Loopwright: your own config.toml" if machine else "Loopwright: a project's loopwright.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **settings_properties(machine=machine),
            LOOPS: {
                "type": "object",
                "description": "Settings of single loops, by their work source as seen from the top of the repository.",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": settings_properties(machine=False),
                },
            },
        },
    }


def commented_toml(chosen: Mapping[str, Any]) -> str:
    """Return the project file's settings: those in `chosen` set, all others commented with their default.

    Gates and options of agents are left out: they are tables, which follow the plain keys.
    """
    lines: list[str] = []
    for setting in settings().values():
        if not setting.machine and setting.key != "gates":
            lines.extend(_lines(setting, chosen))
    return "\n".join(lines) + "\n"


def _lines(setting: Setting, chosen: Mapping[str, Any]) -> list[str]:
    # Dotted keys, no table headers: a line is in force as soon as its own "#" is taken away.
    is_set = setting.key in chosen
    value = chosen[setting.key] if is_set else setting.kind.show(setting.default)
    return [f"# {setting.description}", f"{'' if is_set else '# '}{setting.key} = {toml_value(value)}"]


def toml_table(name: str, table: Mapping[str, Any]) -> str:
    """Return one entry of a list of tables."""
    return "\n".join([f"[[{name}]]", *(f"{key} = {toml_value(value)}" for key, value in table.items())])


def toml_value(value: Any) -> str:
    """Return a plain value as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # JSON's escapes are a part of TOML's, except that TOML refuses DEL as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{_toml_key(key)} = {toml_value(inner)}" for key, inner in value.items())
        return "{ " + ", ".join(pairs) + " }"
    return "[" + ", ".join(toml_value(item) for item in value) + "]"


def _toml_key(key: str) -> str:
    return key if key and _BARE_KEY_CHARACTERS.issuperset(key) else toml_value(key)

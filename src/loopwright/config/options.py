"""What an option of an agent may be: adapters read their options themselves."""

import math
from typing import Final

from loopwright.config.kinds import Kind, WrongValue


def _read_option(value: object) -> str | int | float | bool | list[str]:
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return list(value)
    if isinstance(value, str) and "\0" not in value:
        return value
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    raise WrongValue("a text, a number, true or false, or a list of texts", value)


OPTION: Final = Kind(
    name="text, number, switch or list",
    expected="a text, a number, true or false, or a list of texts",
    read=_read_option,
    show=lambda value: value,
    schema={
        "anyOf": [
            {"type": ["string", "number", "boolean"]},
            {"type": "array", "items": {"type": "string"}},
        ]
    },
)

"""Answers of agents that change no file: where in what they said the answer stands."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from loopwright.core.policy import Answering

LONGEST: Final = 1_000_000
"""So many characters of an answer are kept."""
_OTHERS: Final = "yaml|yml|json"


def answer_in(answering: Answering, structured: Mapping[str, Any] | None, said: str) -> str:
    """Return the answer as the text of its file: the structured result, else the last block, else all that was said."""
    if structured is not None:
        return json.dumps(structured, indent=2, ensure_ascii=False)[:LONGEST] + "\n"
    for fence in (re.escape(answering.fence), _OTHERS):
        blocks = re.findall(rf"^```(?:{fence})[ \t]*\n(.*?)^```", said, re.DOTALL | re.MULTILINE)
        if blocks:
            return str(blocks[-1])[:LONGEST]
    return said.strip()[:LONGEST] + "\n"

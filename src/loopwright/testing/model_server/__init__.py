"""A model server on the loopback address that plays a scenario: real agent programs can be run against it.

It speaks Anthropic Messages, OpenAI Responses and Chat Completions, and Gemini, streamed or not, with tool calls and
with each service's own refusals. It remembers nothing between requests (but see `Flaky`): which turn is due is seen
from the request itself, by counting the tool results after the last words of the user. So it serves resumed and
concurrent conversations alike. `python -m loopwright.testing.model_server SCENARIO.json` runs one by itself.

Not here: ready scenarios (`testing.scenarios`).
"""

from loopwright.testing.model_server.scenario import (
    Flaky,
    Rejection,
    Reply,
    Scenario,
    ToolCall,
    Trouble,
    Turn,
    load,
)
from loopwright.testing.model_server.server import Asked, ModelServer

__all__ = [
    "Asked",
    "Flaky",
    "ModelServer",
    "Rejection",
    "Reply",
    "Scenario",
    "ToolCall",
    "Trouble",
    "Turn",
    "load",
]

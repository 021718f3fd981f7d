"""The conformance suite for agent adapters: does a codec keep its contract, whatever its agent does?

A subject's stand-in plays each behaviour as a real process under a real keeper, started by the adapter's own invocation
and driven by the engine. `python -m loopwright.testing.conformance MODULE:SUBJECT` runs all of it; `check` runs one
behaviour, for tests.

Not here: the stand-ins of agents, which are with the tests.
"""

from pathlib import Path

from loopwright.testing.conformance.behaviours import BEHAVIOURS, Behaviour, Expected
from loopwright.testing.conformance.judging import left_over, problems
from loopwright.testing.conformance.playing import PROGRAM, Played, Subject, play

__all__ = [
    "BEHAVIOURS",
    "PROGRAM",
    "Behaviour",
    "Expected",
    "Played",
    "Subject",
    "check",
    "left_over",
    "play",
]


async def check(subject: Subject, behaviour: str, place: Path) -> tuple[str, ...]:
    """Play one behaviour in a folder that does not exist yet; return what is not as it must be."""
    return problems(subject, behaviour, await play(subject, behaviour, place))

"""Whether the settings of rounds and attempts fit the kind of work."""

from collections.abc import Mapping
from typing import Any

from loopwright.config.groups import ROUND_FLAGS
from loopwright.core.values.errors import Refused
from loopwright.ports import PlannedWork


def check_rounds(flags: Mapping[str, Any], work: PlannedWork, kind: str) -> None:
    """Refuse flags that would change nothing for this work."""
    given = [name for key, name in ROUND_FLAGS.items() if flags.get(key) is not None]
    if given and not work.rounds:
        raise Refused(
            f"{given[0]} is for a loop over one prompt, and this is a source of the kind {kind}",
            code="rounds_need_a_prompt",
            hint="leave it out, or put the work into a PROMPT.md",
        )
    if work.rounds and flags.get("max_attempts") is not None:
        raise Refused(
            "a loop over one prompt has rounds instead of attempts",
            code="prompt_has_no_attempts",
            hint="say --max-rounds",
        )

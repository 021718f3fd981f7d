"""What a sandbox refused a program, as far as its last words tell, and the setting that allows it."""

import os
from collections.abc import Callable, Sequence

from loopwright.adapters.sandbox.mounts import Table, is_writable
from loopwright.core.values.containment import refusals
from loopwright.ports import Reach


def denied(
    output: Sequence[str], table: Table, reach: Reach, *, is_hidden: Callable[[Table, str], bool], show: str
) -> str | None:
    """Return the first refusal in the words for a person; `show` says how something hidden is shown."""
    for one in refusals(output):
        path = one.path
        match one.kind:
            case "write" if path is None or not is_writable(table, path):
                what = path or "a place outside of its workspace"
                return (
                    f"the sandbox kept it from writing {what}: to allow it, add the folder to sandbox.write"
                )
            case "missing" if path is not None and is_hidden(table, path) and os.path.lexists(path):
                return f"the sandbox hides {path} from it: to show it, {show}"
            case "network" if not reach.network:
                return "the sandbox kept it from the network: to allow it, set sandbox.network to on"
            case _:
                continue
    return None

"""Find out whether this process belongs to a run of Loopwright."""

import os
from typing import Final

import psutil

_MARKER: Final = "LOOPWRIGHT_RUN"
"""Every process of a run inherits this variable from its keeper."""


def is_inside_run() -> bool:
    """Return whether this process or one that started it carries the mark of a run.

    Some agents give their tools an environment without it, so the processes above are looked at too.
    """
    if _MARKER in os.environ:
        return True
    for above in psutil.Process().parents():
        try:
            if _MARKER in above.environ():
                return True
        except psutil.Error:
            continue  # it belongs to another user or has just ended: a run's processes are ours
    return False

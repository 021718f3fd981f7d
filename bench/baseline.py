"""The yardstick: the same git work as a shell script under `make`, with none of the promises."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bench.yard import Yard

SCRIPT: Final = r"""#!/bin/sh
# One task: worktree add, agent, test command, commit, merge. usage: task.sh KEY ORDER_FILE CHECK
set -eu
tree=$TREES/$1
git worktree add -q -b "task-$1" "$tree" integration
cd "$tree"
/bin/sh "$AGENT" "$2"
/bin/sh -c "$3"
git add -A
git commit -qm "$1"
cd "$INTEGRATION"
# One merge at a time, as the branch has one tip.
flock "$LOCK" git merge -q --no-ff -m "merge $1" "task-$1"
git worktree remove --force "$tree"
"""


def write_makefile(yard: "Yard") -> Path:
    """Write the script, the orders and the makefile; return its path."""
    folder = yard.root / "baseline"
    orders = folder / "orders"
    orders.mkdir(parents=True)
    script = folder / "task.sh"
    script.write_text(SCRIPT)
    integration = folder / "integration"
    yard.git("worktree", "add", "-q", "-b", "integration", str(integration))
    lines = [
        f"export TREES := {folder / 'trees'}",
        f"export INTEGRATION := {integration}",
        f"export LOCK := {folder / 'lock'}",
        f"export AGENT := {yard.agent}",
        f"all: {' '.join(one.key for one in yard.jobs)}",
        f".PHONY: all {' '.join(one.key for one in yard.jobs)}",
    ]
    for one in yard.jobs:
        order = orders / one.key
        order.write_text(yard.order(one) + "\n")
        lines.append(f"{one.key}: {' '.join(one.needs)}")
        lines.append(f"\t@/bin/sh {script} {one.key} {order} '{yard.check(one)}'")
    makefile = folder / "Makefile"
    makefile.write_text("\n".join(lines) + "\n")
    return makefile

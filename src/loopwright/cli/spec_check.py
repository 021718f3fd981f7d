"""The check that a plan which an agent wrote has to pass: `python -m loopwright.cli.spec_check FILE`."""

import sys
from pathlib import Path

from loopwright.adapters.sources.reading import read
from loopwright.adapters.sources.yaml_plan import YamlSource
from loopwright.core.errors import BadPlan, Refused
from loopwright.engine.submit import evaluate


def main(arguments: list[str]) -> int:
    """Say what is wrong with a plan, each problem on a line with its place; 0 when nothing is."""
    path = Path(arguments[0])
    try:
        evaluate(read(YamlSource(), path), path.as_posix())
    except BadPlan as bad:
        problems = list(bad.problems)
    except Refused as pointless:
        problems = [str(pointless)]
    else:
        return 0
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

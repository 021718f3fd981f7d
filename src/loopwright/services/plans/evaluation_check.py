"""The check that an evaluator's answer has to pass: `python -m loopwright.services.plans.evaluation_check FILE`."""

import sys
from pathlib import Path

from loopwright.core.plans.plan_evaluators import read_findings


def main(arguments: list[str]) -> int:
    """Print what is wrong with the answer; return 0 if nothing is."""
    path = Path(arguments[-1])
    found = read_findings(path.read_text(encoding="utf-8") if path.is_file() else "", ())
    if not isinstance(found, str):
        return 0
    sys.stdout.write(f"{path.as_posix()}: {found}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

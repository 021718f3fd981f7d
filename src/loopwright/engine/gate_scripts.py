"""Which scripts of the project its gate runs, as they were before the work: followed from one to the next."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from loopwright.core.gate_scripts import MAKEFILES, PACKAGE, STEPS, first_looks, run_by, scripts_in
from loopwright.core.model import Project
from loopwright.core.policy import GateCommand
from loopwright.ports import Candidate, Repository


async def gate_scripts(
    repository: Repository,
    project: Project,
    candidate: Candidate,
    gates: Sequence[GateCommand],
    acceptance: Sequence[GateCommand],
) -> frozenset[str]:
    """Return the paths of everything that commands run, relative to the project's folder.

    Nothing is read where the work changed no file that was there before: what a gate runs is among those.
    """
    found = set(scripts_in(gates, acceptance))
    if all(change.before is None for change in candidate.changes):
        return frozenset(found)
    commands, theirs = ([each.command for each in some] for some in (gates, acceptance))
    top = f"{project.subfolder}/" if project.subfolder else ""
    looks = set(first_looks(gates, acceptance))
    known: set[str] = set()
    for _ in range(STEPS):
        looks -= known
        if not looks:
            break
        known |= looks
        asked = sorted(looks)
        texts = await repository.files_at(candidate.parent, [f"{top}{path}" for path in asked])
        here = {path: texts[f"{top}{path}"] for path in asked if f"{top}{path}" in texts}
        # Some hold other things too.
        found |= {path for path in here if PurePosixPath(path).name not in (*MAKEFILES, PACKAGE)}
        looks = {
            each
            for path, text in here.items()
            for each in run_by(path, text.decode("utf-8", "replace"), commands, theirs)
        }
    return frozenset(found)

"""Which files steer a gate: by their names, and the scripts that it runs, followed from one to the next."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from loopwright.core.gate_files import Rules
from loopwright.core.gate_scripts import MAKEFILES, PACKAGE, STEPS, first_looks, run_by, scripts_in
from loopwright.core.gates import Commands, each_once, setup_command
from loopwright.core.model import Plan, Project, Task
from loopwright.core.policy import GateCommand
from loopwright.ports import Candidate, Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """What judges the work of a task: enough to say which files steer that, whether rows tell it or a receipt."""

    subfolder: str
    """The project's folder in its repository."""
    gates: Commands
    acceptance: Commands
    setup: GateCommand | None
    patterns: tuple[str, ...]
    """What the project says of its gate's files."""
    leave: tuple[str, ...] = ()
    """What may be changed: the task's scope, and what a person approved."""

    @property
    def commands(self) -> list[str]:
        """What judges it."""
        return [command.command for command in each_once(self.acceptance, self.gates)]

    @property
    def said(self) -> list[str]:
        """That, with what makes the tree ready for it."""
        return [*self.commands, self.setup.command] if self.setup else self.commands


def judges_of(project: Project, plan: Plan, *tasks: Task) -> Judges:
    """Return what judges the work of these tasks."""
    return Judges(
        subfolder=project.subfolder,
        gates=plan.gates,
        acceptance=tuple(command for task in tasks for command in task.acceptance),
        setup=setup_command(plan.policy),
        patterns=plan.policy.gate_files,
        leave=tuple(path for task in tasks for path in (*task.scope, *task.approved)),
    )


async def gate_rules(repository: Repository, judges: Judges, candidate: Candidate) -> Rules:
    """Return the rules by which a file of the work is one of the gate; the scripts are those from before the work."""
    gates = (*judges.gates, *((judges.setup,) if judges.setup else ()))
    scripts = await _scripts(repository, judges.subfolder, candidate, gates, judges.acceptance)
    return Rules(patterns=judges.patterns, scripts=scripts)


async def _scripts(
    repository: Repository,
    subfolder: str,
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
    top = f"{subfolder}/" if subfolder else ""
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

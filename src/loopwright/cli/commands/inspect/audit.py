"""`audit`: for every item that a source says is finished, whether that is so."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Final

from rich.markup import escape
from rich.text import Text

from loopwright.cli.screens.layout import Wrapped
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import columns
from loopwright.cli.shell.output import console, print_json
from loopwright.config.resolve import Settings
from loopwright.core.gates.gates import setup_command
from loopwright.core.plans.audits import BAD, Audited, Checked, Named, Proof, proof_of
from loopwright.core.values.wording import counted, one_line
from loopwright.engine.processes.process_environment import below
from loopwright.ports import Mark, PlannedTask
from loopwright.services.audit.commit_evidence import commits_of
from loopwright.services.gates.clean_tree import clean_tree
from loopwright.services.gates.gate_trial import ran_in
from loopwright.services.homes.context import Place, settings_for
from loopwright.services.homes.repository_glance import glance_at, needed_place
from loopwright.services.plans.unmerged_branches import unmerged
from loopwright.services.runs.run_inputs import PlanPath, meant_path, project_settings, read_plan

_STYLES: Final = {
    Proof.PROVEN: "green",
    Proof.PASSES: "green",
    Proof.UNMERGED: "bold red",
    Proof.LOST: "bold red",
    Proof.FAILING: "bold red",
}


def audit(path: PlanPath, /, *, source: str | None = None, no_run: bool = False, json: bool = False) -> int:
    """Say of every finished item of a source whether its commit is there and its checks pass now.

    Parameters
    ----------
    path
        The file or folder that has the work, in any form that is known.
    source
        Which form the work has, where that cannot be seen from its name.
    no_run
        Only look at commits. Else the items' own checks are run, in a clean clone of what is checked out.
    json
        Print one JSON document.
    """
    path = meant_path(path, source)
    found, branch = asyncio.run(_audit(path, source, run=not no_run))
    wrong = any(one.proof in BAD for one in found)
    code = ExitCode.NOT_VERIFIED if wrong else ExitCode.VERIFIED
    if json:
        counts = Counter(one.proof.value for one in found)
        print_json({"items": found, "counts": dict(counts), "exit_code": int(code)})
        return code
    _print(found)
    if branch is not None:
        console().print(f"the newest status is on a branch that is not merged yet:  git merge {branch}")
    return code


async def _audit(path: Path, kind: str | None, *, run: bool) -> tuple[list[Audited], str | None]:
    """Return what there is to each finished item, and the branch that has a newer status."""
    _, work = read_plan(path, kind)
    place = needed_place(path)
    done = [task for task in work.tasks if task.mark is Mark.DONE]
    with glance_at(place.root) as repository:
        base = await repository.base()
        name = os.path.relpath(path.resolve(), place.root)
        named = await commits_of(repository, base.sha, place.root, name, done)
        project = await project_settings(repository, base.sha, place)
        branch = await unmerged(repository, base.sha, str(place.root), name)
    settings = settings_for(plan=work, plan_name=path.name, loop=name, project_text=project.text)
    checked = await _checked(place, base.sha, settings, done) if run else {}
    return [_audited(task, named.get(task.key), checked.get(task.key)) for task in done], branch


def _audited(task: PlannedTask, named: Named | None, checked: Checked | None) -> Audited:
    proof, reason = proof_of(named, len(task.acceptance), checked)
    return Audited(
        key=task.key,
        title=task.title,
        proof=proof,
        reason=reason,
        commit=named.sha if named is not None else None,
        line=task.line,
    )


async def _checked(place: Place, sha: str, settings: Settings, done: list[PlannedTask]) -> dict[str, Checked]:
    """Run the checks of every item that has some, each item by itself, in one clean clone."""
    wanted = [task for task in done if task.acceptance]
    if not wanted:
        return {}
    copied = below(place.subfolder, settings.values.copy_files)
    found = {}
    async with clean_tree(place.root, sha, settings, subfolder=place.subfolder, copy_files=copied) as tree:
        if setup := setup_command(settings.policy()):
            ready = await ran_in(tree, setup)
            if not ready.passed:
                return {
                    task.key: Checked(passed=None, reason=f"the setup failed: {ready.reason}")
                    for task in wanted
                }
        for task in wanted:
            for command in task.acceptance:
                ran = await ran_in(tree, command)
                found[task.key] = Checked(passed=ran.passed, reason=f"{command.name}: {ran.reason}")
                if not ran.passed:
                    break
    return found


def _print(found: list[Audited]) -> None:
    out = console()
    if not found:
        out.print("nothing in it is marked as finished")
        return
    rows = [(one.proof.value, one.key, one_line(one.title, 60), one.reason) for one in found]
    for line, one in zip(columns(rows), found, strict=True):
        text = Text(line)
        text.stylize(_STYLES.get(one.proof, "yellow"), 0, len(one.proof.value))
        out.print(Wrapped(text, indent="    "))
    counts = Counter(one.proof for one in found)
    told = ", ".join(f"{counts[proof]} {proof.value}" for proof in Proof if counts[proof])
    out.print(f"{counted(len(found), 'finished item')}: {escape(told)}")

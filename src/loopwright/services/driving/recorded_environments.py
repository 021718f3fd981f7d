"""The environment of a plan: from the terminal that submits it, or recorded for its project."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

from loopwright.adapters.home.submitters import answering
from loopwright.adapters.machine.host import host_id, new_id
from loopwright.app import Home
from loopwright.core.plans.plan_context import programs_of
from loopwright.core.rows.model import Plan, Project
from loopwright.core.values.environments import PlanEnvironment, captured, recorded
from loopwright.core.values.errors import Refused
from loopwright.core.values.policy import Policy
from loopwright.core.values.state_folders import StateFolder
from loopwright.engine.intake.submit import Submission, register_project
from loopwright.ports import Tx
from loopwright.services.homes.caller import caller_name, current_folder, environment, recorded_environment
from loopwright.services.homes.context import Place, actor

# The environment of the submitting terminal.


@contextmanager
def submitting(home: Home) -> Iterator[str]:
    """Answer for this process's variables while it lives; yields the name of the submission."""
    submitter = uuid4().hex
    with answering(home.root, submitter, environment()):
        yield submitter


def with_environment(home: Home, submission: Submission, submitter: str) -> Submission:
    """Return a submission with what is stored of this process's environment."""
    policy = submission.policy
    gates = [gate.command for gate in submission.gates]
    acceptance = [one.command for task in submission.work.tasks for one in task.acceptance]
    programs = _found([*gates, *acceptance, *filter(None, [policy.dependencies, policy.setup])])
    if (kept := recorded_environment()) is not None:
        return replace(submission, environment=replace(kept, programs=programs))
    return replace(
        submission,
        environment=captured(
            environment(),
            host_id=host_id(home.root),
            submitter=submitter,
            secret=policy.environment,
            plain=policy.environment_plain,
            programs=programs,
        ),
    )


def _found(commands: Iterable[str]) -> dict[str, str]:
    """Return the paths of the programs that these commands start, as far as their words show."""
    names = dict.fromkeys(name for command in commands for name in programs_of(command) if "/" not in name)
    path = environment().get("PATH")
    found = {name: shutil.which(name, path=path) for name in names}
    return {name: str(current_folder() / place) for name, place in found.items() if place}


async def taken_over(home: Home, plan: Plan, submitter: str) -> Plan:
    """Let a submitted plan request variables from this process, which answers as `submitter`."""
    if plan.environment is None:
        return plan
    ours = replace(plan.environment, submitter=submitter)
    return await home.store.transact(
        "plan.environment", lambda tx: tx.update(Plan, plan.id, environment=ours)
    )


async def submit_again(home: Home, plan: Plan, submission: Submission) -> Plan:
    """Let an unfinished plan continue with the environment of this process."""
    return await home.store.transact(
        "plan.environment", lambda tx: tx.update(Plan, plan.id, environment=submission.environment)
    )


async def record_environment(
    home: Home, place: Place, policy: Policy, state_folder: StateFolder | None = None
) -> Project:
    """Register a project and record the environment of this terminal for it."""
    taken = recorded(
        environment(),
        host_id=host_id(home.root),
        secret=policy.environment,
        plain=policy.environment_plain,
    )
    who = actor()

    def record(tx: Tx) -> Project:
        project = register_project(tx, new_id, place.root, place.subfolder, who, state_folder)
        return project if project.environment == taken else tx.update(Project, project.id, environment=taken)

    return await home.store.transact("project.environment", record)


async def record_once(home: Home, place: Place, policy: Policy) -> None:
    """Record the environment of a project that has none yet; a caller without a terminal records nothing."""
    if caller_name() is not None:
        return

    def is_known(tx: Tx) -> bool:
        known = tx.find(Project, path=str(place.root), subfolder=place.subfolder, limit=1)
        return bool(known) and known[0].environment is not None

    if not await home.store.read(is_known):
        await record_environment(home, place, policy)


def needed_environment(project: Project) -> PlanEnvironment:
    """Return the recorded environment of a project; refuse work for one that has none."""
    if project.environment is None:
        raise Refused(
            f"the project {project.name} has no recorded environment, so nothing can be started without a terminal",
            code="environment_missing",
            hint=f"in {project.path}, run `loopwright projects env --record` once",
        )
    return project.environment

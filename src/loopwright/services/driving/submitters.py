"""What a plan takes from the terminal that it is submitted from."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

from loopwright.adapters.home.submitters import answering
from loopwright.adapters.machine.host import host_id
from loopwright.app import Home
from loopwright.core.plans.plan_context import programs_of
from loopwright.core.rows.model import Plan
from loopwright.core.values.environments import captured
from loopwright.engine.intake.submit import Submission
from loopwright.services.homes.caller import current_folder, environment, recorded_environment


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
    """Return where the programs are that these commands start, as far as their words tell."""
    names = dict.fromkeys(name for command in commands for name in programs_of(command) if "/" not in name)
    path = environment().get("PATH")
    found = {name: shutil.which(name, path=path) for name in names}
    return {name: str(current_folder() / place) for name, place in found.items() if place}


async def taken_over(home: Home, plan: Plan, submitter: str) -> Plan:
    """Let a submitted plan ask this process for its variables, which answers as `submitter`."""
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

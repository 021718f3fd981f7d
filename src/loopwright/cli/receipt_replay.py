"""`receipt replay`: the recorded gates once more, on the recorded trees, in a clean workspace."""

import asyncio
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopwright.adapters.agents.environment import agent_environment, secret_values
from loopwright.adapters.gates.commands import CommandGate
from loopwright.adapters.git import GitRepository, workspace_env
from loopwright.adapters.host import new_id
from loopwright.adapters.keepers import ProcessKeepers
from loopwright.app import home_view
from loopwright.config.resolve import Settings
from loopwright.core.errors import UserError
from loopwright.core.findings import Verdict
from loopwright.core.gates import Commands
from loopwright.core.ids import Kind
from loopwright.core.receipt_facts import plan_asked, task_asked
from loopwright.core.verdicts import gate_key
from loopwright.engine.runs import drive_command
from loopwright.ports import GateRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One tree that the receipt says was judged, and how."""

    what: str
    """In plain words."""
    sha: str
    commands: Commands
    recorded: Mapping[str, Any]
    """The verdict in the receipt."""


def judged_trees(receipt: Mapping[str, Any], wanted: Sequence[str] = ()) -> list[Judged]:
    """Return the tree of the result, or those on which the named tasks landed; each with its recorded verdict."""
    plan = receipt["plan"]
    latest = {(one["tree"], one["gate_key"]): one for one in receipt["verdicts"]}
    if not wanted:
        found = latest.get((plan["result_tree"], gate_key(plan_asked(receipt))))
        if plan["result_sha"] is None or found is None:
            raise UserError(
                "this receipt has no verdict on a result: there is nothing to run again",
                hint="name a task that landed: --task KEY",
            )
        return [
            Judged(what="the result", sha=plan["result_sha"], commands=plan_asked(receipt), recorded=found)
        ]
    return [_landed(receipt, key, latest) for key in wanted]


def _landed(
    receipt: Mapping[str, Any], key: str, latest: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Judged:
    task = next((one for one in receipt["tasks"] if one["key"] == key), None)
    if task is None:
        known = ", ".join(one["key"] for one in receipt["tasks"])
        raise UserError(f"the receipt has no task {key!r}", hint=f"it has: {known}")
    commands = task_asked(receipt["plan"], task)
    found = latest.get((task["tree"], gate_key(commands)))
    if task["landed_sha"] is None or found is None:
        raise UserError(
            f"task {key!r} has no verdict on a tree that landed",
            hint="name a task that landed, or leave --task out",
        )
    return Judged(what=f"task {key}", sha=task["landed_sha"], commands=commands, recorded=found)


def replay(
    judged: Sequence[Judged], *, repository: Path, subfolder: str, settings: Settings
) -> Iterator[tuple[Judged, Verdict]]:
    """Run each tree's commands again, as a gate runs them."""
    for one in judged:
        # Below the home, as the trees of gates are: a folder above must not lend them its configuration.
        place = settings.home / "replays"
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix="replay-", dir=place) as scratch:
            yield one, asyncio.run(_run(one, Path(scratch), repository, subfolder, settings))


async def _run(one: Judged, scratch: Path, where: Path, subfolder: str, settings: Settings) -> Verdict:
    policy, run_id, tree = settings.policy(), new_id(Kind.RUN), scratch / "trees" / "tree"
    repository = GitRepository(where, project_id="replay", home=scratch)
    await repository.checkout(tree, one.sha, copy_files=policy.copy_files)
    values = {**workspace_env(tree), "CI": "true"}
    env = agent_environment(os.environ, None, policy.environment, values)
    env, view = home_view(settings, os.environ)(env, None, scratch / "user")
    request = GateRequest(
        run_id=run_id,
        directory=scratch / "runs" / run_id,
        tree=tree / subfolder,
        commands=one.commands,
        env=env,
        secrets=secret_values(env),
        home=view,
    )
    gate, keepers = CommandGate(), ProcessKeepers()
    try:
        ended = await drive_command(keepers, gate.spec(request), interrupt=asyncio.Event())
        return gate.verdict(request, ended.exit)
    finally:
        # A keeper outlives us on purpose; after Ctrl-C this one must not.
        if keepers.look(request.directory).state != "absent":
            await keepers.end(request.directory, polite=False)
        await keepers.sweep(run_id)
        keepers.close()


def differences(recorded: Mapping[str, Any], found: Verdict) -> list[str]:
    """Say where a verdict differs from the recorded one in what it says; outputs and times may differ."""
    said: list[str] = []
    if found.status.value != recorded["status"]:
        said.append(f"it was {recorded['status']} and is {found.status.value} now: {found.reason}")
    for then, now in zip(recorded["commands"], found.commands, strict=False):
        if (then["exit_code"], then["timed_out"]) != (now.exit_code, now.timed_out):
            said.append(f"{then['command']}: exit code {then['exit_code']} then, {now.exit_code} now")
    counts = {
        status: sum(check.status.value == status for check in found.checks) for status in recorded["checks"]
    }
    for status, then_count in recorded["checks"].items():
        if counts[status] != then_count:
            said.append(f"{then_count} checks {status} then, {counts[status]} now")
    return said

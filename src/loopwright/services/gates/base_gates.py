"""Run a plan's checks once on its base commit: can they run there, and can they fail?

The results are kept in the home for the plan that begins soon.
"""

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.agents.environment import with_secrets
from loopwright.adapters.gates.commands import CommandGate
from loopwright.adapters.gates.reuse import programs_of
from loopwright.adapters.git import GitRepository
from loopwright.adapters.machine.files import delete, write_atomically
from loopwright.adapters.machine.host import boot_id, host_id, new_id
from loopwright.adapters.processes.keeper_files import evidence_hash, read_exit
from loopwright.app import chosen_sandbox
from loopwright.config.resolve import Settings
from loopwright.core.gates.gates import Commands, after_setup, each_once, setup_command, setup_settings
from loopwright.core.gates.verdicts import gate_key
from loopwright.core.gates.witnesses import files_named, held_against
from loopwright.core.plans.base_checks import (
    CHECK,
    Condition,
    OnBase,
    acceptance_findings,
    conditions,
    gate_findings,
    is_broken,
    is_green,
    told_by_gates,
)
from loopwright.core.plans.evaluating import Finding, Weight
from loopwright.core.plans.unloadable import Before
from loopwright.core.values.documents import plain
from loopwright.core.values.environments import is_kept
from loopwright.core.values.findings import Verdict, Witnessed
from loopwright.core.values.ids import Kind
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.wording import counted, listed
from loopwright.engine.gates.evaluated_base import KnownBase
from loopwright.engine.intake.evaluation import to_do
from loopwright.engine.memory.interrupts import beside
from loopwright.engine.processes.process_environment import below
from loopwright.engine.rows.world import HomePaths
from loopwright.ports import Exit, GateRequest, PlannedWork
from loopwright.services.gates.clean_tree import CleanTree, clean_tree
from loopwright.services.gates.gate_trial import ran_in
from loopwright.services.gates.tree_probe import check_tree, probe_beside_base
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import Place

# Gate results on a commit from before a plan, kept in the home for the plan that begins soon.
#
# A gate run leaves all data of its verdict in its directory, which is what is kept. A
# reader computes the verdict again, from files whose hashes are checked.

FOLDER: Final = "bases"
_FRESH: Final = timedelta(hours=12)
"""How long a result counts: the tree never changes, but the programs on the machine do."""
_ACCEPTANCE: Final = "acceptance.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBase:
    """One kept gate run on a base commit."""

    directory: Path
    tree: str
    commands: Commands
    verdict: Verdict
    exit: Exit
    gates: tuple[OnBase, ...]
    seen: Sequence[Witnessed | None]
    """What was seen inside the test runners of each command."""
    acceptance: Mapping[str, OnBase]
    """How acceptance commands ended in the same tree, as far as they ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """The folder of kept results, by commands and environment."""

    settings: Settings

    @property
    def keeps(self) -> bool:
        """Whether results can be kept: not if files outside git, or other machines, affect them."""
        return not self.settings.policy().copy_files and self.settings.values.database is None

    def find(self, tree: str, commands: Commands) -> KeptBase | None:
        """Return what is known about these commands on a tree."""
        directory = self._place(tree, commands)
        ended = read_exit(directory) if self.keeps and commands else None
        if ended is None or ended.ended_at < datetime.now(UTC) - _FRESH:
            return None
        gate = CommandGate()
        request = GateRequest(
            run_id=directory.name, directory=directory, tree=directory, commands=commands, env={}
        )
        verdict = gate.verdict(request, ended)
        seen = gate.witnessed(directory, len(commands))
        if seen is None or not verdict.commands:
            return None
        return KeptBase(
            directory=directory,
            tree=tree,
            commands=commands,
            verdict=held_against(verdict, seen, None) if any(seen) else verdict,
            exit=ended,
            gates=conditions(commands, verdict, seen),
            seen=seen,
            acceptance=_read(directory / _ACCEPTANCE),
        )

    def keep(self, recorded: Path, tree: str, commands: Commands) -> None:
        """Keep the directory of a gate run in place of the previous one, and delete old ones."""
        if not self.keeps or not commands:
            return
        self._tidy()
        place = self._place(tree, commands)
        place.parent.mkdir(exist_ok=True, mode=0o700)
        delete(place)
        # Another process may put the same there at the same time: one of them is enough.
        with suppress(OSError):
            recorded.rename(place)

    def note(self, tree: str, commands: Commands, ran: Mapping[str, OnBase]) -> None:
        """Keep the results of acceptance commands beside the gates of the same tree."""
        place = self._place(tree, commands)
        if place.is_dir():
            # Another process may replace the directory at the same time, and then notes its own results.
            with suppress(FileNotFoundError):
                write_atomically(place / _ACCEPTANCE, json.dumps(plain(ran)), durably=False)

    def taken(self, kept: KeptBase) -> KnownBase | None:
        """Copy a run to the runs of plans, for a plan that begins with it; None if it is gone by now."""
        run_id = new_id(Kind.RUN)
        copied = HomePaths(root=self.settings.home).run(run_id)
        try:
            shutil.copytree(kept.directory, copied, symlinks=True)
        except OSError:
            # Another process replaced or deleted it: the plan checks its base itself.
            delete(copied)
            return None
        sandbox = chosen_sandbox(self.settings, environment()).sandbox
        return KnownBase(
            run_id=run_id,
            tree=kept.tree,
            commands=kept.commands,
            verdict=kept.verdict,
            exit=replace(kept.exit, files_sha256=evidence_hash(copied)),
            sandbox=sandbox.level.value,
            sandbox_made_with=sandbox.made_with,
            host_id=host_id(self.settings.home),
            boot_id=boot_id(),
            red=tuple(command for command, one in kept.acceptance.items() if one.condition is Condition.RED),
        )

    def _place(self, tree: str, commands: Commands) -> Path:
        values = self.settings.values
        asked = [tree, gate_key(commands), plain(values.sandbox), plain(values.test_runners)]
        asked += [sorted(values.environment), plain(values.user_folder)]
        given = {*values.environment, *values.environment_plain}
        # In another environment the same commands may find other programs.
        here = with_secrets(
            environment(), values.env_file, values.secrets_from, values.environment, environment()
        )
        asked += [sorted((name, text) for name, text in here.items() if is_kept(name) or name in given)]
        # So may other versions of these programs.
        asked += [programs_of(commands, here)]
        name = sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        return self.settings.home / FOLDER / name[:40]

    def _tidy(self) -> None:
        folder = self.settings.home / FOLDER
        for path in folder.iterdir() if folder.is_dir() else ():
            ended = read_exit(path)
            if ended is None or ended.ended_at < datetime.now(UTC) - _FRESH:
                delete(path)


def _read(path: Path) -> dict[str, OnBase]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {
            command: OnBase(
                **{
                    **one,
                    "condition": Condition(one["condition"]),
                    "failed": tuple(one["failed"]),
                    "missing": tuple(one["missing"]),
                }
            )
            for command, one in found.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # missing, or changed: then it runs again


Tell = Callable[[str], None]

_AT_ONCE: Final = 10
_BUDGET_S: Final = 60.0
"""After this time no more acceptance commands begin: a plan may have thousands."""
_SHORT_S: Final = 5.0
"""The same limit before a plan runs: `plan check` takes longer."""
_SHA: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRun:
    """The results of a plan's checks on its base commit."""

    sha: str
    reused: bool
    """Whether the gates did not run again, because their result on this commit was known."""
    gates: tuple[OnBase, ...]
    acceptance: tuple[OnBase, ...] = ()
    not_run: int = 0
    """How many acceptance commands did not run for lack of time."""
    findings: tuple[Finding, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "sha": self.sha,
            "reused": self.reused,
            "gates": plain(self.gates),
            "acceptance": plain(self.acceptance),
            "not_run": self.not_run,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    sha: str
    tree: str
    place: Place
    settings: Settings
    gates: Commands
    """With the setup command first, if there is one."""

    @property
    def setup(self) -> GateCommand | None:
        return setup_command(self.settings.policy())


async def checked_on_base(
    repository: GitRepository,
    sha: str,
    place: Place,
    settings: Settings,
    work: PlannedWork,
    tell: Tell,
    *,
    trusted: bool = True,
) -> BaseRun:
    """Run gates and acceptance on a commit, unless their results are known.

    `trusted` is whether the user has read the plan: otherwise its own commands do not run.
    """
    asked = await _asked(repository, sha, place, settings, work, trusted=trusted)
    tasks = to_do(work)
    wanted = each_once(*(task.acceptance for task in tasks)) if trusted else ()
    bases = Bases(settings=settings)
    kept = bases.find(asked.tree, asked.gates)
    if kept is not None and not is_green(kept.gates):
        kept = None  # it may be fixed by now
    gates, seen = (kept.gates, kept.seen) if kept is not None else ((), ())
    ran = dict(kept.acceptance) if kept is not None else {}
    known = {*ran, *(one.command for one in asked.gates)}
    untried = [one for one in wanted if one.command not in known]
    if untried or (asked.gates and kept is None):
        async with _clone(asked) as tree:
            is_set_up = True
            if asked.gates and kept is None:
                gates, seen = await _run_gates(repository, tree, asked, bases, tell, probed=trusted)
                is_set_up = asked.setup is None or gates[0].condition is Condition.GREEN
            elif asked.setup is not None:
                is_set_up = (await ran_in(tree, asked.setup)).passed
            if is_set_up:
                ran |= await _run_acceptance(tree, untried, tell)
        bases.note(asked.tree, asked.gates, ran)
    probed = await _probed(repository, asked, gates, seen, tell) if trusted else ()
    ran |= {one.command: one for one in gates}
    told = {one.command: ran[one.command] for one in wanted if one.command in ran}
    return BaseRun(
        sha=sha,
        reused=kept is not None,
        gates=gates,
        acceptance=tuple(told.values()),
        not_run=len(wanted) - len(told),
        findings=(
            *_about_gates(gates, asked, work),
            *probed,
            *acceptance_findings(tasks, told),
            *_about_the_rest(len(wanted) - len(told)),
        ),
    )


async def known_on_base(
    repository: GitRepository, sha: str, place: Place, settings: Settings, work: PlannedWork, tell: Tell
) -> tuple[KeptBase | None, tuple[Finding, ...] | None]:
    """Return the baseline for a plan that begins now, and the known results of its gates on the base commit.

    Unknown gates run first, unless the user does not want that (`check_base`) or the results could not be
    taken over, so that the first attempt would run them again. Broken gates are tried again in every case.
    With `check_base` acceptance runs too, for a few seconds: passes before the work are reported before any
    cost. None for the second means that nothing is known.
    """
    asked = await _asked(repository, sha, place, settings, work, trusted=True)
    bases = Bases(settings=settings)
    kept = bases.find(asked.tree, asked.gates)
    if kept is None and not (settings.values.check_base and bases.keeps and asked.gates):
        return None, await _probed(repository, asked, (), (), tell) or None
    gates, seen = (kept.gates, kept.seen) if kept is not None else ((), ())
    ran = dict(kept.acceptance) if kept is not None else {}
    fresh = kept is None or is_broken(gates)
    tasks = to_do(work)
    wanted = each_once(*(task.acceptance for task in tasks)) if settings.values.check_base else ()
    # Preparing a tree for acceptance alone may take minutes: `plan check` does that.
    if fresh or (asked.setup is None and any(one.command not in ran for one in wanted)):
        async with _clone(asked) as tree:
            if fresh:
                gates, seen = await _run_gates(repository, tree, asked, bases, tell)
            ran |= {one.command: one for one in gates} | await _told(repository, asked, wanted, gates)
            untried = [one for one in wanted if one.command not in ran]
            if not is_broken(gates) and (asked.setup is None or gates[0].condition is Condition.GREEN):
                ran |= await _run_acceptance(tree, untried, tell, budget_s=_SHORT_S)
        bases.note(
            asked.tree, asked.gates, {one.command: ran[one.command] for one in wanted if one.command in ran}
        )
        kept = bases.find(asked.tree, asked.gates)
    told = {one.command: ran[one.command] for one in wanted if one.command in ran}
    probed = await _probed(repository, asked, gates, seen, tell)
    found = (*_about_gates(gates, asked, work), *probed, *acceptance_findings(tasks, told))
    # Red results excuse later failures, so they have to be fresh: else the first attempt runs them again.
    return kept if is_green(gates) or (fresh and not is_broken(gates)) else None, found


async def _told(
    repository: GitRepository, asked: _Asked, wanted: Commands, gates: Sequence[OnBase]
) -> dict[str, OnBase]:
    """Return the acceptance commands that are known to fail on the base commit without running them."""
    top = f"{asked.place.subfolder}/" if asked.place.subfolder else ""
    named = sorted({top + path for one in wanted for path in files_named(one.command)})
    there = {path.removeprefix(top) for path in await repository.files_at(asked.sha, named)}
    known = ((one.command, told_by_gates(one, gates, there)) for one in wanted)
    return {command: found for command, found in known if found is not None}


async def _asked(
    repository: GitRepository,
    sha: str,
    place: Place,
    settings: Settings,
    work: PlannedWork,
    *,
    trusted: bool,
) -> _Asked:
    gates = settings.gates if trusted or work.gates is None else ()
    return _Asked(
        sha=sha,
        tree=await repository.tree_of(sha),
        place=place,
        settings=settings,
        gates=after_setup(setup_command(settings.policy()), gates),
    )


def _clone(asked: _Asked) -> AbstractAsyncContextManager[CleanTree]:
    place, settings = asked.place, asked.settings
    copied = below(place.subfolder, settings.policy().copy_files)
    return clean_tree(
        place.root, asked.sha, settings, subfolder=place.subfolder, copy_files=copied, landed=True
    )


async def _probed(
    repository: GitRepository,
    asked: _Asked,
    ended: Sequence[OnBase],
    seen: Sequence[Witnessed | None],
    tell: Tell,
) -> tuple[Finding, ...]:
    before = {
        one.command: Before(condition=one.condition, seen=found)
        for one, found in zip(ended, seen, strict=True)
    }
    return await check_tree(repository, asked.sha, asked.place, asked.settings, tell, before=before)


async def _run_gates(
    repository: GitRepository,
    tree: CleanTree,
    asked: _Asked,
    bases: Bases,
    tell: Tell,
    *,
    probed: bool = True,
) -> tuple[tuple[OnBase, ...], Sequence[Witnessed | None]]:
    tell(f"running on the base ({asked.sha[:_SHA]}): {listed([one.name for one in asked.gates])}")
    async with AsyncExitStack() as stack:
        if probed:
            probe = probe_beside_base(repository, asked.sha, asked.place, asked.settings, tree.keepers)
            await stack.enter_async_context(beside(probe))
        tried = await tree.judge(asked.gates)
    ended = conditions(asked.gates, tried.verdict, tried.seen, tried.denial)
    bases.keep(tried.directory, asked.tree, asked.gates)
    return ended, tried.seen


async def _run_acceptance(
    tree: CleanTree, commands: Sequence[GateCommand], tell: Tell, *, budget_s: float = _BUDGET_S
) -> dict[str, OnBase]:
    """Run acceptance commands in the tree of the gates, several at a time, until the time is up."""
    if commands:
        tell(f"trying {counted(len(commands), 'acceptance command')} on the base: can they fail?")
    ran: dict[str, OnBase] = {}
    began = time.monotonic()
    for n in range(0, len(commands), _AT_ONCE):
        if time.monotonic() - began > budget_s:
            break
        some = tuple(commands[n : n + _AT_ONCE])
        tried = await tree.judge(some)
        ended = conditions(some, tried.verdict, tried.seen, tried.denial)
        ran |= {one.command: one for one in ended}
    return ran


def _about_gates(gates: Sequence[OnBase], asked: _Asked, work: PlannedWork) -> list[Finding]:
    return gate_findings(
        gates,
        to_do(work),
        setup=setup_settings(asked.settings.policy()),
        elsewhere=asked.settings.values.database is not None,
    )


def _about_the_rest(not_run: int) -> list[Finding]:
    if not not_run:
        return []
    text = (
        f"{counted(not_run, 'acceptance command')} could not be tried on the base, or took too long together"
    )
    return [Finding(check=CHECK, weight=Weight.TOLD, text=text)]

"""What gates found on a commit before a plan began there, kept in the home for the plan that begins soon.

A gate run leaves everything that its verdict is computed from in its directory, and that is what is kept. A reader
computes the verdict again, from files whose hashes are checked.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final

from loopwright.adapters.agents.environment import with_file
from loopwright.adapters.gates.commands import CommandGate
from loopwright.adapters.gates.reuse import programs_of
from loopwright.adapters.machine.files import delete, write_atomically
from loopwright.adapters.machine.host import boot_id, host_id, new_id
from loopwright.adapters.processes.keeper_files import evidence_hash, read_exit
from loopwright.app import chosen_sandbox
from loopwright.config.resolve import Settings
from loopwright.core.gates.gates import Commands
from loopwright.core.gates.verdicts import gate_key
from loopwright.core.gates.witnesses import held_against
from loopwright.core.plans.base_checks import Condition, OnBase, conditions
from loopwright.core.values.documents import plain
from loopwright.core.values.environments import is_kept
from loopwright.core.values.findings import Verdict, Witnessed
from loopwright.core.values.ids import Kind
from loopwright.engine.gates.evaluated_base import KnownBase
from loopwright.engine.rows.world import HomePaths
from loopwright.ports import Exit, GateRequest
from loopwright.services.homes.caller import environment

FOLDER: Final = "bases"
_FRESH: Final = timedelta(hours=12)
"""For so long it counts: the tree is the same for ever, what is installed on the machine is not."""
_ACCEPTANCE: Final = "acceptance.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBase:
    """One gate run on a base that is kept."""

    directory: Path
    tree: str
    commands: Commands
    verdict: Verdict
    exit: Exit
    gates: tuple[OnBase, ...]
    seen: Sequence[Witnessed | None]
    """What was seen inside the test runners of each command."""
    acceptance: Mapping[str, OnBase]
    """How acceptance commands ended in the same tree, as far as that was tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """The folder in which they are kept, each by what was asked and under which circumstances."""

    settings: Settings

    @property
    def keeps(self) -> bool:
        """Whether anything can be kept: not where files outside of git, or other machines, have a part in it."""
        return not self.settings.policy().copy_files and self.settings.values.database is None

    def find(self, tree: str, commands: Commands) -> KeptBase | None:
        """Return what is known of these commands on a tree."""
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
        """Keep how acceptance commands ended beside the gates of the same tree."""
        place = self._place(tree, commands)
        if place.is_dir():
            write_atomically(place / _ACCEPTANCE, json.dumps(plain(ran)))

    def taken(self, kept: KeptBase) -> KnownBase | None:
        """Copy a run to where the runs of plans are, for a plan that begins with it; None when it is gone by now."""
        run_id = new_id(Kind.RUN)
        copied = HomePaths(root=self.settings.home).run(run_id)
        try:
            shutil.copytree(kept.directory, copied, symlinks=True)
        except OSError:
            # Another process replaced or deleted it: the plan judges its base itself.
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
        here = with_file(environment(), values.env_file, values.environment)
        asked += [sorted((name, text) for name, text in here.items() if is_kept(name) or name in given)]
        # So may other versions of them.
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
        return {}  # gone, or not what was written: then it is tried again

"""Find gates that do not judge the tree: they stay green although the project's own modules cannot be loaded.

Each gate that runs tests is tried once per project and environment, in a clean clone, before any cost.
"""

import asyncio
import json
import re
import shlex
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final

from loopwright.adapters.agents.environment import with_secrets
from loopwright.adapters.gates import import_trace
from loopwright.adapters.git import GitRepository
from loopwright.adapters.home.own_sources import site_packages
from loopwright.adapters.machine.files import delete, write_atomically
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.config.resolve import Settings
from loopwright.core.gates.dependencies import READY
from loopwright.core.gates.gates import Commands, after_setup, setup_command
from loopwright.core.integrity.gate_files import Rules
from loopwright.core.integrity.gate_scripts import STEPS, first_looks, run_by, scripts_in
from loopwright.core.plans.base_checks import CHECK
from loopwright.core.plans.evaluating import Finding, Weight
from loopwright.core.plans.plan_context import programs_of
from loopwright.core.plans.unloadable import (
    Before,
    Judging,
    is_probed,
    is_product,
    judging,
    module_names,
    own_file,
    unloadable,
)
from loopwright.core.values.documents import plain
from loopwright.core.values.environments import is_kept
from loopwright.core.values.errors import UnjudgedTree
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.wording import listed
from loopwright.engine.processes.process_environment import below
from loopwright.services.gates.clean_tree import CleanTree, clean_tree
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import Place

Tell = Callable[[str], None]

FOLDER: Final = "probes"
"""In the home: one empty file for each gate that is known to judge the tree."""
_FRESH: Final = timedelta(days=30)
_TRACE: Final = ".loopwright-probe"
"""In the clone; test runners skip folders whose name begins with a dot."""
_PYTHON: Final = ".py"
_PYTHONPATH: Final = re.compile(r"\bPYTHONPATH=")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindGate:
    """A gate that passes although the project's own modules cannot be loaded."""

    name: str
    own: str = ""
    """A file of the project that the gate did not load."""
    loaded: str = ""
    """The file that it loaded instead, if known."""
    fix: str
    loads_nothing: bool = False
    """Whether none of its tests loads any module of the project, from anywhere."""

    def text(self) -> str:
        """Return what is wrong."""
        if self.loads_nothing:
            return f"no test of the gate {self.name} loads the project's code yet, so it proves nothing until one does"
        told = f"gate {self.name} does not judge the tree: it passes although the project's modules cannot be loaded"
        return f"{told}. It loaded {self.loaded} instead of {self.own}" if self.loaded else told


async def check_tree(
    repository: GitRepository,
    sha: str,
    place: Place,
    settings: Settings,
    tell: Tell,
    *,
    before: Mapping[str, Before] | None = None,
) -> tuple[Finding, ...]:
    """Raise `UnjudgedTree` for gates that pass on a broken tree; return other notes about them.

    `before` has the results of the gates on the base commit, by command, as far as known.
    """
    probe = TreeProbe(
        repository=repository, sha=sha, place=place, settings=settings, policy=settings.policy()
    )
    blind = await probe.blind_gates(settings.gates, before or {}, tell)
    # Work on a shared database may run on other machines, where something else is installed.
    elsewhere = settings.values.database is not None
    refused = [one for one in blind if not one.loads_nothing and not elsewhere]
    if refused:
        names = ", ".join(json.dumps(one.name) for one in refused)
        accept = (
            f"If a gate tests an installed build on purpose, accept that with `installed_gates = [{names}]`."
        )
        fixes = " ".join(dict.fromkeys(one.fix for one in refused))
        raise UnjudgedTree("; ".join(one.text() for one in refused), hint=f"{fixes} {accept}")
    return tuple(Finding(check=CHECK, weight=Weight.TOLD, text=one.text()) for one in blind)


async def probe_beside_base(
    repository: GitRepository, sha: str, place: Place, settings: Settings, keepers: ProcessKeepers
) -> None:
    """Record which gates fail on a broken tree while they run on the base; `check_tree` then skips these.

    Only for a project without its own setup, which would run twice, and with gates that may run in parallel.
    """
    policy = settings.policy()
    if policy.parallel_gates > 1 and policy.dependencies is None and setup_command(policy) is None:
        probe = TreeProbe(
            repository=repository, sha=sha, place=place, settings=settings, policy=policy, keepers=keepers
        )
        await probe.blind_gates(settings.gates, {}, lambda _: None, explain=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeProbe:
    """What is needed to probe the gates of a project."""

    repository: GitRepository
    sha: str
    place: Place
    settings: Settings
    policy: Policy
    keepers: ProcessKeepers | None = None
    """Those of the tree in which the gates run on the base at the same time."""

    async def blind_gates(
        self, gates: Commands, before: Mapping[str, Before], tell: Tell, *, explain: bool = True
    ) -> tuple[BlindGate, ...]:
        """Return the gates that do not judge the tree; `before` has their results on the base commit, by command.

        Without `explain` it only records the gates that do.
        """
        wanted = [
            gate
            for gate in gates
            if gate.name not in self.policy.installed_gates and is_probed(gate, before.get(gate.command))
        ]
        untried = tuple(gate for gate in wanted if not self._is_known(gate))
        product = await self._product(gates) if untried else ()
        if not product:
            return ()
        tell(f"checking that a broken tree fails: {listed([gate.name for gate in untried])}")
        place = self.place
        copied = below(place.subfolder, self.policy.copy_files)
        async with clean_tree(
            place.root,
            self.sha,
            self.settings,
            subfolder=place.subfolder,
            copy_files=copied,
            landed=True,
            keepers=self.keepers,
        ) as tree:
            return await self._tried(tree, untried, before, product, explain=explain)

    async def _tried(
        self,
        tree: CleanTree,
        gates: Commands,
        before: Mapping[str, Before],
        product: Sequence[str],
        *,
        explain: bool,
    ) -> tuple[BlindGate, ...]:
        policy, ready = self.policy, dict[str, str]()
        if policy.dependencies:
            # Workspaces get a copy of what this creates, so the project itself must not be in it.
            install = replace(policy, setup=None)
            if (first := setup_command(install)) is None or (await tree.judge((first,))).exit.code != 0:
                return ()
            ready = {READY: "1"}
        top = tree.tree / self.place.subfolder
        await asyncio.to_thread(_break, top, product)
        commands = after_setup(setup_command(policy), gates)
        skipped = len(commands) - len(gates)
        ran = await tree.judge(commands, more=ready)
        results = ran.verdict.commands[skipped:]
        if len(results) != len(gates):
            return ()  # it did not finish, which the gates themselves will report
        blind = []
        for gate, result, seen in zip(gates, results, ran.seen[skipped:], strict=True):
            found = judging(result, seen, before.get(gate.command))
            if found is Judging.JUDGES:
                self._note(gate)
            elif found is Judging.BLIND and explain:
                certain = result.exit_code == 0
                blind += await self._explained(tree, gate, ready, product, certain=certain)
        return tuple(blind)

    async def _explained(
        self,
        tree: CleanTree,
        gate: GateCommand,
        more: Mapping[str, str],
        product: Sequence[str],
        *,
        certain: bool,
    ) -> list[BlindGate]:
        """Run a gate once more to learn which modules its Python processes load instead of the project's."""
        top = tree.tree / self.place.subfolder
        own = [path for path in product if path.endswith(_PYTHON)]
        traced = await _traced(tree, gate, more, module_names(own))
        for module, file in traced.loaded:
            path = own_file(module, file, own)
            if path is not None and Path(file) != (top / path).resolve():
                told = file.replace(f"{top.resolve()}/", "")
                return [BlindGate(name=gate.name, own=path, loaded=told, fix=self._fix(Path(file), top))]
        if traced.complete:
            return [BlindGate(name=gate.name, loads_nothing=True, fix="")]
        return [BlindGate(name=gate.name, fix=_BUILD)] if certain else []

    def _fix(self, file: Path, top: Path) -> str:
        if file.is_relative_to(top.resolve()):
            return _BUILD
        if file.is_relative_to(self.place.root.resolve()) and "site-packages" not in file.parts:
            return "Let the command load modules from the folder that it runs in, not from your checkout."
        return "Install the project editable, with `python -m pip install -e .`, or uninstall that copy."

    async def _product(self, gates: Commands) -> tuple[str, ...]:
        """Return the project's own modules, relative to its folder."""
        top = f"{self.place.subfolder}/" if self.place.subfolder else ""
        tracked = await self.repository.tracked(self.sha)
        here = [path.removeprefix(top) for path in tracked if path.startswith(top)]
        rules = Rules(patterns=self.policy.gate_files, scripts=await self._scripts(gates, top))
        return tuple(path for path in here if is_product(path, rules))

    async def _scripts(self, gates: Commands, top: str) -> frozenset[str]:
        """Return the files that the gates run, directly or indirectly: these are not modules of the project."""
        found, looks = set(scripts_in(gates)), set(first_looks(gates))
        commands, known = [gate.command for gate in gates], set[str]()
        for _ in range(STEPS):
            looks -= known
            if not looks:
                break
            known |= looks
            texts = await self.repository.files_at(self.sha, [f"{top}{path}" for path in sorted(looks)])
            found |= {path.removeprefix(top) for path in texts}
            looks = {
                each
                for path, text in texts.items()
                for each in run_by(path.removeprefix(top), text.decode("utf-8", "replace"), commands, ())
            }
        return frozenset(found)

    def _is_known(self, gate: GateCommand) -> bool:
        """Return whether this gate is known to judge the tree in this environment."""
        try:
            noted = datetime.fromtimestamp(self._place_of(gate).stat().st_mtime, UTC)
        except FileNotFoundError:
            return False
        return noted > datetime.now(UTC) - _FRESH

    def _note(self, gate: GateCommand) -> None:
        place = self._place_of(gate)
        place.parent.mkdir(exist_ok=True, mode=0o700)
        for old in place.parent.iterdir():
            if old.stat().st_mtime < (datetime.now(UTC) - _FRESH).timestamp():
                delete(old)
        write_atomically(place, "")

    def _place_of(self, gate: GateCommand) -> Path:
        values, policy = self.settings.values, self.policy
        given = {*values.environment, *values.environment_plain}
        here = with_secrets(
            environment(), values.env_file, values.secrets_from, values.environment, environment()
        )
        env = {name: text for name, text in here.items() if is_kept(name) or name in given}
        programs = [shutil.which(name, path=environment().get("PATH")) for name in programs_of(gate.command)]
        asked: list[object] = [
            str(self.place.root),
            self.place.subfolder,
            gate.command,
            policy.dependencies,
            policy.setup,
        ]
        asked += [plain(values.sandbox), plain(values.user_folder), sorted(env.items())]
        # Packages installed beside the tests change these.
        asked += [[_changed(path) for path in (*filter(None, programs), *map(str, site_packages(env)))]]
        name = sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        return self.settings.home / FOLDER / name[:40]


_BUILD: Final = (
    "Build or install the project from the tree that is judged: in the gate's command or with the setting `setup`, "
    "not with `dependencies`, whose result is copied into other workspaces."
)


def _changed(path: str) -> tuple[str, int]:
    return path, Path(path).stat().st_mtime_ns


def _break(top: Path, product: Sequence[str]) -> None:
    for name in product:
        path = top / name
        if path.is_symlink() or not path.is_file():
            continue  # its target is broken itself, or not the project's
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        path.write_text(unloadable(name, text), encoding="utf-8", errors="surrogateescape")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traced:
    loaded: tuple[tuple[str, str], ...]
    """Modules with the names of the project's, and their files."""
    complete: bool
    """Whether it includes a Python process that ran tests."""


async def _traced(
    tree: CleanTree, gate: GateCommand, more: Mapping[str, str], names: Collection[str]
) -> _Traced:
    folder = tree.tree / _TRACE
    folder.mkdir()
    shutil.copyfile(import_trace.__file__, folder / "sitecustomize.py")
    (folder / "names.json").write_text(json.dumps(sorted(names)), encoding="utf-8")
    # A command that sets the variable itself would hide it.
    text = _PYTHONPATH.sub(lambda _: f"PYTHONPATH={shlex.quote(str(folder))}:", gate.command)
    await tree.judge((replace(gate, command=text),), more={**more, "PYTHONPATH": tree.python_path(folder)})
    said = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.seen"))]
    delete(folder)
    return _Traced(
        loaded=tuple(sorted({pair for one in said for pair in one["loaded"].items()})),
        complete=any(one["tests"] for one in said),
    )

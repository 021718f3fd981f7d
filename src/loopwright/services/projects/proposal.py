"""Look at a repository, try its checks once, and propose a loopwright.toml."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from loopwright.adapters import registry
from loopwright.adapters.detect import Detected, ProposedGate, detect, is_project, render_toml
from loopwright.adapters.git.plumbing.runner import user_env
from loopwright.config.layers import PROJECT_FILE
from loopwright.config.publish import toml_value
from loopwright.config.settings import settings as all_settings
from loopwright.core.plans.base_checks import Condition
from loopwright.core.plans.unloadable import Before
from loopwright.core.values.errors import Refused, UserError
from loopwright.core.values.wording import duration, listed
from loopwright.ports import Base
from loopwright.services.doctor.probes import FoundAgent, find_agent
from loopwright.services.gates.gate_trial import Tried, try_gates
from loopwright.services.gates.tree_probe import BlindGate, TreeProbe
from loopwright.services.homes.caller import unheard, write_whole
from loopwright.services.homes.context import Place, glance_at, needed_folder, settings_for
from loopwright.services.projects.editor_schemas import PLAN_SCHEMA, write_schemas
from loopwright.services.projects.found_work import find_work

__all__ = ["SAMPLE", "Proposal", "ProposedGate", "propose", "write"]

SAMPLE: Final = "plan.yaml"
_SAMPLE_TEXT: Final = f"""\
# yaml-language-server: $schema={PLAN_SCHEMA}
# A sample plan. Replace the task with your own work; you can list as many as you like.
# `loopwright config schema plan` prints every key, `loopwright plan check plan.yaml` checks this file.
title: My first plan
tasks:
  - id: about
    title: Describe this project in ABOUT.md
    description: |
      Write one paragraph on what this project does, and one on how to run its tests.
    acceptance:
      # Commands that must pass before the work lands, besides the gates of loopwright.toml.
      - test -s ABOUT.md
"""
_WRITABLE: Final = "make the folder writable, or use --dry-run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A repository, the results of its checks, and the proposed file."""

    folder: Place
    """The user's folder."""
    place: Place
    """The project that the file is for: this sub-folder, or the whole repository."""
    base: Base
    default_branch: str
    detected: Detected
    tried: Tried
    blind: tuple[BlindGate, ...]
    """Gates that pass although the project's modules cannot be loaded."""
    agent: FoundAgent
    text: str
    """The proposed file."""

    @property
    def file(self) -> Path:
        """Where the file belongs."""
        return self.place.root / self.place.subfolder / PROJECT_FILE

    def result(self, gate: ProposedGate) -> tuple[str, str]:
        """Return in a word how a gate did, and a possible remark."""
        ran = self.tried.gates.get(gate.name)
        if ran is None:
            return "not run", self.tried.why_not(gate) or "--no-run"
        if ran.passed:
            return "passed", duration(ran.duration_s)
        return "failed", ran.reason

    @property
    def left_out(self) -> tuple[str, ...]:
        """The gates that are only comments in the file."""
        written = {gate["name"] for gate in tomllib.loads(self.text).get("gates", ())}
        return tuple(gate.name for gate in self.detected.gates if gate.name not in written)

    @property
    def is_unchecked(self) -> bool:
        """Whether there are checks, and none of them is used."""
        return bool(self.detected.gates) and len(self.left_out) == len(self.detected.gates)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the file and the project."""
        notes = list(self.detected.notes)
        if self.left_out and not self.is_unchecked:
            notes.append(f"Only a comment in {PROJECT_FILE}, and not in force: {listed(self.left_out)}.")
        if self.place.subfolder:
            notes.append(f"{PROJECT_FILE} is for {self.place.subfolder}: run loopwright in that folder.")
        elif self.folder.subfolder:
            notes.append(f"{PROJECT_FILE} is for the whole repository, not only for {self.folder.subfolder}.")
        notes += [" ".join(filter(None, (f"{one.text()}.", one.fix))) for one in self.blind]
        if self.base.dirty:
            notes.append(f"Not committed, so not looked at in the clean clone: {listed(self.base.dirty)}.")
        return tuple(notes)


async def propose(
    agent: str | None = None,
    *,
    run: bool = True,
    may_exist: bool = False,
    tell: Callable[[str], None] = unheard,
) -> Proposal:
    """Look at the repository around the current folder and propose a loopwright.toml.

    Args:
        agent: The agent to write into the file; None for the default.
        run: Try the checks once, in a clean clone.
        may_exist: Go ahead if the project has such a file already.
        tell: Gets a line when a check begins.
    """
    folder = needed_folder()
    # The existing file is not read: --force may replace a broken one.
    settings = settings_for(flags={"agent": agent})
    name = settings.values.agent
    if name not in registry.known_agents():
        known = ", ".join(registry.known_agents())
        raise UserError(
            f"there is no agent named {name!r}", code="adapter_not_found", hint=f"known are: {known}"
        )
    with glance_at(folder.root) as repository:
        base = await repository.base()
        tracked = await repository.tracked(base.sha)
        branch = await repository.git.run(
            *("symbolic-ref", "-q", "--short", "refs/remotes/origin/HEAD"),
            env=user_env(),
            cwd=folder.root,
            ok=(0, 1, 128),
        )
    place = _project(folder, tracked)
    file = place.root / place.subfolder / PROJECT_FILE
    if file.exists() and not may_exist:
        raise Refused(
            f"{file} exists already",
            code="file_exists",
            hint="--force replaces it; --dry-run shows what would be written",
        )
    detected = detect(file.parent, tracked=_inside(tracked, place.subfolder))
    tried = await try_gates(place, base.sha, detected, settings, tell) if run else Tried()
    with glance_at(folder.root) as repository:
        probe = TreeProbe(
            repository=repository,
            sha=base.sha,
            place=place,
            settings=settings,
            policy=replace(
                settings.policy(),
                dependencies=detected.dependencies,
                setup=detected.setup,
                copy_files=detected.env_files,
            ),
        )
        green = [gate.gate() for gate in detected.gates if (ran := tried.gates.get(gate.name)) and ran.passed]
        before = {
            gate.command: Before(condition=Condition.GREEN, seen=tried.seen[gate.name]) for gate in green
        }
        blind = await probe.blind_gates(tuple(green), before, tell)
    return Proposal(
        folder=folder,
        place=place,
        base=base,
        default_branch=branch.text.removeprefix("origin/") or base.ref,
        detected=detected,
        tried=tried,
        blind=blind,
        agent=find_agent(name, settings),
        text=_text(detected, tried, agent),
    )


def _inside(tracked: list[str], subfolder: str) -> list[str]:
    """Return the files of a folder, relative to it."""
    if not subfolder:
        return tracked
    return [path.removeprefix(f"{subfolder}/") for path in tracked if path.startswith(f"{subfolder}/")]


def _project(folder: Place, tracked: list[str]) -> Place:
    """Return the project around the user: a subfolder with its own settings, else the repository."""
    if folder.subfolder and is_project(_inside(tracked, folder.subfolder)):
        return folder
    return Place(root=folder.root, subfolder="")


def _text(detected: Detected, tried: Tried, agent: str | None) -> str:
    if tried.setup is not None and not tried.setup.passed:
        note = f"Left out, because it did not work here: {detected.preparation} ({tried.setup.reason})"
        detected = replace(detected, dependencies=None, setup=None, notes=(*detected.notes, note))
    text = render_toml(detected, tried.results(detected))
    if agent is None:
        return text
    default = f"\n# agent = {toml_value(all_settings()['agent'].default)}\n"
    assert default in text, "the file shows every default"
    return text.replace(default, f"\nagent = {toml_value(agent)}\n", 1)


def write(proposal: Proposal) -> bool:
    """Write the proposed file, and a sample plan if the project has no work yet; return whether it wrote the sample."""
    folder = proposal.file.parent
    sample = not find_work(folder)
    write_whole(proposal.file, proposal.text, hint=_WRITABLE)
    write_schemas(folder)
    if sample:
        write_whole(folder / SAMPLE, _SAMPLE_TEXT, hint=_WRITABLE)
    return sample

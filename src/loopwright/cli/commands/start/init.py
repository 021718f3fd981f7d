"""`init`: look at a repository, try its checks once, and write a commented loopwright.toml."""

import asyncio
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.markup import escape

from loopwright.adapters import registry
from loopwright.adapters.detect import Detected, ProposedGate, detect, is_project, render_toml
from loopwright.adapters.git.plumbing.environment import user_env
from loopwright.adapters.sources.folders import sources_in
from loopwright.adapters.sources.plan_md.plan_md import PLAN
from loopwright.cli.screens.clock import Clock
from loopwright.cli.shell.lines import columns
from loopwright.cli.shell.output import console, paragraph, print_json
from loopwright.config.layers import PROJECT_FILE
from loopwright.config.publish import toml_value
from loopwright.config.settings import settings as all_settings
from loopwright.core.plans.base_checks import Condition
from loopwright.core.plans.unloadable import Before
from loopwright.core.values.errors import Refused, UserError
from loopwright.core.values.shell_hints import to_type
from loopwright.core.values.wording import duration, listed, one_line
from loopwright.ports import Base
from loopwright.services.doctor.probes import FoundAgent, find_agent
from loopwright.services.gates.gate_trial import Tried, try_gates
from loopwright.services.gates.tree_probe import BlindGate, TreeProbe
from loopwright.services.homes.context import Place, settings_for
from loopwright.services.homes.file_writing import write_whole
from loopwright.services.homes.repository_glance import glance_at, needed_folder

_STYLES: Final = {"passed": "green", "failed": "red", "not run": "yellow"}
_WRITABLE: Final = "make the folder writable, or use --dry-run"
SAMPLE: Final = "plan.yaml"
_SAMPLE_TEXT: Final = """\
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
_NO_TESTS: Final = (
    "There are no tests here that could be found. Without a gate nothing can be verified: add tests, or write the "
    "command that checks this project under [[gates]]."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """Everything that was found out, and the file that follows from it."""

    stands: Place
    """Where the user is."""
    place: Place
    """The project that the file is for: this sub-folder, or the whole repository."""
    base: Base
    default_branch: str
    detected: Detected
    tried: Tried
    blind: tuple[BlindGate, ...]
    """Gates that pass although the project's modules cannot be loaded."""
    was_run: bool
    agent: FoundAgent
    text: str

    @property
    def file(self) -> Path:
        return self.place.root / self.place.subfolder / PROJECT_FILE


def init(
    *,
    agent: str | None = None,
    no_run: bool = False,
    dry_run: bool = False,
    force: bool = False,
    json: bool = False,
) -> int:
    """Look at this repository, try its checks once in a clean clone, and write a loopwright.toml and a sample plan.

    Parameters
    ----------
    agent
        Which agent is to do the work; written into the file.
    no_run
        Only write the proposed checks down, and run none of them.
    dry_run
        Print the file instead of writing it.
    force
        Replace a loopwright.toml that is there already.
    json
        Print one JSON document.
    """
    report = asyncio.run(_look(agent, run=not no_run, may_exist=force or dry_run, quiet=json))
    folder = report.file.parent
    sample = not dry_run and not sources_in(folder, registry.sources())
    if not dry_run:
        write_whole(report.file, report.text, hint=_WRITABLE)
    if sample:
        write_whole(folder / SAMPLE, _SAMPLE_TEXT, hint=_WRITABLE)
    if json:
        print_json(
            {**_document(report, written=not dry_run), "sample": str(folder / SAMPLE) if sample else None}
        )
        return 0
    out = console()
    _print(report, out)
    if dry_run:
        out.print(f"\n{PROJECT_FILE} would be:\n")
        out.print(report.text, markup=False)
    else:
        _print_next(report, out, sample=sample)
    return 0


async def _look(agent: str | None, *, run: bool, may_exist: bool, quiet: bool) -> _Report:
    stands = needed_folder()
    # The file that is there is not read: with --force it may be the broken one that is to be replaced.
    settings = settings_for(flags={"agent": agent})
    name = settings.values.agent
    if name not in registry.known_agents():
        known = ", ".join(registry.known_agents())
        raise UserError(
            f"there is no agent named {name!r}", code="adapter_not_found", hint=f"known are: {known}"
        )
    with glance_at(stands.root) as repository:
        base = await repository.base()
        tracked = await repository.tracked(base.sha)
        branch = await repository.git.run(
            *("symbolic-ref", "-q", "--short", "refs/remotes/origin/HEAD"),
            env=user_env(),
            cwd=stands.root,
            ok=(0, 1, 128),
        )
    place = _project(stands, tracked)
    file = place.root / place.subfolder / PROJECT_FILE
    if file.exists() and not may_exist:
        raise Refused(
            f"{file} exists already",
            code="file_exists",
            hint="--force replaces it; --dry-run shows what would be written",
        )
    detected = detect(file.parent, tracked=_inside(tracked, place.subfolder))
    with Clock(quiet=quiet) as tell:
        tried = await try_gates(place, base.sha, detected, settings, tell) if run else Tried()
    with glance_at(stands.root) as repository:
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
        with Clock(quiet=quiet) as tell:
            blind = await probe.blind_gates(tuple(green), before, tell)
    return _Report(
        stands=stands,
        place=place,
        base=base,
        default_branch=branch.text.removeprefix("origin/") or base.ref,
        detected=detected,
        tried=tried,
        blind=blind,
        was_run=run,
        agent=find_agent(name, settings),
        text=_text(detected, tried, agent),
    )


def _inside(tracked: list[str], subfolder: str) -> list[str]:
    """Return the files of a folder, as seen from there."""
    if not subfolder:
        return tracked
    return [path.removeprefix(f"{subfolder}/") for path in tracked if path.startswith(f"{subfolder}/")]


def _project(stands: Place, tracked: list[str]) -> Place:
    """Return the project around the user: a sub-folder that is one by itself, else the repository."""
    if stands.subfolder and is_project(_inside(tracked, stands.subfolder)):
        return stands
    return Place(root=stands.root, subfolder="")


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


def _result(report: _Report, gate: ProposedGate) -> tuple[str, str]:
    """Return in a word how a gate did, and what is worth adding."""
    ran = report.tried.gates.get(gate.name)
    if ran is None:
        return "not run", report.tried.why_not(gate) or "--no-run"
    if ran.passed:
        return "passed", duration(ran.duration_s)
    return "failed", ran.reason


def _left_out(report: _Report) -> list[str]:
    """Return the gates that stand in the file only as comments."""
    written = {gate["name"] for gate in tomllib.loads(report.text).get("gates", ())}
    return [gate.name for gate in report.detected.gates if gate.name not in written]


def _unchecked(report: _Report) -> bool:
    """Say whether there are checks, and none of them is in force."""
    return bool(report.detected.gates) and len(_left_out(report)) == len(report.detected.gates)


def _notes(report: _Report) -> list[str]:
    notes = list(report.detected.notes)
    left_out = _left_out(report)
    if left_out and not _unchecked(report):
        notes.append(f"Only a comment in {PROJECT_FILE}, and not in force: {listed(left_out)}.")
    if report.place.subfolder:
        notes.append(f"{PROJECT_FILE} is for {report.place.subfolder}: run loopwright in that folder.")
    elif report.stands.subfolder:
        notes.append(f"{PROJECT_FILE} is for the whole repository, not only for {report.stands.subfolder}.")
    notes += [" ".join(filter(None, (f"{one.text()}.", one.fix))) for one in report.blind]
    if report.base.dirty:
        notes.append(f"Not committed, so not looked at in the clean clone: {listed(report.base.dirty)}.")
    return notes


def _document(report: _Report, *, written: bool) -> Mapping[str, Any]:
    detected, tried = report.detected, report.tried
    gates = []
    for gate in detected.gates:
        result, reason = _result(report, gate)
        ran = tried.gates.get(gate.name)
        gates.append(
            {
                "name": gate.name,
                "purpose": gate.purpose,
                "command": gate.command,
                "why": gate.why,
                "missing": gate.missing,
                "result": result,
                "reason": "" if result == "passed" else reason,
                "duration_s": ran.duration_s if ran else None,
            }
        )
    setup = {"command": detected.preparation, "why": detected.setup_why, "tried": tried.setup}
    return {
        "root": str(report.place.root),
        "subfolder": report.place.subfolder,
        "base": report.base,
        "default_branch": report.default_branch,
        "languages": detected.languages,
        "has_tests": detected.has_tests,
        "setup": setup if detected.preparation else None,
        "env_files": detected.env_files,
        "gates": gates,
        "agent": {"name": report.agent.name, "path": report.agent.path, "problem": report.agent.problem},
        "notes": _notes(report),
        "file": str(report.file),
        "written": written,
        "text": report.text,
    }


def _print(report: _Report, out: Console) -> None:
    detected, tried = report.detected, report.tried
    on = "" if report.base.ref == report.default_branch else f" (you are on {report.base.ref})"
    facts = [
        ("repository", str(report.place.root)),
        ("default branch", f"{report.default_branch}{on}, tried at {report.base.sha[:7]}"),
        ("languages", ", ".join(detected.languages) or "none recognised"),
        ("dependencies", detected.dependencies or "none needed"),
        ("setup", detected.setup or "none needed"),
        ("env files", ", ".join(detected.env_files) or "none"),
    ]
    for line in columns(facts, indent=""):
        out.print(escape(line))
    if tried.setup is not None and not tried.setup.passed:
        out.print(paragraph(f"[red]the setup command failed[/]: {escape(tried.setup.reason)}"))
    if detected.gates:
        out.print("\nchecks:")
        results = [_result(report, gate) for gate in detected.gates]
        rows = [
            (word, gate.name, one_line(gate.command, 70), more)
            for gate, (word, more) in zip(detected.gates, results, strict=True)
        ]
        for (word, _), line in zip(results, columns(rows), strict=True):
            out.print(escape(line).replace(word, f"[{_STYLES[word]}]{word}[/]", 1))
    if _unchecked(report):
        told = (
            f"only a comment in {PROJECT_FILE}: {listed(_left_out(report))}. Nothing checks what agents make."
        )
        out.print()
        out.print(paragraph(f"[bold yellow]no gate is in force[/]: {escape(told)}"))
    if not detected.has_tests:
        out.print()
        out.print(paragraph(f"[bold yellow]no tests[/]: {escape(_NO_TESTS)}"))
    for note in _notes(report):
        if not note.startswith("No tests were found"):
            out.print(paragraph(f"[yellow]note[/]: {escape(note)}"))


def work_steps(folder: Path, *, sample: bool = False) -> list[str]:
    """Return what to do about the work: it is there already, is a sample, or has to be written."""
    found = [
        # The file says more than its folder.
        (kind, path / PLAN if (path / PLAN).is_file() else path)
        for kind, path in sources_in(folder, registry.sources())
    ]
    there = [f"{os.path.relpath(path)} ({kind})" for kind, path in found]
    first = "write a plan.yaml; its format: loopwright config schema plan"
    if sample:
        first = f"edit {SAMPLE}, a sample; its format: loopwright config schema plan"
    elif there:
        first = f"there is work already, any of it can be checked and run as it is: {listed(there)}"
    name = os.path.relpath(found[0][1]) if found else "plan.yaml"
    return [first, f"check it: {to_type('plan', 'check', name)}", f"run it: {to_type('run', name)}"]


def _print_next(report: _Report, out: Console, *, sample: bool) -> None:
    also = f" and a sample {SAMPLE}" if sample else ""
    out.print()
    out.print(paragraph(f"wrote {escape(str(report.file))}{also}. Next:"))
    file = os.path.relpath(report.file)
    steps = [f"commit it: git add {file} && git commit -m 'Add {PROJECT_FILE}'"]
    if _unchecked(report):
        name = _left_out(report)[0]
        steps.insert(0, f"take the # away from a gate: mend {name} first, or let the plan make it pass")
    if not report.agent.usable:
        steps.append(f"agent {report.agent.name}: {report.agent.problem}; {report.agent.hint}")
    steps += work_steps(report.file.parent, sample=sample)
    for number, step in enumerate(steps, 1):
        out.print(paragraph(f"  {number}. {escape(step)}", indent="     "))

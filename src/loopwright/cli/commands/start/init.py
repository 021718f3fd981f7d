"""`init`: look at a repository, try its checks once, and write a commented loopwright.toml."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.markup import escape

from loopwright.cli.screens.clock import Clock
from loopwright.cli.shell.lines import columns
from loopwright.cli.shell.output import console, paragraph, print_json
from loopwright.config.layers import PROJECT_FILE
from loopwright.core.values.wording import listed, one_line, to_type
from loopwright.services.projects.found_work import find_work
from loopwright.services.projects.proposal import SAMPLE, Proposal, propose, write

_STYLES: Final = {"passed": "green", "failed": "red", "not run": "yellow"}
_NO_TESTS: Final = (
    "There are no tests here that could be found. Without a gate nothing can be verified: add tests, or write the "
    "command that checks this project under [[gates]]."
)


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
        The agent that does the work; written into the file.
    no_run
        Write the proposed checks without running them.
    dry_run
        Print the file instead of writing it.
    force
        Replace an existing loopwright.toml.
    json
        Print one JSON document.
    """
    with Clock(quiet=json) as tell:
        report = asyncio.run(propose(agent, run=not no_run, may_exist=force or dry_run, tell=tell))
    sample = not dry_run and write(report)
    if json:
        path = str(report.file.parent / SAMPLE) if sample else None
        print_json({**_document(report, written=not dry_run), "sample": path})
        return 0
    out = console()
    _print(report, out)
    if dry_run:
        out.print(f"\n{PROJECT_FILE} would be:\n")
        out.print(report.text, markup=False)
    else:
        _print_next(report, out, sample=sample)
    return 0


def _document(report: Proposal, *, written: bool) -> Mapping[str, Any]:
    detected, tried = report.detected, report.tried
    gates = []
    for gate in detected.gates:
        result, reason = report.result(gate)
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
        "notes": report.notes,
        "file": str(report.file),
        "written": written,
        "text": report.text,
        "work": [
            {
                "kind": one.kind,
                "path": os.path.relpath(one.path, report.file.parent),
                "open": one.open,
                "total": one.total,
                "problem": one.problem,
            }
            for one in find_work(report.file.parent)
        ],
    }


def _print(report: Proposal, out: Console) -> None:
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
        results = [report.result(gate) for gate in detected.gates]
        rows = [
            (word, gate.name, one_line(gate.command, 70), more)
            for gate, (word, more) in zip(detected.gates, results, strict=True)
        ]
        for (word, _), line in zip(results, columns(rows), strict=True):
            out.print(escape(line).replace(word, f"[{_STYLES[word]}]{word}[/]", 1))
    if report.is_unchecked:
        told = (
            f"only a comment in {PROJECT_FILE}: {listed(report.left_out)}. Nothing checks what agents make."
        )
        out.print()
        out.print(paragraph(f"[bold yellow]no gate is in force[/]: {escape(told)}"))
    if not detected.has_tests:
        out.print()
        out.print(paragraph(f"[bold yellow]no tests[/]: {escape(_NO_TESTS)}"))
    for note in report.notes:
        if not note.startswith("No tests were found"):
            out.print(paragraph(f"[yellow]note[/]: {escape(note)}"))


def work_steps(folder: Path, *, sample: bool = False) -> list[str]:
    """Return what to do about the work: it is there already, is a sample, or has to be written."""
    found = find_work(folder)
    left = [one for one in found if one.open or one.problem]
    there = [f"{os.path.relpath(one.path)} ({one.summary})" for one in left]
    settled = "nothing that is here is open: " if found else ""
    first = f"{settled}write a plan.yaml; its format: loopwright config schema plan"
    if sample:
        first = f"edit {SAMPLE}, a sample; its format: loopwright config schema plan"
    elif there:
        first = f"there is work already, any of it can be checked and run as it is: {listed(there)}"
    name = os.path.relpath(left[0].path) if left else "plan.yaml"
    return [first, f"check it: {to_type('plan', 'check', name)}", f"run it: {to_type('run', name)}"]


def _print_next(report: Proposal, out: Console, *, sample: bool) -> None:
    also = f" and a sample {SAMPLE}" if sample else ""
    out.print()
    out.print(paragraph(f"wrote {escape(str(report.file))}{also}. Next:"))
    file = os.path.relpath(report.file)
    steps = [f"commit it: git add {file} && git commit -m 'Add {PROJECT_FILE}'"]
    if report.is_unchecked:
        name = report.left_out[0]
        steps.insert(0, f"remove the # from a gate: fix {name} first, or let the plan make it pass")
    if not report.agent.usable:
        steps.append(f"agent {report.agent.name}: {report.agent.problem}; {report.agent.hint}")
    steps += work_steps(report.file.parent, sample=sample)
    for number, step in enumerate(steps, 1):
        out.print(paragraph(f"  {number}. {escape(step)}", indent="     "))

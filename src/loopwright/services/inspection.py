"""Collect what is known about a run, or about a project and a goal, in one packet.

Not here: how rows become a packet (`core.plans`), what proves a criterion (`services.audit`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.agents.environment import secret_values
from loopwright.adapters.agents.prompt_file import path_in
from loopwright.adapters.detect import detect
from loopwright.adapters.git import GitRepository
from loopwright.adapters.home.statefiles import ProjectStateFiles
from loopwright.adapters.machine.host import new_id
from loopwright.adapters.processes.keeper_files import OutputReader
from loopwright.adapters.processes.redaction import redacted
from loopwright.core.plans.inspection_packets import (
    MOST_EVENTS,
    MOST_QUESTIONS,
    LogLine,
    Packet,
    PacketProject,
    PacketTask,
    cleaned,
    in_markdown,
    last_lines,
    layout,
    moment_in,
)
from loopwright.core.rows.model import Attempt, Plan, Project, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.documents import document
from loopwright.core.values.errors import NotFound, UserError
from loopwright.core.values.ids import Kind
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.state_folders import PACKETS
from loopwright.core.values.states import QuestionState
from loopwright.engine.rows.projects import state_place
from loopwright.ports import Tx
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import (
    Place,
    actor,
    glance_at,
    look_settings,
    needed_folder,
    needed_place,
    settings_for,
)
from loopwright.services.homes.read_only_home import find_target, glancing
from loopwright.services.preflight.run_inputs import project_settings

# Reading a project for an inspection packet: its files, its checks, its documentation, its newest
# commits.

TEXTS: Final = (
    *("README.md", "README.rst", "README", "CONTRIBUTING.md"),
    *("AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md", ".goosehints", ".cursorrules"),
    ".github/copilot-instructions.md",
)
"""The project's documentation for people and for agents."""
_COMMITS: Final = 20


async def look_at(
    repository: GitRepository, root: Path, subfolder: str, *, setup: str, gates: Sequence[GateCommand]
) -> tuple[PacketProject, tuple[str, ...], tuple[str, ...]]:
    """Return what is visible in a project without running anything, the open questions about it, and what was cut.

    A project in a folder of a repository is that folder; the documentation of the whole repository applies to
    it, too. `setup` and `gates` come from its settings: if they are set, nothing else is proposed.
    """
    base = await repository.base()
    every = await repository.tracked(base.sha)
    above = f"{subfolder}/" if subfolder else ""
    tracked = [path.removeprefix(above) for path in every if path.startswith(above)]
    found = detect(root / subfolder, tracked=tracked)
    told = set(every)
    names = [f"{folder}{one}" for folder in dict.fromkeys((above, "")) for one in TEXTS]
    texts = {one: _text(root / one) for one in names if one in told}
    rows, cut = layout(tracked)
    project = PacketProject(
        name=f"{root.name}/{subfolder}" if subfolder else root.name,
        languages=found.languages,
        setup=setup or found.preparation,
        gates=tuple(
            {"name": one.name, "command": one.command, "why": "the project's own", "missing": ""}
            for one in gates
        )
        or tuple(
            {"name": one.name, "command": one.command, "why": one.why, "missing": ", ".join(one.missing)}
            for one in found.gates
        ),
        layout=rows,
        texts={one: text for one, text in texts.items() if text},
        history=tuple(await repository.newest(base.sha, _COMMITS)),
        base=base.sha,
    )
    asks = [] if gates else list(found.notes)
    if base.dirty:
        asks.append(
            f"{len(base.dirty)} changed files of the checkout are not part of what a plan starts from."
        )
    if not project.gates:
        asks.append("Which command shows that the project works?")
    return project, tuple(asks), (cut,) if cut else ()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return ""


# What the rows say about a run, for an inspection packet.

_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """One run with its context."""

    run: Run
    plan: Plan | None
    task: Task | None
    attempt: Attempt | None
    events: tuple[Mapping[str, Any], ...]
    left_out: int
    questions: tuple[Question, ...]

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors, in order."""
        told = []
        if self.run.failure is not None:
            told.append(f"run: {self.run.failure.value} {self.run.summary}".strip())
        if self.attempt is not None and self.attempt.detail:
            told.append(f"attempt {self.attempt.n}: {self.attempt.detail}")
        if self.task is not None and self.task.reason:
            told.append(f"task: {self.task.reason}")
        return tuple(told)


def inspected(tx: Tx, run: Run) -> Inspected:
    """Collect everything about one run: its own events, and those of its attempt."""
    found: list[Mapping[str, Any]] = []
    after = 0
    while page := tx.events(after=after, limit=_PAGE, plan=run.plan_id):
        after = page[-1].n
        found += [
            document(one)
            for one in page
            if one.run == run.id or (run.attempt_id and one.attempt == run.attempt_id)
        ]
    asked = tx.find(Question, plan_id=run.plan_id)
    return Inspected(
        run=run,
        plan=tx.get(Plan, run.plan_id),
        task=tx.get(Task, run.task_id) if run.task_id else None,
        attempt=tx.get(Attempt, run.attempt_id) if run.attempt_id else None,
        events=tuple(found[-MOST_EVENTS:]),
        left_out=max(0, len(found) - MOST_EVENTS),
        questions=tuple(one for one in asked if run.id == one.run_id or run.attempt_id in one.asked_by),
    )


__all__ = ["KeptPacket", "Packet", "inspect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPacket:
    """A packet that was written into the project."""

    packet: Packet
    path: Path
    """Its JSON file; the Markdown is beside it."""
    markdown: str


async def inspect(target: str | None = None, *, goal: str = "") -> KeptPacket:
    """Collect a packet about a run or a task's newest run, or about this project and a goal, and store it."""
    if target is not None and goal:
        raise UserError(
            "--goal is for a packet about the project",
            code="flags_conflict",
            hint="leave out the goal, or the run",
        )
    folder, packet = _of_run(target) if target is not None else await _of_project(goal)
    files = ProjectStateFiles()
    markdown = in_markdown(packet)
    files.put_text(folder, PACKETS, f"{packet.packet_id}.md", markdown)
    path = files.put(folder, PACKETS, packet.packet_id, document(packet))
    return KeptPacket(packet=packet, path=path, markdown=markdown)


def _of_run(target: str) -> tuple[Path, Packet]:
    with glancing() as look:
        seen = look.store.read_sync(lambda tx: inspected(tx, _run(tx, target)))
        project = look.store.read_sync(
            lambda tx: tx.get(Project, seen.plan.project_id) if seen.plan else None
        )
        if project is None or not Path(project.path).is_dir():
            raise NotFound("the repository of that run is not here any more", code="run_repository_gone")
        return state_place(project), _packet(seen, look.paths.run(seen.run.id), project)


def _run(tx: Tx, text: str) -> Run:
    found = find_target(tx, text)
    if isinstance(found, Run):
        return found
    runs = tx.find(
        Run, plan_id=found.plan_id if isinstance(found, Task) else found.id, order_by=("created_at",)
    )
    mine = [one for one in runs if one.agent and (not isinstance(found, Task) or one.task_id == found.id)]
    begun = [one for one in mine if one.started_at is not None]
    if not begun:
        raise NotFound(
            f"no agent has worked on {text} yet", code="no_run", hint="`loopwright status` shows what waits"
        )
    return begun[-1]


def _packet(seen: Inspected, directory: Path, project: Project) -> Packet:
    lines, cut = last_lines(OutputReader(directory, 0).all())
    asked = seen.questions[-MOST_QUESTIONS:]
    left = (
        cut,
        f"{seen.left_out} older events" if seen.left_out else "",
        f"{len(seen.questions) - len(asked)} older questions" if len(asked) < len(seen.questions) else "",
    )
    prompt = path_in(directory)
    packet = Packet(
        packet_id=new_id(Kind.PACKET),
        type="task",
        generated_at=datetime.now(UTC),
        generated_by=actor(),
        run_id=seen.run.id,
        plan_id=seen.run.plan_id,
        project_id=project.id,
        task=PacketTask(
            task_id=seen.task.id if seen.task else None,
            key=seen.task.key if seen.task else "",
            title=seen.task.title if seen.task else seen.run.role.value,
            prompt=prompt.read_text(encoding="utf-8", errors="replace") if prompt.is_file() else "",
            state=seen.run.state.value,
            started_at=seen.run.started_at,
            ended_at=seen.run.ended_at,
            result=seen.run.summary,
            error=seen.errors[0] if seen.errors else "",
        ),
        events=seen.events,
        logs=tuple(LogLine(stream=one.stream, line=one.text, timestamp=moment_in(one.text)) for one in lines),
        errors=seen.errors,
        clarifications=tuple({"question": one.text, "answer": one.answer or ""} for one in asked),
        open_questions=tuple(one.text for one in asked if one.state is QuestionState.OPEN),
        cut=tuple(filter(None, left)),
    )
    return _clean(packet, seen.plan.policy.environment if seen.plan else ())


def _clean(packet: Packet, handed_over: Sequence[str]) -> Packet:
    secrets = secret_values(environment(), handed_over)
    return cleaned(packet, lambda text: redacted(text, secrets))


async def _of_project(goal: str) -> tuple[Path, Packet]:
    folder = needed_folder()
    return folder.root / look_settings().values.state_folder, await project_packet(goal, folder)


async def project_packet(goal: str, folder: Place) -> Packet:
    """Return what is visible in a folder of the current project without running anything."""
    place = needed_place()
    with glance_at(place.root) as repository:
        found = await project_settings(repository, (await repository.base()).sha, place)
        settings = settings_for(project_text=found.text)
        project, asks, cut = await look_at(
            repository,
            folder.root,
            folder.subfolder,
            setup=" && ".join(filter(None, (settings.values.dependencies, settings.values.setup))),
            gates=settings.gates,
        )
    packet = Packet(
        packet_id=new_id(Kind.PACKET),
        type="project",
        generated_at=datetime.now(UTC),
        generated_by=actor(),
        goal=goal,
        project=project,
        open_questions=asks,
        cut=cut,
    )
    return _clean(packet, settings.values.environment)

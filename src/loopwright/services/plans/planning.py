"""Let an agent write the plan for a goal, and have the plan evaluated, before anything of it runs."""

import difflib
import json
import math
import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.agents.environment import secret_values
from loopwright.adapters.home.statefiles import ProjectStateFiles, state_files
from loopwright.adapters.processes.redaction import redacted
from loopwright.adapters.sources.plan_md.new_track import Planning, tracks_in
from loopwright.adapters.sources.spec.planner_answer import as_written, planner_schema
from loopwright.adapters.sources.spec.yaml_plan import YamlSource
from loopwright.config.resolve import Settings
from loopwright.core.plans.inspection_packets import in_markdown
from loopwright.core.plans.plan_evaluators import Judgement, in_words
from loopwright.core.plans.planning import (
    CHECK,
    FENCE,
    FILE,
    FOLDER,
    KEY,
    TITLED,
    instructions,
    name_of,
    objected,
    source_of,
)
from loopwright.core.rows.model import Plan, Role
from loopwright.core.values.documents import document
from loopwright.core.values.errors import NotFound, Refused, UserError
from loopwright.core.values.ids import short_id
from loopwright.core.values.policy import Answering
from loopwright.core.values.state_folders import PACKETS
from loopwright.core.values.wording import counted, duration, money, to_type
from loopwright.engine.intake.submit import plan_of_source
from loopwright.engine.rows.projects import recent_plans
from loopwright.engine.views.metrics import plan_figures, together
from loopwright.ports import PlannedWork, Tx
from loopwright.prompts import packaged
from loopwright.services.driving.driver import Drive, Rested, drive
from loopwright.services.gates.tree_probe import check_tree
from loopwright.services.homes.caller import current_folder, environment, unheard, write_whole
from loopwright.services.homes.context import Place, glance_at, needed_place, settings_for
from loopwright.services.homes.session import opened
from loopwright.services.inspection import project_packet
from loopwright.services.plans.agent_answers import Answered, Asked, ask, who
from loopwright.services.plans.evaluator import check_evaluator, is_left_unevaluated, judged, wanted
from loopwright.services.plans.goal_tracks import Unplanned, as_track, now, write_plan, write_track
from loopwright.services.plans.spec_check import GATES
from loopwright.services.preflight.checks import check_accounts, check_named, check_sandbox, who_works
from loopwright.services.preflight.run_inputs import check_prompts, project_settings

# Tell a goal in words from a path or a command: a mistyped one must not cost a planner's run.

_FILES: Final = frozenset({".yaml", ".yml", ".json", ".jsonl", ".md"})
_SENTENCE: Final = 3
"""A text with this many words is a goal, even if the last one is the name of a file."""
_ALIKE: Final = 0.75


def is_goal(text: str) -> bool:
    """Return whether a text is a goal and not a path: a single word is a path."""
    words = text.split()
    if len(words) < 2 or (current_folder() / text.strip()).exists():
        return False
    return len(words) >= _SENTENCE or Path(text.strip()).suffix.lower() not in _FILES


def check_goal(text: str, commands: Collection[str] = ()) -> None:
    """Refuse a text that is not a goal before an agent plans for it; a single word may be one.

    `commands` are possible intended commands, each as it is typed; the last word is compared with the goal.
    """
    if is_goal(text):
        return
    said = text.strip()
    if not said:
        raise UserError(
            "the goal is empty",
            code="goal_empty",
            hint='say in words what is to be done: loopwright plan "..."',
        )
    if (current_folder() / said).exists():
        raise UserError(
            f"{said} is there already, and no goal",
            code="goal_is_a_path",
            hint=f"`{to_type('plan', 'check', said)}` checks it as a plan, `{to_type('run', said)}` runs it",
        )
    if "/" in said or Path(said).suffix.lower() in _FILES:
        raise UserError(
            f"{said!r} looks like a path, and no agent is asked to plan for one",
            code="goal_is_a_path",
            hint=f"say the goal in a sentence; a plan is checked with `{to_type('plan', 'check', said)}`",
        )
    by_last_word = {command.split()[-1]: command for command in reversed(list(commands))}
    near = difflib.get_close_matches(said.lower(), by_last_word, n=1, cutoff=_ALIKE)
    if near:
        raise UserError(
            f"{said!r} looks like the command `{by_last_word[near[0]]}`, and no agent is asked to plan for one",
            code="goal_is_a_command",
            hint='if it is the goal, say it in a few words more: loopwright plan "..."',
        )


_COMPARED = 50
"""How many earlier plans an estimate uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The result of planning."""

    plan_id: str
    packet_id: str
    path: Path | None
    """The file of the plan; None if there is no plan."""
    judgement: Judgement | None = None
    """An evaluator's judgement; None if there was no evaluation, or no usable answer."""
    rested: Rested | None = None
    """How the planner's own plan ended; None if the plan file already existed."""
    problems: tuple[str, ...] = ()
    """What is wrong with the last answer, if no answer became a plan."""

    @property
    def task(self) -> str:
        """The task in which the planner worked, as PLAN/TASK."""
        return f"{short_id(self.plan_id)}/{KEY}"

    @property
    def is_objected_to(self) -> bool:
        """Whether an evaluator objects to running it."""
        return self.judgement is not None and bool(self.judgement.blocking)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalRequest:
    """A request for a plan for a goal."""

    goal: str
    """Empty for the goal of the packet, or the title of its task."""
    out: Path | None = None
    """Where to put the plan; None for the folder `plans`, by the first words of the goal."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Settings by their keys, above those of the project."""
    own: bool = True
    """Whether `agent` and `model` among the flags are the planner's.

    If not, they are those of the work, and an existing plan for this goal is used as it is.
    """
    packet: str | None = None
    """An existing packet to plan from."""
    force: bool = False
    """Plan again, and replace the existing file."""
    track: Unplanned | None = None
    """A track that the plan is for; None to plan for the goal alone."""
    made_for: str = ""
    """The draft that the plan is for: another request for the same draft continues, and pays for nothing twice."""


async def plan_goal(
    request: GoalRequest, *, tell: Callable[[str], None] = unheard, drive: Drive = drive
) -> Planned:
    """Have a plan written for a goal, as a file that the user can read and edit."""
    flags, own, track = request.flags, request.own, request.track
    place = needed_place(track.folder if track is not None else None)
    with glance_at(place.root) as repository:
        base = await repository.base()
        found = await project_settings(repository, base.sha, place)
    settings = settings_for(flags=flags, project_text=found.text)
    secrets = secret_values(environment(), settings.values.environment)
    # It becomes a title, a prompt and a file name.
    goal = redacted(packet_facts(place, request.packet, request.goal)[0], secrets)
    tracks = tracks_in(place.root / place.subfolder) if request.out is None else None
    target = request.out or _target(place, tracks, goal)
    if track is not None:
        tracks, target = track.folder.parent, track.folder
    elif target.exists() and not request.force:
        before = None if own else await _planned_before(settings, place, goal)
        if before is not None:
            return Planned(plan_id=before.id, packet_id="", path=target)
        raise Refused(
            f"{os.path.relpath(target, current_folder())} exists already",
            code="file_exists",
            hint=_for_existing(goal, target, own=own),
        )
    more = _packet_file(place, request.packet).read_text(encoding="utf-8") if request.packet else ""
    if track is not None:
        more = f"## Specification of the track\n\n{redacted(track.spec, secrets)}"
    packet = await project_packet(goal, place)
    text = in_markdown(packet)
    files = ProjectStateFiles()
    folder = place.root / settings.values.state_folder
    files.put(folder, PACKETS, packet.packet_id, document(packet))
    files.put_text(folder, PACKETS, f"{packet.packet_id}.md", text)
    set_, planner = settings.values, settings.values.planner
    named = set_.agent if own and flags.get("agent") else planner.agent
    by = who(settings, named, set_.model if own and flags.get("model") else planner.model, fallback=True)
    check_named(
        settings, "planner.agent" if named == planner.agent and named else "agent", by.agent, by.model
    )
    check_evaluator(settings)
    check_accounts(settings, who_works(settings, by.agent))
    check_sandbox(settings)
    with glance_at(place.root) as repository:
        await check_prompts(repository, base.sha, place)
        await check_tree(repository, base.sha, place, settings, tell)
    async with opened(settings) as at:
        # A track has no place for gates.
        asked = _asked(request, goal, f"{text}\n{more}", gates=not settings.gates and tracks is None)
        planning = Planning(
            track=target.name,
            goal=goal,
            at=now(),
            planner=by.agent,
            version=1,
            max_fix_cycles=set_.fix_cycles,
        )

        def read(text: str) -> PlannedWork:
            work = YamlSource().parse({target.name: text.encode()}, target.name)
            return (
                work
                if tracks is None
                else as_track(planning, work, track.folder if track is not None else None)
            )

        async def plan(asked: Asked) -> Answered:
            return await ask(at, place, base, asked, by, drive)

        async def judge(text: str) -> Judgement | None:
            work = read(text)
            if not wanted(settings, work) or is_left_unevaluated(settings, work):
                return None
            return await judged(at, place, base, work, drive, name=target.name, goal=goal)

        made = await _made(asked, plan, judge)
    if made.text is not None:
        # An agent wrote it, and what is planned becomes rows.
        clean = redacted(made.text, secrets)
        if tracks is None:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, clean, hint="choose another place with --out")
        else:
            work = YamlSource().parse({target.name: clean.encode()}, target.name)
            write = write_plan if track is not None else write_track
            write(target, replace(planning, version=made.version), work, made.judgement)
    return Planned(
        plan_id=made.answered.plan_id,
        packet_id=packet.packet_id,
        path=target if made.text is not None else None,
        judgement=made.judgement,
        problems=made.answered.problems,
        rested=made.answered.rested,
    )


def _target(place: Place, tracks: Path | None, goal: str) -> Path:
    """Return where the plan for a goal is written: a file, or a track if the project has tracks."""
    name = name_of(goal)
    if tracks is None:
        return place.root / place.subfolder / FOLDER / f"{name}.yaml"
    before = sorted(tracks.glob(f"{name}_[0-9]*")) if tracks.is_dir() else []
    return before[-1] if before else tracks / f"{name}_{now():%Y%m%d}"


async def _planned_before(settings: Settings, place: Place, goal: str) -> Plan | None:
    """Return the earlier plan of the planner for exactly this goal; goals with the same beginning share a file."""
    if not has_home(settings):
        return None
    source = source_of(goal)
    async with opened(settings) as at:
        return await at.home.store.read(lambda tx: plan_of_source(tx, place.root, place.subfolder, source))


def _for_existing(goal: str, target: Path, *, own: bool) -> str:
    """Return what to do about an existing plan file; `own` allows the caller to name another file."""
    run = f"`{to_type('run', os.path.relpath(target, current_folder()))}` runs it as it is"
    if own:
        return f"{run}; choose another name with --out, or replace it with --force"
    return f"{run}; `{to_type('plan', goal, force=True)}` makes it again"


def packet_facts(place: Place, packet: str | None, goal: str = "") -> tuple[str, str | None]:
    """Return the goal of a plan, its own or that of its packet, and the run that the packet is about."""
    facts: Mapping[str, Any] = {}
    if packet is not None:
        facts = json.loads(_packet_file(place, packet).with_suffix(".json").read_text(encoding="utf-8"))
    task = facts.get("task") or {}
    goal = goal.strip() or str(facts.get("goal") or task.get("title") or task.get("key") or "")
    if not goal:
        raise UserError("a plan is made of a packet or of a goal", code="goal_empty", hint="name one of them")
    return goal, facts.get("run_id")


def _packet_file(place: Place, name: str) -> Path:
    """Return the Markdown of an existing packet, by the beginning of its id."""
    found = [path for path in state_files(place.root, PACKETS, "pkt_*.md") if path.stem.startswith(name)]
    if len(found) != 1:
        raise NotFound(
            f"{'several packets begin' if found else 'no packet begins'} with {name!r}",
            code="packet_not_found",
            hint="`loopwright inspect` makes one and prints its id",
        )
    return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    answered: Answered
    text: str | None
    """The text of the plan's file."""
    judgement: Judgement | None = None
    version: int = 1

    @property
    def is_objected_to(self) -> bool:
        return self.judgement is not None and bool(self.judgement.blocking)


async def _made(
    asked: Asked,
    plan: Callable[[Asked], Awaitable[Answered]],
    judge: Callable[[str], Awaitable[Judgement | None]],
) -> _Made:
    """Have a plan written and judged; after objections the planner gets one more try, which is judged again."""
    answered = await plan(asked)
    if answered.text is None:
        return _Made(answered=answered, text=None)
    text = as_written(answered.text)
    judgement = await judge(text)
    first = _Made(answered=answered, text=text, judgement=judgement)
    if judgement is None or not first.is_objected_to:
        return first
    said = [in_words(one) for one in judgement.blocking]
    task = objected(packaged("parts/objections"), asked.text, text, said)
    again = replace(asked, text=task, source=f"{asked.source}/corrected")
    mended = await plan(again)
    if mended.text is None:
        return first
    text = as_written(mended.text)
    return _Made(answered=mended, text=text, judgement=await judge(text), version=2)


def _asked(request: GoalRequest, goal: str, packet: str, *, gates: bool) -> Asked:
    draft = request.made_for
    return Asked(
        key=KEY,
        title=TITLED + " ".join(goal.split()),
        text=instructions(packaged("parts/goal"), goal, packet, gates=gates),
        answering=Answering(
            role=Role.PLANNER.value, file=FILE, fence=FENCE, schema=planner_schema(gates=gates)
        ),
        check=CHECK,
        arguments=("loopwright.services.plans.spec_check", *((GATES,) if gates else ())),
        source=f"goal:{draft}" if draft else source_of(goal),
        new=request.force and not draft,
        made_for=draft,
    )


def has_home(settings: Settings) -> bool:
    """Return whether there are rows to read; reading must not create a home."""
    return bool(settings.values.database) or (settings.home / "loopwright.db").exists()


async def estimate(
    settings: Settings, project: str | None, *, tasks: int, longest: int, side_by_side: int
) -> str:
    """Return the probable time and cost of a plan, from the project's earlier plans.

    `longest` is the number of tasks in its longest chain: those wait for each other, however many may run at
    once.
    """
    found: list[Any] = []
    if has_home(settings):
        async with opened(settings) as at:
            found = await at.home.store.read(lambda tx: _before(tx, project))
    whole = together(found)
    at_once = f"{side_by_side} side by side"
    if not whole.completed:
        return f"no estimate: no task was done in this project yet; it will work on {at_once}"
    cost = whole.cost_micros * tasks // whole.completed
    each = (whole.agent_seconds + whole.gate_seconds) / whole.completed
    seconds = each * max(longest, math.ceil(tasks / max(1, side_by_side)))
    known = f"about {money(cost)}" if cost and not whole.unknown_costs else "cost unknown"
    return (
        f"estimate from {counted(whole.completed, 'task')} done here before: {known}, "
        f"about {duration(seconds)} with {at_once}"
    )


def _before(tx: Tx, project: str | None) -> list[Any]:
    """Return what earlier plans took; plans that only asked an agent a question do not count."""
    plans = recent_plans(tx, project_path=project, limit=_COMPARED)
    return [plan_figures(tx, one) for one in plans if one.executed_at and one.policy.answer is None]

"""Checks before any cost: agents, folder, gates, and whether cost limits can be enforced."""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from loopwright.adapters import registry
from loopwright.adapters.git import GitRepository
from loopwright.adapters.git.plumbing.runner import user_env
from loopwright.app import accounts, chosen_sandbox
from loopwright.config.nearest import did_you_mean
from loopwright.config.resolve import Settings
from loopwright.core.policy.budget import CAPS
from loopwright.core.policy.fallback import named
from loopwright.core.policy.price_table import AS_OF
from loopwright.core.policy.prices import price_of
from loopwright.core.rows.model import Plan, Task
from loopwright.core.values.containment import Containment
from loopwright.core.values.errors import BadConfig, Refused, UserError
from loopwright.core.values.ids import short_id
from loopwright.core.values.permissions import KEEPING, Access
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import SETTLED_TASK
from loopwright.core.values.wording import listed, one_line, to_type
from loopwright.engine.intake.evaluation import to_do
from loopwright.engine.rows.ref_names import is_hand_branch
from loopwright.engine.rows.source_marks import SETTLED
from loopwright.ports import Base, PlannedWork, Tx, able
from loopwright.services.doctor.checkup_machine import how_to_contain
from loopwright.services.doctor.checkup_project import check
from loopwright.services.doctor.probes import FoundAgent, find_agent, secret_option
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import Place, uncommitted_settings
from loopwright.services.homes.repository import checkouts

# Whether a plan's cost limits can be enforced.


def check_costs(settings: Settings, work: PlannedWork) -> None:
    """Refuse a limit that cannot be enforced, because the cost of an agent would stay unknown."""
    policy = settings.policy()
    unkept = _unkept(policy, ((task.agent, task.model) for task in work.tasks))
    if unkept is None:
        return
    off = f"switch {unkept.limit} off"
    raise Refused(
        f"{settings.origin(unkept.limit)}: {unkept.why}",
        code="cost_limit_not_enforced",
        hint=f"{off}, or choose another agent"
        if unkept.model is None
        else f'set prices = ["{unkept.model} INPUT OUTPUT CACHE_READ"], in dollars for a million tokens, or {off}',
    )


def check_new_limits(tx: Tx, plan: Plan, limits: Mapping[str, int | None]) -> None:
    """Refuse to give a running plan a limit that cannot be enforced."""
    new: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    if not new:
        return
    tasks = [task for task in tx.find(Task, plan_id=plan.id) if task.status not in SETTLED_TASK]
    unkept = _unkept(replace(plan.policy, **new), ((task.agent, task.model) for task in tasks))
    if unkept is not None:
        raise Refused(
            unkept.why,
            code="cost_limit_not_enforced",
            hint="continue without a limit: a plan keeps the agents, models and prices of its start",
        )


def check_another_try(plan: Plan, agent: str | None, model: str | None) -> None:
    """Refuse to let an agent try a task if the plan's limits cannot be enforced with it."""
    unkept = _unkept(plan.policy, [(agent, model)])
    if unkept is not None:
        without = to_type("resume", short_id(plan.id), **{unkept.limit: "off"})
        raise Refused(
            unkept.why,
            code="cost_limit_not_enforced",
            hint=f"choose another agent or model, or first let the plan continue without that limit: `{without}`",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unkept:
    """A limit that cannot be enforced."""

    limit: str
    why: str
    model: str | None
    """The model whose price is unknown; None if the agent does not report its tokens."""


def _unkept(policy: Policy, tasks: Iterable[tuple[str | None, str | None]]) -> _Unkept | None:
    """Find the first agent whose cost would stay unknown, if a limit is set."""
    limit = next((name for name in CAPS if getattr(policy, name) is not None), None)
    if limit is None:
        return None
    for agent, model in _of_unknown_cost(policy, tasks):
        why = (
            f"the agent {agent} reports neither its cost nor its tokens"
            if model is None
            else f"{agent} reports only its tokens, and {_no_price(model)}"
        )
        return _Unkept(limit=limit, why=f"{limit} cannot be kept: {why}", model=model)
    return None


def _of_unknown_cost(
    policy: Policy, tasks: Iterable[tuple[str | None, str | None]]
) -> Iterator[tuple[str, str | None]]:
    """Find the agents whose cost would stay unknown, each with the model without a price if it reports its tokens.

    An agent without a model uses its default: its price is known once the agent reports the name. An agent that does
    not exist costs nothing: only its tasks fail.
    """
    known = registry.known_agents()
    at_work = [(agent or policy.agent, model or policy.model) for agent, model in tasks]
    review = policy.review
    if review.mode != "off":
        at_work += [(review.agent or agent, review.model) for agent, _ in at_work]
    for agent, model in dict.fromkeys((*at_work, *map(named, policy.fallback))):
        if agent not in known:
            continue
        can = able(registry.agent(agent), policy.agents.get(agent, {}))
        if can.isdisjoint({"cost", "usage"}):
            yield agent, None
        elif "cost" not in can and model is not None and price_of(model, policy.prices) is None:
            yield agent, model


def _no_price(model: str) -> str:
    return f"the price of the model {model} is unknown (model prices of {AS_OF})"


_OF_PLAN: Final = "plan "
"""The beginning of a setting's place if the plan itself has set it."""


def agents_of(work: PlannedWork, settings: Settings) -> tuple[FoundAgent, ...]:
    """Check every agent of a plan; raise `BadConfig` if the options of one are wrong."""
    # The plan stores the options of all agents.
    for name in settings.policy().agents:
        if secret := secret_option(name, settings):
            problem, hint = secret
            raise BadConfig(problem, code="secret_in_options", hint=hint)
    found = tuple(find_agent(name, settings, models=asked) for name, asked in _models(work, settings).items())
    if wrong := [one for one in found if one.wrong_options]:
        raise BadConfig(
            "\n".join(one.problem for one in wrong), code="agent_option_wrong", hint=wrong[0].hint
        )
    return found


def _models(work: PlannedWork, settings: Settings) -> dict[str, list[str | None]]:
    """Return the agents of a plan's tasks, each with the models that it should use."""
    policy = settings.policy()
    models: dict[str, list[str | None]] = {}
    for task in work.tasks:
        asked = models.setdefault(task.agent or policy.agent, [])
        if (model := task.model or policy.model) not in asked:
            asked.append(model)
    return models


def check_plan(settings: Settings, work: PlannedWork) -> None:
    """Refuse wrong agent settings that a plan sets or uses: all at once, each with its place.

    Wrong settings of other agents do not matter to the plan: `config check` reports them.
    """
    if problems := plan_problems(settings, work):
        raise BadConfig("\n".join(problems), code="settings_wrong", hint=_known_agents())


def check_tasks(settings: Settings, work: PlannedWork, source: str) -> tuple[FoundAgent, ...]:
    """Check the agents of a plan, and also refuse a task whose agent does not exist: a run would do the others."""
    known = registry.known_agents()
    problems = [
        f"{_place(source, work.lines.get(f'tasks.{task.key}'))}: task {task.key}: "
        f"there is no agent named {task.agent!r}{did_you_mean(task.agent, known)}"
        for task in work.tasks
        if task.agent is not None and task.agent not in known
    ]
    if settings.values.agent not in known:
        problems.append(_no_such_agent(settings, known))
    problems = [*plan_problems(settings, work), *problems]
    if problems:
        raise BadConfig("\n".join(problems), code="settings_wrong", hint=_known_agents())
    return agents_of(work, settings)


def plan_problems(settings: Settings, work: PlannedWork) -> list[str]:
    """Return what is wrong in the agent settings that a plan sets or uses."""
    known = registry.known_agents()
    values = settings.values
    used = _models(work, settings)
    for agent, model in map(named, values.fallback):
        used.setdefault(agent, [model])
    if values.review.mode != "off" and values.review.agent:
        used.setdefault(values.review.agent, [values.review.model])
    problems: list[str] = []
    for name, options in values.agents.items():
        places = [settings.origin(f"agents.{name}.{option}") for option in options]
        if name in used or any(place.startswith(_OF_PLAN) for place in places):
            problems += _wrong_options(settings, name, known, used.get(name, ()))
    return [*problems, *_unknown_fallback(settings)]


def _known_agents() -> str:
    return f"the agents are: {', '.join(registry.known_agents())}"


def _place(source: str, line: int | None) -> str:
    return f"{source}:{line}" if line else source


def _wrong_options(
    settings: Settings, name: str, known: Sequence[str], models: Sequence[str | None] = ()
) -> list[str]:
    if name not in known:
        options = settings.values.agents[name]
        place = next(settings.origin(f"agents.{name}.{option}") for option in options)
        return [f"{place}: agents.{name}: there is no agent of this name{did_you_mean(name, known)}"]
    found = find_agent(name, settings, models=models)
    return [f"{found.problem} ({found.hint})"] if found.wrong_options else []


def _no_such_agent(settings: Settings, known: Sequence[str]) -> str:
    guess = did_you_mean(settings.values.agent, known)
    return f"{settings.origin('agent')}: agent: there is no agent of this name{guess}"


def check_agents(settings: Settings, work: PlannedWork) -> tuple[str, ...]:
    """Refuse a plan if none of its agents is installed; return notes about missing ones."""
    if not to_do(work):
        return ()  # no agent has to work on it
    found = agents_of(work, settings)
    missing = [one for one in found if not one.usable]
    told = tuple(f"the agent {one.name} cannot be used: {one.problem}" for one in missing)
    if len(missing) == len(found):
        hints = dict.fromkeys(one.hint for one in missing)
        raise UserError(
            "; ".join(told), code="agent_unusable", hint="; ".join([*hints, "`loopwright doctor` shows more"])
        )
    return tuple(f"{one}; its tasks will fail" for one in told)


def check_agent(name: str, model: str | None, settings: Settings) -> None:
    """Refuse an agent that could not do a task, before anything is queued for it."""
    registry.agent(name)  # says which ones there are
    found = find_agent(name, settings, models=[model or settings.policy().model])
    if not found.usable:
        problem = f"the agent {name} cannot be used: {found.problem}"
        raise UserError(
            problem,
            code="agent_unusable",
            hint="; ".join(filter(None, (found.hint, "`loopwright doctor` shows more"))),
        )


def check_fallback(settings: Settings) -> None:
    """Refuse a fallback agent that could not take over: you should know that before the night, not during it."""
    if unknown := _unknown_fallback(settings):
        raise BadConfig(
            "\n".join(unknown),
            code="agent_unknown",
            hint=f"the agents are: {', '.join(registry.known_agents())}",
        )
    for agent, model in map(named, settings.values.fallback):
        found = find_agent(agent, settings, models=[model])
        if not found.usable:
            problem = (
                f"{settings.origin('fallback')}: fallback: the agent {agent} cannot be used: {found.problem}"
            )
            raise UserError(
                problem,
                code="agent_unusable",
                hint="; ".join(filter(None, (found.hint, "`loopwright doctor` shows more"))),
            )


def _unknown_fallback(settings: Settings) -> list[str]:
    known = registry.known_agents()
    names = dict.fromkeys(named(entry)[0] for entry in settings.values.fallback)
    origin = settings.origin("fallback")
    return [
        f"{origin}: fallback: there is no agent named {name!r}{did_you_mean(name, known)}"
        for name in names
        if name not in known
    ]


def check_review(settings: Settings) -> None:
    """Refuse a reviewer that could not work: you should know that before the work is done."""
    review = settings.values.review
    if review.mode != "off" and review.agent is not None:
        check_named(settings, "review.agent", review.agent, review.model)


def check_named(settings: Settings, key: str, name: str, model: str | None) -> None:
    """Refuse an agent that a setting names and that could not work."""
    origin, known = settings.origin(key), registry.known_agents()
    if name not in known:
        guess = did_you_mean(name, known)
        raise BadConfig(
            f"{origin}: {key}: there is no agent named {name!r}{guess}",
            code="agent_unknown",
            hint=_known_agents(),
        )
    found = find_agent(name, settings, models=[model])
    if found.wrong_options:
        raise BadConfig(found.problem, code="agent_option_wrong", hint=found.hint)
    if not found.usable:
        problem = f"{origin}: {key}: the agent {name} cannot be used: {found.problem}"
        raise UserError(
            problem,
            code="agent_unusable",
            hint="; ".join(filter(None, (found.hint, "`loopwright doctor` shows more"))),
        )


def who_works(settings: Settings, *more: str | None) -> frozenset[str]:
    """Return the names of all agents that may have a run: those of the settings, and these."""
    set_ = settings.values
    others = (set_.review.agent, set_.evaluator.agent, *(named(entry)[0] for entry in set_.fallback))
    return frozenset(filter(None, (set_.agent, *others, *more)))


def check_accounts(settings: Settings, used: Collection[str] | None = None) -> None:
    """Refuse an account with which its agent could not start, before any cost.

    With named agents, only theirs: an account of an unused agent may be incomplete.
    """
    known = registry.known_agents()
    for agent, several in accounts(settings, environment()).items():
        if agent not in known:
            raise BadConfig(
                f"agents.{agent}.accounts: there is no agent named {agent!r}{did_you_mean(agent, known)}",
                code="agent_unknown",
                hint=f"the agents are: {', '.join(known)}",
            )
        for one in several if used is None or agent in used else ():
            check(agent, one, settings)


def check_options(settings: Settings) -> None:
    """Refuse options of agents that do not exist, or that the agent does not know: each with its place."""
    check_accounts(settings)
    known = registry.known_agents()
    problems = [one for name in settings.values.agents for one in _wrong_options(settings, name, known)]
    if settings.values.agent not in known:
        problems.append(_no_such_agent(settings, known))
    problems += _unknown_fallback(settings)
    if problems:
        raise BadConfig(
            "\n".join(problems), code="settings_wrong", hint=f"the agents are: {', '.join(known)}"
        )


def warnings(settings: Settings, work: PlannedWork) -> tuple[str, ...]:
    """Return notes about settings that are allowed, but probably not meant for this plan."""
    told = []
    if settings.values.permission_mode == Access.READ_ONLY.value:
        place = settings.origin("permission_mode")
        told.append(
            f"permission_mode is read-only ({place}): agents may change no file, so no work comes of this plan"
        )
    review = settings.values.review
    named = "review.agent" if review.agent else "review.model" if review.model else ""
    if named and review.mode == "off":
        told.append(f"{named} is set ({settings.origin(named)}), but review.mode is off: nothing is reviewed")
    evaluator = settings.values.evaluator
    named = "evaluator.agent" if evaluator.agent else "evaluator.model" if evaluator.model else ""
    if named and evaluator.mode == "off" and work.track is None:
        told.append(
            f"{named} is set ({settings.origin(named)}), but evaluator.mode is off: only tracks are evaluated"
        )
    if unknown := sorted({*settings.values.installed_gates} - {gate.name for gate in settings.gates}):
        place = settings.origin("installed_gates")
        told.append(f"installed_gates ({place}) names no gate of this plan: {', '.join(unknown)}")
    told += [
        f"{agent} reports only its tokens, and {_no_price(model)}: its cost stays unknown. "
        f'Set prices = ["{model} INPUT OUTPUT CACHE_READ"], in dollars for a million tokens'
        for agent, model in _of_unknown_cost(
            settings.policy(), ((task.agent, task.model) for task in work.tasks)
        )
        if model is not None
    ]
    return tuple(told)


def check_keeping(settings: Settings, work: PlannedWork) -> tuple[str, ...]:
    """Return the agents for which nothing enforces the permission mode here; refuse those that must change nothing."""
    policy = settings.policy()
    names = (*_models(work, settings), *(named(entry)[0] for entry in policy.fallback))
    return keeping(settings, policy, names, place=settings.origin("permission_mode"))


def keeping(settings: Settings, policy: Policy, names: Iterable[str], *, place: str) -> tuple[str, ...]:
    """Warn about agents without an enforced permission mode, for a policy that was set in this place."""
    unasked = policy.permission_mode == Access.SANDBOXED_ALL.value
    known = registry.known_agents()
    free = [
        name
        for name in dict.fromkeys(names)
        if name in known and KEEPING.isdisjoint(able(registry.agent(name), policy.agents.get(name, {})))
    ]
    if not free and not unasked:
        return ()
    chosen = chosen_sandbox(settings, environment())
    if chosen.sandbox.level is not Containment.NONE:
        return ()
    contain = f"To contain {{}}: {how_to_contain(chosen)}."
    if unasked:
        asks = f"ask for no permission (permission_mode is sandboxed-all, {place})"
        told = (
            f"Agents run without a sandbox and {asks}: they can change any file you can, and run any program."
        )
        return (f"{told} {contain.format('them')}",)
    if policy.permission_mode == Access.READ_ONLY.value:
        raise Refused(
            f"permission_mode is read-only ({place}), but nothing keeps {listed(free)} to that here",
            code="read_only_not_enforced",
            hint="`loopwright doctor` says what a sandbox needs; or choose an agent that asks for leave",
        )
    one = len(free) == 1
    who = f"The `{free[0]}` agent runs" if one else f"The agents {listed(free)} run"
    can = f"can change any file you can, and {'runs' if one else 'run'} any program unasked"
    return (f"{who} without a sandbox and {can}. {contain.format('it' if one else 'them')}",)


def check_gates(settings: Settings, work: PlannedWork) -> None:
    """Refuse a plan whose result nothing would check, before any cost."""
    if settings.gates or settings.policy().allow_unverified:
        return
    if bare := [task.key for task in work.tasks if not task.acceptance and task.mark not in SETTLED]:
        raise Refused(
            f"nothing would check the work of: {listed(bare)}",
            code="no_gates",
            hint="run `loopwright init`, which finds the project's checks; or give the tasks acceptance commands; "
            "or set `allow_unverified` to land unchecked work",
        )


def check_sandbox(settings: Settings) -> None:
    """Refuse to start without the sandbox that the settings name or need, or with a network that they forbid."""
    wanted = settings.values.sandbox
    if wanted.required:
        chosen = chosen_sandbox(settings, environment(), refuse=True)
        if chosen.sandbox.level is Containment.NONE:
            raise UserError(
                f"sandbox.required is true, but there is no sandbox here: {chosen.proof.why_not}",
                code="sandbox_required",
                hint=f"to contain agents: {how_to_contain(chosen)}",
            )
    if wanted.level in {"bubblewrap", "container"} or wanted.network != "on":
        chosen_sandbox(settings, environment(), refuse=True)


async def check_folder(repository: GitRepository, start: Base, place: Place) -> None:
    """Refuse the checkout of a taken-over task, and a subfolder that the base commit does not have."""
    if is_hand_branch(start.ref):
        project = next(iter(checkouts(place.root)[1:]), None)
        raise Refused(
            f"{place.root} is the checkout of a task that you took over, and its plan is run from the project's own",
            code="checkout_taken_over",
            hint=f"`cd {shlex.quote(str(project))}` first"
            if project
            else "change into the project's own first",
        )
    if not place.subfolder:
        return
    name = f"{start.sha}:{place.subfolder}"
    found = await repository.git.run("cat-file", "-t", name, env=user_env(), cwd=place.root, ok=(0, 128))
    if found.text != "tree":
        raise Refused(
            f"the folder {place.subfolder} is not in {start.sha[:7]}, the commit that the plan would start from",
            code="folder_not_in_base",
            hint="commit what is in it first, or run from the top of the repository",
        )


def uncommitted(start: Base, settings_file: str | None, *, committed: bool, plan: str) -> tuple[str, ...]:
    """Return in plain words which changes in the checkout are not part of the work, and whose settings count.

    `settings_file` is the project file that was read, relative to the repository; `committed` is whether it
    was read from the base commit or, because that has none, from the checkout. `plan` is the file or folder
    of the plan, which is read from the checkout.
    """
    told: list[str] = []
    if settings_file is not None and not committed:
        told.append(
            f"{settings_file} is not committed, so its settings are taken from your checkout; once a commit has "
            "it, only the committed one counts"
        )
    elif settings_file is not None and settings_file in start.dirty:
        told.append(f"{uncommitted_settings(settings_file)} (they are read from {start.sha[:7]})")
    known = {settings_file, plan}
    rest = [name for name in start.dirty if name not in known and not name.startswith(f"{plan}/")]
    if rest:
        told.append(f"not committed, so not part of the work: {listed(rest)}")
    return tuple(told)


async def other_base(
    repository: GitRepository, start: Base, root: Path, work: PlannedWork
) -> tuple[str, ...]:
    """Return a note if a plan starts from another commit than the branch that its source names."""
    name = work.base_branch
    if name in ("", start.ref):
        return ()
    tip = ""
    if name.isprintable():
        words = ("rev-parse", "-q", "--verify", f"refs/heads/{name}^{{commit}}")
        tip = (await repository.git.run(*words, env=user_env(), cwd=root, ok=(0, 1, 128))).text
    if tip == start.sha:
        return ()
    here = f"it starts from {start.ref} ({start.sha[:7]})"
    if not tip:
        return (f"its source names the base branch {one_line(name)}, and there is none here: {here}",)
    return (f"its source names the base branch {name}, and {here}: --base {name} starts from there",)


def relative(path: Path, root: Path) -> str:
    """Return a path relative to its repository, or as it is if it is elsewhere."""
    whole = path.resolve()
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else str(path)


async def check_held_out(
    repository: GitRepository, start: Base, place: Place, plan: Path, work: PlannedWork, copied: Sequence[str]
) -> None:
    """Refuse held-out checks that every agent would find in its workspace."""
    files = [file.path for task in work.tasks for one in task.held_out for file in one.files]
    if not any(task.held_out for task in work.tasks):
        return
    project, beside = place.root / place.subfolder, plan.resolve().parent
    shown = [plan.resolve(), *(folder / path for path in files for folder in (beside, project))]
    for path in (one for one in dict.fromkeys(shown) if one.is_relative_to(place.root)):
        name = path.relative_to(place.root).as_posix()
        if await repository.file_at(start.sha, name) is not None:
            why = "is in git"
        elif any(path.is_relative_to(project / one) for one in copied):
            why = "is copied into workspaces (copy_files)"
        else:
            continue
        raise Refused(
            f"{name} {why}, so agents would see what is held out",
            code="held_out_files_visible",
            hint="keep the plan and its held-out files outside of the repository, or ignored by git",
        )

"""The composition root: the only module that knows every part."""

import os
import platform
import random
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from loopwright import __version__
from loopwright.adapters import registry
from loopwright.adapters.agents.agent_settings import settings_in
from loopwright.adapters.agents.asked import ask_tool, asked_by_tool, discovered_by_tool, forget_noted
from loopwright.adapters.agents.environment import Environments, secret_values
from loopwright.adapters.agents.loop_tools import loop_tools
from loopwright.adapters.agents.transcripts import carry_transcript
from loopwright.adapters.gates.commands import RUNNER
from loopwright.adapters.git import GitRepository, workspace_env
from loopwright.adapters.home.dependency_cache import DependencyCache
from loopwright.adapters.home.membership import LeasedMembership, LockedMembership
from loopwright.adapters.home.own_sources import own_sources
from loopwright.adapters.home.statefiles import ProjectStateFiles
from loopwright.adapters.home.submitters import asked
from loopwright.adapters.home.user_folder import Views, forget_sessions, user_folder
from loopwright.adapters.machine.disk import HomeDisk
from loopwright.adapters.machine.files import copy_folder
from loopwright.adapters.machine.host import SystemClock, boot_id, host_id, new_id
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.adapters.processes.redaction import redacted
from loopwright.adapters.sandbox.choosing import Chosen, choose
from loopwright.adapters.sandbox.container import NOTES
from loopwright.adapters.sources.text.writing import put_files
from loopwright.adapters.store.sql import SqlStore
from loopwright.config.accounts import accounts as named_accounts
from loopwright.config.home import expand, user_file
from loopwright.config.resolve import Settings
from loopwright.core.policy.monitor import Thresholds
from loopwright.core.policy.share import SlotLimits, read_slots
from loopwright.core.rows.model import Leg, Plan, Project
from loopwright.core.values.accounts import Accounts
from loopwright.core.values.environments import FORGE_TOKENS
from loopwright.core.values.errors import StaleVersion
from loopwright.engine.memory.worker_facts import Room
from loopwright.engine.plans.state_export import Outbox
from loopwright.engine.rows.world import HomePaths, MakeView, Me, World
from loopwright.engine.worker.worker import WorkerLoop
from loopwright.ports import Engine, Failpoint, Forge, Issues, Membership, Source, no_failpoint

PIPELINE_VERSION = "1"
"""Raised when legs of an older program must not be carried on by this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """An open home."""

    root: Path
    database: str | Path
    store: SqlStore
    membership: Membership
    failpoint: Failpoint


def open_home(settings: Settings, env: Mapping[str, str], *, create: bool = True) -> Home:
    """Open the home that the settings name."""
    failpoint = failpoint_from(env)
    root = settings.home
    url = settings.values.database
    database: str | Path = url or root / "loopwright.db"
    if create:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = SqlStore.open(database, failpoint=failpoint, create=create)
    membership: Membership = LeasedMembership() if url else LockedMembership(root)
    return Home(root=root, database=database, store=store, membership=membership, failpoint=failpoint)


def make_world(
    home: Home,
    settings: Settings,
    env: Mapping[str, str],
    *,
    slots: int,
    project_id: str | None = None,
    submitter: str = "",
) -> World:
    """Put the ports of one worker together; with a project, it starts nothing for other projects.

    `submitter` is the submission that this environment belongs to.
    """
    opened = repositories(home)
    env_of = environments(settings, env, submitter=submitter)
    chosen = cache(partial(chosen_sandbox, settings, env, refuse=True))
    return World(
        me=Me(
            host_id=host_id(home.root),
            boot_id=boot_id(),
            hostname=socket.gethostname() or platform.node(),
            pid=os.getpid(),
            slots=slots,
            version=__version__,
            lease_s=settings.values.lease,
            project_id=project_id,
        ),
        slot_limits=SlotLimits(
            agents=dict(map(read_slots, settings.values.agent_slots)),
            project=settings.values.project_slots or None,
        ),
        paths=HomePaths(root=home.root),
        store=home.store,
        clock=SystemClock(),
        ids=new_id,
        chance=random.random,
        keepers=ProcessKeepers(failpoint=home.failpoint, loads=RUNNER, containers=home.root / NOTES),
        repository=opened,
        agent=cache(registry.agent),
        gate=registry.gate("commands"),
        engine=_engine(home),
        membership=home.membership,
        environment=env_of,
        secrets=partial(secrets_of, env),
        workspace_values=workspace_env,
        own_sources=own_sources,
        may_act=lambda: True,
        asked=asked_by_tool,
        discovered=discovered_by_tool,
        forget_noted=forget_noted,
        redact=redacted,
        tools=ask_tool,
        loop_tools=partial(loop_tools, home.root),
        home_view=home_view(settings, env),
        settings_in=settings_in,
        carry_transcript=carry_transcript,
        forget_sessions=forget_sessions,
        accounts=accounts(settings, env),
        sandbox=lambda: chosen().sandbox,
        network=settings.values.sandbox.network,
        borrowed=lambda project: opened(project).borrowed(),
        forge=partial(_forge_of, settings, env_of),
        source=cache(_known_source),
        put_files=put_files,
        look_s=settings.values.monitor.every,
        thresholds=Thresholds(
            stuck=settings.values.monitor.stuck, stuck_in_tool=2 * settings.values.monitor.stuck
        ),
        room=Room(
            disk=HomeDisk(home.root),
            min_free=settings.values.disk.min_free,
            max_workspace=settings.values.disk.max_workspace,
            keep_recordings=settings.values.disk.keep_recordings,
        ),
        dependencies=DependencyCache(home.root / "dependencies"),
        copy_folder=copy_folder,
    )


def environments(settings: Settings, env: Mapping[str, str], *, submitter: str = "") -> Environments:
    """Return what makes the environments of plans in a process with this environment."""
    return Environments(
        env=env,
        host_id=host_id(settings.home),
        env_file=settings.values.env_file,
        secrets_from=settings.values.secrets_from,
        own=submitter,
        asked=partial(asked, settings.home),
    )


def _known_source(kind: str) -> Source | None:
    return registry.source(kind) if kind in registry.known_sources() else None


def forge(settings: Settings, env: Mapping[str, str], address: str) -> Forge:
    """Return the repository on a forge that a remote's address means; raise `Refused` with what to do."""
    # Its library takes a while to import: only plans that end in a pull request pay for it.
    from loopwright.adapters.forge.choosing import open_forge

    wanted = settings.values.forge
    return open_forge(address, hosts=wanted.hosts, token_file=wanted.token_file, env=env)


def issues(settings: Settings, env: Mapping[str, str], address: str) -> Issues:
    """Return the issues of the repository that a remote's address means; raise `Refused` with what to do."""
    # As above: only work that comes from a forge needs its library.
    from loopwright.adapters.forge.choosing import open_issues

    wanted = settings.values.forge
    return open_issues(address, hosts=wanted.hosts, token_file=wanted.token_file, env=env)


def _forge_of(settings: Settings, env_of: Environments, plan: Plan, address: str) -> Forge:
    return forge(settings, env_of.lent(plan, FORGE_TOKENS), address)


def accounts(settings: Settings, env: Mapping[str, str]) -> Accounts:
    """Return the accounts that the settings name, with their paths made whole."""
    return named_accounts(settings.values.accounts, env, settings.origins)


def chosen_sandbox(settings: Settings, env: Mapping[str, str], *, refuse: bool = False) -> Chosen:
    """Return what contains runs here; `refuse` to do without what was asked for by name."""
    wanted = settings.values.sandbox
    chosen = choose(
        wanted.level,
        program=wanted.program,
        home=settings.home,
        own=(*_own_folders(settings, env), *_secret_files(settings, env)),
        user=user_folder(env),
        read=wanted.read,
        write=wanted.write,
        network=wanted.network,
        image=wanted.image,
        engine=wanted.engine,
        env=env,
    )
    if refuse:
        chosen.check()
    return chosen


def _secret_files(settings: Settings, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the files with secrets that settings name: no run sees them, wherever they are."""
    named = filter(None, (settings.values.forge.token_file, settings.values.env_file))
    return tuple(expand(Path(one), env) for one in named)


def _own_folders(settings: Settings, env: Mapping[str, str]) -> tuple[Path, ...]:
    own_file = user_file(env)
    return (settings.home, *((own_file.parent,) if own_file is not None else ()))


def home_view(settings: Settings, env: Mapping[str, str]) -> MakeView:
    """Return what decides how much of the user's HOME each run sees."""
    wanted = settings.values.user_folder
    own = _own_folders(settings, env)
    homes = tuple(
        Path(one.home) for several in accounts(settings, env).values() for one in several if one.home
    )
    return Views(
        real=user_folder(env),
        own=own,
        show=wanted.show,
        hide=wanted.hide,
        accounts=homes,
        whole=not wanted.private,
    )


def make_worker(world: World, *, only_end: bool = False, only_finish: str | None = None) -> WorkerLoop:
    """Return a worker over these ports, or one that only ends what a person wants ended, or one plan."""
    return WorkerLoop(world, ProjectStateFiles(), only_end=only_end, only_finish=only_finish)


async def catch_up_state_files(world: World) -> bool:
    """Write what a killed worker left unwritten, and tell sources what they are owed; False if another one is at it."""
    if not world.membership.acquire({"pid": os.getpid(), "command": "state files"}):
        return False
    outbox = Outbox(world, ProjectStateFiles())
    try:
        await outbox.catch_up()
        await outbox.pay_debts()
    except StaleVersion:
        return False  # on a home that is shared a controller may do so at the same moment
    finally:
        world.membership.release()
    return True


def repositories(home: Home) -> Callable[[Project], GitRepository]:
    """Return a function that opens each project's repository once."""
    opened: dict[str, GitRepository] = {}

    def repository(project: Project) -> GitRepository:
        if project.id not in opened:
            opened[project.id] = GitRepository(
                Path(project.path), project_id=project.id, home=home.root, failpoint=home.failpoint
            )
        return opened[project.id]

    return repository


def _engine(home: Home) -> Engine:
    if home.membership.exclusive:
        # A shared home needs the other one.
        from loopwright.adapters.dispatch.local import LocalEngine

        return LocalEngine(on_error=_report)
    # DBOS takes a while to import: only homes that are shared among machines pay for it.
    from loopwright.adapters.dispatch.dbos import DbosEngine

    return DbosEngine(
        str(home.database), version=PIPELINE_VERSION, on_error=_report, host_id=host_id(home.root)
    )


def _report(leg: Leg, error: BaseException) -> None:
    """The worker records what goes wrong in a leg itself; an error that gets here is a defect of the worker."""
    raise RuntimeError(f"leg {leg.id} ended with an error that was not recorded") from error


def secrets_of(host_env: Mapping[str, str], env: Mapping[str, str], given: Sequence[str]) -> tuple[str, ...]:
    """Return the secrets of a run, including those that it was not given but may find: they must not be stored."""
    elsewhere = {
        name: value
        for name, value in host_env.items()
        # Without its path nothing that an agent does could be told.
        if name not in env and not os.path.exists(value)  # noqa: PTH110 - most are no paths, some are too long for one
    }
    return tuple(dict.fromkeys((*secret_values(env, given), *secret_values(elsewhere))))


def failpoint_from(env: Mapping[str, str]) -> Failpoint:
    """Return what tests of crashes use: `LOOPWRIGHT_FAILPOINT=one,other:3` kills this process at such a moment.

    The number says at which of its occurrences; the trace names every moment that was reached.
    """
    wanted, trace = env.get("LOOPWRIGHT_FAILPOINT"), env.get("LOOPWRIGHT_FAILPOINT_TRACE")
    if not wanted and not trace:
        return no_failpoint
    left: dict[str, int] = {}
    for one in filter(None, (wanted or "").split(",")):
        name, _, count = one.partition(":")
        left[name] = int(count or "1")

    def failpoint(reached: str) -> None:
        if trace:
            with Path(trace).open("a") as file:
                file.write(reached + "\n")
        if reached in left:
            left[reached] -= 1
            if left[reached] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return failpoint

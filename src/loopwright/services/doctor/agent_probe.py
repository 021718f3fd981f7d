"""`doctor --agent X --probe`: one real turn of an agent, with the user's own login, as in a run."""

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from loopwright.adapters import registry
from loopwright.adapters.agents.environment import agent_environment, with_secrets
from loopwright.adapters.git import workspace_env
from loopwright.adapters.machine.host import new_id
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.adapters.sandbox.container import NOTES
from loopwright.app import accounts, chosen_sandbox, home_view, secrets_of
from loopwright.config.resolve import Settings
from loopwright.core.policy.prices import estimate
from loopwright.core.values.accounts import called, usual
from loopwright.core.values.containment import Containment
from loopwright.core.values.errors import CannotRun, UserError
from loopwright.core.values.failures import Failure
from loopwright.core.values.ids import Kind
from loopwright.core.values.permissions import Access, Permissions
from loopwright.core.values.policy import Limits
from loopwright.core.values.wording import duration, money, one_line
from loopwright.engine.money import quotas as accounts_of_runs
from loopwright.engine.processes.runs import Ended, agent_spec, drive_agent
from loopwright.engine.processes.sandboxing import Shared, contain_agent
from loopwright.ports import AgentRequest, AgentResult, Spent
from loopwright.prompts import packaged
from loopwright.services.doctor.checkup_machine import Finding, Status
from loopwright.services.doctor.probes import LOGIN, find_agent
from loopwright.services.homes.caller import environment
from loopwright.services.quota import window_in_words

_NO_GIT: Final = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_TO_DO: Final[Mapping[Failure | None, str]] = {
    Failure.AUTH: "{login}",
    Failure.BILLING: "top up the account, or log in with another one",
    Failure.USAGE_LIMIT: "wait until the account is open (`loopwright stats quota`), or probe another with --account",
    Failure.RATE_LIMIT: "probe it again in a few minutes",
    Failure.OVERLOADED: "probe it again in a few minutes",
    Failure.MODEL: "choose a model that the account has (--model, or the setting `model`)",
    Failure.CANNOT_START: "start the program by hand and see what it says",
    Failure.CRASH: "start the program by hand and see what it says",
    Failure.ENVIRONMENT: "see that the service can be reached from here: network, proxy, and the address it is given",
    Failure.TIMEOUT: "{login}; and see that the service can be reached from here",
    Failure.HANG: "{login}; and see that the service can be reached from here",
}
_NOT_BEGUN: Final = frozenset({Failure.CANNOT_START, Failure.CRASH})
_OTHER_WAY: Final[Mapping[str, tuple[str, str, str]]] = {
    "codex": ("protocol", "exec", 'try it without its app server: `protocol = "exec"` in [agents.codex]')
}
"""Agents with an alternative to their usual way to run: the option, its value, and its description."""
_LIMITS: Final = Limits(hard=120.0, idle=60.0, done_grace=10.0)


def probe(name: str, settings: Settings, account: str | None = None, model: str | None = None) -> Finding:
    """Let an agent make one turn in an empty repository, and return the result."""
    title = f"probe of {called(name, account)}"
    found = find_agent(name, settings)
    if not found.usable:
        # Nothing is started yet, so a missing program leaves nothing in the user's folders.
        return Finding(name=title, status=Status.FAIL, text=one_line(found.problem, 300), fix=found.hint)
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="loopwright-probe-", dir=_place(settings)) as scratch:
            workspace = _repository(Path(scratch) / "workspace")
            ended = asyncio.run(_turn(name, settings, Path(scratch), workspace, account, model))
    except (CannotRun, UserError, OSError, subprocess.CalledProcessError) as problem:
        hint = getattr(problem, "hint", None)
        return Finding(name=title, status=Status.FAIL, text=one_line(str(problem), 300), fix=hint or "")
    took = duration(time.monotonic() - began)
    result = ended.result
    if result is None or not result.claimed:
        failure = result.failure if result else None
        detail = (result.detail or result.summary) if result else ""
        kind = failure.value.replace("_", " ") if failure else "it did not finish its turn"
        text = ": ".join(filter(None, (kind, one_line(detail, 240)))) + _quota(result)
        return Finding(name=title, status=Status.FAIL, text=text, fix=_to_do(name, failure, settings))
    told = ", ".join(
        filter(
            None,
            (result.model, result.version and f"version {result.version}", took, _cost(result, settings)),
        )
    )
    return Finding(
        name=title,
        status=Status.OK,
        text=f"it answered {one_line(result.summary, 40)!r} ({told}){_quota(result)}",
    )


def _quota(result: AgentResult | None) -> str:
    """Return the service's report about the account; it is recorded only for accounts that runs use."""
    known = [window_in_words(one, closed=True) for one in result.windows] if result else []
    return f"; its quota: {', '.join(' '.join(one.split()) for one in known)}" if known else ""


def _cost(result: AgentResult, settings: Settings) -> str:
    if result.cost_micros is not None:
        return money(result.cost_micros)
    estimated = estimate(result.model, result.usage, settings.values.prices)
    return "cost unknown" if estimated is None else money(estimated, estimated=True)


def _to_do(name: str, failure: Failure | None, settings: Settings) -> str:
    """Return what to do about a failed probe; empty if only its output says that."""
    login = LOGIN.get(name, "log in with the agent's own program")
    said = _TO_DO[failure].format(login=login) if failure in _TO_DO else ""
    option, value, instead = _OTHER_WAY.get(name, ("", "", ""))
    taken = settings.policy().agents.get(name, {}).get(option) == value
    return f"{said}; or {instead}" if instead and failure in _NOT_BEGUN and not taken else said


def _place(settings: Settings) -> Path:
    """Return the place of the folders of runs: some agents behave differently below the machine's TMPDIR."""
    place = settings.home / "probes"
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place


def _repository(workspace: Path) -> Path:
    plain = {"PATH": environment().get("PATH", os.defpath), **_NO_GIT}
    subprocess.run(["git", "init", "-q", str(workspace)], check=True, env=plain, capture_output=True)
    return workspace


async def _turn(
    name: str, settings: Settings, scratch: Path, workspace: Path, account: str | None, model: str | None
) -> Ended:
    policy = settings.policy()
    agent = registry.agent(name)
    run_id = new_id(Kind.RUN)
    sandbox = chosen_sandbox(settings, environment(), refuse=True).sandbox
    directory = scratch / "runs" / run_id
    request = AgentRequest(
        prompt=packaged("parts/probe").fill({}),
        workspace=workspace,
        run_directory=directory,
        model=model or policy.model,
        permissions=Permissions(access=Access.READ_ONLY),
        contained=sandbox.level is not Containment.NONE,
        options=policy.agents.get(name, {}),
    )
    known = accounts(settings, environment())
    drawn = accounts_of_runs.account(known, name, account or usual(known, name))
    invocation = accounts_of_runs.drawing(agent.invocation(request), name, drawn)
    given = (*policy.environment, *policy.environment_plain)
    here = with_secrets(
        environment(),
        settings.values.env_file,
        settings.values.secrets_from,
        policy.environment,
        environment(),
    )
    env = agent_environment(here, invocation, given, dict(workspace_env(workspace)))
    env, view = home_view(settings, environment())(env, invocation, scratch / "user")
    spec = agent_spec(
        request,
        invocation,
        run_id=run_id,
        env=env,
        limits=replace(_LIMITS, term_grace=policy.limits.term_grace),
        secrets=(
            *secrets_of(environment(), env, policy.environment),
            *(env[name] for name in drawn.variables),
        ),
        home=sandbox.view(view),
    )
    shared = Shared(network=settings.values.sandbox.network)
    spec, _ = contain_agent(sandbox, spec, request, shared)
    keepers = ProcessKeepers(containers=settings.home / NOTES)
    try:
        return await drive_agent(
            keepers,
            agent,
            spec,
            request=request,
            before=Spent(),
            interrupt=asyncio.Event(),
            heard=lambda _event: None,
        )
    finally:
        # A keeper outlives us on purpose; after Ctrl-C this one must not.
        if keepers.look(directory).state != "absent":
            await keepers.end(directory, polite=False)
        await keepers.sweep(run_id)
        keepers.close()

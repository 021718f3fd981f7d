"""Puts together the environment of a plan's runs: as it was where the plan was submitted, whoever executes it."""

import os
import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.agents.environment import agent_environment
from loopwright.core.rows.model import Plan
from loopwright.core.values.environments import PLACES, PlanEnvironment, is_kept
from loopwright.core.values.errors import NoEnvironment
from loopwright.core.values.ids import short_id
from loopwright.core.values.shell_hints import to_type
from loopwright.ports import Invocation

_LARGEST: Final = 1 << 20


def gone(environment: PlanEnvironment | None, host_id: str) -> str:
    """Return which program of a plan's checks is gone from this machine since the plan was submitted; else nothing."""
    if environment is None or environment.host_id != host_id:
        return ""
    for name, text in environment.programs.items():
        path = Path(text)
        if not path.parent.is_dir():
            return f"{path.parent} is gone: {name} was there when the plan was submitted, and it was on PATH"
        if not os.access(path, os.X_OK):
            return f"{path} is gone: it was {name} when the plan was submitted"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """Makes the environments of a plan's runs."""

    env: Mapping[str, str]
    """The environment of this process."""
    host_id: str
    env_file: str | None = None
    own: str = ""
    """The submission of this process, if it made one."""
    asked: Callable[[str, Collection[str]], Mapping[str, str] | None] = lambda _submitter, _names: None
    """Asks a submitting process for variables; None when it is gone."""

    def __call__(
        self, plan: Plan, invocation: Invocation | None, values: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the complete environment of one run; raise `NoEnvironment` when it cannot be had here."""
        names = (*plan.policy.environment, *plan.policy.environment_plain)
        then = plan.environment
        host_env = (
            self._host_env(plan, then, invocation)
            if then
            else with_file(self.env, self.env_file, plan.policy.environment)
        )
        return agent_environment(host_env, invocation, names, values)

    def lent(self, plan: Plan, names: Collection[str]) -> Mapping[str, str]:
        """Return the environment of this process with these variables as the submitting process has them."""
        then = plan.environment
        answer = self._answered(then, names) if then and then.host_id == self.host_id else None
        if answer is None:
            return self.env
        return {**{name: value for name, value in self.env.items() if name not in names}, **answer}

    def _host_env(
        self, plan: Plan, then: PlanEnvironment, invocation: Invocation | None
    ) -> Mapping[str, str]:
        if missing := gone(then, self.host_id):
            raise NoEnvironment(
                f"{missing}; put it back and `loopwright resume {short_id(plan.id)}`, "
                "or run the plan again from a terminal that has it"
            )
        here = then.host_id == self.host_id
        configured = {*plan.policy.environment, *plan.policy.environment_plain}
        found = {
            name: value
            for name, value in self.env.items()
            if name not in configured and (not is_kept(name) or (name in PLACES and not here))
        }
        found |= {name: value for name, value in then.values.items() if here or name not in PLACES}
        # The keys of an agent, and what an account takes them from, are the submitter's as well while it lives.
        keys = {*invocation.inherit, *invocation.renamed.values()} if invocation else set()
        keys -= then.values.keys()
        answer = self._answered(then, {*then.secrets, *keys}) if here else None
        if answer is not None:
            found = {name: value for name, value in found.items() if name not in keys} | dict(answer)
        else:
            found |= {name: self.env[name] for name in {*then.secrets, *keys} if name in self.env}
        in_file = {*plan.policy.environment, *then.secrets, *(keys if answer is None else ())}
        complete = with_file(found, self.env_file, in_file)
        if unset := [name for name in then.secrets if name not in complete]:
            raise NoEnvironment(self._lacking(unset, short_id(plan.id)))
        return complete

    def _lacking(self, unset: Collection[str], plan: str) -> str:
        again = "start that process again with it"
        ways = f"put it into {self.env_file} (the setting env_file), or {again}"
        if not self.env_file:
            ways = f"{again}, or with the setting env_file, which names a file that has it"
        return (
            f"{', '.join(unset)} was set where the plan was submitted, and process {os.getpid()} on "
            f"{socket.gethostname()}, which executes the plan, does not have it; {ways}, then: "
            f"{to_type('resume', plan)}; or run the plan's file again from a terminal that has it"
        )

    def _answered(self, then: PlanEnvironment, names: Collection[str]) -> Mapping[str, str] | None:
        if then.submitter == self.own:
            return {name: self.env[name] for name in names if name in self.env}
        return self.asked(then.submitter, names) if names else None


def with_file(env: Mapping[str, str], env_file: str | None, names: Collection[str]) -> Mapping[str, str]:
    """Return an environment, and from the file those of these variables that it lacks."""
    lacking = {*names} - env.keys()
    if not lacking or not env_file:
        return env
    file = read_env_file(Path(env_file).expanduser())
    return {**env, **{name: file[name] for name in lacking if name in file}}


def read_env_file(path: Path) -> Mapping[str, str]:
    """Return the variables of a file with a NAME=value on each line; raise `NoEnvironment` if others can read it."""
    try:
        if path.stat().st_mode & 0o077:
            raise NoEnvironment(f"others can read {path}, which the setting env_file names; chmod 600 {path}")
        with path.open(encoding="utf-8") as file:
            lines = file.read(_LARGEST).splitlines()
    except (OSError, ValueError) as error:
        raise NoEnvironment(f"{path}, which the setting env_file names, cannot be read: {error}") from error
    found = {}
    for line in lines:
        name, mark, value = line.strip().removeprefix("export ").partition("=")
        if mark and not name.startswith("#"):
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            found[name.strip()] = value[1:-1] if quoted else value
    return found

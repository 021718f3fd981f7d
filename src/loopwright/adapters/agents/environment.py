"""The environment that an agent gets: a short list of names, never simply ours.

Our own environment may carry secrets of other tools, markers of an agent that started us (which change how a
nested agent behaves), and git variables that point at another repository.
"""

import os
import re
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.agents.secret_providers import provided
from loopwright.core.rows.model import Plan
from loopwright.core.values.environments import FORGE_TOKENS, PLACES, PlanEnvironment, is_kept
from loopwright.core.values.errors import BadConfig, NoEnvironment
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import to_type
from loopwright.ports import Invocation

ALLOWED: Final = frozenset(
    {
        "PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ",
        "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
        "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    }
)  # fmt: skip
"""TMPDIR is missing on purpose: every run has its own."""

_ALLOWED_SHAPE: Final = re.compile(r"LC_[A-Z]+")
_FORBIDDEN: Final = re.compile(
    r"LOOPWRIGHT_.*|CLAUDECODE|CLAUDE_CODE_ENTRYPOINT|CLAUDE_CODE_SSE_PORT|GIT_DIR|GIT_WORK_TREE|GIT_INDEX_FILE"
)
_SECRET_NAME: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH(?!ORS?(?:_|$))|HEADER|COOKIE|DSN|WEBHOOK", re.IGNORECASE
)
"""The author of a commit (GIT_AUTHOR_NAME) is not a secret, and is in every log."""
_PLAIN: Final = re.compile(r"(?:~|\.{1,2})?/\S*|[a-z][a-z0-9+.-]*://[^\s/:@?#]+(?::[0-9]+)?/?")
"""A path, or an address with nothing but a host and a port in it."""
_PASSWORD: Final = re.compile(r"://[^\s/:@]*:([^\s/?#]+)@")
_HEADER: Final = re.compile(
    r"^[A-Za-z0-9-]+:[ \t]+(?:Bearer |Basic |Token )?(\S.*)$", re.MULTILINE | re.IGNORECASE
)
_SHORTEST: Final = 8
"""A shorter value is a word of the language more often than a secret."""


def agent_environment(
    host_env: Mapping[str, str],
    invocation: Invocation | None = None,
    extra_names: Sequence[str] = (),
    set_values: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the whole environment of an agent's or a gate's process; later sources win over earlier ones.

    From the host come the allow-list, the names that the adapter needs and the names that the user listed;
    then what the adapter sets, and last what the harness sets itself.
    """
    renamed = invocation.renamed if invocation else {}
    for name in extra_names:
        if _FORBIDDEN.fullmatch(name):
            raise BadConfig(
                f"the variable {name} is never given to agents",
                code="agent_variable_forbidden",
                hint=f"remove {name} from `environment`",
            )
    wanted = {*ALLOWED, *(invocation.inherit if invocation else ()), *extra_names}
    env = {
        name: value
        for name, value in host_env.items()
        if (name in wanted or _ALLOWED_SHAPE.fullmatch(name)) and not _FORBIDDEN.fullmatch(name)
    }
    for name, source in renamed.items():
        if not host_env.get(source):
            raise BadConfig(
                f"the variable {source}, which an account takes its {name} from, is not set",
                code="agent_variable_missing",
                hint=f"set {source} where Loopwright is started, or take it out of the account's `variables`",
            )
        env[name] = host_env[source]
    return {**env, "TERM": "dumb", **(invocation.env if invocation else {}), **(set_values or {})}


def secret_values(env: Mapping[str, str], given: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the values that must not appear in stored output, longest first.

    Those are the values of variables with the name of a secret, and of all that the user listed (`given`) unless they
    are plain paths or addresses; and what is separate in a value: the password of an address, the value of a header.
    """
    found: set[str] = set()
    for name, value in env.items():
        listed = name in given and name not in ALLOWED and not _PLAIN.fullmatch(value)
        if listed or _SECRET_NAME.search(name):
            found.update((value, *(said.rstrip() for said in _HEADER.findall(value))))
        found.update(_PASSWORD.findall(value))
    long_enough = (value for value in found if len(value) >= _SHORTEST)
    return tuple(sorted(long_enough, key=lambda value: (-len(value), value)))


# Puts together the environment of a plan's runs: as it was where the plan was submitted, whichever process executes it.

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
    secrets_from: str | None = None
    """`keyring`, or a command that prints the secret of a name."""
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
            else self._with_secrets(self.env, plan.policy.environment)
        )
        if plan.policy.sandbox_required:
            host_env = self._without_forge_tokens(host_env)
        return agent_environment(host_env, invocation, names, values)

    def _without_forge_tokens(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """Return an environment without what merges and comments: that stays with the worker, whatever it is called."""
        tokens = {one[name] for one in (env, self.env) for name in FORGE_TOKENS if one.get(name)}
        return {name: value for name, value in env.items() if value not in tokens}

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
        if then.recorded:
            return self._recorded_env(plan, then, invocation)
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
        complete = self._with_secrets(
            with_file(found, self.env_file, in_file), {*plan.policy.environment, *then.secrets}
        )
        if unset := [name for name in then.secrets if name not in complete]:
            raise NoEnvironment(self._lacking(unset, short_id(plan.id)))
        return complete

    def _recorded_env(
        self, plan: Plan, then: PlanEnvironment, invocation: Invocation | None
    ) -> Mapping[str, str]:
        """Return a project's recorded environment with its secrets; nothing of this process is in it."""
        keys = {*invocation.inherit, *invocation.renamed.values()} if invocation else set()
        named = {*plan.policy.environment, *then.secrets}
        complete = self._with_secrets(with_file(then.values, self.env_file, {*named, *keys}), named)
        if unset := [name for name in then.secrets if name not in complete]:
            where = self.secrets_from or self.env_file or "a file that the setting env_file names"
            raise NoEnvironment(
                f"{', '.join(unset)} was set when the environment of the project was recorded; put it into {where}, "
                f"then: {to_type('resume', short_id(plan.id))}"
            )
        return complete

    def _with_secrets(self, env: Mapping[str, str], names: Collection[str]) -> Mapping[str, str]:
        """Return an environment with the secrets that it lacks: from the file, then from the provider."""
        return with_secrets(env, self.env_file, self.secrets_from, names, self.env)

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


def with_secrets(
    env: Mapping[str, str],
    env_file: str | None,
    provider: str | None,
    names: Collection[str],
    here: Mapping[str, str],
) -> Mapping[str, str]:
    """Return an environment with those of these secrets that it lacks; the provider runs in the environment `here`."""
    found = with_file(env, env_file, names)
    lacking = {*names} - found.keys()
    return {**found, **provided(provider, lacking, here)} if provider and lacking else found


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

"""The environment of the terminal that submitted a plan: what is stored, and what is requested when needed."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

GITHUB_TOKENS: Final = ("GITHUB_TOKEN", "GH_TOKEN")
GITLAB_TOKENS: Final = ("GITLAB_TOKEN",)
FORGE_TOKENS: Final = (*GITHUB_TOKENS, *GITLAB_TOKENS)
"""Variables that may have the token of a forge."""
PLACES: Final = frozenset({"PATH", "VIRTUAL_ENV", "CONDA_PREFIX"})
"""Variables that name folders, so they are invalid on another machine."""
_LOCALE: Final = re.compile(r"LANG|LANGUAGE|TZ|LC_[A-Z]+")
_MACHINE: Final = re.compile(
    r"HOME|USER|LOGNAME|SHELL|XDG_(CONFIG|DATA|CACHE|STATE)_HOME"
    r"|LOOPWRIGHT_(?!HOME$|DATABASE$|FAILPOINT).*"
    r"|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|(REQUESTS|CURL)_CA_BUNDLE|((HTTPS?|ALL|NO)_PROXY|(https?|all|no)_proxy)"
)
"""Further variables of agents and tools, and settings; a project's recorded environment also has them."""
_PASSWORD: Final = re.compile(r"://[^\s/@]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEnvironment:
    """What a plan takes from its submitting terminal, whichever process executes the plan."""

    host_id: str
    """The machine that has its folders."""
    submitter: str
    """Names the socket on which the submitting process answers while it lives."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Stored variables: folders, locale, time zone, and those that the settings call plain."""
    secrets: tuple[str, ...] = ()
    """Variables of the setting `environment` that were set there; their values are not stored."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """The paths of the programs of its checks."""
    recorded: bool = False
    """Whether it is the recorded environment of a project: no running process adds to it."""


def is_kept(name: str) -> bool:
    """Return whether every plan stores this variable."""
    return name in PLACES or _LOCALE.fullmatch(name) is not None


def captured(
    env: Mapping[str, str],
    *,
    host_id: str,
    submitter: str,
    secret: Collection[str],
    plain: Collection[str],
    programs: Mapping[str, str],
) -> PlanEnvironment:
    """Return what to store of the environment of a submitting process."""
    return PlanEnvironment(
        host_id=host_id,
        submitter=submitter,
        values={name: value for name, value in env.items() if is_kept(name) or name in plain},
        secrets=tuple(sorted(name for name in {*secret} - {*plain} if name in env and not is_kept(name))),
        programs=dict(programs),
    )


def recorded(
    env: Mapping[str, str], *, host_id: str, secret: Collection[str], plain: Collection[str]
) -> PlanEnvironment:
    """Return what a project keeps of an environment, for plans that are made without a terminal."""
    taken = captured(env, host_id=host_id, submitter="", secret=secret, plain=plain, programs={})
    machine = {
        name: value for name, value in env.items() if _MACHINE.fullmatch(name) and not _PASSWORD.search(value)
    }
    return replace(taken, values={**machine, **taken.values}, recorded=True)

"""The environment that a plan was submitted from: what is stored of it, and what is asked for when it is needed."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

PLACES: Final = frozenset({"PATH", "VIRTUAL_ENV", "CONDA_PREFIX"})
"""Variables that name folders, so they mean nothing on another machine."""
_LOCALE: Final = re.compile(r"LANG|LANGUAGE|TZ|LC_[A-Z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEnvironment:
    """What a plan takes from the terminal that it was submitted from, whichever process executes it."""

    host_id: str
    """The machine that its folders are on."""
    submitter: str
    """Names the socket on which the submitting process answers while it lives."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Stored: folders, locale, time zone, and the variables that the settings call plain."""
    secrets: tuple[str, ...] = ()
    """Variables of the setting `environment` that were set there; their values are stored nowhere."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """Where the programs of its checks were."""


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

"""The checks of the machine: Python, git, the platform, sandboxes, agents."""

import platform
import re
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from loopwright.adapters import registry
from loopwright.adapters.git.plumbing.runner import OLDEST, user_env
from loopwright.adapters.sandbox.choosing import INSTALL, Chosen
from loopwright.adapters.sandbox.proof import Proof
from loopwright.app import chosen_sandbox
from loopwright.config.resolve import Settings
from loopwright.services.doctor.probes import LOGIN, FoundAgent, ask, probe_agent
from loopwright.services.homes.caller import environment

_OLDEST_PYTHON: Final = (3, 11)
_OLDEST_SQLITE: Final = (3, 35)
_KEY_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "claude": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
}


class Status(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    ABSENT = "absent"
    """Missing, and not needed."""
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report."""

    name: str
    status: Status
    text: str
    fix: str = ""
    """What to do about it."""


def python() -> list[Finding]:
    """Check the interpreter and its SQLite."""
    version = platform.python_version()
    old_sqlite = sqlite3.sqlite_version_info < _OLDEST_SQLITE
    text = f"Python {version}, SQLite {sqlite3.sqlite_version}"
    if sys.version_info < _OLDEST_PYTHON or old_sqlite:
        fix = "install Python 3.11 or newer, with SQLite 3.35 or newer"
        return [Finding(name="python", status=Status.FAIL, text=text, fix=fix)]
    return [Finding(name="python", status=Status.OK, text=text)]


def git() -> list[Finding]:
    """Check git's version, and whether it has an author name."""
    wanted = ".".join(map(str, OLDEST))
    fix = f"install git {wanted} or newer and see that it is on PATH"
    if shutil.which("git") is None:
        return [Finding(name="git", status=Status.FAIL, text="git was not found", fix=fix)]
    said, problem = ask(("git", "version"), env=user_env())
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers is None:
        return [
            Finding(name="git", status=Status.FAIL, text=f"git does not work: {problem or said}", fix=fix)
        ]
    if (int(numbers[1]), int(numbers[2])) < OLDEST:
        text = f"{said} is too old: {wanted} is the oldest that merges without a work tree"
        return [Finding(name="git", status=Status.FAIL, text=text, fix=fix)]
    return [Finding(name="git", status=Status.OK, text=said), _identity()]


def _identity() -> Finding:
    who = {key: ask(("git", "config", key), env=user_env())[0] for key in ("user.name", "user.email")}
    if all(who.values()):
        return Finding(
            name="identity", status=Status.OK, text=f"commits as {who['user.name']} <{who['user.email']}>"
        )
    unset = " and ".join(key for key, value in who.items() if not value)
    return Finding(
        name="identity",
        status=Status.WARN,
        text=f"git does not know {unset}; commits get a name of Loopwright's own",
        fix='git config --global user.name "You" && git config --global user.email you@example.com',
    )


def platform_() -> list[Finding]:
    """Return what this platform can and cannot do."""
    system, release = platform.system(), platform.release()
    name = f"{system} {release} ({platform.machine()})"
    if system == "Darwin":
        text = f"{name}: no subreaper here, so a process that an agent detaches is found only by its marker"
        return [Finding(name="platform", status=Status.WARN, text=text, fix="use Linux for unattended work")]
    if "microsoft" in release.lower():
        text = f"{name}, which is WSL"
        fix = "keep repositories and the home in the Linux file system, not under /mnt"
        return [Finding(name="platform", status=Status.WARN, text=text, fix=fix)]
    if system == "Linux":
        return [Finding(name="platform", status=Status.OK, text=f"{name}: fully supported")]
    text = f"{name}: not tested with Loopwright"
    return [
        Finding(name="platform", status=Status.WARN, text=text, fix="use Linux, macOS, or WSL on Windows")
    ]


def _probed(name: str, settings: Settings) -> FoundAgent:
    return probe_agent(name, settings, environment())


def agents(settings: Settings) -> list[Finding]:
    """Find every known agent and ask each for its version; only the configured one is required."""
    names = registry.known_agents()
    with ThreadPoolExecutor(max_workers=8) as pool:
        # A thread does not inherit the caller's folder and environment by itself.
        contexts = [copy_context() for _ in names]
        probes = pool.map(lambda context, name: context.run(_probed, name, settings), contexts, names)
        found = list(probes)
    findings = [_with_version(_agent(one, settings), one) for one in found]
    chosen = settings.values.agent
    if chosen not in names:
        text = f"there is no agent of this name (from {settings.origin('agent')})"
        fix = f"set agent to one of {', '.join(names)}"
        findings.append(Finding(name=f"agent {chosen}", status=Status.FAIL, text=text, fix=fix))
    return findings


def _with_version(finding: Finding, found: FoundAgent) -> Finding:
    """Warn about an untested version: its output may differ from what Loopwright expects."""
    if not found.untested or finding.status is not Status.OK:
        return finding
    tried = f" ({found.pinned})" if found.pinned else ""
    fix = f"try it on something small first; if it misbehaves, install a version that was tried{tried}"
    return replace(
        finding,
        status=Status.WARN,
        text=f"{finding.text}; {found.untested}",
        fix="; ".join(filter(None, (finding.fix, fix))),
    )


def _agent(found: FoundAgent, settings: Settings) -> Finding:
    name = f"agent {found.name}"
    in_force = found.name == settings.values.agent
    if not found.usable:
        if in_force:
            return Finding(
                name=name,
                status=Status.FAIL,
                text=f"{found.problem}; it is the agent in force",
                fix=found.hint,
            )
        if found.path is None and not found.wrong_options:
            # No fix: nothing has to be done.
            return Finding(name=name, status=Status.ABSENT, text=f"{found.problem}; optional: not in force")
        text = f"{found.problem}; not in force, so not needed"
        return Finding(name=name, status=Status.WARN, text=text, fix=found.hint)
    text = ", ".join(
        part for part in (found.version or "", f"at {found.path}", "in force" * in_force) if part
    )
    if found.name == "scripted":
        return Finding(
            name=name, status=Status.OK, text=f"{text}; for the demo and for tests, it follows a script"
        )
    variables = _KEY_VARIABLES.get(found.name, ())
    given = [variable for variable in variables if environment().get(variable)]
    if given:
        return Finding(name=name, status=Status.OK, text=f"{text}; it will use {given[0]}")
    login = LOGIN.get(found.name)
    if login is None:
        return Finding(name=name, status=Status.OK, text=text)
    return Finding(
        name=name,
        status=Status.OK,
        text=f"{text}; whether it is logged in shows with its first run",
        fix=f"if it is not logged in: {login}",
    )


# The report about containment: which sandbox runs have, what it lets them reach, and what is missing.

_OPEN: Final = (
    "agents and gates run as you, in private clones with an allow-listed environment, but in no sandbox"
)
_NETWORK: Final = {
    "on": "they may use the network",
    "agents": "agents may use the network, gates may not",
    "off": "none may use the network",
}


def containment(settings: Settings) -> list[Finding]:
    """Return the sandbox of runs, after trying it."""
    chosen = chosen_sandbox(settings, environment())
    more = [_passed_over(chosen, chosen.passed_over)] if chosen.passed_over is not None else []
    if not chosen.proof.holds:
        return [_none(chosen), *more]
    level = chosen.sandbox.level
    named = f"{chosen.proof.says or level} at {chosen.proof.program}"
    made = chosen.sandbox.made_with
    named += f", image {made.image} {made.image_id}" if made is not None and made.image else ""
    text = (
        f"{level} ({named}), tried here: agents and gates write only their workspace, their temporary folder and "
        f"what an agent needs for itself; your HOME and other processes are hidden; {_NETWORK[chosen.network]}"
    )
    if chosen.keeps_network:
        fix = "set sandbox.network to on: this machine cannot give a run a separate network"
        return [Finding(name="sandbox", status=Status.FAIL, text=text, fix=fix), *more]
    return [Finding(name="sandbox", status=Status.OK, text=text), *more]


def _passed_over(chosen: Chosen, proof: Proof) -> Finding:
    """Return why runs are in no container although an image is configured."""
    text = f"containers of the image {chosen.image} do not hold here, so runs are in none: {proof.why_not}"
    fix = (
        proof.fix
        or "see to it that podman or docker can start it, or take sandbox.image out of the configuration"
    )
    return Finding(name="container", status=Status.WARN, text=text, fix=fix)


def _none(chosen: Chosen) -> Finding:
    why = chosen.proof.why_not
    if chosen.keeps_network:
        text = f"{_OPEN}, and sandbox.network is {chosen.network}: {chosen.keeps_network}"
        fix = "see to it that a sandbox holds here (sandbox.level auto), or set sandbox.network to on"
        return Finding(name="sandbox", status=Status.FAIL, text=text, fix=fix)
    status = Status.FAIL if chosen.wanted in {"bubblewrap", "container"} else Status.WARN
    return Finding(name="sandbox", status=status, text=f"{_OPEN}: {why}", fix=how_to_contain(chosen))


def how_to_contain(chosen: Chosen) -> str:
    """Return what to do so that runs have a sandbox here."""
    if chosen.wanted == "none":
        return "set sandbox.level to auto, or run what you do not trust in a container or a virtual machine"
    if chosen.wanted == "container":
        return (
            chosen.proof.fix or "see to it that podman or docker can start it, or set sandbox.level to auto"
        )
    if platform.system() != "Linux":
        return "bubblewrap needs Linux; run what you do not trust in a container or a virtual machine"
    if not chosen.proof.program:
        return INSTALL
    return (
        "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
        "kernel.apparmor_restrict_unprivileged_userns; in a container also its own profile), or run what you "
        "do not trust in a virtual machine"
    )

"""Find the agents on this machine: whether each is installed, its version, and how to log in."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from loopwright.adapters import registry
from loopwright.adapters.agents.acp.profiles import PROFILES
from loopwright.adapters.agents.environment import agent_environment
from loopwright.adapters.processes.redaction import redacted
from loopwright.app import secrets_of
from loopwright.config.resolve import Settings
from loopwright.core.values.errors import BadConfig, UserError
from loopwright.core.values.permissions import Permissions, access_of
from loopwright.core.values.wording import one_line
from loopwright.ports import Agent, AgentRequest, Invocation
from loopwright.services.homes.caller import environment

PROBE_S: Final = 5.0
"""How long a program may take to answer."""
VERSION_S: Final = 20.0
"""How long an agent may take to report its version: some unpack themselves first, and all run at once."""

_BY_COMMAND: Final = frozenset({"acp", "command"})
"""Agents whose program is only known from their option `command`."""
_INSTALL: Final[Mapping[str, str]] = {
    "acp": 'set agents.acp.command, such as "my-agent --acp"',
    "claude": "install Claude Code (https://code.claude.com/docs), or set agents.claude.binary to where it is",
    "codex": "install Codex (https://developers.openai.com/codex/cli), or set agents.codex.binary to where it is",
    "command": (
        'set it in loopwright.toml, in the table [agents.command]: command = "my-agent --prompt {prompt_file}" '
        'and how it gets its prompt: prompt = "file"'
    ),
}
_BY_NPM: Final[Mapping[str, str]] = {
    "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex",
}
"""Of agents without a profile, which bring a program that needs no Node.js to run."""
_NPM: Final = "npm install "
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)+")
_SHELL: Final = re.compile(r"[^A-Za-z0-9_.+:@-]")
LOGIN: Final[Mapping[str, str]] = {
    "claude": "log in once by running `claude`, or set ANTHROPIC_API_KEY",
    "codex": "log in once by running `codex login`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAgent:
    """What is known about an agent without calling its service."""

    name: str
    program: str
    path: str | None
    """The path of the program; None if it was not found."""
    problem: str = ""
    """Why it cannot be used."""
    hint: str = ""
    """What to do about it."""
    version: str | None = None
    """The program's answer to the request for its version."""
    untested: str = ""
    """The warning about its version, if it was not tested."""
    pinned: str = ""
    """How to install a tested version: npm without a version may silently install an older one."""
    wrong_options: bool = False
    """Whether the problem is in the settings rather than on the machine."""

    @property
    def usable(self) -> bool:
        """Whether a run could start it."""
        return not self.problem


def find_agent(name: str, settings: Settings, *, models: Sequence[str | None] = ()) -> FoundAgent:
    """Check an agent's options and find its program, as a run with one of these models would; nothing is started."""
    policy = settings.policy()
    options = policy.agents.get(name, {})
    try:
        agent = registry.agent(name)
    except UserError as unknown:
        return FoundAgent(name=name, program="", path=None, problem=str(unknown), hint=unknown.hint or "")
    program = _program(name, agent.probe()[0], options)
    if not program and not options:
        return FoundAgent(name=name, program="", path=None, problem="not set up", hint=_install(name))
    wrong = secret_option(name, settings) or _wrong_options(agent, settings, models or (policy.model,))
    if wrong is not None:
        problem, hint = wrong
        return FoundAgent(
            name=name, program=program, path=None, problem=problem, hint=hint, wrong_options=True
        )
    path = _found(program, in_shell=name == "command" and isinstance(options.get("command"), str))
    if path is None:
        hint = _install(name) or f"install {program}"
        if name in _BY_COMMAND:  # which is set: else there were no program to look for
            hint = f"install {program}, put it on PATH, or correct the path in agents.{name}.command"
        place = settings.origins.get(f"agents.{name}.{'command' if name in _BY_COMMAND else 'binary'}")
        problem = f"the program {program!r} was not found" + (f" (from {place})" if place else "")
        return FoundAgent(name=name, program=program, path=None, problem=problem, hint=hint)
    return FoundAgent(name=name, program=program, path=path)


def secret_option(name: str, settings: Settings) -> tuple[str, str] | None:
    """Return the option that contains a secret: an agent's command line is stored with the plan, and shown."""
    given = settings.values.environment
    handed_over = {name: environment()[name] for name in given if name in environment()}
    secrets = secrets_of(environment(), handed_over, given)
    for option, value in settings.policy().agents.get(name, {}).items():
        said = json.dumps(value, ensure_ascii=False, default=str)
        if redacted(said, secrets) != said:
            key = f"agents.{name}.{option}"
            return (
                f"{settings.origin(key)}: {key}: there is a secret in it, and settings are stored with the plan",
                "put it into an environment variable, name that in `environment`, and have the program read it there",
            )
    return None


def _wrong_options(agent: Agent, settings: Settings, models: Iterable[str | None]) -> tuple[str, str] | None:
    """Build an agent's command line, and return what is wrong with its options, with their place."""
    for model in models:
        try:
            invocation_of(agent, settings, model)
        except BadConfig as bad:
            keys = [f"agents.{agent.name}.{option}" for option in bad.options]
            places = [f"{settings.origins[key]}: {key}" for key in keys if key in settings.origins]
            return ": ".join(filter(None, (", ".join(places), str(bad)))), bad.hint or "fix the option"
    return None


def invocation_of(agent: Agent, settings: Settings, model: str | None = None) -> Invocation:
    """Return an agent's command line with the current settings; raise if its options are wrong."""
    policy = settings.policy()
    return agent.invocation(
        AgentRequest(
            prompt="",
            workspace=Path("/workspace"),
            run_directory=Path("/run"),
            model=model,
            permissions=Permissions(access=access_of(policy.permission_mode, contained=False)),
            options=policy.agents.get(agent.name, {}),
        )
    )


def _install(name: str) -> str:
    """Return how to install an agent's program; empty if unknown."""
    profile = PROFILES.get(name)
    if profile is None or not profile.install:
        return _INSTALL.get(name, "")
    return f"install it ({profile.install}), or set agents.{name}.binary to where it is"


def _program(name: str, probed: str, options: Mapping[str, Any]) -> str:
    """Return the program that an agent starts; empty if only a shell could tell."""
    if name not in _BY_COMMAND:
        return str(options.get("binary") or options.get("python") or probed)
    # Its own program is only known from the setting; what it is asked for is whatever the user wrote.
    command = options.get("command")
    if not isinstance(command, str):
        return str(command[0]) if isinstance(command, list | tuple) and command else ""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    # Only a shell takes the words before a program for variables.
    return next((word for word in words if name != "command" or not _ASSIGNMENT.match(word)), "")


def _found(program: str, *, in_shell: bool) -> str | None:
    """Return where a program is; a program that only the shell or the workspace knows counts as found."""
    expanded = os.path.expanduser(program)  # noqa: PTH111 - a program's name is not a path yet
    found = shutil.which(expanded, path=environment().get("PATH"))
    if found is not None or os.path.isabs(expanded):  # noqa: PTH117 - as above
        return found
    if "/" in program or (in_shell and _SHELL.search(program)):
        # Relative to a workspace that does not exist yet, or not a plain name.
        return program
    # The shell has built-in commands, such as `cd` and `exec`.
    asked = ("/bin/sh", "-c", 'command -v -- "$1"', "sh", program)
    return program if in_shell and ask(asked, env=environment())[0] else None


def probe_agent(name: str, settings: Settings, env: Mapping[str, str]) -> FoundAgent:
    """Find an agent and ask its program for its version."""
    found = find_agent(name, settings)
    if found.path is None or name in _BY_COMMAND:
        return found
    agent = registry.agent(name)
    version, problem = ask((found.path, *agent.probe()[1:]), env=agent_environment(env), patience_s=VERSION_S)
    return replace(
        found,
        version=version or None,
        untested="" if problem else untested(version, getattr(agent, "tested", None)),
        pinned=_pinned(name, getattr(agent, "tested", None)),
        problem=f"{found.path} does not work: {problem}" if problem else "",
        hint=(_install(name) or f"install {found.program} again") if problem else "",
    )


def _pinned(name: str, tested: tuple[str, str] | None) -> str:
    """Return how to install the newest tested version; empty if npm does not have it."""
    profile = PROFILES.get(name)
    install = profile.install if profile else _BY_NPM.get(name, "")
    if tested is None or not install.startswith(_NPM):
        return ""
    node = f", with Node.js {profile.node} or newer" if profile and profile.node else ""
    return f"{install}@{tested[1]}{node}"


def untested(version: str, tested: tuple[str, str] | None) -> str:
    """Return how a version differs from those that an adapter was tested with; empty if it does not."""
    if tested is None:
        return ""
    said = _NUMBERS.search(version)
    if said is None:
        return f"it does not say its version; tried were {tested[0]} to {tested[1]}"
    first, last = map(_numbers, tested)
    if first <= _numbers(said[0]) <= last:
        return ""
    how = "older" if _numbers(said[0]) < first else "newer"
    return f"it is {how} than the versions that were tried, {tested[0]} to {tested[1]}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def ask(argv: tuple[str, ...], *, env: Mapping[str, str], patience_s: float = PROBE_S) -> tuple[str, str]:
    """Run a program that only prints something; return its first line, or the problem."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            start_new_session=True,
        )
    except OSError as error:
        return "", error.strerror or str(error)
    try:
        out, err = process.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "", f"it gave no answer within {patience_s:g} s"
    said = (out or err).decode("utf-8", "replace").strip()
    if process.returncode != 0:
        return "", one_line(f"exit code {process.returncode}: {said}".removesuffix(": "))
    return one_line(said.partition("\n")[0]), ""

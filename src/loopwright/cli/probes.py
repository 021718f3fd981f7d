"""Which agents are on this machine: found or not, which version, and how to log in."""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopwright.adapters import registry
from loopwright.adapters.agents.environment import agent_environment
from loopwright.cli.lines import one_line
from loopwright.core.errors import UserError

PROBE_S: Final = 5.0
"""How long a program may take to say its version."""

_INSTALL: Final[Mapping[str, str]] = {
    "claude": "install Claude Code (https://code.claude.com/docs), or set agents.claude.binary to where it is",
    "command": 'set agents.command.command, such as "my-agent --prompt {prompt_file}"',
}
LOGIN: Final[Mapping[str, str]] = {
    "claude": "log in once by running `claude`, or set ANTHROPIC_API_KEY",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAgent:
    """What can be seen of one agent without asking its service anything."""

    name: str
    program: str
    path: str | None
    """Where the program is; None when it was not found."""
    problem: str = ""
    """Why it cannot be used."""
    hint: str = ""
    """What to do about it."""
    version: str | None = None
    """What the program said when it was asked."""

    @property
    def usable(self) -> bool:
        """Whether a run could start it."""
        return not self.problem


def find_agent(name: str, options: Mapping[str, Any]) -> FoundAgent:
    """Look for an agent's program; nothing is run."""
    try:
        agent = registry.agent(name)
    except UserError as unknown:
        return FoundAgent(name=name, program="", path=None, problem=str(unknown), hint=unknown.hint or "")
    program = _program(name, agent.probe()[0], options)
    if not program:
        return FoundAgent(name=name, program="", path=None, problem="not set up", hint=_INSTALL.get(name, ""))
    path = shutil.which(os.path.expanduser(program))  # noqa: PTH111 - a program's name is no path yet
    if path is None:
        hint = _INSTALL.get(name, f"install {program}")
        return FoundAgent(
            name=name,
            program=program,
            path=None,
            problem=f"the program {program!r} was not found",
            hint=hint,
        )
    return FoundAgent(name=name, program=program, path=path)


def _program(name: str, probed: str, options: Mapping[str, Any]) -> str:
    if name == "command":
        # Its own program is only known from the setting; what it is asked for is whatever the user wrote.
        command = str(options.get("command") or "")
        try:
            words = shlex.split(command)
        except ValueError:
            return command
        return words[0] if words else ""
    return str(options.get("binary") or probed)


def probe_agent(name: str, options: Mapping[str, Any], env: Mapping[str, str]) -> FoundAgent:
    """Look for an agent and ask its program for its version."""
    found = find_agent(name, options)
    if found.path is None or name == "command":
        return found
    arguments = registry.agent(name).probe()[1:]
    version, problem = ask((found.path, *arguments), env=agent_environment(env))
    return FoundAgent(
        name=name,
        program=found.program,
        path=found.path,
        version=version or None,
        problem=f"{found.path} does not work: {problem}" if problem else "",
        hint=_INSTALL.get(name, f"install {found.program} again") if problem else "",
    )


def ask(argv: tuple[str, ...], *, env: Mapping[str, str], patience_s: float = PROBE_S) -> tuple[str, str]:
    """Run a program that only says something; return its first line, or what was wrong."""
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

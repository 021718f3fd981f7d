"""How an agent is started, from its profile and what it is asked for."""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from loopwright import __version__
from loopwright.adapters.agents import options
from loopwright.adapters.agents.acp import rpc
from loopwright.adapters.agents.acp.profiles import Profile, Setting
from loopwright.adapters.agents.acp.state import Aim
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.permissions import OWN_TOOL, Access
from loopwright.ports import AgentRequest, Invocation, ToolServer

TOOLS_FILE: Final = "tools.json"
_CREDENTIAL: Final = re.compile(r"_(API_KEY|TOKEN|CREDENTIALS)$")
"""How the names of variables end that say whose account it is."""
_LEAVES_S: Final = 2.0
"""For one that would stay for ever: time to write down what it keeps."""
_OWN_SERVER: Final = OWN_TOOL.split("__")[1]


def invocation(profile: Profile, request: AgentRequest) -> Invocation:
    """Return how to start it; what it is to do is told on stdin when it is ready."""
    own = ("command", "mode") if not profile.program else ("binary", "extra_args")
    known = (*own, "auth", "instructions")
    trust = ("trust_workspace",) if profile.workspace_settings else ()
    turns = ("max_turns",) if profile.turns else ()
    options.only(profile.name, request.options, (*known, *trust, *turns))
    argv, env = _settings(profile, request)
    files = {name: json.dumps(content) for name, content in profile.files.values()}
    if profile.tools_argument and request.tools:
        files[TOOLS_FILE] = _tools_file(request.tools)
    return Invocation(
        argv=(*_command(profile, request), *argv),
        env={
            **profile.env,
            **profile.access_env.get(request.permissions.access, {}),
            **{variable: str(request.run_directory / name) for variable, (name, _) in profile.files.items()},
            **env,
        },
        inherit=profile.inherit,
        credentials=tuple(name for name in profile.inherit if _CREDENTIAL.search(name)),
        home=profile.home,
        workspace_settings=() if _trusts(profile, request) else profile.workspace_settings,
        stdin="pipe",
        stdin_data=hello(),
        files=files,
        done_pattern=rpc.DONE,
        done_grace_s=_LEAVES_S if profile.lingers_with_tools and request.tools else None,
        session_ref=request.session_ref if profile.goes_on_by and not request.fork else None,
    )


def _trusts(profile: Profile, request: AgentRequest) -> bool:
    return options.switch(profile.name, request.options, "trust_workspace")


def hello() -> str:
    """Return what is written first. Loopwright offers nothing: agents have their own files and terminals."""
    offered = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    client = {"name": "loopwright", "title": "Loopwright", "version": __version__}
    return rpc.request(
        rpc.INITIALIZE,
        "initialize",
        {"protocolVersion": rpc.PROTOCOL_VERSION, "clientCapabilities": offered, "clientInfo": client},
    )


def aim(profile: Profile, request: AgentRequest) -> Aim:
    """Take from a request what the conversation needs."""
    given = request.options
    free = request.permissions.access is Access.SANDBOXED_ALL
    chosen = options.text(profile.name, given, "mode")
    # Without its free mode it asks, and is always allowed.
    modes = (chosen,) if chosen else (profile.free_mode if free else "", profile.asking_mode)
    # There is no other place for it in the protocol.
    told = options.instructions(profile.name, given)
    prompt = "\n\n".join(filter(None, (profile.rules, told, request.prompt)))
    return Aim(
        prompt=prompt,
        workspace=str(request.workspace),
        cwd=str(request.workspace / request.subfolder),
        permissions=request.permissions,
        model=request.model if profile.model is None else None,
        session_ref=request.session_ref,
        fork=request.fork,
        tools=() if profile.tools_argument else tuple(request.tools.items()),
        servers=tuple(request.tools),
        modes=tuple(mode for mode in modes if mode),
        auth=options.text(profile.name, given, "auth"),
    )


def _command(profile: Profile, request: AgentRequest) -> tuple[str, ...]:
    given = request.options
    if profile.program:
        program = options.text(profile.name, given, "binary") or profile.program
        return (program, *profile.arguments, *options.texts(profile.name, given, "extra_args"))
    command = given.get("command")
    argv = _words(command) if isinstance(command, str) else options.texts(profile.name, given, "command")
    if not argv:
        raise BadConfig(
            f"agent {profile.name}: option command is missing",
            code="agent_option_missing",
            hint='give the command that starts the agent, such as "my-agent --acp"',
            options=("command",),
        )
    return argv


def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as problem:
        message = f"agent acp: option command is not a command: {problem}"
        raise BadConfig(
            message, code="agent_option_wrong", hint="close every quote", options=("command",)
        ) from problem


def _settings(profile: Profile, request: AgentRequest) -> tuple[list[str], dict[str, str]]:
    """Return the arguments and variables that tell permissions, model, turns and tools."""
    argv = list(profile.access_arguments.get(request.permissions.access, ()))
    env: dict[str, str] = {}
    turns = options.most_turns(profile.name, request.options)
    wanted: tuple[tuple[Setting | None, str | None], ...] = (
        (profile.model, request.model),
        (profile.turns, str(turns) if turns is not None else None),
    )
    for setting, value in wanted:
        if setting is not None and value is not None:
            argv += [setting.argument, value] if setting.argument else []
            env |= {setting.variable: value} if setting.variable else {}
    if profile.tools_argument and request.tools:
        argv += [profile.tools_argument, f"@{request.run_directory / TOOLS_FILE}"]
    if _OWN_SERVER in request.tools:
        argv += profile.own_tool_arguments
    return argv, env


def _tools_file(tools: Mapping[str, ToolServer]) -> str:
    servers: dict[str, Any] = {
        name: {
            "type": "local",
            "command": tool.command,
            "args": list(tool.args),
            "env": dict(tool.env),
            "tools": ["*"],
        }
        for name, tool in tools.items()
    }
    return json.dumps({"mcpServers": servers})

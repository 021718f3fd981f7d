"""How Codex is started, for both of its protocols, and what it is allowed from the start."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from loopwright import __version__
from loopwright.adapters.agents import options, prompt_file
from loopwright.core.values.containment import HomePath, Login
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.permissions import OWN_TOOLS, Access, Settled, Wish, settle
from loopwright.ports import AgentRequest, Invocation, ToolServer

# JSON-RPC as Codex speaks it: one message on a line, without the field that tells the version.


def rpc_request(id: str, method: str, params: Mapping[str, Any]) -> str:
    """Write one of our requests."""
    return rpc_line({"id": id, "method": method, "params": params})


def rpc_line(message: Mapping[str, Any]) -> str:
    """Write a message."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=dict)
    # Half a character, which a prompt may carry, is not JSON for Codex.
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


NAME: Final = "codex"
SCHEMA_FILE: Final = "schema.json"

INHERITED: Final = (
    "CODEX_HOME",
    "CODEX_API_KEY",
    "CODEX_ACCESS_TOKEN",
    "CODEX_CA_CERTIFICATE",
    "OPENAI_API_KEY",
)
CREDENTIALS: Final = ("CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY")
"""Whose account it is."""
HOME: Final = (
    # Never below the run's own TMPDIR: there Codex makes no helper programs, and then its sandbox silently lets nothing
    # be written.
    HomePath(
        path=".codex/",
        moved_by="CODEX_HOME",
        left=("archived_sessions", "history.jsonl", "log", "tmp", "shell_snapshots", "*.sqlite*"),
        sessions=("sessions",),
        transcript=r"sessions/\d{4}/\d\d/\d\d/rollout-[0-9T-]+-{id}\.jsonl",
        logins=(
            Login(
                file="auth.json",
                expires="last_refresh",
                tokens=("tokens.access_token", "tokens.refresh_token"),
            ),
            Login(
                file=".credentials.json",
                at="*",
                expires="expires_at",
                tokens=("access_token", "refresh_token"),
            ),
        ),
    ),
)

_PROTOCOLS: Final = ("app-server", "exec")
_ASKS: Final = ("commands", "escalations")

_MODES: Final[Mapping[tuple[Access, str], tuple[str, str]]] = MappingProxyType(
    {
        # Looking needs no leave: nothing can be written in this sandbox. What wants out of it is refused by `settle`.
        (Access.READ_ONLY, "commands"): ("on-request", "read-only"),
        (Access.READ_ONLY, "escalations"): ("on-request", "read-only"),
        # Every command is asked for, and runs outside of the sandbox once it was allowed.
        (Access.EDIT, "commands"): ("untrusted", "workspace-write"),
        # Commands run in the sandbox without a question; what wants out of it is asked for.
        (Access.EDIT, "escalations"): ("on-request", "workspace-write"),
        # With `never` Codex would refuse some commands itself, instead of asking.
        (Access.SANDBOXED_ALL, "commands"): ("on-request", "danger-full-access"),
        (Access.SANDBOXED_ALL, "escalations"): ("on-request", "danger-full-access"),
    }
)
"""Approval policy and sandbox."""

_NO_SANDBOX: Final = "danger-full-access"
"""Where one of our sandboxes is around it: its own cannot be made in there. What may only read cannot write in ours."""

_EXEC_MODES: Final[Mapping[Access, tuple[str, ...]]] = MappingProxyType(
    {
        Access.READ_ONLY: ("--sandbox", "read-only"),
        Access.EDIT: ("--sandbox", "workspace-write"),
        Access.SANDBOXED_ALL: ("--dangerously-bypass-approvals-and-sandbox",),
    }
)

_OURS: Final = frozenset(
    {
        "approval_policy", "approvals_reviewer", "sandbox_mode", "developer_instructions", "model", "projects",
        "check_for_update_on_startup", "analytics",
    }
)  # fmt: skip
"""Settings that are set elsewhere, or would break what is promised about permissions."""

_ALWAYS: Final = ("check_for_update_on_startup=false", "analytics.enabled=false")

UNWANTED: Final = (
    "item/agentMessage/delta",
    "item/plan/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/textDelta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "thread/status/changed",
    "serverRequest/resolved",
    "remoteControl/status/changed",
)
"""Messages that come again when they are complete, or are not needed. Codex is asked not to send them."""

_DONE: Final = (
    r'^\{"method":"turn/completed",.*"turn":\{"id":"([^"]+)",(?:"rootTurnId":"\1"|(?!"rootTurnId"))'
)
"""The end of the turn that we began: the turns of agents that it started have ours as their root."""
_EXEC_DONE: Final = r'^\{"type":"turn\.(?:completed|failed)"'

_READ_RULES: Final = "Read AGENTS.md at the top of the repository first, if there is one, and follow it."


def invocation(binary: str, request: AgentRequest) -> Invocation:
    """Return how to start it."""
    given = request.options
    options.only(NAME, given, ("binary", "protocol", "ask", "instructions", "config"))
    program = options.text(NAME, given, "binary") or binary
    overrides = [word for entry in (*_ALWAYS, *_config(given)) for word in ("-c", entry)]
    if _choice(given, "protocol", _PROTOCOLS) == "exec":
        if "ask" in given:
            message = "agent codex: option ask needs protocol = app-server: with exec it cannot ask"
            raise BadConfig(message, code="agent_option_wrong", options=("ask",))
        return _exec(program, overrides, request)
    _choice(given, "ask", _ASKS)
    return Invocation(
        argv=(program, "app-server", *overrides),
        inherit=INHERITED,
        credentials=CREDENTIALS,
        home=HOME,
        stdin="pipe",
        stdin_data=hello(),
        done_pattern=_DONE,
        interrupt="SIGINT",
        session_ref=None if request.fork else request.session_ref,
    )


def hello() -> str:
    """Return what is written first."""
    client = {"name": "loopwright", "title": "Loopwright", "version": __version__}
    capabilities = {"optOutNotificationMethods": list(UNWANTED)}
    return rpc_request("initialize", "initialize", {"clientInfo": client, "capabilities": capabilities})


def thread(request: AgentRequest) -> tuple[str, dict[str, Any]]:
    """Return the method and the parameters that begin the conversation, or continue it.

    No `cwd`: the process is there already, and Codex would note a folder that is named here as one that the user
    trusts, and from then on take settings from files that an agent can write.
    """
    policy, sandbox = _MODES[request.permissions.access, _choice(request.options, "ask", _ASKS)]
    config: dict[str, Any] = {"sandbox_workspace_write.writable_roots": [str(request.workspace)]}
    if request.tools:
        config["mcp_servers"] = {name: _tool_server(tool) for name, tool in request.tools.items()}
    told = options.instructions(NAME, request.options)
    params: dict[str, Any] = {
        "approvalPolicy": policy,
        "approvalsReviewer": "user",
        "sandbox": _NO_SANDBOX if request.contained else sandbox,
        "config": config,
        **({"model": request.model} if request.model else {}),
        **({"developerInstructions": told} if told else {}),
    }
    if request.session_ref is None:
        return "thread/start", params
    method = "thread/fork" if request.fork else "thread/resume"
    return method, {**params, "threadId": request.session_ref, "excludeTurns": True}


def turn(request: AgentRequest) -> dict[str, Any]:
    """Return the parameters of the turn, but for the conversation's id."""
    params: dict[str, Any] = {"input": [{"type": "text", "text": request.prompt}]}
    return {**params, "outputSchema": dict(request.schema)} if request.schema is not None else params


def _exec(program: str, overrides: list[str], request: AgentRequest) -> Invocation:
    """The prompt comes from a file on stdin: an open pipe would keep it waiting for ever."""
    schema = request.run_directory / SCHEMA_FILE
    going_on = ("fork" if request.fork else "resume", request.session_ref) if request.session_ref else ()
    own = [word for entry in _exec_config(request) for word in ("-c", entry)]
    argv = (
        *(program, "exec", "--json", "--skip-git-repo-check"),
        *_EXEC_MODES[Access.SANDBOXED_ALL if request.contained else request.permissions.access],
        *(("--model", request.model) if request.model else ()),
        *(("--output-schema", str(schema)) if request.schema is not None else ()),
        *overrides,
        *own,
        *going_on,
        "-",
    )
    files = {prompt_file.NAME: request.prompt}
    if request.schema is not None:
        files[SCHEMA_FILE] = json.dumps(request.schema, default=dict)
    return Invocation(
        argv=prompt_file.on_stdin(request.run_directory, argv),
        env=_exec_environment(request),
        inherit=INHERITED,
        credentials=CREDENTIALS,
        home=HOME,
        files=files,
        done_pattern=_EXEC_DONE,
        interrupt="SIGINT",
        session_ref=None if request.fork else request.session_ref,
    )


def _exec_config(request: AgentRequest) -> list[str]:
    """Return the settings that the app server is told in its own words."""
    # It would note the workspace as trusted, see `thread`. An untrusted one has its rules left out as well.
    entries = [f"projects={_toml({str(request.workspace): {'trust_level': 'untrusted'}})}"]
    entries.append(f"sandbox_workspace_write.writable_roots={_toml([str(request.workspace)])}")
    told = options.instructions(NAME, request.options)
    instructions = "\n\n".join(filter(None, (_READ_RULES, told)))
    entries.append(f"developer_instructions={_toml(instructions)}")
    allowed = [*OWN_TOOLS, *(key.removeprefix("tool:") for key in request.permissions.granted)]
    for name, tool in request.tools.items():
        value = _tool_server(tool)
        # By its environment, because every user of the machine can read a command line.
        value["env_vars"] = list(value.pop("env"))
        # It cannot ask while it runs, so what is settled is said before.
        tools = [one.removeprefix(f"mcp__{name}__") for one in allowed if one.startswith(f"mcp__{name}__")]
        value["tools"] = {
            one: {"approval_mode": "approve"}
            for one in tools
            if settle(request.permissions, Wish(kind="tool", what=f"mcp__{name}__{one}")) is Settled.ALLOW
        }
        entries.append(f"mcp_servers.{name}={_toml(value)}")
    return entries


def _exec_environment(request: AgentRequest) -> dict[str, str]:
    env: dict[str, str] = {}
    for tool in request.tools.values():
        for name, value in tool.env.items():
            if env.setdefault(name, value) != value:
                message = f"agent codex: with protocol = exec two tool servers cannot have different values of {name}"
                raise BadConfig(message, code="agent_option_wrong", options=("protocol",))
    return env


def _tool_server(tool: ToolServer) -> dict[str, Any]:
    # Without the one that it was given it would continue, and do something else than asked.
    return {"command": tool.command, "args": list(tool.args), "env": dict(tool.env), "required": True}


def _config(given: Mapping[str, Any]) -> tuple[str, ...]:
    entries = options.texts(NAME, given, "config")
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not key.strip() or not equals or not value.strip():
            message = (
                f"agent codex: config must be a list of texts like model_reasoning_effort=high, not {entry!r}"
            )
            raise BadConfig(message, code="agent_option_wrong", options=("config",))
        if key.strip().partition(".")[0] in _OURS:
            raise BadConfig(
                f"agent codex: config must not contain {key.strip()}",
                code="agent_option_reserved",
                hint="permission mode, model and instructions have settings of their own",
                options=("config",),
            )
    return entries


def _choice(given: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    value = options.text(NAME, given, name) or known[0]
    if value not in known:
        message = f"agent codex: option {name} must be one of {', '.join(known)}, not {value!r}"
        raise BadConfig(message, code="agent_option_wrong", options=(name,))
    return value


def _toml(value: Any) -> str:
    """Write a value as TOML takes it inline."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_toml(str(key))}={_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    # A text in JSON is one in TOML too, but for a sign that only TOML wants escaped.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")

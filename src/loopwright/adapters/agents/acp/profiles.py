"""What sets the agents apart that speak the protocol: how each is started, what it tells, and its oddities, as data."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from loopwright.adapters.agents.claude import claude
from loopwright.core.values.containment import HomePath, Login
from loopwright.core.values.permissions import OWN_TOOLS, Access

Meaning = Literal["error", "retry", "turns", "refused"]
"""Of something that the program itself says in the middle of the model's words."""

TokensIn = Literal["result", "quota", "chunks", ""]
"""Where the tokens of a run are told: with the answer to the prompt, in its `_meta.quota`, or with its words."""

SKILLS: Final = HomePath(path=".agents/")
"""The user's own rules and skills, which most of these programs read."""

_GOOGLE_LIKE: Final = Login(
    file="oauth_creds.json", expires="expiry_date", tokens=("access_token", "refresh_token")
)

COMMON: Final = frozenset({"interrupt", "permissions", "tools"})
"""What the protocol itself gives to every agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How an agent is told a model, or a number of turns, before it starts."""

    argument: str = ""
    variable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One kind of agent."""

    name: str
    program: str = ""
    arguments: tuple[str, ...] = ()
    capabilities: frozenset[str] = COMMON
    tested: tuple[str, str] | None = None
    """The oldest and the newest version that were tried."""
    install: str = ""
    """How to get the program."""
    node: int | None = None
    """The oldest Node.js that the newest of the tried versions runs with; on an older one npm silently picks an older
    version of it. None where it brings its own, or none is needed."""
    inherit: tuple[str, ...] = ()
    home: tuple[HomePath, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    access_env: Mapping[Access, Mapping[str, str]] = field(default_factory=dict)
    access_arguments: Mapping[Access, tuple[str, ...]] = field(default_factory=dict)
    files: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    """JSON files for the run's directory, by the variable that names each: file name and content."""
    workspace_settings: tuple[str, ...] = ()
    """Where in the repository it looks for settings: hooks, tool servers and rules, which an agent could have written.
    It has no way to be told that it should not."""
    rules: str = ""
    """Said before the prompt to one that does not read the rules of a repository itself."""
    model: Setting | None = None
    """None: it offers its models in the conversation, and is told there."""
    turns: Setting | None = None
    tools_argument: str = ""
    """An argument that takes `@file` with tool servers, for an agent that takes none in the conversation."""
    own_tool_arguments: tuple[str, ...] = ()
    """Arguments that let the tools pass that we give a run ourselves, for an agent that does not name tools."""
    asking_mode: str = ""
    """In which it asks before it does anything that matters."""
    free_mode: str = ""
    """In which it never asks; empty where it is left in the other one, and every question is answered with yes."""
    goes_on_by: Literal["session/load", "session/resume", ""] = ""
    fork_counts_anew: bool = False
    """A copied conversation does not bring along what the first one had cost."""
    tokens_in: TokensIn = ""
    tool_kinds: Mapping[str, str] = field(default_factory=dict)
    """The kinds of its own tools by name, where it tells no kind itself."""
    title_is_command: bool = False
    """The title of a call that runs something is the command itself, and nothing else tells it."""
    tool_in_options: re.Pattern[str] | None = None
    """Finds a tool's name in the options of a request that does not tell it anywhere else."""
    remarks: tuple[tuple[re.Pattern[str], Meaning], ...] = ()
    tries: re.Pattern[str] | None = None
    """Finds in its last lines on stderr that a call failed which it tries again by itself: the `message`, and where it
    tells that the `status`, which `attempt` that was, and how long it pauses now (`pause_ms`)."""
    own_log: re.Pattern[str] | None = None
    """Finds the lines on stderr that only the agent's developers need."""
    lingers_with_tools: bool = False
    """With a tool server it does not leave when its stdin is closed, not even when its turn is long over."""
    most_messages_in_a_row: int | None = None
    """More of them without a tool call between, and it goes round in circles."""


ACP: Final = Profile(name="acp", capabilities=COMMON | {"resume"}, goes_on_by="session/load")
"""Any program that speaks the protocol."""

GEMINI: Final = Profile(
    name="gemini",
    program="gemini",
    arguments=("--acp",),
    # Continuing a conversation is announced, and then fails: "No previous sessions found for this project."
    capabilities=COMMON | {"usage", "reset_time"},
    tested=("0.61.0", "0.61.0"),
    install="npm install -g @google/gemini-cli",
    node=20,
    inherit=(
        "GEMINI_API_KEY", "GEMINI_MODEL", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_VERTEX_BASE_URL",
        "GOOGLE_APPLICATION_CREDENTIALS", "GEMINI_CLI_HOME",
    ),
    workspace_settings=(".gemini/",),
    home=(
        HomePath(
            path=".gemini/",
            moved_by="GEMINI_CLI_HOME",
            below=".gemini",
            left=("tmp", "history", "antigravity*"),
            logins=(_GOOGLE_LIKE,),
        ),
        SKILLS,
    ),
    env={
        # Otherwise it starts itself a second time, and a signal to the first one is lost.
        "GEMINI_CLI_NO_RELAUNCH": "true",
        # Without it no tool servers, no GEMINI.md, and no other mode than the asking one.
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        # Otherwise it keeps to itself until its end what it tries again, and it may wait for hours before it does.
        "GEMINI_DEBUG_LOG_FILE": "/dev/stderr",
    },
    files={
        # Defaults only: what the user has set wins. Without a chosen way to log in it says too late that there is none,
        # and its own ten tries with a broken service take minutes.
        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": (
            "gemini-defaults.json",
            {
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "general": {"maxAttempts": 3, "enableAutoUpdate": False, "disableAutoUpdate": True},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
            },
        )
    },
    model=Setting(argument="--model"),
    asking_mode="default",
    free_mode="yolo",
    tokens_in="quota",
    title_is_command=True,
    tries=re.compile(
        r"Attempt (?P<attempt>\d{1,4}) failed(?: with (?:status )?(?P<status>\d{3})\b[^.:]*)?"
        r"(?:: (?P<message>(?:(?!Attempt \d).)+?))?\.? Retrying (?:with backoff|after (?P<pause_ms>\d{1,12})ms)",
        re.DOTALL,
    ),
    own_log=re.compile(r"\[[\d:.TZ-]{20,30}\] \[(?:DEBUG|LOG)\] "),
    lingers_with_tools=True,
)  # fmt: skip

_OPENCODE_ASKS: Final = (
    '{"*":"ask","edit":"ask","bash":"ask","webfetch":"ask","websearch":"ask","task":"ask","external_directory":"ask",'
    '"read":"allow","glob":"allow","grep":"allow","list":"allow","lsp":"allow","skill":"allow","todowrite":"allow",'
    '"todoread":"allow"}'
)
OPENCODE: Final = Profile(
    name="opencode",
    program="opencode",
    # What it tries again it says nowhere else.
    arguments=("acp", "--print-logs", "--log-level", "ERROR"),
    capabilities=COMMON | {"resume", "fork", "cost", "reset_time"},
    tested=("1.18.33", "1.18.33"),
    install="npm install -g opencode-ai",
    inherit=(
        "OPENCODE_API_KEY", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_MODELS_URL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY",
        "GOOGLE_GENERATIVE_AI_API_KEY", "GROQ_API_KEY", "XAI_API_KEY", "DEEPSEEK_API_KEY", "MISTRAL_API_KEY",
    ),
    rules="Read AGENTS.md at the top of the repository first, if there is one, and follow it.",
    home=(
        # It does not start where it cannot write a `.gitignore` beside its settings.
        HomePath(path=".config/opencode/"),
        HomePath(
            path=".local/share/opencode/",
            left=("log", "project", "repos", "snapshot", "tool-output", "worktree"),
            sessions=("storage", "opencode*.db*"),
            logins=(
                Login(file="auth.json", at="*", expires="expires", tokens=("access", "refresh")),
                Login(
                    file="mcp-auth.json",
                    at="*",
                    expires="tokens.expiresAt",
                    tokens=("tokens.accessToken", "tokens.refreshToken"),
                ),
            ),
        ),
        HomePath(path=".local/state/opencode/", left=("locks",)),
        # Programs and packages that it fetches once. It does not start where it cannot make a folder there.
        HomePath(path=".cache/opencode/"),
        SKILLS,
    ),
    env={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        # What lies in the workspace may be an agent's work. With its settings it leaves out AGENTS.md, see `rules`.
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        # A refusal would otherwise end its turn as if all were done.
        "OPENCODE_CONFIG_CONTENT": (
            '{"autoupdate":false,"share":"disabled","experimental":{"continue_loop_on_deny":true}}'
        ),
    },
    access_env={
        # It asks for nothing unless it is told to.
        Access.READ_ONLY: {"OPENCODE_PERMISSION": _OPENCODE_ASKS},
        Access.EDIT: {"OPENCODE_PERMISSION": _OPENCODE_ASKS},
        Access.SANDBOXED_ALL: {"OPENCODE_PERMISSION": '{"*":"allow"}'},
    },
    goes_on_by="session/resume",
    # With `small` it asks for the title of the conversation, which nothing depends on.
    tries=re.compile(
        r'level=ERROR .*message="stream error" .*\bsmall=false\b.* '
        r'error\.error="?(?:\w+: )?(?P<message>(?:[^"\\]|\\.)*)'
    ),
    # A context that is too small makes it sum up what it has, fail again and sum up again, for ever.
    most_messages_in_a_row=6,
)  # fmt: skip

GOOSE: Final = Profile(
    name="goose",
    program="goose",
    arguments=("acp",),
    capabilities=COMMON | {"resume", "turns"},
    tested=("1.52.0", "1.52.0"),
    install="see https://block.github.io/goose",
    inherit=(
        "GOOSE_PROVIDER", "GOOSE_MODEL", "GOOSE_DISABLE_KEYRING", "GOOSE_PATH_ROOT", "OPENAI_API_KEY", "OPENAI_HOST",
        "OPENAI_BASE_PATH", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_HOST", "GOOGLE_API_KEY",
        "OPENROUTER_API_KEY", "GROQ_API_KEY", "XAI_API_KEY", "OLLAMA_HOST", "DATABRICKS_HOST", "DATABRICKS_TOKEN",
        "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_DEPLOYMENT_NAME", "LITELLM_HOST",
        "LITELLM_API_KEY",
    ),
    workspace_settings=(".goose/", ".agents/", ".config/goose/"),
    home=(
        HomePath(
            path=".config/goose/",
            moved_by="GOOSE_PATH_ROOT",
            below="config",
            logins=tuple(
                Login(file=file, expires="expires_at", tokens=("access_token", "refresh_token"))
                for file in (
                    "chatgpt_codex/tokens.json", "gemini_oauth/tokens.json", "huggingface/oauth/tokens.json",
                    "kimicode/token.json", "xai_oauth/tokens.json",
                )
            ),
        ),
        HomePath(
            path=".local/share/goose/", moved_by="GOOSE_PATH_ROOT", below="data", sessions=("sessions",)
        ),
        HomePath(
            path=".local/state/goose/", moved_by="GOOSE_PATH_ROOT", below="state", left=("logs", "history*")
        ),
        HomePath(path=".goose/"),
        HomePath(path=".config/agents/"),
        SKILLS,
    ),
    env={"GOOSE_TELEMETRY_ENABLED": "false"},
    access_env={
        Access.READ_ONLY: {"GOOSE_MODE": "approve"},
        Access.EDIT: {"GOOSE_MODE": "approve"},
        Access.SANDBOXED_ALL: {"GOOSE_MODE": "auto"},
    },
    model=Setting(variable="GOOSE_MODEL"),
    turns=Setting(variable="GOOSE_MAX_TURNS"),
    asking_mode="approve",
    free_mode="auto",
    goes_on_by="session/load",
    tool_kinds={
        "shell": "execute", "edit": "edit", "write": "edit", "tree": "read", "analyze": "read",
        "read_image": "read", "load_skill": "read",
    },
    # It tells most errors of the service as its own words, at the end of a turn that went well.
    remarks=(
        (re.compile(r"Ran into this error: "), "error"),
        (re.compile(r"I've reached the maximum number of actions I can do without user input"), "turns"),
    ),
)  # fmt: skip

QWEN: Final = Profile(
    name="qwen",
    program="qwen",
    arguments=("--acp",),
    capabilities=COMMON | {"resume", "usage"},
    tested=("0.15.10", "0.24.4"),
    install="npm install -g @qwen-code/qwen-code",
    node=22,
    inherit=(
        "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY",
        "QWEN_HOME",
    ),
    workspace_settings=(".qwen/", ".mcp.json"),
    home=(
        HomePath(
            path=".qwen/",
            moved_by="QWEN_HOME",
            left=("debug", "todos", "history"),
            sessions=("projects", "tmp"),
            logins=(_GOOGLE_LIKE,),
        ),
        SKILLS,
    ),
    # From 0.24 on one of our refusals ends its turn.
    access_arguments={
        Access.READ_ONLY: tuple(f"--exclude-tools={tool}" for tool in ("edit", "write_file", "run_shell_command"))
    },
    model=Setting(argument="--model"),
    own_tool_arguments=tuple(f"--allowed-tools={tool}" for tool in OWN_TOOLS),
    # From 0.24 on it begins in a mode in which the model itself decides.
    asking_mode="default",
    free_mode="yolo",
    # It announces `resume` too, and up to 0.15 does not know the method.
    goes_on_by="session/load",
    tokens_in="chunks",
    tool_in_options=re.compile(r"Always Allow in project: (?P<tool>.+)"),
)  # fmt: skip

COPILOT: Final = Profile(
    name="copilot",
    program="copilot",
    arguments=("--acp",),
    capabilities=COMMON | {"resume", "usage"},
    tested=("1.0.102", "1.0.102"),
    install="npm install -g @github/copilot",
    inherit=(
        "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_HOME", "COPILOT_MODEL", "COPILOT_OFFLINE",
        "COPILOT_PROVIDER_TYPE", "COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_API_KEY",
        "COPILOT_PROVIDER_BEARER_TOKEN",
    ),
    workspace_settings=(
        ".github/copilot/", ".github/hooks/", ".github/mcp.json", ".mcp.json", ".copilot/", ".claude/",
        # Programs that it starts: language servers, extensions, and the tool servers of its sub-agents.
        ".github/lsp.json", ".github/extensions/", ".github/agents/",
    ),
    home=(
        HomePath(
            path=".copilot/",
            moved_by="COPILOT_HOME",
            left=("logs", "command-history-state.json"),
            sessions=("session-state", "history-session-state", "session-store.db*"),
        ),
        # Where it unpacked itself when it was first started: 235 MB and 10 seconds, which it does again where it finds
        # nothing. It needs to read it only.
        HomePath(path=".cache/copilot/", shared=True),
        SKILLS,
    ),
    env={"COPILOT_AUTO_UPDATE": "false"},
    access_arguments={
        # Our refusal ends its turn, its own rule does not.
        Access.READ_ONLY: ("--deny-tool=write", "--deny-tool=shell"),
        Access.SANDBOXED_ALL: ("--allow-all-tools", "--allow-all-paths"),
    },
    model=Setting(argument="--model"),
    # Of the servers that it is told in the conversation it takes none that is started by it.
    tools_argument="--additional-mcp-config",
    # In its free mode, "autopilot", it tells itself to continue five times after it was done.
    asking_mode="https://agentclientprotocol.com/protocol/session-modes#agent",
    goes_on_by="session/load",
    tokens_in="result",
    remarks=(
        (re.compile(r"Error: "), "error"),
        (re.compile(r"Info: Operation cancelled by user"), "refused"),
        (re.compile(r"Info: .*(?:[Rr]etrying|[Cc]ompacting)"), "retry"),
    ),
)  # fmt: skip

CLAUDE: Final = Profile(
    name="claude-acp",
    program="claude-agent-acp",
    capabilities=COMMON | {"resume", "fork", "usage", "cost", "reset_time"},
    tested=("0.99.1", "0.99.1"),
    install="npm install -g @agentclientprotocol/claude-agent-acp",
    node=22,
    inherit=(
        "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS",
        "ANTHROPIC_MODEL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_EXECUTABLE",
    ),
    workspace_settings=(".claude/", ".mcp.json"),
    home=claude.HOME,
    env={
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
    },
    # As root it offers its free mode only where it is told that it sits in a sandbox.
    access_env={Access.SANDBOXED_ALL: {"IS_SANDBOX": "1"}},
    model=Setting(variable="ANTHROPIC_MODEL"),
    asking_mode="default",
    free_mode="bypassPermissions",
    goes_on_by="session/resume",
    fork_counts_anew=True,
    tokens_in="result",
)  # fmt: skip

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {one.name: one for one in (ACP, GEMINI, OPENCODE, GOOSE, QWEN, COPILOT, CLAUDE)}
)

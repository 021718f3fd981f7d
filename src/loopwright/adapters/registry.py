"""Which adapters there are: names with the place of their class, loaded only when one is asked for.

Other packages add agents and sources through the entry points `loopwright.agents` and `loopwright.sources`;
a built-in name cannot be taken over.
"""

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from loopwright.config.nearest import did_you_mean
from loopwright.core.values.errors import UserError
from loopwright.ports import Agent, Gate, Source

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

AGENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "acp": "loopwright.adapters.agents.acp.agent:acp",
        "claude": "loopwright.adapters.agents.claude.claude:ClaudeAgent",
        "codex": "loopwright.adapters.agents.codex.agent:CodexAgent",
        "claude-acp": "loopwright.adapters.agents.acp.agent:claude",
        "command": "loopwright.adapters.agents.command:CommandAgent",
        "copilot": "loopwright.adapters.agents.acp.agent:copilot",
        "gemini": "loopwright.adapters.agents.acp.agent:gemini",
        "goose": "loopwright.adapters.agents.acp.agent:goose",
        "opencode": "loopwright.adapters.agents.acp.agent:opencode",
        "qwen": "loopwright.adapters.agents.acp.agent:qwen",
        "scripted": "loopwright.testing.scripted:ScriptedAgent",
    }
)
SOURCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bmad": "loopwright.adapters.sources.bmad.bmad:BmadSource",
        "beads": "loopwright.adapters.sources.beads.beads:BeadsSource",
        "feature_list": "loopwright.adapters.sources.feature_list.feature_list:FeatureListSource",
        "orchestrator": "loopwright.adapters.sources.orchestrator.orchestrator:OrchestratorSource",
        "test_state": "loopwright.adapters.sources.test_state.test_state:LoopTestsSource",
        "issues_json": "loopwright.adapters.sources.issues_json.issues_json:IssuesSource",
        "plan_md": "loopwright.adapters.sources.plan_md.plan_md:PlanMdSource",
        "prd_json": "loopwright.adapters.sources.prd_json.prd_json:PrdJsonSource",
        "prompt_md": "loopwright.adapters.sources.prompt_md.prompt_md:PromptSource",
        "task_master": "loopwright.adapters.sources.task_master.task_master:TaskMasterSource",
        "thoughts": "loopwright.adapters.sources.thoughts.thoughts:ThoughtsSource",
        "backlog_md": "loopwright.adapters.sources.backlog_md.backlog_md:BacklogMdSource",
        "gsd": "loopwright.adapters.sources.gsd.gsd:GsdSource",
        "todo_md": "loopwright.adapters.sources.todo_md.todo_md:TodoMdSource",
        "speckit": "loopwright.adapters.sources.speckit.speckit:SpecKitSource",
        "openspec": "loopwright.adapters.sources.openspec.openspec:OpenSpecSource",
        "kiro": "loopwright.adapters.sources.kiro.kiro:KiroSource",
        "execplan": "loopwright.adapters.sources.execplan.execplan:ExecPlanSource",
        "superpowers": "loopwright.adapters.sources.superpowers.superpowers:SuperpowersSource",
        "spec": "loopwright.adapters.sources.spec.spec:SpecSource",
        "yaml": "loopwright.adapters.sources.spec.yaml_plan:YamlSource",
    }
)
GATES: Final[Mapping[str, str]] = MappingProxyType(
    {"commands": "loopwright.adapters.gates.commands:CommandGate"}
)

_GROUPS: Final[Mapping[str, str]] = MappingProxyType(
    {"agent": "loopwright.agents", "source": "loopwright.sources"}
)


def agent(name: str) -> Agent:
    """Return the agent of this name."""
    return cast("Agent", _make("agent", AGENTS, name))


def source(kind: str) -> Source:
    """Return the reader for this kind of work source."""
    return cast("Source", _make("source", SOURCES, kind))


def sources() -> tuple[Source, ...]:
    """Return one of each kind of work source, those of other packages included."""
    return tuple(source(kind) for kind in known_sources())


def gate(kind: str) -> Gate:
    """Return the gate of this kind."""
    return cast("Gate", _make("gate", GATES, kind))


def known_agents() -> tuple[str, ...]:
    """Return the names of all agents, installed ones included."""
    return _known("agent", AGENTS)


def known_sources() -> tuple[str, ...]:
    """Return the kinds of all work sources, installed ones included."""
    return _known("source", SOURCES)


def _installed(what: str) -> "Mapping[str, EntryPoint]":
    return _offered(tuple(sys.path))[what] if what in _GROUPS else {}


@cache
def _offered(path: tuple[str, ...]) -> "Mapping[str, Mapping[str, EntryPoint]]":  # noqa: ARG001 - what is found depends on it
    """Read what every installed package offers, which takes longer than most commands do, once only."""
    # Most commands need no third-party adapter.
    from importlib.metadata import entry_points

    found = entry_points()
    return {
        what: {point.name: point for point in found.select(group=group)} for what, group in _GROUPS.items()
    }


def _known(what: str, table: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted({*table, *_installed(what)}))


def _make(what: str, table: Mapping[str, str], name: str) -> object:
    if name in table:
        module, _, attribute = table[name].partition(":")
        return getattr(import_module(module), attribute)()
    point = _installed(what).get(name)
    if point is None:
        raise UserError(
            f"there is no {what} named {name!r}{did_you_mean(name, _known(what, table))}",
            code="adapter_not_found",
            hint=f"known are: {', '.join(_known(what, table))}",
        )
    try:
        made = point.load()()
        if what == "source" and not isinstance(made, Source):
            raise TypeError("its class does not extend loopwright.ports.Source")
    except (ImportError, AttributeError, TypeError) as error:
        raise UserError(
            f"the {what} {name!r} cannot be loaded: {error}",
            code="adapter_not_loaded",
            hint=f"reinstall or remove the package that offers it ({point.value})",
        ) from error
    return cast("object", made)

"""Finding adapters by name."""

import sys
from importlib import invalidate_caches
from pathlib import Path

import pytest
from tests.cases import each_case
from tests.refusals import raises_code

from loopwright.adapters import registry
from loopwright.adapters.agents.claude.claude import ClaudeAgent


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a small distribution that offers an agent, and one that is broken."""
    (tmp_path / "someones_agent.py").write_text("class Theirs:\n    name = 'theirs'\n")
    info = tmp_path / "someones_agent-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: someones-agent\nVersion: 1.0\n")
    points = (
        "theirs = someones_agent:Theirs\nbroken = nowhere_to_be_found:X\nclaude = someones_agent:Theirs\n"
    )
    (info / "entry_points.txt").write_text(f"[loopwright.agents]\n{points}")
    monkeypatch.syspath_prepend(str(tmp_path))
    invalidate_caches()
    yield tmp_path
    sys.modules.pop("someones_agent", None)


@each_case("name", registry.AGENTS)
def test_every_built_in_agent_can_be_made_and_knows_its_name(name: str) -> None:
    assert registry.agent(name).name == name


@each_case("kind", registry.SOURCES)
def test_every_built_in_source_can_be_made_and_knows_its_kind(kind: str) -> None:
    made = registry.source(kind)
    assert (made.kind, made.format_name[:1].isupper()) == (kind, True)


@each_case("kind", registry.GATES)
def test_every_built_in_gate_can_be_made(kind: str) -> None:
    assert callable(registry.gate(kind).spec)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with raises_code("adapter_not_found") as caught:
        registry.agent("nobody")
    assert caught.value.hint is not None
    assert ", ".join(sorted(registry.AGENTS)) in caught.value.hint


@pytest.mark.capability("C008")
def test_an_installed_package_can_add_an_agent(installed: Path) -> None:
    assert registry.agent("theirs").name == "theirs"
    assert "theirs" in registry.known_agents()


def test_a_built_in_name_cannot_be_taken_over(installed: Path) -> None:
    assert isinstance(registry.agent("claude"), ClaudeAgent)


def test_a_broken_package_is_named(installed: Path) -> None:
    with raises_code("adapter_not_loaded"):
        registry.agent("broken")

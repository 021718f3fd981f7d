"""Settings of agents in a workspace: which files count, and what is never followed."""

from pathlib import Path

from tests.refusals import raises_code

from loopwright.adapters.agents.acp.agent import gemini
from loopwright.adapters.agents.acp.profiles import PROFILES
from loopwright.adapters.agents.agent_settings import MOST_BYTES, MOST_FILES, settings_in
from loopwright.ports import AgentRequest, Invocation


def put(root: Path, path: str, text: str = "{}") -> Path:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def test_a_file_and_everything_in_a_folder_count(tmp_path: Path) -> None:
    for path in (".gemini/settings.json", ".gemini/commands/a.toml", "opencode.json", "other.json"):
        put(tmp_path, path)
    found = settings_in(tmp_path, (".gemini/", "opencode.json", ".qwen/"))
    assert found == dict.fromkeys((".gemini/settings.json", ".gemini/commands/a.toml", "opencode.json"), "{}")


def test_links_and_what_is_no_small_text_are_never_taken_for_what_the_commit_has(tmp_path: Path) -> None:
    outside = put(tmp_path, "outside/settings.json")
    tree = tmp_path / "tree"
    put(tree, ".qwen/binary").write_bytes(b"\xff\xfe")
    put(tree, ".qwen/huge", "x" * (MOST_BYTES + 1))
    (tree / ".qwen" / "linked").symlink_to(outside)
    (tree / ".qwen" / "folder").symlink_to(outside.parent)
    (tree / ".gemini").symlink_to(outside.parent)
    (tree / ".github").symlink_to(tmp_path)
    put(tmp_path, "mcp.json")
    found = settings_in(tree, (".qwen/", ".gemini/", ".github/mcp.json"))
    names = (".qwen/binary", ".qwen/huge", ".qwen/linked", ".qwen/folder", ".gemini/", ".github/mcp.json")
    assert found == dict.fromkeys(names)


def test_too_many_files_are_not_read(tmp_path: Path) -> None:
    for n in range(MOST_FILES + 2):
        put(tmp_path, f".gemini/{n}")
    found = settings_in(tmp_path, (".gemini/",))
    assert len(found) == MOST_FILES + 1
    assert found[".gemini/"] is None


def test_every_profile_of_a_known_program_says_where_it_looks() -> None:
    for name, profile in PROFILES.items():
        ignores = "OPENCODE_DISABLE_PROJECT_CONFIG" in profile.env
        assert bool(profile.workspace_settings) == (name != "acp" and not ignores), name


def test_what_a_program_starts_by_itself_is_among_the_places_where_it_looks() -> None:
    """As the real programs were seen to look for it, in a repository that has none of it."""
    looked = {
        "copilot": (
            ".github/lsp.json",
            ".github/hooks/",
            ".github/extensions/",
            ".github/agents/",
            ".claude/",
        ),
        "goose": (".agents/", ".goose/", ".config/goose/"),
        "qwen": (".qwen/", ".mcp.json"),
    }
    for name, places in looked.items():
        assert set(places) <= set(PROFILES[name].workspace_settings), name


def invocation(**options: object) -> Invocation:
    place = Path("/w")
    return gemini().invocation(
        AgentRequest(prompt="p", workspace=place, run_directory=place, options=options)
    )


def test_a_user_may_trust_the_workspace() -> None:
    assert invocation().workspace_settings == (".gemini/",)
    assert invocation(trust_workspace=True).workspace_settings == ()
    with raises_code("agent_option_wrong"):
        invocation(trust_workspace="yes")

"""Laws of pinning: whatever is written into a mixed file, the parts that steer are as they were."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.core.integrity.mixed_files import pinned_text, steers_differently
from loopwright.core.values.globs import covers

LAW = settings(max_examples=80, deadline=None)

values = st.sampled_from(["1", '"-q"', '["a", "b"]', "true", '"""\n[tool.pytest]\nx = 1\n"""', "{ a = 1 }"])
headers = st.sampled_from(
    [
        "[project]",
        "[tool.pytest.ini_options]",
        "[tool.poetry]",
        "[[tool.mypy.overrides]]",
        "[tool.ruff] # why",
        "[tool]",
    ]
)


@st.composite
def tables(draw: st.DrawFn) -> str:
    """Any TOML file with tables that steer and others, each with a few values."""
    chosen = draw(st.lists(headers, unique=True))
    parts = []
    for header in chosen:
        keys = draw(st.lists(st.sampled_from(["a", "b", "poetry.c", "pytest.d"]), unique=True, max_size=2))
        parts.append("\n".join([header, *(f"{key} = {draw(values)}" for key in keys)]))
    return "\n\n".join(parts) + "\n"


packages = st.dictionaries(
    st.sampled_from(["name", "jest", "dependencies", "mocha"]), st.sampled_from([1, "x", {"a": 1}])
)
scripts = st.dictionaries(
    st.sampled_from(["test", "pretest", "build", "docs"]), st.sampled_from(["jest", "true"])
)


@LAW
@given(tables(), tables())
def test_the_pinned_pyproject_steers_as_before_and_else_is_as_it_is_now_or_as_it_was(
    before: str, after: str
) -> None:
    text = pinned_text("pyproject.toml", before, after)
    assert text is not None
    assert not steers_differently("pyproject.toml", before, text, ())


@LAW
@given(packages, scripts, packages, scripts)
def test_the_pinned_package_json_keeps_old_scripts_and_new_dependencies(
    old: dict[str, object], old_scripts: dict[str, str], new: dict[str, object], new_scripts: dict[str, str]
) -> None:
    before, after = json.dumps({**old, "scripts": old_scripts}), json.dumps({**new, "scripts": new_scripts})
    text = pinned_text("package.json", before, after)
    assert text is not None
    assert not steers_differently("package.json", before, text, ())
    found = json.loads(text)
    assert {name: found["scripts"][name] for name in old_scripts} == old_scripts
    assert found.get("dependencies") == new.get("dependencies")


@LAW
@given(st.lists(st.sampled_from(["a", "b.py", "*", "**", "test_*", "[x"]), min_size=1, max_size=4))
def test_a_pattern_covers_itself_taken_literally_unless_it_has_a_set(parts: list[str]) -> None:
    pattern = "/".join(parts)
    assert covers(pattern, pattern.replace("**", "deep").replace("*", "x"))

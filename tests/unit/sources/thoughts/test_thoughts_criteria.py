"""Which of a phase's criteria are run."""

import pytest
from tests.cases import each_case

from loopwright.adapters.sources.text.markdown import read_markdown
from loopwright.adapters.sources.thoughts.thoughts_criteria import Measured, measured_by

REAL = """# Phase 1: Prompt generation

- [ ] Not measured by this: `rm -rf everything`

## Success Criteria

### Automated
- [ ] Test fails initially (Red): `pytest tests/x.py -v`
- [ ] Test passes (Green): `pytest tests/x.py -v`
- [ ] All existing tests still pass: `pytest tests/ -v`.
- [x] **Type check passes**: `mypy pkg/` <!-- done -->
- [ ] `make lint` passes
- [ ] The name `Limiter` stays
- [ ] `State` is kept: see `state.py` and others

### Manual
- [ ] Start it by hand: `python -m pkg`

### Further
- [ ] Look at `README.md`: `cat README.md`

## Human-Testable Function

- Call it: `python -c 'import pkg'`
"""


def run(text: str) -> list[str]:
    return [gate.command for gate in measured(text).acceptance]


def measured(text: str) -> Measured:
    markdown = read_markdown(text.encode())
    return measured_by(markdown, -1, len(markdown.lines))


@pytest.mark.capability("C015")
def test_commands_below_automated_are_run_and_nothing_else_is() -> None:
    assert run(REAL) == ["pytest tests/x.py -v", "pytest tests/ -v", "mypy pkg/", "make lint"]
    found = measured(REAL)
    assert found.criteria[:1] == ("Test passes (Green): `pytest tests/x.py -v`",)
    assert found.criteria[-1] == "Look at `README.md`: `cat README.md`"
    assert (len(found.criteria), found.manual) == (7, ("Start it by hand: `python -m pkg`",))


@each_case(
    ("text", "commands"),
    [
        ("## Success Criteria\n- [ ] It holds: `make test`\n- words\n", ["make test"]),
        ("## Success Criteria:\n#### Automated Verification:\n- It holds: `make test`\n", ["make test"]),
        ("## Success Criteria\n**Automated:**\n- a: `a b`\n\n**Manual:**\n- c: `c d`\n", ["a b"]),
        ("## Success Criteria\n- first: `a b`\n### Automated\n- then: `c d`\n", ["c d"]),
        ("## Success Criteria\n### Manual\n- a: `a b`\n", []),
        ("## Success Criteria\n```\n- a: `a b`\n```\n- `x` is a name\n", []),
        ("## Success Criteria\n- a: `a`\n# Other\n- b: `b`\n## Success Criteria\n- c: `c`\n", ["a", "c"]),
        ("# Goals\n- a: `a b`\n", []),
        ("## Success Criteria\n- No old test fails: `a`\n- Nothing fails any more: `b`\n", ["a", "b"]),
        ("## Success Criteria\n- It doesn't fail: `a`\n- It is not there yet, so it fails: `b`\n", ["a"]),
    ],
)
def test_where_commands_are_looked_for(text: str, commands: list[str]) -> None:
    assert run(text) == commands

"""Prompt templates: how they are filled, and what is refused in a project's own ones."""

import hashlib
from pathlib import Path

import pytest
from tests.cases import each_case
from tests.refusals import raises_code

import loopwright.prompts
from loopwright.core.integrity.gate_files import Kind, Rules, kind_of
from loopwright.core.replies import discoveries, doc_sync, qa, questions, reviews
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.templates import FIXED, ROLES, Template, own_path, packaged, replaced

TEXT = f"""\
---
version: 3
variables: name, note, late?, rule
---
## Task

Greet $name.

[late] It is late.

## Context

[note] A note:

$note

{FIXED}

## How it will be checked

[rule]
- $rule
"""
OWN = "---\nversion: 7\n---\nSay hello to ${name}, for $$5.\n\n$note\n"
FILE = "loopwright.prompts/greeter.md"
FOLDER = Path(loopwright.prompts.__file__).parent


def template() -> Template:
    return packaged("greeter.md", TEXT)


def filled(own: str | None = None, **values: str | bool) -> str:
    one = replaced(template(), FILE, own.encode()) if own is not None else template()
    return one.fill({"name": "Ada", "note": "", "late": False, "rule": "Be kind.", **values})


def test_an_empty_variable_takes_its_paragraph_and_its_heading_with_it() -> None:
    assert filled() == "## Task\n\nGreet Ada.\n\n## How it will be checked\n\n- Be kind.\n"
    assert filled(note="x\n\ny", late=True, rule="") == (
        "## Task\n\nGreet Ada.\n\nIt is late.\n\n## Context\n\nA note:\n\nx\n\ny\n"
    )


def test_a_value_is_text_and_never_a_template() -> None:
    assert "$rule and [late] x" in filled(note="$rule and [late] x")


def test_what_was_used_is_told_by_file_version_and_hash() -> None:
    used = template().used
    assert (used.file, used.version) == ("loopwright:greeter.md", 3)
    assert used.sha256 == hashlib.sha256(TEXT.encode()).hexdigest()
    own = replaced(template(), FILE, OWN.encode()).used
    assert (own.file, own.version, own.sha256) == (FILE, 7, hashlib.sha256(OWN.encode()).hexdigest())


def test_a_project_s_own_text_never_replaces_the_rules() -> None:
    assert filled(OWN, note="n") == (
        "Say hello to Ada, for $5.\n\nn\n\n## How it will be checked\n\n- Be kind.\n"
    )


@each_case(
    ("own", "problem", "to_do"),
    [
        (OWN.replace("${name}", "$nmae $name"), f"{FILE}:4: there is no variable `nmae`", "`name`"),
        (f"{OWN}\n[nice] x\n", f"{FILE}:8: there is no variable `nice`", "its variables are"),
        (
            OWN.replace("7\n", "7\nvariables: nice?\n"),
            f"{FILE}:3: there is no variable `nice`",
            "its variables",
        ),
        (OWN.replace("$note", "[note] x"), f"{FILE}:6: the variable `$note` is missing", "delete it"),
        (f"{OWN}\n{FIXED}\n", f"{FILE}:8: Loopwright always adds what follows", "commit a corrected file"),
        (OWN.replace("$$", "$"), f"{FILE}:4: a `$` begins a variable", "write `$$`"),
        (
            OWN.replace("version: 7", "version: new"),
            f"{FILE}:2: `version: new` cannot be read",
            "`version: 1`",
        ),
        (OWN.replace("7", "7\nauthor: me"), f"{FILE}:3: `author: me` cannot be read", "`version: 1`"),
        (OWN.replace("version: 7\n", ""), f"{FILE}:2: `version` is missing", "`version: 1`"),
        ("---\nversion: 7\n", f"{FILE}:1: the front matter has no end", "`---`"),
        ("Hello $name, $note", f"{FILE}:1: the front matter is missing", "`---`"),
        ("", f"{FILE}:1: the front matter is missing", "`---`"),
    ],
)
def test_a_wrong_template_is_refused_with_its_line_and_what_to_do(own: str, problem: str, to_do: str) -> None:
    with pytest.raises(BadConfig) as refused:
        filled(own)
    assert problem in str(refused.value)
    assert to_do in str(refused.value.hint)


def test_a_template_that_is_no_text_is_refused() -> None:
    with raises_code("prompt_template_wrong"):
        replaced(template(), FILE, b"---\nversion: 1\n---\n\xff")


def test_a_packaged_template_declares_exactly_what_it_uses() -> None:
    with pytest.raises(BadConfig, match="late, more"):
        packaged("greeter.md", TEXT.replace("late?", "more"))


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.md")), ids=lambda path: path.stem)
def test_every_packaged_template_can_be_read_and_used_as_a_project_s_own(path: Path) -> None:
    name = path.relative_to(FOLDER).as_posix().removesuffix(".md")
    one = loopwright.prompts.packaged(name)
    assert bool(one.fixed) == (name in ROLES), "what a project can replace has rules that it cannot"
    if one.fixed:
        own = path.read_text(encoding="utf-8").partition(FIXED)[0]
        mine = replaced(one, own_path("", name), own.encode())
        assert (mine.text, mine.fixed, mine.used.version) == (one.text, one.fixed, one.used.version)


def test_each_role_has_a_template_and_the_rules_name_the_blocks_that_are_read() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.md")) == sorted(ROLES)
    told = {role: loopwright.prompts.packaged(role).fixed for role in ROLES}
    for fence in (questions.FENCE, discoveries.DISCOVERED_FENCE, doc_sync.FENCE):
        assert f"```{fence}\n" in told["implementer"]
    assert f"```{reviews.FENCE}\n" in told["reviewer"]
    for role in ("qa", "planner"):
        assert f"```{questions.FENCE}\n" in told[role]
    assert f"```{qa.FENCE}\n" in told["qa"]


def test_a_project_s_own_templates_lie_beside_its_settings_and_judge() -> None:
    assert own_path("", "qa") == "loopwright.prompts/qa.md"
    assert own_path("apps/shop", "qa") == "apps/shop/loopwright.prompts/qa.md"
    assert kind_of(own_path("", "reviewer"), Rules(), existed=True) is Kind.BUILD
    assert kind_of(own_path("", "reviewer"), Rules(), existed=False) is Kind.BUILD

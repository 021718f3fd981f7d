"""The check of the English of the pages finds what it has to, and nothing else."""

from pathlib import Path

import pytest
from scripts import check_text
from tests.cases import each_case


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


@each_case(
    "text",
    [
        "Then it goes on.",
        "The agent mends the test.",
        "It asks leave for a command.",
        "This is a look at the whole.",
        "Work that an agent came\nupon.",
        "The run is over.",
        "It has a folder of its own.",
        "A claim is no proof.",
        "It is built anew.",
        "Nobody answered.",
    ],
)
def test_an_unclear_phrase_is_found(text: str) -> None:
    assert len(list(check_text.unclear(text))) == 1


@each_case(
    "text",
    [
        "Then it continues.",
        "The amendment is over 3 pages long.",
        "This is no longer true.",
        "Type `loopwright mend`.",
        "```text\nnobody\n```\n",
        "See [this page](whoever.md).",
        "<!-- nobody reads this -->",
    ],
)
def test_plain_english_and_code_pass(text: str) -> None:
    assert list(check_text.unclear(text)) == []


def test_a_phrase_is_reported_with_its_page_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "docs/a.md", "# A\n\n```text\nnobody\n```\n\nNobody came.\n")
    assert check_text.main(tmp_path) == 1
    assert capsys.readouterr().err.startswith('docs/a.md:7: "Nobody"')


def test_generated_text_is_neither_checked_nor_counted(tmp_path: Path) -> None:
    write(tmp_path, "docs/made.md", "<!-- Made by `make docs`. -->\n\nNobody.\n")
    write(tmp_path, "docs/part.md", "one | two\n<!-- a b: begin -->\nnobody\n<!-- a b: end -->\nthree\n")
    assert check_text.main(tmp_path) == 0
    assert [page.words for page in check_text.pages(tmp_path)] == [3]


def test_pages_that_are_too_long_together_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "README.md", "word " * check_text.MOST_WORDS)
    write(tmp_path, "docs/adr/0001-a.md", "decision records do not count")
    assert check_text.main(tmp_path) == 0
    write(tmp_path, "docs/a.md", "more")
    assert check_text.main(tmp_path) == 1
    assert f"{check_text.MOST_WORDS + 1} words" in capsys.readouterr().err


@each_case(
    "text",
    [
        '"""Nobody."""\n',
        'X = "Mend it."\n',
        "x = 1  # whoever reads this\n",
        'def f():\n    """Say whether."""\n',
    ],
)
def test_messages_docstrings_and_comments_are_checked(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "src/loopwright/core/a.py", text)
    assert check_text.main(tmp_path) == 1
    assert capsys.readouterr().err.startswith("src/loopwright/core/a.py:")


def test_there_is_no_is_plain_english() -> None:
    assert list(check_text.unclear("There is no agent named x.")) == []

"""Sentences of the product, each kept in a file instead of in the test that meets it.

A test checks codes and data. It hands the sentence itself to the fixture `wording`, which compares it with the file of
its test module in `tests/data/wording`. After you reword something, run `WORDING=write pytest TESTS` (one process, so
without `-n`) and read the difference of these files.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).parent
_KEPT = _TESTS / "data" / "wording"
# What differs from run to run: ids, hashes, and where the test runs.
_ID = re.compile(r"\b([a-z]+)_[0-9a-f]{4,}(?:-[0-9a-f]+)*\b")
_HASH = re.compile(r"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b")


class Wording:
    """The sentences that one test has met."""

    def __init__(self, folder: Path | None) -> None:
        self.said: list[str] = []
        self._folder = folder

    def __call__(self, *texts: Any) -> None:
        """Take in sentences; a list or tuple counts as its members."""
        for text in texts:
            if isinstance(text, list | tuple):
                self(*text)
            else:
                self.said.append(self._steady(str(text)))

    def _steady(self, text: str) -> str:
        if self._folder is not None:
            text = text.replace(str(self._folder), "TMP")
        return _HASH.sub("HASH", _ID.sub(r"\1_ID", text))


def read(file: Path) -> dict[str, list[str]]:
    """Return the sentences in a file, by test."""
    kept: dict[str, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        if line.startswith("## "):
            said = kept.setdefault(line[3:], [])
        elif line.startswith("- "):
            said.append(line[2:])
        elif line.startswith("  "):
            said[-1] += "\n" + line[2:]
    return kept


def _write(file: Path, kept: dict[str, list[str]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    parts = [
        "\n".join([f"## {name}", *("- " + text.replace("\n", "\n  ") for text in said)])
        for name, said in sorted(kept.items())
    ]
    file.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def file_of(module: Path) -> Path:
    """Return where the sentences of a test module are kept."""
    return (_KEPT / module.relative_to(_TESTS)).with_suffix(".txt")


@pytest.fixture
def wording(request: pytest.FixtureRequest) -> Iterator[Wording]:
    """Compare each sentence that the test hands over with what is kept."""
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    met = Wording(folder)
    yield met
    file, name = file_of(request.path), request.node.name
    kept = read(file)
    if os.environ.get("WORDING") == "write":
        _write(file, {**kept, name: met.said})
        return
    assert met.said == kept.get(name), f"not as in {file.relative_to(_TESTS.parent)}"

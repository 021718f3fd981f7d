"""Short excerpts of a plan's documents that concern one task: its requirements, its files, its words."""

import re
from collections.abc import Mapping
from typing import Final

from loopwright.core.values.wording import on_one_line, shortened, visible

MOST_DOCUMENTS: Final = 12
_MOST_EXCERPTS: Final = 2
"""Of each document."""
_LONGEST: Final = 500
_ALL: Final = 4_000
_READ: Final = 200_000
"""So many characters of a document are looked at."""
_WORD: Final = re.compile(r"[^\W\d_][\w-]{3,}")
_REFERENCE: Final = re.compile(r"\b(?:[A-Z]{1,6}-?\d+(?:\.\d+)*|\d+\.\d+|[\w./-]+\.[a-z]{1,5})\b")
_COMMON: Final = frozenset(
    {
        "about", "after", "also", "because", "before", "each", "every", "from", "have", "into", "make", "more", "must",
        "only", "other", "same", "should", "such", "than", "that", "their", "them", "then", "there", "these", "they",
        "this", "through", "user", "users", "using", "when", "where", "which", "will", "with", "without", "your",
        "task", "tasks", "file", "files", "test", "tests", "code", "implement", "create", "update", "write",
    }
)  # fmt: skip
"""Words that say nothing about what a paragraph is about."""
_REFERENCE_COUNTS: Final = 3
_LEAST: Final = 2


def listed_documents(documents: Mapping[str, str], task: str) -> str:
    """Return the documents, each with its path and with what concerns the task; the text of each is indented."""
    parts, left = [], _ALL
    for path, text in list(documents.items())[:MOST_DOCUMENTS]:
        found = [one for one in excerpts(text, task) if len(one) <= left]
        left -= sum(map(len, found))
        quoted = "\n\n    [...]\n\n".join(_indented(one) for one in found)
        parts.append(f"- {on_one_line(path)}" + (f"\n\n{quoted}\n" if quoted else ""))
    return "\n".join(parts).rstrip()


def excerpts(text: str, task: str) -> tuple[str, ...]:
    """Return the paragraphs of a document that name most of what a task names, in the order of the document."""
    words = _words(task)
    references = set(_REFERENCE.findall(task))
    ranked = []
    for n, paragraph in enumerate(_paragraphs(text[:_READ])):
        score = len(words & _words(paragraph))
        score += _REFERENCE_COUNTS * len(references.intersection(_REFERENCE.findall(paragraph)))
        if score >= _LEAST:
            ranked.append((-score, n, paragraph))
    best = sorted(ranked)[:_MOST_EXCERPTS]
    return tuple(shortened(visible(one), _LONGEST) for _, _, one in sorted(best, key=lambda each: each[1]))


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)} - _COMMON


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs; a heading belongs to the one below it."""
    found, heading = [], ""
    for block in re.split(r"\n(?:[ \t]*\n)+", text.replace("\r\n", "\n").strip()):
        lines = block.rstrip()
        if lines.startswith("#") and "\n" not in lines:
            heading = lines
            continue
        found.append(f"{heading}\n{lines}" if heading else lines)
        heading = ""
    return found


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())

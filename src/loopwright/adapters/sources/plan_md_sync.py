"""What a checkbox plan says of business documents that have to follow its work.

Whoever names them relies on it, so what cannot be understood is an error: a flag is never passed over.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from loopwright.adapters.sources.plan_md_outline import Outline
from loopwright.adapters.sources.problems import Problems
from loopwright.config.nearest import nearest, quoted
from loopwright.core.doc_sync import MOST, DocSync, usable

_TITLE: Final = "business doc sync"
_REQUIRED: Final = "required"
_REASON: Final = "reason"
_DOCS: Final = "affected docs"
_LABELS: Final = (_REQUIRED, _REASON, _DOCS)
_LINE: Final = re.compile(r"(?P<label>[\w ]{3,60}?)\s?\**\s?:\**\s?(?P<said>.*)$")
_LINK: Final = re.compile(r"\[[^\]]{0,200}\]\(([^)\s]{1,500})\)")
_LONGEST: Final = 10_000
HOW: Final = "name files or folders of the project, such as prices.md, sales/tiers"


def flagged(found: Outline, problems: Problems) -> DocSync | None:
    """Return what the section about business documents asks for: `Required: Yes`, a reason, and the documents."""
    for section in found.sections:
        if not section.title.casefold().startswith(_TITLE):
            continue
        lines = found.markdown.lines[section.start + 1 : section.end]
        said = _said((line.text for line in lines), section.start + 2, problems)
        if _is_required(said, section.start + 1, problems):
            documents = _documents(*said.get(_DOCS, (said[_REQUIRED][0], "")), problems)
            if documents:
                return DocSync(reason=said.get(_REASON, (0, ""))[1], documents=documents)
    return None


def _said(texts: Iterable[str], first: int, problems: Problems) -> dict[str, tuple[int, str]]:
    """Return the line and the value of each label."""
    said: dict[str, tuple[int, str]] = {}
    for number, text in enumerate(texts, start=first):
        match = _LINE.match(text.lstrip(" \t>*+-")[:_LONGEST])
        if match is None:
            continue
        label = match["label"].casefold().strip().removeprefix(_TITLE).strip() or _REQUIRED
        guess = nearest(label, _LABELS, cutoff=0.75)
        if label in _LABELS:
            said[label] = (number, match["said"].strip("* \t"))
        elif guess is not None:
            problems.note(number, "", f"unknown label {quoted(label)}: did you mean {quoted(guess)}?")
    return said


def _is_required(said: dict[str, tuple[int, str]], heading: int, problems: Problems) -> bool:
    if _REQUIRED not in said:
        if _DOCS in said:
            problems.note(
                said[_DOCS][0], "", "say whether they have to follow: `Required: Yes` or `Required: No`"
            )
        else:
            problems.warn(heading, "", "nothing follows from this section: it has no line `Required: Yes`")
        return False
    number, value = said[_REQUIRED]
    word = re.split(r"[\s,.;:(—–-]", value.strip("`* \t"), maxsplit=1)[0].strip("*`").casefold()
    if word not in ("yes", "no"):
        problems.note(number, _REQUIRED, f"expected Yes or No, not {quoted(value)}")
    return word == "yes"


def _documents(number: int, value: str, problems: Problems) -> tuple[str, ...]:
    named = list(_named(value))
    if not named:
        problems.note(number, _DOCS, f"documents have to follow, but none is named: {HOW}")
    for one in named:
        if " " in one and f"`{one}`" not in value:
            problems.note(
                number, _DOCS, f"{quoted(one)} is no path: {HOW}; one with a blank stands in backticks"
            )
        elif not usable([one]):
            problems.note(number, _DOCS, f"{quoted(one)} is not inside of the project: {HOW}")
    if len(named) > MOST:
        problems.note(number, _DOCS, f"at most {MOST} are taken, {len(named)} are named: name their folder")
    return usable(named)


def _named(value: str) -> Iterator[str]:
    """Return what stands between the commas, without backticks, links, and what is said in brackets behind a path."""
    for part in value.split(","):
        code, link = part.split("`"), _LINK.search(part)
        bare = part.partition(" (")[0].partition(" — ")[0].partition(" - ")[0]
        path = (code[1] if len(code) >= 3 else link[1] if link is not None else bare).strip("* \t")
        if path.casefold() not in ("", "-", "n/a", "none"):
            yield path

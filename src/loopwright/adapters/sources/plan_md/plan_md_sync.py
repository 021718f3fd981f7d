"""What a checkbox plan says of business documents that have to follow its work.

The author of a plan relies on it, so a flag that cannot be understood is an error.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from loopwright.adapters.sources.plan_md.plan_md_outline import Outline
from loopwright.adapters.sources.text.markdown import Kind, Line
from loopwright.adapters.sources.text.problems import Problems
from loopwright.config.nearest import nearest, quoted
from loopwright.core.replies.doc_sync import MOST, DocSync, usable

_TITLE: Final = "business doc sync"
_REQUIRED: Final = "required"
_REASON: Final = "reason"
_DOCS: Final = "affected docs"
_LABELS: Final = (_REQUIRED, _REASON, _DOCS)
_LINE: Final = re.compile(r"(?P<label>[\w ]{3,60}?)\s?\**\s?:\**\s?(?P<said>.*)$")
_LINK: Final = re.compile(r"\[[^\]]{0,200}\]\((?:<([^>]{1,500})>|([^)\s]{1,500}))\)")
_ITEM: Final = re.compile(r"[ \t>]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(?:\[.\][ \t]+)?(?P<said>.+)")
_REMARK: Final = re.compile(
    r"(?P<said>`[^`]{1,500}`|\[[^`]{1,500}\)|[^`]{1,500}?)(?:\s[—–-](?=\s)|\s?:(?=\s|$)|\s\()(?P<about>.*)$"
)
"""An item with what is said about it; a path in that is another document."""
_PATH: Final = re.compile(r"[/`]|\w\.\w")
_TEMPLATE: Final = re.compile(
    r"(?:yes|no|true|false)\s*(?:/|\||\bor\b)\s*(?:yes|no|true|false)\b", re.IGNORECASE
)
_NOT: Final = re.compile(r"not (?:applicable|needed|necessary|required)\b", re.IGNORECASE)
_ANSWERS: Final = {"false": False, "n/a": False, "no": False, "none": False, "true": True, "yes": True}
_LONGEST: Final = 10_000
_Placed = tuple[int, str]
"""A line's number and its text."""
HOW: Final = "name files or folders of the project, such as prices.md, sales/tiers"


def flagged(found: Outline, problems: Problems) -> DocSync | None:
    """Return what the section about business documents asks for: `Required: Yes`, a reason, and the documents."""
    for section in found.sections:
        if not section.title.casefold().startswith(_TITLE):
            continue
        lines = found.markdown.lines[section.start + 1 : section.end]
        said, below = _said(lines, section.start + 2, problems)
        if _is_required(said, section.start + 1, problems):
            number, value = said.get(_DOCS, (said[_REQUIRED][0], ""))
            documents = _documents(number, value, below, problems)
            if documents:
                return DocSync(reason=said.get(_REASON, (0, ""))[1], documents=documents)
    return None


def _said(lines: Sequence[Line], first: int, problems: Problems) -> tuple[dict[str, _Placed], list[_Placed]]:
    """Return the line and the value of each label, and the items of the list below that of the documents."""
    said: dict[str, _Placed] = {}
    below: list[_Placed] = []
    in_list = False
    for number, line in enumerate(lines, start=first):
        if line.kind is Kind.COMMENT:
            continue
        match = _LINE.match(line.text.lstrip(" \t>*+-")[:_LONGEST])
        label = match["label"].casefold().strip().removeprefix(_TITLE).strip() or _REQUIRED if match else ""
        guess = nearest(label, _LABELS, cutoff=0.75) if label else None
        if match is not None and label in _LABELS:
            said[label] = (number, match["said"].strip("* \t"))
            in_list = label == _DOCS
            below = [] if in_list else below
        elif guess is not None:
            problems.note(number, "", f"unknown label {quoted(label)}: did you mean {quoted(guess)}?")
        elif (item := _ITEM.match(line.text[:_LONGEST])) is not None:
            below += [(number, _without_remark(item["said"]))] if in_list else []
        else:
            in_list = in_list and not line.text.strip(" \t>")
    return said, below


def _without_remark(item: str) -> str:
    match = _REMARK.match(item)
    return (item if match is None or _PATH.search(match["about"]) else match["said"]).strip()


def _is_required(said: dict[str, _Placed], heading: int, problems: Problems) -> bool:
    if _REQUIRED not in said:
        if _DOCS in said:
            problems.note(said[_DOCS][0], "", "write `Required: Yes` or `Required: No`")
        else:
            problems.warn(heading, "", "nothing follows from this section: it has no line `Required: Yes`")
        return False
    number, value = said[_REQUIRED]
    bare = value.strip("`*_[]{}<>() \t")
    word = re.split(r"[\s,.;:()—–-]", bare, maxsplit=1)[0].strip("*`]").casefold()
    if _TEMPLATE.match(bare):
        problems.note(number, _REQUIRED, f"{quoted(value)} is the template, not filled in: write Yes or No")
        return False
    if word not in _ANSWERS and not _NOT.match(bare):
        problems.note(number, _REQUIRED, f"expected Yes or No, not {quoted(value)}")
    return _ANSWERS.get(word, False)


def _documents(number: int, value: str, below: Sequence[_Placed], problems: Problems) -> tuple[str, ...]:
    """Return the documents beside the label and in the list below it; beside others, an item in words is text."""
    beside = [(number, value, one) for one in _named(value)]
    listed = [(at, words, one) for at, words in below for one in _named(words)]
    if beside:
        listed = [(at, words, one) for at, words, one in listed if not _is_prose(one, words)]
    named = [*beside, *listed]
    if not named:
        problems.note(number, _DOCS, f"documents have to follow, but none is named: {HOW}")
    for at, words, one in named:
        if _is_prose(one, words):
            problems.note(
                at, _DOCS, f"{quoted(one)} is not a path: {HOW}; put a path with a blank in backticks"
            )
        elif not usable([one]):
            problems.note(at, _DOCS, f"{quoted(one)} is not inside of the project: {HOW}")
    if len(named) > MOST:
        problems.note(number, _DOCS, f"at most {MOST} are taken, {len(named)} are named: name their folder")
    return usable([one for _, _, one in named])


def _is_prose(one: str, words: str) -> bool:
    return " " in one and f"`{one}`" not in words and f"<{one}>" not in words


def _named(value: str) -> Iterator[str]:
    """Return what is between the commas, without backticks, links, and remarks in brackets behind a path."""
    for part in value.split(","):
        code, link = part.split("`"), _LINK.search(part)
        bare = part.partition(" (")[0].partition(" — ")[0].partition(" - ")[0]
        linked = (link[1] or link[2]) if link is not None else bare
        path = (code[1] if len(code) >= 3 else linked).strip("* \t")
        if path.casefold() not in ("", "-", "n/a", "none"):
            yield path

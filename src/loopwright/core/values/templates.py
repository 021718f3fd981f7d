"""Prompt templates: read them, check a project's own ones, and fill them.

Pure: the texts come from the caller. A template is Markdown with front matter (`version`, `variables`) and
`$name` for a variable. A paragraph that begins with `[name]` is left out if that variable is empty. So are an
empty paragraph, and a heading with nothing below it. What follows the line `FIXED` is always the packaged
text: no project can replace it.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from string import Template as Text
from typing import Final

from loopwright.core.values.errors import BadConfig
from loopwright.core.values.shapes import Count, Sha

FOLDER: Final = "loopwright.prompts"
"""Where a project keeps its own templates, beside its `loopwright.toml`."""
ROLES: Final = (
    "implementer",
    "reviewer",
    "qa",
    "planner",
    "plan-evaluator",
    "execution-evaluator",
    "investigator",
    "manager",
    "orchestrator",
)
"""The templates that a project can replace: one per role of an agent."""
FIXED: Final = "<!-- fixed: a project cannot replace what follows -->"
_FENCE: Final = "---"
_CONDITION: Final = re.compile(r"\[([a-z_]+)\]\s+")
_HEADING: Final = re.compile(r"#+ .*")
_BREAK: Final = re.compile(r"\n(?:[ \t]*\n)+")
_NAME: Final = re.compile(r"[a-z_]+\??")
_VERSION: Final = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedTemplate:
    """The template of a run's prompt."""

    file: str
    """Relative to the repository for a project's own one; it begins with `loopwright:` for a packaged one."""
    version: Count
    sha256: Sha


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A prompt with variables."""

    used: UsedTemplate
    variables: Mapping[str, bool]
    """The names of its variables, and whether a project's own template must use them."""
    text: str
    """The part that a project can replace."""
    fixed: str = ""
    """The part that a project cannot replace."""

    def fill(self, values: Mapping[str, str | bool]) -> str:
        """Return the prompt with these values; an empty one leaves its paragraph out."""
        parts: list[str] = []
        heading = ""
        for paragraph in _BREAK.split(f"{self.text}\n\n{self.fixed}"):
            if condition := _CONDITION.match(paragraph):
                if not values[condition[1]]:
                    continue
                paragraph = paragraph[condition.end() :]
            filled = Text(paragraph).substitute(values).strip("\n")
            if _HEADING.fullmatch(paragraph):
                heading = filled
            elif filled.strip():
                parts += [heading, filled] if heading else [filled]
                heading = ""
        return "\n\n".join(parts) + "\n"


def packaged(file: str, text: str) -> Template:
    """Return a template that comes with Loopwright."""
    read = _Read(file=file, lines=text.splitlines())
    body = "\n".join(read.lines[read.begins :])
    changeable, _, fixed = body.partition(FIXED)
    declared = {name.removesuffix("?"): not name.endswith("?") for name in read.declared}
    used = {name for _, name in read.names()}
    if unlike := declared.keys() ^ used:
        raise BadConfig(
            f"{file}: declared or used, but not both: {', '.join(sorted(unlike))}",
            code="prompt_template_wrong",
        )
    said = UsedTemplate(file=f"loopwright:{file}", version=read.version, sha256=_hash(text.encode()))
    return Template(used=said, variables=declared, text=changeable.strip("\n"), fixed=fixed.strip("\n"))


def own_path(subfolder: str, role: str) -> str:
    """Return where a project's own template for a role is, relative to the repository."""
    return "/".join(filter(None, (subfolder, FOLDER, f"{role}.md")))


def replaced(template: Template, file: str, content: bytes) -> Template:
    """Return a template with a project's own text in place of the packaged one; raise `BadConfig` with the line."""
    try:
        text = content.decode()
    except UnicodeDecodeError as wrong:
        raise BadConfig(
            f"{file}: it is not UTF-8 text: {wrong.reason}",
            code="prompt_template_wrong",
            hint="save it as UTF-8",
        ) from wrong
    read = _Read(file=file, lines=text.splitlines())
    problems = [
        f"{file}:{line}: there is no variable `{name}` in this template"
        for line, name in (
            *((read.declared_at, one.removesuffix("?")) for one in read.declared),
            *read.names(),
        )
        if name not in template.variables
    ]
    shown = {name for _, name in read.shown()}
    changeable = {name for _, name in _Read(file=file, lines=template.text.splitlines(), begins=0).shown()}
    problems += [
        f"{file}:{len(read.lines)}: the variable `${name}` is missing"
        for name, is_needed in template.variables.items()
        if is_needed and name in changeable and name not in shown
    ]
    problems += [
        f"{file}:{n}: Loopwright always adds what follows this line itself"
        for n, line in enumerate(read.lines, 1)
        if line.strip() == FIXED
    ]
    if problems:
        names = ", ".join(f"`{name}`" for name in template.variables)
        raise BadConfig(
            "\n".join(problems),
            code="prompt_template_wrong",
            hint=f"commit a corrected file, or delete it to use the packaged one; its variables are {names}",
        )
    used = UsedTemplate(file=file, version=read.version, sha256=_hash(content))
    return replace(template, used=used, text="\n".join(read.lines[read.begins :]).strip("\n"))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class _Read:
    """The lines of a template, with its front matter read."""

    def __init__(self, *, file: str, lines: list[str], begins: int | None = None) -> None:
        self.file = file
        self.lines = lines
        self.version = 0
        self.declared: tuple[str, ...] = ()
        self.declared_at = 1
        self.begins = self._front_matter() if begins is None else begins
        """The index of the first line of the text."""

    def names(self) -> Iterator[tuple[int, str]]:
        """Yield the line and name of each variable, whether it is printed or a condition."""
        for n, line in enumerate(self.lines[self.begins :], self.begins + 1):
            is_first = n == self.begins + 1 or not self.lines[n - 2].strip()
            if is_first and (condition := _CONDITION.match(f"{line}\n")):
                yield n, condition[1]
        yield from self.shown()

    def shown(self) -> Iterator[tuple[int, str]]:
        """Yield the line and name of each variable that is printed."""
        for n, line in enumerate(self.lines[self.begins :], self.begins + 1):
            for found in Text.pattern.finditer(line):
                if found["invalid"] is not None:
                    raise self._wrong(n, "a `$` begins a variable", hint="write `$$` for a dollar sign")
                if name := found["named"] or found["braced"]:
                    yield n, name

    def _front_matter(self) -> int:
        if not self.lines or self.lines[0].strip() != _FENCE:
            raise self._wrong(1, "the front matter is missing", hint=_FRONT_MATTER)
        for n, line in enumerate(self.lines[1:], 2):
            if line.strip() == _FENCE:
                if not self.version:
                    raise self._wrong(n, "`version` is missing", hint=_FRONT_MATTER)
                return n
            self._entry(n, line)
        raise self._wrong(1, "the front matter has no end", hint=_FRONT_MATTER)

    def _entry(self, n: int, line: str) -> None:
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "version" and _VERSION.fullmatch(value):
            self.version = int(value)
        elif key == "variables" and all(map(_NAME.fullmatch, names := value.replace(",", " ").split())):
            self.declared, self.declared_at = tuple(names), n
        else:
            raise self._wrong(n, f"`{line.strip()}` cannot be read", hint=_FRONT_MATTER)

    def _wrong(self, line: int, problem: str, *, hint: str) -> BadConfig:
        return BadConfig(f"{self.file}:{line}: {problem}", code="prompt_template_wrong", hint=hint)


_FRONT_MATTER: Final = (
    "begin the file with a line `---`, a line such as `version: 1` and a line `---`, and commit it"
)

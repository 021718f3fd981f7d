"""PROMPT.md: one prompt, run round after round; its front matter says when to stop."""

import hashlib
import re
from itertools import takewhile
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.spec.plan_format import MAX_DESCRIPTION, MAX_TITLE
from loopwright.adapters.sources.spec.yaml_plan import PlanReader, is_criterion, lines_in
from loopwright.adapters.sources.text.located import Located, check_text, read_yaml
from loopwright.adapters.sources.text.plan_file import decoded
from loopwright.adapters.sources.text.problems import Problems, Unreadable, refuse
from loopwright.adapters.sources.text.reading import located_at, read_file
from loopwright.adapters.sources.text.titles import is_prompt
from loopwright.config.kinds import is_inside
from loopwright.ports import Files, PlannedTask, PlannedWork, Source

_FENCE: Final = "---"
_SETTING: Final = re.compile(r"\w+[ \t]*:|[ \t]|- ")
_KEYS: Final = ("acceptance", "criteria", "gates", "rounds", "scope", "settings")


class PromptSource(Source):
    """Reads a prompt; it has no place for a status."""

    kind = "prompt_md"
    format_name = "Prompt loop"
    usual_places = ("PROMPT*.md", "prompt.md", ".ralph/PROMPT.md")

    def recognises(self, place: Path) -> bool:
        """Take `PROMPT.md`, and a file such as `PROMPT_build.md`."""
        return is_prompt(place.name) and place.is_file()

    def files(self, place: Path) -> Files:
        """Return the one file."""
        return {place.name: read_file(place)}

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the task `prompt`, or raise `BadPlan`."""
        ((_, content),) = files.items()
        problems = Problems(name)
        try:
            front, text = _parted(check_text(decoded(content), 1).replace("\r\n", "\n"))
            table = _table(front)
            if len(text) > MAX_DESCRIPTION:
                raise Unreadable(1, f"a prompt has at most {MAX_DESCRIPTION} characters")
        except Unreadable as broken:
            raise located_at(name, broken) from broken
        if not text:
            problems.note(1, "", "the prompt is empty: say what is to be done")
        title = text.partition("\n")[0].lstrip("# \t").strip()[:MAX_TITLE] or name
        reader = PlanReader(problems, files)
        reader.known(table, _KEYS, "")
        settings = reader.settings(table)
        if "max_attempts" in settings:
            problems.note(
                table["settings"].line, "settings.max_attempts", "a prompt has rounds: say rounds.max"
            )
        task = PlannedTask(
            key="prompt",
            title=title,
            description=text,
            acceptance=reader.gates(table, "acceptance", ""),
            criteria=reader.texts(table, "criteria", "", is_criterion, "a text"),
            scope=reader.texts(table, "scope", "", is_inside, "a path relative to the project, without .."),
            line=front.count("\n") + 1,
        )
        gates = reader.gates(table, "gates", "")
        refuse(name, problems)
        return PlannedWork(
            title=title,
            tasks=(task,),
            gates=gates or None,
            settings=settings,
            lines=lines_in(table["settings"], "") if "settings" in table else {},
            sha256=hashlib.sha256(content).hexdigest(),
            rounds=True,
        )


def _parted(text: str) -> tuple[str, str]:
    """Return the front matter, with empty lines where its fences are, and the prompt below it."""
    first, _, rest = text.partition("\n")
    if first.rstrip() != _FENCE:
        return "", text.strip()
    lines = rest.split("\n")
    end = next((n for n, line in enumerate(lines) if line.rstrip() == _FENCE), None)
    if end is None:
        above = takewhile(lambda line: not line.strip() or _SETTING.match(line), lines)
        if any(line.partition(":")[0].rstrip() in _KEYS for line in above):
            message = f"the settings above the prompt are never closed: write a line {_FENCE} below them"
            raise Unreadable(1, message)
        return "", text.strip()  # a line across the page
    return "\n".join(["", *lines[:end], "", ""]), "\n".join(lines[end + 1 :]).strip()


def _table(front: str) -> dict[str, Located]:
    """Return what the front matter says, its `rounds` among the settings; or raise `Unreadable`."""
    if not front.strip():
        return {}
    found = read_yaml(front)
    if not isinstance(found.value, dict):
        raise Unreadable(found.line, f"between the lines {_FENCE} are keys such as acceptance and rounds")
    table = dict(found.value)
    if rounds := table.pop("rounds", None):
        given = table.get("settings")
        inner = given.value if given is not None and isinstance(given.value, dict) else {}
        table["settings"] = Located({**inner, "rounds": rounds}, given.line if given else rounds.line)
    return table

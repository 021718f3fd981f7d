"""What agents are told, as template files: one per role here, and in `parts` what goes into a task's description.

`core.values.templates` says how they are written, and `engine.attempt.agent_brief` which one a run gets. A project can
replace those of the roles (`docs/how-to/change-a-prompt.md`). No text that an agent reads belongs into Python.

Not here: which values go into a template (`core.prompts`), how templates are read (`core.values.templates`).
"""

from functools import cache
from importlib.resources import files

from loopwright.core.values import templates
from loopwright.core.values.templates import Template


@cache
def packaged(name: str) -> Template:
    """Return the template of a role, or one of `parts`, as it comes with Loopwright."""
    file = f"{name}.md"
    return templates.packaged(file, files(__package__).joinpath(file).read_text(encoding="utf-8"))

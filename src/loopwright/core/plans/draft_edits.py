"""What the user may change in a draft before it is dispatched."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTask:
    """The new content of a draft's task; None leaves a part unchanged."""

    key: str
    title: str | None = None
    description: str | None = None
    priority: int | None = None
    depends_on: tuple[str, ...] | None = None
    """The keys of other tasks."""
    criteria: tuple[str, ...] | None = None
    acceptance: tuple[str, ...] | None = None
    """Commands that must pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftEdit:
    """The new content of a draft."""

    title: str | None = None
    tasks: tuple[DraftTask, ...] | None = None
    """All tasks, in their order: a task that is not named is dropped. None leaves the tasks unchanged."""

    @property
    def has_commands(self) -> bool:
        """Whether it defines commands."""
        return any(task.acceptance is not None for task in self.tasks or ())

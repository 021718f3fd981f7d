"""What a person may change in a draft before it is dispatched."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTask:
    """A task of a draft as it should be; None leaves a part as it is."""

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
    """A draft as it should be."""

    title: str | None = None
    tasks: tuple[DraftTask, ...] | None = None
    """All tasks, in their order: one that is not named is dropped. None leaves the tasks as they are."""

    @property
    def has_commands(self) -> bool:
        """Whether it defines commands."""
        return any(task.acceptance is not None for task in self.tasks or ())

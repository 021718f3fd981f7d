"""What people said about alerts."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """A person knows of an alert. It holds until the alert's cause happens again."""

    id: str
    """The alert's."""
    actor: str
    created_at: datetime

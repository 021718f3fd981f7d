"""The severities of alerts, and the troubles that the monitor finds."""

from enum import StrEnum


class Severity(StrEnum):
    """How urgent an alert is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class TroubleKind(StrEnum):
    """What the monitor finds wrong."""

    STALE_HEARTBEAT = "stale_heartbeat"
    STUCK = "stuck"
    REPEATED_ERROR = "repeated_error"
    SERVICE_ERRORS = "service_errors"
    DIGRESSION = "digression"
    CONFLICT = "conflict"
    BUDGET_PACE = "budget_pace"

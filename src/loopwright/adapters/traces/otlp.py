"""Send spans to a collector over OTLP/HTTP."""

from collections.abc import Sequence
from datetime import datetime
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from loopwright import __version__
from loopwright.adapters.machine.foreign_logs import Heard
from loopwright.core.integrations.traces import Span
from loopwright.core.integrations.webhooks import Delivery, Reply
from loopwright.core.values.errors import UserError

INSTALL: Final = "pip install 'loopwright[otel]'"
_TIME_LIMIT_S: Final = 10.0
"""For one export, with the tries of the SDK."""
_LONGEST: Final = 300
_PATH: Final = "/v1/traces"


def is_installed() -> bool:
    """Return whether the SDK and its exporter are there."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except (
        ModuleNotFoundError
    ):  # a package above it; the part of OpenTelemetry without it comes with other extras
        return False


def check_installed() -> None:
    """Refuse to work without the SDK."""
    if not is_installed():
        raise UserError(
            "otlp_endpoint is set, and the OpenTelemetry SDK, which sends traces, is not installed",
            code="otlp_not_installed",
            hint=INSTALL,
        )


def address(endpoint: str) -> str:
    """Return where spans go, as the variable OTEL_EXPORTER_OTLP_ENDPOINT means it."""
    base = endpoint.rstrip("/")
    return base if base.endswith(_PATH) else f"{base}{_PATH}"


def name_of(endpoint: str) -> str:
    """Return what a collector is called in messages and rows."""
    return f"otlp:{urlsplit(endpoint).netloc}"


def send(endpoint: str, spans: Sequence[Span]) -> Delivery:
    """Send spans once, in this thread, and return what became of them."""
    check_installed()
    # They are an extra, and take a while to load.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

    scope = InstrumentationScope("loopwright", __version__)
    resource = Resource.create({"service.name": "loopwright", "service.version": __version__})

    def context(trace_id: int, span_id: int) -> SpanContext:
        sampled = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(trace_id=trace_id, span_id=span_id, is_remote=False, trace_flags=sampled)

    made = [
        ReadableSpan(
            name=one.name,
            context=context(one.trace_id, one.span_id),
            parent=context(one.trace_id, one.parent_id) if one.parent_id is not None else None,
            resource=resource,
            attributes=one.attributes,
            status=Status(StatusCode.OK) if one.error is None else Status(StatusCode.ERROR, one.error),
            start_time=_nanoseconds(one.began_at),
            end_time=_nanoseconds(one.ended_at),
            instrumentation_scope=scope,
        )
        for one in spans
    ]
    with Heard("opentelemetry") as heard:
        exporter = OTLPSpanExporter(endpoint=address(endpoint), timeout=_TIME_LIMIT_S)
        try:
            result = exporter.export(made)
        finally:
            exporter.shutdown()
    if result is SpanExportResult.SUCCESS:
        return Delivery(reply=Reply.TAKEN)
    said = heard.lines[-1] if heard.lines else "the collector did not take it"
    return Delivery(reply=Reply.AWAY, detail=said[:_LONGEST])


def _nanoseconds(moment: datetime) -> int:
    """Return a moment without the rounding of a float."""
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1_000

"""Spans and metrics of OpenTelemetry, through its API alone: without an SDK in the application they go nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.util.types import AttributeValue

from adk_memory._observation import Observation

_SCOPE: Final = "adk_memory"
_DATABASES: Final = ("sqlite", "postgresql")
"""Backends that have a name of their own among OpenTelemetry's database systems."""
_BOUNDARIES: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Telemetry:
    """Tells OpenTelemetry what operations did; without arguments through the providers of the application."""

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        release = version("adk-memory")
        self._tracer = trace.get_tracer(_SCOPE, release, tracer_provider)
        meter = metrics.get_meter(_SCOPE, release, meter_provider)
        self._duration = meter.create_histogram(
            "adk_memory.operation.duration",
            unit="s",
            description="How long operations took.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )
        self._counters = {
            counted: meter.create_counter(f"adk_memory.{counted}", unit=unit, description=description)
            for counted, unit, description in (
                ("entries.stored", "{entry}", "Entries that were given to be stored."),
                ("entries.erased", "{entry}", "Entries that were erased."),
                ("memories.returned", "{memory}", "Memories that searches and lists returned."),
            )
        }

    @contextmanager
    def watching(self, observation: Observation, *, current: bool) -> Iterator[None]:
        """Give an operation a span, and count it when it is over."""
        span = self._tracer.start_span(
            f"adk_memory.{observation.operation}",
            kind=SpanKind.CLIENT if observation.backend in _DATABASES else SpanKind.INTERNAL,
            attributes=_before(observation),
        )
        try:
            if current:
                with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                    yield
            else:
                yield
        finally:
            self._close(span, observation)

    def _close(self, span: Span, observation: Observation) -> None:
        after = _after(observation)
        span.set_attributes(after)
        if observation.count is not None:
            span.set_attribute(f"adk_memory.{observation.counted}", observation.count)
        if observation.error is not None:
            span.set_status(StatusCode.ERROR)  # without the message
        span.end()
        attributes = {**_before(observation), **after}
        self._duration.record(observation.seconds, attributes)
        counter = self._counters.get(observation.counted or "")
        if counter is not None and observation.count:
            counter.add(observation.count, attributes)


def _before(observation: Observation) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        "db.operation.name": observation.operation,
        "adk_memory.backend": observation.backend,
    }
    if observation.backend in _DATABASES:
        attributes["db.system.name"] = observation.backend
    return attributes


def _after(observation: Observation) -> dict[str, AttributeValue]:
    told = {
        "adk_memory.mode": observation.mode,
        "adk_memory.partial": observation.partial,
        "error.type": observation.error,
    }
    return {name: value for name, value in told.items() if value is not None}

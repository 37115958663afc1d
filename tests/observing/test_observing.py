"""What can be watched of operations: a line in the log, spans and metrics; and that none of it tells a content."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from adk_memory import (
    InMemoryMemoryService,
    MemoryEntry,
    MemoryService,
    SchemaMissingError,
    SearchRequest,
    ValidationError,
    open_memory,
)
from adk_memory import _observing as observing
from adk_memory._telemetry import Telemetry
from adk_memory.testing import ToyEmbedder
from canary.canary import CANARY, call
from isolation.operations import OPERATIONS


@dataclass
class Watched:
    """What was told to OpenTelemetry's real SDK."""

    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def points(self, name: str) -> list[Any]:
        data: Any = self.reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
        metrics = [metric for scope in scopes for metric in scope.metrics if metric.name == name]
        return [point for metric in metrics for point in metric.data.data_points]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    watched = Watched(InMemorySpanExporter(), InMemoryMetricReader())
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(watched.exporter))
    telemetry = Telemetry(tracers, MeterProvider([watched.reader], shutdown_on_exit=False))
    monkeypatch.setattr(observing, "_telemetry", lambda: telemetry)
    return watched


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def new_service(request: pytest.FixtureRequest) -> Callable[..., MemoryService]:
    urls = {"sqlite": "sqlite_url", "postgresql": "migrated_postgres_url"}
    url = request.getfixturevalue(urls[request.param]) if request.param in urls else "memory://"
    return lambda **options: open_memory(url, **options)


@pytest.fixture
async def service(new_service: Callable[..., MemoryService]) -> AsyncIterator[MemoryService]:
    async with new_service(embedder=ToyEmbedder(16)) as service:
        await service.migrate()
        yield service


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_an_operation_is_a_span_with_counts_and_the_mode(service: MemoryService, watched: Watched) -> None:
    await service.add_session("app", "ana", "s1", [MemoryEntry("green tea"), MemoryEntry("black tea")])
    await service.search(SearchRequest("tea", "app", "ana"))
    await service.delete_user("app", "ana")

    backend = service.backend_name
    common = {"adk_memory.backend": backend} | ({} if backend == "memory" else {"db.system.name": backend})
    assert [(span.name, attributes(span)) for span in watched.spans] == [
        (
            "adk_memory.add_session",
            {"db.operation.name": "add_session", "adk_memory.entries.stored": 2, **common},
        ),
        (
            "adk_memory.search",
            {
                "db.operation.name": "search",
                "adk_memory.memories.returned": 2,
                "adk_memory.mode": "hybrid",
                "adk_memory.partial": False,
                **common,
            },
        ),
        (
            "adk_memory.delete_user",
            {"db.operation.name": "delete_user", "adk_memory.entries.erased": 2, **common},
        ),
    ]
    kind = SpanKind.INTERNAL if backend == "memory" else SpanKind.CLIENT
    assert {span.kind for span in watched.spans} == {kind}
    assert all((span.end_time or 0) >= (span.start_time or 0) > 0 for span in watched.spans)


async def test_durations_and_counts_are_metrics(service: MemoryService, watched: Watched) -> None:
    for text in ("green tea", "black tea"):
        await service.add_entry("app", "ana", MemoryEntry(text))
    await service.search(SearchRequest("tea", "app", "ana"))
    await service.delete_entries("app", "ana", "green", dry_run=True)
    await service.delete_entries("app", "ana", "green")

    durations = {
        point.attributes["db.operation.name"]: point for point in watched.points("adk_memory.operation.duration")
    }
    assert {name: point.count for name, point in durations.items()} == {
        "add_entry": 2,
        "search": 1,
        "delete_entries": 2,
    }
    assert 0 < durations["search"].sum < 60
    assert [point.value for point in watched.points("adk_memory.entries.stored")] == [2]
    assert [point.value for point in watched.points("adk_memory.memories.returned")] == [2]
    assert [point.value for point in watched.points("adk_memory.entries.erased")] == [1]


async def test_an_operation_that_others_make_up_is_one_span(service: MemoryService, watched: Watched) -> None:
    await service.add_session_to_project("app", "ana", "s1", "A", [MemoryEntry("tea")])

    assert [span.name for span in watched.spans] == ["adk_memory.add_session_to_project"]


async def test_an_error_is_told_by_its_type_alone(service: MemoryService, watched: Watched) -> None:
    with pytest.raises(ValidationError):
        await service.get("app", CANARY * 100, CANARY)

    [span] = watched.spans
    assert attributes(span)["error.type"] == "ValidationError"
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert span.events == ()
    [point] = watched.points("adk_memory.operation.duration")
    assert point.attributes["error.type"] == "ValidationError"


async def test_spans_of_what_is_below_hang_on_ours(watched: Watched) -> None:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("below")
    seen = []

    class Below(ToyEmbedder):
        async def embed(self, texts: Any) -> Any:
            with tracer.start_as_current_span("embed") as span:
                seen.append(span.parent)  # type: ignore[attr-defined]
            return await super().embed(texts)

    await open_memory("memory://", embedder=Below(16)).add_entry("app", "ana", MemoryEntry("tea"))

    [span] = watched.spans
    assert span.context is not None
    assert seen[0].span_id == span.context.span_id


async def test_nothing_that_is_told_is_a_text_a_query_or_an_id(
    service: MemoryService, watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="adk_memory")
    for operation, (_, make) in OPERATIONS.items():
        try:
            await make(call(service, operation))
        except ValidationError:
            assert "cursor" in operation

    assert (
        len(watched.spans)
        == len(OPERATIONS) - 1 + len([span for span in watched.spans if "list_page" in span.name]) - 1
    )
    told = "\n".join([*(span.to_json() for span in watched.spans), str(watched.reader.get_metrics_data()), caplog.text])
    assert CANARY not in told


async def test_every_operation_is_one_line_at_debug(service: MemoryService, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="adk_memory")
    await service.add_session("app", "ana", "s1", [MemoryEntry("green tea")])
    await service.search(SearchRequest("tea", "app", "ana"))
    with pytest.raises(ValidationError):
        await service.get("app", "ana", "")

    lines = [record.getMessage() for record in caplog.records if record.name == "adk_memory._observing"]
    assert [line.rsplit(", ", 1)[0] for line in lines] == [
        f"add_session on {service.backend_name}: 1 entries stored",
        f"search on {service.backend_name}: 1 memories returned, hybrid",
        f"get on {service.backend_name}: failed with ValidationError",
    ]
    assert all(line.endswith(" ms") for line in lines)


async def test_a_database_without_tables_is_told(watched: Watched) -> None:
    async with open_memory("sqlite://") as service:
        with pytest.raises(SchemaMissingError):
            await service.health_check()

    assert attributes(watched.spans[0])["error.type"] == "SchemaMissingError"


async def test_a_generator_is_watched_while_it_runs(watched: Watched) -> None:
    class Exporting(MemoryService):
        async def add_session(self, *_: Any, **__: Any) -> list[str]:
            return []

        async def search(self, request: SearchRequest) -> Any: ...

        async def export(self, number: int) -> AsyncIterator[int]:
            for item in range(number):
                yield item

    class Backend(Exporting):
        async def export(self, number: int) -> AsyncIterator[int]:
            async for item in super().export(number):
                yield item

    assert [item async for item in Backend().export(3)] == [0, 1, 2]

    [span] = watched.spans
    assert (span.name, attributes(span)["adk_memory.memories.returned"]) == ("adk_memory.export", 3)
    assert attributes(span)["adk_memory.backend"] == "Backend"


async def test_an_export_that_is_broken_off_has_not_failed(watched: Watched) -> None:
    async with InMemoryMemoryService() as service:
        for _ in range(2):
            await service.add_entry("app", "ana", MemoryEntry("green tea"))
        watched.exporter.clear()
        async with aclosing(service.export_user("app", "ana")) as exported:
            assert (await anext(exported)).text == "green tea"

    span = watched.spans[0]
    assert (span.name, span.status.status_code) == ("adk_memory.export_user", StatusCode.UNSET)
    assert attributes(span)["adk_memory.memories.returned"] == 1
    assert "error.type" not in attributes(span)


def _run(code: str) -> str:
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


USED = """
import asyncio
from adk_memory import MemoryEntry, SearchRequest, open_memory
async def use():
    async with open_memory("sqlite://") as service:
        await service.migrate()
        await service.add_entry("app", "ana", MemoryEntry("green tea"))
        return len(await service.search(SearchRequest("tea", "app", "ana")))
found = asyncio.run(use())
"""


def test_without_opentelemetry_everything_works_and_none_of_it_is_loaded() -> None:
    code = (
        f"import sys; sys.modules['opentelemetry'] = None\n{USED}\nprint(found, 'adk_memory._telemetry' in sys.modules)"
    )

    assert _run(code) == "1 False"


def test_the_providers_of_the_application_are_used() -> None:
    code = f"""
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
{USED}
print([span.name.removeprefix("adk_memory.") for span in exporter.get_finished_spans()])
"""

    assert _run(code) == "['migrate', 'add_entry', 'search', 'close']"


def test_a_watched_operation_looks_as_it_is_written() -> None:
    import inspect

    assert str(inspect.signature(InMemoryMemoryService.get)).startswith("(self, app_name: ")
    assert inspect.iscoroutinefunction(InMemoryMemoryService.search)
    assert InMemoryMemoryService.search.__qualname__ == "InMemoryMemoryService.search"

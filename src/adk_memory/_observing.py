"""Operations as they can be watched: one line at DEBUG for each, and OpenTelemetry where it is installed.

What is told is the operation, the backend, counts, durations, how a search was answered and the type of an error; never
a text, a query or an id.
"""

from __future__ import annotations

import functools
import inspect
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from adk_memory._observation import Observation, counted_by

if TYPE_CHECKING:
    from adk_memory._telemetry import Telemetry

_logger = logging.getLogger(__name__)

_inside: ContextVar[bool] = ContextVar("adk_memory_inside", default=False)
"""Whether an operation is under way: those that it is made of are no operations of the caller's."""


def observe_operations(service: type[Any]) -> None:
    """Have the operations that a class of services defines watched: its public coroutines that the contract names."""
    for name, function in list(vars(service).items()):
        if name.startswith("_") or getattr(function, "__isabstractmethod__", False):
            continue
        named = service.__name__ == "MemoryService" or any(hasattr(base, name) for base in service.__bases__)
        if named and inspect.iscoroutinefunction(function):
            setattr(service, name, _observed(function))
        elif named and inspect.isasyncgenfunction(function):
            setattr(service, name, _observed_generator(function))


def _observed(operation: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(operation)
    async def call(self: Any, *arguments: Any, **options: Any) -> Any:
        telemetry = _telemetry()
        if (telemetry is None and not _logger.isEnabledFor(logging.DEBUG)) or _inside.get():
            return await operation(self, *arguments, **options)
        inside = _inside.set(True)
        try:
            with _watching(telemetry, self, operation.__name__, options) as observation:
                answer = await operation(self, *arguments, **options)
                observation.answer(answer)
        finally:
            _inside.reset(inside)
        return answer

    return call


def _observed_generator(operation: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(operation)
    async def call(self: Any, *arguments: Any, **options: Any) -> AsyncGenerator[Any]:
        # Between two items it is the caller's turn, so the operation is neither "inside" nor the current span.
        with _watching(_telemetry(), self, operation.__name__, options, current=False) as observation:
            observation.count = 0
            async with aclosing(operation(self, *arguments, **options)) as items:
                async for item in items:
                    observation.count += 1
                    yield item

    return call


@contextmanager
def _watching(
    telemetry: Telemetry | None, service: Any, operation: str, options: dict[str, Any], *, current: bool = True
) -> Iterator[Observation]:
    counted = counted_by(operation, dry_run=options.get("dry_run") is True)
    observation = Observation(operation, service.backend_name or type(service).__name__, counted)
    started = time.perf_counter()
    with nullcontext() if telemetry is None else telemetry.watching(observation, current=current):
        try:
            yield observation
        except GeneratorExit:  # the caller has had enough
            raise
        except BaseException as error:
            observation.error = type(error).__name__
            raise
        finally:
            observation.seconds = time.perf_counter() - started
            _logger.debug("%s", observation)


@functools.cache
def _telemetry() -> Telemetry | None:
    """Return what reports to OpenTelemetry, `None` where its API is not installed; looked for once."""
    try:
        from adk_memory._telemetry import Telemetry
    except ImportError:
        return None
    return Telemetry()

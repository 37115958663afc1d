"""Calling what users hand in: a function of theirs, whether it can be awaited or not."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any


def awaitable(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return a function that runs ``function`` off the event loop, or on it if it is one that can be awaited."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return function

    async def in_thread(*arguments: Any) -> Any:
        answer = await asyncio.to_thread(function, *arguments)
        return await answer if inspect.isawaitable(answer) else answer  # a lambda around a coroutine function

    return in_thread

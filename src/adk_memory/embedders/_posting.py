"""A POST that is tried again when it may succeed later. No error holds what was sent, or what was answered."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from adk_memory.errors import ConfigurationError, EmbeddingError

if TYPE_CHECKING:
    import httpx

_LATER: Final = {408, 429, *range(500, 600)}  # statuses of a request that may be answered well when repeated
_LONGEST_WAIT: Final = 60.0
_HINTS: Final = {
    401: "; see api_key",
    403: "; see api_key",
    404: "; base_url usually ends in /v1, and the model has to be there",
}


@dataclass(frozen=True, slots=True)
class Retrying:
    """How often a request is repeated, how many seconds after the first time, and how long each may take."""

    times: int
    seconds: float
    timeout: float

    def __post_init__(self) -> None:
        if self.times < 0 or self.seconds < 0 or not self.timeout > 0:
            raise ConfigurationError("max_retries and retry_seconds must not be negative, and timeout above 0")

    def wait(self, repetition: int, told: float | None) -> float:
        """Return the seconds to wait: what the server told, else twice as long each time; never all at once."""
        if told is not None:
            return told + random.uniform(0, self.seconds)  # noqa: S311 - no secret
        return min(self.seconds * 2.0**repetition, _LONGEST_WAIT) * random.uniform(0.5, 1)  # noqa: S311


async def post(client: httpx.AsyncClient, url: str, body: Mapping[str, Any], name: str, retrying: Retrying) -> Any:
    """Return the JSON of the answer.

    Raises:
        EmbeddingError: there is no good answer, even after the repetitions; it names ``name`` and the reason.
    """
    for repetition in range(retrying.times + 1):
        reason, may_repeat, told = "", True, None
        try:
            async with asyncio.timeout(retrying.timeout):
                response = await client.post(url, json=body, timeout=retrying.timeout)
        except Exception as error:  # noqa: BLE001 - httpx quotes headers in some of them
            reason, may_repeat = type(error).__name__, _is_passing(error)
        else:
            if response.is_success:
                return _json(response, name)
            status = response.status_code
            reason = f"HTTP {status}{_HINTS.get(status, '')}"
            may_repeat = status in _LATER
            told = retry_after(response.headers.get("Retry-After"))
        if not may_repeat or repetition == retrying.times or (told or 0) > _LONGEST_WAIT:
            break
        await asyncio.sleep(retrying.wait(repetition, told))
    raise EmbeddingError(f"{name}: {reason}, tried {'once' if repetition == 0 else f'{repetition + 1} times'}")


def retry_after(header: str | None) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks for, as a number or as a date; `None` if it has neither."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _is_passing(error: Exception) -> bool:
    import httpx

    passing = (TimeoutError, httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)
    return isinstance(error, passing)


def _json(response: httpx.Response, name: str) -> Any:
    try:
        return response.json()
    except ValueError:
        raise EmbeddingError(f"{name}: the answer is not JSON") from None

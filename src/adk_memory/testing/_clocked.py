"""A clock that tests move: what the services under test take for the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from adk_memory import _clock
from adk_memory.testing._base import ContractBase, Memories

HOUR: Final = timedelta(hours=1)
TICK: Final = timedelta(microseconds=1)


class Clock:
    """What the services under test take for the time; it moves when it is told to."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC).replace(microsecond=123_456)

    def pass_by(self, time: timedelta = HOUR) -> None:
        self.now += time

    async def purge_alone(self, memory: Memories) -> None:
        """Go back to a time at which nothing of other tests has expired."""
        self.now = datetime(1990, 1, 2, tzinfo=UTC)
        await memory.service.purge_expired()
        self.now = datetime(1990, 1, 1, tzinfo=UTC)


class ClockedContract(ContractBase):
    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> Clock:
        """Return the clock of all services of the test."""
        if not self.expiry:
            pytest.skip("on this backend nothing expires")
        clock = Clock()
        monkeypatch.setattr(_clock, "now", lambda: clock.now)
        return clock

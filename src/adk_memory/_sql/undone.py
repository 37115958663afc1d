"""What Postgres undoes in favour of another transaction is done again, some times, each after a random while."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final

from sqlalchemy import exc

from adk_memory._sql.dialect import Result

ATTEMPTS: Final = 6
"""The longest waits between them add up to a second."""
_FIRST_WAIT_SECONDS: Final = 0.03
_UNDONE: Final = {"40001", "40P01"}  # serialization failure and deadlock; of others it is not sure that all is undone

_logger = logging.getLogger(__name__)


async def until_kept(
    attempt: Callable[[], Awaitable[Result]], *, first: Callable[[], Awaitable[Result]] | None = None
) -> Result:
    """Await attempts at the same work until one is not undone, or the last of `ATTEMPTS` is; ``first`` is the first."""
    this = first or attempt
    for number in range(1, ATTEMPTS):
        try:
            return await this()
        except exc.DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None)
            if state not in _UNDONE:
                raise
        _logger.info("Postgres undid attempt %d of %d at a transaction (SQLSTATE %s)", number, ATTEMPTS, state)
        # At random, or those that were in each other's way would meet again.
        await asyncio.sleep(random.uniform(0, _FIRST_WAIT_SECONDS * 2 ** (number - 1)))  # noqa: S311
        this = attempt
    return await this()

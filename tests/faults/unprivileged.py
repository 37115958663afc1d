"""A script: reads and writes the database at a URL as a user who may not write its file, and prints what came of it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable

from adk_memory import AdkMemoryError, MemoryEntry, MemoryService, open_memory
from postgres_server import account

APP, USER = "app", "ana"


async def outcome(call: Awaitable[object]) -> str:
    try:
        await call
    except AdkMemoryError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


async def texts(service: MemoryService) -> str:
    return " ".join(memory.text for memory in await service.list_recent(APP, USER))


async def main(url: str) -> None:
    # What is imported late is imported while it can be.
    service = open_memory(url)
    async with open_memory("sqlite://") as rehearsal:
        await outcome(rehearsal.list_recent(APP, USER))
    if runs_as := account():
        os.setgroups([])
        os.setgid(runs_as.pw_gid)
        os.setuid(runs_as.pw_uid)
    async with service:
        read = await outcome(service.list_recent(APP, USER))
        found = {
            "read": read if read != "done" else await texts(service),
            "add_session": await outcome(service.add_session(APP, USER, "s2", [MemoryEntry("second")])),
            "add_entry": await outcome(service.add_entry(APP, USER, MemoryEntry("second"))),
            "delete_user": await outcome(service.delete_user(APP, USER)),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

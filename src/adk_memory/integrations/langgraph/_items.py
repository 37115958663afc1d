"""Items of a LangGraph store in a memory service: a namespace is a user, an item a session of entries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from langgraph.store.base import GetOp, Item, ListNamespacesOp, PutOp, SearchItem, SearchOp

from adk_memory import _clock
from adk_memory._sessions import SessionEntries
from adk_memory._validation import MAX_ID_CHARACTERS, MAX_LIMIT, microseconds
from adk_memory.filters import Author, Filter, Session
from adk_memory.integrations.langgraph._filters import decidable, passes
from adk_memory.integrations.langgraph._indexing import Index
from adk_memory.integrations.langgraph._operations import (
    SEPARATOR,
    Namespace,
    checked,
    common_beginning,
    matches,
    namespace_of,
    user_of,
)
from adk_memory.integrations.langgraph._stored import (
    FIRST,
    FURTHER,
    TICK,
    Stored,
    end_of,
    entries_of,
    id_of,
    read_item,
)
from adk_memory.service import MemoryService
from adk_memory.types import MemoryEntry, SearchRequest

_AT_ONCE: Final = 8

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


class Items:
    """Carries out batches of operations on the items of one app."""

    def __init__(self, service: MemoryService, app_name: str, index: Index, *, refreshes: bool) -> None:
        self._service = service
        self._app_name = app_name
        self._index = index
        self._refreshes = refreshes
        self._last = datetime.min.replace(tzinfo=UTC)
        self._locks: WeakValueDictionary[tuple[Namespace, str], asyncio.Lock] = WeakValueDictionary()

    async def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Return what each operation reads; then write, of several puts of one item the last."""
        operations = [checked(op) for op in ops]
        results = await _each(self._read, operations)
        puts = {(op.namespace, op.key): op for op in operations if isinstance(op, PutOp)}
        await self._write(list(puts.values()))
        return results

    # Reading

    async def _read(self, op: Any) -> Any:
        match op:
            case GetOp():
                return await self._get(op)
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return await self._list(op)
        return None

    async def _get(self, op: GetOp) -> Item | None:
        found = await self._item(op.namespace, op.key)
        if found is None:
            return None
        if op.refresh_ttl:
            await self._refresh(found)
        return found.item()

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        needed = op.offset + op.limit
        namespaces = await self._under(op.namespace_prefix) if op.limit else []
        found = await self._ranked(namespaces, op, needed) if op.query else []
        if len(found) < needed:
            ranked = {stored.place for stored in found}
            newest = await self._newest(namespaces, op, needed)
            found += [stored for stored in newest if stored.place not in ranked]
        found = found[op.offset : needed]
        if op.refresh_ttl:
            await _each(self._refresh, found)
        return [stored.search_item() for stored in found]

    async def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        found = await self._namespaces(user_of(common_beginning(op.match_conditions)))
        found = [namespace for namespace in found if matches(namespace, op.match_conditions)]
        if op.max_depth is not None:
            found = list({namespace[: op.max_depth] for namespace in found})
        return sorted(found)[op.offset : op.offset + op.limit]

    async def _item(self, namespace: Namespace, key: str) -> Stored | None:
        if not namespace:
            return None
        memory = await self._service.get(self._app_name, user_of(namespace), id_of(key))
        return None if memory is None else read_item(namespace, memory)

    async def _under(self, prefix: Namespace) -> list[Namespace]:
        """Return the namespaces that begin with a prefix, which is one of them, whether it has items or not."""
        if not prefix:
            return await self._namespaces("")
        beginning = user_of(prefix) + SEPARATOR
        return [prefix, *(await self._namespaces(beginning) if len(beginning) < MAX_ID_CHARACTERS else ())]

    async def _namespaces(self, beginning: str) -> list[Namespace]:
        found: list[str] = []
        while True:
            after = found[-1] if found else None
            more = await self._service.list_users(self._app_name, prefix=beginning, after=after, limit=MAX_LIMIT)
            found += more
            if len(more) < MAX_LIMIT:
                return [namespace_of(user_id) for user_id in found]

    async def _ranked(self, namespaces: Sequence[Namespace], op: SearchOp, needed: int) -> list[Stored]:
        """Return the items that answer the query, best first: of one namespace, the best of 1,000 entries."""
        found = chain(*await _each(lambda namespace: self._ranked_in(namespace, op, needed), namespaces))
        return sorted(found, key=lambda stored: (-(stored.score or 0.0), -microseconds(stored.updated_at)))

    async def _ranked_in(self, namespace: Namespace, op: SearchOp, needed: int) -> list[Stored]:
        limit = min(needed, MAX_LIMIT)
        while True:
            request = SearchRequest(
                op.query or "",
                self._app_name,
                user_of(namespace),
                limit=limit,
                mode=None if self._index.provider is None else "vector",
                filter=decidable(op.filter or {}, "value"),
            )
            response = await self._service.search(request)
            found: dict[str, Stored] = {}
            for memory in response:
                if memory.author in (FIRST, FURTHER):
                    stored = read_item(namespace, memory, self._index.score(memory.score))
                    found.setdefault(stored.key, stored)  # the best of its entries comes first
            answers = [stored for stored in found.values() if passes(stored.value, op.filter or {})]
            if len(answers) >= needed or len(response) < limit or limit == MAX_LIMIT:
                return answers[:needed]
            limit = min(4 * limit, MAX_LIMIT)

    async def _newest(self, namespaces: Sequence[Namespace], op: SearchOp, needed: int) -> list[Stored]:
        found = chain(*await _each(lambda namespace: self._newest_in(namespace, op, needed), namespaces))
        return sorted(found, key=lambda stored: stored.updated_at, reverse=True)[:needed]

    async def _newest_in(self, namespace: Namespace, op: SearchOp, needed: int) -> list[Stored]:
        passing: Filter = Author(FIRST)
        if (decided := decidable(op.filter or {}, "value")) is not None:
            passing &= decided
        found: list[Stored] = []
        after: str | None = None
        while True:
            page = await self._service.list_page(
                self._app_name, user_of(namespace), filter=passing, limit=min(needed, MAX_LIMIT), after=after
            )
            found += [
                stored for memory in page if passes((stored := read_item(namespace, memory)).value, op.filter or {})
            ]
            after = page.next
            if len(found) >= needed or after is None:
                return found[:needed]

    # Writing

    async def _write(self, puts: Sequence[PutOp]) -> None:
        rows = [[] if op.value is None else self._index.rows(op.value, op.index) for op in puts]
        times = [self._now() for _ in puts]
        async with AsyncExitStack() as held:
            if self._index.provider is not None:
                await held.enter_async_context(self._index.provider.ready(chain(*chain(*rows))))
            # Whoever writes several takes their locks in one order: nobody waits for each other.
            for place in sorted((op.namespace, op.key) for op in puts):
                await held.enter_async_context(self._lock(place))
            await self._put(zip(puts, rows, times, strict=True))
            await _each(lambda op: self._delete(op.namespace, op.key), [op for op in puts if op.value is None])

    async def _put(self, puts: Iterable[tuple[PutOp, list[list[str]], datetime]]) -> None:
        puts = [put for put in puts if put[0].value is not None]
        before = await _each(lambda put: self._item(put[0].namespace, put[0].key), puts)
        together: list[SessionEntries] = []
        alone: list[SessionEntries] = []
        for (op, rows, now), replaced in zip(puts, before, strict=True):
            entries = entries_of(op, rows, replaced, now)
            item = SessionEntries(self._app_name, user_of(op.namespace), id_of(op.key), entries)
            # What is one entry before and after is only rewritten, as part of one transaction.
            (together if len(rows) == 1 and (replaced is None or replaced.rows == 1) else alone).append(item)
        await self._service.add_many(together)
        await _each(self._replace, alone)

    async def _replace(self, item: SessionEntries) -> None:
        await self._service.add_session(
            item.app_name, item.user_id, str(item.session_id), item.entries, existing="replace"
        )

    async def _delete(self, namespace: Namespace, key: str) -> None:
        await self._service.delete_session(self._app_name, user_of(namespace), id_of(key))

    async def _refresh(self, stored: Stored) -> None:
        """Have an item with a ttl live on from now, unless it has been replaced meanwhile."""
        if stored.ttl is None or not self._refreshes:
            return
        user_id, item_id = user_of(stored.namespace), id_of(stored.key)
        async with self._lock(stored.place):
            rows = await self._service.list_recent(self._app_name, user_id, MAX_LIMIT, filter=Session(item_id))
            if not rows or rows[0].timestamp != stored.updated_at:
                return
            end = end_of(_clock.now(), stored.ttl)
            entries = [
                MemoryEntry(row.content, row.author, row.timestamp, row.id, row.metadata, expires_at=end)
                for row in rows
            ]
            await self._service.add_session(self._app_name, user_id, item_id, entries)

    def _now(self) -> datetime:
        """Return the time, which goes on from one item to the next: they are listed by it."""
        self._last = max(_clock.now(), self._last + TICK)
        return self._last

    def _lock(self, place: tuple[Namespace, str]) -> asyncio.Lock:
        return self._locks.setdefault(place, asyncio.Lock())


async def _each(function: Callable[[_Given], Awaitable[_Made]], given: Iterable[_Given]) -> list[_Made]:
    """Return what the function makes of each, several at a time; where one fails, the others come to their end."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(each: _Given) -> _Made:
        async with gate:
            return await function(each)

    made = await asyncio.gather(*map(one, given), return_exceptions=True)
    for result in made:
        if isinstance(result, BaseException):
            raise result
    return made  # type: ignore[return-value]

"""Items of a LangGraph store in a memory service: a namespace is a user, an item a session of entries.

Each entry of an item holds all of it, in its metadata, and one of its texts, by which it is found; so a search needs no
second look. An item is written by replacing its session, all of it or nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from langgraph.store.base import GetOp, Item, ListNamespacesOp, PutOp, SearchItem, SearchOp

from adk_memory._content import Content
from adk_memory._validation import MAX_ID_CHARACTERS, MAX_LIMIT, microseconds
from adk_memory.filters import Author, Filter, Metadata, Session
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
from adk_memory.service import MemoryService
from adk_memory.types import Memory, MemoryEntry, SearchRequest

_FIRST: Final = ""
"""The author of the first entry of an item. It holds no word that a query could name."""
_FURTHER: Final = "+"
_AT_ONCE: Final = 8
_EXPIRY: Final = "expires_at"

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class _Stored:
    """An item as it is read back; ``ttl`` is in minutes, ``expires_at`` in microseconds since 1970."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    ttl: float | None
    expires_at: int | None
    score: float | None

    @property
    def place(self) -> tuple[Namespace, str]:
        return self.namespace, self.key

    @property
    def expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= microseconds(datetime.now(UTC))

    def item(self) -> Item:
        return Item(
            namespace=self.namespace,
            key=self.key,
            value=self.value,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )

    def search_item(self) -> SearchItem:
        return SearchItem(self.namespace, self.key, self.value, self.created_at, self.updated_at, self.score)


class Items:
    """Carries out batches of operations on the items of one app."""

    def __init__(self, service: MemoryService, app_name: str, index: Index, *, refreshes: bool, expires: bool) -> None:
        self._service = service
        self._app_name = app_name
        self._index = index
        self._refreshes = refreshes
        self._expires = expires
        self._last = datetime.min.replace(tzinfo=UTC)
        self._locks: WeakValueDictionary[tuple[Namespace, str], asyncio.Lock] = WeakValueDictionary()

    async def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Return what each operation reads; then write, of several puts of one item the last.

        Each item is written by itself, so where one fails the others are there.
        """
        operations = [checked(op) for op in ops]
        results = await _each(self._read, operations)
        puts = {(op.namespace, op.key): op for op in operations if isinstance(op, PutOp)}
        await self._write(list(puts.values()))
        return results

    async def sweep(self) -> int:
        """Erase the items that have expired; return how many."""
        swept = 0
        for namespace in await self._namespaces(""):
            expired = Author(_FIRST) & Metadata(_EXPIRY, "lte", microseconds(datetime.now(UTC)))
            while rows := await self._service.list_recent(
                self._app_name, user_of(namespace), MAX_LIMIT, filter=expired
            ):
                swept += sum([await self._sweep(_stored(namespace, row)) for row in rows])
        return swept

    async def _sweep(self, stored: _Stored) -> bool:
        async with self._lock(stored.place):
            found = await self._stored(*stored.place)
            if found is None or found.expired:
                await self._delete(stored.namespace, stored.key)
            return found is not None and found.expired

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
        found = await self._stored(op.namespace, op.key)
        if found is None or found.expired:
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
        if self._expires:
            anything = SearchOp((), filter={})
            items = await _each(lambda namespace: self._newest_in(namespace, anything, 1), found)
            found = [namespace for namespace, live in zip(found, items, strict=True) if live]
        if op.max_depth is not None:
            found = list({namespace[: op.max_depth] for namespace in found})
        return sorted(found)[op.offset : op.offset + op.limit]

    async def _stored(self, namespace: Namespace, key: str) -> _Stored | None:
        if not namespace:
            return None
        memory = await self._service.get(self._app_name, user_of(namespace), _id(key))
        return None if memory is None else _stored(namespace, memory)

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

    async def _ranked(self, namespaces: Sequence[Namespace], op: SearchOp, needed: int) -> list[_Stored]:
        """Return the items that answer the query, best first: of one namespace, the best of 1,000 entries."""
        found = chain(*await _each(lambda namespace: self._ranked_in(namespace, op, needed), namespaces))
        return sorted(found, key=lambda stored: (-(stored.score or 0.0), -microseconds(stored.updated_at)))

    async def _ranked_in(self, namespace: Namespace, op: SearchOp, needed: int) -> list[_Stored]:
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
            found: dict[str, _Stored] = {}
            for memory in response:
                if memory.author in (_FIRST, _FURTHER):
                    stored = _stored(namespace, memory, self._index.score(memory.score))
                    found.setdefault(stored.key, stored)  # the best of its entries comes first
            answers = [stored for stored in found.values() if _passes(stored, op)]
            if len(answers) >= needed or len(response) < limit or limit == MAX_LIMIT:
                return answers[:needed]
            limit = min(4 * limit, MAX_LIMIT)

    async def _newest(self, namespaces: Sequence[Namespace], op: SearchOp, needed: int) -> list[_Stored]:
        found = chain(*await _each(lambda namespace: self._newest_in(namespace, op, needed), namespaces))
        return sorted(found, key=lambda stored: stored.updated_at, reverse=True)[:needed]

    async def _newest_in(self, namespace: Namespace, op: SearchOp, needed: int) -> list[_Stored]:
        passing: Filter = Author(_FIRST)
        if (decided := decidable(op.filter or {}, "value")) is not None:
            passing &= decided
        found: list[_Stored] = []
        after: str | None = None
        while True:
            page = await self._service.list_page(
                self._app_name, user_of(namespace), filter=passing, limit=min(needed, MAX_LIMIT), after=after
            )
            found += [stored for memory in page if _passes(stored := _stored(namespace, memory), op)]
            after = page.next
            if len(found) >= needed or after is None:
                return found[:needed]

    # Writing

    async def _write(self, puts: Sequence[PutOp]) -> None:
        rows = [[] if op.value is None else self._index.rows(op.value, op.index) for op in puts]

        async def write(number: int) -> None:
            async with self._lock((puts[number].namespace, puts[number].key)):
                await self._put(puts[number], rows[number])

        if self._index.provider is None:
            await _each(write, range(len(puts)))
            return
        async with self._index.provider.ready(chain.from_iterable(chain.from_iterable(rows))):
            await _each(write, range(len(puts)))

    async def _put(self, op: PutOp, rows: Sequence[list[str]]) -> None:
        if op.value is None:
            await self._delete(op.namespace, op.key)
            return
        before = await self._stored(op.namespace, op.key)
        now = self._now()
        created_at = now if before is None or before.expired else before.created_at
        metadata: dict[str, Any] = {"key": op.key, "value": op.value, "created_at": created_at.isoformat()}
        if op.ttl is not None:
            metadata |= {"ttl": op.ttl, _EXPIRY: _end(now, op.ttl)}
        entries = [
            MemoryEntry(
                Content(None, texts),
                author=_FURTHER if number else _FIRST,
                timestamp=now,
                id=str(number) if number else _id(op.key),
                metadata=metadata,
            )
            for number, texts in enumerate(rows)
        ]
        await self._service.add_session(self._app_name, user_of(op.namespace), _id(op.key), entries, existing="replace")

    async def _delete(self, namespace: Namespace, key: str) -> None:
        await self._service.delete_session(self._app_name, user_of(namespace), _id(key))

    async def _refresh(self, stored: _Stored) -> None:
        """Have an item with a ttl live on from now, unless it has been replaced meanwhile."""
        if stored.ttl is None or not self._refreshes:
            return
        user_id, item_id = user_of(stored.namespace), _id(stored.key)
        async with self._lock(stored.place):
            rows = await self._service.list_recent(self._app_name, user_id, MAX_LIMIT, filter=Session(item_id))
            if not rows or rows[0].timestamp != stored.updated_at:
                return
            end = {_EXPIRY: _end(datetime.now(UTC), stored.ttl)}
            entries = [
                MemoryEntry(row.content, row.author, row.timestamp, row.id, metadata={**row.metadata, **end})
                for row in rows
            ]
            await self._service.add_session(self._app_name, user_id, item_id, entries)

    def _now(self) -> datetime:
        """Return the time, which goes on from one item to the next: they are listed by it."""
        self._last = max(datetime.now(UTC), self._last + timedelta(microseconds=1))
        return self._last

    def _lock(self, place: tuple[Namespace, str]) -> asyncio.Lock:
        return self._locks.setdefault(place, asyncio.Lock())


def _id(key: str) -> str:
    """Return the id of the session, and of the first entry, of an item: no other entry's, and never too long."""
    if len(key) < MAX_ID_CHARACTERS:
        return f"={key}"
    return f"#{hashlib.sha256(key.encode()).hexdigest()}"


def _stored(namespace: Namespace, memory: Memory, score: float | None = None) -> _Stored:
    metadata = memory.metadata
    return _Stored(
        namespace=namespace,
        key=metadata["key"],
        value=metadata["value"],
        created_at=datetime.fromisoformat(metadata["created_at"]),
        updated_at=memory.timestamp,
        ttl=metadata.get("ttl"),
        expires_at=metadata.get(_EXPIRY),
        score=score,
    )


def _passes(stored: _Stored, op: SearchOp) -> bool:
    return not stored.expired and passes(stored.value, op.filter or {})


def _end(start: datetime, minutes: float) -> int:
    return microseconds(start) + round(minutes * 60_000_000)


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

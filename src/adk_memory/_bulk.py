"""Many items, as they come, in batches: how `MemoryService.add_many` takes them, whatever stores them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Sequence
from typing import Final

from adk_memory._sessions import SessionEntries
from adk_memory.embedding import Embedder, check_vectors
from adk_memory.errors import EmbeddingMismatchError, ValidationError

BATCH_ENTRIES: Final = 1_000
"""A batch is full with the item that brings it to so many entries."""


Items = Iterable[SessionEntries] | AsyncIterable[SessionEntries]


async def batches(items: Items, embedder: Embedder | None) -> AsyncGenerator[Sequence[SessionEntries]]:
    """Yield the items in batches, none of which holds a session, or the id of a single entry, in two items.

    So nothing in a batch depends on what another item of it does. Where an item is bad, or the source fails, what came
    before is yielded first.

    Raises:
        ValidationError: an item is bad, or was refused by its own constructor in the source.
        EmbeddingMismatchError: a vector in it is not of the length that the embedder declares.
    """
    batch: list[SessionEntries] = []
    names: set[tuple[str | None, ...]] = set()
    number = entries = in_batch = 0
    failure: Exception | None = None
    try:
        async for item in _each(items, embedder):
            of_item = _names(item)
            if in_batch >= BATCH_ENTRIES or not names.isdisjoint(of_item):
                yield batch
                batch, names, in_batch = [], set(), 0
            if item.entries:
                batch.append(item)
                names |= of_item
            in_batch += len(item.entries)
            entries += len(item.entries)
            number += 1
    except (ValidationError, EmbeddingMismatchError) as error:
        failure = type(error)(f"items[{number}]: {error}; what came before it, {entries} entries, is stored")
        failure.__cause__ = error
    except Exception as error:  # noqa: BLE001 - raised below
        failure = error
    if batch:
        yield batch
    if failure is not None:
        raise failure


async def _each(items: Items, embedder: Embedder | None) -> AsyncGenerator[SessionEntries]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield _checked(item, embedder)
    else:
        for item in items:
            yield _checked(item, embedder)


def _checked(item: object, embedder: Embedder | None) -> SessionEntries:
    if not isinstance(item, SessionEntries):
        raise ValidationError(f"must be SessionEntries, got {type(item).__name__}")
    check_vectors(embedder, item.entries)
    return item


def _names(item: SessionEntries) -> set[tuple[str | None, ...]]:
    """Return what an item writes to: its session, or the single entries that have an id."""
    owner = (item.app_name, item.user_id, item.project_id, item.session_id)
    if item.session_id is not None:
        return {owner}
    return {(*owner, entry.id) for entry in item.entries if entry.id is not None}

"""Errors: one tree, and no memory text, query or user in any message."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from adk_memory import AdkMemoryError, EmbeddingError, MemoryEntry, SearchRequest
from adk_memory.testing._base import ContractBase, Memories
from adk_memory.testing._embedder import ToyEmbedder

PRIVATE: Final = "zxprivate"
BAD_ID: Final = PRIVATE * 40

Call = Callable[[Memories], Awaitable[object]]


async def _entry(**fields: Any) -> MemoryEntry:
    return MemoryEntry(**fields)


async def _request(**fields: Any) -> SearchRequest:
    return SearchRequest(**{"query": PRIVATE, "app_name": "app", "user_id": PRIVATE} | fields)


def _session(entries: Any, user: str = PRIVATE, **options: Any) -> Call:
    return lambda m: m.service.add_session(m.app_name, user, "s1", entries, **options)


FAILING: Final[dict[str, Call]] = {
    "user that is too long": _session([MemoryEntry(PRIVATE)], BAD_ID),
    "user with a NUL": _session([MemoryEntry(PRIVATE)], PRIVATE + "\0"),
    "user with a surrogate": _session([MemoryEntry(PRIVATE)], PRIVATE + "\ud800"),
    "session that is too long": lambda m: m.service.add_session(m.app_name, PRIVATE, BAD_ID, []),
    "app that is too long": lambda m: m.service.add_session(BAD_ID, PRIVATE, "s1", []),
    "project that is too long": _session([MemoryEntry(PRIVATE)], project_id=BAD_ID),
    "entries that are a text": _session(PRIVATE),
    "an entry that is a text": _session([MemoryEntry(PRIVATE), PRIVATE]),
    "an entry that is a mapping": _session([{"content": PRIVATE, "user_id": PRIVATE}]),
    "an unknown way with existing entries": _session([MemoryEntry(PRIVATE)], existing=PRIVATE),
    "NaN in content": lambda _: _entry(content={"parts": [PRIVATE, {"n": float("nan")}]}),
    "bytes in content": lambda _: _entry(content={"parts": [{"data": PRIVATE.encode()}]}),
    "content of no kind": lambda _: _entry(content=PRIVATE.encode()),
    "a part of no kind": lambda _: _entry(content={"parts": [PRIVATE, PRIVATE.encode()]}),
    "parts that are a text": lambda _: _entry(content={"parts": PRIVATE}),
    "a role of no kind": lambda _: _entry(content={"role": [PRIVATE], "parts": []}),
    "an author of no kind": lambda _: _entry(content=PRIVATE, author=[PRIVATE]),
    "a time of no kind": lambda _: _entry(content=PRIVATE, timestamp=PRIVATE),
    "metadata of no kind": lambda _: _entry(content=PRIVATE, metadata=[PRIVATE]),
    "an id that is too long": lambda _: _entry(content=PRIVATE, id=BAD_ID),
    "a query of no kind": lambda _: _request(query=[PRIVATE]),
    "a limit of no kind": lambda _: _request(limit=PRIVATE),
    "a negative limit": lambda _: _request(limit=-1),
    "a threshold of no kind": lambda _: _request(min_score=PRIVATE),
    "an unknown mode": lambda _: _request(mode=PRIVATE),
    "a user of a request that is too long": lambda _: _request(user_id=BAD_ID),
    "a search by similarity without an embedder": lambda m: m.user(PRIVATE).search(PRIVATE, mode="vector"),
}


class ErrorsContract(ContractBase):
    @pytest.mark.parametrize("name", sorted(FAILING))
    async def test_an_error_tells_no_text_query_or_user(self, memory: Memories, name: str) -> None:
        with pytest.raises(AdkMemoryError) as caught:
            await FAILING[name](memory)

        assert PRIVATE not in f"{caught.value} {caught.value!r}".casefold()

    @pytest.mark.parametrize("operation", ["add", "search"])
    async def test_an_error_of_the_embedder_is_kept_and_not_printed(
        self, embedded: Memories, embedder: ToyEmbedder, operation: str
    ) -> None:
        failure = OSError(f"can't embed {PRIVATE}")
        embedder.answers[PRIVATE] = failure

        with pytest.raises(EmbeddingError) as caught:
            await (embedded.add(PRIVATE) if operation == "add" else embedded.search(PRIVATE, mode="vector"))

        assert caught.value.__context__ is failure
        assert PRIVATE not in "".join(traceback.format_exception(caught.value))

    async def test_nothing_that_is_logged_tells_a_text_query_or_user(
        self, embedded: Memories, embedder: ToyEmbedder, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("DEBUG", logger="adk_memory")
        mine = embedded.user(PRIVATE)
        await mine.add(PRIVATE)
        embedder.answers[PRIVATE] = OSError(PRIVATE)

        await mine.found(PRIVATE)

        logged = [record.getMessage() for record in caplog.records if record.name.startswith("adk_memory")]
        assert not any(PRIVATE in message for message in logged)

    async def test_the_embedder_that_fails_in_a_search_is_logged(
        self, embedded: Memories, embedder: ToyEmbedder, caplog: pytest.LogCaptureFixture
    ) -> None:
        embedder.answers["tea"] = OSError("down")

        await embedded.search("tea")

        assert any("OSError" in record.getMessage() for record in caplog.records)

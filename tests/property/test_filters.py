"""Every backend lets through what the filter itself lets through, whatever is stored and asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from adk_memory import Author, Filter, MemoryEntry, MemoryService, Metadata, SearchRequest, Session, Time
from conftest import migrate
from postgres_server import PostgresServer
from property.machines import Backends, backends

QUICK = settings(max_examples=60, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
HEAVY = settings(max_examples=200, deadline=None, database=None, print_blob=True)

KEYS: Final = [
    "n", "n", "n", "", " ", "a.b", '"', "'", "\\", '\\"', "$", "$.n", "$[0]", "[0]", "0", "#-1", "%", "_", "%s", ":n",
    "?", "{", "}", "é", "e\u0301", "緑茶", "🍕", "\u0001", "\n", "null", "true", "' OR 1=1 --", "\0", '":"',
    "n\":", "->>",
]  # fmt: skip
NUMBERS: Final = [
    0, 1, -1, 2, 0.0, -0.0, 1.0, 0.1, 0.3, 0.1 + 0.2, 1e308, -1e308, 5e-324, 2.2250738585072014e-308, 1e16, 1e22,
    1e23, 10**16, 10**22, 10**23, 2**53, 2**53 + 1, 2.0**53, 2**63 - 1, 2**63, 2**63 + 1, -(2**63), -(2**63) - 1,
    2.0**63, 2**64, 10**400, -(10**400), 10**4000, 1.7976931348623157e308, int(1.7976931348623157e308),
    9007199254740993, 0.30000000000000004, 123456789.12345679, 1.5, 17976931348623157 * 10**292 + 1,
]  # fmt: skip
STRINGS: Final = [
    "", "1", "1.0", "01", "1e0", "true", "null", "a", "A", "b", "é", "e\u0301", "z", "緑", "🍕", "\uffff", "'", '"',
    "\\", "%", "_", "a%", "{}", "[1]", "NaN", "Infinity", "\0", "\ud800", "$1", ":x",
]  # fmt: skip

keys = st.one_of(st.sampled_from(KEYS), st.text(max_size=4))
numbers = st.one_of(st.sampled_from(NUMBERS), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
strings = st.one_of(st.sampled_from(STRINGS), st.text(max_size=4))
scalars = st.one_of(numbers, numbers, strings, st.booleans(), st.none())
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)),
    max_leaves=6,
)
AUTHORS: Final = ["ana", "Ana", "", "a%", "'", "\0", "🍕"]
SESSIONS: Final = ["s1", "s2", "' OR '1'='1", "$1"]
INSTANTS: Final = [
    datetime.min.replace(tzinfo=UTC), datetime(1969, 7, 20, tzinfo=UTC), datetime(2024, 5, 1, 12, 0, 0, 0, UTC),
    datetime(2024, 5, 1, 12, 0, 0, 1, UTC), datetime(2024, 5, 1, 12, 0, 0, 2, UTC), datetime.max.replace(tzinfo=UTC),
]  # fmt: skip


@st.composite
def memories(draw: st.DrawFn) -> tuple[str | None, MemoryEntry]:
    metadata = draw(st.dictionaries(st.sampled_from(KEYS), values, max_size=4))
    author, instant = draw(st.sampled_from(AUTHORS)), draw(st.sampled_from(INSTANTS))
    return draw(st.sampled_from([None, *SESSIONS])), MemoryEntry("tea", author, instant, metadata=metadata)


conditions = st.one_of(
    st.builds(Metadata, keys, st.sampled_from(["eq", "ne"]), scalars),
    st.builds(Metadata, keys, st.sampled_from(["gt", "gte", "lt", "lte"]), st.one_of(numbers, strings)),
    st.builds(Metadata, st.lists(keys, min_size=1, max_size=3), st.sampled_from(["eq", "ne"]), scalars),
    st.builds(Metadata, keys, st.just("in"), st.lists(scalars, max_size=4)),
    st.builds(Metadata, st.lists(keys, min_size=1, max_size=3), st.just("exists"), st.booleans()),
    st.builds(Author, st.sampled_from(AUTHORS), st.sampled_from(AUTHORS)),
    st.builds(Session, st.sampled_from([None, *SESSIONS])),
    st.builds(Time, since=st.sampled_from(INSTANTS)),
    st.builds(Time, since=st.sampled_from([None, *INSTANTS]), before=st.sampled_from(INSTANTS)),
)
filters = st.recursive(
    conditions,
    lambda inner: st.one_of(
        st.builds(Filter.__and__, inner, inner),
        st.builds(Filter.__or__, inner, inner),
        st.builds(Filter.__invert__, inner),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def side_by_side(
    postgres_server: PostgresServer, postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Backends]:
    sqlite_url = f"sqlite:///{tmp_path_factory.mktemp('filters') / 'memory.db'}"
    migrate(sqlite_url)
    with (
        postgres_server.database(postgres_template) as postgres_url,
        backends(["memory://", sqlite_url, postgres_url], lambda: None) as opened,
    ):
        yield opened


def _check(side_by_side: Backends, stored: Sequence[tuple[str | None, MemoryEntry]], asked: Sequence[Filter]) -> None:
    app = side_by_side.new_app()

    async def answers(service: MemoryService) -> list[object]:
        for number, (session, entry) in enumerate(stored):
            named = entry.model_copy(update={"id": str(number)})
            if session is None:
                await service.add_entry(app, "ana", named)
            else:
                await service.add_session(app, "ana", session, [named])
        everything = await service.list_recent(app, "ana", 1_000)
        found: list[object] = []
        for one in asked:
            listed = await service.list_recent(app, "ana", 1_000, filter=one)
            searched = await service.search(SearchRequest("tea", app, "ana", limit=1_000, filter=one))
            page = await service.list_page(app, "ana", filter=one, limit=1, with_total=True)
            expected = [memory.id for memory in everything if one.passes(memory)]
            assert [memory.id for memory in listed] == expected, (type(service).__name__, one, listed)
            assert {memory.id for memory in searched} == set(expected), (type(service).__name__, one)
            assert ([memory.id for memory in page], page.total) == (expected[:1], len(expected))
            found.append(expected)
        return found

    oracle, *others = side_by_side.ask(answers)
    assert others == [oracle] * len(others)


lists_of_memories = st.lists(memories(), min_size=3, max_size=10)
lists_of_filters = st.lists(filters, min_size=1, max_size=6)


@given(stored=lists_of_memories, asked=lists_of_filters)
@settings(QUICK)
def test_backends_let_through_what_the_filter_does(
    side_by_side: Backends, stored: list[tuple[str | None, MemoryEntry]], asked: list[Filter]
) -> None:
    _check(side_by_side, stored, asked)


@pytest.mark.heavy
@given(stored=lists_of_memories, asked=lists_of_filters)
@settings(HEAVY)
def test_backends_let_through_what_the_filter_does_at_length(
    side_by_side: Backends, stored: list[tuple[str | None, MemoryEntry]], asked: list[Filter]
) -> None:
    _check(side_by_side, stored, asked)


@pytest.mark.parametrize("operator", ["eq", "ne", "gt", "gte", "lt", "lte", "in"])
def test_backends_compare_every_number_with_every_other_one_alike(side_by_side: Backends, operator: Any) -> None:
    stored: list[Any] = [*NUMBERS, True, False, None, "1", [1], {"n": 1}]
    entries = [(None, MemoryEntry("tea", timestamp=float(n), metadata={"n": held})) for n, held in enumerate(stored)]
    asked: list[Filter] = [Metadata("n", operator, [n, n] if operator == "in" else n) for n in NUMBERS]

    _check(side_by_side, entries, asked)


@pytest.mark.parametrize("operator", ["eq", "gt", "gte", "lt", "lte"])
def test_backends_compare_every_string_with_every_other_one_alike(side_by_side: Backends, operator: Any) -> None:
    stored: list[Any] = [*STRINGS, 1, True, None]
    entries = [(None, MemoryEntry("tea", timestamp=float(n), metadata={"s": held})) for n, held in enumerate(stored)]

    _check(side_by_side, entries, [Metadata("s", operator, string) for string in STRINGS])

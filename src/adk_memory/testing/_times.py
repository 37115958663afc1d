"""Time: aware UTC in and out, microseconds kept; order is by instant, then by arrival."""

# ruff: noqa: DTZ001 - naive times are part of the contract

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Final

import pytest

from adk_memory import MemoryEntry, ValidationError
from adk_memory.testing._base import ContractBase, Memories, texts

INDIA: Final = timezone(timedelta(hours=5, minutes=30))
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
INSTANTS: Final = [
    pytest.param(datetime(2024, 5, 1, 12), datetime(2024, 5, 1, 12, tzinfo=UTC), id="naive is UTC"),
    pytest.param(datetime(2024, 5, 1, 12, tzinfo=INDIA), datetime(2024, 5, 1, 6, 30, tzinfo=UTC), id="+05:30"),
    pytest.param("2024-05-01T12:00:00-07:00", datetime(2024, 5, 1, 19, tzinfo=UTC), id="ISO 8601"),
    pytest.param(datetime(2024, 5, 1, 0, 0, 0, 1), datetime(2024, 5, 1, 0, 0, 0, 1, tzinfo=UTC), id="1 microsecond"),
    pytest.param(datetime(1969, 12, 31, 23, 59, 59, 999999), None, id="before 1970"),
    pytest.param(FIRST, None, id="year 1"),
    pytest.param(LAST, None, id="year 9999"),
    pytest.param(datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=INDIA), None, id="last of +05:30"),
    pytest.param(datetime(2024, 3, 31, 2, 30), None, id="summer time gap"),
]
DAYS: Final = [
    datetime(1, 1, 1),
    datetime(1, 1, 1, 0, 0, 0, 1),
    datetime(1969, 7, 20),
    datetime(1970, 1, 1),
    datetime(2024, 1, 1),
    datetime(2024, 1, 1, 0, 0, 0, 1),
    datetime(2024, 1, 1, 5, 45, tzinfo=INDIA),
    datetime(2024, 1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999998),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
]
ARRIVALS: Final = [
    pytest.param(DAYS, id="oldest first"),
    pytest.param(DAYS[::-1], id="newest first"),
    pytest.param(DAYS[1::2] + DAYS[::2], id="mixed"),
]


class TimesContract(ContractBase):
    @pytest.mark.parametrize(("given", "instant"), INSTANTS)
    async def test_a_timestamp_is_the_same_instant_in_utc(
        self, memory: Memories, given: datetime, instant: datetime | None
    ) -> None:
        entry = MemoryEntry("green tea", timestamp=given)
        await memory.add(entry)

        [found] = await memory.search("tea")
        assert found.timestamp == (instant or entry.timestamp)
        assert found.timestamp.utcoffset() == timedelta(0)

    async def test_a_timestamp_is_now_where_none_is_given(self, memory: Memories) -> None:
        before = datetime.now(UTC)

        await memory.add("green tea")

        [found] = await memory.search("tea")
        assert before <= found.timestamp <= datetime.now(UTC)

    @pytest.mark.parametrize(
        "given",
        [
            datetime.min.replace(tzinfo=INDIA),
            datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))),
            float("nan"),
            "yesterday",
        ],
        ids=["before year 1 in UTC", "after year 9999 in UTC", "NaN", "no date"],
    )
    async def test_what_names_no_instant_of_the_years_1_to_9999_is_refused(self, given: object) -> None:
        with pytest.raises(ValidationError, match="timestamp"):
            MemoryEntry("green tea", timestamp=given)

    @pytest.mark.parametrize("days", ARRIVALS)
    async def test_a_list_is_ordered_by_instant(self, memory: Memories, days: list[datetime]) -> None:
        await memory.add(*(MemoryEntry("tea", timestamp=day) for day in days))

        listed = [found.timestamp for found in await memory.recent()]

        assert listed == sorted(listed, reverse=True)
        assert len(listed) == len(DAYS)

    @pytest.mark.parametrize("days", ARRIVALS)
    async def test_equal_matches_are_ordered_by_instant(self, memory: Memories, days: list[datetime]) -> None:
        await _add_apart(memory, *(MemoryEntry("tea", timestamp=day) for day in days))

        found = [found.timestamp for found in await memory.search("tea")]

        assert found == sorted(found, reverse=True)
        assert len(found) == len(DAYS)

    async def test_a_list_of_one_instant_has_the_last_to_arrive_first(self, memory: Memories) -> None:
        await _add_apart(memory, _noon("first tea"), _noon("second tea"), _noon("third tea"))

        assert texts(await memory.recent()) == ["third tea", "second tea", "first tea"]

    async def test_equal_matches_of_one_instant_have_the_first_to_arrive_first(self, memory: Memories) -> None:
        await _add_apart(memory, _noon("tea one"), _noon("tea two"), _noon("tea six"))

        assert await memory.found("tea") == ["tea one", "tea two", "tea six"]

    async def test_an_entry_that_is_rewritten_does_not_arrive_anew(self, memory: Memories) -> None:
        await _add_apart(memory, _noon("tea one"), _noon("tea two"))

        await _add_apart(memory, _noon("tea six"))

        assert await memory.found("tea") == ["tea six", "tea two"]


def _noon(text: str) -> MemoryEntry:
    return MemoryEntry(text, timestamp=datetime(2024, 5, 1, 12), id="mine")


async def _add_apart(memory: Memories, *entries: MemoryEntry) -> None:
    """Add each entry to a session of its own: inside of one, they could lend each other score."""
    for number, entry in enumerate(entries):
        await memory.add(entry, session=f"s{number}")

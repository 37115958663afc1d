"""Anything at all for every argument of every operation: what a caller may hand in by mistake or on purpose."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from adk_memory import (
    ALL_PROJECTS,
    Author,
    MemoryEntry,
    MemoryService,
    Metadata,
    SearchRequest,
    Session,
    SessionEntries,
    Time,
)

Make = Callable[[MemoryService, str], Awaitable[Any]]
"""Makes a call on a service, for an app that is empty."""


class Text(str):
    """A string that lies about itself."""

    __slots__ = ()

    def __eq__(self, _other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __len__(self) -> int:
        return 3


class Colour(str, Enum):  # noqa: UP042 - what older applications have
    """What passes for a string in many an application."""

    RED = "red"


class Liar:
    """An object with every attribute, all of them wrong."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


_CYCLE: Final[dict[str, Any]] = {}
_CYCLE["self"] = [_CYCLE]

ODD: Final[list[Any]] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.0, -0.0, 1.5, float("nan"), float("inf"), 1e308,
    5e-324, "", " ", "\0", "\ud800", "\udc00\ud800", "a" * 256, "a" * 257, "%", "_", "'", '"', "\\", "null", "\ufeff",
    "\U0010ffff", "\u202e", b"bytes", bytearray(b"x"), [], ["a"], (), ("a", "b"), {}, {"a": 1}, {1: 2},
    {"\0": 1, "\ufffd": 2}, set(), frozenset({"a"}), range(3), object(), Liar(), Text("odd"), Colour.RED,
    uuid.UUID(int=7), Decimal("1.5"), PurePosixPath("/a"), 1j, ALL_PROJECTS, Author("a"), _CYCLE, np.int64(3),
    np.float64(0.5), np.str_("numpy"), np.array([1.0]), np.array([True, False]),
    datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 1), datetime.max, datetime.min,  # noqa: DTZ001, DTZ901
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-23))), date(2024, 5, 1), timedelta(1),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=23))), "2024-05-01T12:00:00Z", "0001-01-01T00:00:00+23:59",
    "tomorrow", int, lambda: None, ..., NotImplemented,
]  # fmt: skip

odd = st.one_of(
    st.sampled_from(ODD),
    st.text(max_size=8),
    st.integers(),
    st.floats(),
    st.binary(max_size=4),
    st.recursive(
        st.sampled_from(ODD),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
        max_leaves=5,
    ),
)


def mostly(*usual: Any) -> st.SearchStrategy[Any]:
    """Return what is usual, and one time in five something odd."""
    return st.integers(0, 4).flatmap(lambda dice: odd if dice == 0 else st.sampled_from(usual))


words = st.lists(
    st.sampled_from(["tea", "green", "NOT", '"', "*", "caf\u00e9", "\u7dd1\u8336", "42", "a:b"]), max_size=5
).map(" ".join)
texts = st.integers(0, 4).flatmap(lambda dice: odd if dice == 0 else words)
users = mostly("ana", "ana", "ben")
projects = mostly(None, None, "A", "B")
projects_or_all = mostly(None, "A", ALL_PROJECTS)
sessions = mostly("s1", "s2")
ids = mostly("e1", "e2", None)
limits = mostly(None, 0, 1, 10, 1_000)
times = mostly(None, 0.0, 1.5, "2024-05-01T12:00:00", datetime(2024, 5, 1, tzinfo=UTC))
keys = st.sampled_from(["role", "parts", "k", "n", "", "\0", 1, None, b"k", ("a",)])
values = st.one_of(st.dictionaries(keys, odd, max_size=2), odd)
contents = st.one_of(texts, st.dictionaries(keys, st.one_of(odd, st.lists(odd, max_size=3)), max_size=3))


@st.composite
def entries(draw: st.DrawFn) -> Callable[[], Any]:
    """Return what makes an entry, or something else: making it may be refused."""
    content, author, time = draw(contents), draw(mostly("user", "model")), draw(times)
    given_id, metadata = draw(ids), draw(mostly({}, {"n": 1}, {"k": [None]})) if draw(st.booleans()) else draw(values)
    plain = draw(st.integers(0, 9)) > 0
    return lambda: MemoryEntry(content, author, time, given_id, metadata) if plain else content


@st.composite
def filters(draw: st.DrawFn) -> Callable[[], Any]:
    """Return what makes a filter: making it may be refused."""
    operator = draw(mostly("eq", "ne", "in", "gt", "lte", "exists"))
    key, value, other = draw(mostly("k", "n", ["k", "x"])), draw(odd), draw(odd)
    options: list[Callable[[], Any]] = [
        lambda: None,
        lambda: None,
        lambda: Metadata(key, operator, value),
        lambda: Metadata(key, operator, value) & Author(other),
        lambda: ~Session(other) | Author("user"),
        lambda: Time(since=value, before=other),
        lambda: value,
    ]
    chosen: Callable[[], Any] = draw(st.sampled_from(options))
    return chosen


@st.composite
def calls(draw: st.DrawFn) -> Make:
    """Return one call with whatever arguments."""
    user, project, anywhere = draw(users), draw(projects), draw(projects_or_all)
    session, entry_id, query, limit = draw(sessions), draw(ids), draw(texts), draw(limits)
    made, filtered = draw(st.lists(entries(), max_size=3)), draw(filters())
    existing, flag, mode = (
        draw(mostly("update", "keep", "replace")),
        draw(mostly(True, False)),
        draw(mostly(None, "keyword")),
    )
    score, after, strange = draw(mostly(None, 0.1)), draw(mostly(None, None, "AAAA")), draw(odd)

    def some() -> list[Any]:
        return [make() for make in made]

    options: list[Make] = [
        lambda s, app: s.add_session(app, user, session, some(), project_id=project, existing=existing),
        lambda s, app: s.add_session(app, user, session, some(), project_id=project),
        lambda s, app: s.add_session(app, user, session, strange),
        lambda s, app: s.add_entry(app, user, (some() or [strange])[0], project_id=project, existing=existing),
        lambda s, app: s.add_many([SessionEntries(app, user, session, some(), project)], existing=existing),
        lambda s, app: s.add_many(strange),
        lambda s, app: s.search(
            SearchRequest(query, app, user, project, limit, score, mode, recency=score or 0.0, filter=filtered())
        ),
        lambda s, app: s.get(app, user, entry_id, project_id=project),
        lambda s, app: s.list_recent(app, user, limit, project_id=anywhere, filter=filtered()),
        lambda s, app: s.list_page(
            app, user, project_id=anywhere, filter=filtered(), limit=limit, after=after, with_total=flag
        ),
        lambda s, app: s.delete(app, user, entry_id, project_id=anywhere),
        lambda s, app: s.delete_entries(app, user, query, project_id=project, dry_run=flag),
        lambda s, app: s.delete_session(app, user, session, project_id=anywhere),
        lambda s, app: s.delete_project(app, user, project),
        lambda s, app: s.delete_user(app, user),
        lambda s, app: s.add_session_to_project(app, user, session, project, some(), existing=existing),
        lambda s, app: s.add_entry_to_project(app, user, project, (some() or [strange])[0]),
        lambda s, app: s.delete_entries_in_project(app, user, project, query, dry_run=flag),
    ]
    return draw(st.sampled_from(options))

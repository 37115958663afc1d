"""Users: who has entries in an app, by the beginning of their ids, in the order of code points, a part at a time."""

from __future__ import annotations

from typing import Any, Final

import pytest

from adk_memory import ValidationError
from adk_memory.testing._base import ContractBase, Memories

# In the order of their code points, which is neither the order of words nor that of UTF-16.
USERS: Final = [
    "A", "a", "a b", "a%c", "a-b", "a.", "a.b", "a.b.c", "a/b", "a_b", "ab", "b", "é", "\ud7ff", "\ue000", "\uffff",
    "\U0001f600", "\U0010ffff", "\U0010ffffx",
]  # fmt: skip


async def _fill(memory: Memories) -> None:
    memory.can.need("list_users")
    for user_id in reversed(USERS):
        await memory.user(user_id).add("tea")


class UsersContract(ContractBase):
    async def test_users_are_listed_in_the_order_of_code_points(self, memory: Memories) -> None:
        await _fill(memory)

        assert await memory.service.list_users(memory.app_name) == USERS

    @pytest.mark.parametrize("prefix", [*USERS, "a.b.", "a%", "A%", "c", "a.b.c.d"])
    async def test_a_prefix_is_compared_exactly(self, memory: Memories, prefix: str) -> None:
        await _fill(memory)

        listed = await memory.service.list_users(memory.app_name, prefix=prefix)

        assert listed == [user_id for user_id in USERS if user_id.startswith(prefix)]

    @pytest.mark.parametrize("after", [*USERS, "a.b\U0010ffff", "0"])
    async def test_a_list_goes_on_after_a_user(self, memory: Memories, after: str) -> None:
        await _fill(memory)

        listed = await memory.service.list_users(memory.app_name, prefix="a", after=after, limit=3)

        assert listed == [user_id for user_id in USERS if user_id.startswith("a") and user_id > after][:3]

    async def test_only_who_has_entries_is_listed(self, memory: Memories) -> None:
        memory.can.need("list_users")
        memory.can.need("delete_session")
        await memory.user("ana").add("tea")
        await memory.user("bo").add("tea")
        await memory.user("bo").delete_session("s1")

        assert await memory.service.list_users(memory.app_name) == ["ana"]

    async def test_a_user_is_listed_who_has_entries_without_text(self, memory: Memories) -> None:
        memory.can.need("list_users")
        await memory.user("ana").add("")

        assert await memory.service.list_users(memory.app_name) == ["ana"]

    async def test_a_user_of_several_projects_is_listed_once(self, memory: Memories) -> None:
        memory.can.need("list_users")
        for project_id in (None, "A", "B"):
            await memory.project(project_id).add("tea")
        await memory.user("bo").project("A").add("tea")

        assert await memory.service.list_users(memory.app_name) == ["ana", "bo"]
        assert await memory.service.list_users(memory.app_name, limit=1) == ["ana"]

    async def test_users_of_another_app_are_not_listed(self, memory: Memories) -> None:
        memory.can.need("list_users")
        await memory.add("tea")

        assert await memory.service.list_users(memory.app("another" + memory.app_name).app_name) == []

    @pytest.mark.parametrize(
        "options",
        [{"prefix": 1}, {"prefix": None}, {"prefix": "\0"}, {"after": ""}, {"after": 7}, {"limit": -1}, {"limit": "3"}],
    )
    async def test_what_no_id_can_be_is_refused(self, memory: Memories, options: Any) -> None:
        memory.can.need("list_users")

        with pytest.raises(ValidationError):
            await memory.service.list_users(memory.app_name, **options)

"""The whole contract, kept by services whose role sees one user at a time; what is for the owner, the owner does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from adk_memory import Erasure, ErasureProof, PostgresMemoryService, ScrubReport
from adk_memory.testing import MakeService, MemoryServiceContract
from postgres_server import PostgresServer
from row_security.support import Secured, secured


@pytest.fixture(scope="module")
def shared(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Secured]:
    with secured(postgres_server, postgres_template) as database:
        yield database


class _Bound(PostgresMemoryService):
    def __init__(self, database: Secured, **options: Any) -> None:
        super().__init__(database.role, **options)
        self._owner = database.owner

    async def reindex(self, **options: Any) -> int:
        async with PostgresMemoryService(self._owner) as owner:
            return await owner.reindex(**options)

    async def purge_expired(self, **options: Any) -> Erasure:
        async with PostgresMemoryService(self._owner) as owner:
            return await owner.purge_expired(**options)

    async def scrub(self, **options: Any) -> ScrubReport:
        async with PostgresMemoryService(self._owner) as owner:
            return await owner.scrub(**options)

    async def erase_user(self, *user: str, **options: Any) -> ErasureProof:
        async with PostgresMemoryService(self._owner) as owner:
            return await owner.erase_user(*user, **options)


class TestUnderRowSecurity(MemoryServiceContract):
    @pytest.fixture
    def make_service(self, shared: Secured) -> MakeService:
        def make(**options: Any) -> PostgresMemoryService:
            return _Bound(shared, **options)

        return make

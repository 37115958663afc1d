"""The whole contract, kept by services whose role sees one user at a time; what is for the owner, the owner does."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from adk_memory import Erasure, ErasureProof, PostgresMemoryService, ScrubReport
from adk_memory.testing import MakeService, MemoryServiceContract
from adk_memory.testing._bulk import BulkContract
from adk_memory.testing._erasing import ErasingContract
from adk_memory.testing._expiry import ExpiryContract
from adk_memory.testing._exporting import ExportingContract
from adk_memory.testing._filters import FiltersContract
from adk_memory.testing._identity import IdentityContract
from adk_memory.testing._paging import PagingContract
from adk_memory.testing._purging import PurgingContract
from adk_memory.testing._scopes import ScopesContract
from adk_memory.testing._turns import TurnsContract
from adk_memory.testing._vectors import VectorsContract
from adk_memory.testing._writing import WritingContract
from postgres_server import PostgresServer
from row_security.support import Secured, secured


@pytest.fixture(scope="module")
def shared(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Secured]:
    with secured(postgres_server, postgres_template) as database:
        yield database


class _Bound(PostgresMemoryService):
    def __init__(self, database: Secured, **options: Any) -> None:
        super().__init__(database.role, **options)
        self._owner = partial(PostgresMemoryService, database.owner, **options)

    async def reindex(self, **options: Any) -> int:
        async with self._owner() as owner:
            return await owner.reindex(**options)

    async def list_users(self, *app: str, **options: Any) -> list[str]:
        async with self._owner() as owner:
            return await owner.list_users(*app, **options)

    async def embed_pending(self, **options: Any) -> int:
        async with self._owner() as owner:
            return await owner.embed_pending(**options)

    async def drop_model(self, model: str, **options: Any) -> int:
        async with self._owner() as owner:
            return await owner.drop_model(model, **options)

    async def purge_expired(self, **options: Any) -> Erasure:
        async with self._owner() as owner:
            return await owner.purge_expired(**options)

    async def scrub(self, **options: Any) -> ScrubReport:
        async with self._owner() as owner:
            return await owner.scrub(**options)

    async def erase_user(self, *user: str, **options: Any) -> ErasureProof:
        async with self._owner() as owner:
            return await owner.erase_user(*user, **options)


class TestUnderRowSecurity(
    ScopesContract,
    WritingContract,
    IdentityContract,
    VectorsContract,
    BulkContract,
    TurnsContract,
    FiltersContract,
    PagingContract,
    ErasingContract,
    ExpiryContract,
    PurgingContract,
    ExportingContract,
):
    """The groups that meet the database in ways of its own."""

    @pytest.fixture
    def make_service(self, shared: Secured) -> MakeService:
        return partial(_Bound, shared)


@pytest.mark.heavy
class TestAllUnderRowSecurity(MemoryServiceContract):
    # To whoever is bound it does not say how many are pending.
    test_the_health_report_says_how_many_are_pending = None  # type: ignore[assignment]
    test_the_health_report_counts_nothing_that_has_expired_as_pending = None  # type: ignore[assignment]

    @pytest.fixture
    def make_service(self, shared: Secured) -> MakeService:
        return partial(_Bound, shared)

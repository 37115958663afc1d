"""MemoryServiceContract: all groups of the contract together."""

from __future__ import annotations

from adk_memory.testing._adapter import AdapterContract
from adk_memory.testing._bulk import BulkContract
from adk_memory.testing._content import ContentContract
from adk_memory.testing._durability import DurabilityContract
from adk_memory.testing._erasing import ErasingContract
from adk_memory.testing._errors import ErrorsContract
from adk_memory.testing._expiry import ExpiryContract
from adk_memory.testing._exporting import ExportingContract
from adk_memory.testing._filters import FiltersContract
from adk_memory.testing._given import GivenVectorsContract
from adk_memory.testing._identifiers import IdentifiersContract
from adk_memory.testing._identity import IdentityContract
from adk_memory.testing._languages import LanguagesContract
from adk_memory.testing._models import ModelsContract
from adk_memory.testing._paging import PagingContract
from adk_memory.testing._pending import PendingContract
from adk_memory.testing._providers import ProvidersContract
from adk_memory.testing._purging import PurgingContract
from adk_memory.testing._reading import ReadingContract
from adk_memory.testing._refusals import RefusalsContract
from adk_memory.testing._scopes import ScopesContract
from adk_memory.testing._scores import ScoresContract
from adk_memory.testing._searching import SearchingContract
from adk_memory.testing._times import TimesContract
from adk_memory.testing._turns import TurnsContract
from adk_memory.testing._users import UsersContract
from adk_memory.testing._vectors import VectorsContract
from adk_memory.testing._writing import WritingContract


class MemoryServiceContract(
    IdentifiersContract,
    ScopesContract,
    RefusalsContract,
    ContentContract,
    TimesContract,
    WritingContract,
    IdentityContract,
    SearchingContract,
    ScoresContract,
    LanguagesContract,
    VectorsContract,
    GivenVectorsContract,
    BulkContract,
    ProvidersContract,
    TurnsContract,
    ReadingContract,
    FiltersContract,
    PagingContract,
    UsersContract,
    ErasingContract,
    ExpiryContract,
    PurgingContract,
    ExportingContract,
    AdapterContract,
    ErrorsContract,
    DurabilityContract,
    ModelsContract,
    PendingContract,  # the last here is the first to run, while a store that is shared holds little
):
    """What every `MemoryService` does: one test for each sentence of the contract.

    A subclass overrides the fixture ``make_service`` with one that returns a callable
    ``(embedder=None, on_embedding_error="raise", default_ttl=None) -> MemoryService``, each given by its name, the
    second only where the backend has ``embed_pending``, the third only where entries can expire; the suite enters and
    leaves each service it makes as an async context manager. The store may be shared by all tests: each works in an
    app of its own.

    Attributes:
        projects: whether the backend keeps projects apart; where not, that it refuses is tested.
        embeddings: whether it takes an embedding provider.
        filters: whether searches and lists take a filter; where not, that they refuse one is tested.
        expiry: whether entries can expire, by `adk_memory._clock`; where not, that they are refused is tested.
        durable: whether two services of ``make_service`` share one store.
        optional_operations: those of the optional operations that it has; that it refuses the others is tested.
    """

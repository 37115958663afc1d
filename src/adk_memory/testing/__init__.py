"""The contract of `MemoryService` as a pytest suite, for everyone who writes a backend.

Needs pytest and pytest-asyncio. Subclass `MemoryServiceContract` and say how a service is made::

    class TestMyService(MemoryServiceContract):
        @pytest.fixture
        def make_service(self):
            return MyService
"""

from pkgutil import iter_modules

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in iter_modules(__path__)))

from adk_memory.testing._base import MakeService, Memories  # noqa: E402 - after the rewriting is arranged
from adk_memory.testing._contract import MemoryServiceContract  # noqa: E402
from adk_memory.testing._embedder import ToyEmbedder  # noqa: E402

__all__ = ["MakeService", "Memories", "MemoryServiceContract", "ToyEmbedder"]

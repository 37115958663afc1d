"""LangGraph: stores for its graphs, which keep items with adk-memory on SQLite, Postgres or in memory.

    with AdkMemoryStore.from_conn_string("sqlite:///memory.db") as store:
        graph = builder.compile(store=store)

`AsyncAdkMemoryStore` is the same for a graph that runs in one event loop, and answers the calls of one tick together.
"""

from __future__ import annotations

from adk_memory.errors import ConfigurationError

try:
    from adk_memory.integrations.langgraph._stores import AdkMemoryStore, AsyncAdkMemoryStore
except ModuleNotFoundError as error:
    raise ConfigurationError(
        'adk_memory.integrations.langgraph needs a package: pip install "adk-memory[langgraph]"'
    ) from error

__all__ = ["AdkMemoryStore", "AsyncAdkMemoryStore"]

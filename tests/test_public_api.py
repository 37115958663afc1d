"""What a user may import, what importing it costs, and what they may rely on."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from importlib.resources import files

import pytest

import adk_memory

PUBLIC_NAMES = [
    "ALL_PROJECTS",
    "AdkMemoryError",
    "Author",
    "ConfigurationError",
    "Content",
    "EmbeddingError",
    "EmbeddingMismatchError",
    "EmbeddingProvider",
    "Erasure",
    "ErasureProof",
    "Filter",
    "HealthReport",
    "InMemoryMemoryService",
    "Memory",
    "MemoryEntry",
    "MemoryService",
    "MemoryServiceAdapter",
    "Metadata",
    "OperationNotSupportedError",
    "Page",
    "PostgresMemoryService",
    "ProjectScopingNotSupportedError",
    "Reranker",
    "SchemaError",
    "SchemaMissingError",
    "SchemaOutdatedError",
    "SchemaTooNewError",
    "ScrubReport",
    "SearchRequest",
    "SearchResponse",
    "Session",
    "SessionEntries",
    "SqliteMemoryService",
    "StorageError",
    "StorageUnavailableError",
    "Time",
    "ValidationError",
    "open_memory",
    "recall_context",
    "remembering",
    "validate_project_id",
]
ERRORS = [name for name in PUBLIC_NAMES if name.endswith("Error")]
LOADED_LATER = ["alembic", "asyncpg", "opentelemetry", "pgvector", "pytest", "rich"]


def test_the_public_names_are_these() -> None:
    assert sorted(adk_memory.__all__) == PUBLIC_NAMES


def test_the_list_of_public_names_is_sorted() -> None:
    assert list(adk_memory.__all__) == sorted(adk_memory.__all__)


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_an_adk_memory_error(name: str) -> None:
    assert issubclass(getattr(adk_memory, name), adk_memory.AdkMemoryError)


def test_every_error_class_of_the_tree_is_public() -> None:
    def tree(error: type[Exception]) -> list[str]:
        return [error.__name__, *(name for child in error.__subclasses__() for name in tree(child))]

    ours = [name for name in tree(adk_memory.AdkMemoryError) if not name.startswith("_")]

    assert set(ours) == set(ERRORS)


def _public_objects() -> list[str]:
    named = [name for name in PUBLIC_NAMES if name != "ALL_PROJECTS"]
    methods = [
        f"{name}.{method}"
        for name in ["MemoryService", "MemoryServiceAdapter"]
        for method, value in vars(getattr(adk_memory, name, object)).items()
        if not method.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    ]
    return named + methods


@pytest.mark.parametrize("path", _public_objects())
def test_every_public_name_says_what_it_is(path: str) -> None:
    found: object = adk_memory
    for step in path.split("."):
        found = getattr(found, step)

    assert (found.__doc__ or "").strip()
    assert inspect.getdoc(found) != inspect.getdoc(object)


def test_every_public_operation_is_annotated() -> None:
    for path in _public_objects():
        owner, _, method = path.partition(".")
        found = inspect.getattr_static(getattr(adk_memory, owner), method) if method else None
        if inspect.isfunction(found):
            signature = inspect.signature(found)
            assert signature.return_annotation is not inspect.Signature.empty, path
            for parameter in list(signature.parameters.values())[1:]:
                assert parameter.annotation is not inspect.Parameter.empty, (path, parameter.name)


def test_the_package_says_that_it_is_typed() -> None:
    assert files(adk_memory).joinpath("py.typed").is_file()


def test_importing_loads_nothing_that_is_needed_only_later() -> None:
    code = f"import adk_memory, json, sys; print(json.dumps([m for m in {LOADED_LATER} if m in sys.modules]))"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert json.loads(ran.stdout) == []


def test_importing_touches_neither_the_hosts_logging_nor_its_warnings() -> None:
    code = (
        "import logging, warnings; before = list(warnings.filters)\n"
        "import adk_memory\n"
        "assert logging.getLogger().handlers == [], logging.getLogger().handlers\n"
        "assert logging.getLogger('adk_memory').handlers in ([],), 'handlers'\n"
        "assert logging.getLogger('adk_memory').level == logging.NOTSET\n"
        "print(len([f for f in warnings.filters if f not in before and 'adk_memory' in str(f)]))"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "0"

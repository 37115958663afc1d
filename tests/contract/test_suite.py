"""The contract suite as another project sees it: it runs without any configuration, and it notices a broken backend."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

BACKEND: Final = """
import pytest
from adk_memory import ALL_PROJECTS, InMemoryMemoryService, SearchRequest, SessionEntries, ValidationError
from adk_memory.testing import MemoryServiceContract

class Service(InMemoryMemoryService):
    {broken}

class TestService(MemoryServiceContract):
    durable = False

    @pytest.fixture
    def make_service(self):
        return Service
"""
BROKEN: Final = {
    "a project sees other projects": """
    async def search(self, request):
        widened = request.model_copy(update={"project_id": "B" if request.project_id else None})
        return await super().search(widened)""",
    "a user sees other users": """
    def __init__(self, **options):
        super().__init__(**options)
        rows, of = self._rows, self._rows.of
        rows.of = lambda scope, *matches: (row for user in list(rows._users) for row in of(
            type(scope)(*user, scope.projects), *matches))""",
    "a list of a project leaves out the global entries": """
    async def list_recent(self, app_name, user_id, limit=10, *, project_id=ALL_PROJECTS, **options):
        memories = await super().list_recent(app_name, user_id, limit, project_id=project_id, **options)
        return [memory for memory in memories if project_id in (None, ALL_PROJECTS, memory.project_id)]""",
    "a dry run erases": """
    async def delete_entries(self, app_name, user_id, query, *, project_id=None, dry_run=False):
        return await super().delete_entries(app_name, user_id, query, project_id=project_id)""",
    "a delete of a project erases global entries": """
    async def delete_project(self, app_name, user_id, project_id):
        return await self.delete_user(app_name, user_id)""",
    "a delete of a session stays in the global scope": """
    async def delete_session(self, app_name, user_id, session_id, *, project_id=None):
        return await super().delete_session(app_name, user_id, session_id, project_id=project_id)""",
    "keep rewrites": """
    async def add_session(self, *arguments, existing="update", **options):
        existing = "update" if existing == "keep" else existing
        return await super().add_session(*arguments, existing=existing, **options)""",
    "many items always rewrite": """
    async def _add_batch(self, items, existing):
        await super()._add_batch(items, "update")""",
    "many items are lost with a bad one": """
    async def add_many(self, items, **options):
        taken = [item async for item in items] if hasattr(items, "__aiter__") else list(items)
        for number, item in enumerate(taken):
            if not isinstance(item, SessionEntries):
                raise ValidationError(f"items[{{number}}]: the entries before it are lost")
        return await super().add_many(taken, **options)""",
    "entries are written one by one": """
    async def add_session(self, app_name, user_id, session_id, entries, **options):
        ids = []
        for entry in entries:
            ids += await super().add_session(app_name, user_id, session_id, [entry], **options)
        return ids""",
    "a failing embedder is ignored": """
    async def add_session(self, *arguments, **options):
        try:
            return await super().add_session(*arguments, **options)
        except Exception:
            return []""",
    "microseconds are lost": """
    async def search(self, request):
        response = await super().search(request)
        memories = [m.model_copy(update={"timestamp": m.timestamp.replace(microsecond=0)}) for m in response]
        return response.model_copy(update={"memories": tuple(memories)})""",
    "scores are distances": """
    async def search(self, request):
        response = await super().search(request)
        memories = [m.model_copy(update={"score": 1 - m.score}) for m in response]
        return response.model_copy(update={"memories": tuple(memories)})""",
    "partial is never told": """
    async def search(self, request):
        return (await super().search(request)).model_copy(update={"partial": False})""",
    "a search ignores its filter": """
    async def search(self, request):
        return await super().search(request.model_copy(update={"filter": None}))""",
    "a list is filtered after its limit": """
    async def list_recent(self, app_name, user_id, limit=10, *, project_id=ALL_PROJECTS, filter=None):
        memories = await super().list_recent(app_name, user_id, limit, project_id=project_id)
        return [memory for memory in memories if filter is None or filter.passes(memory)]""",
    "a page forgets where the last one ended": """
    async def list_page(self, *arguments, after=None, **options):
        return await super().list_page(*arguments, **options)""",
    "projects are refused": """
    supports_project_scoping = False""",
}


def test_the_suite_runs_in_a_project_without_configuration(tmp_path: Path) -> None:
    ran = _run(tmp_path, "pass")

    assert ran.returncode == 0, ran.stdout


@pytest.mark.heavy
@pytest.mark.parametrize("fault", BROKEN)
def test_the_suite_notices(tmp_path: Path, fault: str) -> None:
    ran = _run(tmp_path, BROKEN[fault], "--exitfirst")

    assert "1 failed" in ran.stdout, ran.stdout


def _run(directory: Path, broken: str, *options: str) -> subprocess.CompletedProcess[str]:
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "test_service.py").write_text(BACKEND.format(broken=broken))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *options],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )

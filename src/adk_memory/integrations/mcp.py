"""A server for the Model Context Protocol: one user's memory as tools, for any client that speaks it.

Whose memory it is, the server's configuration says alone: no tool has an argument for it.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, Field

from adk_memory._packages import require
from adk_memory._validation import validate_id, validate_project_id
from adk_memory.errors import AdkMemoryError, ValidationError
from adk_memory.service import MemoryService
from adk_memory.types import Memory, MemoryEntry, SearchRequest

require("mcp", __name__, "mcp")

from mcp.server import MCPServer  # noqa: E402
from mcp.server.mcpserver.exceptions import ToolError  # noqa: E402
from mcp.types import ToolAnnotations  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

_INSTRUCTIONS: Final = (
    "Long-term memory of one user. Recall before you answer what may depend on earlier conversations; remember facts, "
    "decisions and preferences that will matter later, one at a time, each in words that make sense by themselves."
)
_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
_ERASES: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)

Limit = Annotated[int, Field(ge=1, le=100, description="At most so many memories.")]


class RecalledMemory(BaseModel):
    """A memory as tools show it; ``score`` is 0 to 1, where it was searched for."""

    id: str
    text: str
    author: str
    timestamp: str
    session_id: str | None = None
    project_id: str | None = None
    score: float | None = None


class Memories(BaseModel):
    """Some memories, in order; with ``next`` the list goes on."""

    memories: list[RecalledMemory]
    next: str | None = None


class Remembered(BaseModel):
    """The id of what was stored."""

    id: str


class Forgotten(BaseModel):
    """How many memories were erased, or would be."""

    count: int
    dry_run: bool


def memory_server(
    service: MemoryService, app_name: str, user_id: str, project_id: str | None = None, **settings: Any
) -> MCPServer:
    """Return a server with the tools ``remember``, ``recall``, ``list_memories`` and ``forget``.

    Recalling and listing see the global memories, and those of the project where one is given; remembering and
    forgetting touch the project's own, or without one the global memories. The service is closed by whom it belongs to.

    Args:
        service: where the memories are.
        app_name: whose memory.
        user_id: whose memory.
        project_id: their project; `None` for global.
        settings: of `mcp.server.MCPServer`.

    Raises:
        ValidationError: an id is not a string of 1 to 256 characters.
        ProjectScopingNotSupportedError: a project is named and the service can't keep projects apart.
    """
    app_name, user_id = validate_id("app_name", app_name), validate_id("user_id", user_id)
    project_id = validate_project_id(project_id)
    if project_id is not None:
        service.require_project_scoping()
    server = MCPServer("adk-memory", **{"instructions": _INSTRUCTIONS, "version": version("adk-memory"), **settings})

    async def remember(
        text: Annotated[str, Field(min_length=1, description="What to remember, in words that need no context.")],
        author: Annotated[str, Field(description="Who said it or found it out, by name.")] = "assistant",
    ) -> Remembered:
        """Store one fact, decision or preference for later conversations. Returns its id."""
        with _told():
            entry = MemoryEntry(text, author)
            return Remembered(id=await service.add_entry(app_name, user_id, entry, project_id=project_id))

    async def recall(
        query: Annotated[str, Field(description="Any words; none has a special meaning.")], limit: Limit = 10
    ) -> Memories:
        """Find the memories that are most relevant to a query, best first."""
        with _told():
            response = await service.search(SearchRequest(query, app_name, user_id, project_id, limit))
            return Memories(memories=[_shown(memory) for memory in response])

    async def list_memories(
        limit: Limit = 20,
        after: Annotated[str | None, Field(description="The `next` of an earlier list, to go on from there.")] = None,
    ) -> Memories:
        """List the latest memories, newest first."""
        with _told():
            page = await service.list_page(app_name, user_id, project_id=project_id, limit=limit, after=after)
            return Memories(memories=[_shown(memory) for memory in page], next=page.next)

    async def forget(
        query: Annotated[str | None, Field(description="Forget what holds every one of these words.")] = None,
        id: Annotated[str | None, Field(description="Forget the memory of this id instead.")] = None,  # noqa: A002
        dry_run: Annotated[bool, Field(description="Only say how many it would be. To erase, pass false.")] = True,
    ) -> Forgotten:
        """Erase memories for good: by words or by id. First call it with dry_run, which is the default."""
        with _told():
            count = await _forget(service, app_name, user_id, project_id, query=query, id=id, dry_run=dry_run)
            return Forgotten(count=count, dry_run=dry_run)

    for tool, title, hints in (
        (remember, "Remember", _ADDS),
        (recall, "Recall", _READS),
        (list_memories, "List memories", _READS),
        (forget, "Forget", _ERASES),
    ):
        server.add_tool(tool, title=title, annotations=hints, structured_output=True)
    return server


async def _forget(
    service: MemoryService,
    app_name: str,
    user_id: str,
    project_id: str | None,
    *,
    query: str | None,
    id: str | None,  # noqa: A002
    dry_run: bool,
) -> int:
    if (query is None) == (id is None):
        raise ValidationError("pass either a query or an id")
    if query is not None:
        return await service.delete_entries(app_name, user_id, query, project_id=project_id, dry_run=dry_run)
    entry_id = validate_id("id", id)
    if not dry_run:
        return await service.delete(app_name, user_id, entry_id, project_id=project_id)
    there = await service.get(app_name, user_id, entry_id, project_id=project_id)
    return int(there is not None and there.project_id == project_id)


@contextmanager
def _told() -> Iterator[None]:
    """Tell the model of our errors, which hold nothing that was stored; of others it learns nothing."""
    try:
        yield
    except AdkMemoryError as error:
        raise ToolError(str(error)) from error


def _shown(memory: Memory) -> RecalledMemory:
    return RecalledMemory(
        id=memory.id,
        text=memory.text,
        author=memory.author,
        timestamp=memory.timestamp.isoformat(),
        session_id=memory.session_id,
        project_id=memory.project_id,
        score=None if memory.score is None else round(memory.score, 4),
    )

"""adk-memory add, search, recent, delete: the memories of one user."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable
from pathlib import Path

from adk_memory.cli._command import Command, UsageError, add_database, add_owner, call, confirmed, database_url
from adk_memory.cli._conversation import FIELDS, read_conversation
from adk_memory.cli._filtering import add_filter, filter_of
from adk_memory.cli._output import counted, memory_json, one_line, parts_json, print_json, print_memories, say
from adk_memory.errors import AdkMemoryError, ValidationError
from adk_memory.service import MemoryService
from adk_memory.types import ALL_PROJECTS, AllProjects, Memory, SearchRequest, SearchResponse


def _add_arguments_of_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the conversation, as JSON Lines; - reads it from stdin")
    add_owner(parser)
    parser.add_argument("--session", metavar="ID", help="default: the file's name without its ending")
    parser.add_argument("--project", metavar="ID", help="default: none, the memories are global")
    add_database(parser)


def _add(args: argparse.Namespace) -> None:
    url = database_url(args)
    if args.file == "-" and args.session is None:
        raise UsageError("stdin has no name: pass --session")
    session = Path(args.file).stem if args.session is None else args.session
    data = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    try:
        entries = read_conversation(data, session, args.project)
    except ValidationError as error:
        raise ValidationError(f"{args.file}: {error}; nothing was stored") from error

    async def add(service: MemoryService) -> list[str]:
        return await service.add_session(args.app, args.user, session, entries, project_id=args.project)

    ids = call(url, add)
    if args.json:
        print_json({"session_id": session, "project_id": args.project, "ids": ids})
        return
    where = "" if args.project is None else f" of project {args.project}"
    say(one_line(f"Remembered {counted(len(set(ids)))} in session {session}{where}."))


def _add_arguments_of_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", metavar="QUERY", help="any words; none has a special meaning")
    add_owner(parser)
    parser.add_argument("--project", metavar="ID", help="see this project too, not the global memories alone")
    _add_limit(parser)
    parser.add_argument("--min-score", type=float, metavar="N", help="leave out what scores less; 0 to 1")
    _add_ids(parser)
    add_database(parser)
    add_filter(parser)


def _search(args: argparse.Namespace) -> None:
    url = database_url(args)
    request = SearchRequest(
        " ".join(args.query), args.app, args.user, args.project, args.limit, args.min_score, filter=filter_of(args)
    )

    async def search(service: MemoryService) -> SearchResponse:
        return await service.search(request)

    response = call(url, search)
    if args.json:
        memories = [memory_json(memory) for memory in response]
        how = response.model_dump(include={"mode", "partial", "approximate"})
        print_json({**how, "memories": memories})
    else:
        print_memories(response.memories, ids=args.ids)


def _add_arguments_of_recent(parser: argparse.ArgumentParser) -> None:
    add_owner(parser)
    _add_narrowing(parser, "see the global memories and this project's; default: everything")
    _add_limit(parser)
    _add_ids(parser)
    add_database(parser)
    add_filter(parser)


def _recent(args: argparse.Namespace) -> None:
    passing = filter_of(args)

    async def recent(service: MemoryService) -> list[Memory]:
        return await service.list_recent(args.app, args.user, args.limit, project_id=_projects(args), filter=passing)

    memories = call(database_url(args), recent)
    if args.json:
        print_json({"memories": [memory_json(memory) for memory in memories]})
    else:
        print_memories(memories, ids=args.ids)


def _add_arguments_of_delete(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "%(prog)s --app NAME --user ID WHAT [--project ID | --global]\n"
        "                         [--dry-run] [--yes] [--url URL] [--json]"
    )
    add_owner(parser)
    which = parser.add_argument_group("WHAT, exactly one of").add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--query", metavar="WORDS",
        help="the memories that hold every one of these words: global ones, or those of --project",
    )  # fmt: skip
    which.add_argument("--session", metavar="ID", help="a session, in every project")
    which.add_argument("--entry", metavar="ID", help="the memory of this id, in every project")
    which.add_argument("--whole-project", metavar="ID", help="everything of a project, nothing global")
    which.add_argument("--whole-user", action="store_true", help="everything of the user in this app")
    _add_narrowing(parser, "of --query, --session or --entry, erase what is in this project only")
    parser.add_argument("--dry-run", action="store_true", help="with --query: say how many it would erase")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_database(parser)


def _delete(args: argparse.Namespace) -> None:
    whole = args.whole_user or args.whole_project is not None
    if whole and (args.project is not None or args.global_only):
        raise UsageError("--whole-project and --whole-user can't be narrowed by --project or --global")
    if args.dry_run and args.query is None:
        raise UsageError("--dry-run needs --query")
    url = database_url(args)
    if args.dry_run:
        _report_dry_run(args, _matching(url, args))
        return
    if not args.yes and not confirmed(lambda: f"Erase {_described(url, args)} of user {args.user} in app {args.app}?"):
        raise AdkMemoryError("nothing was erased")

    async def erase(service: MemoryService) -> int:
        return await _erasing(service, args)

    erased = call(url, erase)
    if args.json:
        print_json({"erased": int(erased), **parts_json(erased)})
    else:
        say(f"Erased {counted(erased)}.")


def _erasing(service: MemoryService, args: argparse.Namespace) -> Awaitable[int]:
    if args.query is not None:
        return service.delete_entries(args.app, args.user, args.query, project_id=args.project)
    if args.session is not None:
        return service.delete_session(args.app, args.user, args.session, project_id=_projects(args))
    if args.entry is not None:
        return service.delete(args.app, args.user, args.entry, project_id=_projects(args))
    if args.whole_project is not None:
        return service.delete_project(args.app, args.user, args.whole_project)
    return service.delete_user(args.app, args.user)


def _matching(url: str, args: argparse.Namespace) -> int:
    async def count(service: MemoryService) -> int:
        return await service.delete_entries(args.app, args.user, args.query, project_id=args.project, dry_run=True)

    return call(url, count)


def _report_dry_run(args: argparse.Namespace, matching: int) -> None:
    if args.json:
        print_json({"would_erase": int(matching), **parts_json(matching)})
    else:
        say(f"Would erase {counted(matching)}; nothing was erased.")


def _described(url: str, args: argparse.Namespace) -> str:
    if args.query is not None:
        where = "the global memories" if args.project is None else f"project {args.project}"
        return f"{counted(_matching(url, args))} that hold every word of “{args.query}”, from {where}"
    if args.whole_project is not None:
        return f"everything in project {args.whole_project}"
    if args.whole_user:
        return "everything"
    what = f"entry {args.entry}" if args.session is None else f"session {args.session}"
    where = "every project" if args.project is None else f"project {args.project}"
    return f"{what} from {'the global memories' if args.global_only else where}"


def _add_narrowing(parser: argparse.ArgumentParser, help_of_project: str) -> None:
    narrowing = parser.add_mutually_exclusive_group()
    narrowing.add_argument("--project", metavar="ID", help=help_of_project)
    narrowing.add_argument("--global", dest="global_only", action="store_true", help="the global memories alone")


def _projects(args: argparse.Namespace) -> str | AllProjects | None:
    if args.global_only:
        return None
    project: str | None = args.project
    return ALL_PROJECTS if project is None else project


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, metavar="N", default=10, help="at most so many (default: 10)")


def _add_ids(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ids", action="store_true", help="show the ids, for delete --entry")


ADD = Command(
    name="add",
    summary="remember a conversation, all of it or nothing",
    add_arguments=_add_arguments_of_add,
    run=_add,
    details=f"""\
One JSON object per line, with these fields, of which only content is needed:
  {", ".join(FIELDS)}
content is a text, or {{"role": ..., "parts": [...]}}; timestamp and expires_at
are ISO 8601. The lines that export makes of one session are read too.
Adding a conversation again, or a longer version of it, leaves one copy of each
entry; it is known by its id, or else by its author, content and timestamp.""",
)
SEARCH = Command(
    name="search",
    summary="recall the memories that match a query, best first",
    add_arguments=_add_arguments_of_search,
    run=_search,
)
RECENT = Command(
    name="recent",
    summary="list the latest memories, newest first",
    add_arguments=_add_arguments_of_recent,
    run=_recent,
)
DELETE = Command(
    name="delete",
    summary="erase memories for good",
    add_arguments=_add_arguments_of_delete,
    run=_delete,
)

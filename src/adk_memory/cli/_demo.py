"""adk-memory demo: what the library is for, step by step, on a conversation that ships with it."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import shlex
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from rich.text import Text

from adk_memory.cli._command import URL_VARIABLE, Command, UsageError, database_url, open_database, shown_url
from adk_memory.cli._conversation import read_conversation
from adk_memory.cli._output import counted, print_answers, print_table, say
from adk_memory.service import MemoryService
from adk_memory.types import ALL_PROJECTS, MemoryEntry, SearchRequest

APP_NAME = "adk-memory-demo"
KEPT_FILE = "adk-memory-demo.db"


@dataclass(frozen=True, slots=True)
class _Session:
    session_id: str
    project_id: str | None
    entries: Sequence[MemoryEntry]


@dataclass(frozen=True, slots=True)
class _Question:
    project_id: str | None
    query: str


_PLACES = (
    ("about-me", None),
    ("harbour-kick-off", "harbour"),
    ("lisbon-plan", "lisbon"),
    ("harbour-october", "harbour"),
    ("lisbon-last-days", "lisbon"),
)
_SAME_QUESTION = "budget euro"
_QUESTIONS = (
    _Question("harbour", "Which mornings are for a deploy?"),
    _Question("lisbon", "タイル博物館"),
    _Question("lisbon", "pequeno-almoco incluido"),
    _Question(None, "Wie zorgt voor de kat?"),
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", help="run it in this database instead: a URL, or the path of a SQLite file")
    parser.add_argument(
        "--keep", action="store_true", help=f"leave the memories there (without --url: in ./{KEPT_FILE})"
    )


def _demo(args: argparse.Namespace) -> None:
    with ExitStack() as cleanup:
        if args.url is not None:
            url = database_url(args)
        elif args.keep:
            if Path(KEPT_FILE).exists():
                raise UsageError(f"{KEPT_FILE} exists already; name another with --url")
            url = f"sqlite:///{KEPT_FILE}"
        else:
            folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="adk-memory-demo-"))
            url = f"sqlite:///{folder}/memory.db"
        asyncio.run(_Demo(url, keep=args.keep).run())
        if args.url is None and not args.keep:
            say("The file goes away now. To keep it and look around: adk-memory demo --keep")
        elif not args.keep:
            say("The tables stay there, without anything of the demo in them.")


class _Demo:
    def __init__(self, url: str, *, keep: bool) -> None:
        self._url = url
        self._keep = keep
        self._user_id = f"mira-{secrets.token_hex(3)}"  # of this run: several may share a database
        self._steps = 0

    async def run(self) -> None:
        """Go through all steps; what was stored is erased, also if one of them fails."""
        await self._create()
        try:
            await self._store()
            await self._recall()
            if self._keep:
                self._say_what_to_try()
            else:
                await self._erase()
        except BaseException:
            async with open_database(self._url) as service:
                await service.delete_user(APP_NAME, self._user_id)
            raise

    async def _create(self) -> None:
        async with open_database(self._url, create=True) as service:
            self._step("Create the tables")
            say(f"   {shown_url(self._url)}")
            before = await service.schema_version()
            await service.migrate()
            now = await service.schema_version()
            say(f"   at {now} already" if before == now else f"   from {before or 'nothing'} to {now}")

    async def _store(self) -> None:
        async with open_database(self._url) as service:
            sessions = _sessions()
            self._step(f"Store {len(sessions)} sessions of user {self._user_id}, each in one transaction")
            for session in sessions:
                await service.add_session(
                    APP_NAME, self._user_id, session.session_id, session.entries,
                    project_id=session.project_id,
                )  # fmt: skip
            rows = [
                tuple(map(Text, (session.session_id, session.project_id or "(global)",
                                 str(len(session.entries)), session.entries[0].text)))
                for session in sessions
            ]  # fmt: skip
            print_table(("Session", "Project", "Entries", "Begins with"), rows, indent=3)

    async def _recall(self) -> None:
        async with open_database(self._url) as service:
            self._step("Close it, open it again, and recall from inside and outside of the projects")
            for question in _QUESTIONS:
                await self._ask(service, question, limit=2)
            self._step(f"Ask the same in three places: “{_SAME_QUESTION}”")
            say("   Outside of the projects only the global memories are seen; inside of one its")
            say("   own too, and never those of another.")
            for project_id in (None, "harbour", "lisbon"):
                await self._ask(service, _Question(project_id, _SAME_QUESTION), limit=3)

    async def _erase(self) -> None:
        async with open_database(self._url) as service:
            self._step("Erase: first what holds two words, then a project, then the user")
            query = "flight saturday"
            count = await service.delete_entries(APP_NAME, self._user_id, query, project_id="lisbon")
            say(f"   “{query}” in lisbon: {counted(count)} erased; every word has to match")
            count = await service.delete_project(APP_NAME, self._user_id, "harbour")
            say(f"   the project harbour: {counted(count)} erased, nothing global, nothing of lisbon")
            count = await service.delete_user(APP_NAME, self._user_id)
            say(f"   the user {self._user_id}: {counted(count)} erased, all that was left")
        async with open_database(self._url) as service:
            self._step("Open it once more: nothing is left")
            left = await service.list_recent(APP_NAME, self._user_id, project_id=ALL_PROJECTS)
            found = await service.search(SearchRequest(_SAME_QUESTION, APP_NAME, self._user_id, "harbour"))
            say(f"   listed: {counted(len(left))}; found: {counted(len(found))}")

    def _say_what_to_try(self) -> None:
        self._step("Look around")
        owner = f"--app {APP_NAME} --user {self._user_id}"
        say(f"   export {URL_VARIABLE}={shlex.quote(shown_url(self._url))}")
        say(f"   adk-memory recent {owner}")
        say(f"   adk-memory search deploy mornings --project harbour {owner}")
        say(f"   adk-memory delete --whole-user {owner}")

    async def _ask(self, service: MemoryService, question: _Question, *, limit: int) -> None:
        request = SearchRequest(question.query, APP_NAME, self._user_id, question.project_id, limit)
        response = await service.search(request)
        where = "outside of the projects" if question.project_id is None else f"in {question.project_id}"
        say(f"   {where}: “{question.query}”", "bold")
        print_answers(response)

    def _step(self, title: str) -> None:
        if self._steps:
            say("")
        self._steps += 1
        say(f"{self._steps}. {title}", "bold")


def _sessions() -> list[_Session]:
    folder = files("adk_memory.cli") / "demo"
    return [
        _Session(name, project_id, read_conversation((folder / f"{name}.jsonl").read_bytes(), name, project_id))
        for name, project_id in _PLACES
    ]


DEMO = Command(
    name="demo",
    summary="see it work on a conversation that ships with it: store, recall, erase",
    add_arguments=_add_arguments,
    run=_demo,
    details=f"""\
Nothing of yours is touched. Without options it runs in a file in the temporary
folder, which goes away at the end, whatever {URL_VARIABLE} says. In a database
that you name it creates the tables or brings them to this version, works in an
app of its own ({APP_NAME}), and erases what it stored.""",
)

"""F25 and F23: Postgres URLs as hosting companies hand them out."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.engine import URL

import postgres_server as servers
from adk_memory import AdkMemoryError, ConfigurationError, MemoryService, StorageUnavailableError, open_memory
from adk_memory._sql.urls import postgres_url
from field_reports.calls import found, remember
from field_reports.tables import looking

SCHEMES = [
    "postgres", "postgresql", "postgresql+asyncpg", "postgresql+psycopg", "postgresql+psycopg2", "postgres+asyncpg",
    "POSTGRESQL",
]  # fmt: skip
OPTIONS = [
    "sslmode=disable", "sslmode=allow", "sslmode=prefer", "ssl=disable", "ssl=false", "ssl=prefer",
    "channel_binding=prefer",
    "sslmode=prefer&channel_binding=disable", "application_name=my%20app", "connect_timeout=10",
    "target_session_attrs=any",
    "gssencmode=disable", "keepalives=1&keepalives_idle=30&keepalives_interval=10&keepalives_count=5",
    "client_encoding=utf8",
    "options=-csearch_path%3Dpublic", "options=-c%20search_path%3Dpublic%20-c%20statement_timeout%3D30000",
    "statement_cache_size=0",
    "prepared_statement_cache_size=0", "statement_cache_size=0&prepared_statement_cache_size=0", "pgbouncer=true",
    "fallback_application_name=x", "load_balance_hosts=disable", "search_path=public",
    "statement_timeout=60000", "timezone=Asia/Kolkata", "tcp_user_timeout=1000", "sslmode=disable&sslmode=prefer", "",
]  # fmt: skip
NEEDS_TLS = ["sslmode=require", "sslmode=verify-ca", "sslmode=verify-full", "ssl=require", "ssl=true",
"ssl=verify-full", "ssl=1",
             "sslmode=require&channel_binding=require"]  # fmt: skip
PASSWORDS = [
    "plain", "p%25@:/#&=?", "%", "%%", "%s", "%(x)s", "@", ":", "/", "#", "?", "&", "=", "+", " ", "a b", "'", '"',
    "\\", "$1", "${x}",
    "!", "[]", "{}", "ünïcödé", "パス", "🍕", "%20", "a%20b", "`", "~", "|", "<>", ";", ",", "x" * 200,
    ":@/?#[]!$&'()*+,;=%",
]  # fmt: skip


async def works(service: MemoryService) -> None:
    async with service:
        await service.migrate()
        assert (await service.health_check()).backend == "postgresql"
        await remember(service, "a note")
        assert await found(service, "note") == ["a note"]


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_f25_every_spelling_of_the_scheme_works(postgres_url: str, scheme: str) -> None:
    rest = postgres_url.partition("://")[2]

    await works(open_memory(f"{scheme}://{rest}"))
    await works(open_memory(f"  {scheme}://{rest}\r\n"))


async def test_f25_options_of_other_clients_are_no_hindrance(migrated_postgres_url: str) -> None:
    for options in OPTIONS:
        try:
            await works(open_memory(f"{migrated_postgres_url}?{options}"))
        except Exception as error:
            raise AssertionError(options) from error


async def test_f25_the_host_may_stand_among_the_options(migrated_postgres_url: str) -> None:
    url = make_url(migrated_postgres_url)
    user = f"{url.username}:{url.password}"

    await works(open_memory(f"postgresql://{user}@/{url.database}?host={url.host}&port={url.port}"))
    await works(open_memory(f"postgresql://{user}@/{url.database}?host={url.host}:{url.port}"))


@pytest.mark.parametrize("options", NEEDS_TLS)
async def test_f25_tls_that_is_asked_for_is_never_left_out(migrated_postgres_url: str, options: str) -> None:
    async with looking(migrated_postgres_url) as connection:
        if await connection.scalar(text("SHOW ssl")) == "on":
            pytest.skip("this server has TLS")
    async with open_memory(f"{migrated_postgres_url}?{options}") as service:
        with pytest.raises(AdkMemoryError):
            await service.health_check()


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_f25_the_mode_of_tls_reaches_the_driver(mode: str) -> None:
    for option in (f"sslmode={mode}", f"ssl={mode}", f"sslmode={mode}&channel_binding=prefer"):
        _, arguments = postgres_url(f"postgres://u:p@h/d?{option}&sslrootcert=/etc/ca.pem")
        assert f"sslmode={mode}" in arguments["dsn"]
        assert "sslrootcert=%2Fetc%2Fca.pem" in arguments["dsn"]


@pytest.mark.parametrize(
    "options", ["sslmode=bogus", "ssl=bogus", "connect_timeout=soon", "statement_cache_size=x", "no_such_option=1"]
)
async def test_f25_an_option_that_makes_no_sense_is_an_error_of_ours(migrated_postgres_url: str, options: str) -> None:
    with pytest.raises(AdkMemoryError):
        async with open_memory(f"{migrated_postgres_url}?{options}") as service:
            await service.health_check()


async def test_f25_the_search_path_of_the_url_says_where_the_tables_are(postgres_url: str) -> None:
    async with looking(postgres_url) as connection:
        await connection.execute(text("CREATE SCHEMA mem"))

    await works(open_memory(f"{postgres_url}?options=-csearch_path%3Dmem"))

    async with looking(postgres_url) as connection:
        schemas = await connection.scalars(
            text("SELECT DISTINCT schemaname FROM pg_tables WHERE tablename LIKE 'adk_memory%'")
        )
        assert list(schemas) == ["mem"]


@pytest.fixture
def role(postgres_server: servers.PostgresServer) -> Iterator[str]:
    """The name of a role that may log in."""
    name = f"adk_role_{secrets.token_hex(4)}"
    postgres_server._execute(f'CREATE ROLE "{name}" LOGIN')
    yield name
    postgres_server._execute(f'DROP OWNED BY "{name}" CASCADE')
    postgres_server._execute(f'DROP ROLE "{name}"')


async def test_f25_a_password_may_hold_any_character(role: str, migrated_postgres_url: str) -> None:
    async with looking(migrated_postgres_url) as connection:
        await connection.execute(text(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}"))
        for password in PASSWORDS:
            await connection.exec_driver_sql(f"ALTER ROLE {role} PASSWORD '{password.replace(chr(39), chr(39) * 2)}'")
            url = (
                make_url(migrated_postgres_url)
                .set(username=role, password=password)
                .render_as_string(hide_password=False)
            )
            async with open_memory(url) as service:
                await remember(service, "a note", session=secrets.token_hex(8))
                await service.migrate()
                assert (await service.health_check()).backend == "postgresql"


async def test_f25_a_wrong_password_is_explained_without_it(migrated_postgres_url: str) -> None:
    for password in PASSWORDS[1:]:
        url = make_url(migrated_postgres_url).set(password=f"hunter2{password}").render_as_string(hide_password=False)
        async with open_memory(url) as service:
            with pytest.raises(StorageUnavailableError, match="28P01") as raised:
                await service.health_check()
            assert "hunter2" not in f"{raised.value} {raised.value.__cause__}"


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:hunter2@[/d", "postgresql://u:hunter2@h:port/d", "postgresql://u:hun/ter2@h:x/d",
    "postgres:hunter2",
     "postgresql+nodriver://u:hunter2@h/d"],
)  # fmt: skip
async def test_f25_no_message_holds_the_password(url: str) -> None:
    try:
        async with open_memory(url) as service:
            await service.health_check()
    except AdkMemoryError as error:
        shown: BaseException | None = error
        while shown is not None:
            assert "hunter2" not in f"{shown} {shown!r}"
            shown = shown.__cause__
    except Exception as error:
        raise AssertionError("an error that is not ours") from error


async def test_f25_a_server_that_is_not_there_is_explained() -> None:
    for place in ("127.0.0.1:1", "host.invalid", "/d?host=/no/such/folder"):
        url = f"postgresql://u:hunter2@{place}" + ("" if "/d" in place else "/d")
        async with open_memory(url) as service:
            for call in (service.health_check, service.migrate, service.schema_version):
                with pytest.raises(StorageUnavailableError) as raised:
                    await call()
                assert "hunter2" not in str(raised.value)


async def test_f25_a_database_that_is_not_there_is_explained(migrated_postgres_url: str) -> None:
    async with open_memory(
        make_url(migrated_postgres_url).set(database="no_such").render_as_string(hide_password=False)
    ) as service:
        with pytest.raises(StorageUnavailableError, match="3D000"):
            await service.health_check()


@pytest.mark.heavy
def test_f25_a_unix_socket_is_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("/tmp") / f"adk socket {secrets.token_hex(4)}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    monkeypatch.delenv(servers.URL_VARIABLE, raising=False)
    settings: Any = servers._SETTINGS
    monkeypatch.setitem(settings, "unix_socket_directories", f'"{folder}"')
    try:
        with servers.running_postgres() as server:
            url = make_url(server.url)
            for host in (quote(str(folder)), quote_plus(str(folder)), quote(str(folder), safe="")):
                target = f"postgresql://{url.username}:{url.password}@/postgres?host={host}&port={url.port}"
                asyncio.run(works(open_memory(target)))
    finally:
        folder.rmdir()


@pytest.mark.parametrize("option", ["pgbouncer=true", "pgbouncer=1"])
def test_f23_the_option_for_a_pooler_prepares_nothing_by_name(option: str) -> None:
    _, arguments = postgres_url(f"postgresql://u:p@h:6543/d?{option}")

    assert arguments["statement_cache_size"] == arguments["prepared_statement_cache_size"] == 0
    assert arguments["prepared_statement_name_func"]() == ""
    assert "dsn" not in arguments


def test_f25_a_service_is_made_without_connecting() -> None:
    url: URL = URL.create("postgresql", "u", "p%@", "host.invalid", 1, "d")
    service = open_memory(url.render_as_string(hide_password=False))

    assert service.supports_project_scoping
    with pytest.raises(ConfigurationError):
        open_memory("postgresql")

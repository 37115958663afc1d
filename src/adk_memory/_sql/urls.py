"""Database URLs as people paste them: other drivers, libpq's options, percent signs, a line break at the end."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import unquote, urlencode

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from adk_memory.errors import ConfigurationError

_BACKENDS = {"memory": "memory", "sqlite": "sqlite", "postgres": "postgresql", "postgresql": "postgresql"}
# Options that libpq's own client handles and asyncpg neither knows nor needs.
_CLIENT_SIDE = {
    "channel_binding", "client_encoding", "fallback_application_name", "gssencmode", "keepalives", "keepalives_count",
    "keepalives_idle", "keepalives_interval", "load_balance_hosts", "requirepeer", "tcp_user_timeout",
}  # fmt: skip
_STATEMENT_CACHES = ("statement_cache_size", "prepared_statement_cache_size")

_logger = logging.getLogger(__name__)


def backend_of(url: str) -> str:
    """Return the backend that a URL names: ``memory``, ``sqlite`` or ``postgresql``.

    Raises:
        ConfigurationError: none of them; the message does not hold the URL, which may hold a password.
    """
    scheme = url.strip().partition(":")[0].partition("+")[0].lower()
    if ":" not in url or scheme not in _BACKENDS:
        raise ConfigurationError(
            "the database URL must start with memory://, sqlite:/// or postgresql://; "
            "a file is sqlite:///relative.db or sqlite:////absolute/path.db"
        )
    return _BACKENDS[scheme]


def sqlite_url(url: str) -> URL:
    """Return ``url`` for the aiosqlite driver; ``sqlite:file.db`` is read as ``sqlite:///file.db``."""
    scheme, _, rest = url.strip().partition(":")
    parsed = _parse(url if rest.startswith("//") else f"{scheme}:///{rest}")
    if parsed.host:
        raise ConfigurationError("a SQLite URL has three slashes before a relative path, four before an absolute one")
    return parsed.set(drivername="sqlite+aiosqlite")


def postgres_url(url: str) -> tuple[URL, dict[str, Any]]:
    """Return ``url`` for the asyncpg driver without its options, and the connect arguments that they mean."""
    parsed = _parse(url)
    options = {name: value if isinstance(value, str) else value[-1] for name, value in parsed.query.items()}
    kept: dict[str, Any] = {name: parsed.query[name] for name in ("host", "port") if name in options}
    arguments: dict[str, Any] = {}
    if options.get("channel_binding") == "require":
        _logger.warning("channel_binding=require is ignored: asyncpg has no channel binding")
    if "connect_timeout" in options:
        arguments["timeout"] = _number("connect_timeout", options.pop("connect_timeout"))
    for name in _STATEMENT_CACHES:
        if name in options:
            arguments[name] = int(_number(name, options.pop(name)))
    if options.pop("pgbouncer", "false").lower() in ("true", "1", "yes"):
        # A pooler in transaction mode hands each transaction another server connection: nothing may be prepared
        # on one and used on another.
        arguments |= dict.fromkeys(_STATEMENT_CACHES, 0)
        arguments["prepared_statement_name_func"] = lambda: ""
    if "ssl" in options:
        options["sslmode"] = _SSL_WORDS.get(options["ssl"].lower(), options["ssl"])
    options = {name: value for name, value in options.items() if name not in {*_CLIENT_SIDE, *kept, "ssl"}}
    if options:
        # asyncpg reads libpq's options, those of TLS among them, from a DSN; what it does not know becomes a
        # setting of the session.
        arguments["dsn"] = f"postgresql://?{urlencode(options)}"
    return parsed.set(drivername="postgresql+asyncpg", query=kept), arguments


_SSL_WORDS = {"true": "require", "1": "require", "on": "require", "false": "disable", "0": "disable"}


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise ConfigurationError(f"{name} in the database URL must be a number") from error


def _parse(url: str) -> URL:
    url = url.strip()
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The parser's own message, and so the cause, could hold the password.
        raise ConfigurationError(
            "the database URL can't be read; percent-encode special characters in its user and password"
        ) from None
    if parsed.database and "%" in parsed.database and f"/{parsed.database}" in url:
        return parsed.set(database=unquote(parsed.database))  # SQLAlchemy before 2.1 leaves it encoded
    return parsed

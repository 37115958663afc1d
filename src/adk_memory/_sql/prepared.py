"""Statements that are built and compiled once: for a short one that takes longer than the database takes to answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import BindParameter, Connection, CursorResult, Dialect, literal_column
from sqlalchemy.sql.visitors import replacement_traverse

from adk_memory._sql.columns import UtcDateTime


def execute(
    connection: Connection,
    build: Callable[..., Any],
    shape: tuple[Any, ...],
    values: Mapping[str, Any],
    *,
    reused: bool = True,
) -> CursorResult[Any]:
    """Execute the statement ``build(*shape)``, whose parameters have names, with ``values`` for them.

    What comes back of a statement that will be ``reused`` is what the driver gives, without the conversions of the
    columns' types; and but for instants the values are what it takes.
    """
    if not reused:
        return connection.execute(build(*shape), values)
    sql, parameters = _compiled(build, shape, _Kind(connection.dialect))
    given = [values.get(name, fixed) for name, fixed, _ in parameters]
    for place, (_, _, convert) in enumerate(parameters):
        if convert is not None:
            given[place] = convert(given[place])
    return connection.exec_driver_sql(sql, tuple(given))


def tuples(result: CursorResult[*tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return all rows as the driver gives them; thousands of SQLAlchemy's take longer than to find them."""
    rows: list[tuple[Any, ...]] = list(result.cursor.fetchall())
    result.close()
    return rows


class _Kind:
    """A dialect of SQLAlchemy's that is the same as any other of its class."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kind) and type(self.dialect) is type(other.dialect)

    def __hash__(self) -> int:
        return hash(type(self.dialect))


_Parameter = tuple[str, Any, Callable[[Any], Any] | None]
"""A name, the value that the compiler has added, if any, and the conversion that the type asks for."""


@lru_cache(maxsize=256)
def _compiled(build: Callable[..., Any], shape: tuple[Any, ...], kind: _Kind) -> tuple[str, list[_Parameter]]:
    """Return a statement with its parameters in their order."""

    def written_out(element: Any, **_options: Any) -> Any:
        # A value that is the same each time helps the planner where it can see it, a LIMIT above all.
        if not isinstance(element, BindParameter) or element.required:
            return None
        return literal_column(str(element.compile(dialect=kind.dialect, compile_kwargs={"literal_binds": True})))

    compiled: Any = replacement_traverse(build(*shape), {}, written_out).compile(dialect=kind.dialect)

    def convert(name: str) -> Callable[[Any], Any] | None:
        kind_of = compiled.binds[name].type
        return kind_of.bind_processor(kind.dialect) if isinstance(kind_of, UtcDateTime) else None

    return str(compiled), [(name, compiled.params[name], convert(name)) for name in compiled.positiontup]

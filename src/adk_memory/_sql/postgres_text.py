"""Terms as Postgres' full text knows them: lexemes that are prepared here, and one more that names the scope."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Connection, Text, and_, cast, column, func, literal, select, table
from sqlalchemy.dialects import postgresql

from adk_memory._sql.scope import Sight
from adk_memory._sql.tables import SEARCH_TABLE

SEARCH = table(
    SEARCH_TABLE,
    column("scope_id", BigInteger),
    column("entry_id", BigInteger),
    column("terms", Text),
    column("lexemes", postgresql.TSVECTOR),
)
_LAST_PLACE: Final = 16_383  # a tsvector has no place beyond it
_PLACES: Final = 256  # and no more of one lexeme


def holding(sight: Sight, query: Any, *, bound: bool) -> ColumnElement[bool]:
    """Return whether a row of `SEARCH` is in sight and answers a query, the text of a tsquery.

    A GIN index knows no scopes, but each entry has a lexeme that names its own, and the query has to have it too:
    then the index meets the scope's entries only. Where the role is ``bound`` by row-level security, no lexeme is
    looked up before a policy has seen the row: the entries of the scope are found by their key.
    """
    # `+ 0` keeps the comparison of scopes a mere check of the rows that the index finds.
    in_sight = sight.sought(SEARCH.c.scope_id) if bound else sight.within(SEARCH.c.scope_id + 0)
    return and_(SEARCH.c.lexemes.op("@@")(tsquery(query)), in_sight)


def tsquery(query: Any) -> ColumnElement[Any]:
    return cast(literal(query, Text) if isinstance(query, str) else query, postgresql.TSQUERY)


def any_of(lexemes: Iterable[str]) -> str:
    return " | ".join(map(lexeme, lexemes))


def every_of(lexemes: Iterable[str]) -> str:
    return " & ".join(map(lexeme, lexemes))


def scope_lexeme(scope_id: object) -> str:
    return f"@{scope_id}"


def lexemes(terms: Sequence[str]) -> str:
    """Return terms, with their places, as the text of a tsvector."""
    return " ".join([f"{lexeme(term)}:{','.join(map(str, those))}" for term, those in places(terms).items()])


def places(terms: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of each term, as far as a tsvector can hold them."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for place, term in enumerate(terms[:_LAST_PLACE], 1):
        found[term].append(place)
    for term in set(terms[_LAST_PLACE:]):
        if found[term][-1:] != [_LAST_PLACE]:
            found[term].append(_LAST_PLACE)
    return {term: those[:_PLACES] for term, those in found.items()} if len(terms) > _PLACES else found


def lexeme(term: str) -> str:
    if term.isalnum():
        return f"'{term}'"
    quoted = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}'"


def index_remainders(connection: Connection, sight: Sight) -> dict[str, int]:
    """Return what the index has of scopes: rows by their number, and rows, of whatever scope, with their lexeme."""
    rows = select(func.count()).select_from(SEARCH).where(sight.within(SEARCH.c.scope_id))
    lexemes = any_of(map(scope_lexeme, sight.scope_ids))
    named = select(func.count()).select_from(SEARCH).where(SEARCH.c.lexemes.op("@@")(tsquery(lexemes)))
    return {
        "index entries": connection.execute(rows).scalar_one(),
        "index terms": connection.execute(named).scalar_one() if lexemes else 0,
    }


def wrong_lexemes(connection: Connection) -> int:
    """Return how many index entries are searched by other lexemes than their terms and their scope."""
    terms = func.array_remove(func.string_to_array(SEARCH.c.terms, " "), "")
    given = func.array_to_tsvector(func.array_append(terms, func.concat("@", SEARCH.c.scope_id)))
    wrong = select(func.count()).select_from(SEARCH).where(func.strip(SEARCH.c.lexemes) != given)
    return connection.scalar(wrong) or 0

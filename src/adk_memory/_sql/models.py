"""The embedding models by whose vectors entries are compared: each has a number, which never goes to another."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, select

from adk_memory._sql.dialect import Dialect
from adk_memory._sql.tables import EmbeddingModelRow, EmbeddingRow
from adk_memory.embedding import Embedder
from adk_memory.errors import ConfigurationError, EmbeddingMismatchError


def known_model(connection: Connection, embedder: Embedder) -> int | None:
    """Return the number of the embedder's model; `None` where no vector of it was ever to be stored.

    Raises:
        EmbeddingMismatchError: a model of that name has vectors of another length.
    """
    stored = select(EmbeddingModelRow.id, EmbeddingModelRow.dimensions).where(EmbeddingModelRow.name == embedder.model)
    row = connection.execute(stored).one_or_none()
    if row is None:
        return None
    if row.dimensions != embedder.dimensions:
        raise EmbeddingMismatchError(
            f"vectors of {embedder.model} are stored with {row.dimensions} dimensions, but the embedder "
            f"declares {embedder.dimensions}; give the new model a name of its own"
        )
    model_id: int = row.id
    return model_id


def answered_by(model_id: int) -> ColumnElement[bool]:
    """Return whether a row is a model's vector, or says that it has none."""
    answered: ColumnElement[bool] = EmbeddingRow.model_id.in_((model_id, -model_id))
    return answered


def model_named(connection: Connection, name: str) -> int:
    """Return the number of the model of that name.

    Raises:
        ConfigurationError: there is none; the message names those that there are.
    """
    columns: tuple[Any, ...] = (EmbeddingModelRow.name, EmbeddingModelRow.id)
    models = {row.name: row.id for row in connection.execute(select(*columns).order_by(EmbeddingModelRow.id))}
    if name not in models:
        raise ConfigurationError(f"there is no model {name!r}; there are: {', '.join(models) or 'none'}")
    model_id: int = models[name]
    return model_id


def register_model(connection: Connection, dialect: Dialect, embedder: Embedder) -> int | None:
    """Return the number of the embedder's model, a new one where it has none; raises as `known_model` does."""
    new = dialect.insert(EmbeddingModelRow).values(name=embedder.model, dimensions=embedder.dimensions)
    connection.execute(new.on_conflict_do_nothing(index_elements=[EmbeddingModelRow.name]))
    return known_model(connection, embedder)

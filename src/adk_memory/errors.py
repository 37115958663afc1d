"""Everything that adk-memory raises on purpose.

    AdkMemoryError
    ├── ValidationError (also a ValueError)      bad input; nothing was written
    ├── ConfigurationError                       a URL, an option or a missing package
    ├── OperationNotSupportedError               this backend lacks the operation
    │   └── ProjectScopingNotSupportedError      this backend can't keep projects apart
    ├── EmbeddingError                           the embedding provider failed or answered nonsense
    │   └── EmbeddingMismatchError               its model or width is not the stored one
    ├── SchemaError                              the tables are not what this version needs
    │   ├── SchemaMissingError                   there are none yet
    │   ├── SchemaOutdatedError                  they are older than this version
    │   └── SchemaTooNewError                    they, or the index in them, are newer than this version
    └── StorageError                             the database refused
        └── StorageUnavailableError              the database could not be reached, or was busy too long

No message holds memory text, a query, the id of a user or a password.
"""

from __future__ import annotations


class AdkMemoryError(Exception):
    """The root of the tree: catch it to catch everything that adk-memory raises on purpose."""


class ValidationError(AdkMemoryError, ValueError):
    """An argument is not what the contract asks for; nothing was written."""


class ConfigurationError(AdkMemoryError):
    """A URL, an option or an installed package does not fit; the message says what to change."""


class OperationNotSupportedError(AdkMemoryError):
    """This backend does not have the operation that was called."""


class ProjectScopingNotSupportedError(OperationNotSupportedError):
    """This backend can't keep projects apart, so it refuses instead of widening the scope."""


class EmbeddingError(AdkMemoryError):
    """The embedding provider raised, or what it returned can't be used."""


class EmbeddingMismatchError(EmbeddingError):
    """The provider's model or number of dimensions differs from what is stored or was declared."""


class StorageError(AdkMemoryError):
    """The database refused a statement; the driver's error is the cause."""


class StorageUnavailableError(StorageError):
    """The database could not be reached or stayed busy; the same call may succeed later."""


class SchemaError(AdkMemoryError):
    """The tables in the database are not what this version needs."""


class SchemaMissingError(SchemaError):
    """The database has no adk-memory tables yet."""


class SchemaOutdatedError(SchemaError):
    """The tables are of an older version and have to be upgraded."""


class SchemaTooNewError(SchemaError):
    """The tables, or the keyword index in them, are of a newer version than this package."""

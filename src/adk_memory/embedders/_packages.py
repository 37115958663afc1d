"""Optional packages: that one is missing is said at once, with the line that installs it."""

from __future__ import annotations

from importlib.util import find_spec

from adk_memory.errors import ConfigurationError


def require(package: str, embedder: str, extra: str, hint: str = "") -> None:
    """Look for an optional package, without importing it.

    Raises:
        ConfigurationError: it is not installed.
    """
    if find_spec(package) is None:
        raise ConfigurationError(f'{embedder} needs a package: pip install "adk-memory[{extra}]"{hint}')

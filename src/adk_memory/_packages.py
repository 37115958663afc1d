"""Optional packages: that one is missing is said at once, with the line that installs it."""

from __future__ import annotations

from importlib.util import find_spec

from adk_memory.errors import ConfigurationError


def require(package: str, what: str, extra: str, hint: str = "") -> None:
    """Look for an optional package, without importing it.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        found = find_spec(package)
    except (ModuleNotFoundError, ValueError):  # not even what it is in is there; or it is hidden
        found = None
    if found is None:
        raise ConfigurationError(f'{what} needs a package: pip install "adk-memory[{extra}]"{hint}')

"""The backend that docs/custom-backends.md shows keeps the contract, tested as the document says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[2] / "docs" / "custom-backends.md"


def _blocks() -> dict[str, Any]:
    """Return the names that the Python blocks of the document define."""
    names: dict[str, Any] = {"__name__": __name__}
    for block in re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.M | re.S):
        exec(compile(block, DOCUMENT, "exec"), names)
    return names


TestDictMemoryService = _blocks()["TestDictMemoryService"]

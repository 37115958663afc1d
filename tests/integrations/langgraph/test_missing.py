"""Without LangGraph's package, the error says what to install."""

from __future__ import annotations

import subprocess
import sys

SOURCE = """
import sys
sys.modules["langgraph"] = None
from adk_memory import ConfigurationError
try:
    import adk_memory.integrations.langgraph
except ConfigurationError as error:
    print(error)
"""


def test_the_line_that_installs_it_is_told() -> None:
    ran = subprocess.run([sys.executable, "-c", SOURCE], capture_output=True, text=True, check=True)

    assert 'pip install "adk-memory[langgraph]"' in ran.stdout

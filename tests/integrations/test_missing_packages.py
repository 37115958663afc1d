"""Without the package that an integration is for, importing it tells the line that installs it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("integration", "package", "extra"),
    [
        ("google_adk", "google.adk", "google-adk"),
        ("mcp", "mcp", "mcp"),
        ("openai_agents", "agents", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ],
)
def test_a_missing_package_is_named_with_the_line_that_installs_it(integration: str, package: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "import adk_memory\n"
        "try:\n"
        f"    import adk_memory.integrations.{integration}\n"
        "except adk_memory.ConfigurationError as error:\n"
        "    print(error)\n"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert f'adk_memory.integrations.{integration} needs a package: pip install "adk-memory[{extra}]"' in ran.stdout

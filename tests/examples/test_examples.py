"""The examples run as they stand, in a process of their own, without the network."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {
    "google_adk_agent.py": "google.adk",
    "langgraph_store.py": "langgraph.graph",
    "mcp_client.py": "mcp",
    "openai_agents.py": "agents",
    "pydantic_ai_agent.py": "pydantic_ai",
}
SAYS = {
    "google_adk_agent.py": "monday: Noted.\ntuesday: You told me: My favourite tea is jasmine.\n",
    "langgraph_store.py": "noted\nAna drinks green tea, without sugar\n",
    "mcp_client.py": "Ada: Ada takes her coffee without sugar. (0.",
    "openai_agents.py": "You take orders.\n\n<memories>\n",
    "plain_python.py": "-> Noted.\nWhich tea do I like?\n-> What I know of it:\n<memories>\n",
    "pydantic_ai_agent.py": "I take my coffee with oat milk.\n</memory>\n",
}


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs_and_remembers(example: str, tmp_path: Path) -> None:
    package = NEEDS.get(example)
    if package and not _is_installed(package):
        pytest.skip(f"{package} is not installed")

    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / example)], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert SAYS[example] in ran.stdout
    assert list(tmp_path.iterdir()) == []


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of the package that this one is in
        return False

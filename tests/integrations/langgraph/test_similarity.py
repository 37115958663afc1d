"""What a search of a LangGraph store finds by embeddings."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph-checkpoint is not installed")

from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp

from adk_memory import ConfigurationError, EmbeddingError, EmbeddingMismatchError, InMemoryMemoryService
from adk_memory.integrations.langgraph import AdkMemoryStore, AsyncAdkMemoryStore

MakeStore = Callable[..., AdkMemoryStore]


VECTORS: Final = {
    "east": [1.0, 0.0],
    "north": [0.0, 2.0],
    "west": [-3.0, 0.0],
    "far east": [5.0, 0.0],
    "none": [0.0, 0.0],
}


class Compass(Embeddings):  # type: ignore[misc]
    """Embeds the names of directions; any other text is their sum."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append(list(texts))
        return [VECTORS.get(text, [1.0, 1.0]) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return VECTORS.get(text, [1.0, 1.0])


def _keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


def _compass(**options: Any) -> Any:
    return {"dims": 2, "embed": Compass(), "fields": ["to", "by[*].to"], **options}


def test_the_score_is_the_cosine_of_the_nearest_text(make_store: MakeStore) -> None:
    store = make_store(index=_compass())
    store.put(("a",), "west", {"to": "west"})
    store.put(("a", "b"), "turns", {"by": [{"to": "west"}, {"to": "north"}, {"to": "west"}]})
    store.put(("a",), "hidden", {"to": "east"}, index=False)
    store.put(("a",), "pointless", {"to": "none"})
    store.put(("a",), "far", {"to": "far east"})

    found = store.search(("a",), query="east")

    assert _keys(found) == ["far", "turns", "west", "pointless", "hidden"]
    assert [item.score for item in found[:3]] == pytest.approx([1, 0, -1], abs=1e-3)
    assert [item.score for item in found[3:]] == [None, None]
    assert _keys(store.search(("a",), query="east", limit=2, offset=1)) == ["turns", "west"]
    assert _keys(store.search(("a",), query="east", filter={"to": {"$ne": "far east"}}, limit=1)) == ["turns"]
    assert [item.score for item in store.search(("a",), query="")] == [None] * 5


def test_another_text_has_another_vector(make_store: MakeStore) -> None:
    store = make_store(index=_compass())
    store.put(("a",), "k", {"by": [{"to": "west"}, {"to": "east"}]})
    store.put(("a",), "k", {"to": "north"})

    [found] = store.search(("a",), query="east")
    assert found.score == pytest.approx(0, abs=1e-3)
    [found] = store.search(("a",), query="north")
    assert found.score == pytest.approx(1, abs=1e-3)


def test_the_best_of_many_texts_counts_however_many_an_item_has(make_store: MakeStore) -> None:
    store = make_store(index=_compass())
    for number in range(3):
        store.put(("a",), f"long {number}", {"by": [{"to": f"anywhere {n}"} for n in range(20)]})
    store.put(("a",), "north", {"to": "north"})

    assert _keys(store.search(("a",), query="east", limit=4))[-1] == "north"


@pytest.mark.parametrize(
    ("distance", "scores"), [("cosine", [1, 0, -1]), ("inner_product", [1, 0, -1]), ("l2", [0, -math.sqrt(2), -2])]
)
def test_a_distance_is_that_of_unit_vectors(make_store: MakeStore, distance: str, scores: list[float]) -> None:
    store = make_store(index=_compass(distance_type=distance))
    for direction in ("west", "north", "far east"):
        store.put(("a",), direction, {"to": direction})

    found = store.search(("a",), query="east")

    assert _keys(found) == ["far east", "north", "west"]
    assert [item.score for item in found] == pytest.approx(scores, abs=2e-3)


@pytest.mark.parametrize("fields", [None, ["$"], ["*"]])
def test_the_whole_of_an_item_is_indexed_where_no_field_is_named(fields: list[str] | None) -> None:
    embed = Compass()
    with AdkMemoryStore("memory://", index={"dims": 2, "embed": embed, "fields": fields}) as store:
        store.put(("a",), "k", {"to": "east", "from": "west"})

    assert embed.asked == [["east", "west"] if fields == ["*"] else ['{"from": "west", "to": "east"}']]


def test_a_batch_is_embedded_in_one_call(make_store: MakeStore) -> None:
    store = make_store(index=_compass())
    several = [PutOp(("a", direction), "k", {"to": direction, "by": [{"to": "nowhere"}]}) for direction in VECTORS]
    store.batch([*several, PutOp(("a",), "k", {"to": "home"})])

    [asked] = store.embeddings.asked
    assert sorted(asked) == sorted([*VECTORS, "nowhere", "home"])


async def test_a_function_may_embed() -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [VECTORS[text] for text in texts]

    def embed_plainly(texts: Sequence[str]) -> list[list[float]]:
        return [VECTORS[text] for text in texts]

    for function in (embed, embed_plainly):
        index: Any = {"dims": 2, "embed": function, "fields": ["to"]}
        async with AsyncAdkMemoryStore("memory://", index=index) as store:
            await store.aput(("a",), "north", {"to": "north"})
            await store.aput(("a",), "east", {"to": "east"})

            assert _keys(await store.asearch(("a",), query="north")) == ["north", "east"]


def test_nothing_is_written_where_a_text_can_not_be_embedded(make_store: MakeStore) -> None:
    def embed(_texts: Sequence[str]) -> list[list[float]]:
        raise OSError("secret text")

    index: Any = {"dims": 2, "embed": embed}
    store = make_store(index=index)

    with pytest.raises(EmbeddingError, match="OSError") as failed:
        store.batch([PutOp(("a",), "indexed", {"n": 1}), PutOp(("a",), "other", {"n": 2}, index=False)])

    printed = "".join(traceback.format_exception(failed.value))
    assert "secret" not in printed
    assert store.search(()) == []


def test_vectors_of_another_length_are_refused() -> None:
    with AdkMemoryStore("memory://", index=_compass(dims=3)) as store, pytest.raises(EmbeddingMismatchError, match="3"):
        store.put(("a",), "k", {"to": "east"})


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"embed": Compass()}, "dims"),
        ({"embed": Compass(), "dims": 0}, "dims"),
        (_compass(distance_type="hamming"), "distance_type"),
        (_compass(fields=[1]), "paths"),
    ],
)
def test_a_configuration_that_can_not_be_used_is_refused(index: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        AdkMemoryStore("memory://", index=index)


def test_a_service_has_an_embedder_of_its_own() -> None:
    with pytest.raises(ConfigurationError, match="embed"):
        AdkMemoryStore(InMemoryMemoryService(), index=_compass())

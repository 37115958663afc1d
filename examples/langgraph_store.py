"""A LangGraph graph that remembers across threads: what one conversation notes, another one recalls.

    pip install "adk-memory[langgraph]" langgraph
    python examples/langgraph_store.py

No model and no network: the nodes do by rule what a model would decide.
"""

from __future__ import annotations

import uuid
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

from adk_memory.integrations.langgraph import AdkMemoryStore


class State(TypedDict):
    """What passes through the graph."""

    user: str
    text: str
    answer: str


def note(state: State, *, store: BaseStore) -> dict[str, str]:
    """Keep what the user says of themselves."""
    store.put(("memories", state["user"]), uuid.uuid4().hex, {"text": state["text"]})
    return {"answer": "noted"}


def recall(state: State, *, store: BaseStore) -> dict[str, str]:
    """Answer with what is known, the best first."""
    [best] = store.search(("memories", state["user"]), query=state["text"], limit=1)
    return {"answer": best.value["text"]}


def route(state: State) -> str:
    """Send questions to recall, and all else to note."""
    return "recall" if state["text"].endswith("?") else "note"


builder = StateGraph(State)
builder.add_node("note", note)
builder.add_node("recall", recall)
builder.add_conditional_edges(START, route, ["note", "recall"])
builder.add_edge("note", END)
builder.add_edge("recall", END)

if __name__ == "__main__":
    with AdkMemoryStore.from_conn_string(":memory:") as store:
        graph = builder.compile(store=store)
        graph.invoke({"user": "ana", "text": "Ana drinks green tea, without sugar", "answer": ""})
        print(graph.invoke({"user": "ana", "text": "Her cat is called Miso", "answer": ""})["answer"])
        print(graph.invoke({"user": "ana", "text": "Which tea does she like?", "answer": ""})["answer"])

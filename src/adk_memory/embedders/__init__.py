"""Embedding providers that are ready to use: local models that come inside a wheel, your function, an HTTP endpoint.

Each needs at most one optional package, which is imported when it is first at work. All of them ask for turns of a
session together with their author and the turn before (``embeds_turns``), give a blank text no vector, and shorten
texts that are too long for a model. `GivenVectors` is for those who have all vectors themselves, and embeds nothing.
"""

from adk_memory.embedders._functions import FunctionEmbedder
from adk_memory.embedders._given import GivenVectors
from adk_memory.embedders._http import HttpEmbedder
from adk_memory.embedders._local import FastLocalEmbedder, LocalEmbedder
from adk_memory.embedders._sentence_transformers import SentenceTransformerEmbedder

__all__ = [
    "FastLocalEmbedder",
    "FunctionEmbedder",
    "GivenVectors",
    "HttpEmbedder",
    "LocalEmbedder",
    "SentenceTransformerEmbedder",
]

